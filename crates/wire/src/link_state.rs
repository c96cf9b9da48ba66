//! A node's statement of its neighbours, as gateways and hosts pass it on to each other (link-state routing,
//! as in OSPF). It travels between neighbours beside the messages of set-up, and never on a segment.
//!
//! ```text
//! kind = 0x4c | version = 2 | flags | name octets || origin : 64 || sequence : 64
//! name … | count | withdrawn : 64 || ids : 64 …
//! ```
//!
//! Flag 1: the node forwards packets between its ports. The ids of the neighbours rise, so that one statement
//! has one form. Bit i of *withdrawn*: the neighbour at place i, from 0, is reached over a network without
//! Rota only, where nothing is guaranteed.

use crate::bodies::MAX_NAME_OCTETS;
use crate::fields::{Malformed, Reader, Writer};
use crate::name::is_printable;
use rota_contract::NodeId;

/// The first octet. Messages of set-up begin with another one.
pub const LINK_STATE_KIND: u8 = 0x4c;
/// The version of this format.
pub const LINK_STATE_VERSION: u8 = 2;
/// Most neighbours of a node.
pub const NEIGHBOURS_MAX: usize = 64;
/// The longest statement.
pub const LINK_STATE_OCTETS_MAX: usize = 4 + 16 + MAX_NAME_OCTETS + 1 + 8 + 8 * NEIGHBOURS_MAX;
const _: () = assert!(NEIGHBOURS_MAX <= 64, "each has a bit");

const FORWARDS: u8 = 1;
const ID_OCTETS: usize = 8;

/// A node's statement of its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStatement<'a> {
    /// The node that states it.
    pub origin: NodeId,
    /// Of two statements of a node the one with the higher number is newer.
    pub sequence: u64,
    /// The node forwards packets between its ports.
    pub forwards: bool,
    /// The name of the node.
    pub name: &'a str,
    withdrawn: u64,
    /// The ids of the neighbours as they are on the wire.
    ids: &'a [u8],
}

