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

mod apart;
mod astray;
mod behind;
mod claim;
mod contested;
mod counters;
mod ended;
mod enlarge;
mod form;
mod groups;
mod handle;
mod held;
mod hog;
mod hold;
mod join;
mod keys;
#[cfg(feature = "model")]
mod model;
mod outbox;
mod parts;
mod patience;
mod plain;
mod reserve;
mod ring;
mod sound;
mod visit;
mod wake;
mod will;

pub use contested::Sign;
pub use held::HeldOff;
pub use join::{HOLD_OFF_MAX, Refused};
#[cfg(feature = "model")]
pub use model::Visit;
pub use outbox::ANNOUNCE_OCTETS;

use crate::door::Identity;
use crate::door::{Deadline, Demand, Note, PartitionLoad, SessionId, Timer};
use crate::door::{PortId, StationId};
use crate::event::MediumEvent;
use crate::members::{Member, Members};
use crate::rng::Rng;
use crate::sealing::Own;
use crate::settings::Settings;
use crate::tally::{Counters, MediumTally};
use claim::ClaimRound;
use form::Forming;
use keys::KeyRing;
use outbox::Pending;
use parts::{Fence, Ordinary, Others, Out, Shares, Tells};
use reserve::Session;
use ring::Ring;
use rota_contract::{ModeName, NodeId};
use rota_units::{Instant, Span};
use rota_wire::{Generation, Key, MacAddr, Slot, Token};

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
    acked: Vec<(MacAddr, u64)>,
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
enum Mode {
    Joining(Joining),
    Plain,
    Initiating(Initiating),
    Yielding(Yielding),
    /// All state of the ring lives and dies with the mode.
    Ring(Box<Ring>),
}

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
    /// The parts of a new ring's Form that have come.
    forming: Forming,
    tells: Tells,
    awake_until: Instant,
    others: Others,
    shares: Shares,
    lane: Ordinary,
    out: Out,
    counters: Counters,
    tally: MediumTally,
}

