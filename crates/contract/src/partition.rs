//! The name of a partition: a part of a link's capacity with an admission of its own.

use crate::short_name;

/// The word for what no partition names.
const REST: &str = "rest";

/// A name of 1 to 16 letters, digits, `-`, `_` and `.`, other than `rest`: no partition has that one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "alloc::string::String", into = "alloc::string::String"))]
pub struct PartitionName([u8; short_name::OCTETS]);

/// A text that names no partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPartitionName {
    /// It is empty, too long, or has other characters.
    #[error("a partition has a name of 1 to {} letters, digits, '-', '_' and '.'", PartitionName::OCTETS)]
    Characters,
    /// The word of all that is in no partition.
    #[error("'{REST}' is what no partition names; leave it out")]
    Rest,
}

impl PartitionName {
    /// The name in these octets, which have nothing but zeros behind it.
    ///
    /// # Errors
    /// [`BadPartitionName`].
    pub fn of_octets(octets: [u8; Self::OCTETS]) -> Result<Self, BadPartitionName> {
        match short_name::text(&octets) {
            _ if !short_name::is_plain(&octets) => Err(BadPartitionName::Characters),
            REST => Err(BadPartitionName::Rest),
            _ => Ok(Self(octets)),
        }
    }
}

short_name::short_name!(PartitionName, BadPartitionName, BadPartitionName::Characters);

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn a_name_has_so_many_plain_characters_and_is_not_that_of_the_rest() {
        for name in ["a", "studio-1_x.y", "0123456789abcdef"] {
            let parsed: PartitionName = name.parse().expect("a name");
            assert_eq!((parsed.as_str(), &*parsed.to_string()), (name, name));
            assert_eq!(PartitionName::of_octets(parsed.octets()), Ok(parsed));
        }
        for name in ["", "0123456789abcdefg", "a b", "ä", "a/b", "a\0b"] {
            assert_eq!(name.parse::<PartitionName>(), Err(BadPartitionName::Characters), "{name}");
        }
        assert_eq!("rest".parse::<PartitionName>(), Err(BadPartitionName::Rest));
        assert_eq!(PartitionName::of_octets([0; 16]), Err(BadPartitionName::Characters));
    }
}
