//! The part of a channel's way for which nothing is guaranteed, in words that are the same everywhere.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

const NAME_OCTETS: usize = 32;

/// The name of a node, as its announcement has it: 32 octets at most.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "String", into = "String"))]
pub struct NodeName {
    octets: [u8; NAME_OCTETS],
    len: u8,
}

impl NodeName {
    /// A name; of a longer one what fits.
    pub fn new(name: &str) -> Self {
        let len = name.floor_char_boundary(NAME_OCTETS);
        let mut octets = [0; NAME_OCTETS];
        octets[..len].copy_from_slice(&name.as_bytes()[..len]);
        Self { octets, len: len as u8 }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.octets[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl From<String> for NodeName {
    fn from(name: String) -> Self {
        Self::new(&name)
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.as_str().to_owned()
    }
}

/// The first hop of a channel that leads through a network without Rota: no bound is guaranteed there, and no
/// unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Withdrawn {
    /// The node before that network.
    pub from: NodeName,
    /// The node behind it.
    pub to: NodeName,
    /// Further hops of that kind.
    pub more: u8,
}

impl fmt::Display for Withdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no guarantee from {} to {}", self.from.as_str(), self.to.as_str())?;
        match self.more {
            0 => Ok(()),
            1 => f.write_str(" and on one more hop"),
            more => write!(f, " and on {more} more hops"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn the_hop_is_named_in_words() {
        let of = |more| Withdrawn { from: NodeName::new("g1"), to: NodeName::new("g2"), more }.to_string();
        assert_eq!(of(0), "no guarantee from g1 to g2");
        assert_eq!(of(1), "no guarantee from g1 to g2 and on one more hop");
        assert_eq!(of(2), "no guarantee from g1 to g2 and on 2 more hops");
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_between_letters() {
        assert_eq!(NodeName::new("node-1").as_str(), "node-1");
        let long = format!("{}ßß", "x".repeat(31));
        assert_eq!(NodeName::new(&long).as_str(), "x".repeat(31));
        assert_eq!(NodeName::default().as_str(), "");
    }
}
