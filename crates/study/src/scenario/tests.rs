use super::*;
use rota_sim::Fault;
use std::path::PathBuf;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn refused(text: &str) -> (usize, String) {
    match parse(text, &root().join("scenarios")) {
        Ok(_) => panic!("was not refused: {text}"),
        Err(error) => error,
    }
}

const GOOD: &str = "stations = 3\nrate = \"10mbit\"\nduration = \"1s\"\n";

#[test]
fn errors_name_line_and_field() {
    let with = |line: &str| refused(&format!("{GOOD}{line}\n"));
    assert_eq!(with("trt = 33").0, 4);
    assert!(with("trt = 33").1.starts_with("trt: '33' has no unit"), "{:?}", with("trt = 33"));
    assert!(
        with("trt = \"-5ms\"").1.starts_with("trt: '-5ms' does not start"),
        "{:?}",
        with("trt = \"-5ms\"")
    );
    let (line, sentence) = with("colour = \"red\"");
    assert!(line == 4 && sentence.contains("unknown field `colour`"), "{line} {sentence}");
    let (line, sentence) = with("[medium]\nkind = \"link\"");
    assert_eq!((line, sentence.contains("a link joins 2 stations, not 3")), (5, true), "{sentence}");
    let shared = |more: &str| refused(&format!("{GOOD}[medium]\nkind = \"csma-cd\"\n{more}\n"));
    let (line, sentence) = shared("delay = \"30us\"");
    assert_eq!((line, sentence.contains("25.600 us would do")), (6, true), "{sentence}");
    let fast = GOOD.replace("10mbit", "1gbit");
    let (line, sentence) = refused(&format!("{fast}[medium]\nkind = \"csma-cd\""));
    assert_eq!((line, sentence.contains("up to 100 Mbit/s can be")), (5, true), "{sentence}");
    let (line, sentence) = with("[medium]\ncapture = \"avoided\"");
    assert_eq!((line, sentence.starts_with("medium.capture: nobody captures")), (5, true), "{sentence}");
    let (line, sentence) = with("[[traffic]]\nfrom = 1\nto = 9\nshape = \"greedy\"");
    assert_eq!((line, sentence.as_str()), (6, "traffic.to: there is no station 9; they are 1 to 3"));
    let unit = "[[reservation]]\nfrom = 1\nto = 2\nunit = \"30kB\"\nmust-admit = true";
    let (line, sentence) = with(&format!("{unit}\n{unit}"));
    assert!(line == 12 && sentence.contains("must be admitted and cannot be"), "{line} {sentence}");
    let (line, sentence) = with("[[fault]]\nkind = \"loss\"\nat = \"0s\"");
    assert!(line == 4 && sentence.starts_with("fault.share: is missing"), "{line} {sentence}");
    let (_, sentence) = with("[[fault]]\nkind = \"crash\"\nat = \"2s\"\nstation = 1");
    assert!(sentence.contains("ends after the 1 s of the scenario"), "{sentence}");
    assert!(with("[mix]\nevery = \"1s\"\nweights = { rain = 1 }").1.contains("no fault \"rain\""));
}

/// Each text is refused at its line, with a sentence that begins so.
fn all_refused<const N: usize>(cases: [(String, usize, &str); N]) {
    for (text, line, begin) in cases {
        let (at, sentence) = refused(&text);
        assert!(
            at == line && sentence.starts_with(begin),
            "line {at}: {sentence}\nnot {line}: {begin}\n{text}"
        );
    }
}

