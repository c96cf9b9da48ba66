//! Beyond the paper, on its own axes: how much of a link can be reserved while ordinary traffic is reached
//! within 10 ms, at 10 Mbit/s to 10 Gbit/s and with up to 200 stations.
//!
//! The paper's measure is the *mean* time between two ordinary visits of a node while two nodes exchange
//! packets. A guarantee is another thing: the worst gap of theory.md §4.2, which admission computes. Both are
//! here, because they differ by what a cycle reserves in one piece.

use super::profile::{MPEG_I, TRT, mean_gap};
use super::ring::{Gaps, Ring, Rules, Traffic};
use rota_admission::{Framing, LinkModel, NrtRing, SegmentParams};
use rota_units::{BitRate, Octets, Span};

/// What the paper tolerates for ordinary traffic.
pub const TOLERANCE: Span = Span::from_millis(10);
/// Slots that fit into a token of one frame.
const SLOTS_MAX: u64 = 200;
/// Payload of the packets that the two exchanging nodes send, as in Figure 5's calibration (theory.md §1.4).
const EXCHANGED: u64 = 100;

/// What a host adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// In a word.
    pub name: &'static str,
    /// Of a hop, beside the wire.
    pub processing: Span,
    /// a of eq. 7.
    pub per_frame: Span,
    /// b of eq. 7.
    pub per_visit: Span,
    /// Whether the card sends one frame while the host prepares the next: only what a exceeds a frame's wire
    /// time by is charged then.
    pub overlapped: bool,
}

impl Host {
    /// The constants with which `rota node` admits: a stock Linux host, charged with a margin.
    pub const ADMITTED: Self = Self {
        name: "as admission charges it",
        processing: LinkModel::PROCESSING,
        per_frame: LinkModel::PER_FRAME,
        per_visit: LinkModel::PER_VISIT,
        overlapped: false,
    };
    /// The assumed modern host (theory.md §1.5): a = 1 µs, b = 3 µs, 10 µs of processing a hop.
    pub const ASSUMED: Self = Self {
        name: "assumed modern host",
        processing: Span::from_micros(10),
        per_frame: Span::from_micros(1),
        per_visit: Span::from_micros(3),
        overlapped: false,
    };
    /// The same, sending and preparing at once.
    pub const OVERLAPPED: Self =
        Self { name: "the same, a hidden behind the wire", overlapped: true, ..Self::ASSUMED };
}

/// What is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// MPEG-I streams, as many as go.
    Streams {
        /// One visit a station, which sends all its streams, instead of one visit a stream.
        per_station: bool,
    },
    /// So many equal sessions, each at its own station, as large as goes (the paper's one to four).
    Few(u64),
}

/// Which access delay must stay within [`TOLERANCE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The paper's: the mean time between visits.
    Mean,
    /// The bound of theory.md §4.2: no gap is ever longer.
    Worst,
}

/// Who sends ordinary traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The paper's: two stations exchange small packets continuously.
    Exchange,
    /// Every station always has full frames; one at each visit.
    Saturated,
}

/// A question.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The link.
    pub rate: BitRate,
    /// How many stations.
    pub stations: u64,
    /// What each of them costs.
    pub host: Host,
    /// What is reserved.
    pub sessions: Sessions,
    /// How it is loaded.
    pub load: Load,
    /// What must stay within 10 ms.
    pub measure: Measure,
    /// Rotations in one 30 Hz period: units are cut into as many pieces.
    pub divisor: u64,
    /// Cycles begin exactly one TRT apart, as for periodic sessions; otherwise they restart early.
    pub strict: bool,
}

impl Case {
    /// The paper's question at `rate` with 20 stations, four sessions as large as goes.
    pub const fn of(rate: BitRate, host: Host) -> Self {
        let (sessions, load, measure) = (Sessions::Few(4), Load::Exchange, Measure::Mean);
        Self { rate, stations: 20, host, sessions, load, measure, divisor: 1, strict: true }
    }

    /// One rotation.
    pub fn trt(&self) -> Span {
        TRT.div_down(self.divisor)
    }

    fn link(&self, visits: u64) -> LinkModel {
        let token = SegmentParams::TOKEN_FIXED_OCTETS + SegmentParams::SLOT_OCTETS * visits.min(SLOTS_MAX);
        let mut link = LinkModel::new(self.rate, Framing::ETHERNET, token);
        link.hop =
            LinkModel::hop_for(self.rate, Framing::ETHERNET, token, LinkModel::HOPS, self.host.processing);
        link.per_visit = self.host.per_visit;
        let host = self.host.per_frame;
        let costs = if self.host.overlapped { (Span::ZERO, host) } else { (host, Span::ZERO) };
        (link.per_frame, link.prepare) = costs;
        link
    }

