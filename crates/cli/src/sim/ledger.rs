//! The ledger of long sweeps: a line for each, so that the next one goes on where the last one stopped.

use rota_answer::Failure;
use rota_sim::check::Recoveries;
use std::io::Write as _;
use std::path::Path;

const HEAD: &str = "commit,timers,from,to,hops,seconds,broken,first_broken,token_lost_ns,death_ns,parting_ns,\
                    meeting_ns,two_at_once_ns,more_at_once_ns";

/// One sweep.
pub struct Line<'a> {
    pub commit: &'a str,
    pub timers: &'a str,
    /// The first seed, and the one behind the last.
    pub seeds: (u64, u64),
    pub hops: u64,
    pub seconds: u64,
    /// How many runs broke a rule, and the first of them.
    pub broken: (usize, Option<u64>),
    pub recoveries: &'a Recoveries,
}

/// Where the next sweep with these timers begins: behind the last seed of any line.
///
/// # Errors
/// A line that is none, with its number.
pub fn next_seed(path: &Path, timers: &str) -> Result<u64, Failure> {
    // Opened for writing at once: nobody wants to hear after a night that its result has no place.
    open(path)?;
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
    parse(&text, timers).map_err(|line| {
        let sentence = "is no line of a ledger; it would be like \"commit,timers,from,to,…\" with numbers";
        Failure::wrong_use(format!("{}:{line}: {sentence}", path.display()))
    })
}

fn parse(text: &str, timers: &str) -> Result<u64, usize> {
    let mut next = 0;
    for (at, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.is_empty()) {
        let mut fields = line.split(',').skip(1);
        let (Some(of), Some(to)) = (fields.next(), fields.nth(1)) else { return Err(at + 1) };
        let to: u64 = to.parse().map_err(|_| at + 1)?;
        next = if of == timers { to.max(next) } else { next };
    }
    Ok(next)
}

/// Adds a line, and the head when the file is new.
///
/// # Errors
/// The file cannot be written.
pub fn append(path: &Path, line: &Line<'_>) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let mut file = open(path)?;
    if file.metadata().map_err(wrong)?.len() == 0 {
        writeln!(file, "{HEAD}").map_err(wrong)?;
    }
    let Line { commit, timers, seeds: (from, to), hops, seconds, broken: (broken, first), recoveries } = line;
    let first = first.map_or_else(String::new, |seed| seed.to_string());
    // The ledger's worlds leave no wills, and its columns stand.
    let six = recoveries.all().into_iter().take(6);
    let worst: Vec<String> = six.map(|(_, worst)| worst.as_nanos().to_string()).collect();
    let worst = worst.join(",");
    writeln!(file, "{commit},{timers},{from},{to},{hops},{seconds},{broken},{first},{worst}").map_err(wrong)
}

fn open(path: &Path) -> Result<std::fs::File, Failure> {
    let wrong = |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    std::fs::OpenOptions::new().create(true).append(true).open(path).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_seed_stands_behind_the_last_of_the_same_timers() {
        let text = "head\na,proven,0,500,1,1,0,,1,1,1,1,1,1\na,product,0,70,1,1,0,,1,1,1,1,1,1\n";
        assert_eq!(
            (parse(text, "proven"), parse(text, "product"), parse("", "proven")),
            (Ok(500), Ok(70), Ok(0))
        );
        assert_eq!(parse("head\na,proven,0,many\n", "proven"), Err(2));
    }
}
