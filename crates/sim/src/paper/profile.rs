//! The costs that the paper printed, and what follows from them by its own equations.
//!
//! Sizes: KB = 1,024 octets (28 KB a frame are 69 %, 26 KB are 64 % of 10 Mbit/s). An MPEG-I stream is 6,250
//! octets a rotation in sections 4 and 5, and 6,400 in Table 1. Eq. 7 charges bare octets: no preamble, no
//! header, no gap.
//!
//! Fulfils RETHER-4.3-3, RETHER-5.2-3.

use rota_units::{BitRate, Octets, Span};

/// One rotation at 30 Hz.
pub const TRT: Span = Span::from_nanos(33_333_333);
/// What the paper calls a kilobyte.
pub const KB: u64 = 1_024;
/// An MPEG-I stream of 1.5 Mbit/s, per rotation.
pub const MPEG_I: Octets = Octets::new(6_250);
/// The largest packet.
pub const MTU: u64 = 1_500;
/// Table 2: what a token visit with nothing to send spends, in µs.
pub const TABLE_2: [(&str, u64); 8] = [
    ("receiver preprocessing", 27),
    ("copy token from NIC to memory", 31),
    ("receiver postprocessing", 12),
    ("RETHER protocol processing", 15),
    ("sender preprocessing", 30),
    ("copy token from memory to NIC", 29),
    ("sender postprocessing", 15),
    ("transmission, interrupt, context switch", 88),
];
/// Table 3, memory to NIC over the ISA bus: octets, µs.
pub const TABLE_3_TO_NIC: [(u64, u64); 4] = [(100, 51), (500, 210), (1_000, 402), (1_500, 604)];
/// t_token: the sum of Table 2.
pub const HOP: Span = Span::from_micros(247);
/// The two token copies of Table 2, which a faster bus shortens.
pub const HOP_COPIES: Span = Span::from_micros(31 + 29);
/// a of eq. 7.
pub const PER_PACKET: Span = Span::from_micros(140);
/// b of eq. 7 is the copy of the first packet and so much besides: 650 − 604 µs.
pub const FIRST_BESIDE_COPY: Span = Span::from_micros(46);
/// How much faster section 5.2's bus copies.
pub const BUS_FACTOR: u64 = 7;
/// How much faster section 5.2's link transmits.
pub const LINK_FACTOR: u64 = 10;

/// Table 3 between its points, along straight lines; the first of them also below 100 octets.
pub fn copy_to_nic(octets: u64) -> Span {
    let line = TABLE_3_TO_NIC.windows(2).find(|pair| octets <= pair[1].0).unwrap_or(&TABLE_3_TO_NIC[2..]);
    let ((x0, y0), (x1, y1)) = (line[0], line[1]);
    let slope_ns = (y1 - y0) * 1_000;
    let ns = if octets >= x0 {
        y0 * 1_000 + (octets - x0) * slope_ns / (x1 - x0)
    } else {
        (y0 * 1_000).saturating_sub((x0 - octets) * slope_ns / (x1 - x0))
    };
    Span::from_nanos(ns)
}

/// How section 5.2's factors are applied; the paper says too little to choose (theory.md §1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// The whole of eq. 7 is divided by the link's factor, a and b too; the bus shortens the token's copies.
    WholeEquation,
    /// Only S/C is divided; the bus shortens the first packet's copy and the token's.
    WireOnly,
    /// Each packet costs the longer of its wire time and its copy; a is divided by the link's factor.
    Pipelined,
}

/// One corner of Figure 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine {
    /// 100 instead of 10 Mbit/s.
    pub fast_link: bool,
    /// A local bus instead of ISA.
    pub fast_bus: bool,
    /// What the factors apply to.
    pub reading: Reading,
}

impl Machine {
    /// The testbed: 486 machines with ISA cards on 10 Mbit/s. No factor is applied, so no reading matters.
    pub const TESTBED: Self = Self { fast_link: false, fast_bus: false, reading: Reading::WireOnly };

    const fn link_factor(&self) -> u64 {
        if self.fast_link { LINK_FACTOR } else { 1 }
    }

