//! `dissector/rota.lua`: its list of kinds is the wire's, and tshark reads with it a frame of each kind and
//! the committed captures of a lab.

mod common;

use rota_wire::{DEFAULT_ETHERTYPE, Generation, Key, Kind, LinkHeader, MacAddr, PayloadKind, emit_frame};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn dissector() -> String {
    std::fs::read_to_string(root("dissector/rota.lua")).unwrap()
}

/// What tshark prints of a capture; nothing, said aloud, where it is not installed.
fn tshark(capture: &Path, more: &[&str]) -> Option<String> {
    let script = format!("lua_script:{}", root("dissector/rota.lua").display());
    let capture = capture.display().to_string();
    // No settings of whoever runs this, and no second Lua script of theirs.
    let home = std::env::temp_dir().join(format!("rota-tshark-{}", std::process::id()));
    let command = Command::new("tshark")
        .env("XDG_CONFIG_HOME", &home)
        .env("HOME", &home)
        .args(["-n", "-X", &script, "-r", &capture])
        .args(more)
        .output();
    match command {
        Ok(out) => {
            let errors = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success() && !errors.contains("Lua"), "{errors}");
            Some(String::from_utf8(out.stdout).unwrap())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            common::skipped("tshark is not installed");
            None
        }
        Err(error) => panic!("tshark: {error}"),
    }
}

#[test]
fn the_dissector_knows_exactly_the_kinds_of_the_wire() {
    let text = dissector();
    let (_, rest) = text.split_once("local KINDS = {\n").unwrap();
    let (list, _) = rest.split_once("\n}").unwrap();
    let listed: Vec<String> = list.lines().map(|line| line.trim().to_owned()).collect();
    let known = (1..=u8::MAX).map(|code| (code, Kind::from_code(code)));
    let known = known.filter(|(_, kind)| !matches!(kind, Kind::Unknown(_)));
    let known: Vec<String> = known.map(|(code, kind)| format!("[{code}] = \"{kind:?}\",")).collect();
    assert_eq!(listed, known);
    for code in 1..=known.len() {
        assert!(text.contains(&format!("\nBODIES[{code}] =")), "kind {code} has no reader");
    }
}

/// A capture of whole frames, with nothing beside them.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut file = block(0x0a0d_0d0a, &section);
    file.extend(block(1, &[1, 0, 0, 0, 0, 0, 0, 0]));
    for frame in frames {
        let length = (frame.len() as u32).to_le_bytes();
        let mut body = [&[0; 12][..], &length, &length, frame].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, &body));
    }
    file
}

#[test]
fn tshark_reads_a_frame_of_each_kind_and_says_where_one_is_cut() {
    let text = std::fs::read_to_string(root("crates/wire/tests/frames.txt")).unwrap();
    let octets = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let samples = text.lines().filter_map(|line| line.split_once(' '));
    let known = |name: &str| (1..=u8::MAX).any(|code| format!("{:?}", Kind::from_code(code)) == name);
    let samples: Vec<(String, Vec<u8>)> =
        samples.filter(|(name, _)| known(name)).map(|(name, hex)| (name.to_owned(), octets(hex))).collect();
    assert!(samples.len() >= 15, "frames.txt has one of each kind");
    let whole: Vec<Vec<u8>> = samples.iter().map(|(_, frame)| frame.clone()).collect();
    // Every frame cut everywhere: no error of Lua, and never taken for whole. The octets behind the tag are
    // padding, and are not missed.
    let octets = |frame: &[u8]| 58 + usize::from(u16::from_be_bytes([frame[18], frame[19]]));
    let cut: Vec<Vec<u8>> =
        whole.iter().flat_map(|frame| (15..octets(frame)).map(|end| frame[..end].to_vec())).collect();
    let file = std::env::temp_dir().join(format!("rota-frames-{}.pcapng", std::process::id()));
    std::fs::write(&file, capture(&whole)).unwrap();
    let names = ["rota.kind", "rota.tag", "_ws.expert", "rota.rest", "rota.header_tag", "rota.data_tag"];
    let mut fields = vec!["-T", "fields"];
    fields.extend(names.iter().flat_map(|name| ["-e", name]));
    let Some(told) = tshark(&file, &fields) else { return };
    for ((name, frame), line) in samples.iter().zip(told.lines()) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields[0], frame[15].to_string(), "{name}");
        assert_eq!(fields[1].replace(':', "").len(), 32, "{name}: {line}");
        assert_eq!((fields[2], fields[3]), ("", ""), "{name}: nothing is left over or wrong: {line}");
        let both = if name == "Data" { fields[1].to_owned() } else { String::new() };
        assert_eq!([fields[4], fields[5]].concat(), both, "{name}: data has two tags: {line}");
    }
    assert_eq!(told.lines().count(), samples.len());
    std::fs::write(&file, capture(&cut)).unwrap();
    let told = tshark(&file, &["-T", "fields", "-e", "rota.tag", "-e", "_ws.expert"]).unwrap();
    let _ = std::fs::remove_file(&file);
    assert_eq!(told.lines().count(), cut.len());
    for line in told.lines() {
        assert!(line.starts_with('\t') && line.len() > 1, "a frame that is cut is said to be: {line}");
    }
}

