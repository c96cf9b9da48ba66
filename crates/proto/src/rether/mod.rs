//! RETHER: a timed token over plain Ethernet (Venkatramani and Chiueh 1995, `specs/rether.md`), repaired.
//!
//! ```text
//!            open, or SWITCH heard                FORM names us
//!  Joining ───► Plain ───► Initiating / Yielding ───────────► Ring
//!     │  ▲       ▲ ▲               │ MODE(ring) heard          │ │
//!     │  └───────│─┴───────────────┘                           │ │ last session closed, or MODE(plain)
//!     └──────────│── FORM names us ────────────────────────────┘ │
//!                └───────────────────────────────────────────────┘
//! ```
//!
//! `table.md` beside this file lists what every event does in every state; a test compares it with the code.
//!
//! # Departures from the paper, each with its reason
//! 1. Recovery (2.4). A predecessor never makes a token by itself: one lost acknowledgement would make two.
//!    It sends the *same* token again; after the death timer a claim round with grants decides
//!    (`claim.rs`; theory.md §6.2, B1–B6).
//! 2. Tokens carry (generation, sequence) and are believed only when strictly newer than all seen (B6).
//! 3. Hops are unicast, acknowledged after forwarding, not by a multicast forward (theory.md §6.2). An owed
//!    acknowledgement leaves before a frame that would make it late; in an idle round it is the token's
//!    return.
//! 4. A station is visited once a cycle for all its sessions (theory.md §2.4), not once a session.
//! 5. A non-real-time frame leaves only if it *and* the way home fit (A1); T_NRT has a floor (A3); the first
//!    live slot is the cycle master (A2); admission runs at any visit (A5).
//! 6. A ring with a periodic session keeps the strict period: cycle k+1 begins at c_k + TRT exactly.
//! 7. An idle ring sleeps: the token rests with the cycle master until the next cycle or a request. A request
//!    costs two hops: the token goes to the asker and home again, and rests on (`wake.rs`).
//! 8. The mode carries an epoch, and a station that hears nothing asks instead of assuming (B7–B11, B13);
//!    an initiator does not ignore a worse one, but answers it with its own switch (B11).
//! 9. Every frame carries a keyed tag; a ring's key depends on fresh nonces of all its members.
//! 10. The first rotation after a switch carries no data: it flushes the buffers of switch ports, which the
//!     paper's coaxial segment did not have.
//! 11. Ordinary frames that together take no longer than one full frame count as one in a visit: the paper's
//!     one packet a visit makes five waiting small ones wait for five rounds.
//! 12. Residual time is measured, not computed from nominal holding times (theory.md §2.2), so that overruns
//!     take ordinary time of the same cycle and not of the next period.

mod astray;
mod behind;
mod claim;
mod contested;
mod counters;
mod ended;
mod flush;
mod form;
mod handle;
mod held;
mod hog;
mod hold;
mod join;
mod keys;
mod leaps;
mod members;
mod mismatch;
#[cfg(feature = "model")]
mod model;
mod outbox;
mod parts;
mod patience;
mod plain;
mod queue;
mod reserve;
mod ring;
mod settings;
mod sound;
mod stated;
mod tally;
mod visit;
mod wake;
mod will;

pub(crate) use contested::Sign;
pub(crate) use handle::Arrived;
pub use held::HeldOff;
pub use hog::Excluded;
pub use join::{HOLD_OFF_MAX, Refused};
pub use members::{Member, STATIONS_MAX};
pub use mismatch::{Mismatch, Mismatched, Setting};
#[cfg(feature = "model")]
pub use model::Visit;
pub use patience::{InForce, Why};
pub(crate) use reserve::Asked;
pub use reserve::LinkEvent;
pub use settings::{STATIONS_STATED, Settings, SettingsError, TRT_30_HZ};
pub use tally::{Counters, ROTATION_PLACES, Rotation, Tally};

