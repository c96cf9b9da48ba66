//! The words that a filter knows. A word that is not among them is refused, because a filter that can never
//! match would look like a quiet wire.

/// Kinds of frames: ours as docs/wire.md names them, 802.2 LLC, and the host's own.
pub const KINDS: &[&str] = &[
    "announce",
    "switch",
    "switch-ack",
    "form",
    "token",
    "token-ack",
    "list",
    "request",
    "claim",
    "claim-grant",
    "nack",
    "mode",
    "data",
    "signal",
    "join-answer",
    "report",
    "llc",
    "ordinary",
];

/// What can happen.
pub const EVENTS: &[&str] = &[
    "other",
    "sent",
    "received",
    "dropped",
    "mode-change",
    "lost",
    "back",
    "refused-station",
    "refused",
    "opened",
    "changed",
    "closed",
    "missed",
    "stall",
    "link-down",
    "link-up",
    "token-missed",
    "token-made",
    "lease-ended",
    "cycle-skipped",
];

/// What was found of a frame.
pub const VERDICTS: &[&str] = &[
    "in-time",
    "late",
    "accepted",
    "again",
    "stale",
    "unauthentic",
    "malformed",
    "replayed",
    "policed",
    "unknown-channel",
    "expired",
    "jump",
    "no-room",
    "incomplete",
    "missing",
    "timer-late",
    "dequeue-late",
];

/// Modes of a station.
pub const MODES: &[&str] = &["joining", "plain", "switching", "token"];

/// Other names of kinds.
const ALIASES: &[(&str, &str)] = &[("real-time", "data"), ("rt", "data"), ("nrt", "ordinary")];

/// Whether what was asked for is what an event has.
pub(super) fn means(asked: &str, has: &str) -> bool {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == asked);
    alias.map_or(asked, |(_, word)| word) == has
}

/// All words that may stand for a field, or alone.
pub(super) fn known(lists: &[&[&'static str]]) -> Vec<&'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let kinds = lists.contains(&KINDS);
    lists.iter().flat_map(|list| list.iter().copied()).chain(aliases.filter(|_| kinds)).collect()
}

/// The known word that somebody may have meant.
pub(super) fn meant<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|word| (distance(typed, word), *word)).min();
    near.filter(|(distance, word)| *distance <= 2 && *distance * 2 <= word.len()).map(|(_, word)| word)
}

/// How many letters must be changed, added or left out. Long words are no typing errors of short ones.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().take(24).flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], above + 1);
        for (at, other) in to.chars().enumerate() {
            let changed = corner + usize::from(*letter != other);
            corner = row[at + 1];
            row[at + 1] = changed.min(corner + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}
