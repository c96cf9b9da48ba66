//! RETHER's admission at the token: equations 1, 2, 3 and 6 with the repairs A1–A5.
//!
//! # What is promised
//!
//! Let a session produce at most one unit per TRT, its slot start at Off_i, and T be the *transit*: the
//! longest frame once more through the switch, what the master says to all, one wake frame of each station.
//!
//! **Strict ring** (a periodic session exists): cycle k+1 starts at c_k + TRT and slot i at c_k + Off_i,
//! each slot for itself, also inside one visit. A unit that just missed its slot waits TRT for the next;
//! it leaves within THT_i; hence delivered ≤ ready + **TRT + THT_i + T + J**. Appending moves no slot and
//! closing moves them to the left only, so a wait across such a change is shorter than TRT. THT_i is
//! counted with hop and start of visit even when joined: the slot it is joined to may close.
//!
//! **Early restart**: cycles last at most TRT and slot i is reached within Off_i of the start. Let m−1 be
//! the last visit at or before ready time t, in a cycle that began at c ≤ t; unit q of the backlog was
//! ready at t + (q−1)·TRT and is served at the latest at c + q·TRT + Off_i. So delivered ≤ ready +
//! **TRT + Off_i + THT_i + T + J**. It also holds on a strict ring, so it is what a session that did not
//! ask for the strict period is promised: the ring may stop being strict while it lives.
//!
//! **Other periods.** Let a unit be ready each p. For p ≥ TRT let k = ⌊p/TRT⌋: it leaves in ⌈n/k⌉ of its n
//! fragments a cycle. For p < TRT let k = ⌈TRT/p⌉: k units leave together in one slot. Where p is no
//! multiple and no whole part of TRT, slots carry units more often than they come, and nothing below
//! changes, for it asks for k·TRT ≤ p, or TRT ≤ k·p, and no more. *Lemma:* in any window of TRT on a strict
//! ring each slot of the session begins once, so the slots of k windows carry one whole unit, or those of
//! one window k units.
//!
//! - *Long period:* let unit q be ready at t_q. By induction its predecessor left in slots that began by
//!   t_(q−1) + k·TRT ≤ t_(q−1) + p ≤ t_q; no slot carries two units, so those that begin in
//!   (t_q, t_q + k·TRT] are its own.
//! - *Short period:* a window (s, s + TRT] between two slots has at most ⌈TRT/p⌉ = k units that become
//!   ready; were those before it gone by its end, so are these by the end of the next. The j-th of a slot was
//!   ready (j−1)·p ≥ (j−1)·TRT/k or more after the first and starts at most (j−1)·TRT/k after it, since k
//!   units fit the rotation: the first is the worst.
//! - *Backlog:* a unit is gone TRT + THT_i after it was ready at the latest, and THT_i ≤ TRT, so of units
//!   each p < TRT at most ⌈2·TRT/p⌉ ≤ 2k wait or leave at once: the buffers of a contract.
//! - *Behind a fault:* let a fault hold up unit q − 1 so that its last slot begins at l > t_q. No slot
//!   carries two units, so those that begin in (l, l + k·TRT] are unit q's own: the bounds below hold for
//!   it with l in place of t_q. Its program leaves out the unit behind it, or each later one is as late.
//!
//! Hence delivered ≤ ready + **k·TRT + THT_1 + T + J** and **TRT + THT_1 + T + J**, where THT_1 holds one
//! unit's share. With early restart the m-th visit after t comes by c + m·TRT + Off_i. Unit q of the backlog,
//! q − 1 = a·k + b with b < k, was ready at t + (a·k + b)·p ≥ t + a·TRT + b·p and begins to leave by
//! c + (a + 1)·TRT + Off_i + b·TRT/k, where b·TRT/k ≤ b·p: Off_i is added and nothing else.
//! The proof asks only that the session's slots carry the share together: a session may have several slots
//! (see [`crate::grow`]); THT_1 is then the whole of its longest and Off_i that of its last.
//!
//! The promise begins with the session's first slot, which the client is shown: a slot appended behind
//! the round of ordinary visits has no turn in that cycle, and what is ready before it may wait for longer.
//!
//! *Transit.* Frames reach the switch one after another, e_{i+1} ≥ e_i + w_{i+1}, because one station
//! sends at a time. One egress port then has d_i ≤ e_i + w_max by induction. Frames outside the token's
//! order (list, announcement, wake) add their own length once. A station wakes the token as often as it
//! needs, with one request outstanding until an ordinary visit: each further request of a cycle is behind
//! such a visit, in one of whose hops no data goes to the master for longer than the shortest frame takes
//! (h ≥ two token frames). So requests never add more than one frame of each station.
//!
//! *The token's own way.* A switch stores and forwards, so a token behind a frame to its own receiver waits
//! once more for that frame, w_max at most. In the ordinary round the time left pays for it; on the way
//! home it makes a cycle begin late once, which T holds. Before a slot it happens only where a station of
//! the list sends to the slot's owner; such a visit is charged w_max more, so that what begins late ends in
//! time and nothing adds up. A sender that comes later stands behind it in the list.