use crate::io::{ChannelId, FrameBuf, GateOrder, HostTag, LLC_TAGS, Output, PortId, StationId};
use crate::node::Identity;
use crate::rng::Rng;
use claim::ClaimRound;
use form::Forming;
use keys::KeyRing;
use members::Members;
use outbox::Pending;
use parts::{Fence, Ordinary, Others, Out, Own, Shares, Tells};
use queue::Origin;
use reserve::Session;
use ring::Ring;
use rota_units::{Instant, Octets, Span};
use rota_wire::{Class, Generation, Key, MacAddr, Report, Signal, Token};
pub use will::WillName;

/// Names a token: its generation and its hop in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Stamp {
    pub(super) generation: Generation,
    pub(super) seq: u64,
}

/// Collecting acknowledgements of our Switch-to-RETHER.
#[derive(Clone, Debug)]
pub(super) struct Initiating {
    card_empty: bool,
    acked: Vec<(StationId, u64)>,
    tries: u8,
    again: Instant,
}

/// Has put itself under another station's switch and waits for the ring to form.
#[derive(Clone, Debug)]
pub(super) struct Yielding {
    initiator: StationId,
    card_empty: bool,
    acknowledge_at: Option<Instant>,
    give_up: Instant,
}

/// Looks for the segment.
#[derive(Clone, Debug)]
pub(super) struct Joining {
    ring: bool,
    card_empty: bool,
    tries: u8,
    again: Instant,
    /// A challenge has been answered since the last try: a ring whose list is empty has many who challenge,
    /// and if each answer met all their challenges again, nothing else would find room on the wire.
    proved: bool,
    /// Until when the ring has to be heard, where nothing but a notice says that it runs.
    proof_by: Instant,
    /// It was in plain mode before, and goes back there if it does not hear the ring.
    from_plain: bool,
}

impl Joining {
    /// Looks for the segment as if just booted.
    fn afresh(now: Instant) -> Self {
        let (ring, card_empty, tries, proved, from_plain) = (false, false, 0, false, false);
        Self { ring, card_empty, tries, again: now, proved, proof_by: Instant::FAR, from_plain }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Mode {
    Joining(Joining),
    Plain,
    Initiating(Initiating),
    Yielding(Yielding),
    Ring,
}

/// The mode as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeName {
    /// Looking for the segment.
    Joining,
    /// Plain Ethernet: nothing is regulated.
    Plain,
    /// Between plain Ethernet and token mode.
    Switching,
    /// Token mode.
    Token,
}

/// Signals that may wait for the token.
const SIGNALS_MAX: usize = 256;

/// When the current cycle began, by this station's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CycleClock {
    start: Instant,
    cycle: u32,
    known: bool,
}

/// One port's token machine.
#[derive(Clone, Debug)]
pub struct Rether {
    settings: Settings,
    /// The digest of the settings.
    digest: u64,
    port: PortId,
    own: Own,
    rng: Rng,
    keys: KeyRing,
    members: Members,
    mode: Mode,
    mode_epoch: u32,
    fence: Fence,
    /// The ring that this station is in.
    ring: Ring,
    /// The parts of a new ring's Form that have come.
    forming: Forming,
    tells: Tells,
    awake_until: Instant,
    others: Others,
    shares: Shares,
    ordinary: Ordinary,
    out: Out,
    counters: Counters,
    tally: Tally,
}

impl Rether {
    /// A station that begins to look for its segment at `now`. `seed` feeds nonces and the incarnation.
    pub(crate) fn new(
        now: Instant,
        port: PortId,
        me: Identity,
        secret: &Key,
        settings: Settings,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let (incarnation, nonce) = ((rng.next_u64() >> 32) as u32 | 1, rng.next_u64());
        Self {
            own: Own { me, station: 0, incarnation, nonce, answers: 0, frame_seq: 0 },
            keys: KeyRing::new(secret, settings.segment),
            members: Members::new(),
            mode: Mode::Joining(Joining::afresh(now)),
            mode_epoch: 0,
            fence: Fence::default(),
            ring: Ring::new(),
            forming: Forming::new(),
            tells: Tells::new(),
            awake_until: Instant::ZERO,
            others: Others::new(now),
            shares: Shares::new(),
            ordinary: Ordinary::new(&settings),
            out: Out::new(),
            counters: Counters::default(),
            tally: Tally::default(),
            digest: settings.digest(),
            settings,
            port,
            rng,
        }
    }

