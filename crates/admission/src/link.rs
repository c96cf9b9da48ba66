//! What a frame costs on one port: framing, rate, and the host's share (eq. 7 of the paper).

use rota_units::{BitRate, Octets, Span};

/// The framing of a port. It is a value of each port, so that no code contains 38 or 1500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Largest frame payload in octets, what Ethernet calls the MTU.
    pub mtu: u16,
    /// Octets on the wire beside the payload: preamble 8, header 14, check sequence 4, gap 12.
    pub overhead_octets: u16,
    /// Octets on the wire of the shortest frame, padding, preamble and gap included.
    pub min_wire_octets: u16,
    /// Rota's own octets in each real-time frame: link header 28, unit header 20, tag 16.
    pub rota_octets: u16,
}

impl Framing {
    /// Plain Ethernet at its standard MTU.
    pub const ETHERNET: Self = Self { mtu: 1500, overhead_octets: 38, min_wire_octets: 84, rota_octets: 64 };
    /// The MTUs that a segment may have.
    pub const MTU_MIN: u16 = 576;
    /// See [`Self::MTU_MIN`].
    pub const MTU_MAX: u16 = 9_000;

    /// Ethernet with another MTU.
    pub const fn ethernet(mtu: u16) -> Self {
        Self { mtu, ..Self::ETHERNET }
    }

    /// Octets on the wire of one frame with `frame_payload_len` octets behind its Ethernet header.
    pub const fn wire_octets(&self, frame_payload_len: u64) -> Octets {
        let bare = frame_payload_len.saturating_add(self.overhead_octets as u64);
        let shortest = self.min_wire_octets as u64;
        Octets::new(if bare < shortest { shortest } else { bare })
    }

    /// Octets of a client's unit that fit into one frame: 1,436 on plain Ethernet, 8,936 with the longest
    /// frames, never less than one.
    pub const fn unit_payload_max(&self) -> u64 {
        let room = self.mtu.saturating_sub(self.rota_octets) as u64;
        if room == 0 { 1 } else { room }
    }

    /// Frames that a unit of `unit` octets is cut into: n of eq. 7; an empty unit still needs one.
    pub const fn frames_of(&self, unit: Octets) -> u64 {
        unit.pieces_up(Octets::new(self.unit_payload_max()))
    }

    /// Octets on the wire of a whole unit, all its frames together.
    pub const fn unit_wire_octets(&self, unit: Octets) -> Octets {
        let per_frame = self.unit_payload_max();
        let full = self.frames_of(unit) - 1;
        let rota = self.rota_octets as u64;
        let last = self.wire_octets(unit.get() - full * per_frame + rota).get();
        Octets::new(full.saturating_mul(self.wire_octets(per_frame + rota).get()).saturating_add(last))
    }

    /// Octets on the wire of the longest frame.
    pub const fn frame_wire_octets_max(&self) -> Octets {
        self.wire_octets(self.mtu as u64)
    }
}

/// What sending costs on one segment: the constants of eq. 1, 2 and 7 (`RETHER-5.2-1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkModel {
    /// The slowest port of the segment.
    pub rate: BitRate,
    /// How its frames are built.
    pub framing: Framing,
    /// a of eq. 7: what the host adds to every frame, behind the wire's own time.
    pub per_frame: Span,
    /// What the host needs to prepare a frame while the card sends the one before. A frame shorter than that
    /// is charged this instead of its wire time; zero where all host time is charged by `per_frame`.
    pub prepare: Span,
    /// b of eq. 7: what the host adds to every visit that sends.
    pub per_visit: Span,
    /// h, the paper's t_token: one token frame from holder to holder, processing included.
    pub hop: Span,
    /// J: how late a host may wake. It is part of every promised bound and of no slot.
    pub host_slack: Span,
}

impl LinkModel {
    /// Default a: two microseconds to hand a frame to a card on stock Linux (virtual wire).
    pub const PER_FRAME: Span = Span::from_micros(2);
    /// Default b: fifty microseconds from the token's arrival to the first frame.
    pub const PER_VISIT: Span = Span::from_micros(50);
    /// Default processing share of a hop: accept, check the tag, decide, forward.
    pub const PROCESSING: Span = Span::from_micros(50);
    /// Default J: what a stock kernel stalls a process without real-time priority.
    pub const HOST_SLACK: Span = Span::from_millis(1);
    /// Links a frame crosses between two stations: station to switch, switch to station.
    pub const HOPS: u64 = 2;

