//! Certificates as JSON documents: each part is a table of whole numbers by their names. The reader refuses
//! unknown, doubled and missing fields, and names where they stand. The library writes them.

pub use rota::certificate::write;
use rota_check::{
    Certificate, Channel, Fault, Flow, Frame, Hop, HopTerms, Network, Packets, Port, Promise, Rether, Slots,
    VERSION,
};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// More fields than any table of a certificate has.
const FIELDS_MAX: usize = 32;
/// As many as sixteen receivers behind the longest ways have.
const HOPS_MAX: usize = 128;
/// More receivers than any channel of a node has.
const PROMISES_MAX: usize = 64;

/// All numbers of a table, and no other field.
macro_rules! filled {
    ($table:expr, $kind:ident) => {{
        let (mut table, mut part) = ($table, $kind::default());
        for ((name, _), place) in $kind::FIELDS.iter().zip(part.places()) {
            *place = table.number(name)?;
        }
        table.end()?;
        part
    }};
}

/// The table of this name inside another one.
macro_rules! part {
    ($table:ident, $name:literal, $kind:ident) => {{
        let tree = $table.take($name)?;
        filled!(Table::of(&$table.place($name), tree)?, $kind)
    }};
}

/// The numbers of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    version: u64,
    channel: Channel,
    packets: Packets,
    hops: Vec<(HopTerms, Frame, Part)>,
    promises: Vec<Promise>,
    seal: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Port(Port, Vec<Flow>),
    Rether(Vec<Rether>),
    Slots(Slots),
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// A sentence that begins with the place of what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        let tree: Tree = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut table = Table::of("certificate", tree)?;
        let version = table.number("version")?;
        if version != VERSION {
            // Its fields are other ones, and none of them is wrong.
            return Err(format!("version: is {version}; this checker knows version {VERSION}, make it anew"));
        }
        let seal = table.take("seal")?;
        let Tree::Text(seal) = seal else { return Err("seal: is no text; write it in quotes".to_owned()) };
        let number = seal.parse::<u64>().ok().filter(|number| number.to_string() == seal);
        let seal = number.ok_or("seal: is no whole number of 64 bits, or has signs or zeros before it")?;
        let hops = Tree::list("hops", table.take("hops")?)?;
        if hops.len() > HOPS_MAX {
            return Err(format!("hops: a channel has {HOPS_MAX} hops at most"));
        }
        let promises = Tree::list("promises", table.take("promises")?)?;
        if promises.is_empty() || promises.len() > PROMISES_MAX {
            return Err(format!("promises: a channel has 1 to {PROMISES_MAX} receivers"));
        }
        let document = Self {
            version,
            channel: part!(table, "channel", Channel),
            packets: part!(table, "packets", Packets),
            hops: hops.into_iter().enumerate().map(|(n, hop)| read_hop(n, hop)).collect::<Result<_, _>>()?,
            promises: promises.into_iter().enumerate().map(read_promise).collect::<Result<_, _>>()?,
            seal,
        };
        table.end()?;
        Ok(document)
    }

    /// Has the independent checker look at it.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        let hops: Vec<Hop<'_>> = self.hops.iter().map(seen).collect();
        let Self { version, channel, packets, ref promises, seal, .. } = *self;
        rota_check::check(&Certificate { version, channel, packets, hops: &hops, promises, seal })
    }

    /// The promise to the receiver whose bound is the longest.
    pub fn promise(&self) -> &Promise {
        let longest = self.promises.iter().max_by_key(|promise| promise.delay);
        longest.expect("the reader takes no document without one")
    }

    /// How many receivers the channel has.
    pub fn receivers(&self) -> usize {
        self.promises.len()
    }

    /// The request.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// How many hops there are on all ways.
    pub fn hops(&self) -> usize {
        self.hops.len()
    }
}

/// A hop as the checker has it.
fn seen((terms, frame, part): &(HopTerms, Frame, Part)) -> Hop<'_> {
    let network = match part {
        Part::Port(port, flows) => Network::Port(*port, flows),
        Part::Rether(all) => Network::Rether(all),
        Part::Slots(slots) => Network::Slots(*slots),
    };
    Hop { terms: *terms, frame: *frame, network }
}