    /// The reservation that `amount` stands for: streams, or octets of each of a few sessions.
    fn reservation(&self, amount: u64) -> Reservation {
        let (count, unit, visits) = match self.sessions {
            Sessions::Streams { per_station: true } => (amount, MPEG_I.get(), amount.min(self.stations)),
            Sessions::Streams { per_station: false } => (amount, MPEG_I.get(), amount),
            Sessions::Few(count) => (count, amount, count),
        };
        let unit = Octets::new(unit.div_ceil(self.divisor));
        let link = self.link(visits);
        let data = link.unit_span_joined_up(unit) * count;
        let slots = data + (link.per_visit + link.hop) * visits;
        let list = SegmentParams::TOKEN_FIXED_OCTETS + SegmentParams::SLOT_OCTETS * visits.min(SLOTS_MAX);
        let overhead = SegmentParams::master_broadcasts(&link, list) + link.frame_span_min() * self.stations;
        Reservation { link, count, unit, visits, slots, overhead }
    }

    fn answer(&self, amount: u64) -> Option<Share> {
        let of = self.reservation(amount);
        let (trt, link) = (self.trt(), &of.link);
        let one = |payload: u64| link.hop + link.per_visit + link.frame_cost(link.frame_span_up(payload));
        let full = one(u64::from(link.framing.mtu));
        let round = match self.load {
            Load::Exchange => {
                let talking = self.stations.min(2);
                link.hop * (self.stations - talking) + one(EXCHANGED) * talking
            }
            Load::Saturated => full * self.stations,
        };
        let reserved = of.slots + of.overhead;
        let bound = NrtRing {
            trt,
            reserved,
            hop: link.hop,
            visit_one: full,
            visit_max: Some(full),
            stations: self.stations,
            strict: self.strict,
        };
        // The way home, and what is left of a cycle when the next packet does not fit, serve nobody.
        let longest = match self.load {
            Load::Exchange => one(EXCHANGED),
            Load::Saturated => full,
        };
        let (mean, worst) = (mean_gap(trt, reserved + link.hop + longest, round)?, bound.worst_gap()?);
        let fits = match self.measure {
            Measure::Mean => mean <= TOLERANCE,
            Measure::Worst => worst <= TOLERANCE,
        };
        let octets = u128::from(of.count * of.unit.get());
        let per_trt = u128::from(self.rate.octets_in_down(trt).get()).max(1);
        let wire = self.rate.span_of_up(link.framing.unit_wire_octets(of.unit)) * of.count;
        fits.then(|| Share {
            amount,
            count: of.count,
            visits: of.visits,
            payload_ppm: u64::try_from(octets * 1_000_000 / per_trt).unwrap_or(u64::MAX),
            wire_ppm: (wire * 1_000_000).count_down(trt),
            hop: link.hop,
            reserved,
            round,
            mean,
            worst,
            exchanged: one(EXCHANGED),
            full,
            overhead: of.overhead,
            slots: of.slots,
        })
    }

    /// The largest reservation that keeps the measure; `None` when not even the smallest does.
    ///
    /// Every cost rises with the amount, so halving the interval finds it.
    pub fn largest(&self) -> Option<Share> {
        let mut best = self.answer(1)?;
        let (mut good, mut bad) = (1, 1 << 30);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.answer(middle) {
                Some(share) => (good, best) = (middle, share),
                None => bad = middle,
            }
        }
        Some(best)
    }

    /// The same reservation in the ring visit by visit, with the repairs.
    pub fn simulate(&self, share: &Share, cycles: u64) -> Gaps {
        let visits = share.visits.max(1);
        let mut slots = vec![share.slots.div_down(visits); visits as usize];
        slots[0] += share.slots - share.slots.div_down(visits) * visits;
        let traffic = match self.load {
            Load::Exchange => Traffic::TwoNodes { visit: share.exchanged },
            Load::Saturated => Traffic::Everybody { visit: share.full },
        };
        let rules = Rules::Repaired { strict: self.strict, overhead: share.overhead };
        let nodes = self.stations as usize;
        Ring { trt: self.trt(), hop: share.hop, slots, nodes, traffic, rules }.run(cycles, 0)
    }
}

struct Reservation {
    link: LinkModel,
    count: u64,
    unit: Octets,
    visits: u64,
    slots: Span,
    overhead: Span,
}

/// A reservation that keeps its measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Streams, or octets of each of a few sessions.
    pub amount: u64,
    /// How many sessions.
    pub count: u64,
    /// Real-time visits in a cycle.
    pub visits: u64,
    /// Octets that applications reserve, of what the link carries in a rotation: the paper's reckoning.
    pub payload_ppm: u64,
    /// The same with every header, preamble and gap.
    pub wire_ppm: u64,
    /// A token hop.
    pub hop: Span,
    /// What sessions and each cycle's own frames take of a rotation.
    pub reserved: Span,
    /// A whole round of ordinary visits.
    pub round: Span,
    /// No more than this is the mean time between two visits of a station.
    pub mean: Span,
    /// The worst such time, whoever sends whatever frames (theory.md §4.2).
    pub worst: Span,
    exchanged: Span,
    full: Span,
    overhead: Span,
    slots: Span,
}