    /// The documented defaults at `rate`, for a token frame of `token_octets` behind the Ethernet header.
    pub const fn new(rate: BitRate, framing: Framing, token_octets: u64) -> Self {
        Self {
            rate,
            framing,
            per_frame: Self::PER_FRAME,
            prepare: Span::ZERO,
            per_visit: Self::PER_VISIT,
            hop: Self::hop_for(rate, framing, token_octets, Self::HOPS, Self::PROCESSING),
            host_slack: Self::HOST_SLACK,
        }
    }

    /// h for a token of `token_octets` that is stored and forwarded over `hops` links in a row.
    ///
    /// A switch sends a frame on only when it has all of it, so each link costs the whole frame again.
    pub const fn hop_for(
        rate: BitRate,
        framing: Framing,
        token_octets: u64,
        hops: u64,
        processing: Span,
    ) -> Span {
        let once = rate.span_of_up(framing.wire_octets(token_octets)).as_nanos();
        Span::from_nanos(once.saturating_mul(hops).saturating_add(processing.as_nanos()))
    }

    /// Time on the wire of one frame with `payload` octets behind its Ethernet header, rounded up.
    pub const fn frame_span_up(&self, payload: u64) -> Span {
        self.rate.span_of_up(self.framing.wire_octets(payload))
    }

    /// Time on the wire of the longest frame, rounded up.
    pub const fn frame_span_max(&self) -> Span {
        self.rate.span_of_up(self.framing.frame_wire_octets_max())
    }

    /// Time on the wire of the shortest frame, rounded up.
    pub const fn frame_span_min(&self) -> Span {
        self.frame_span_up(0)
    }

    /// What a frame of wire time `wire` is charged: the longer of the wire and its preparation, and a.
    ///
    /// Sound with b ≥ `prepare`: frame k of a visit is ready at k·p and leaves behind those before
    /// it, so the last ends at max over j of (j·p + what leaves from j on) ≤ p + Σ max(w, p).
    pub fn frame_cost(&self, wire: Span) -> Span {
        wire.max(self.prepare) + self.per_frame
    }

    /// D without the host's share: a control frame finds at most one full frame ahead of it.
    pub fn one_way(&self) -> Span {
        self.hop + self.frame_span_max()
    }

    /// What the longest frame is charged.
    pub fn frame_cost_max(&self) -> Span {
        self.frame_cost(self.frame_span_max())
    }

    /// Eq. 7: wire time of a whole unit + a·n + b (`RETHER-4.2-4`), without any token hop.
    pub fn unit_span_up(&self, unit: Octets) -> Span {
        self.unit_span_joined_up(unit) + self.per_visit
    }

    /// Eq. 7 without b, for a unit that follows another one in the same visit.
    pub fn unit_span_joined_up(&self, unit: Octets) -> Span {
        let full = self.framing.unit_payload_max();
        let others = self.framing.frames_of(unit) - 1;
        let rota = u64::from(self.framing.rota_octets);
        let last = unit.get().saturating_sub(others.saturating_mul(full));
        self.frame_cost(self.frame_span_up(full + rota)) * others
            + self.frame_cost(self.frame_span_up(last + rota))
    }

