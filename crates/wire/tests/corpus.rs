//! Replays the committed fuzz corpora on stable; a crash that a fuzzer finds becomes a file there.

use rota_wire::fuzz::{
    fuzz_aal5, fuzz_bodies, fuzz_cells, fuzz_circuit, fuzz_frame, fuzz_link_state, fuzz_llc, fuzz_rcap,
    fuzz_rcap_terms, fuzz_reserved, fuzz_rtip, fuzz_tpdu,
};
use std::path::Path;

/// Runs every file of `fuzz/corpus/name`, each also cut at every length, and says how many there were.
fn replay(name: &str, run: fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let data = std::fs::read(entry.expect("a readable folder").path()).expect("a readable file");
        for length in 0..=data.len() {
            run(&data[..length]);
        }
        files += 1;
    }
    files
}

#[test]
fn the_corpus_of_frames_replays() {
    assert!(replay("frame", fuzz_frame) >= 4);
}

#[test]
fn the_corpus_of_bodies_replays() {
    assert!(replay("bodies", fuzz_bodies) >= 10);
}

#[test]
fn the_corpus_of_circuit_messages_replays() {
    assert!(replay("circuit", fuzz_circuit) >= 5);
}

#[test]
fn the_corpus_of_aal5_replays() {
    assert!(replay("aal5", fuzz_aal5) >= 5);
}

#[test]
fn the_corpus_of_cells_replays() {
    assert!(replay("cells", fuzz_cells) >= 7);
}

#[test]
fn the_corpus_of_tpdus_replays() {
    assert!(replay("tpdu", fuzz_tpdu) >= 12);
}

#[test]
fn the_corpus_of_link_statements_replays() {
    assert!(replay("link_state", fuzz_link_state) >= 4);
}

#[test]
fn the_corpus_of_802_2_frames_replays() {
    assert!(replay("llc", fuzz_llc) >= 8);
}

#[test]
fn the_corpus_of_messages_on_reserved_channels_replays() {
    assert!(replay("reserved", fuzz_reserved) >= 4);
}

#[test]
fn the_corpus_of_rtip_packets_replays() {
    assert!(replay("rtip", fuzz_rtip) >= 9);
}

#[test]
fn the_corpus_of_rcap_messages_replays() {
    assert!(replay("rcap", fuzz_rcap) >= 20);
    assert!(replay("rcap_terms", fuzz_rcap_terms) >= 8);
}
