//! `rota calibrate` in a lab: what it writes, who may use it, and what is refused.

mod common;

use common::topology::TopologyLab;
use common::{Lab, PATIENCE, ROTA, eventually, testdata, text};
use std::process::Command;

/// Whether every number of a calibration is there and in its order.
fn check_document(json: &serde_json::Value) {
    assert_eq!((&json["interface"], &json["virtual"]), (&"eth0".into(), &true.into()), "{json}");
    for part in ["prepare", "prepare_short", "visit", "hop", "receive", "wake"] {
        let of =
            |name: &str| json["measured"][part][name].as_u64().unwrap_or_else(|| panic!("{part} {json}"));
        let values = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"].map(of);
        assert!(values.is_sorted() && of("samples") >= 100, "{part}: {json}");
    }
    let cost = |name: &str| json["admission"][name].as_u64().unwrap();
    // Two links at 10 Mbit/s and a token of 16 slots.
    assert!(cost("hop_ns") > 2 * 190_400, "{json}");
    assert!(cost("per_visit_ns") >= cost("prepare_ns") && cost("prepare_ns") > 0, "{json}");
    assert!(cost("host_slack_ns") <= 1_000_000, "{json}");
}

/// Measuring took frames of 1,500 octets whatever the MTU, and failed where it is lower.
#[test]
fn stations_measure_each_other_and_admit_by_what_was_found() {
    let Some(lab) = Lab::without_nodes("calibrate", 3, &["--mtu", "576"]) else { return };
    let file = lab.file("calibration.toml").display().to_string();
    let answering = lab.start(2, &["calibrate", "--interface", "eth0", "--echo"]);
    answering.wait_for_word("answering on eth0");
    let words = ["calibrate", "--interface", "eth0", "--duration", "1s", "--json", "--out", &file];
    check_document(&lab.rota(1, &words).well().json());
    drop(answering);
    let with = |file: &str| vec!["--calibration".to_owned(), file.to_owned()];
    let first = lab.start_node(1, &with(&file));
    let _second = lab.start_node(2, &with(&file));
    lab.wait_for_status(1, "the other", |status| status["members"].as_array().is_some_and(|m| m.len() == 2));
    // One that reckons otherwise is told so and not believed.
    let _third = lab.start_node(3, &[]);
    lab.wait_for_status(1, "the stranger's settings", |status| {
        status.to_string().contains("its cost of a visit (--calibration) is 50 us")
    });
    let taken = lab.rota(1, &["calibrate", "--interface", "eth0", "--duration", "1s", "--out", &file]);
    assert!(taken.err.contains("already belongs to another rota process"), "{}", taken.err);
    drop(first);
}

const BOTH: [&str; 7] = ["node", "--iface", "eth0", "--iface", "eth1", "--rate", "eth0=100mbit,eth1=10mbit"];

/// One file was for all interfaces and has one rate, so a gateway between two rates could have none.
#[test]
fn a_gateway_between_two_rates_has_a_calibration_for_each_interface() {
    let Some(lab) = TopologyLab::up("calibrated", "two-segments.toml", &["--no-nodes"]) else { return };
    let [fast, slow] = ["100", "10"].map(|rate| testdata(&format!("measured/calibration-{rate}mbit.toml")));
    let node = |station: &str, words: &[&str]| lab.node(station, &[&["--iface", "eth0"], words].concat());
    let gateway = |words: &[&str]| lab.rota("gateway", &[&BOTH[..], words].concat());
    let swapped = std::env::temp_dir().join(format!("rota-calibrated-{}", std::process::id()));
    let measured_on_eth1 = std::fs::read_to_string(&slow).unwrap().replace("\"eth0\"", "\"eth1\"");
    std::fs::write(&swapped, measured_on_eth1).unwrap();
    let mixed_up = format!("eth0={},eth1={fast}", swapped.display());
    for (files, why) in [
        (fast.clone(), "rate: it was measured at 100 Mbit/s, but eth1 runs at 10 Mbit/s"),
        (
            format!("eth0={slow},eth1={fast}"),
            "rate: it was measured at 10 Mbit/s, but eth0 runs at 100 Mbit/s",
        ),
        (format!("eth0={fast},eth7={slow}"), "a calibration was given for eth7, which is no interface"),
        (mixed_up, "interface: it was measured on eth0, and the file for eth0 on eth1; exchange the two"),
    ] {
        let refused = gateway(&["--calibration", &files]).finish();
        assert!(refused.code() == 2 && refused.err.contains(why), "{}", refused.err);
    }
    std::fs::remove_file(swapped).unwrap();
    let each = format!("eth0={fast},eth1={slow}");
    let _nodes = [
        node("n1", &["--calibration", &fast]),
        node("n3", &["--rate", "10mbit", "--calibration", &slow]),
        lab.node("gateway", &[&BOTH[1..], &["--calibration", &each]].concat()),
    ];
    // Stations that calculate otherwise are strangers to each other.
    let know_each_other = || {
        let status = lab.status("gateway");
        let members = |port: &serde_json::Value| port["members"].as_array().map_or(0, Vec::len);
        let all = status["extra"]["ports"].as_array()?.iter().map(members).collect::<Vec<_>>();
        (all == [2, 2]).then_some(())
    };
    eventually(PATIENCE, know_each_other).unwrap_or_else(|| panic!("{}", lab.status("gateway")));
}