use crate::link::{Framing, LinkModel};
use crate::nrt_latency::{NrtNeed, NrtPolicy, nrt_need};
use crate::pace::Pace;
use crate::partitions::Partitions;
use crate::refusal::{Refusal, Test};
use crate::search;
use crate::slots::{Slot, continues, is_strict, offset_of, reserved, visits};
use rota_units::{BitRate, Octets, Span};

/// Fragments a unit may have: its index is 12 bits wide on the wire.
pub const FRAGMENTS_MAX: u64 = 4096;

/// Everything that all stations of a segment must agree on before they admit anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentParams {
    /// Token rotation time, one period.
    pub trt: Span,
    /// What sending costs here.
    pub link: LinkModel,
    /// N, live stations.
    pub stations: u16,
    /// What a station may send on an ordinary visit.
    pub nrt_policy: NrtPolicy,
    /// The worst time a station may wait between two ordinary visits (`RETHER-4.3-5`).
    pub nrt_latency_max: Span,
    /// Share of the rotation set aside for ordinary data, in percent (5 in eq. 6).
    pub nrt_share_percent: u8,
    /// Time of what the master says to all in a cycle ([`Self::master_broadcasts`]).
    pub master_broadcasts: Span,
    /// Octets on the wire that may already be in a card when its station loses the right to send.
    pub card_burst_octets: Octets,
    /// Entries the reservation list can hold.
    pub slots_max: u16,
    /// L: how long a station may hold the token; a rest may take one cycle more.
    pub hold_max: Span,
    /// Its partitions.
    pub partitions: Partitions,
}

impl SegmentParams {
    /// 30 cycles a second (`RETHER-2.1-5`). 33.33 ms would slip a whole period every few minutes.
    pub const TRT_30HZ: Span = Span::from_nanos(33_333_333);
    /// Octets of a token frame without slots: link header, fixed fields, a full set of dead stations, tag.
    pub const TOKEN_FIXED_OCTETS: u64 = 28 + 28 + 32 + 16;
    /// Octets of one slot in the token: station with its partition, and holding time.
    pub const SLOT_OCTETS: u64 = 6;
    /// Octets that the grant of a claim has beside its list.
    pub const GRANT_OCTETS: u64 = 19;
    /// Octets of an announcement: link header, body with the longest name, tag.
    pub const ANNOUNCE_OCTETS: u64 = 28 + 91 + 16;

    /// The documented defaults for plain Ethernet at `rate` with `stations` live stations.
    ///
    /// The token is charged at its longest, so `slots_max` follows the rate: 16 below 100 Mbit/s, 64
    /// below 1 Gbit/s, else 200. A longer list on a slow link would cost more hop than it could admit.
    pub fn new(rate: BitRate, stations: u16) -> Self {
        Self::with_framing(rate, Framing::ETHERNET, stations)
    }

    /// The same with another framing. The list must fit one frame, beside what the grant of a claim adds.
    pub fn with_framing(rate: BitRate, framing: Framing, stations: u16) -> Self {
        let slots_max = match rate.as_bps() {
            0..100_000_000 => 16,
            100_000_000..1_000_000_000 => 64,
            _ => 200,
        };
        let slots_max = slots_max.min(Self::slots_in(framing.mtu));
        let token_octets = Self::TOKEN_FIXED_OCTETS + Self::SLOT_OCTETS * u64::from(slots_max);
        let link = LinkModel::new(rate, framing, token_octets);
        let burst_frames = link.frames_in(Span::from_micros(100)).max(2);
        let (trt, latency_max) = (Self::TRT_30HZ, Span::from_millis(500));
        Self {
            trt,
            link,
            stations,
            nrt_policy: NrtPolicy::default_for(&link, stations, trt, latency_max),
            nrt_latency_max: latency_max,
            nrt_share_percent: 5,
            master_broadcasts: Self::master_broadcasts(&link, token_octets),
            card_burst_octets: link.framing.frame_wire_octets_max() * burst_frames,
            slots_max,
            hold_max: trt,
            partitions: Partitions::default(),
        }
    }

