//! Fuzz targets as plain functions: any octets as what a neighbour sends, and as a neighbours file.

use super::frame::{Decoder, Frame, MESSAGE_OCTETS_MAX};
use super::identity::PublicKey;
use super::neighbours::{NEIGHBOURS_MAX, parse};
use rota_contract::NodeId;

fn decoded(data: &[u8], step: usize) -> (Vec<Frame>, bool) {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for part in data.chunks(step.max(1)) {
        decoder.take(part);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

/// Any octets inside the TLS stream of a link. They come out the same however they are cut, and the frames
/// written again are the octets that they were read from.
pub fn fuzz_link_frames(data: &[u8]) {
    let (frames, is_wrong) = decoded(data, data.len());
    let step = data.first().map_or(1, |octet| usize::from(octet % 16) + 1);
    assert_eq!(decoded(data, step), (frames.clone(), is_wrong));
    let again: Vec<u8> = frames.iter().flat_map(Frame::octets).collect();
    assert!(data.starts_with(&again));
    let is_long =
        |frame: &Frame| matches!(frame, Frame::Message(octets) if octets.len() > MESSAGE_OCTETS_MAX);
    assert!(!frames.iter().any(is_long));
}

/// Any octets as a neighbours file. One that is read names no node, key or address twice, and not its own
/// node; an error names a line of the file.
pub fn fuzz_neighbours(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let own = (NodeId(1), "11".repeat(32).parse::<PublicKey>().unwrap_or_else(|_| unreachable!()));
    match parse(&text, own) {
        Ok(all) => {
            assert!(all.len() <= NEIGHBOURS_MAX);
            assert!(all.windows(2).all(|pair| pair[0].node < pair[1].node));
            for (at, one) in all.iter().enumerate() {
                assert!((one.node, one.key) != own && one.address.port() != 0);
                assert!(all[..at].iter().all(|other| other.key != one.key && other.address != one.address));
            }
        }
        Err((line, sentence)) => {
            assert!((1..=text.lines().count() + 1).contains(&line) && !sentence.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A committed corpus, each file also cut and with one octet changed.
    fn replay(name: &str, target: fn(&[u8])) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let files: Vec<_> = std::fs::read_dir(&directory).expect("a corpus").flatten().collect();
        assert!(!files.is_empty());
        for file in files {
            let data = std::fs::read(file.path()).expect("a file");
            for cut in 0..=data.len().min(2_000) {
                target(&data[..cut]);
            }
            for at in 0..data.len().min(2_000) {
                let mut changed = data.clone();
                changed[at] ^= 0x15;
                target(&changed);
            }
        }
    }

    #[test]
    fn the_corpus_of_frames_replays() {
        replay("link_frames", fuzz_link_frames);
    }

    #[test]
    fn the_corpus_of_neighbours_replays() {
        replay("neighbours", fuzz_neighbours);
    }
}
