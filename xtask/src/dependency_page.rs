//! Fills the columns of `docs/dependencies.md` that cargo knows: only the reasons are written by hand.

use crate::checks::dependencies::{PAGE, facts};
use crate::checks::requirements::{backticked, cells};
use crate::tree::Tree;
use std::path::Path;

/// Rewrites version, licence and rooms of every line.
///
/// # Errors
/// The page does not exist or cannot be written.
pub fn write(root: &Path, tree: &Tree) -> Result<(), String> {
    let text = tree.texts.get(PAGE).ok_or_else(|| format!("{PAGE} does not exist"))?;
    std::fs::write(root.join(PAGE), filled(text, tree)).map_err(|e| format!("{PAGE} cannot be written: {e}"))
}

fn filled(text: &str, tree: &Tree) -> String {
    let lines = text.lines().map(|line| filled_line(line, tree).unwrap_or_else(|| line.to_owned()));
    lines.map(|line| line + "\n").collect()
}

/// `None` for a line that is no row of a crate that a manifest asks for.
fn filled_line(line: &str, tree: &Tree) -> Option<String> {
    let mut cells = cells(line)?;
    let name = backticked(cells[0]).into_iter().next()?;
    let facts = facts(tree, &name)?;
    if cells.len() < 4 {
        return None;
    }
    for (cell, fact) in cells[1..4].iter_mut().zip(&facts) {
        *cell = fact;
    }
    Some(format!("| {} |", cells.join(" | ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::planted::{edge, foreign, room};

    #[test]
    fn facts_are_filled_and_reasons_kept() {
        let wire = room("rota-wire", "wire", &[edge("blake3", "1.8", "", false)]);
        let tree = Tree { packages: vec![wire, foreign("blake3", "MIT")], ..Tree::default() };
        let page =
            "text\n| `blake3` | 1 | x | proto | a reason | a danger |\n| `gone` | 1 | x | y | a | b |\n";
        let right = page.replace("| 1 | x | proto |", "| 1.8 | MIT | wire |");
        assert_eq!(filled(page, &tree), right);
    }
}