    /// How many slots a list of one frame holds.
    pub const fn slots_in(mtu: u16) -> u16 {
        ((mtu as u64).saturating_sub(Self::TOKEN_FIXED_OCTETS + Self::GRANT_OCTETS) / Self::SLOT_OCTETS)
            as u16
    }

    /// The longest hold of a station that reserved nothing: one ordinary visit and its hop.
    pub fn nrt_hold_max(&self) -> Span {
        let visit = |frames: u32| {
            let frames = u64::from(frames.max(1));
            (self.link.frame_span_max() + self.link.per_frame) * frames + self.link.per_visit + self.link.hop
        };
        match self.nrt_policy {
            NrtPolicy::One => visit(1),
            NrtPolicy::AtMost(frames) => visit(frames).min(self.trt),
            NrtPolicy::AsManyAsFit => self.trt,
        }
    }

    /// The broadcasts of the master in one cycle: the list, and in some cycles an announcement of its ring.
    pub fn master_broadcasts(link: &LinkModel, list_octets: u64) -> Span {
        link.frame_span_up(list_octets) + link.frame_span_up(Self::ANNOUNCE_OCTETS)
    }

    /// The time that every cycle spends beside slots and ordinary visits (`RETHER-2.4-12`): the master's
    /// broadcasts, and a wake frame of each station. The master sends no request, so N − 1 would suffice; the
    /// additional one is for a cycle in which the master changes.
    pub fn cycle_overhead(&self) -> Span {
        self.master_broadcasts + self.link.frame_span_min() * u64::from(self.stations)
    }

    /// The shortest cycle that serves ordinary traffic at all, nothing being reserved: what every cycle
    /// spends, a visit with one full frame, and the way home (repair A3). Below it none is ever sent.
    pub fn cycle_min(&self) -> Span {
        let visit = self.link.hop + self.link.per_visit + self.link.frame_cost_max();
        self.cycle_overhead() + visit + self.link.hop
    }

    /// From the last octet leaving the sender to the last octet reaching the receiver, and what the token
    /// that began the cycle may have waited behind a frame to the master.
    pub fn transit(&self) -> Span {
        self.link.frame_span_max() * 2 + self.cycle_overhead()
    }

    /// The largest unit whose fragments can be numbered.
    pub fn unit_octets_max(&self) -> Octets {
        Octets::new(self.link.framing.unit_payload_max() * FRAGMENTS_MAX)
    }

    /// Units of so many octets at this pace as bits a second, rounded down.
    pub fn rate_of_down(&self, unit: Octets, pace: Pace) -> u64 {
        let bits = u128::from(unit.get()) * 8 * 1_000_000_000;
        u64::try_from(bits / u128::from(pace.period(self.trt).as_nanos().max(1))).unwrap_or(u64::MAX)
    }

    /// Time a rotation as bits a second of this link, rounded up.
    fn rate_of_time_up(&self, time: Span) -> u64 {
        let bits = u128::from(time.as_nanos()) * u128::from(self.link.rate.as_bps());
        u64::try_from(bits.div_ceil(u128::from(self.trt.as_nanos().max(1)))).unwrap_or(u64::MAX)
    }
}

/// Eq. 1 with eq. 7: THT of a unit that starts a visit of its own (`RETHER-2.2.3-6`).
pub fn tht_rt(params: &SegmentParams, unit: Octets) -> Span {
    params.link.unit_span_up(unit) + params.link.hop
}

/// THT of a unit in a slot joined to its station's last one: no second hop and no second start of visit.
pub fn tht_rt_joined(params: &SegmentParams, unit: Octets) -> Span {
    params.link.unit_span_joined_up(unit)
}

/// THT of a slot of its own that carries a share of `share` octets for each of the pace's units.
pub fn tht_shared(params: &SegmentParams, share: Octets, pace: Pace) -> Span {
    tht_shared_joined(params, share, pace) + params.link.per_visit + params.link.hop
}

