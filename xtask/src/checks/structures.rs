//! The number of fields of a structure. One of many fields holds values that live and die apart: they are
//! values of their own, and a function takes those that it needs.

use crate::tree::{Report, Tree};

const FIELDS_MAX: usize = 20;

/// A structure that may have more fields.
struct Exempt {
    path: &'static str,
    name: &'static str,
    /// Why its fields are no parts.
    why: &'static str,
}

const EXEMPT: &[Exempt] = &[
    exempt("crates/cli/src/node.rs", "Args", "arguments: clap reads one structure"),
    exempt("crates/medium/src/tally.rs", "Counters", "flat counters"),
    exempt("crates/shm/src/layout.rs", "BoardHeader", "a memory layout"),
    exempt("crates/study/src/scenario/faults.rs", "FaultTable", "a flat table of a file, key by key"),
];

const fn exempt(path: &'static str, name: &'static str, why: &'static str) -> Exempt {
    Exempt { path, name, why }
}

/// Checks each structure of the rooms.
pub fn check(tree: &Tree, report: &mut Report) {
    check_but(EXEMPT, tree, report);
}

fn check_but(all: &[Exempt], tree: &Tree, report: &mut Report) {
    let mut unused: Vec<&Exempt> = all.iter().filter(|one| tree.rust.contains_key(one.path)).collect();
    for (path, source) in tree.rust.iter().filter(|(path, _)| path.starts_with("crates/")) {
        for structure in source.structures().iter().filter(|structure| structure.fields > FIELDS_MAX) {
            let is_it = |one: &Exempt| one.path == path && one.name == structure.name;
            if let Some(one) = all.iter().find(|one| is_it(one)) {
                report.note(format!("struct {} has {} fields: {}", one.name, structure.fields, one.why));
                unused.retain(|one| !is_it(one));
                continue;
            }
            let (name, fields) = (&structure.name, structure.fields);
            let sentence =
                format!("struct {name} has {fields} fields, at most {FIELDS_MAX}: make parts of it");
            report.violation(path, structure.line, sentence);
        }
    }
    for Exempt { path, name, .. } in unused {
        let sentence = format!("no struct {name} with more than {FIELDS_MAX} fields: take it off the list");
        report.violation(path, 0, sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/wire/src/lib.rs";
    const LIST: [Exempt; 1] = [exempt(FILE, "S", "flat counters")];

    fn of(fields: usize) -> String {
        let fields: String = (0..fields).map(|nth| format!("    /// One: two.\n    f{nth}: u8,\n")).collect();
        format!("pub struct S {{\n{fields}}}\n")
    }

    fn sentences(list: &[Exempt], path: &str, text: &str) -> Vec<String> {
        Report::sentences(|tree, report| check_but(list, tree, report), &Tree::planted(&[(path, text)]))
    }

    #[test]
    fn a_structure_of_many_fields_is_refused() {
        assert!(sentences(&[], FILE, &of(20)).is_empty());
        let found = sentences(&[], FILE, &of(21));
        assert!(found.len() == 1 && found[0].contains("struct S has 21 fields"), "{found:?}");
        assert!(sentences(&[], "xtask/src/main.rs", &of(21)).is_empty(), "no room");
    }

    #[test]
    fn an_exemption_holds_for_one_structure_and_only_while_it_is_needed() {
        assert!(sentences(&LIST, FILE, &of(21)).is_empty());
        assert_eq!(sentences(&LIST, "crates/wire/src/llc.rs", &of(21)).len(), 1, "another file");
        let found = sentences(&LIST, FILE, &of(20));
        assert!(found.len() == 1 && found[0].contains("take it off the list"), "{found:?}");
    }
}
