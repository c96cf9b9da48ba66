//! A point-to-point link: a full-duplex cable between two stations, for two hosts and for gateways.
//!
//! ```text
//!            a hello answers ours        first share asked for
//!  Joining ──────────────────────► Plain ────────────────────► Switching
//!     ▲                            │   ▲                           │ card and cable are empty
//!     └── silence, will, goodbye ──┘   └── last share given back ── Paced
//! ```
//!
//! There is no token: each direction has one sender, which admits its own shares (`rota_admission`, the
//! proof stands in `cable.rs`) and grants them to its port. Without a channel the gate is open, and the
//! medium says hello. With one in either direction, ordinary frames of both ends pass their port's queue: a
//! flood of the receiver's host would keep its hellos, and its answers to the sender, from the cable. Slots
//! of sessions go first, in the order in which they were admitted; then packets of channels across segments
//! by their deadlines or levels (`flows.rs`, `groups.rs`), those of the statistical class
//! (`statistical.rs`), and ordinary frames one by one while none of these waits (`grant.rs`).
//!
//! The stations find and prove each other by hellos under the segment's key (`meet.rs`). Each hello has the
//! sender's nonce and answers the other's. A boot is believed once it has answered our nonce; from then on
//! every frame of it has a rising counter, so that nothing of an earlier boot or meeting counts.
//!
//! A link has two ends. A third station is named and never answered.

mod booked;
mod flows;
mod grant;
mod groups;
mod handle;
mod left;
mod meet;
mod outbox;
mod shares;
mod slots;
mod statistical;
#[cfg(test)]
mod tests;

use crate::budget::Budget;
use crate::door::{Deadline, Demand, FrameVerdict, Identity, Note, PortId, StationId, Timer};
use crate::event::{MediumEvent, TimersInForce, Why};
use crate::members::{Member, Members};
use crate::mismatch::Mismatched;
use crate::mismatch::Mismatches;
use crate::rng::Rng;
use crate::sealing::Own;
use crate::settings::Settings;
use crate::tally::{Counters, MediumTally};
pub use booked::PortThen;
pub use flows::FlowPort;
use grant::Pace;
use meet::Meeting;
use outbox::Pending;
use rota_contract::{ModeName, NodeId};
use rota_units::{Instant, Span};
use rota_wire::{Key, MacAddr};
use shares::Shares;
use std::collections::VecDeque;

/// For so long the gate stays open for channels to this station where it could not be shut.
const GIVEN_UP: Span = Span::from_millis(2_000);

/// The gate of ordinary traffic, as this medium has ordered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// Ordinary traffic is free: there is no channel.
    Open,
    /// The first share waits for the card to be empty; behind `patience` it waits no longer.
    Closing { patience: Instant },
    /// The card is empty; what has left it is on the cable until then.
    Draining { until: Instant },
    /// Ordinary frames wait for grants.
    Shut,
}

/// The frames, notes and events of the machine.
#[derive(Clone, Debug)]
struct Out {
    outbox: VecDeque<Pending>,
    notes: VecDeque<Note>,
    events: VecDeque<MediumEvent>,
    /// The first verdict on the newest frame.
    verdict: FrameVerdict,
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct Link {
    settings: Settings,
    digest: u64,
    port: PortId,
    own: Own,
    rng: Rng,
    /// The key of all frames.
    key: Key,
    /// The other station, once it is proven.
    members: Members,
    mismatches: Mismatches,
    meeting: Meeting,
    gate: Gate,
    shares: Shares,
    pace: Pace,
    out: Out,
    /// Answers to hellos.
    answers: Budget,
    leaving: bool,
    counters: Counters,
    tally: MediumTally,
}

impl Link {
    /// A station that begins to look for the other end at `now`. `seed` feeds nonces and the incarnation.
    pub fn new(
        now: Instant,
        port: PortId,
        me: Identity,
        secret: &Key,
        settings: Settings,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let (incarnation, nonce) = ((rng.next_u64() >> 32) as u32 | 1, meet::nonce(&mut rng));
        let room = 1_024;
        Self {
            own: Own { me, station: 0, incarnation, nonce, answers: 0, frame_seq: 0 },
            key: secret.derive(crate::sealing::SEGMENT_KEY_PURPOSE, [settings.segment.to_be_bytes()].iter()),
            members: Members::new(),
            mismatches: Mismatches::new(),
            meeting: Meeting::new(now),
            gate: Gate::Open,
            shares: Shares::new(),
            pace: Pace::default(),
            out: Out {
                outbox: VecDeque::with_capacity(room),
                notes: VecDeque::with_capacity(room),
                events: VecDeque::with_capacity(room),
                verdict: FrameVerdict::Taken,
            },
            answers: Budget::new(10, 2),
            leaving: false,
            counters: Counters::default(),
            tally: MediumTally::default(),
            digest: settings.digest(),
            settings,
            port,
            rng,
        }
    }