/// As [`tht_shared`], for a slot joined to its station's last one.
pub fn tht_shared_joined(params: &SegmentParams, share: Octets, pace: Pace) -> Span {
    params.link.unit_span_joined_up(share) * pace.units()
}

/// Eq. 2 with eq. 7: THT of an ordinary visit that sends `octets` in frames of one MTU (`RETHER-2.2.3-7`).
pub fn tht_nrt(params: &SegmentParams, octets: Octets) -> Span {
    let (link, mtu) = (&params.link, u64::from(params.link.framing.mtu.max(1)));
    let frames = octets.pieces_up(Octets::new(mtu));
    let last = octets.get() - (frames - 1) * mtu;
    let last = link.frame_cost(link.frame_span_up(last));
    link.frame_cost_max() * (frames - 1) + last + link.per_visit + link.hop
}

/// Worst time between two visits of any slot on a strict ring, host slack apart.
pub fn gap_strict(params: &SegmentParams) -> Span {
    params.trt
}

/// Worst time between two visits of a slot behind `earlier` when cycles restart early: TRT + Σ(THT_j − h).
///
/// Attained when all earlier sessions are idle in one cycle and full in the next; joined slots have no h.
pub fn gap_early(params: &SegmentParams, earlier: &[Slot]) -> Span {
    params.trt + reserved(earlier).minus(params.link.hop * visits(earlier))
}

/// What an application asks for: units of at most `unit_octets` at a pace (`RETHER-2.2.3-5`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The station that asks.
    pub station: u16,
    /// The largest unit.
    pub unit_octets: Octets,
    /// How many units leave in how many cycles.
    pub pace: Pace,
    /// Whether it needs exactly one visit a period.
    pub periodic: bool,
    /// True if a station of the list sends to it: then the token may come to it behind such a frame.
    pub receives: bool,
    /// The number of its partition; 0 for the rest.
    pub partition: u8,
}

/// The grant; append a [`Slot`] of it to the list (`RETHER-2.3-7`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// What the new slot adds to the list; less than eq. 1 when it is joined to the station's last slot.
    pub tht: Span,
    /// Off_i, where it starts in the cycle.
    pub offset: Span,
    /// From unit ready to unit delivered, host slack J included.
    pub bound: Span,
    /// The reserve for ordinary traffic that was kept.
    pub t_nrt: Span,
    /// Worst time between two visits of the slot, host slack apart.
    pub gap: Span,
    /// What is still free after this slot.
    pub spare: Span,
}

/// The failed test and by how much, before a counter-offer is looked for.
pub(crate) struct Failure {
    pub(crate) test: Test,
    pub(crate) margin: Span,
    /// The partition whose test it is.
    pub(crate) partition: Option<u8>,
}

impl Failure {
    /// Of the whole segment.
    pub(crate) const fn new(test: Test, margin: Span) -> Self {
        Self { test, margin, partition: None }
    }
}

/// Eq. 3 with the repairs: may `request` join `slots`? (`RETHER-2.3-2`)
///
/// Reads nothing but its arguments and allocates nothing, so every station that holds the token gives the
/// same answer. The new slot goes to the end of the list: no admitted slot ever moves.
///
/// # Errors
/// [`Refusal`]: the failed test, by how much, and the largest unit of this station that fits now.
pub fn admit(slots: &[Slot], request: &Request, params: &SegmentParams) -> Result<Admitted, Refusal> {
    evaluate(slots, request, params).map_err(|failure| {
        let fits = |unit| evaluate(slots, &Request { unit_octets: unit, ..*request }, params).is_ok();
        let asked = request.unit_octets;
        refusal(params, request.pace, &failure, offered(Octets::new(1), asked, fits))
    })
}

fn evaluate(slots: &[Slot], request: &Request, params: &SegmentParams) -> Result<Admitted, Failure> {
    fit(slots, request, share_of(request, params)?, params)
}

/// Octets of a unit that leave in one cycle, if its fragments can be numbered.
pub(crate) fn share_of(request: &Request, params: &SegmentParams) -> Result<Octets, Failure> {
    let unit = request.unit_octets;
    if unit > params.unit_octets_max() {
        let excess = tht_rt(params, unit).minus(tht_rt(params, params.unit_octets_max()));
        return Err(Failure::new(Test::UnitTooLarge, excess));
    }
    Ok(request.pace.share(unit, &params.link.framing))
}

