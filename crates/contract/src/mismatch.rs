//! Stations that do not fit: one code for machines, nodes and programs.

use strum::VariantArray;

/// A mismatch between two stations, or of one station. Two values go with most of them: `ours` and `theirs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[repr(u64)]
#[non_exhaustive]
pub enum Mismatch {
    /// Another key.
    Key = 1,
    /// Another segment.
    Segment,
    /// Another cycle, ns.
    Cycle,
    /// Another rate of the link, bits a second.
    Rate,
    /// Another stated number of stations.
    Stations,
    /// Another policy of non-real-time visits: frames, 0 for all.
    #[strum(serialize = "nrt-policy")]
    Policy,
    /// Another version of the protocol.
    Version,
    /// Another setting; both values are digests of all.
    #[strum(serialize = "other-setting")]
    Other,
    /// A frame had this station's own address as its source.
    OwnAddress,
    /// Two have one name; the other one's address stands in `ours`.
    #[strum(serialize = "double-name")]
    Name,
    /// Two have one node address of link control, in `theirs`; the other one's address stands in `ours`.
    #[strum(serialize = "double-llc-address")]
    LlcAddress,
    /// It kept the token again and again, at longest for `theirs`, 0 where this station saw none of it, and
    /// is left out for `ours`, both ns.
    #[strum(serialize = "token-hog")]
    Hog,
    /// It sent outside its slots again and again, and is left out for `ours`, ns.
    #[strum(serialize = "outside-slot")]
    Stray,
    /// The same of this station itself.
    #[strum(serialize = "token-hog-here")]
    HogHere,
    /// The same of this station itself.
    #[strum(serialize = "outside-slot-here")]
    StrayHere,
    /// Another version of the link header.
    #[strum(serialize = "link-version")]
    Link,
    /// Another MTU, octets.
    Mtu,
    /// Another largest buffer of a switch port, octets.
    PortQueue,
    /// Another worst-case latency of ordinary traffic, ns.
    #[strum(serialize = "nrt-latency")]
    Latency,
    /// Another percentage of the cycle that ordinary traffic has at least.
    #[strum(serialize = "nrt-share")]
    Share,
    /// Another death timer, ns.
    #[strum(serialize = "death-timeout")]
    Death,
    /// 1 if the death timer follows the stalls of the hosts, 0 if not.
    FollowStalls,
    /// 1 for one half-duplex wire, 0 for full duplex.
    HalfDuplex,
    /// Another time of a hop, ns.
    HopCost,
    /// Another cost of a visit, ns.
    VisitCost,
    /// Another cost of a frame, ns.
    FrameCost,
    /// Another time to prepare a frame, ns.
    PrepareCost,
    /// It fell silent `theirs` times, and is held off for `ours`, ns.
    HeldOff,
    /// The same of this station itself.
    HeldOffHere,
    /// Two stations have one node id, `theirs`; `ours` is the address of the other one.
    #[strum(serialize = "double-node-id")]
    NodeId,
    /// Another medium: 0 for RETHER, 1 for a point-to-point link.
    Medium,
    /// It is one too many on a point-to-point link, which has two ends.
    ThirdStation,
    /// The segment is divided in another way: the numbers of partitions.
    Partitions,
}

impl Mismatch {
    /// The word that programs use.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// True if a station is left out of the token for what it did.
    pub fn is_exclusion(self) -> bool {
        matches!(self, Self::Hog | Self::Stray | Self::HogHere | Self::StrayHere)
    }

    /// True if a station has to wait because it fell silent several times.
    pub fn is_hold_off(self) -> bool {
        matches!(self, Self::HeldOff | Self::HeldOffHere)
    }

    /// Its code.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// The mismatch with this code; `None` for a code that this version does not know.
    pub fn from_code(code: u64) -> Option<Self> {
        let place = usize::try_from(code).ok()?.checked_sub(1)?;
        Self::VARIANTS.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mismatch_has_a_code_and_a_word_of_its_own() {
        for (at, kind) in Mismatch::VARIANTS.iter().enumerate() {
            assert_eq!((kind.code(), Mismatch::from_code(kind.code())), (at as u64 + 1, Some(*kind)));
            let same = Mismatch::VARIANTS.iter().filter(|other| other.word() == kind.word());
            assert_eq!(same.count(), 1, "{}", kind.word());
        }
        assert_eq!([0, 99].map(Mismatch::from_code), [None, None]);
    }
}