    // ---- to look at -----------------------------------------------------------------------------------

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The mode as users see it.
    pub fn mode(&self) -> ModeName {
        match self.gate {
            _ if self.peer().is_none() => ModeName::Joining,
            Gate::Open => ModeName::Plain,
            Gate::Closing { .. } | Gate::Draining { .. } => ModeName::Switching,
            Gate::Shut => ModeName::Paced,
        }
    }

    /// This end's number, 1 for the smaller address; 0 while the other end is not known.
    pub fn station(&self) -> StationId {
        self.own.station
    }

    /// This boot of this station.
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

    /// This station's address.
    pub fn mac(&self) -> MacAddr {
        self.own.me.mac
    }

    /// The other station, if it is proven.
    pub fn members(&self) -> &[Member] {
        self.members.as_slice()
    }

    fn peer(&self) -> Option<&Member> {
        self.members.as_slice().first()
    }

    /// The other station, if it has this address.
    pub fn member_at(&self, mac: MacAddr) -> Option<&Member> {
        self.members.by_mac(mac)
    }

    /// The ends that are there, this one included.
    pub fn stations(&self) -> u16 {
        1 + self.members.as_slice().len() as u16
    }

    /// The number of the station of this address, this one included; 0 while it has none.
    pub fn number(&self, mac: MacAddr) -> StationId {
        if mac == self.own.me.mac {
            return self.own.station;
        }
        self.member_at(mac).map_or(0, |peer| peer.station)
    }

    /// The address of the station that has this number, this one included.
    pub fn address(&self, station: StationId) -> Option<MacAddr> {
        if station == self.own.station && station != 0 {
            return Some(self.own.me.mac);
        }
        self.members.get(station).map(|peer| peer.mac)
    }

    /// True if that station's clock is this one's.
    pub fn shares_clock(&self, mac: MacAddr) -> bool {
        self.member_at(mac).is_some_and(|peer| peer.announce.boot_id == self.own.me.boot_id)
    }

    /// Stations that do not fit here, why, and both values.
    pub fn mismatches(&self, now: Instant) -> impl Iterator<Item = Mismatched<'_>> {
        self.mismatches.all(now)
    }

    /// The counters. A link has no token, so that most of them stay zero.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The counts of frames sent and heard.
    pub fn tally(&self) -> &MediumTally {
        &self.tally
    }

    /// How long the other end may be silent while a channel is open.
    pub fn timers_in_force(&self) -> TimersInForce {
        let (death, none) = (self.silence_max(), Span::ZERO);
        TimersInForce { death, silence: death, hold: none, drain: none, why: Why::Configured }
    }

    // ---- the port -------------------------------------------------------------------------------------

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

    /// The next event.
    pub fn next_event(&mut self) -> Option<MediumEvent> {
        self.out.events.pop_front()
    }

    fn event(&mut self, event: MediumEvent) {
        self.out.events.push_back(event);
    }

    /// The port says which ordinary frame would leave next.
    pub fn set_demand(&mut self, first: Option<Demand>) {
        self.pace.first = first;
    }