fn read_promise((n, tree): (usize, Tree)) -> Result<Promise, String> {
    Ok(filled!(Table::of(&format!("promises[{n}]"), tree)?, Promise))
}

fn read_hop(n: usize, tree: Tree) -> Result<(HopTerms, Frame, Part), String> {
    let mut table = Table::of(&format!("hops[{n}]"), tree)?;
    let terms = part!(table, "node", HopTerms);
    let frame = part!(table, "frame", Frame);
    let part = if table.has("rether") {
        Part::Rether(each(&mut table, "rether", |table| Ok(filled!(table, Rether)))?)
    } else if table.has("slots") {
        Part::Slots(part!(table, "slots", Slots))
    } else {
        let port = part!(table, "port", Port);
        Part::Port(port, each(&mut table, "flows", |table| Ok(filled!(table, Flow)))?)
    };
    table.end()?;
    Ok((terms, frame, part))
}

/// The tables of a list.
fn each<T>(
    table: &mut Table,
    name: &str,
    read: impl Fn(Table) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let place = table.place(name);
    let list = Tree::list(&place, table.take(name)?)?;
    list.into_iter().enumerate().map(|(k, tree)| read(Table::of(&format!("{place}[{k}]"), tree)?)).collect()
}

/// A JSON value of the kinds that a certificate has. A table keeps the order of its fields.
enum Tree {
    Number(u64),
    Text(String),
    List(Vec<Tree>),
    Table(Vec<(String, Tree)>),
}

impl Tree {
    fn list(place: &str, tree: Self) -> Result<Vec<Self>, String> {
        match tree {
            Self::List(list) => Ok(list),
            _ => Err(format!("{place}: is no list")),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 2^64 - 1, a text, a list or a table")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(one) = from.next_element()? {
            list.push(one);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Tree, A::Error> {
        let mut table: Vec<(String, Tree)> = Vec::new();
        while let Some(name) = from.next_key::<String>()? {
            if table.len() == FIELDS_MAX {
                return Err(A::Error::custom(format!("a table has {FIELDS_MAX} fields at most")));
            }
            if table.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format!("field '{name}' stands twice")));
            }
            table.push((name, from.next_value()?));
        }
        Ok(Tree::Table(table))
    }
}

/// A table whose fields are taken one after another.
struct Table {
    place: String,
    fields: Vec<(String, Tree)>,
}

impl Table {
    fn of(place: &str, tree: Tree) -> Result<Self, String> {
        match tree {
            Tree::Table(fields) => Ok(Self { place: place.to_owned(), fields }),
            _ => Err(format!("{place}: is no table")),
        }
    }

    fn place(&self, field: &str) -> String {
        if self.place == "certificate" { field.to_owned() } else { format!("{}.{field}", self.place) }
    }

    fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, _)| name == field)
    }

    fn take(&mut self, field: &str) -> Result<Tree, String> {
        let at = self.fields.iter().position(|(name, _)| name == field);
        at.map(|at| self.fields.swap_remove(at).1).ok_or_else(|| format!("{}: is missing", self.place(field)))
    }

    fn number(&mut self, field: &str) -> Result<u64, String> {
        match self.take(field)? {
            Tree::Number(number) => Ok(number),
            _ => Err(format!("{}: is no whole number from 0 to 2^64 - 1", self.place(field))),
        }
    }

    fn end(&self) -> Result<(), String> {
        match self.fields.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("{}: is no field of a certificate", self.place(name))),
        }
    }
}

/// Takes any octets as a certificate. Nothing may panic, and what is wrong has a sentence.
pub fn fuzz_certificate(data: &[u8]) {
    match Document::read(&String::from_utf8_lossy(data)) {
        Ok(document) => drop(document.check()),
        Err(sentence) => assert!(!sentence.is_empty()),
    }
}

#[cfg(test)]
mod tests;
