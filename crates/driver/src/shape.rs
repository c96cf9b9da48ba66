//! Wire speed on a virtual port: a token bucket that charges real Ethernet framing, or two HTB classes of it.

use crate::netlink::{Class, Handle, LinkIndex, NetlinkError, Route, Word};
use rota_units::{BitRate, Octets, Span};

/// Which datagrams the priority class takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityMatch {
    /// IPv4 packets with this DSCP (0 to 63).
    Dscp(u8),
    /// UDP datagrams to a port in this range, both ends included.
    UdpPorts {
        /// The lowest port.
        first: u16,
        /// The highest port.
        last: u16,
    },
}

/// A class of a port that is served first and guaranteed a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioritySpec {
    /// Who is in it.
    pub matches: PriorityMatch,
    /// Its guaranteed share of the port, 1 to 99 per cent.
    pub share_percent: u8,
}

/// Why a priority rule makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A class has a part of the port.
    #[error("a priority class is guaranteed 1 to 99 per cent of a port, not {0}")]
    Share(u8),
    /// DSCP has six bits.
    #[error("a DSCP is 0 to 63, not {0}")]
    Dscp(u8),
    /// The range is empty.
    #[error("the port range {0} to {1} is empty: the first port must not be above the last")]
    Ports(u16, u16),
}

impl PrioritySpec {
    /// Whether the rule makes sense.
    ///
    /// # Errors
    /// What about it does not.
    pub fn check(&self) -> Result<(), ShapeError> {
        if !(1..=99).contains(&self.share_percent) {
            return Err(ShapeError::Share(self.share_percent));
        }
        match self.matches {
            PriorityMatch::Dscp(dscp) if dscp > 63 => Err(ShapeError::Dscp(dscp)),
            PriorityMatch::UdpPorts { first, last } if first > last => Err(ShapeError::Ports(first, last)),
            PriorityMatch::Dscp(_) | PriorityMatch::UdpPorts { .. } => Ok(()),
        }
    }
}

/// One direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortShape {
    /// The wire rate, framing included.
    pub rate: BitRate,
    /// What the port holds before it drops; with a priority class, each of the two classes holds this much.
    pub queue: Octets,
    /// A class that goes first.
    pub priority: Option<PrioritySpec>,
    /// The MTU of what crosses it.
    pub mtu: u16,
}

/// The queue on one interface. Each change gets a new handle, because the kernel refuses another kind under
/// the old one.
#[derive(Debug)]
pub struct Shaper {
    link: LinkIndex,
    generation: u16,
}

const FIRST_MAJOR: u16 = 0x10;
const ALL: u16 = 1;
const VIDEO: u16 = 0x10;
const REST: u16 = 0x20;

impl Shaper {
    /// For `link`, whose queue is the kernel's own so far.
    pub const fn new(link: LinkIndex) -> Self {
        Self { link, generation: 0 }
    }

    /// Puts `shape` in the place of the present queue; what the old queue held is lost.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn apply(&mut self, route: &mut Route, shape: &PortShape) -> Result<(), NetlinkError> {
        let major = FIRST_MAJOR + self.generation;
        self.generation = (self.generation + 1) % 0x1000;
        let root = Handle::new(major, 0);
        let burst = burst(shape.rate, shape.mtu);
        let Some(priority) = shape.priority else {
            return route.set_tbf(self.link, root, shape.rate, burst, shape.queue);
        };
        let all = Handle::new(major, ALL);
        let video = Handle::new(major, VIDEO);
        let rest = Handle::new(major, REST);
        let (video_rate, rest_rate) = split(shape.rate, priority.share_percent);
        let class = |rate, prio| Class { rate, ceil: shape.rate, burst, prio };
        route.set_htb(self.link, root, REST)?;
        route.add_htb_class(self.link, root, all, class(shape.rate, 0))?;
        for (name, class) in [(rest, class(rest_rate, 1)), (video, class(video_rate, 0))] {
            route.add_htb_class(self.link, all, name, class)?;
            route.set_class_fifo(self.link, name, shape.queue)?;
        }
        for rule in rules(priority.matches) {
            route.add_class_filter(self.link, root, &rule, video)?;
        }
        Ok(())
    }
}