#[test]
fn what_could_have_no_effect_is_an_error_with_its_place() {
    let one = GOOD.replace('3', "1");
    let channel = "[[reservation]]\nfrom = 1\nto = 2\nunit = \"1kB\"\n";
    let load = "[[traffic]]\nfrom = 1\nto = 2\nshape = \"greedy\"\n";
    all_refused([
        (format!("{one}{channel}"), 1, "stations: 1 stations are no segment; 2 to 200 are"),
        (format!("{GOOD}[timers]\ndelay = \"1us\""), 5, "timers.delay: a delay of 1 us is shorter than"),
        (format!("{GOOD}trt = \"1ms\""), 4, "trt: a cycle of 1 ms cannot be kept; 3.414 ms to 1 s can, at"),
        (format!("{GOOD}[timers]\nlease = \"7ms\""), 5, "timers.lease: a lease of 7 ms is too short; 7.084"),
        (format!("{GOOD}[timers]\nlease = \"90s\""), 5, "timers.lease: 90 s is no timer"),
        (format!("{GOOD}[timers]\nlease = \"1ms\""), 5, "timers.lease: a lease of 1 ms is too short"),
        (format!("{GOOD}[timers]\ndeath = \"10ms\""), 5, "timers.death: a death timeout of 10 ms is too"),
        (format!("{GOOD}quiet = \"10ms\""), 4, "quiet: 10 ms are too short for one recovery"),
        (format!("{GOOD}[medium]\nport-queue = \"10octets\""), 5, "medium.port-queue: 10"),
        (format!("{GOOD}dark = [2]"), 4, "dark: station 2 would never start"),
        (format!("{GOOD}{channel}open = \"1s\""), 8, "reservation.open: nothing is opened behind"),
        (format!("{GOOD}{channel}close = \"0s\""), 8, "reservation.close: is not later than"),
        (format!("{GOOD}{channel}file = \"a.h264\""), 8, "reservation.file: \"periodic\" does not use it"),
        (
            format!("{GOOD}{channel}change = [{{ at = \"2s\", unit = \"1kB\" }}]"),
            8,
            "reservation.change: 2 s",
        ),
        (
            format!("{GOOD}{}", channel.replace('1', "0").replace("= 0\n", "= 1\n")),
            7,
            "reservation.unit: a unit of 0",
        ),
        (format!("{GOOD}{load}period = \"1ms\""), 8, "traffic.period: \"greedy\" does not use it"),
        (format!("{GOOD}{load}begin = \"2s\""), 8, "traffic.begin: nothing is sent behind"),
        (format!("{GOOD}{load}end = \"0s\""), 8, "traffic.end: is not later than"),
        (
            format!(
                "{GOOD}{}",
                load.replace("greedy", "on-off") + "period = \"1ms\"\non = \"0s\"\noff = \"0s\""
            ),
            9,
            "traffic.on: a burst of less than 1us",
        ),
    ]);
}

/// Babble once took shorter ones as 60, and of 65536 it was said that whole numbers are expected.
#[test]
fn a_length_that_no_frame_has_is_an_error_that_names_the_field_and_what_would_be_right() {
    for kind in ["flood", "babble\"\nstation = 1\nperiod = \"1ms"] {
        let with = |octets: u64| {
            format!("{GOOD}[[fault]]\nat = \"1ms\"\nlasts = \"1ms\"\noctets = {octets}\nkind = \"{kind}\"\n")
        };
        for octets in [0, 59, 1_515, 65_535, 65_536, 1 << 40] {
            let (line, sentence) = refused(&with(octets));
            assert_eq!(
                (line, sentence),
                (7, format!("fault.octets: {octets} octets are no frame; 60 to 1514 are"))
            );
        }
        for octets in [60, 1_514] {
            let scenario = parse(&with(octets), Path::new(".")).unwrap();
            let (Fault::Flood { octets: read, .. } | Fault::Babble { octets: read, .. }) =
                scenario.faults[0].fault
            else {
                panic!("another fault")
            };
            assert_eq!(u64::from(read), octets);
        }
    }
}

#[test]
fn a_fault_that_could_do_nothing_is_an_error_with_its_place() {
    let fault = |kind: &str| format!("[[fault]]\nat = \"1ms\"\nkind = \"{kind}\"\n");
    let crash = fault("crash") + "station = 1\n";
    all_refused([
        (
            format!("{GOOD}{crash}share = \"5%\""),
            8,
            "fault.share: \"crash\" does not use it; it uses station, mo",
        ),
        (format!("{GOOD}{}share = \"5%\"", fault("loss")), 4, "fault.lasts: is missing: \"loss\" goes on"),
        (
            format!("{GOOD}{}stations = [1, 2, 3, 3]", fault("partition")),
            7,
            "fault.stations: nobody is parted",
        ),
        (format!("{GOOD}{}station = 1\nother = 1", fault("one-way")), 8, "fault.other: is the same station"),
        (format!("{GOOD}{}first = 0", fault("loss-nth")), 7, "fault.first: frames are counted from 1"),
        (format!("{GOOD}{}period = \"0s\"", fault("forge")), 7, "fault.period: a period of less than 1us"),
        (
            format!("{GOOD}{}lasts = \"1ms\"\noctets = 9000", fault("flood")),
            8,
            "fault.octets: 9000 octets are no",
        ),
        (
            format!("{GOOD}[mix]\nevery = \"1s\"\nweights = {{ loss = 0 }}"),
            6,
            "mix.weights: a mix needs at least",
        ),
        ("stations = 3\nduration = \"1s\"".to_owned(), 1, "rate: is missing"),
        (
            GOOD.replace('3', "-3"),
            1,
            "stations: invalid value: integer `-3`, expected a whole number, 0 or more",
        ),
        (
            format!("{GOOD}[reservation]\nfrom = 1"),
            4,
            "reservation: there may be several; write [[reservation]]",
        ),
        (format!("{GOOD}[[medium]]\nkind = \"link\""), 4, "medium: there is one only; write [medium]"),
        (
            format!("{GOOD}{}share = 0.1", fault("loss")),
            7,
            "share: '0.1' is no share; write it like 50ppm or 2%",
        ),
    ]);
}

