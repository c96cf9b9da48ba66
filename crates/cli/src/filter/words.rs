//! The words that a filter knows. A word that is not among them is refused, because a filter that can never
//! match would look like a quiet wire.

use rota::{ModeName, TraceEvent, TraceVerdict};
use rota_wire::Kind;
use strum::VariantNames;

/// Kinds of frames: ours as docs/wire.md names them, 802.2 LLC, and the host's own.
pub const KINDS: &[&str] = &{
    // A constant knows no iterators.
    let mut words = ["llc"; Kind::ALL.len() + 2];
    let mut at = 0;
    while at < Kind::ALL.len() {
        words[at] = Kind::VARIANTS[at];
        at += 1;
    }
    words[at + 1] = "ordinary";
    words
};

/// What can happen.
pub const EVENTS: &[&str] = TraceEvent::VARIANTS;

/// What was found of a frame. The first verdict is none, and has no word.
pub const VERDICTS: &[&str] = TraceVerdict::VARIANTS.split_at(1).1;

/// Modes of a station.
pub const MODES: &[&str] = ModeName::VARIANTS;

/// What a filter may ask of what it selects from. A field that nothing there has would select nothing, which
/// looks like a quiet wire, so it is refused.
#[derive(Debug)]
pub struct Vocabulary {
    /// Fields, by their first name.
    pub fields: &'static [&'static str],
    /// Kinds of frames.
    pub kinds: &'static [&'static str],
    /// Events and verdicts, which may stand alone too.
    pub found: [&'static [&'static str]; 2],
}

/// Of the events of a trace.
pub const OF_EVENTS: Vocabulary = Vocabulary {
    fields: &[
        "src", "dst", "host", "iface", "kind", "event", "verdict", "mode", "priority", "channel", "circuit",
        "label", "len", "sap",
    ],
    kinds: KINDS,
    found: [EVENTS, VERDICTS],
};

/// Of loads and channels: the monitor counts all frames that guard the token as one kind, and all signalling
/// as another.
pub const OF_LOADS: Vocabulary = Vocabulary {
    fields: &["src", "dst", "host", "kind", "priority", "channel", "label"],
    kinds: &["token", "data", "ordinary", "signal", "llc"],
    found: [&[], &[]],
};

/// The first name of a field that has several.
pub(super) fn first_name(word: &str) -> &str {
    match word {
        "station" => "host",
        "interface" => "iface",
        "prio" | "level" => "priority",
        "length" => "len",
        other => other,
    }
}

/// Other names of kinds.
const ALIASES: &[(&str, &str)] = &[("real-time", "data"), ("rt", "data"), ("nrt", "ordinary")];

/// Whether what was asked for is what an event has.
pub(super) fn means(asked: &str, has: &str) -> bool {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == asked);
    alias.map_or(asked, |(_, word)| word) == has
}

/// All words that may stand for a field, or alone.
pub(super) fn known(lists: &[&[&'static str]]) -> Vec<&'static str> {
    let words = || lists.iter().flat_map(|list| list.iter().copied());
    let aliases = ALIASES.iter().filter(|(_, meant)| words().any(|word| word == *meant));
    words().chain(aliases.map(|(alias, _)| *alias)).collect()
}

/// The known word that somebody may have meant.
pub(super) fn meant<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let near = known.iter().map(|word| (strsim::levenshtein(&typed, word), *word)).min();
    // One letter of a short word, two of a long one: 'foo' is not 'form', nor 'port' 'host'.
    near.filter(|(distance, word)| *distance <= if word.len() < 5 { 1 } else { 2 }).map(|(_, word)| word)
}
