use super::*;
use rota_admission::Framing;
use std::path::PathBuf;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn good() -> String {
    std::fs::read_to_string(root().join("testdata/measured/calibration-100mbit.toml"))
        .expect("testdata/measured/calibration-100mbit.toml")
}

fn refused(text: &str) -> (usize, String) {
    match parse(text) {
        Ok(_) => panic!("was not refused: {text}"),
        Err(error) => error,
    }
}

#[test]
fn a_file_is_read_as_it_was_written_and_becomes_admissions_link() {
    let read = parse(&good()).expect("it is sound");
    assert_eq!(parse(&read.text()).expect("what is written is sound").text(), read.text());
    let link = read.link(LinkModel::new(read.about.rate, Framing::ETHERNET, 704));
    let costs = read.admission;
    assert_eq!(
        (link.prepare, link.per_frame, link.per_visit),
        (costs.prepare, costs.per_frame, costs.per_visit)
    );
    assert_eq!((link.hop, link.host_slack, link.rate), (costs.hop, costs.host_slack, read.about.rate));
}

/// A file of jumbo frames was taken for a link of 1,500 octets, where frames cost less.
#[test]
fn a_file_holds_for_its_rate_and_its_mtu() {
    let old = parse(&good()).expect("it is sound").about;
    assert_eq!(old.mtu, None, "files of older versions do not state it");
    let text = good().replace("medium = ", "mtu = 9000\nmedium = ");
    let read = parse(&text).expect("it is sound");
    assert_eq!(
        (read.about.mtu, &parse(&read.text()).expect("it is sound").about),
        (Some(9_000), &read.about)
    );
    let (path, rate) = (Path::new("cal.toml"), old.rate);
    assert!(
        old.check(path, "eth0", rate, 1_500).is_ok() && read.about.check(path, "eth0", rate, 9_000).is_ok()
    );
    let error = read.about.check(path, "eth0", rate, 1_500).unwrap_err();
    assert_eq!(error.exit, rota_answer::Exit::WrongUse);
    let said = "cal.toml: mtu: it was measured with an MTU of 9000, but eth0 has 1500";
    assert!(error.sentence.starts_with(said), "{}", error.sentence);
    assert!(
        read.about.check(path, "eth0", BitRate::from_mbit(7), 9_000).unwrap_err().sentence.contains("rate: ")
    );
    assert!(refused(&text.replace("9000", "90000")).1.contains("mtu"));
}

#[test]
fn a_machine_of_the_simulator_costs_the_medians() {
    let read = parse(&good()).expect("it is sound");
    let profile = read.profile();
    assert_eq!(profile.send_data, read.spread(Measurement::Prepare).p50);
    assert_eq!(profile.first_data + read.spread(Measurement::Wake).p50, read.spread(Measurement::Visit).p50);
    let hop = profile.wake + profile.receive + profile.send_control;
    assert_eq!(hop, read.spread(Measurement::Hop).p50);
    assert_eq!((profile.late_ppm, profile.late_max), (1_000, read.admission.host_slack));
}

#[test]
fn nonsense_is_one_error_with_line_and_field() {
    let with = |field: &str, value: &str| {
        let line = |line: &str| {
            // A spread has the name of its cost.
            let ours = line.split(" = ").next() == Some(field) && !line.ends_with('}');
            if ours { format!("{field} = {value}\n") } else { format!("{line}\n") }
        };
        refused(&good().lines().map(line).collect::<String>())
    };
    let line_of = |field: &str| good().lines().position(|line| line.starts_with(field)).unwrap() + 1;
    for (field, value, words) in [
        ("hop", "\"-5us\"", "does not start with a number"),
        ("hop", "33", "has no unit"),
        ("hop", "\"0ns\"", "admission.hop: no token goes on in no time"),
        ("per-visit", "\"2s\"", "admission.per-visit: 2 s is no cost"),
        ("per-visit", "\"1ns\"", "is less than preparing its first frame takes"),
        ("rate", "\"fast\"", "rate: 'fast' does not start"),
        ("format", "2", "format: is 2, this rota reads 1; run `rota calibrate` again"),
        ("medium", "\"air\"", "unknown variant `air`"),
    ] {
        let (line, sentence) = with(field, value);
        assert!(line == line_of(field) && sentence.contains(words), "{field}: line {line}: {sentence}");
    }
    let (_, sentence) = refused(&format!("{}colour = \"red\"\n", good()));
    assert!(sentence.contains("colour"), "{sentence}");
    let (line, sentence) = refused("");
    assert!(line == 1 && sentence.contains("missing"), "{sentence}");
    let falling = good().replace("p99 = \"", "p99 = \"9");
    assert!(refused(&falling).1.contains("its percentiles do not rise"));
}

#[test]
fn the_corpus_of_calibrations_replays() {
    let folder = root().join("fuzz/corpus/calibration");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let data = std::fs::read(entry.unwrap().path()).unwrap();
        fuzz_calibration(&data);
        for cut in (0..data.len()).step_by(data.len() / 256 + 1) {
            fuzz_calibration(&data[..cut]);
            let mut damaged = data.clone();
            damaged[cut] ^= 0x15;
            fuzz_calibration(&damaged);
        }
        files += 1;
    }
    assert!(files >= 4);
}

/// TRANSPORT-R57. Files of older versions have no table of circuits.
#[test]
fn the_costs_of_circuits_are_read_as_they_were_written() {
    assert_eq!(parse(&good()).expect("it is sound").circuits, None);
    let table = "[circuits]\nmessage = \"4100ns\"\ntpdu = \"6us\"\noctet-ps = 1490\n";
    let spread =
        "{ samples = 1, p50 = \"1ns\", p90 = \"2ns\", p99 = \"3ns\", p999 = \"4ns\", max = \"5ns\" }";
    let text = good().replace("[measured]\n", &format!("{table}[measured]\nmessage-row = {spread}\n"));
    let read = parse(&text).expect("it is sound");
    let circuits = read.circuits.expect("it has the table");
    let (message, tpdu) = (Span::from_nanos(4_100), Span::from_micros(6));
    assert_eq!(circuits, cpu::Costs { message, tpdu, octet_ps: 1_490 });
    let again = parse(&read.text()).expect("what is written is sound");
    assert_eq!((again.circuits, again.text()), (read.circuits, read.text()));
    assert_eq!(read.spread(Measurement::MessageRow).max, Span::from_nanos(5));
    let line = 1 + text.lines().position(|line| line == "octet-ps = 1490").expect("it is there");
    let (at, sentence) = refused(&text.replace("octet-ps = 1490", "octet-ps = 1000001"));
    assert_eq!(at, line, "{sentence}");
    assert!(sentence.starts_with("circuits.octet-ps: 1000001 is more"), "{sentence}");
    let (_, sentence) = refused(&text.replace("6us", "1s"));
    assert!(sentence.starts_with("circuits.tpdu: ") && sentence.contains("is no cost"), "{sentence}");
}
