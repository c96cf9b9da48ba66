//! Replays the committed fuzz corpus on stable; a crash that a fuzzer finds becomes a file there.

use rota_units::fuzz::fuzz_quantities;
use std::path::Path;

#[test]
fn the_corpus_of_quantities_replays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/quantities");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let data = std::fs::read(entry.expect("a readable folder").path()).expect("a readable file");
        (0..=data.len()).for_each(|length| fuzz_quantities(&data[..length]));
        files += 1;
    }
    assert!(files >= 10);
}
