//! The reader of filters.

use super::error::quoted;
use super::words::{MODES, OF_EVENTS, Vocabulary, first_name, known, meant};
use super::{Compare, Expr, Field, FilterError, Side};

/// How deep parentheses and `not` may stand in each other.
const DEPTH_MAX: usize = 64;
const SYMBOLS: &[&str] = &["&&", "||", "==", "!=", "<=", ">=", "(", ")", "!", "=", "<", ">"];

const COMPARES: &[&str] = &["=", "==", "!=", "<", "<=", ">", ">="];

/// Words that join, and are no names unless they are quoted.
const JOINS: &[&str] = &["and", "or", "not"];

/// A word or symbol, and where it began, in letters from 0.
#[derive(Clone, Debug)]
struct Piece {
    at: usize,
    text: String,
    quoted: bool,
}

pub(super) fn parse(text: &str, words: &Vocabulary) -> Result<Option<Expr>, FilterError> {
    let pieces = pieces(text)?;
    let mut reader = Reader { text, pieces: &pieces, next: 0, words };
    if pieces.is_empty() {
        return Ok(None);
    }
    let root = reader.either(0)?;
    match reader.peek() {
        None => Ok(Some(root)),
        Some(_) => Err(reader.wrong("expected 'and', 'or' or the end")),
    }
}

/// Cuts a text into words and symbols. A name with odd letters may stand in quotes.
fn pieces(text: &str) -> Result<Vec<Piece>, FilterError> {
    let letters: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        if letter.is_whitespace() {
            at += 1;
            continue;
        }
        let symbol = SYMBOLS.iter().find(|symbol| {
            let rest = letters[at..].iter().take(symbol.len());
            rest.eq(symbol.chars().collect::<Vec<_>>().iter())
        });
        let (end, after, begin) = if let Some(symbol) = symbol {
            (at + symbol.len(), at + symbol.len(), at)
        } else if letter == '"' || letter == '\'' {
            let end = letters[at + 1..].iter().position(|other| *other == letter).map(|n| at + 1 + n);
            let end = end.ok_or_else(|| FilterError {
                text: text.to_owned(),
                column: at + 1,
                found: format!("a quotation begins with {letter}"),
                wanted: format!("another {letter} must end it"),
            })?;
            (end, end + 1, at + 1)
        } else {
            let is_end = |letter: &char| letter.is_whitespace() || "&|=!<>()\"'".contains(*letter);
            // A sign that is no symbol is a piece of its own, which nobody will understand.
            let length = letters[at + 1..].iter().position(is_end).unwrap_or(letters.len() - at - 1);
            (at + 1 + length, at + 1 + length, at)
        };
        let quoted = symbol.is_none() && begin != at;
        pieces.push(Piece { at, text: letters[begin..end].iter().collect(), quoted });
        at = after;
    }
    Ok(pieces)
}

