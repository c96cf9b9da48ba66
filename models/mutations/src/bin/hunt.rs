//! Looks for mutations with the simulator's seeds and writes what it finds into `MUTATIONS.md`:
//! `hunt [mutation=NAME]…`, the rows of other mutations staying as they are. With `ground=WORLD` or
//! `seeds=N` it looks at less than a row says, and only prints. `hunt none [ground=WORLD] [seeds=N]` looks
//! for rules that are broken without a mutation; `hunt mutation=NAME ground=WORLD seed=N` prints one run's
//! last events.

use rota_mutations::table::{PAGE, Row, read, write};
use rota_mutations::{GROUNDS, Ground, first_violation, hunt, trace};
use rota_proto::mutated::{ALL, Mutation};
use std::process::ExitCode;

/// Lines of a run that are printed.
const LINES: usize = 2_000;

struct Wanted {
    mutations: Vec<(Mutation, &'static str)>,
    none: bool,
    grounds: Vec<&'static Ground>,
    seeds: u64,
    seed: Option<u64>,
    /// Whether only a part of what a row stands for is looked at.
    narrowed: bool,
}

fn wanted() -> Result<Wanted, String> {
    let mut wanted = Wanted {
        mutations: Vec::new(),
        none: false,
        grounds: GROUNDS.iter().collect(),
        seeds: 10_000,
        seed: None,
        narrowed: false,
    };
    for word in std::env::args().skip(1).filter(|word| word != "all") {
        let unknown =
            || format!("'{word}' is none of all, none, mutation=NAME, ground=WORLD, seeds=N, seed=N");
        match word.split_once('=') {
            None if word == "none" => wanted.none = true,
            Some(("mutation", name)) => {
                let known = ALL.iter().find(|(_, known, _)| *known == name);
                let (mutation, name, _) = known.ok_or_else(|| format!("there is no mutation '{name}'"))?;
                wanted.mutations.push((*mutation, *name));
            }
            Some(("ground", name)) => {
                wanted.grounds.retain(|ground| ground.name == name);
                wanted.narrowed = true;
            }
            Some(("seeds", number)) => {
                wanted.seeds = number.parse().map_err(|_| unknown())?;
                wanted.narrowed = true;
            }
            Some(("seed", number)) => wanted.seed = Some(number.parse().map_err(|_| unknown())?),
            _ => return Err(unknown()),
        }
    }
    if wanted.grounds.is_empty() {
        let names: Vec<&str> = GROUNDS.iter().map(|ground| ground.name).collect();
        return Err(format!("there is no such world; there are {}", names.join(", ")));
    }
    Ok(wanted)
}

fn main() -> ExitCode {
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(sentence) => {
            eprintln!("hunt: {sentence}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = wanted.seed {
        let mutation = wanted.mutations.first().map(|(mutation, _)| *mutation);
        let scenario = (wanted.grounds[0].scenario)(seed);
        trace(mutation, seed, &scenario, LINES).iter().for_each(|line| println!("{line}"));
        return ExitCode::SUCCESS;
    }
    // A panic of a machine is a finding, which the page tells.
    std::panic::set_hook(Box::new(|_| {}));
    let found = if wanted.none { clean(&wanted) } else { all(&wanted) };
    found.unwrap_or_else(|error| {
        eprintln!("hunt: {PAGE}: {error}");
        ExitCode::from(2)
    })
}

/// Without a mutation every world keeps every rule.
fn clean(wanted: &Wanted) -> std::io::Result<ExitCode> {
    let mut broken = 0;
    for ground in &wanted.grounds {
        for seed in 0..wanted.seeds {
            if let Some(found) = first_violation(None, seed, &(ground.scenario)(seed)) {
                println!("{} {seed}: {} {} at {:?}", ground.name, found.rule, found.what, found.at);
                broken += 1;
            }
        }
        println!("{}: {} seeds", ground.name, wanted.seeds);
    }
    Ok(ExitCode::from(u8::from(broken > 0)))
}

/// Looks for each mutation and writes its row before it looks for the next.
fn all(wanted: &Wanted) -> std::io::Result<ExitCode> {
    let everything = ALL.iter().map(|(mutation, name, _)| (*mutation, *name));
    let mutations = if wanted.mutations.is_empty() { everything.collect() } else { wanted.mutations.clone() };
    let mut missed = 0;
    for (mutation, name) in mutations {
        let row = Row::of(mutation, hunt(mutation, &wanted.grounds, wanted.seeds));
        missed += usize::from(row.rule.is_none());
        println!(
            "{name}: {} in {} {}, {} tried: {}",
            row.rule.as_deref().unwrap_or("–"),
            row.ground,
            row.seed,
            row.tried,
            row.what
        );
        if !wanted.narrowed {
            replace(row)?;
        }
    }
    if wanted.narrowed {
        println!("{PAGE} stays as it is: each row there is a hunt in all worlds");
    }
    Ok(ExitCode::from(u8::from(missed > 0)))
}

/// Writes one row of the page, and the others again as they are.
fn replace(row: Row) -> std::io::Result<()> {
    let page = match std::fs::read_to_string(PAGE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        page => page?,
    };
    let torn = |line| std::io::Error::other(format!("line {line} is no row of the table, mend it first"));
    let mut rows = read(&page).map_err(torn)?;
    rows.retain(|known| known.mutation != row.mutation);
    rows.push(row);
    std::fs::write(PAGE, write(&rows))
}