const SEGMENTS: &str = "[[segment]]\nname = \"left\"\n[[segment]]\nname = \"right\"\nrate = \"100mbit\"\n";

/// A gateway and a station on each of two segments.
fn two_segments(more: &str) -> String {
    let stations = "[[station]]\neth0 = \"left\"\n[[station]]\neth0 = \"left\"\neth1 = \"right\"\n\
                    [[station]]\neth0 = \"right\"\n";
    format!("{GOOD}{SEGMENTS}{stations}{more}")
}

#[test]
fn hosts_have_ports_on_segments() {
    let fault = "[[fault]]\nat = \"1ms\"\nlasts = \"9ms\"\n";
    let text = two_segments(&format!("{fault}kind = \"port-loss\"\nstation = 2\nsegment = \"right\"\n"));
    let scenario = parse(&text, Path::new(".")).expect("it is sound");
    let world = &scenario.world;
    assert_eq!(world.ports, [vec![0], vec![0, 1], vec![1]]);
    let rates = [0, 1].map(|segment| world.settings_of(segment).link.rate.as_bps());
    assert_eq!(rates, [10_000_000, 100_000_000]);
    assert_eq!(scenario.faults[0].segment, 1);
    // Without its name it is the first one that the station is on.
    let text = two_segments(&format!("{fault}kind = \"flap\"\nperiod = \"1ms\"\nstation = 3\n"));
    assert_eq!(parse(&text, Path::new(".")).expect("it is sound").faults[0].segment, 1);
}

#[test]
fn wrong_segments_and_ports_are_errors_with_their_place() {
    let fault = "[[fault]]\nat = \"1ms\"\nlasts = \"9ms\"\n";
    let one = "[[station]]\neth0 = \"left\"\n";
    all_refused([
        (format!("{GOOD}{one}"), 5, "station.eth0: there are no segments to name"),
        (format!("{GOOD}{SEGMENTS}{one}"), 1, "stations: is 3, and there are 1 [[station]] tables"),
        (two_segments("").replace("\"right\"\nrate", "\"left\"\nrate"), 7, "segment.name: 'left' has been"),
        (
            two_segments("").replace("eth1 = \"right\"", "eth1 = \"up\""),
            13,
            "station.eth1: there is no segment",
        ),
        (
            two_segments("").replace("eth1 = \"right\"", "eth1 = \"left\""),
            13,
            "station.eth1: has another port",
        ),
        (two_segments("").replace("eth1", "eth2"), 11, "station.eth1: 'eth2' is no field here"),
        (
            two_segments("").replace("eth1 = \"right\"\n", ""),
            7,
            "segment.name: a segment joins 2 stations or",
        ),
        (
            two_segments("[[traffic]]\nfrom = 1\nto = 3\nshape = \"greedy\"\n"),
            18,
            "traffic.to: stations 1 and 3 have",
        ),
        (
            two_segments(&format!("{fault}kind = \"pause\"\nstation = 1\nsegment = \"left\"\n")),
            21,
            "fault.segment: what strikes a process",
        ),
        (
            two_segments(&format!("{fault}kind = \"forge\"\nperiod = \"1ms\"\nsegment = \"up\"\n")),
            21,
            "fault.segment: there is no segment 'up'",
        ),
        (
            two_segments(&format!("{fault}kind = \"port-loss\"\nstation = 1\nsegment = \"right\"\n")),
            21,
            "fault.segment: station 1 has no",
        ),
        (
            two_segments(&format!("{fault}kind = \"one-way\"\nstation = 1\nother = 3\n")),
            20,
            "fault.station: the stations of",
        ),
        (
            format!("{GOOD}{fault}kind = \"forge\"\nperiod = \"1ms\"\nsegment = \"a\"\n"),
            9,
            "fault.segment: there is one segment",
        ),
        (
            two_segments("").replace(
                "left\"\n[[segment]]",
                "left\"\nmedium = \"csma-cd\"\nrate = \"1gbit\"\n[[segment]]",
            ),
            6,
            "segment.medium: no segment is shared at",
        ),
    ]);
}

#[test]
fn every_scenario_of_the_project_can_be_run() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("scenarios")).expect("the folder is there") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            read(&path).unwrap_or_else(|failure| panic!("{}", failure.sentence));
            count += 1;
        }
    }
    assert!(count >= 5);
}

