//! `rota sim cells`: circuits over cells, and the capture of them.

mod common;

use rota_wire::Tpdu;
use rota_wire::aal5::Aal5Trailer;
use rota_wire::cells::Reassembly;
use std::path::PathBuf;
use std::process::{Command, Output};

const ROTA: &str = env!("CARGO_BIN_EXE_rota");

fn cells(words: &[&str]) -> Output {
    Command::new(ROTA).args(["sim", "cells"]).args(words).output().expect("rota starts")
}

/// A capture of two circuits in a directory of this test's own.
fn captured(name: &str) -> (PathBuf, serde_json::Value) {
    let path = std::env::temp_dir().join(format!("rota-cells-{name}-{}.pcap", std::process::id()));
    let shown = path.to_str().unwrap();
    let out = cells(&["--circuits", "2", "--messages", "5", "--loss-ppm", "2000", "--pcap", shown, "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (path, serde_json::from_slice(&out.stdout).unwrap())
}

fn word(octets: &[u8]) -> usize {
    octets.iter().rev().fold(0, |sum, octet| sum << 8 | usize::from(*octet))
}

/// The kind and the octets of each record of ERF in a capture.
fn records(file: &[u8]) -> Vec<(u8, u64, &[u8])> {
    assert_eq!((word(&file[..4]), word(&file[20..24])), (0xa1b2_3c4d, 197), "nanoseconds, ERF");
    let (mut at, mut all) = (24, vec![]);
    while at < file.len() {
        let head = &file[at..at + 16];
        let [seconds, ns, kept, whole] = [0, 4, 8, 12].map(|from| word(&head[from..from + 4]));
        assert_eq!(kept, whole);
        let erf = &file[at + 16..at + 16 + kept];
        let length = usize::from(u16::from_be_bytes([erf[10], erf[11]]));
        assert_eq!((length, erf[9] & !3), (kept, 4));
        let fraction = (word(&erf[..4]) as u128 * 1_000_000_000) >> 32;
        assert!(word(&erf[4..8]) == seconds && fraction.abs_diff(ns as u128) <= 1, "both stamps agree");
        all.push((erf[8], seconds as u64 * 1_000_000_000 + ns as u64, &erf[16..]));
        at += 16 + kept;
    }
    all
}

/// TRANSPORT-R50: the cells of a capture make up the frames of it, and these are TPDUs.
#[test]
fn a_capture_reads_back_cell_by_cell() {
    let (path, said) = captured("back");
    let file = std::fs::read(&path).unwrap();
    let names: Vec<(u8, u16)> = (32..36).map(|vci| (0, vci)).collect();
    let mut reassembly = Reassembly::new(&names, 4_128);
    let (mut cells, mut frames, mut unsound, mut whole, mut last) = (0, 0, 0, None, 0);
    for (kind, at, octets) in records(&file) {
        assert!(at >= last, "in the order of time");
        last = at;
        if kind == 3 {
            assert_eq!((octets.len(), whole.take()), (52, None::<Vec<u8>>), "its frame stands behind it");
            cells += 1;
            // The check octet is not in the file.
            let mut cell = [0; 53];
            cell[..4].copy_from_slice(&octets[..4]);
            cell[5..].copy_from_slice(&octets[4..]);
            let word = u32::from_be_bytes(*octets.first_chunk().unwrap());
            let (vpi, vci) = ((word >> 20) as u8, (word >> 4) as u16);
            let (pti, clp) = ((word >> 1) as u8 & 7, word & 1 == 1);
            cell[..5].copy_from_slice(&rota_wire::atm::CellHeader { gfc: 0, vpi, vci, pti, clp }.emit());
            match reassembly.handle(&cell) {
                Ok(frame) => whole = frame.map(|frame| frame.pdu.to_vec()),
                Err(_) => unsound += 1,
            }
        } else {
            assert_eq!(kind, 4);
            frames += 1;
            assert_eq!(whole.take().as_deref(), Some(&octets[4..]));
            let (_, payload) = Aal5Trailer::parse(&octets[4..]).expect("a sound frame");
            Tpdu::parse(payload).expect("a TPDU");
        }
    }
    assert_eq!((&said["pcap"]["cells"], &said["pcap"]["frames"]), (&cells.into(), &frames.into()), "{said}");
    assert_eq!(said["frames_unsound"], unsound, "{said}");
    assert!(cells > 5 * 2 * 4 * 87 && frames > 40 && unsound > 0, "{said}");
    for circuit in said["circuits"].as_array().unwrap() {
        assert_eq!((&circuit["taken"], &circuit["finished"]), (&5.into(), &true.into()), "{said}");
    }
    std::fs::remove_file(path).unwrap();
}

/// TRANSPORT-R50: Wireshark finds each cell, and the trailer of each frame right.
#[test]
fn tshark_decodes_cells_and_checks_the_trailers_of_frames() {
    let (path, said) = captured("tshark");
    let shown = path.display().to_string();
    let home = std::env::temp_dir().join(format!("rota-tshark-{}", std::process::id()));
    let mut command = Command::new("tshark");
    command.env("XDG_CONFIG_HOME", &home).env("HOME", &home);
    command.args(["-n", "-o", "erf.aal5_type:unspec", "-r", &shown, "-V"]);
    let out = match command.output() {
        Ok(out) => out,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return common::skipped("tshark is not installed");
        }
        Err(error) => panic!("tshark: {error}"),
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout);
    let count = |words: &str| text.matches(words).count() as u64;
    let [cells, frames] = ["cells", "frames"].map(|key| said["pcap"][key].as_u64().unwrap());
    assert_eq!(count("Type: ATM (3)"), cells);
    assert_eq!(count("Type: AAL5 (4)"), frames);
    assert_eq!((count("(correct)"), count("(incorrect")), (frames, 0), "the CRC of each frame");
    assert_eq!(count("AAL5 CPI: 0x00"), frames);
    assert!(
        count("VCI: 32") > 400 && count("VCI: 34") > 400 && count("Cells: 87") >= 38,
        "{}",
        &text[..2_000]
    );
    assert_eq!(count("Malformed"), 0);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn wrong_arguments_are_told() {
    let told = |words: &[&str], sentence: &str| {
        let out = cells(words);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && stderr.contains(sentence), "{stderr}");
    };
    told(&["--tpdu", "8"], "64..=32768");
    told(&["--window", "0"], "1..=1024");
    told(&["--pcap-cells", "5"], "--pcap <FILE>");
    told(&["--pcap", "/nowhere/at/all"], "cannot write /nowhere/at/all");
}
