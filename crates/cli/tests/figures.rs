//! `rota sim figure`: files that stand alone, printed numbers marked, nothing measured unless it is given.

mod common;

use std::path::PathBuf;
use std::process::{Command, Output};

const ROTA: &str = env!("CARGO_BIN_EXE_rota");

/// A directory of this test's own.
fn fresh(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("rota-figures-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

fn figure(what: &str, out: &PathBuf, more: &[&str]) -> Output {
    Command::new(ROTA).args(["sim", "figure", what, "--json", "--out"]).arg(out).args(more).output().unwrap()
}

#[test]
fn a_figure_is_an_svg_and_a_csv_that_need_nothing_else() {
    let dir = fresh("alone");
    for what in [
        "fig6",
        "fig9",
        "beyond-stations",
        "beyond-worst",
        "tenet-fig8",
        "tenet-fig9",
        "tenet-fig10",
        "tenet-fig14",
        "tenet-fig15",
        "tenet-table5",
        "atm-fig5",
        "atm-fig9",
        "atm-fig10",
        "endhost-fig3",
        "endhost-fig4",
        "endhost-copyout",
    ] {
        let run = figure(what, &dir, &[]);
        assert!(run.status.success(), "{what}: {}", String::from_utf8_lossy(&run.stderr));
        let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let svg = std::fs::read_to_string(json["figures"][0]["svg"].as_str().unwrap()).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        for foreign in ["href", "http://", "https://", "@import", "NaN"] {
            assert!(!svg.replace("http://www.w3.org/2000/svg", "").contains(foreign), "{what}: {foreign}");
        }
        let csv = std::fs::read_to_string(json["figures"][0]["csv"].as_str().unwrap()).unwrap();
        assert!(csv.contains("\npanel,series,x_label,x,y_label,y\n") && csv.lines().count() > 10, "{csv}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn printed_numbers_are_marked() {
    let dir = fresh("printed");
    assert!(figure("rether-fig9", &dir, &[]).status.success());
    let csv = std::fs::read_to_string(dir.join("rether-fig9.csv")).unwrap();
    assert!(csv.contains("printed: 40 at most") && csv.contains("Dividing only the wire gives 21"), "{csv}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn nothing_is_shown_as_measured_that_was_not_given() {
    let dir = fresh("measured");
    assert!(figure("table2", &dir, &[]).status.success());
    let svg = std::fs::read_to_string(dir.join("rether-table2.svg")).unwrap();
    assert!(svg.contains("not measured") && !svg.contains("virtual wire"));
    std::fs::write(
        dir.join("hop.json"),
        r#"{"nodes":5,"shaped":false,"hop_p50_ns":10000,
            "split":{"receive":1000,"handle":500,"build":500,"transmit":4000,"rest":4000}}"#,
    )
    .unwrap();
    let measured = dir.to_str().unwrap().to_owned();
    assert!(figure("table2", &dir, &["--measured", &measured]).status.success());
    let svg = std::fs::read_to_string(dir.join("rether-table2.svg")).unwrap();
    assert!(svg.contains("measured on a virtual wire") && svg.contains("25 times shorter"), "{svg}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// TENET-5.1.1-1, TENET-5.1.1-2, TENET-5.2.4-1: what is computed from printed numbers and what was measured
/// are told apart.
#[test]
fn tenets_figures_have_the_printed_numbers_and_what_was_measured_beside_them() {
    let dir = fresh("tenet");
    let csv = |what: &str, more: &[&str]| {
        assert!(figure(what, &dir, more).status.success());
        std::fs::read_to_string(dir.join(format!("{what}.csv"))).unwrap()
    };
    for (what, printed) in [
        ("tenet-fig8", "5495 packets a second at most"),
        ("tenet-fig9", "printed: 114,octets of a packet"),
        ("tenet-table5", "add up to 69.68 ms, printed as about 70"),
    ] {
        let csv = csv(what, &[]);
        assert!(csv.contains(printed) && csv.contains("Ours: not measured"), "{csv}");
        assert!(!csv.contains("measured:") && !csv.contains("virtual wire has"), "{csv}");
    }
    std::fs::write(
        dir.join("tenet.json"),
        r#"{"points":[{"octets":1400,"channel":{"bps":500000000},"channel_asked_bps":560000000,
            "raw_ip":{"bps":700000000},"udp":{"bps":800000000},
            "cost_ns":{"source":9000,"source_kernel":5000,"gateway":7000,"destination":6000}}]}"#,
    )
    .unwrap();
    std::fs::write(
        dir.join("setup.json"),
        r#"{"wire":"link","gateways":1,"open":{"p50_ns":1500000},"parts":{"setups":9,"stations":[
            {"name":"n1","forward_ns":400000,"reverse_ns":300000,"link_ns":20000},
            {"name":"g1","forward_ns":200000,"reverse_ns":100000,"link_ns":30000},
            {"name":"far","forward_ns":250000,"reverse_ns":null,"link_ns":null}]}}"#,
    )
    .unwrap();
    let measured = ["--measured", dir.to_str().unwrap()];
    let csv8 = csv("tenet-fig8", &measured);
    assert!(csv8.contains("measured: raw IP,octets of a message,1400,\"payload, Mbit/s\",700"), "{csv8}");
    let csv9 = csv("tenet-fig9", &measured);
    assert!(csv9.contains("a message of 1400 octets: 4.0 us of the node's own code"), "{csv9}");
    let table = csv("tenet-table5", &measured);
    assert!(
        table.contains("1.50 ms in the median for the whole, of which 100 us are on the links"),
        "{table}"
    );
    assert!(table.contains("link behind it,station,g1,us (not ms),30"), "{table}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// TENET-5.2.1-2, TENET-5.2.1-3: the printed numbers of the bottleneck stand beside the simulated ones.
#[test]
fn tenets_bottleneck_has_the_printed_numbers_beside_the_simulated_ones() {
    let dir = fresh("bottleneck");
    for (what, printed) in [("tenet-fig12", ["5", "0.964"]), ("tenet-fig13", ["70", "below 70"])] {
        let run = figure(what, &dir, &[]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let beside = json["figures"][0]["beside"].as_array().unwrap();
        for (row, printed) in beside.iter().zip(printed) {
            assert_eq!(row["paper"], printed, "{json}");
            assert!(row["here"].as_str().unwrap().parse::<f64>().unwrap() > 0.0, "{json}");
        }
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn wrong_measurements_and_wrong_names_are_told() {
    let dir = fresh("wrong");
    std::fs::create_dir_all(&dir).unwrap();
    let refused = |what: &str, more: &[&str], words: &str| {
        let run = figure(what, &dir, more);
        let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    };
    refused("fig12", &[], "fig12");
    refused("table2", &["--measured", "/nowhere/at/all"], "is no directory");
    refused("fig7", &["--measure"], "--measured");
    refused("fig7", &["--measure", "--measured", ".", "--window", "1ms"], "1 ms is no time to measure");
    let measured = dir.to_str().unwrap();
    std::fs::write(dir.join("hop.json"), "{\"nodes\":").unwrap();
    refused("table2", &["--measured", measured], "hop.json");
    std::fs::remove_file(dir.join("hop.json")).unwrap();
    let other = r#"{"label":"a cable","stations":5,"link_bps":1,"hop_p50_ns":1,"points":[]}"#;
    std::fs::write(dir.join("access.json"), other).unwrap();
    refused("table2", &["--measured", measured], "a cable");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn figure_7_is_measured_in_a_lab_and_stands_beside_the_simulation() {
    let dir = fresh("measure");
    let measured = dir.to_str().unwrap().to_owned();
    let run = figure("fig7", &dir, &["--measure", "--measured", &measured, "--window", "300ms"]);
    let errors = String::from_utf8_lossy(&run.stderr);
    if common::labs_refused(&errors) {
        return;
    }
    assert!(run.status.success(), "{errors}");
    let access = std::fs::read_to_string(dir.join("access.json")).unwrap();
    let access: serde_json::Value = serde_json::from_str(&access).unwrap();
    let points = access["points"].as_array().unwrap();
    assert_eq!((points.len(), &access["label"]), (5, &"virtual wire".into()), "{access}");
    // Nothing here says how fast this machine is.
    assert!(points.iter().all(|point| point["mean_gap_ns"].as_u64().unwrap() > 0), "{access}");
    let csv = std::fs::read_to_string(dir.join("rether-fig7.csv")).unwrap();
    let of = |series: &str| csv.lines().filter(|line| line.contains(series)).count();
    assert_eq!(of("ours: measured in a lab, virtual wire"), 5, "{csv}");
    assert_eq!(of("ours: simulated with the hop of that lab"), 5, "{csv}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// SHIPNET-6.1-1 to SHIPNET-6.5-1: the printed points of the PC/AT stand beside ours.
#[test]
fn the_figures_of_1988_are_drawn_beside_their_printed_points() {
    let dir = std::env::temp_dir().join(format!("rota-shipnet-{}", std::process::id()));
    for n in 2..=8 {
        assert!(figure(&format!("shipnet-fig{n}"), &dir, &[]).status.success());
        let csv = std::fs::read_to_string(dir.join(format!("shipnet-fig{n}.csv"))).unwrap();
        let of = |what: &str| csv.lines().filter(|line| line.contains(&format!("PC/AT{what}"))).count();
        let kind = if matches!(n, 6 | 7) { " broadcast" } else { "" };
        assert!(of(&format!("{kind}, simulated")) >= 5 && of(&format!("{kind}, printed")) >= 5, "{n}: {csv}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// TRANSPORT-R78, TRANSPORT-R80: the printed numbers stand beside the model's, and what is simulated is told
/// from what is computed.
#[test]
fn the_figures_of_the_native_mode_transport_have_its_printed_numbers() {
    let dir = fresh("atm");
    for (what, printed) in [
        ("atm-fig5", "printed: 720"),
        ("atm-fig6", "\"printed: 47 at most, reliable\""),
        ("atm-fig7", "printed: falls above about 50"),
        ("atm-fig8", "printed: around 40"),
        ("atm-fig10", "printed: 50 a Kbyte"),
        ("atm-smart", "computed: go-back-N"),
    ] {
        assert!(figure(what, &dir, &[]).status.success(), "{what}");
        let csv = std::fs::read_to_string(dir.join(format!("{what}.csv"))).unwrap();
        assert!(csv.contains(printed) && csv.contains("simulated: "), "{csv}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// ENDHOST-4.1-4, ENDHOST-4.1-8, ENDHOST-R49: the printed numbers stand beside the model's.
#[test]
fn the_figures_of_the_end_host_have_its_printed_numbers() {
    let dir = fresh("endhost");
    for (what, printed) in [
        ("endhost-fig3", [("20", "20.0"), ("1", "1.0")]),
        ("endhost-fig4", [("15", "15.0"), ("22", "22.0")]),
        ("endhost-copyout", [("22", "22.2"), ("0.143", "0.143")]),
    ] {
        let run = figure(what, &dir, &[]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let beside = json["figures"][0]["beside"].as_array().unwrap();
        for (paper, here) in printed {
            assert!(beside.iter().any(|row| row["paper"] == paper && row["here"] == here), "{json}");
        }
        let csv = std::fs::read_to_string(dir.join(format!("{what}.csv"))).unwrap();
        assert!(csv.contains("printed: ") && csv.contains("simulated: "), "{csv}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
