//! Filters as in tcpdump, for the fields that Rota knows: `src n3 and kind token`, `priority >= 6 or
//! channel 5`, `not llc`, `host n2 and (len > 500 or late)`.
//!
//! ```text
//! either  = both { ("or" | "||") both }
//! both    = one { ("and" | "&&") one }
//! one     = ("not" | "!") one | "(" either ")" | test
//! test    = party [is] STATION | "iface" [is] INTERFACE | word [is] WORD | number [compare] NUMBER | WORD
//! party   = "src" | "dst" | "host"   number = "priority" | "channel" | "circuit" | "label" | "len" | "sap"
//! word    = "kind" | "event" | "verdict" | "mode"
//! is      = "=" | "==" | "!="                compare = is | "<" | "<=" | ">" | ">="
//! ```
//!
//! A WORD alone is looked for among kinds, events and verdicts. A comparison with a field that an event does
//! not have is false, whichever way it is made; so `not channel 5` holds for an event without a channel, and
//! `channel != 5` does not.

mod error;
mod parse;
#[cfg(test)]
mod tests;
mod words;

pub use error::FilterError;
use rota::ChannelId;
use rota_wire::MacAddr;
pub use words::{MODES, OF_EVENTS, OF_LOADS, Vocabulary};

/// A station, as an event names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Party<'a> {
    /// Its number; 0 while it has none.
    pub station: u16,
    /// Its name; empty while it is not known, and "broadcast" for everybody.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: Option<[u8; 6]>,
}

/// What a filter can ask of an event. A field that it does not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// Who sent it.
    pub src: Option<Party<'a>>,
    /// To whom.
    pub dst: Option<Party<'a>>,
    /// One of the kinds of `words.rs`.
    pub kind: Option<&'a str>,
    /// One of its events.
    pub event: Option<&'a str>,
    /// One of its verdicts.
    pub verdict: Option<&'a str>,
    /// One of [`MODES`].
    pub mode: Option<&'a str>,
    /// Its level in the queue of ordinary frames.
    pub priority: Option<u8>,
    /// The channel's id.
    pub channel: Option<ChannelId>,
    /// The name of a circuit.
    pub circuit: Option<u64>,
    /// The channel's label on the wire.
    pub label: Option<u16>,
    /// Octets of the frame, from the destination address on.
    pub length: Option<u32>,
    /// The destination's and the source's service access point.
    pub saps: Option<[u8; 2]>,
    /// The interface that it happened on.
    pub interface: Option<&'a str>,
}

/// A filter that has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Nothing lets everything through.
    root: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expr {
    Any(Vec<Expr>),
    All(Vec<Expr>),
    Not(Box<Expr>),
    Party(Side, bool, String),
    Interface(bool, String),
    Word(Field, bool, String),
    Number(Field, Compare, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Src,
    Dst,
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Kind,
    Event,
    Verdict,
    Mode,
    /// Whichever of kind, event and verdict has such a word.
    Bare,
    Priority,
    Channel,
    Circuit,
    Label,
    Length,
    Sap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Filter {
    /// Reads a filter of what such words can be asked of; an empty one lets everything through.
    ///
    /// # Errors
    /// [`FilterError`]: the column, what stood there and what would have been right.
    pub fn parse(text: &str, words: &Vocabulary) -> Result<Self, FilterError> {
        parse::parse(text, words).map(|root| Self { root })
    }

    /// Reads a filter of events, whose words came as arguments of a command.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn from_words(words: &[String]) -> Result<Self, FilterError> {
        Self::parse(&words.join(" "), &OF_EVENTS)
    }

    /// Whether an event passes.
    pub fn matches(&self, fields: &Fields<'_>) -> bool {
        self.root.as_ref().is_none_or(|root| root.holds(fields))
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }
}

impl Expr {
    fn holds(&self, fields: &Fields<'_>) -> bool {
        match self {
            Self::Any(parts) => parts.iter().any(|part| part.holds(fields)),
            Self::All(parts) => parts.iter().all(|part| part.holds(fields)),
            Self::Not(part) => !part.holds(fields),
            Self::Party(side, is, called) => party(*side, *is, called, fields),
            Self::Interface(is, name) => fields.interface.is_some_and(|has| (has == name) == *is),
            Self::Word(field, is, word) => field.word_is(*is, word, fields),
            Self::Number(Field::Sap, compare, number) => {
                let saps = fields.saps.iter().flatten();
                let mut held = saps.map(|sap| compare.holds(u64::from(*sap), *number));
                // One of the two has to be equal; unequal means that neither is.
                if *compare == Compare::Unequal {
                    fields.saps.is_some() && held.all(|held| held)
                } else {
                    held.any(|held| held)
                }
            }
            Self::Number(field, compare, number) => {
                field.number(fields).is_some_and(|value| compare.holds(value, *number))
            }
        }
    }
}

fn party(side: Side, is: bool, called: &str, fields: &Fields<'_>) -> bool {
    let parties = match side {
        Side::Src => [fields.src, None],
        Side::Dst => [fields.dst, None],
        Side::Either => [fields.src, fields.dst],
    };
    let mut parties = parties.iter().flatten().peekable();
    parties.peek().is_some() && parties.any(|party| party.is_called(called)) == is
}

impl Party<'_> {
    /// Whether somebody means this station by a name, a number or an address.
    pub fn is_called(&self, called: &str) -> bool {
        let numbered = self.station != 0 && called.parse() == Ok(self.station);
        let named = !self.name.is_empty() && self.name.eq_ignore_ascii_case(called);
        let is_mac = |mac| MacAddr(mac).to_string().eq_ignore_ascii_case(called);
        numbered || named || self.mac.is_some_and(is_mac)
    }
}

impl Field {
    fn word_is(self, is: bool, word: &str, fields: &Fields<'_>) -> bool {
        let one = match self {
            Self::Kind => fields.kind,
            Self::Event => fields.event,
            Self::Verdict => fields.verdict,
            Self::Mode => fields.mode,
            _ => {
                let mut all = [fields.kind, fields.event, fields.verdict].into_iter().flatten();
                return all.any(|has| words::means(word, has)) == is;
            }
        };
        one.is_some_and(|has| words::means(word, has) == is)
    }

    fn number(self, fields: &Fields<'_>) -> Option<u64> {
        match self {
            Self::Priority => fields.priority.map(u64::from),
            Self::Channel => fields.channel.map(|channel| channel.0),
            Self::Circuit => fields.circuit,
            Self::Label => fields.label.map(u64::from),
            Self::Length => fields.length.map(u64::from),
            _ => None,
        }
    }
}

impl Compare {
    fn holds(self, value: u64, bound: u64) -> bool {
        match self {
            Self::Equal => value == bound,
            Self::Unequal => value != bound,
            Self::Less => value < bound,
            Self::AtMost => value <= bound,
            Self::More => value > bound,
            Self::AtLeast => value >= bound,
        }
    }
}

/// Any octets as a filter: it is read or refused with a column inside it, and never panics.
#[cfg(test)]
pub fn fuzz_filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Filter::parse(text, &OF_EVENTS) {
        Ok(filter) => {
            let _ = filter.matches(&Fields::default());
        }
        Err(error) => {
            assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{error:?}");
            let told = error.to_string();
            assert!(told.lines().count() == 3 && !told.chars().any(|c| c != '\n' && c.is_control()));
        }
    }
}
