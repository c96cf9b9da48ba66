//! Where `unsafe` may stand, and that each use says why it is sound.

use crate::source::Source;
use crate::tree::{Report, Tree, room};

/// The only folders (or files of that name) that may hold `unsafe`.
const DOORS: &[&str] = &["crates/driver/src/sys", "crates/shm/src/raw", "bindings"];
/// Rooms that have a door, and so cannot forbid `unsafe` as a whole.
const ROOMS_WITH_DOOR: &[&str] = &["driver", "shm"];

/// Checks every `unsafe` and every crate root.
pub fn check(tree: &Tree, report: &mut Report) {
    for (path, source) in &tree.rust {
        let allowed =
            DOORS.iter().any(|door| path == &format!("{door}.rs") || path.starts_with(&format!("{door}/")));
        for at in source.words("unsafe") {
            let line = source.line_at(at);
            if !allowed {
                let sentence = format!("unsafe may stand only in {}", DOORS.join(", "));
                report.violation(path, line, sentence);
            } else if !is_justified(source, line) {
                report.violation(path, line, "unsafe without a `// SAFETY:` sentence right above it");
            }
        }
        if is_crate_root(path)
            && !room(path).is_some_and(|name| ROOMS_WITH_DOOR.contains(&name))
            && !source.code.contains("#![forbid(unsafe_code)]")
        {
            report.violation(path, 0, "the crate root lacks #![forbid(unsafe_code)]");
        }
    }
}

fn is_crate_root(path: &str) -> bool {
    let file = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map(|(_, file)| file);
    matches!(file.or_else(|| path.strip_prefix("xtask/")), Some("src/lib.rs" | "src/main.rs"))
}

/// Whether the word SAFETY stands in this line or in the comment right above the statement it belongs to.
fn is_justified(source: &Source, line: usize) -> bool {
    let says_why = |line: usize| {
        let text = source.text_line(line);
        text.contains("SAFETY:") || text.trim_start().starts_with("/// # Safety")
    };
    let mut above = line;
    loop {
        if says_why(above) {
            return true;
        }
        above -= 1;
        if above == 0 {
            return false;
        }
        // A statement may begin lines before its `unsafe`; a finished one ends the search.
        let code = source.code_line(above).trim_end();
        let is_part = source.is_comment_or_attribute(above)
            || (!code.trim().is_empty() && !code.ends_with([';', '{', '}']));
        if !is_part {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        Report::sentences(check, &Tree::planted(&[(path, text)]))
    }

    #[test]
    fn unsafe_outside_its_doors_is_refused() {
        let planted = "// SAFETY: planted\nfn f() { unsafe { g() } }";
        for path in ["crates/proto/src/node.rs", "crates/driver/src/device.rs", "crates/shm/tests/raw.rs"] {
            assert_eq!(faults(path, planted).len(), 1, "{path}");
        }
        assert_eq!(faults("crates/driver/src/sys/bpf.rs", planted), [""; 0]);
        assert_eq!(faults("crates/shm/src/raw.rs", planted), [""; 0]);
        assert_eq!(faults("crates/proto/src/node.rs", "// unsafe\nlet s = \"unsafe\";"), [""; 0]);
    }

    #[test]
    fn each_use_needs_its_sentence() {
        let path = "crates/shm/src/raw/map.rs";
        assert_eq!(faults(path, "fn f() {\n    unsafe { g() }\n}").len(), 1);
        assert_eq!(
            faults(path, "// SAFETY: a\na();\nunsafe { g() }\n").len(),
            1,
            "a finished statement between"
        );
        let good =
            "fn f() {\n    // SAFETY: a map.\n    #[allow(x)]\n    let y =\n        unsafe { g() };\n}";
        assert_eq!(faults(path, good), [""; 0]);
        assert_eq!(faults(path, "/// # Safety\n/// The caller holds it.\npub unsafe fn f() {}"), [""; 0]);
    }

    #[test]
    fn crate_roots_forbid_it() {
        assert_eq!(faults("crates/wire/src/lib.rs", "// #![forbid(unsafe_code)]").len(), 1);
        assert_eq!(faults("crates/wire/src/lib.rs", "#![forbid(unsafe_code)]"), [""; 0]);
        assert_eq!(faults("xtask/src/main.rs", "fn main() {}").len(), 1);
        assert_eq!(faults("crates/driver/src/lib.rs", "mod sys;"), [""; 0]);
    }
}