    /// Is told if a station has a channel to this one.
    pub(crate) fn set_receives(&mut self, receives: bool) {
        self.shares.receives = receives;
    }

    /// This station's place, 0 while it has none.
    pub fn station(&self) -> StationId {
        self.own.station
    }

    /// This boot of this station, or what it has become since its counters ended.
    pub fn incarnation(&self) -> u32 {
        self.own.incarnation
    }

    /// This host's id.
    pub fn node_id(&self) -> u64 {
        self.own.me.node_id
    }

    /// This station's name.
    pub fn name(&self) -> &str {
        &self.own.me.name
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What was sent and heard.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The other stations.
    pub fn members(&self) -> &[Member] {
        self.members.as_slice()
    }

    /// The other station of this address.
    pub fn member_at(&self, mac: MacAddr) -> Option<&Member> {
        self.members.by_mac(mac)
    }

    /// This station's address.
    pub fn mac(&self) -> MacAddr {
        self.own.me.mac
    }

    /// The number that the station of this address has now, this one included; 0 while it has none.
    pub fn number(&self, mac: MacAddr) -> StationId {
        if mac == self.own.me.mac {
            return self.own.station;
        }
        self.members.by_mac(mac).map_or(0, |member| member.station)
    }

    /// The address of the station that has this number now, this one included.
    pub fn address(&self, station: StationId) -> Option<MacAddr> {
        if station == self.own.station && station != 0 {
            return Some(self.own.me.mac);
        }
        self.members.get(station).map(|member| member.mac)
    }

    /// Whether the token skips this station.
    pub fn is_dead(&self, station: StationId) -> bool {
        self.ring.list.as_ref().is_some_and(|list| list.dead.contains(station))
    }

    /// The newest reservation list this station has seen, in token mode.
    pub fn list(&self) -> Option<&Token> {
        self.ring.list.as_ref().filter(|_| matches!(self.mode, Mode::Ring))
    }

    /// The mode as users see it.
    pub fn mode(&self) -> ModeName {
        match self.mode {
            Mode::Joining(_) => ModeName::Joining,
            Mode::Plain => ModeName::Plain,
            Mode::Initiating(_) | Mode::Yielding(_) => ModeName::Switching,
            Mode::Ring => ModeName::Token,
        }
    }

    /// The state in the words of `table.md`, which lists what every event does in it.
    pub fn state_name(&self) -> &'static str {
        match &self.mode {
            Mode::Joining(joining) if joining.ring => "joining a ring",
            Mode::Joining(_) => "joining",
            Mode::Plain => "plain",
            Mode::Initiating(_) => "initiating",
            Mode::Yielding(_) => "yielding",
            Mode::Ring if self.ring.claim.is_some() => "claiming",
            Mode::Ring if self.ring.hold.is_some() => "holding",
            Mode::Ring => "ring",
        }
    }

    /// How many modes the segment has seen.
    pub fn mode_epoch(&self) -> u32 {
        self.mode_epoch
    }

    /// Whether this station holds a token whose lease has not ended: the right to send.
    pub fn holds_token(&self, now: Instant) -> bool {
        matches!(self.mode, Mode::Ring) && self.ring.hold.as_ref().is_some_and(|hold| now <= hold.lease_end)
    }

    /// The generation counter of the newest token seen.
    pub fn generation(&self) -> u32 {
        self.fence.seen.generation.counter
    }

    /// The newest generation that this station has seen: a token of an older one is stale to it.
    pub fn newest(&self) -> Generation {
        self.fence.seen.generation
    }

    /// What the newest list or token that this station took was called.
    pub fn list_stamp(&self) -> (Generation, u64) {
        (self.fence.list_stamp.generation, self.fence.list_stamp.seq)
    }

