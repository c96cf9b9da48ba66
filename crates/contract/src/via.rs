//! The gateways that the path of a channel is to lead through.

use core::fmt;
use core::str::FromStr;

/// Names of nodes in the order of the path, with commas between them: up to 14 in 128 octets, or none.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "alloc::string::String", into = "alloc::string::String"))]
pub struct Via {
    octets: [u8; Self::OCTETS],
    len: usize,
}

/// A text that names no gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "gateways are named in their order with commas between them, at most {} in {} octets, such as g1,g2; \
     the two ends of the channel are none",
    Via::MOST,
    Via::OCTETS
)]
pub struct BadVia;

impl Via {
    /// Octets of all names and commas.
    pub const OCTETS: usize = 128;
    /// The most gateways that a path may have.
    pub const MOST: usize = 14;

    /// The names, the first one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.as_str().split(',').filter(|name| !name.is_empty())
    }

    /// The names as they were given.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.octets[..self.len]).unwrap_or_default()
    }
}

impl FromStr for Via {
    type Err = BadVia;

    fn from_str(text: &str) -> Result<Self, BadVia> {
        let (mut octets, len) = ([0; Self::OCTETS], text.len());
        octets.get_mut(..len).ok_or(BadVia)?.copy_from_slice(text.as_bytes());
        let is_name = |name: &str| !name.is_empty() && !name.contains(|of: char| of.is_whitespace());
        let is_sound =
            text.is_empty() || text.split(',').all(is_name) && text.split(',').count() <= Self::MOST;
        is_sound.then_some(Self { octets, len }).ok_or(BadVia)
    }
}

impl fmt::Debug for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl TryFrom<alloc::string::String> for Via {
    type Error = BadVia;

    fn try_from(text: alloc::string::String) -> Result<Self, BadVia> {
        text.parse()
    }
}

impl From<Via> for alloc::string::String {
    fn from(via: Via) -> Self {
        alloc::borrow::ToOwned::to_owned(via.as_str())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    #[test]
    fn gateways_are_named_with_commas_between_them_or_not_at_all() {
        let names = |text: &str| -> Option<Vec<std::string::String>> {
            let via: Via = text.parse().ok()?;
            assert_eq!(via.as_str(), text);
            Some(via.names().map(std::string::String::from).collect())
        };
        assert_eq!(names("g1,m"), Some(["g1", "m"].map(Into::into).to_vec()));
        assert_eq!(names(""), Some(Vec::new()), "none: an open channel is bound to no gateway any more");
        let long = "x".repeat(129);
        for wrong in ["g1,", ",g1", "g1, m", ",", "g1,,m", &long, "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"] {
            assert_eq!(names(wrong), None, "{wrong}");
        }
    }
}