/// Whether a slot with this share fits at the end of the list.
pub(crate) fn fit(
    slots: &[Slot],
    request: &Request,
    share: Octets,
    params: &SegmentParams,
) -> Result<Admitted, Failure> {
    if slots.len() >= usize::from(params.slots_max) {
        return Err(Failure::new(Test::SlotTableFull, Span::ZERO));
    }
    let pace = request.pace;
    let alone = tht_shared(params, share, pace);
    let slot_max = Span::from_nanos(u64::from(u32::MAX));
    if alone > slot_max {
        return Err(Failure::new(Test::UnitTooLarge, alone.minus(slot_max)));
    }
    let station = request.station;
    let joined = continues(slots, station, request.partition);
    // A visit that begins late by a frame must still end in its time, or every slot behind it is late too.
    let lead = if request.receives { params.link.frame_span_max() } else { Span::ZERO };
    let tht = if joined { tht_shared_joined(params, share, pace) } else { alone + lead };
    let offset = offset_of(slots, slots.len());
    let strict = request.periodic || is_strict(slots);
    let need = nrt_need(params, offset + tht, strict);
    let slot = Slot { station, tht, periodic: request.periodic, partition: request.partition };
    check_partition(slots, &slot, params)?;
    let spare = eq3(offset + tht, &need, params)?;
    check_hold(slots, &slot, params)?;
    let gap = if request.periodic { gap_strict(params) } else { gap_early(params, slots) };
    let one = tht_shared(params, share, Pace::EVERY_CYCLE);
    let bound = bound(params, request, offset, one);
    assert!(offset + tht + need.total() <= params.trt, "eq. 3 was evaluated and does not hold");
    Ok(Admitted { tht, offset, bound, t_nrt: need.total(), gap, spare })
}

/// The bound proven above, for a session whose last slot starts at `offset` and whose units take `sending`
/// at most from the start of the slot in which they leave, in a visit of its own.
pub(crate) fn bound(params: &SegmentParams, request: &Request, offset: Span, sending: Span) -> Span {
    let wait = params.trt * request.pace.cycles();
    let wait = if request.periodic { wait } else { wait + offset };
    wait + sending + params.transit() + params.link.host_slack
}

/// Eq. 3 for reservations that stand already, and that of the rest: do they keep their promise in a ring of
/// these `params`, for instance with one station more? The time that stays free.
///
/// # Errors
/// The test that fails.
pub fn still_fits(slots: &[Slot], params: &SegmentParams) -> Result<Span, Test> {
    if slots.is_empty() {
        return Ok(params.trt);
    }
    let all = reserved(slots);
    let need = nrt_need(params, all, is_strict(slots));
    let spare = eq3(all, &need, params).map_err(|failure| failure.test)?;
    let is_divided = !params.partitions.is_none();
    if is_divided && rest_excess(in_partition(slots, 0), params) > Span::ZERO {
        return Err(Test::Eq3Capacity);
    }
    Ok(spare)
}

fn in_partition(slots: &[Slot], number: u8) -> Span {
    slots.iter().filter(|slot| slot.partition == number).map(|slot| slot.tht).sum()
}

/// By how much slots of this time and ordinary traffic exceed the rest of a divided cycle, if the ring is
/// strict by then or not. The need of ordinary traffic beside slots of others is a test of the whole.
fn rest_excess(slots: Span, params: &SegmentParams) -> Span {
    let ordinary = |strict| {
        let need = nrt_need(params, slots, strict);
        let least = need.floor.max(need.share).max(need.card_burst);
        // Where no time serves ordinary traffic, eq. 3 says so.
        least.max(need.latency.unwrap_or(Span::ZERO)) + need.overhead
    };
    (slots + ordinary(true).max(ordinary(false))).minus(params.partitions.room(0, params.trt))
}

/// True if the rest has room for ordinary traffic while nothing is reserved.
pub fn rest_has_room(params: &SegmentParams) -> bool {
    rest_excess(Span::ZERO, params) == Span::ZERO
}