impl<'a> LinkStatement<'a> {
    /// The ids of the neighbours, rising, and whether nothing is guaranteed on the way to them.
    pub fn neighbours(&self) -> impl Iterator<Item = (NodeId, bool)> + Clone + 'a {
        let (ids, _) = self.ids.as_chunks::<ID_OCTETS>();
        let withdrawn = self.withdrawn;
        let is_withdrawn = move |place: usize| withdrawn >> place & 1 == 1;
        ids.iter().enumerate().map(move |(n, id)| (NodeId(u64::from_be_bytes(*id)), is_withdrawn(n)))
    }

    /// Reads a statement.
    ///
    /// # Errors
    /// The field that is wrong: an unknown kind, version or flag, a name that cannot be printed, the id of no
    /// node, ids that do not rise, too many of them, or octets that are missing or left over.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(octets);
        if reader.u8()? != LINK_STATE_KIND {
            return Err(Malformed::Field("link state kind"));
        }
        let version = reader.u8()?;
        if version != LINK_STATE_VERSION {
            return Err(Malformed::Version(version));
        }
        let flags = reader.u8()?;
        if flags & !FORWARDS != 0 {
            return Err(Malformed::Field("link state flags"));
        }
        let name_octets = usize::from(reader.u8()?);
        let (origin, sequence) = (NodeId(reader.u64()?), reader.u64()?);
        if !origin.is_known() {
            return Err(Malformed::Field("link state origin"));
        }
        let name = core::str::from_utf8(reader.take(name_octets)?).ok();
        let is_name = |name: &&str| name.len() <= MAX_NAME_OCTETS && name.chars().all(is_printable);
        let name = name.filter(is_name).ok_or(Malformed::Field("link state name"))?;
        let count = usize::from(reader.u8()?);
        if count > NEIGHBOURS_MAX {
            return Err(Malformed::Field("link state neighbours"));
        }
        let withdrawn = reader.u64()?;
        if withdrawn.checked_shr(count as u32).is_some_and(|beyond| beyond != 0) {
            return Err(Malformed::Field("link state withdrawn"));
        }
        let ids = reader.take(count * ID_OCTETS)?;
        reader.end()?;
        let statement = Self { origin, sequence, forwards: flags == FORWARDS, name, withdrawn, ids };
        let mut before = NodeId::UNKNOWN;
        for (neighbour, _) in statement.neighbours() {
            if neighbour <= before || neighbour == origin {
                return Err(Malformed::Field("link state neighbours"));
            }
            before = neighbour;
        }
        Ok(statement)
    }

    /// Writes a statement to the front of `into`, which holds [`LINK_STATE_OCTETS_MAX`]; returns its octets.
    /// Of the neighbours, which must rise, the first [`NEIGHBOURS_MAX`] are written. A name that cannot be
    /// stated is left out.
    pub fn emit(
        into: &mut [u8],
        (origin, sequence): (NodeId, u64),
        forwards: bool,
        name: &str,
        neighbours: impl Iterator<Item = (NodeId, bool)> + Clone,
    ) -> usize {
        let is_name = name.len() <= MAX_NAME_OCTETS && name.chars().all(is_printable);
        let name = if is_name { name } else { "" };
        let neighbours = neighbours.take(NEIGHBOURS_MAX);
        let mut writer = Writer::new(into);
        writer.u8(LINK_STATE_KIND).u8(LINK_STATE_VERSION);
        writer.u8(u8::from(forwards) * FORWARDS).u8(name.len() as u8);
        writer.u64(origin.0).u64(sequence).bytes(name.as_bytes());
        writer.u8(neighbours.clone().count() as u8);
        let bits = neighbours.clone().enumerate().filter(|(_, (_, withdrawn))| *withdrawn);
        writer.u64(bits.fold(0, |bits, (place, _)| bits | 1 << place));
        neighbours.for_each(|(id, _)| {
            writer.u64(id.0);
        });
        writer.written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(origin: u64, sequence: u64, forwards: bool, name: &str, ids: &[u64]) -> Vec<u8> {
        let mut into = [0; LINK_STATE_OCTETS_MAX];
        // Those with an even id are reached over a network without Rota.
        let ids = ids.iter().map(|id| (NodeId(*id), id % 2 == 0));
        let octets = LinkStatement::emit(&mut into, (NodeId(origin), sequence), forwards, name, ids);
        into[..octets].to_vec()
    }

    #[test]
    fn a_statement_octet_by_octet() {
        let octets = written(0x0102, 7, true, "g1", &[3, 0x0a0a]);
        let head = [0x4c, 2, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 7, b'g', b'1', 2];
        let withdrawn = [0, 0, 0, 0, 0, 0, 0, 0b10];
        let ids = [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0x0a, 0x0a];
        assert_eq!(octets, [&head[..], &withdrawn, &ids].concat());
    }

    #[test]
    fn a_statement_that_no_node_makes_is_refused_by_its_field() {
        let good = written(9, 1, false, "n", &[1, 2]);
        let with = |at: usize, value: u8| {
            let mut changed = good.clone();
            changed[at] = value;
            changed
        };
        let refused = |octets: &[u8]| LinkStatement::parse(octets).unwrap_err();
        assert_eq!(refused(&with(0, 1)), Malformed::Field("link state kind"));
        assert_eq!(refused(&with(1, 1)), Malformed::Version(1));
        assert_eq!(refused(&with(2, 2)), Malformed::Field("link state flags"));
        assert_eq!(refused(&with(11, 0)), Malformed::Field("link state origin"));
        assert_eq!(refused(&with(20, 7)), Malformed::Field("link state name"));
        assert_eq!(refused(&with(21, 65)), Malformed::Field("link state neighbours"));
        assert_eq!(refused(&with(29, 4)), Malformed::Field("link state withdrawn"), "there are two");
        assert_eq!(refused(&with(37, 2)), Malformed::Field("link state neighbours"), "twice the same");
        assert_eq!(refused(&with(37, 3)), Malformed::Field("link state neighbours"), "they fall");
        assert_eq!(refused(&with(45, 9)), Malformed::Field("link state neighbours"), "its own neighbour");
        assert_eq!(refused(&good[..good.len() - 1]), Malformed::Truncated);
        assert_eq!(refused(&[&good[..], &[0]].concat()), Malformed::Trailing);
    }

    #[test]
    fn a_name_has_a_largest_length() {
        let longest = "x".repeat(MAX_NAME_OCTETS);
        let mut octets = written(9, 1, false, &longest, &[]);
        assert_eq!(LinkStatement::parse(&octets).unwrap().name, longest);
        octets[3] += 1;
        octets.insert(20, b'x');
        assert_eq!(LinkStatement::parse(&octets), Err(Malformed::Field("link state name")));
    }

    #[test]
    fn a_name_that_cannot_be_stated_is_left_out() {
        let octets = written(9, 1, false, "a\u{1b}[31m", &[]);
        assert_eq!(LinkStatement::parse(&octets).unwrap().name, "");
        let octets = written(9, 1, false, &"x".repeat(MAX_NAME_OCTETS + 1), &[]);
        assert_eq!(LinkStatement::parse(&octets).unwrap().name, "");
    }

    proptest! {
        #[test]
        fn a_statement_is_read_as_it_was_written(
            origin in 1u64.., sequence: u64, forwards: bool, name in "[a-zäß0-9-]{0,10}",
            ids in prop::collection::btree_set(1u64.., 0..=NEIGHBOURS_MAX)
        ) {
            let ids: Vec<u64> = ids.into_iter().filter(|id| *id != origin).collect();
            let octets = written(origin, sequence, forwards, &name, &ids);
            let read = LinkStatement::parse(&octets).unwrap();
            prop_assert_eq!((read.origin, read.sequence), (NodeId(origin), sequence));
            prop_assert_eq!((read.forwards, read.name), (forwards, &name[..]));
            let stated = ids.iter().map(|id| (*id, id % 2 == 0)).collect::<Vec<_>>();
            prop_assert_eq!(read.neighbours().map(|(id, is)| (id.0, is)).collect::<Vec<_>>(), stated);
        }
    }
}
