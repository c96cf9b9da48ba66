use super::*;
use rota_lab::LabSpec;
use rota_units::{Octets, Span};

const TWO: &str = r#"
[[segment]]
name = "left"

[[segment]]
name = "right"
rate = "1gbit"
mtu = 9000
trt = "10ms"

[[segment]]
name = "cable"
medium = "link"
port-queue = "20kB"

[[station]]
name = "a"
eth0 = "left"

[[station]]
name = "gw"
eth0 = "left"
eth1 = "right"
eth2 = "cable"

[[station]]
name = "b"
eth0 = "right"
eth1 = "cable"
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn refused(text: &str) -> (usize, String) {
    parse(text, Path::new("")).expect_err(text)
}

/// The sentence for the file with `old` replaced by `new` once, and the line it names, as that line reads.
#[track_caller]
fn assert_refused(old: &str, new: &str, line: &str, sentence: &str) {
    assert!(TWO.contains(old), "{old}");
    let text = TWO.replacen(old, new, 1);
    let (at, said) = refused(&text);
    assert_eq!((text.lines().nth(at - 1).unwrap(), said.as_str()), (line, sentence));
}

#[test]
fn a_file_says_what_it_says() {
    let Topology { segments, stations } = parse(TWO, Path::new("")).unwrap();
    let brief = |s: &Segment| (s.name.clone(), s.medium.to_string(), s.rate.as_bps(), s.port_queue, s.mtu);
    let all: Vec<_> = segments.iter().map(brief).collect();
    assert_eq!(all[0], ("left".into(), "switch".into(), 10_000_000, Octets::new(150_000), 1_500));
    assert_eq!(all[1], ("right".into(), "switch".into(), 1_000_000_000, Octets::new(1_000_000), 9_000));
    assert_eq!(all[2], ("cable".into(), "link".into(), 10_000_000, Octets::new(20_000), 1_500));
    assert_eq!((segments[0].trt, segments[1].trt), (None, Some(Span::from_millis(10))));
    let ports: Vec<_> = stations.into_iter().map(|station| (station.name, station.ports)).collect();
    assert_eq!(ports, [("a".into(), vec![0]), ("gw".into(), vec![0, 1, 2]), ("b".into(), vec![1, 2])]);
}

#[test]
fn the_default_lab_is_the_file_of_that_name() {
    let file = read(&root().join("topologies/default.toml")).map_err(|failure| failure.sentence).unwrap();
    assert_eq!(file, LabSpec::new("lab", 5, BitRate::from_mbit(10)).topology);
}

#[test]
fn all_example_files_are_topologies() {
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("topologies")).unwrap() {
        read(&entry.unwrap().path()).map_err(|failure| failure.sentence).unwrap();
        files += 1;
    }
    assert!(files >= 3);
}

/// Issue 16, "Bad input".
#[test]
fn each_mistake_has_its_line_and_sentence() {
    // One wire on two ports: a cable has two ends.
    let third = "eth0 = \"left\"\n\n[[station]]\nname = \"gw\"";
    let (old, new) = ("name = \"b\"\neth0 = \"right\"", "name = \"b\"\neth0 = \"cable\"\neth2 = \"right\"");
    assert_refused(old, new, "eth1 = \"cable\"", "station.eth1: is a loop: eth0 is on 'cable' too");
    let sentence = "station.eth1: the link 'cable' has two ends, and a and gw have them";
    assert_refused(third, &third.replacen('\n', "\neth1 = \"cable\"\n", 1), "eth1 = \"cable\"", sentence);
    let sentence = "segment.name: a link joins two stations, and 'cable' has 1";
    assert_refused("eth1 = \"cable\"", "", "name = \"cable\"", sentence);
    // An interface twice.
    assert_refused("eth1 = \"right\"", "eth0 = \"right\"", "eth0 = \"right\"", "eth0: duplicate key");
    // Loops.
    let sentence = "station.eth1: is a loop: eth0 is on 'left' too";
    assert_refused("eth1 = \"right\"", "eth1 = \"left\"", "eth1 = \"left\"", sentence);
    // An unknown medium or segment.
    let sentence = "medium: unknown variant `ring`, expected one of `switch`, `hub`, `link`, `ip`";
    assert_refused("\"link\"", "\"ring\"", "medium = \"ring\"", sentence);
    let sentence = "station.eth1: there is no segment 'up'; there are left, right, cable";
    assert_refused("eth1 = \"right\"", "eth1 = \"up\"", "eth1 = \"up\"", sentence);
    // Rates.
    assert_refused(
        "\"1gbit\"",
        "\"0mbit\"",
        "rate = \"0mbit\"",
        "rate: '0mbit' is a rate of zero; write it like 10mbit, 1.5mbit or 1gbit",
    );
    let sentence = "segment.rate: no ring runs on a link of 10 kbit/s; 1 Mbit/s to 800 Gbit/s can";
    assert_refused("\"1gbit\"", "\"10kbit\"", "rate = \"10kbit\"", sentence);
    // Names twice, and none.
    assert_refused("\"right\"", "\"left\"", "name = \"left\"", "segment.name: 'left' has been given before");
    assert_refused("name = \"b\"", "name = \"a\"", "name = \"a\"", "station.name: 'a' has been given before");
    let sentence = "station.name: 'localhost' is each station's name of itself; choose another one";
    assert_refused("name = \"b\"", "name = \"localhost\"", "name = \"localhost\"", sentence);
    assert_refused("name = \"b\"", "", "[[station]]", "station.name: is missing");
    assert_refused("name = \"left\"", "", "[[segment]]", "name: is missing");
    let sentence = "station.name: 'b c' is no name; use 1 to 32 letters, digits and '-'";
    assert_refused("name = \"b\"", "name = \"b c\"", "name = \"b c\"", sentence);
}