impl Rether {
    /// A station that begins to look for its segment at `now`. `seed` feeds nonces and the incarnation.
    pub fn new(
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
            forming: Forming::new(),
            tells: Tells::new(),
            awake_until: Instant::ZERO,
            others: Others::new(now),
            shares: Shares::new(),
            lane: Ordinary::default(),
            out: Out::new(),
            counters: Counters::default(),
            tally: MediumTally::default(),
            digest: settings.digest(),
            settings,
            port,
            rng,
        }
    }

    /// Is told if a station has a channel to this one.
    pub fn set_receives(&mut self, receives: bool) {
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
    pub fn node_id(&self) -> NodeId {
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
    pub fn tally(&self) -> &MediumTally {
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
        self.mode.list().is_some_and(|list| list.dead.contains(station))
    }

    /// The newest reservation list this station has seen, in token mode.
    pub fn list(&self) -> Option<&Token> {
        self.mode.list()
    }

    /// The loads of all partitions by the newest list, the rest first: one for each of the settings.
    pub fn partition_loads(&self) -> impl Iterator<Item = PartitionLoad> + '_ {
        self.settings.partitions.iter().map(|(number, ..)| {
            let own = self.slots().iter().filter(|slot| slot.partition == number);
            let work = own.clone().map(|slot| Span::from_nanos(slot.tht_ns.into())).sum();
            PartitionLoad { channels: own.count(), work }
        })
    }

    /// The slots of the newest list; none where there is no list.
    pub fn slots(&self) -> &[Slot] {
        self.list().map_or(&[], |list| list.slots.as_slice())
    }

    /// The mode as users see it.
    pub fn mode(&self) -> ModeName {
        match self.mode {
            Mode::Joining(_) => ModeName::Joining,
            Mode::Plain => ModeName::Plain,
            Mode::Initiating(_) | Mode::Yielding(_) => ModeName::Switching,
            Mode::Ring(_) => ModeName::Token,
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
            Mode::Ring(ring) if ring.claim.is_some() => "claiming",
            Mode::Ring(ring) if ring.hold.is_some() => "holding",
            Mode::Ring(_) => "ring",
        }
    }

    /// How many modes the segment has seen.
    pub fn mode_epoch(&self) -> u32 {
        self.mode_epoch
    }

    /// Whether this station holds a token whose lease has not ended: the right to send.
    pub fn holds_token(&self, now: Instant) -> bool {
        self.mode.hold().is_some_and(|hold| now <= hold.lease_end)
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

    /// Keeps an idle token going round until then, so that its hops can be measured.
    pub fn keep_awake(&mut self, now: Instant, until: Instant) {
        self.awake_until = until;
        self.ask_for_token(now);
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<MediumEvent> {
        self.out.events.pop_front()
    }

    /// When [`Self::handle_deadline`] wants to be called, and by which timer.
    pub fn deadline(&self) -> Deadline<Timer> {
        if !self.out.is_empty() || self.is_worn() {
            return Deadline::new(Instant::ZERO, Timer::Waiting);
        }
        let mode = match &self.mode {
            // With frames still in the card a station that joins a ring starts over then.
            Mode::Joining(joining) => Deadline::new(joining.again, Timer::Joining),
            Mode::Plain => Deadline::new(self.tells.next_hello, Timer::Hello),
            Mode::Initiating(state) => Deadline::new(state.again, Timer::Initiating),
            Mode::Yielding(state) => {
                let at = state.acknowledge_at.unwrap_or(Instant::FAR).min(state.give_up);
                Deadline::new(at, Timer::Yielding)
            }
            Mode::Ring(ring) => self.ring_deadline(ring),
        };
        mode.or(Deadline::new(self.contested_deadline(), Timer::Contested))
    }

    fn ring_deadline(&self, ring: &Ring) -> Deadline<Timer> {
        let far = Deadline::new(Instant::FAR, Timer::Hold);
        let hold = ring.hold.as_ref().map_or(far, |hold| self.hold_deadline(hold));
        let claim = ring.claim.as_ref().map_or(Instant::FAR, ClaimRound::deadline);
        let owed = ring.owed_ack.map_or(Instant::FAR, |(_, _, by)| by);
        let watch = ring.watch.as_ref().map_or(Instant::FAR, |watch| watch.again);
        let busy = hold
            .or(Deadline::new(claim, Timer::Claim))
            .or(Deadline::new(owed, Timer::Acknowledgement))
            .or(Deadline::new(watch, Timer::Successor));
        if ring.hold.is_some() || ring.claim.is_some() {
            return busy;
        }
        busy.or(Deadline::new(ring.silence_at, Timer::Silence))
            .or(Deadline::new(ring.wills.due, Timer::Will))
            .or(Deadline::new(self.deaf_deadline(), Timer::Deaf))
    }

    /// Timers. Harmless when early.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self.is_worn() {
            self.renew(now);
        }
        self.tell_contested(now);
        match &self.mode {
            Mode::Joining(_) => self.joining_tick(now),
            Mode::Plain => self.plain_tick(now),
            Mode::Initiating(_) => self.initiating_tick(now),
            Mode::Yielding(_) => self.yielding_tick(now),
            Mode::Ring(_) => self.ring_tick(now),
        }
    }

    fn ring_tick(&mut self, now: Instant) {
        self.hold_tick(now);
        self.owed_ack_tick(now);
        self.watch_tick(now);
        self.claim_tick(now);
        let Some(ring) = self.mode.ring() else { return };
        if ring.hold.is_none() && ring.claim.is_none() {
            if now >= ring.silence_at.min(ring.wills.due) {
                self.begin_claim(now);
            } else {
                self.deaf_tick(now);
            }
        }
    }

    // ---- the port -------------------------------------------------------------------------------------

    /// From now on ordinary frames wait for a ring's token.
    fn divert(&mut self) {
        self.lane.held = true;
        self.out.notes.push_back(Note::Divert);
    }

    /// Ordinary traffic is free again.
    fn let_flow(&mut self) {
        self.lane.held = false;
        self.out.notes.push_back(Note::Free);
    }

    /// The port's own frames that wait for a grant leave now: the medium is free for all again.
    fn flush_queue(&mut self) {
        self.out.outbox.push_back(Pending::Ports);
        self.out.notes.push_back(Note::Flush);
    }

    /// The port says which ordinary frame would leave next. The first that waits has the token asked for.
    pub fn demand(&mut self, now: Instant, first: Option<Demand>) {
        let was_empty = self.lane.is_empty();
        self.set_demand(first);
        if first.is_some() && was_empty && self.lane.held {
            self.ask_for_token(now);
        }
    }

    /// The same where nothing has joined the queue.
    pub fn set_demand(&mut self, first: Option<Demand>) {
        self.lane.first = first;
    }

    /// The port's next own frames come behind the frames that wait by now.
    pub fn queue_ports(&mut self) {
        self.out.outbox.push_back(Pending::Ports);
    }

    /// True if there is a note to the port. It is asked many times for each frame.
    #[inline]
    pub fn has_note(&self) -> bool {
        !self.out.notes.is_empty()
    }

    /// True if there is an event.
    #[inline]
    pub fn has_event(&self) -> bool {
        !self.out.events.is_empty()
    }

    /// True if a control frame waits, or the mark of the port's own.
    #[inline]
    pub fn has_frame(&self) -> bool {
        !self.out.outbox.is_empty()
    }

    /// The next note to the port.
    pub fn next_note(&mut self) -> Option<Note> {
        self.out.notes.pop_front()
    }

    /// In token mode nobody says hello: who joins learns names from announcements sent under the token. This
    /// one takes part in the port's queue.
    fn introduce(&mut self, now: Instant) {
        if self.lane.introduces {
            return;
        }
        let was_empty = self.lane.is_empty();
        self.lane.introduces = true;
        self.out.notes.push_back(Note::Introduce);
        if was_empty && self.lane.held {
            self.ask_for_token(now);
        }
    }

    /// The introduction has left the port's queue, and is written at its place among the own frames.
    pub fn take_introduction(&mut self) {
        self.lane.introduces = false;
    }

    /// True once this station has said that it leaves.
    pub fn is_leaving(&self) -> bool {
        self.tells.leaving
    }

    /// An interval between two reports is over.
    pub fn next_interval(&mut self) {
        self.tally.rotation.next_interval();
    }

    /// Whether that station's clock is this one's: delays between the two can be measured.
    pub fn shares_clock(&self, mac: MacAddr) -> bool {
        self.members.by_mac(mac).is_some_and(|member| member.announce.boot_id == self.own.me.boot_id)
    }

    fn hop(&self) -> Span {
        self.settings.link.hop
    }

    /// Stations of the segment, this one included.
    pub fn ring_size(&self) -> u16 {
        self.members.as_slice().len() as u16 + 1
    }

    fn event(&mut self, event: MediumEvent) {
        self.out.events.push_back(event);
    }

    fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.shares.sessions.iter_mut().find(|session| session.id == id)
    }
}
