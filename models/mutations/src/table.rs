//! The table of `MUTATIONS.md`: written by the hunt, read again by the test.

use super::{Detection, GROUNDS};
use rota_proto::mutated::{ALL, Mutation};
use std::fmt::Write as _;

/// Where the table stands: the copy of this crate lies in `target/mutated/models/mutations`.
pub const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../models/MUTATIONS.md");

/// Where a mutation was found, as the table says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The mutation.
    pub mutation: Mutation,
    /// The first rule that was broken; `None` when it was not found.
    pub rule: Option<String>,
    /// The kind of world.
    pub ground: String,
    /// The seed.
    pub seed: u64,
    /// Seeds tried in all kinds of worlds until then.
    pub tried: u64,
    /// What was seen.
    pub what: String,
}

impl Row {
    /// What came of a hunt.
    pub fn of(mutation: Mutation, found: Result<Detection, u64>) -> Self {
        match found {
            Ok(Detection { ground, seed, tried, violation }) => {
                let (rule, what) = (Some(violation.rule.to_owned()), violation.what.replace('|', "/"));
                Self { mutation, rule, ground: ground.to_owned(), seed, tried, what }
            }
            Err(tried) => Self {
                mutation,
                rule: None,
                ground: "–".to_owned(),
                seed: 0,
                tried,
                what: "not found".to_owned(),
            },
        }
    }
}

/// The rows of a page, in its order. Lines outside the table are passed over.
///
/// # Errors
/// The number of a line of the table that cannot be read: who writes the page again would lose it.
pub fn read(page: &str) -> Result<Vec<Row>, usize> {
    let lines = page.lines().enumerate().filter(|(_, line)| line.starts_with("| `"));
    lines.map(|(at, line)| read_row(line).ok_or(at + 1)).collect()
}

fn read_row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.trim().strip_prefix("| `")?.split(" | ").collect();
    let [name, _, rule, ground, seed, tried, what] = cells[..] else { return None };
    let (mutation, ..) = ALL.iter().find(|(_, known, _)| name.trim_end_matches('`') == *known)?;
    let rule = (rule != "–").then(|| rule.to_owned());
    let (ground, what) = (ground.to_owned(), what.trim_end_matches('|').trim().to_owned());
    Some(Row {
        mutation: *mutation,
        rule,
        ground,
        seed: seed.parse().unwrap_or(0),
        tried: tried.parse().ok()?,
        what,
    })
}

/// The page with these rows, in the order of the mutations.
pub fn write(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    for ground in GROUNDS {
        let _ = writeln!(page, "* `{}`: {}", ground.name, ground.what);
    }
    page.push_str(COLUMNS);
    for (mutation, name, sentence) in ALL {
        let Some(row) = rows.iter().find(|row| row.mutation == *mutation) else { continue };
        let Row { rule, ground, seed, tried, what, .. } = row;
        let rule = rule.as_deref().unwrap_or("–");
        let sentence = sentence.trim();
        let _ = writeln!(page, "| `{name}` | {sentence} | {rule} | {ground} | {seed} | {tried} | {what} |");
    }
    page.push_str(LEFT_OUT);
    page
}

const HEAD: &str = "\
# Mutations

`cargo xtask hunt` finds each mutation of `models/mutations/mutations.toml` again at the seed of its row,
and no broken rule at that seed without it. The mutations are in no shipping file: the command makes a
copy of the machines under `target/mutated` with all of them, one condition each, and chooses one for a world.

`cargo xtask hunt all` writes this page: each mutation in every machine of a world, seeds from 0, until a
checker of the simulator says that a rule is broken which the same seed without the mutation keeps. A few
seeds are tried in every kind of world before more are tried in any. `cargo xtask hunt mutation=NAME` does
so for one mutation and replaces its row only. `… ground=WORLD` looks in one kind of world, `… seeds=N` at
fewer seeds: those only print what they find. `… seed=N` prints the last events before the rule was broken.

The worlds, each another for each seed:

";

const COLUMNS: &str = "
| mutation | what it does | rule | world | seed | seeds tried | what was seen first |
|---|---|---|---|---|---|---|
";

const LEFT_OUT: &str = "
## Tried and left out

These were tried too and not found. Why is what we think, unless it says
that it was seen.

* A claim that is behind is not answered, or its answer is ignored (4,000 seeds of `proven`, 1,500 of
  `campaign` for the first). The claimant's token is refused everywhere; its next claim, a death timer later,
  is one generation higher and is granted. Recovery is later, within its bound.
* Grants are ignored (3,000 seeds of `proven` were begun, 200 of `campaign`; before the windows were narrowed
  seed 56 of `campaign` showed it). Who is wrongly declared dead is heard and taken back; whoever judges is
  excused for as long as the recovery lasts.
* The dead are not asked for a grant (400 of `campaign`). They drained when they were declared dead, and hear
  the claim all the same, since it is broadcast.
* Every station is as patient as every other (300 of `campaign`). Claims that cross are ordered by station.
* Generations may jump (25 of each world). No fault of the simulator makes a *member* with the key jump:
  frames forged with the key come from a stranger, whom a ring does not hear. A hole in the faults.
* A Form is believed without the newest nonce (400 of `campaign`). Its key then differs and proves nothing;
  the station asks anew.
* The token leaves before the card has sent what went before it: the card sends in order.
* A joiner keeps the slots of an earlier boot: the number's owner gives back what it does not own when it next
  holds the token (`heal_own_slots`).
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_written_is_read_again() {
        let row = |seed, rule: Option<&str>| Row {
            mutation: ALL[seed as usize].0,
            rule: rule.map(str::to_owned),
            ground: "full".to_owned(),
            seed,
            tried: 77,
            what: "hosts 1 and 2 both hold a token".to_owned(),
        };
        let rows = [row(0, Some("S1")), row(3, None)];
        let page = write(&rows);
        assert_eq!(read(&page), Ok(rows.to_vec()));
        let torn = page.replace("| 77 |", "| many |");
        let first = page.lines().position(|line| line.starts_with("| `")).map(|at| at + 1);
        assert_eq!(read(&torn).err(), first);
    }
}