    /// The port's next own frames come behind the frames that wait by now.
    pub fn queue_ports(&mut self) {
        self.out.outbox.push_back(Pending::Ports);
    }

    /// An interval between two reports is over.
    pub fn next_interval(&mut self) {
        self.tally.rotation.next_interval();
    }

    /// True once this station has said that it leaves.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Leaves in good order: the shares end, and the other end is told.
    pub fn leave(&mut self, now: Instant) {
        self.leaving = true;
        self.shares.sessions.clear();
        self.shares.flows.clear();
        self.open_gate(now);
        self.out.outbox.push_back(Pending::Leaving);
    }

    // ---- timers ---------------------------------------------------------------------------------------

    /// When [`Self::handle_deadline`] wants to be called, and by which timer.
    pub fn deadline(&self) -> Deadline<Timer> {
        let out = &self.out;
        if !out.outbox.is_empty() || !out.notes.is_empty() || !out.events.is_empty() {
            return Deadline::new(Instant::ZERO, Timer::Waiting);
        }
        let gate = match self.gate {
            Gate::Closing { patience } => Deadline::new(patience, Timer::Initiating),
            Gate::Draining { until } => Deadline::new(until, Timer::Draining),
            Gate::Open | Gate::Shut => Deadline::new(self.slot_deadline(), Timer::Slot),
        };
        gate.or(Deadline::new(self.hello_deadline(), Timer::Hello))
            .or(Deadline::new(self.silence_deadline(), Timer::Peer))
    }

    /// Timers. Harmless when early.
    pub fn handle_deadline(&mut self, now: Instant) {
        self.meet_tick(now);
        self.settle_gate(now);
        match self.gate {
            Gate::Closing { patience } if now >= patience => self.give_gate_up(now),
            Gate::Draining { until } if now >= until => self.shut_gate(now),
            _ => {}
        }
    }

    // ---- the gate -------------------------------------------------------------------------------------

    /// A channel of the other station to this one keeps the gate shut, too, once its medium knows of it.
    fn settle_gate(&mut self, now: Instant) {
        let receives = self.shares.receives && self.peer().is_some();
        if receives && now >= self.shares.shuts_from && !self.leaving {
            self.close_gate(now);
        } else if !receives && self.shares.sessions.is_empty() {
            self.open_gate(now);
        }
    }

    /// The first channel is asked for: ordinary frames wait from now on.
    fn close_gate(&mut self, now: Instant) {
        if self.gate != Gate::Open {
            return;
        }
        self.counters.switches += 1;
        self.gate = Gate::Closing { patience: now + self.settings.switch_timeout(2) * 2 };
        self.out.notes.push_back(Note::Divert);
        self.event(MediumEvent::ModeChanged);
    }

    /// The frames that this station itself sent have left its card. A device on the cable may hold some more.
    pub fn on_card_empty(&mut self, now: Instant) {
        if matches!(self.gate, Gate::Closing { .. }) {
            let drain = self.settings.link.rate.span_of_up(self.settings.port_queue);
            self.gate = Gate::Draining { until: now + drain };
        }
    }

    fn shut_gate(&mut self, now: Instant) {
        self.gate = Gate::Shut;
        self.pace.begin(now);
        self.shares.begin();
        self.event(MediumEvent::ModeChanged);
        self.admit_waiting(now);
    }

    /// The card does not empty, so that no share could be kept. For channels to this station the gate is
    /// tried again with a later hello.
    fn give_gate_up(&mut self, now: Instant) {
        self.shares.shuts_from = now + GIVEN_UP;
        self.lose_shares();
        self.open_gate(now);
    }

    /// No channel is left: ordinary traffic is free again.
    fn open_gate(&mut self, now: Instant) {
        if self.gate == Gate::Open {
            return;
        }
        self.gate = Gate::Open;
        self.pace.begin(now);
        self.out.outbox.push_back(Pending::Ports);
        self.out.notes.push_back(Note::Flush);
        self.out.notes.push_back(Note::Free);
        self.event(MediumEvent::ModeChanged);
    }
}