/// A full frame and 100 µs of the wire. The slack lets a late timer catch up, so that the port loses no
/// capacity, and no frame leaves more than 100 µs ahead of a real wire.
pub fn burst(rate: BitRate, mtu: u16) -> Octets {
    Octets::new(u64::from(mtu) + 14) + rate.octets_in_down(Span::from_micros(100))
}

fn split(rate: BitRate, percent: u8) -> (BitRate, BitRate) {
    let video = BitRate::new(rate.as_bps() / 100 * u64::from(percent)).unwrap_or(rate);
    (video, BitRate::new(rate.as_bps() - video.as_bps()).unwrap_or(rate))
}

/// The u32 rules of which any one puts a packet into the class. Offsets count from the IPv4 header, which
/// has no options in the lab.
fn rules(matches: PriorityMatch) -> Vec<Vec<Word>> {
    match matches {
        PriorityMatch::Dscp(dscp) => {
            // Version, length, *type of service*, total length: DSCP is the upper six bits
            // of the second octet.
            vec![vec![Word { offset: 0, mask: 0x00fc_0000, value: u32::from(dscp) << 18 }]]
        }
        PriorityMatch::UdpPorts { first, last } => {
            let not_a_later_fragment = Word { offset: 4, mask: 0x0000_1fff, value: 0 };
            let udp = Word { offset: 8, mask: 0x00ff_0000, value: 17 << 16 };
            let port = |(value, mask): (u16, u16)| Word {
                offset: 20,
                mask: u32::from(mask),
                value: u32::from(value),
            };
            prefixes(first, last).map(|p| vec![udp, not_a_later_fragment, port(p)]).collect()
        }
    }
}

/// A port range as (value, mask) pairs, for u32 compares masked words only.
fn prefixes(first: u16, last: u16) -> impl Iterator<Item = (u16, u16)> {
    let mut next = u32::from(first);
    let end = u32::from(last) + 1;
    core::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let mut size = if next == 0 { 1 << 16 } else { 1 << next.trailing_zeros() };
        while size > end - next {
            size /= 2;
        }
        let value = u16::try_from(next).ok()?;
        next += size;
        Some((value, u16::try_from(0x1_0000 - size).unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_cover_exactly_the_range() {
        for (first, last) in [(0, 65535), (5000, 5006), (1, 1), (65535, 65535), (1000, 33000), (0, 0)] {
            let pairs: Vec<_> = prefixes(first, last).collect();
            for port in 0..=u16::MAX {
                let hits = pairs.iter().filter(|(value, mask)| port & mask == *value).count();
                assert_eq!(
                    hits,
                    usize::from((first..=last).contains(&port)),
                    "port {port} of {first}..={last}"
                );
            }
        }
    }

    #[test]
    fn a_bucket_holds_one_frame_and_100_us() {
        assert_eq!(burst(BitRate::from_mbit(10), 1_500).get(), 1_639);
        assert_eq!(burst(BitRate::from_mbit(1_000), 1_500).get(), 14_014);
        assert_eq!(burst(BitRate::from_mbit(10), 9_000).get(), 9_139, "a jumbo frame fits");
    }

    #[test]
    fn shares_add_up() {
        let (video, rest) = split(BitRate::from_mbit(10), 95);
        assert_eq!((video.as_bps(), rest.as_bps()), (9_500_000, 500_000));
    }

    #[test]
    fn bad_rules_are_named() {
        let rule = |matches, share_percent| PrioritySpec { matches, share_percent }.check();
        assert_eq!(rule(PriorityMatch::Dscp(46), 95), Ok(()));
        assert_eq!(rule(PriorityMatch::Dscp(64), 95), Err(ShapeError::Dscp(64)));
        assert_eq!(rule(PriorityMatch::Dscp(1), 100), Err(ShapeError::Share(100)));
        let ports = PriorityMatch::UdpPorts { first: 9, last: 8 };
        assert_eq!(rule(ports, 50), Err(ShapeError::Ports(9, 8)));
    }
}
