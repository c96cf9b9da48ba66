//! Groups of channels that share what is reserved for them (Tenet paper section 6).

use crate::short_name;
use alloc::format;
use alloc::string::String;

/// A name of 1 to 16 letters, digits, `-`, `_` and `.`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct GroupName([u8; short_name::OCTETS]);

/// A text that names no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a group has a name of 1 to {} letters, digits, '-', '_' and '.'", GroupName::OCTETS)]
pub struct BadGroupName;

impl GroupName {
    /// The name in these octets, which have nothing but zeros behind it.
    ///
    /// # Errors
    /// [`BadGroupName`].
    pub fn of_octets(octets: [u8; Self::OCTETS]) -> Result<Self, BadGroupName> {
        if short_name::is_plain(&octets) { Ok(Self(octets)) } else { Err(BadGroupName) }
    }
}

short_name::short_name!(GroupName, BadGroupName, BadGroupName);

/// The group of a channel. All members have the traffic that each of them states, and the group's contract is
/// `at_once` times that: no more members send at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Group {
    /// Its name among the groups of its user.
    pub name: GroupName,
    /// How many members send at a time, 1 to [`Self::AT_ONCE_MAX`].
    pub at_once: u8,
}

impl Group {
    /// The most members that send at a time.
    pub const AT_ONCE_MAX: u8 = 16;

    /// Its contract in words.
    pub fn words(&self) -> String {
        let Self { name, at_once } = self;
        match at_once {
            1 => format!("1 member of group {name} sends at a time"),
            many => format!("{many} members of group {name} send at a time"),
        }
    }

    /// True if so many members can send at a time.
    pub const fn is_sound(&self) -> bool {
        self.at_once >= 1 && self.at_once <= Self::AT_ONCE_MAX
    }
}

/// A group as nodes know it: groups of two users are two, whatever their names. Members may have different
/// hosts, which trust each other to state their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// The user of all members.
    pub uid: u32,
    /// The name.
    pub name: GroupName,
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn a_group_has_a_short_plain_name() {
        let name: GroupName = "rest-of.us_2".parse().unwrap();
        assert_eq!(
            (name.to_string().as_str(), GroupName::of_octets(name.octets())),
            ("rest-of.us_2", Ok(name))
        );
        assert!("a234567890123456".parse::<GroupName>().is_ok());
        for bad in ["", "a2345678901234567", "a b", "a/b", "ä"] {
            assert_eq!(bad.parse::<GroupName>(), Err(BadGroupName), "{bad}");
        }
        let mut octets = name.octets();
        octets[14] = b'x';
        assert!(GroupName::of_octets(octets).is_err(), "something stands behind the name");
        let sound = |at_once| Group { name, at_once }.is_sound();
        assert_eq!([0, 1, 16, 17].map(sound), [false, true, true, false]);
    }
}