    /// Full frames that leave in `span`, at least one.
    pub fn frames_in(&self, span: Span) -> u64 {
        span.count_down(self.frame_span_max()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ETHERNET: Framing = Framing::ETHERNET;

    #[test]
    fn frames_on_the_wire() {
        assert_eq!(ETHERNET.wire_octets(0).get(), 84);
        assert_eq!(ETHERNET.wire_octets(46).get(), 84);
        assert_eq!(ETHERNET.wire_octets(47).get(), 85);
        assert_eq!(ETHERNET.frame_wire_octets_max().get(), 1538);
        assert_eq!(ETHERNET.unit_payload_max(), 1436);
    }

    #[test]
    fn an_mpeg_unit_is_five_frames_and_6760_octets_on_the_wire() {
        let unit = Octets::new(6250);
        assert_eq!(ETHERNET.frames_of(unit), 5);
        assert_eq!(ETHERNET.unit_wire_octets(unit).get(), 4 * 1538 + 506 + 64 + 38);
        let link = LinkModel::new(BitRate::from_mbit(10), ETHERNET, 46);
        assert_eq!(link.unit_span_up(unit), Span::from_micros(5_408 + 5 * 2 + 50));
        assert_eq!(link.hop, Span::from_nanos(2 * 67_200 + 50_000));
    }

    #[test]
    fn the_papers_own_constants_give_the_papers_slot() {
        // Eq. 7 with a = 140 us, b = 650 us, h = 247 us and bare 1500-octet packets: 6.597 ms.
        let paper = Framing { mtu: 1500, overhead_octets: 0, min_wire_octets: 0, rota_octets: 0 };
        let link = LinkModel {
            rate: BitRate::from_mbit(10),
            framing: paper,
            per_frame: Span::from_micros(140),
            per_visit: Span::from_micros(650),
            hop: Span::from_micros(247),
            ..LinkModel::new(BitRate::from_mbit(10), paper, 0)
        };
        assert_eq!(link.unit_span_up(Octets::new(6250)) + link.hop, Span::from_micros(6_597));
    }

    #[test]
    fn a_host_that_prepares_while_the_card_sends_is_charged_only_what_it_needs_beyond() {
        let at = |mbit, prepare| LinkModel {
            per_frame: Span::ZERO,
            prepare: Span::from_nanos(prepare),
            ..LinkModel::new(BitRate::from_mbit(mbit), ETHERNET, 46)
        };
        let extra = |link: &LinkModel, unit: u64| {
            let unit = Octets::new(unit);
            link.unit_span_joined_up(unit).minus(link.rate.span_of_up(ETHERNET.unit_wire_octets(unit)))
        };
        // Full frames take 12.304 us at 1 Gbit/s; the last one, of 108 octets of payload, 1.68 us.
        assert_eq!(extra(&at(1_000, 3_000), 2 * 1_436 + 108), Span::from_nanos(3_000 - 1_680));
        assert_eq!(extra(&at(1_000, 13_000), 2 * 1_436), Span::from_nanos(2 * (13_000 - 12_304)));
        // At 100 Mbit/s the shortest frame takes longer than any preparation here.
        assert_eq!(extra(&at(100, 3_000), 1), Span::ZERO);
    }

    #[test]
    fn a_unit_is_cut_into_full_frames_of_the_mtu() {
        let unit = Octets::new(6_250);
        let frames = |mtu| Framing::ethernet(mtu).frames_of(unit);
        assert_eq!([576, 1_400, 1_500, 9_000].map(frames), [13, 5, 5, 1]);
        let jumbo = Framing::ethernet(9_000);
        assert_eq!((jumbo.unit_payload_max(), jumbo.frames_of(Octets::new(30_000))), (8_936, 4));
        assert_eq!(jumbo.unit_wire_octets(Octets::new(30_000)).get(), 30_000 + 4 * (64 + 38));
        let link = LinkModel::new(BitRate::from_mbit(10), Framing::ethernet(9_000), 100);
        assert_eq!(link.frame_span_max(), Span::from_nanos(7_230_400));
    }

    #[test]
    fn a_framing_without_room_does_not_divide_by_zero() {
        let none = Framing { mtu: 10, overhead_octets: 38, min_wire_octets: 84, rota_octets: 64 };
        assert_eq!(none.unit_payload_max(), 1);
        assert_eq!(none.frames_of(Octets::new(3)), 3);
    }

    proptest! {
        #[test]
        fn a_larger_unit_never_costs_less(
            unit in 0u64..5_000_000, more in 0u64..3_000, mbit in 1u64..10_000, prepare in 0u64..20_000
        ) {
            let prepare = Span::from_nanos(prepare);
            let link = LinkModel { prepare, ..LinkModel::new(BitRate::from_mbit(mbit), ETHERNET, 100) };
            let small = link.unit_span_up(Octets::new(unit));
            prop_assert!(small <= link.unit_span_up(Octets::new(unit + more)));
            prop_assert!(ETHERNET.unit_wire_octets(Octets::new(unit)).get() >= unit);
        }
    }
}