    const fn bus_factor(&self) -> u64 {
        if self.fast_bus { BUS_FACTOR } else { 1 }
    }

    /// The link's rate.
    pub const fn rate(&self) -> BitRate {
        BitRate::from_mbit(10 * self.link_factor())
    }

    /// t_token: a token visit with nothing to send.
    pub const fn hop(&self) -> Span {
        let copies = HOP_COPIES.as_nanos().div_ceil(self.bus_factor());
        Span::from_nanos(HOP.as_nanos() - HOP_COPIES.as_nanos() + copies)
    }

    fn copy(&self, octets: u64) -> Span {
        Span::from_nanos(copy_to_nic(octets).as_nanos().div_ceil(self.bus_factor()))
    }

    /// Eq. 7 for `size`, without the token's hop.
    pub fn transmission(&self, size: Octets) -> Span {
        let packets = size.pieces_up(Octets::new(MTU));
        let first = size.get().min(MTU);
        match self.reading {
            Reading::WholeEquation => {
                let slow = Self::TESTBED.transmission(size);
                Span::from_nanos(slow.as_nanos().div_ceil(self.link_factor()))
            }
            Reading::WireOnly => {
                let wire = self.rate().span_of_up(size);
                wire + PER_PACKET * packets + FIRST_BESIDE_COPY + self.copy(first)
            }
            Reading::Pipelined => {
                let last = size.get() - (packets - 1) * MTU;
                let longer = |octets| self.rate().span_of_up(Octets::new(octets)).max(self.copy(octets));
                let per_packet = PER_PACKET.div_down(self.link_factor()) * packets;
                longer(MTU) * (packets - 1) + longer(last) + per_packet + FIRST_BESIDE_COPY + self.copy(first)
            }
        }
    }

    /// Eq. 1 and eq. 2 with eq. 7: a visit that sends `size`, its hop included.
    pub fn visit(&self, size: Octets) -> Span {
        self.transmission(size) + self.hop()
    }

    /// How many sessions of `size` fit into a rotation when nothing is kept for others: ⌊TRT/THT⌋.
    pub fn sessions_max(&self, size: Octets) -> u64 {
        TRT.count_down(self.visit(size))
    }
}

/// Mean time between two visits of a node when a whole round costs `round` and `reserved` of each rotation
/// goes to sessions: round · TRT / (TRT − ΣTHT), rounded up; `None` when nothing is left.
///
/// Eq. 4 and 5 without whole cycles: visits happen only in the unreserved part of time.
pub fn mean_gap(trt: Span, reserved: Span, round: Span) -> Option<Span> {
    let left = trt.checked_sub(reserved).filter(|left| *left > Span::ZERO)?;
    let product = u128::from(round.as_nanos()) * u128::from(trt.as_nanos());
    let gap = product.div_ceil(u128::from(left.as_nanos()));
    Some(Span::from_nanos(u64::try_from(gap).unwrap_or(u64::MAX)))
}

/// The longest round with which [`mean_gap`] stays within `latency`: what a printed point implies.
pub fn round_for(trt: Span, reserved: Span, latency: Span) -> Span {
    let product = u128::from(latency.as_nanos()) * u128::from(trt.minus(reserved).as_nanos());
    Span::from_nanos(u64::try_from(product / u128::from(trt.as_nanos().max(1))).unwrap_or(u64::MAX))
}

/// The largest total reservation, in `grid` octets, that `sessions` equal sessions may make while the mean
/// gap of nodes whose round costs `round` stays within `latency`.
pub fn reservable(sessions: u64, grid: u64, round: Span, latency: Span) -> u64 {
    let machine = Machine::TESTBED;
    let fits = |total: u64| {
        let each = Octets::new(total.div_ceil(sessions.max(1)));
        let reserved = machine.visit(each) * sessions;
        mean_gap(TRT, reserved, round).is_some_and(|gap| gap <= latency)
    };
    (1..).map(|step| step * grid).take_while(|total| fits(*total)).last().unwrap_or(0)
}
