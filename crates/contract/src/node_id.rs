//! The identity of a host.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

/// The identity of a host: drawn once and kept (decision 020). A host with several ports has one id and an
/// address on each segment. People and programs read it as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct NodeId(pub u64);

impl NodeId {
    /// Hexadecimal digits of an id in text.
    pub const DIGITS: usize = 16;
    /// In the place of an id that is not known, as that of a station whose announcement was not heard. No
    /// node has it.
    pub const UNKNOWN: Self = Self(0);

    /// True if this is a node's id.
    pub const fn is_known(self) -> bool {
        self.0 != Self::UNKNOWN.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no node id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a node id has 16 hexadecimal digits")]
pub struct NotANodeId;

impl FromStr for NodeId {
    type Err = NotANodeId;

    fn from_str(text: &str) -> Result<Self, NotANodeId> {
        // A sign, too, would be a number's.
        let is_hex = text.len() == Self::DIGITS && text.bytes().all(|octet| octet.is_ascii_hexdigit());
        let id = if is_hex { u64::from_str_radix(text, 16).ok() } else { None };
        id.map(Self).ok_or(NotANodeId)
    }
}

impl TryFrom<String> for NodeId {
    type Error = NotANodeId;

    fn try_from(text: String) -> Result<Self, NotANodeId> {
        text.parse()
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_printed_and_in_no_other_form() {
        for id in [NodeId(1), NodeId(0x00c0_ffee_0000_0001), NodeId(u64::MAX), NodeId::UNKNOWN] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(NodeId(0xa5).to_string(), "00000000000000a5");
        for text in
            ["", "a5", "0x000000000000a5", "+0000000000000a5", "00000000000000a5 ", "00000000000000g5"]
        {
            assert_eq!(text.parse::<NodeId>(), Err(NotANodeId), "{text}");
        }
        assert!(!NodeId::default().is_known() && NodeId(1).is_known());
    }
}