#[test]
fn more_ports_than_a_node_has_are_refused() {
    let mut text = String::new();
    (0..9).for_each(|k| text += &format!("[[segment]]\nname = \"s{k}\"\n"));
    text += "[[station]]\nname = \"n1\"\n";
    (0..9).for_each(|k| text += &format!("eth{k} = \"s{k}\"\n"));
    let sentence = "station.eth8: a station has at most 8 ports";
    assert_eq!(refused(&text), (text.lines().count(), sentence.to_owned()));
}

#[test]
fn fields_have_their_ranges() {
    let sentence = "segment.mtu: no node serves an MTU of 100; 576 to 9000 are served";
    assert_refused("9000", "100", "mtu = 100", sentence);
    let sentence = "segment.port-queue: a port queue of 1000 octets holds no full frame or too many: use \
                    1600octets to 4GB";
    assert_refused("\"20kB\"", "\"1kB\"", "port-queue = \"1kB\"", sentence);
    let text = TWO.replace("\"10ms\"", "\"1us\"");
    assert!(refused(&text).1.starts_with("segment.trt: "), "{}", refused(&text).1);
    let sentence = "segment.seed: only a medium \"hub\" has one";
    assert_refused("medium = \"link\"", "seed = 3", "seed = 3", sentence);
    let sentence = "segment.mtu: a hub has an MTU of 1500 only";
    assert_refused("mtu = 9000", "medium = \"hub\"\nmtu = 9000", "mtu = 9000", sentence);
    let sentence = "station.eth3: ports are numbered from eth0 without a gap, and eth1 is missing";
    assert_refused("eth1 = \"right\"\neth2 =", "eth3 =", "eth3 = \"cable\"", sentence);
    let sentence = "station.wlan0: is no field of a station; name, and eth0 to eth7 are";
    assert_refused("eth1 = \"right\"", "wlan0 = \"right\"", "wlan0 = \"right\"", sentence);
    let sentence = "station.eth0: 'a' has no port; write eth0 = \"SEGMENT\"";
    assert_refused("eth0 = \"left\"\n", "", "[[station]]", sentence);
    let alone = format!("{TWO}[[segment]]\nname = \"alone\"\n");
    assert_eq!(refused(&alone).1, "segment.name: a segment joins stations, and 'alone' has 0");
    assert_eq!(refused("").1, "segment: a lab has 1 to 64 segments, not 0");
    assert_eq!(refused("[[segment]]\nname = \"a\"\n").1, "station: a lab has 1 to 200 stations, not 0");
}

#[test]
fn several_gateways_between_two_segments_are_legal() {
    let second = "[[station]]\nname = \"gw2\"\neth0 = \"left\"\neth1 = \"right\"\n";
    assert!(parse(&format!("{TWO}{second}"), Path::new("")).is_ok());
}

#[test]
fn the_page_of_topologies_names_every_field() {
    let page = std::fs::read_to_string(root().join("docs/topology.md")).expect("docs/topology.md");
    let source = include_str!("../topology.rs");
    let table = source.split_once("struct SegmentTable {").and_then(|(_, rest)| rest.split_once('}'));
    let fields = table.expect("the table").0.lines().filter_map(|line| line.trim().split_once(": "));
    let names: Vec<String> = fields.map(|(field, _)| field.replace('_', "-")).collect();
    assert_eq!(names.len(), 11);
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/topology.md lacks `{name}`");
    }
}

#[test]
fn the_corpus_of_topologies_replays() {
    crate::scenario::tests::replay("fuzz/corpus/topology", fuzz_topology);
}

#[test]
fn segments_of_links_and_tokens_have_partitions() {
    let part = |segment: &str, name: &str, share: &str| {
        format!("\n[[partition]]\nname = \"{name}\"\nsegment = \"{segment}\"\nshare = \"{share}\"\n")
    };
    let two = [part("cable", "studio", "40%"), part("cable", "news", "20%"), part("left", "studio", "10%")];
    let topology = parse(&format!("{TWO}{}", two.concat()), Path::new("")).unwrap();
    let shares = topology.segments[2].partitions.shares();
    assert_eq!([0, 1, 2].map(|number| shares.percent(number)), [40, 40, 20]);
    assert_eq!(topology.segments[0].partitions.shares().percent(1), 10);
    assert!(topology.segments[1].partitions.is_none());
    for (table, sentence) in [
        (part("nowhere", "studio", "40%"), "there is no segment 'nowhere'"),
        (part("cable", "rest", "40%"), "'rest' is what no partition names"),
        (part("cable", "studio", "2.5%"), "write whole percent"),
        (part("cable", "studio", "100%"), "leave nothing for the rest"),
        (part("cable", "a", "1%").repeat(2), "'a' names two partitions of 'cable'"),
    ] {
        let (line, said) = refused(&format!("{TWO}{table}"));
        assert!(said.contains(sentence) && line > TWO.lines().count(), "{line}: {said}");
    }
}

#[test]
fn a_link_that_serves_levels_states_their_bounds() {
    let cable = "medium = \"link\"\n";
    let with = |more: &str| TWO.replacen(cable, &format!("{cable}{more}\n"), 1);
    let text = with("discipline = \"rcsp\"\nlevels = [\"3ms\", \"6ms\"]");
    let topology = parse(&text, Path::new("")).unwrap();
    assert_eq!(topology.segments[2].discipline.levels.stated(), [3, 6].map(Span::from_millis));
    let (_, said) = refused(&with("levels = [\"3ms\"]"));
    assert!(said.contains("only rcsp has levels"), "{said}");
    let (_, said) = refused(&with("discipline = \"rcsp\"\nlevels = [\"6ms\", \"3ms\"]"));
    assert!(said.contains("each longer than the one before"), "{said}");
}