/// Eq. 3 within the partition of `new`; the rest has the time of ordinary traffic beside its slots.
fn check_partition(slots: &[Slot], new: &Slot, params: &SegmentParams) -> Result<(), Failure> {
    let number = new.partition;
    if params.partitions.is_none() {
        return Ok(());
    }
    let taken = in_partition(slots, number) + new.tht;
    let excess = match number {
        0 => rest_excess(taken, params),
        _ => taken.minus(params.partitions.room(number, params.trt)),
    };
    if excess == Span::ZERO {
        return Ok(());
    }
    Err(Failure { partition: Some(number), ..Failure::new(Test::Eq3Capacity, excess) })
}

/// No hold outlives its lease, now or after any closing, once `new` stands in the list.
///
/// A visit whose predecessor was idle waits for its own opening, so a hold takes the slot before it and
/// all slots of its station, which closings may make neighbours, and perhaps an ordinary visit.
fn check_hold(slots: &[Slot], new: &Slot, params: &SegmentParams) -> Result<(), Failure> {
    if params.hold_max >= params.trt {
        return Ok(());
    }
    let all = || slots.iter().chain([new]);
    let hold_of = |station: u16| {
        let (own, before) = all().fold((Span::ZERO, Span::ZERO), |(own, before), slot| {
            if slot.station == station { (own + slot.tht, before) } else { (own, before.max(slot.tht)) }
        });
        own + before + params.nrt_hold_max()
    };
    let longest = all().map(|slot| hold_of(slot.station)).max().unwrap_or(Span::ZERO);
    if longest > params.hold_max {
        return Err(Failure::new(Test::HoldTooLong, longest.minus(params.hold_max)));
    }
    Ok(())
}

/// Eq. 3: Σ THT + T_NRT ≤ TRT; the spare time, or the term that broke it and by how much.
///
/// Capacity is tested first: a unit that is far too large gets the plainest reason.
fn eq3(all: Span, need: &NrtNeed, params: &SegmentParams) -> Result<Span, Failure> {
    let capacity = all + need.share.max(need.card_burst) + need.overhead;
    let excess = capacity.minus(params.trt);
    if excess > Span::ZERO {
        return Err(Failure::new(Test::Eq3Capacity, excess));
    }
    let floor = all + need.floor + need.overhead;
    if floor > params.trt {
        return Err(Failure::new(Test::NrtFloor, floor.minus(params.trt)));
    }
    match need.latency {
        // The margin is what the stated latency lacks of the one that every policy keeps above the floor.
        None => Err(Failure::new(Test::NrtLatency, need.latency_excess)),
        Some(_) => {
            let all = all + need.total();
            let missing = || Failure::new(Test::NrtLatency, all.minus(params.trt));
            params.trt.checked_sub(all).ok_or_else(missing)
        }
    }
}

pub(crate) fn refusal(
    params: &SegmentParams,
    pace: Pace,
    failure: &Failure,
    counter_offer: Option<Octets>,
) -> Refusal {
    Refusal {
        test: failure.test,
        margin: failure.margin,
        margin_bps: match failure.test {
            Test::Eq3Capacity | Test::NrtFloor | Test::LinkCapacity => params.rate_of_time_up(failure.margin),
            Test::NrtLatency | Test::UnitTooLarge | Test::SlotTableFull | Test::HoldTooLong => 0,
            // How late a packet would be is no work.
            Test::EdfExact
            | Test::RcspLevel
            | Test::DeddSum
            | Test::Overflow
            | Test::Undecided
            | Test::Group => 0,
        },
        counter_offer,
        counter_offer_bps: counter_offer.map(|unit| params.rate_of_down(unit, pace)),
        counter_period: None,
        tsn_code: failure.test.tsn_code(),
        partition: failure.partition,
        free_until: None,
    }
}

/// The offer behind a refusal of `asked`: the largest unit that fits, if that is not below `least`.
pub(crate) fn offered(least: Octets, asked: Octets, fits: impl Fn(Octets) -> bool) -> Option<Octets> {
    (asked > least && fits(least)).then(|| largest(least, asked, fits))
}

/// The largest unit below the refused `bad` that fits, when `good` does; every term of the test rises with
/// the unit, so halving the interval finds it exactly.
pub(crate) fn largest(good: Octets, bad: Octets, fits: impl Fn(Octets) -> bool) -> Octets {
    Octets::new(search::largest(good.get(), bad.get(), |octets| fits(Octets::new(octets))))
}

#[cfg(test)]
mod tests;