#[test]
fn every_schedule_of_the_project_can_be_run() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("models/schedules")).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let scenario = read_any(&path).unwrap_or_else(|failure| panic!("{}", failure.sentence));
        let outcome = rota_sim::sweep::run(1, &scenario);
        assert_eq!(outcome.violations, [], "{}", path.display());
        assert!(outcome.happened.iter().any(|(.., count)| count > 0), "{} does nothing", path.display());
        count += 1;
    }
    assert!(count >= 6);
    let path = std::env::temp_dir().join(format!("rota-wrong-{}.schedule", std::process::id()));
    std::fs::write(&path, "stations 3\nlose 1 token 1 7\n").expect("a file");
    let failure = read_any(&path).expect_err("there is no station 7");
    std::fs::remove_file(&path).expect("it was there");
    let end = format!("{}:2: '7' is no station; they are 1 to 3", path.display());
    assert_eq!(failure.sentence, end);
}

/// Field names stand as the structures of this file and of `faults.rs` say them, in kebab case.
#[test]
fn the_page_of_scenarios_names_every_field() {
    let page = std::fs::read_to_string(root().join("docs/scenarios.md")).expect("docs/scenarios.md");
    let sources = [include_str!("../scenario.rs"), include_str!("faults.rs"), include_str!("ports.rs")];
    let mut fields = 0;
    for source in sources {
        let mut inside = false;
        for line in source.lines() {
            inside |= line.contains("#[derive") && line.contains("Deserialize");
            inside &= line != "}";
            let Some((field, kind)) = line.trim().trim_start_matches("pub(super) ").split_once(": ") else {
                continue;
            };
            if inside && line.starts_with("    ") && kind.ends_with(',') {
                let name = field.replace('_', "-");
                assert!(page.contains(&format!("`{name}`")), "docs/scenarios.md lacks `{name}`");
                fields += 1;
            }
        }
    }
    assert!(fields > 60, "{fields} fields were found");
    for name in <rota_sim::Draw as strum::VariantNames>::VARIANTS {
        assert!(page.contains(&format!("`{name}`")), "docs/scenarios.md lacks the fault `{name}`");
    }
}

/// Replays a corpus, and each of its files cut short and with an octet changed.
pub(crate) fn replay(corpus: &str, target: fn(&[u8])) {
    let mut files = 0;
    for entry in std::fs::read_dir(root().join(corpus)).unwrap() {
        let data = std::fs::read(entry.unwrap().path()).unwrap();
        target(&data);
        for cut in (0..data.len()).step_by(data.len() / 64 + 1) {
            target(&data[..cut]);
            let mut damaged = data.clone();
            damaged[cut] ^= 0x15;
            target(&damaged);
        }
        files += 1;
    }
    assert!(files >= 5);
}

#[test]
fn the_corpus_of_scenarios_replays() {
    replay("fuzz/corpus/scenario", fuzz_scenario);
}

#[test]
fn the_corpus_of_scripts_replays() {
    replay("fuzz/corpus/script", script::fuzz_script);
}

#[test]
fn a_script_holds_only_what_happens_to_frames() {
    let three = WorldSpec { strangers: 1, ..WorldSpec::new(3) };
    let of = |text: &str| script::parse(text, &three);
    let refused = |text: &str| of(text).map(|_| ()).unwrap_err();
    assert_eq!(of("").unwrap().len(), 0, "nothing goes wrong");
    let cut = "[[fault]]\nkind = \"partition\"\nat = \"2s\"\nstations = [1]\n";
    let timed = &of(cut).unwrap()[0];
    assert_eq!((timed.at, timed.lasts), (Span::from_millis(2_000), Span::ZERO));
    let (line, sentence) = refused(&cut.replace("partition", "storm"));
    assert!(line == 2 && sentence.contains("fault.kind: happens to a station"), "{line} {sentence}");
    let (line, sentence) = refused(&format!("{cut}colour = 1\n"));
    assert!(line == 5 && sentence.contains("unknown field `colour`"), "{line} {sentence}");
    let (line, sentence) = refused(&cut.replace("[1]", "[4]"));
    assert!(line == 4 && sentence.contains("no station 4; they are 1 to 3"), "{line} {sentence}");
    let flood = "[[fault]]\nkind = \"flood\"\nat = \"0s\"\n";
    assert_eq!(of(flood).unwrap().len(), 1);
    let link = WorldSpec { topology: Topology::Link { delay: Span::ZERO }, ..WorldSpec::new(2) };
    let (line, sentence) = script::parse(flood, &link).unwrap_err();
    assert!(line == 2 && sentence.contains("no port on a link"), "{line} {sentence}");
    let (_, sentence) = refused("stations = 3\n");
    assert!(sentence.contains("expected `fault`"), "{sentence}");
}
