//! Lengths of files, functions and lines, and the share of comments.

use crate::tree::{Report, Tree, room};

const FILE_LINES_MAX: usize = 700;
/// A file of tests holds many that share a rig.
const TEST_LINES_MAX: usize = 1_000;
const FILE_LINES_MEDIAN: usize = 250;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 110;
const COMMENT_PERCENT: std::ops::RangeInclusive<usize> = 12..=20;

/// Checks each Rust file and prints the figures of each room.
pub fn check(tree: &Tree, report: &mut Report) {
    let mut rooms: std::collections::BTreeMap<&str, Figures> = std::collections::BTreeMap::new();
    for (path, source) in &tree.rust {
        let lines = source.text.lines().count();
        let most = if is_test(path) { TEST_LINES_MAX } else { FILE_LINES_MAX };
        if lines > most {
            let sentence = format!("has {lines} lines, at most {most}: split it by responsibility");
            report.violation(path, 0, sentence);
        }
        for function in source.functions() {
            if function.length > FUNCTION_LINES_MAX {
                let (name, length) = (&function.name, function.length);
                let sentence = format!("fn {name} has {length} lines, at most {FUNCTION_LINES_MAX}");
                report.violation(path, function.line, sentence);
            }
        }
        for (i, line) in source.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > LINE_COLUMNS_MAX {
                let sentence = format!("the line has {columns} columns, at most {LINE_COLUMNS_MAX}");
                report.violation(path, i + 1, sentence);
            }
        }
        // The targets for cargo-fuzz are written by a program and would only blur the figures.
        if path.starts_with("fuzz/") {
            continue;
        }
        let name = room(path).unwrap_or_else(|| path.split('/').next().unwrap_or(path));
        rooms.entry(name).or_default().add(lines, source.comment_share());
    }
    for (name, figures) in rooms {
        report.note(figures.sentence(name));
    }
}

/// True for a file of the tests beside a crate's sources.
fn is_test(path: &str) -> bool {
    path.contains("/tests/") && !path.contains("/src/")
}

#[derive(Default)]
struct Figures {
    lengths: Vec<usize>,
    comment_lines: usize,
    written_lines: usize,
}

impl Figures {
    fn add(&mut self, lines: usize, (comments, written): (usize, usize)) {
        self.lengths.push(lines);
        self.comment_lines += comments;
        self.written_lines += written;
    }

    fn sentence(mut self, name: &str) -> String {
        self.lengths.sort_unstable();
        let median = self.lengths[self.lengths.len() / 2];
        let longest = self.lengths.last().copied().unwrap_or(0);
        let percent = self.comment_lines * 100 / self.written_lines.max(1);
        let mut warning = String::new();
        if !COMMENT_PERCENT.contains(&percent) {
            warning += " (aim: comments 12–20 %)";
        }
        if median > FILE_LINES_MEDIAN {
            warning += " (aim: median ≤ 250)";
        }
        let files = self.lengths.len();
        let lengths = format!("{files:>3} files, median {median:>4}, longest {longest:>4} lines");
        format!("{name:<10} {lengths}, comments {percent:>2} %{warning}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Report {
        let mut report = Report::default();
        check(&Tree::planted(&[("crates/wire/src/lib.rs", text)]), &mut report);
        report
    }

    #[test]
    fn long_files_functions_and_lines_are_refused() {
        let body = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(69));
        let found = report(&body).violations;
        assert!(found.len() == 1 && found[0].sentence.contains("fn f has 71 lines"), "{found:?}");
        let found = report(&"\n".repeat(701)).violations;
        assert!(found.len() == 1 && found[0].sentence.contains("701 lines"), "{found:?}");
        let found = report(&format!("\n// {}", "é".repeat(108))).violations;
        assert!(
            found.len() == 1 && found[0].line == 2 && found[0].sentence.contains("111 columns"),
            "{found:?}"
        );
    }

    #[test]
    fn tests_beside_the_sources_may_be_longer() {
        let of = |path: &str, lines: usize| {
            let text = "\n".repeat(lines);
            Report::sentences(check, &Tree::planted(&[(path, &text)])).len()
        };
        assert_eq!([700, 701].map(|lines| of("crates/wire/src/llc/tests/one.rs", lines)), [0, 1]);
        assert_eq!([1_000, 1_001].map(|lines| of("crates/wire/tests/frames.rs", lines)), [0, 1]);
    }

    #[test]
    fn what_is_just_within_the_caps_passes() {
        let body = format!("fn f() {{\n{}}}\n{}", "    g(\"}\");\n".repeat(68), "\n".repeat(630));
        assert_eq!(report(&body).violations, []);
        assert_eq!(report(&"é".repeat(110)).violations, []);
    }

    #[test]
    fn the_share_of_comments_is_printed() {
        let few = report("fn a() {}\nfn b() {}\n").notes;
        assert!(few[0].contains("comments  0 %") && few[0].contains("aim"), "{few:?}");
        let enough = report("// why\nfn a() {}\nfn b() {}\nfn c() {}\nfn d() {}\nfn e() {}\n").notes;
        assert!(enough[0].contains("comments 16 %") && !enough[0].contains("aim"), "{enough:?}");
    }
}