struct Reader<'a> {
    text: &'a str,
    pieces: &'a [Piece],
    next: usize,
    words: &'a Vocabulary,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Piece> {
        self.pieces.get(self.next)
    }

    /// Whether one of these comes next; takes it.
    fn takes(&mut self, any: &[&str]) -> Option<String> {
        let found = self.peek().filter(|piece| !piece.quoted && any.contains(&&*piece.text))?.text.clone();
        self.next += 1;
        Some(found)
    }

    /// The next word is wrong.
    fn wrong(&self, wanted: impl Into<String>) -> FilterError {
        let (at, found) = self.peek().map_or_else(
            || (self.text.chars().count(), "the filter ends".to_owned()),
            |piece| (piece.at, format!("unexpected {}", quoted(&piece.text))),
        );
        FilterError { text: self.text.to_owned(), column: at + 1, found, wanted: wanted.into() }
    }

    fn either(&mut self, depth: usize) -> Result<Expr, FilterError> {
        let mut parts = vec![self.both(depth)?];
        while self.takes(&["or", "||"]).is_some() {
            parts.push(self.both(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Any(parts) })
    }

    fn both(&mut self, depth: usize) -> Result<Expr, FilterError> {
        let mut parts = vec![self.one(depth)?];
        while self.takes(&["and", "&&"]).is_some() {
            parts.push(self.one(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::All(parts) })
    }

    fn one(&mut self, depth: usize) -> Result<Expr, FilterError> {
        if depth > DEPTH_MAX {
            return Err(self.wrong(format!("at most {DEPTH_MAX} may stand in each other")));
        }
        if self.takes(&["not", "!"]).is_some() {
            return Ok(Expr::Not(Box::new(self.one(depth + 1)?)));
        }
        let open = self.next;
        if self.takes(&["("]).is_some() {
            let inner = self.either(depth + 1)?;
            if self.takes(&[")"]).is_none() {
                let column = self.pieces[open].at + 1;
                return Err(self.wrong(format!("expected ')' for the '(' in column {column}")));
            }
            return Ok(inner);
        }
        self.test()
    }

    fn test(&mut self) -> Result<Expr, FilterError> {
        let Some(piece) = self.peek().filter(|piece| !piece.quoted) else {
            return Err(self.wrong(self.expected()));
        };
        let field = first_name(&piece.text);
        if OF_EVENTS.fields.contains(&field) && !self.words.fields.contains(&field) {
            return Err(self.wrong(format!("nothing here has that field; {}", self.expected())));
        }
        match field {
            "src" => self.party(Side::Src),
            "dst" => self.party(Side::Dst),
            "host" => self.party(Side::Either),
            "iface" => self.interface(),
            "kind" => self.word(Field::Kind, &[self.words.kinds]),
            "event" => self.word(Field::Event, &[self.words.found[0]]),
            "verdict" => self.word(Field::Verdict, &[self.words.found[1]]),
            "mode" => self.word(Field::Mode, &[MODES]),
            "priority" => self.number(Field::Priority, 7),
            "channel" => self.number(Field::Channel, u64::MAX),
            "circuit" => self.circuit(),
            "label" => self.number(Field::Label, u16::MAX.into()),
            "len" => self.number(Field::Length, u32::MAX.into()),
            "sap" => self.number(Field::Sap, 255),
            _ => self.bare(),
        }
    }

    /// A kind where it stands alone, and a field in front of a number.
    fn circuit(&mut self) -> Result<Expr, FilterError> {
        let is_field = self.pieces.get(self.next + 1).is_some_and(|piece| {
            let is_number = piece.text.starts_with(|first: char| first.is_ascii_digit());
            !piece.quoted && (is_number || COMPARES.contains(&&*piece.text))
        });
        if is_field { self.number(Field::Circuit, u64::MAX) } else { self.bare() }
    }

    fn party(&mut self, side: Side) -> Result<Expr, FilterError> {
        self.next += 1;
        let is = self.takes(&["=", "==", "!="]).is_none_or(|sign| sign != "!=");
        let is_other = |text: &str| SYMBOLS.contains(&text) || JOINS.contains(&text);
        let is_station = |piece: &&Piece| piece.quoted || !is_other(&piece.text);
        let Some(piece) = self.peek().filter(is_station) else {
            return Err(self.wrong("expected a station's name, number or address"));
        };
        if !piece.quoted && piece.text.contains(':') && !is_address(&piece.text) {
            return Err(self.wrong("an address is six pairs of hexadecimal digits with ':' between them"));
        }
        let called = piece.text.clone();
        self.next += 1;
        Ok(Expr::Party(side, is, called))
    }

    fn interface(&mut self) -> Result<Expr, FilterError> {
        self.next += 1;
        let is = self.takes(&["=", "==", "!="]).is_none_or(|sign| sign != "!=");
        let is_other = |text: &str| SYMBOLS.contains(&text) || JOINS.contains(&text);
        let is_name = |piece: &&Piece| piece.quoted || !is_other(&piece.text);
        let Some(piece) = self.peek().filter(is_name) else {
            return Err(self.wrong("expected the name of an interface"));
        };
        let name = piece.text.clone();
        self.next += 1;
        Ok(Expr::Interface(is, name))
    }

    fn word(&mut self, field: Field, lists: &[&[&'static str]]) -> Result<Expr, FilterError> {
        self.next += 1;
        let is = self.takes(&["=", "==", "!="]).is_none_or(|sign| sign != "!=");
        let known = known(lists);
        let Some(word) = self.takes(&known) else {
            let guess = self.guess(&known);
            return Err(self.wrong(format!("{guess}expected one of: {}", known.join(", "))));
        };
        Ok(Expr::Word(field, is, word))
    }

    fn bare(&mut self) -> Result<Expr, FilterError> {
        let [events, verdicts] = self.words.found;
        let known = known(&[self.words.kinds, events, verdicts]);
        if let Some(word) = self.takes(&known) {
            return Ok(Expr::Word(Field::Bare, true, word));
        }
        let guess = self.guess(&[&known[..], self.words.fields, &["station", "not"]].concat());
        Err(self.wrong(format!("{guess}{}", self.expected())))
    }

    fn expected(&self) -> String {
        let words = if self.words.found[0].is_empty() { "token" } else { "token or late" };
        format!("expected a field ({}), or a word such as {words}", self.words.fields.join(", "))
    }

    fn guess(&self, known: &[&str]) -> String {
        let meant = self.peek().and_then(|piece| meant(&piece.text, known));
        meant.map_or_else(String::new, |word| format!("did you mean '{word}'? "))
    }

    fn number(&mut self, field: Field, largest: u64) -> Result<Expr, FilterError> {
        self.next += 1;
        let compare = match self.takes(COMPARES).as_deref() {
            Some("!=") => Compare::Unequal,
            Some("<") => Compare::Less,
            Some("<=") => Compare::AtMost,
            Some(">") => Compare::More,
            Some(">=") => Compare::AtLeast,
            _ => Compare::Equal,
        };
        let digits = self.peek().filter(|piece| piece.text.bytes().all(|octet| octet.is_ascii_digit()));
        let number = digits.and_then(|piece| piece.text.parse().ok()).filter(|number| *number <= largest);
        let Some(number) = number else {
            let range = if largest == u64::MAX { String::new() } else { format!(" from 0 to {largest}") };
            return Err(self.wrong(format!("expected a number{range}")));
        };
        self.next += 1;
        Ok(Expr::Number(field, compare, number))
    }
}

fn is_address(text: &str) -> bool {
    let is_pair = |pair: &str| pair.len() == 2 && pair.chars().all(|digit| digit.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(is_pair)
}
