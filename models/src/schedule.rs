//! A run as plain text: one action a line, which a test replays on real machines.
//!
//! ```text
//! stations 3 channels 1 upto loss 2
//! tick            # what happened, and when
//! lose 0
//! ```

use crate::world::{Action, Budget, Delays, Spec, World, settings};
use std::fmt::Write as _;

/// Writes a run down, each action with what it did.
///
/// # Errors
/// The ring does not form under this specification.
pub fn write(spec: &Spec, actions: &[Action]) -> Result<String, String> {
    let mut world = World::formed(spec)?;
    let mut text = head(spec);
    for action in actions {
        let (name, number) = word(*action);
        let frame = match action {
            Action::Deliver(at) | Action::Lose(at) | Action::Double(at) => {
                let flight = world.net.get(usize::from(*at)).ok_or("no such flight")?;
                format!("{} at station {}", flight.frame.label(&settings()), flight.to + 1)
            }
            _ => String::new(),
        };
        world = crate::ring::step(spec, &world, *action);
        let number = number.map_or(String::new(), |number| format!(" {number}"));
        let at = world.now.as_nanos() / crate::world::TICK.as_nanos();
        let holders: Vec<usize> = world.holders().iter().map(|index| index + 1).collect();
        let _ = writeln!(text, "{:<12}# {at} {frame} holders {holders:?}", format!("{name}{number}"));
    }
    if let Some(sentence) = &world.violation {
        let _ = writeln!(text, "# {sentence}");
    }
    Ok(text)
}

fn head(spec: &Spec) -> String {
    let Budget { loss, dup, crash, restart, pause, split, will, early } = spec.budget;
    let delays = if spec.delays == Delays::Exact { "exact" } else { "upto" };
    let strict = if spec.periodic { " strict" } else { "" };
    let load = if spec.load { "" } else { " idle" };
    let wills = if will + early > 0 { format!(" will={will} early={early}") } else { String::new() };
    let bug = spec.bug.map_or(String::new(), |bug| format!(" bug={bug:?}"));
    format!(
        "{} channels={} delays={delays}{strict}{load} loss={loss} dup={dup} crash={crash} restart={restart} \
         pause={pause} split={split}{wills}{bug}\n",
        spec.stations,
        spec.channels.len()
    )
}

fn word(action: Action) -> (&'static str, Option<u8>) {
    match action {
        Action::Tick => ("tick", None),
        Action::Deliver(at) => ("deliver", Some(at)),
        Action::Lose(at) => ("lose", Some(at)),
        Action::Double(at) => ("double", Some(at)),
        Action::Crash(at) => ("crash", Some(at)),
        Action::Restart(at) => ("restart", Some(at)),
        Action::Pause(at) => ("pause", Some(at)),
        Action::Resume(at) => ("resume", Some(at)),
        Action::Split(set) => ("split", Some(set)),
        Action::Merge => ("merge", None),
        Action::Will(at) => ("will", Some(at)),
    }
}

/// Reads bounds as the program takes them: the number of stations, then `key=number` words.
///
/// # Errors
/// Which word is wrong.
pub fn read_spec<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Spec, String> {
    let stations = words.next().and_then(|word| word.parse().ok()).filter(|n| (2..=6).contains(n));
    let stations = stations.ok_or("the first word is the number of stations, 2 to 6")?;
    let mut spec = Spec {
        stations,
        channels: vec![(0, 1)],
        periodic: false,
        delays: Delays::UpTo,
        budget: Budget::default(),
        load: true,
        bug: None,
    };
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, "1"));
        let number = || value.parse::<u8>().map_err(|_| format!("{word}: a number up to 255 belongs there"));
        let budget = &mut spec.budget;
        match key {
            "loss" => budget.loss = number()?,
            "dup" => budget.dup = number()?,
            "crash" => budget.crash = number()?,
            "restart" => budget.restart = number()?,
            "pause" => budget.pause = number()?,
            "split" => budget.split = number()?,
            "will" => budget.will = number()?,
            "early" => budget.early = number()?,
            "channels" => {
                let channels = usize::from(number()?).clamp(1, stations);
                spec.channels = (0..channels).map(|from| (from, (from + 1) % stations)).collect();
            }
            "strict" => spec.periodic = true,
            "idle" => spec.load = false,
            "delays" if value == "exact" => spec.delays = Delays::Exact,
            "delays" if value == "upto" => spec.delays = Delays::UpTo,
            "bug" => {
                let known = crate::planted::ALL.into_iter().find(|bug| format!("{bug:?}") == value);
                spec.bug = Some(known.ok_or_else(|| format!("{word}: no such planted bug"))?);
            }
            _ => return Err(format!("{word} is no bound of this model")),
        }
    }
    Ok(spec)
}

fn read_action(line: &str) -> Result<Option<Action>, String> {
    let mut words = line.split('#').next().unwrap_or("").split_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    let number: Option<u8> = words.next().and_then(|word| word.parse().ok());
    let action = match (name, number) {
        ("tick", None) => Action::Tick,
        ("merge", None) => Action::Merge,
        ("deliver", Some(at)) => Action::Deliver(at),
        ("lose", Some(at)) => Action::Lose(at),
        ("double", Some(at)) => Action::Double(at),
        ("crash", Some(at)) => Action::Crash(at),
        ("restart", Some(at)) => Action::Restart(at),
        ("pause", Some(at)) => Action::Pause(at),
        ("resume", Some(at)) => Action::Resume(at),
        ("split", Some(set)) => Action::Split(set),
        ("will", Some(at)) => Action::Will(at),
        _ => return Err(format!("'{line}' is no action")),
    };
    Ok(Some(action))
}

/// Replays a run on real machines and returns how the world stands at its end.
///
/// # Errors
/// A line that cannot be read, or an action that is not possible where it stands.
pub fn replay(text: &str) -> Result<World, String> {
    let mut lines = text.lines();
    let spec = read_spec(lines.next().unwrap_or("").split_whitespace())?;
    let mut world = World::formed(&spec)?;
    for (number, line) in lines.enumerate() {
        let Some(action) = read_action(line)? else { continue };
        let mut possible = Vec::new();
        world.actions(&spec, &mut possible);
        if !possible.contains(&action) {
            return Err(format!("line {}: '{line}' cannot happen there", number + 2));
        }
        world = crate::ring::step(&spec, &world, action);
    }
    Ok(world)
}