    /// Whether the other runs a ring of the same key: each believes what the other says in it.
    pub fn shares_key(&self, other: &Self) -> bool {
        self.keys.current().is_some() && self.keys.current() == other.keys.current()
    }

    /// How many ordinary frames wait for the token.
    pub fn queued_frames(&self) -> usize {
        self.ordinary.nrt.frames()
    }

    /// Most octets and frames that the queue of ordinary traffic holds, a switch of mode included.
    pub fn queue_room(&self) -> (Octets, usize) {
        let (usual, switch) = flush::rooms(&self.settings);
        (Octets::new(usual.get() + switch.get()), queue::frames_in(usual, switch))
    }

    /// How many of those frames are the host's own.
    pub fn queued_host_frames(&self) -> usize {
        self.ordinary.nrt.host_frames()
    }

    /// How many of them are signalling of ours.
    pub fn queued_signalling(&self) -> usize {
        self.ordinary.nrt.signalling()
    }

    /// Keeps an idle token going round until then, so that its hops can be measured.
    pub(crate) fn keep_awake(&mut self, now: Instant, until: Instant) {
        self.awake_until = until;
        self.ask_for_token(now);
    }

    pub(crate) fn next_event(&mut self) -> Option<LinkEvent> {
        self.out.events.pop_front()
    }

    /// When [`Self::handle_deadline`] wants to be called.
    pub(crate) fn deadline(&self) -> Instant {
        if !self.out.outbox.is_empty()
            || !self.out.outputs.is_empty()
            || !self.out.events.is_empty()
            || self.is_worn()
        {
            return Instant::ZERO;
        }
        let mode = match &self.mode {
            // With frames still in the card a station that joins a ring starts over then.
            Mode::Joining(joining) => joining.again,
            Mode::Plain => self.tells.next_hello,
            Mode::Initiating(state) => state.again,
            Mode::Yielding(state) => state.acknowledge_at.unwrap_or(Instant::FAR).min(state.give_up),
            Mode::Ring => self.ring_deadline(),
        };
        let own = self.flush_deadline().min(self.contested_deadline());
        mode.min(self.watch_deadline()).min(own)
    }

    fn ring_deadline(&self) -> Instant {
        let hold = self.ring.hold.as_ref().map_or(Instant::FAR, |hold| self.hold_deadline(hold));
        let claim = self.ring.claim.as_ref().map_or(Instant::FAR, ClaimRound::deadline);
        let watches_silence = self.ring.hold.is_none() && self.ring.claim.is_none();
        let owed = self.ring.owed_ack.map_or(Instant::FAR, |(_, _, by)| by);
        let silence = self.ring.silence_at.min(self.ring.wills.due).min(self.deaf_deadline());
        hold.min(claim).min(owed).min(if watches_silence { silence } else { Instant::FAR })
    }

