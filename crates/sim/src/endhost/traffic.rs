//! Messages on the wire of the paper: 10 Mbit/s, its web traffic, and the worst that fits.

use crate::engine::Stream;
use rota_units::{Instant, Span};

/// The longest period of an owner (ENDHOST-3.3-5).
pub const PERIOD: Span = Span::from_millis(100);
/// The shortest time from a packet to the next at 10 Mbit/s: 14,880 a second (ENDHOST-R35).
pub const GAP: Span = Span::from_nanos(67_200);
/// The data of such a packet.
pub const SHORTEST: u16 = 18;
/// Octets of a page and the packets that carry it (ENDHOST-3.3-10).
pub const PAGE: (u64, u64) = (10_000, 20);
/// From an octet of a page to the next (ENDHOST-3.3-9).
pub const OCTET: Span = Span::from_micros(90);
/// Packets of a burst (ENDHOST-3.3-11).
pub const BURST: u64 = 11;
/// Periods of looking up, of bursts and of reading (ENDHOST-3.3-12).
pub const PERIODS: [u64; 3] = [20, 5, 10];

/// Headers of IP and UDP; data of a first fragment and of each other one in a frame of 1,500 octets.
const IP: u16 = 20;
const UDP: u16 = 8;
const FIRST: u32 = 1_472;
const NEXT: u32 = 1_480;
/// Of a frame besides its packet: header, check sequence, preamble, gap; and the shortest packet.
const FRAME: u64 = 38;
const PACKET_MIN: u16 = 46;
/// An octet at 10 Mbit/s.
const WIRE: Span = Span::from_nanos(800);

/// A message that its sender hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// When, at the earliest.
    pub at: Span,
    /// For which owner.
    pub owner: u16,
    /// Octets of data.
    pub octets: u32,
}

/// A packet that the card gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When its last bit has come.
    pub at: Instant,
    /// For which owner.
    pub owner: u16,
    /// Among the packets of all owners.
    pub number: u32,
    /// Its octets with headers, as they lie in the buffer.
    pub octets: u16,
    /// Its octets of data.
    pub data: u16,
    /// It begins a message.
    pub is_first: bool,
    /// It ends one.
    pub is_last: bool,
}

/// Cuts messages into packets, which follow one another on the wire.
pub fn on_the_wire(mut offers: Vec<Offer>) -> Vec<Packet> {
    offers.sort_by_key(|offer| offer.at);
    let (mut packets, mut free) = (Vec::new(), Span::ZERO);
    for Offer { at, owner, octets } in offers {
        let mut left = octets;
        let mut is_first = true;
        while is_first || left > 0 {
            let data = left.min(if is_first { FIRST } else { NEXT }) as u16;
            left -= u32::from(data);
            let octets = IP + data + if is_first { UDP } else { 0 };
            free = free.max(at) + WIRE * (u64::from(octets.max(PACKET_MIN)) + FRAME);
            let number = packets.len() as u32;
            let is_last = left == 0;
            packets.push(Packet { at: Instant::ZERO + free, owner, number, octets, data, is_first, is_last });
            is_first = false;
        }
    }
    packets
}

/// So many pages (ENDHOST-3.3-9 to 12): in each five bursts of eleven packets back to back, each anywhere in
/// its period, then reading. The bursts are 55 packets where the page has 20: the paper's own excess.
pub fn web(seed: u64, owner: u16, pages: u64) -> Vec<Offer> {
    let mut random = Stream::named(seed, "web");
    let [before, bursts, after] = PERIODS;
    let octets = (PAGE.0 / PAGE.1) as u32;
    let mut offers = Vec::new();
    for page in 0..pages {
        for burst in 0..bursts {
            let period = PERIOD * (page * (before + bursts + after) + before + burst);
            let at = period + Span::from_nanos(random.below(PERIOD.as_nanos()));
            offers.extend((0..BURST).map(|_| Offer { at, owner, octets }));
        }
    }
    offers
}

/// So many of the shortest packets, one behind the other.
pub fn flood(at: Span, owner: u16, packets: u64) -> Vec<Offer> {
    (0..packets).map(|_| Offer { at, owner, octets: SHORTEST.into() }).collect()
}

/// A message of this size in each period.
pub fn video(owner: u16, octets: u32, period: Span, messages: u64) -> Vec<Offer> {
    (0..messages).map(|n| Offer { at: period * n, owner, octets }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENDHOST-3.3-9 to 12, ENDHOST-R35: the paper's numbers follow from those that it took.
    #[test]
    fn the_numbers_of_web_traffic_are_the_papers() {
        let (octets, packets) = PAGE;
        let packet = OCTET * (octets / packets);
        assert_eq!(Span::from_millis(1_000).count_down(packet), 22);
        assert_eq!(Span::from_millis(1_000).count_down(packet) * 5 / 10, BURST);
        // 5 of 35 periods.
        assert_eq!(PERIODS.iter().sum::<u64>(), 35);
        assert_eq!(PERIODS[1] * 1_000 / 35, 142);
        assert_eq!(PERIOD.count_down(GAP), 1_488);
        assert!(PERIODS[1] * BURST > packets);
    }

    /// ENDHOST-4-2.
    #[test]
    fn messages_are_cut_where_ethernet_ends_and_fill_the_wire() {
        let cut = |octets| {
            let packets = on_the_wire(vec![Offer { at: Span::ZERO, owner: 0, octets }]);
            assert_eq!(packets.iter().map(|packet| u32::from(packet.data)).sum::<u32>(), octets);
            assert!(packets[0].is_first && packets[packets.len() - 1].is_last);
            packets.len()
        };
        let at = [20, 1_472, 1_473, 2_952, 2_953, 4_432, 4_433, 5_912, 5_913, 6_000];
        assert_eq!(at.map(cut), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        let packets = on_the_wire(flood(Span::ZERO, 0, 1_488));
        assert!(packets.windows(2).all(|pair| pair[1].at.since(pair[0].at) == GAP));
        assert!(packets[1_487].at.since(Instant::ZERO) <= PERIOD);
    }
}
