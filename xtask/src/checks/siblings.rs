//! A machine never names a sibling machine: it reads a view of the medium and says what it wants; the node
//! carries it.

use crate::tree::{Report, Tree};

/// The machines of a station: the files of each begin so. The medium's are not looked at: it is below the
/// others, and `Llc` is a class of frames to it.
const MACHINES: &[(&[&str], &str)] = &[
    (&["crates/proto/src/channels.rs", "crates/proto/src/channels/"], "Channels"),
    (&["crates/proto/src/llc/"], "Llc"),
    (&["crates/proto/src/report.rs"], "Reports"),
    (&[], "Rether"),
];

/// The media: the folder of each, and the words by which another one would name it. Both use the values of
/// the room that they are in.
const MEDIA: &[(&str, &[&str])] = &[
    ("crates/medium/src/rether/", &["rether", "Rether"]),
    ("crates/medium/src/link/", &["crate::link", "super::link"]),
];

/// The bodies that a medium carries and does not read, by their types.
const BODIES: &[&str] = &["UnitHeader", "Signal::parse", "Report::parse"];

/// A medium proves a frame and hands its body on. The machines above read it.
fn check_bodies(tree: &Tree, report: &mut Report) {
    let is_checked = |path: &str| path.starts_with("crates/medium/") && !path.contains("/tests");
    for (path, source) in tree.rust.iter().filter(|(path, _)| is_checked(path)) {
        for at in BODIES.iter().filter_map(|word| source.words(word).next()) {
            let sentence = "a medium reads the body of a unit, signal or report: proto/src/node/line.rs does";
            report.violation(path, source.line_at(at), sentence.to_string());
        }
    }
}

/// Checks each file of each medium but its tests.
fn check_media(tree: &Tree, report: &mut Report) {
    for (path, source) in tree.rust.iter().filter(|(path, _)| !path.contains("/tests")) {
        let Some((own, _)) = MEDIA.iter().find(|(folder, _)| path.starts_with(folder)) else { continue };
        for (folder, words) in MEDIA.iter().filter(|(folder, _)| folder != own) {
            for at in words.iter().filter_map(|word| source.words(word).next()) {
                let sentence = format!("a medium names its sibling in {folder}: move the value to the room");
                report.violation(path, source.line_at(at), sentence);
            }
        }
    }
}

/// Checks each file of each machine but its tests, which may put several together.
pub fn check(tree: &Tree, report: &mut Report) {
    check_media(tree, report);
    check_bodies(tree, report);
    for (path, source) in tree.rust.iter().filter(|(path, _)| !path.contains("/tests")) {
        let is_of = |files: &[&str]| files.iter().any(|file| path.starts_with(file));
        let Some((_, own)) = MACHINES.iter().find(|(files, _)| is_of(files)) else { continue };
        let end = source.code.find("#[cfg(test)]\nmod tests {").unwrap_or(source.code.len());
        for (_, sibling) in MACHINES.iter().filter(|(_, name)| name != own) {
            for at in source.words(sibling).filter(|at| *at < end) {
                let sentence = format!(
                    "{own} names its sibling {sibling}: read segment.rs, and say what is wanted, which the \
                     node carries"
                );
                report.violation(path, source.line_at(at), sentence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(path: &str, text: &str) -> Vec<String> {
        Report::sentences(check, &Tree::planted(&[(path, text)]))
    }

    #[test]
    fn a_machine_that_names_a_sibling_is_refused() {
        let text = "fn tick(link: &mut Rether) {}\n";
        let found = sentences("crates/proto/src/llc/send.rs", text);
        assert!(found.len() == 1 && found[0].contains("Llc names its sibling Rether"), "{found:?}");
        assert!(sentences("crates/proto/src/node.rs", text).is_empty(), "the node carries");
        assert!(sentences("crates/proto/src/channels/tests.rs", text).is_empty(), "a test");
        let text = format!("//! Like Rether.\n#[cfg(test)]\nmod tests {{\n    {text}}}\n");
        assert!(sentences("crates/proto/src/report.rs", &text).is_empty(), "a comment, and its tests");
    }

    #[test]
    fn a_medium_that_reads_a_unit_is_refused() {
        let text = "fn take(body: &[u8]) { UnitHeader::parse(body); }\n";
        let found = sentences("crates/medium/src/link/handle.rs", text);
        assert!(found.len() == 1 && found[0].contains("reads the body"), "{found:?}");
        assert!(sentences("crates/proto/src/node/line.rs", text).is_empty(), "the line reads it");
        let kinds = "fn is(kind: Kind) -> bool { kind == Kind::Signal }\n";
        assert!(sentences("crates/medium/src/link/handle.rs", kinds).is_empty(), "the kind is the medium's");
    }

    #[test]
    fn a_medium_that_names_another_one_is_refused() {
        let (own, other) = ("use crate::rether::Rether;\n", "use crate::link::Link;\n");
        for (path, text) in [("link/mod.rs", own), ("rether/mod.rs", other)] {
            let found = sentences(&format!("crates/medium/src/{path}"), text);
            assert!(
                !found.is_empty() && found[0].contains("move the value to the room"),
                "{path}: {found:?}"
            );
        }
        assert!(sentences("crates/medium/src/link/mod.rs", "use crate::event::MediumEvent;\n").is_empty());
        assert!(sentences("crates/medium/src/rether/mod.rs", own).is_empty());
        assert!(sentences("crates/medium/src/lib.rs", "pub mod link;\npub mod rether;\n").is_empty());
    }
}