/// TENET-3.2-6: of a channel across segments, with the header of Figure 2 in front of the unit's.
#[test]
fn tshark_reads_the_packet_of_a_channel_across_segments() {
    let body = std::fs::read(root("fuzz/corpus/rtip/fragment")).unwrap();
    let (generation, seq) = (Generation { counter: 5, station: 1 }, 9);
    let (kind, payload) = (Kind::Data, PayloadKind::Rtip);
    let header =
        LinkHeader { kind, key_epoch: 1, payload, source: 3, segment: 1, incarnation: 77, generation, seq };
    let mut frame = vec![0; 200];
    frame[42..42 + body.len()].copy_from_slice(&body);
    let (to, from, key) = (MacAddr([2; 6]), MacAddr([4; 6]), Key::new([1; 32]));
    let length = emit_frame(&mut frame, to, from, DEFAULT_ETHERTYPE, &header, body.len(), &key);
    frame.truncate(length);
    let file = std::env::temp_dir().join(format!("rota-packet-{}.pcapng", std::process::id()));
    std::fs::write(&file, capture(&[frame])).unwrap();
    let names = ["local_id", "packet", "ahead", "packet_octets", "label", "unit", "unit_octets"];
    let fields = names.map(|name| ["-e".to_owned(), format!("rota.{name}")]).concat();
    let more: Vec<&str> =
        ["-T", "fields", "-e", "_ws.expert"].into_iter().chain(fields.iter().map(|f| &**f)).collect();
    let told = tshark(&file, &more);
    let _ = std::fs::remove_file(&file);
    let Some(told) = told else { return };
    assert_eq!(
        told.trim_end_matches('\n'),
        "\t7\t9\t3\t76\t0\t3\t1000",
        "nothing is wrong, and each field its own"
    );
}

#[test]
fn tshark_reads_the_committed_captures_as_before() {
    for name in ["stream", "lost-station"] {
        let file = root(&format!("testdata/captures/{name}.pcapng"));
        let fields =
            ["frame.len", "frame.cap_len", "rota.source", "_ws.col.Info", "rota.channel", "rota.tht"];
        let fields = fields.iter().flat_map(|field| ["-e", field]);
        let words: Vec<&str> = ["-T", "fields"].into_iter().chain(fields).collect();
        let Some(told) = tshark(&file, &words) else { return };
        let golden = file.with_extension("txt");
        if std::env::var_os("ROTA_BLESS").is_some() {
            std::fs::write(&golden, &told).unwrap();
        }
        let wanted = std::fs::read_to_string(&golden).unwrap();
        assert_eq!(told, wanted, "{name}: where this is meant, run it once with ROTA_BLESS=1");
        let wrong = tshark(&file, &["-Y", "rota.malformed || _ws.malformed"]).unwrap();
        assert_eq!(wrong, "", "{name}");
        let comments = tshark(&file, &["-T", "fields", "-e", "frame.comment"]).unwrap();
        assert!(
            comments.lines().all(|line| line.contains("verdict: ")),
            "{name}: every frame has its comment"
        );
    }
}