    /// Timers. Harmless when early.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        if self.is_worn() {
            self.renew(now);
        }
        self.tell_contested(now);
        match &self.mode {
            Mode::Joining(_) => self.joining_tick(now),
            Mode::Plain => self.plain_tick(now),
            Mode::Initiating(_) => self.initiating_tick(now),
            Mode::Yielding(_) => self.yielding_tick(now),
            Mode::Ring => self.ring_tick(now),
        }
    }

    fn ring_tick(&mut self, now: Instant) {
        self.hold_tick(now);
        self.owed_ack_tick(now);
        self.watch_tick(now);
        self.claim_tick(now);
        if self.ring.hold.is_none() && self.ring.claim.is_none() {
            if now >= self.ring.silence_at.min(self.ring.wills.due) {
                self.begin_claim(now);
            } else {
                self.deaf_tick(now);
            }
        }
    }

    /// Orders the gate and remembers what was ordered.
    fn order_gate(&mut self, order: GateOrder) {
        if self.ordinary.gate != order {
            self.ordinary.gate = order;
            self.out.outputs.push_back(Output::Gate { port: self.port, order });
        } else if order == GateOrder::Divert {
            // The parent answers each order, so that a new switch learns anew when the card is empty.
            self.out.outputs.push_back(Output::Gate { port: self.port, order });
        }
    }

    /// An ordinary frame waits.
    pub(crate) fn on_host_frame(&mut self, now: Instant, tag: HostTag, octets: u16, level: u8) {
        if self.ordinary.gate == GateOrder::Pass {
            // It was diverted just before the gate opened.
            self.out.outputs.push_back(Output::TransmitHost { port: self.port, tag });
            return;
        }
        self.set_queue_room(now);
        if !self.enqueue(now, level.min(7), queue::Entry { origin: Origin::Host(tag), octets }) {
            self.count_refused(now);
            self.out.outputs.push_back(Output::DropHost { tag });
        }
    }

    /// Something waits behind its level; false when there is no room.
    fn enqueue(&mut self, now: Instant, level: u8, entry: queue::Entry) -> bool {
        let was_empty = self.ordinary.nrt.is_empty();
        let taken = self.ordinary.nrt.push(level, entry);
        if taken && was_empty && self.ordinary.gate == GateOrder::Divert && !self.is_flushing() {
            self.ask_for_token(now);
        }
        taken
    }

    /// A frame of link control waits. `first` is for the next frame of a message that has begun.
    pub(crate) fn queue_llc(&mut self, now: Instant, slot: u16, octets: u16, level: u8, first: bool) {
        let (entry, level) = (queue::Entry { origin: Origin::Llc(slot), octets }, level.min(7));
        if !first {
            self.enqueue(now, level, entry);
            return;
        }
        let was_empty = self.ordinary.nrt.is_empty();
        self.ordinary.nrt.push_first(level, entry);
        // In the middle of a visit nobody need be asked: a long message would ask in each of its own, have
        // the next cycle's round begin with this station, and the others never had their turn.
        let visiting =
            self.ring.hold.as_ref().is_some_and(|hold| matches!(hold.stage, visit::Stage::Nrt { .. }));
        if was_empty && self.ordinary.gate == GateOrder::Divert && !visiting && !self.is_flushing() {
            self.ask_for_token(now);
        }
    }

    /// One does not wait any more.
    pub(crate) fn unqueue_llc(&mut self, level: u8, slot: u16) {
        self.ordinary.nrt.unqueue(level, slot);
    }

    /// Those that are over do not wait any more.
    pub(crate) fn sweep_llc(&mut self, is_over: impl Fn(u16) -> bool) {
        self.ordinary.nrt.sweep(is_over);
    }

    /// In plain mode the queue holds little but frames of link control, and they leave at once; behind a
    /// gate that is still to open all leave at the link's pace.
    fn next_ungated(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        if self.ordinary.gate == GateOrder::Divert {
            return self.next_flushed(now, frame);
        }
        while let Some((level, entry)) = self.ordinary.nrt.pop() {
            let output = self.let_go(level, entry.origin).or_else(|| self.write_pending(now, frame));
            if output.is_some() {
                return output;
            }
        }
        None
    }

    /// An entry leaves the queue: the frame itself, or signalling that is written next.
    fn let_go(&mut self, level: usize, origin: Origin) -> Option<Output> {
        let pending = match origin {
            Origin::Host(tag) => return Some(Output::TransmitHost { port: self.port, tag }),
            Origin::Llc(slot) => {
                let tag = HostTag(LLC_TAGS | (level as u32) << 16 | u32::from(slot));
                return Some(Output::TransmitHost { port: self.port, tag });
            }
            Origin::Announce => Pending::Announce,
            Origin::Report => Pending::Report,
            Origin::Control(index) => {
                let (to, signal) = self.ordinary.signals[usize::from(index)].take()?;
                Pending::Signal { to, signal }
            }
        };
        self.out.outbox.push_back(pending);
        None
    }

    /// A frame of link control has come: its own machine knows of it, and monitors are to.
    pub(crate) fn llc_heard(&mut self, octets: usize) {
        self.tally.count_heard(Class::Llc, octets);
    }

    /// A frame of link control leaves. Only now the visit has spent a place on it: an entry that turned out
    /// to be pointless costs none.
    pub(crate) fn llc_sent(&mut self, now: Instant, level: usize, octets: u16) {
        self.tally.count_sent(Class::Llc, usize::from(octets));
        let Some(visit::Stage::Nrt { left, sent }) = self.ring.hold.as_ref().map(|hold| hold.stage) else {
            return;
        };
        // One longer than its entry said takes the last place whole.
        let whole = visit::Sent::Others(self.settings.link.frame_cost_max());
        let (left, with) = self.with_frame(false, octets, left, sent).unwrap_or((0, whole));
        self.counters.visited(sent, with);
        self.stage(visit::Stage::Nrt { left, sent: with });
        self.tally.count_level(level, octets);
        self.charge_octets(now, octets);
    }

    /// Queues signalling of ours: at once in plain mode, at the highest level in token mode.
    pub(crate) fn send_signal(&mut self, now: Instant, to: MacAddr, signal: Signal) {
        if matches!(self.mode, Mode::Plain | Mode::Joining(_)) {
            self.out.outbox.push_back(Pending::Signal { to, signal });
            return;
        }
        if self.ordinary.signals.contains(&Some((to, signal))) {
            return;
        }
        let free = self.ordinary.signals.iter().position(Option::is_none);
        if free.is_none() && self.ordinary.signals.len() >= SIGNALS_MAX {
            // Every signal is repeated until it is answered, so one that finds no room is only late.
            return;
        }
        let index = free.unwrap_or_else(|| {
            self.ordinary.signals.push(None);
            self.ordinary.signals.len() - 1
        });
        self.ordinary.signals[index] = Some((to, signal));
        let origin = Origin::Control(index as u16);
        self.enqueue(now, queue::SIGNALLING, queue::Entry { origin, octets: outbox::signal_octets(&signal) });
    }

    /// Queues this station's report, as ordinary traffic of the lowest level where the token rules. On the
    /// way between the modes nothing that can wait is sent.
    pub(crate) fn send_report(&mut self, now: Instant, report: &Report) {
        let Some(place) = &mut self.ordinary.report else { return };
        let (waits, ring) = (place.1, matches!(self.mode, Mode::Ring));
        if waits || self.tells.leaving || !(ring || matches!(self.mode, Mode::Plain)) {
            return;
        }
        **place = (*report, true);
        if !ring {
            self.out.outbox.push_back(Pending::Report);
            return;
        }
        let octets = outbox::report_octets(report);
        self.enqueue(now, 0, queue::Entry { origin: Origin::Report, octets });
    }

    pub(crate) fn next_interval(&mut self) {
        self.tally.rotation.next_interval();
    }

    /// Whether that station's clock is this one's: delays between the two can be measured.
    pub(crate) fn shares_clock(&self, mac: MacAddr) -> bool {
        self.members.by_mac(mac).is_some_and(|member| member.announce.boot_id == self.own.me.boot_id)
    }

    /// A fragment found its channel here.
    pub(crate) fn count_fragment(&mut self) {
        self.counters.fragments_received += 1;
    }

    /// In token mode nobody says hello: who joins learns names from announcements sent under the token.
    fn introduce(&mut self, now: Instant) {
        let entry = queue::Entry { origin: Origin::Announce, octets: outbox::ANNOUNCE_OCTETS };
        if !self.ordinary.nrt.levels[usize::from(queue::SIGNALLING)].contains(&entry) {
            self.enqueue(now, queue::SIGNALLING, entry);
        }
    }

    fn hop(&self) -> Span {
        self.settings.link.hop
    }

    /// Stations of the segment, this one included.
    pub(crate) fn ring_size(&self) -> u16 {
        self.members.as_slice().len() as u16 + 1
    }

    fn event(&mut self, event: LinkEvent) {
        self.out.events.push_back(event);
    }

    fn session(&mut self, channel: ChannelId) -> Option<&mut Session> {
        self.shares.sessions.iter_mut().find(|session| session.channel == channel)
    }
}