/// TRANSPORT-5.2-1: the receiver's CPU has room for one circuit, and the sender's for many.
#[test]
fn a_guaranteed_circuit_takes_cpu_and_one_more_is_refused_with_the_numbers_until_it_ends() {
    let Some(lab) = Lab::without_nodes("cpu", 3, &[]) else { return };
    let measured = std::fs::read_to_string(testdata("measured/calibration-10mbit.toml")).unwrap();
    let calibrated = |name: &str, message: &str| {
        let circuits = format!("[circuits]\nmessage = \"{message}\"\ntpdu = \"50us\"\noctet-ps = 1000\n");
        std::fs::write(lab.file(name), measured.replace("[measured]\n", &(circuits + "[measured]\n")))
            .unwrap();
        vec!["--calibration".to_owned(), lab.file(name).display().to_string()]
    };
    std::fs::write(lab.file("bare"), &measured).unwrap();
    let bare = ["--calibration".to_owned(), lab.file("bare").display().to_string()];
    // The costs of circuits are each station's own affair: all three form one segment.
    let _nodes = [
        lab.start_node(1, &calibrated("quick", "10us")),
        lab.start_node(2, &calibrated("slow", "2ms")),
        lab.start_node(3, &bare),
    ];
    lab.wait_for_members();
    let note = |k: u8, words: &str| {
        lab.wait_for_status(k, words, |status| status["notes"].to_string().contains(words))
    };
    note(3, "the CPU is not admitted for channels: no file with the costs of circuits was given");
    let status = note(2, "is promised, with the token's part, to 0 ends of channels");
    assert_eq!(status["extra"]["cpu"]["within_ns"], 10_000_000, "{status}");

    let listen = |service: &str| {
        let receiver = lab.start(2, &["pipe", "--listen", service]);
        receiver.wait_for_word("listening");
        receiver
    };
    let send = |service: &str| {
        let words = format!("exec {ROTA} pipe --to n2 --service {service} --class guaranteed --rate 100kbit");
        common::Program::start(lab.exec(1, &["sh", "-c", &(words + " < /dev/zero")]))
    };
    let _receivers = [listen("7"), listen("8")];
    let first = send("7");
    first.wait_for_word("open:");
    note(2, "to 1 end of a channel");
    let shown = |k: u8| {
        let list = lab.rota(k, &["vc", "list", "--json"]).well().json();
        let circuit = list["circuits"][0]["circuit"].to_string();
        let text = lab.rota(k, &["vc", "show", circuit.trim_matches('"')]).well().out;
        (list["circuits"][0]["cpu"].clone(), text)
    };
    let (cpu, text) = shown(2);
    assert!(cpu["load_ppm"].as_u64() > Some(45_000) && cpu["within_ns"] == 10_000_000, "{cpu}");
    assert!(text.contains("% of one here, the work of a TPDU done within 10 ms"), "{text}");

    let refused = send("8").finish();
    assert_eq!(refused.code(), 3, "{}", refused.err);
    for part in ["node n2 refuses (CpuResponse): the CPU would not be done", "and 10 ms is allowed"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    // Its program dies: nothing is left of it, and another one has the CPU.
    drop(first);
    note(2, "to 0 ends of channels");
    send("8").wait_for_word("open:");
}

#[test]
fn what_is_no_calibration_is_refused_in_one_sentence() {
    let folder = std::env::temp_dir().join(format!("rota-calibration-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let good = std::fs::read_to_string(testdata("measured/calibration-100mbit.toml")).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let other = file("other.toml", &good.replace("format = 1", "format = 9"));
    let bare = file("bare.toml", &good.replace("per-visit = \"46818ns\"", "per-visit = 46818"));
    let refused = |words: &[&str], code: i32, sentence: &str| {
        let out = Command::new(ROTA).args(words).env_remove("ROTA_CALIBRATION").output().unwrap();
        let errors = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{words:?}: {errors}");
        assert!(errors.contains(sentence) && !errors.contains("panicked"), "{words:?}: {errors}");
    };
    let up = |file: &str, sentence: &str| refused(&["lab", "up", "--calibration", file], 2, sentence);
    up(&other, "other.toml:3: format: is 9, this rota reads 1");
    up(&bare, "bare.toml:15: per-visit: '46818' has no unit");
    refused(&["lab", "up", "--calibration", "/nowhere/at/all"], 1, "cannot read /nowhere/at/all");
    refused(&["calibrate", "--interface", "no-such-if0"], 1, "there is no interface no-such-if0");
    refused(&["calibrate", "--duration", "1ms"], 2, "1 ms is no time to measure");
    refused(&["calibrate", "--peer", "n2"], 2, "'n2' is no hardware address");
    refused(&["calibrate", "--lab", "--interface", "eth0"], 2, "cannot be used with");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_scenario_runs_on_the_machine_that_was_measured() {
    let folder = std::env::temp_dir().join(format!("rota-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let scenario = |file: &str| {
        let path = folder.join("machine.toml");
        let text = format!(
            "stations = 3\nrate = \"100mbit\"\nduration = \"300ms\"\n[hosts]\n\
             profile = {{ calibration = \"{file}\" }}\n\
             [[reservation]]\nfrom = 1\nto = 2\nunit = \"6250octets\"\nmust-admit = true\n"
        );
        std::fs::write(&path, text).unwrap();
        Command::new(ROTA).args(["sim", "run", "--json"]).arg(&path).output().unwrap()
    };
    let measured = testdata("measured/calibration-100mbit.toml");
    let run = scenario(&measured);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let missing = scenario("missing.toml");
    let errors = text(&missing.stderr);
    assert!(errors.contains("machine.toml:5: hosts.profile: cannot read"), "{errors}");
    std::fs::remove_dir_all(folder).unwrap();
}
