//! A port: one medium, the frames that wait for it, and the gate that holds the host's own ones back.
//!
//! The medium decides which station may send when. The port decides what leaves then: it alone spends grants.
//! A grant for a session lets its units leave, cut to frames (`units.rs`); any other lets the eight-level
//! queue of ordinary traffic leave (`queue.rs`). Behind an open gate nothing waits for grants, and between
//! the modes the queue leaves in order (`flush.rs`). Frames of this station that need no place in the queue
//! leave at their turn among the medium's control frames (`own.rs`).

mod counters;
mod flush;
mod groups;
mod hops;
mod medium;
#[cfg(feature = "model")]
mod model;
mod own;
mod pace;
mod queue;
mod spend;
mod status;
#[cfg(test)]
mod tests;
mod units;

pub use counters::{Counters, PortTally};
pub use medium::Medium;
pub use status::{GroupStatus, PartitionStatus, Status};

use crate::io::{FrameBuf, GateOrder, HostTag, Output, PortId, channel_of};
use flush::Turning;
use own::Own;
use queue::{Entry, NrtQueue, Origin};
pub use queue::{NODE_FRAMES, NODE_LEVEL};
use rota_medium::door::Identity;
use rota_medium::door::{Deadline, Demand, Frame, Note, Place, Timer, Turn, Way};
use rota_medium::{Arrived, MediumEvent, Settings};
use rota_units::{Instant, Octets, Span};
use rota_wire::{Class, Generation, Key, Kind, MacAddr};
use spend::Spending;
use std::collections::VecDeque;
use units::Units;

/// One port of a node.
#[derive(Clone, Debug)]
pub struct Port {
    id: PortId,
    medium: Medium,
    units: Units,
    /// Those that share reservations.
    groups: groups::Groups,
    queue: NrtQueue,
    own: Own,
    gate: GateOrder,
    turning: Turning,
    spending: Spending,
    outputs: VecDeque<Output>,
    /// The octets of the unit whose slot is told next, or was told last.
    ended_octets: u32,
    /// When the next packet of a hop becomes eligible.
    eligible_at: Instant,
    /// When the link has carried the TPDUs of circuits that have left without a grant.
    circuits_free: Instant,
    counters: Counters,
    tally: counters::OwnTally,
}

impl Port {
    /// A port whose medium begins to look for its segment at `now`. `seed` feeds nonces and the incarnation.
    pub(crate) fn new(
        now: Instant,
        id: PortId,
        me: Identity,
        secret: &Key,
        settings: Settings,
        seed: u64,
    ) -> Self {
        let (usual, switch) = flush::rooms(&settings);
        Self {
            id,
            units: Units::new(),
            groups: groups::Groups::default(),
            queue: NrtQueue::new(usual, switch),
            own: Own::new(settings.report > Span::ZERO),
            gate: GateOrder::Pass,
            turning: Turning::No,
            spending: Spending::default(),
            outputs: VecDeque::with_capacity(1024),
            ended_octets: 0,
            eligible_at: Instant::FAR,
            circuits_free: Instant::ZERO,
            counters: Counters::default(),
            tally: counters::OwnTally::default(),
            medium: Medium::new(now, id, me, secret, settings, seed),
        }
    }

    /// Its number.
    pub const fn id(&self) -> PortId {
        self.id
    }

    /// The medium, to look at.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// The counters of units and ordinary frames.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The octets of the unit that the newest [`Output::Slot`] tells of.
    pub(crate) fn ended_octets(&self) -> u32 {
        self.ended_octets
    }

    /// How many ordinary frames wait for a grant.
    pub fn queued_frames(&self) -> usize {
        self.queue.frames()
    }

    /// Most octets and frames that the queue of ordinary traffic holds, a switch of mode included.
    pub fn queue_room(&self) -> (Octets, usize) {
        let (usual, switch) = flush::rooms(self.medium.settings());
        (Octets::new(usual.get() + switch.get()), queue::frames_in(usual, switch))
    }

    /// How many of those frames are the host's own.
    pub fn queued_host_frames(&self) -> usize {
        self.queue.host_frames()
    }

    /// How many of them are signalling of ours.
    pub fn queued_signalling(&self) -> usize {
        self.queue.signalling()
    }

    // ---- handling -------------------------------------------------------------------------------------

    /// One frame. Bad ones are counted, never an error.
    pub(crate) fn on_frame<'a>(&mut self, now: Instant, at: Option<Instant>, data: &'a [u8]) -> Arrived<'a> {
        self.tell(now, |medium| medium.on_frame(now, at, data))
    }

    /// Data came that left under the grant of this stamp, and this is its place among its sender's.
    pub(crate) fn on_place(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        from: MacAddr,
        stamp: (Generation, u64),
        place: Place,
    ) {
        self.tell(now, |medium| medium.on_place(at, from, stamp, place));
    }

    /// Our own frames have left the card.
    pub(crate) fn on_card_empty(&mut self, now: Instant) {
        self.medium.on_card_empty(now);
        self.heed(now);
    }

    /// An ordinary frame waits.
    pub(crate) fn on_host_frame(&mut self, now: Instant, tag: HostTag, octets: u16, level: u8) {
        self.heed(now);
        if self.gate == GateOrder::Pass {
            // It was diverted just before the gate opened.
            self.outputs.push_back(Output::TransmitHost { port: self.id, tag });
            return;
        }
        self.set_queue_room(now);
        if !self.enqueue(now, level.min(NODE_LEVEL), Entry { origin: Origin::Host(tag), octets }) {
            self.count_refused(now);
            self.outputs.push_back(Output::DropHost { port: self.id, tag });
        }
    }

    /// Timers. Harmless when early.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        self.medium.handle_deadline(now);
        self.heed(now);
    }

    /// Leaves the segment in good order.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.counters.packets.ended += self.units.clear();
        self.groups.retain_those_of(&self.units);
        self.look_for_eligible();
        self.medium.leave(now);
        self.heed(now);
    }

    /// The medium, for what leads to no note of it.
    pub(crate) fn medium_mut(&mut self) -> &mut Medium {
        &mut self.medium
    }

    /// Tells the medium what this station's other machines have found out about it.
    pub(crate) fn tell<R>(&mut self, now: Instant, tell: impl FnOnce(&mut Medium) -> R) -> R {
        let answer = tell(&mut self.medium);
        self.heed(now);
        answer
    }

    /// Heeds the notes of the medium. Due after each call that may have made one, and before what this port
    /// itself queues, so that both keep their order.
    #[inline]
    fn heed(&mut self, now: Instant) {
        // There is none nearly always, and each frame has several of these looks.
        if self.medium.has_note() {
            self.heed_notes(now);
        }
    }

    fn heed_notes(&mut self, now: Instant) {
        while let Some(note) = self.medium.next_note() {
            match note {
                Note::Divert => self.divert(now),
                Note::Free => self.let_flow(now),
                Note::Flush => self.flush_own(),
                Note::Introduce => {
                    let entry =
                        Entry { origin: Origin::Announce, octets: rota_medium::rether::ANNOUNCE_OCTETS };
                    self.queue.push(queue::SIGNALLING, entry);
                    // The medium has counted with it already.
                    self.lower_demand();
                }
                Note::Hold { generation, accepted, passed } => {
                    self.outputs.push_back(Output::Hold { port: self.id, generation, accepted, passed });
                }
                Note::Round { hops, span } => {
                    self.outputs.push_back(Output::Round { port: self.id, hops, span })
                }
            }
        }
    }

    /// The next event of the medium. A session that it has ended has no units any more.
    #[inline]
    pub(crate) fn next_event(&mut self) -> Option<MediumEvent> {
        if self.medium.has_event() { self.take_event() } else { None }
    }

    fn take_event(&mut self) -> Option<MediumEvent> {
        let event = self.medium.next_event()?;
        if let MediumEvent::Released { session }
        | MediumEvent::Refused { session, .. }
        | MediumEvent::ReservationLost { session } = event
        {
            self.counters.packets.ended += self.units.remove(channel_of(session));
            self.groups.retain_those_of(&self.units);
            self.look_for_eligible();
        }
        Some(event)
    }

    // ---- the queue ------------------------------------------------------------------------------------

    /// The frame that would leave next.
    fn demand(&self) -> Option<Demand> {
        self.queue.front().map(|(level, entry)| {
            let leads = level == usize::from(queue::SIGNALLING) || self.queue.others_first;
            Demand { octets: entry.octets, leads }
        })
    }

    /// Less waits, or in another order: the medium is told, and has nothing to ask for.
    fn lower_demand(&mut self) {
        self.medium.set_demand(self.demand());
    }

    /// Something waits behind its level; false when there is no room.
    fn enqueue(&mut self, now: Instant, level: u8, entry: Entry) -> bool {
        self.heed(now);
        let taken = self.queue.push(level, entry);
        self.medium.demand(now, self.demand());
        taken
    }

    /// Takes the next frame out of the queue.
    fn dequeue(&mut self) -> Option<(usize, Entry)> {
        let next = self.queue.pop()?;
        if next.1.origin == Origin::Announce {
            self.medium.take_introduction();
        }
        self.lower_demand();
        Some(next)
    }

    /// The same while no grant is asked for: TPDUs of circuits wait for the link, and hold nothing else back.
    fn dequeue_ungated(&mut self, now: Instant) -> Option<(usize, Entry)> {
        if !self.holds_circuits(now) {
            return self.dequeue();
        }
        let next = self.queue.pop_other()?;
        if next.1.origin == Origin::Announce {
            self.medium.take_introduction();
        }
        self.lower_demand();
        Some(next)
    }

    /// A frame of link control waits. `first` is for the next frame of a message that has begun. In the
    /// middle of a visit the token is here, and nobody need be asked for it.
    pub(crate) fn queue_llc(&mut self, now: Instant, slot: u16, octets: u16, level: u8, first: bool) {
        let (entry, level) = (Entry { origin: Origin::Llc(slot), octets }, level.min(7));
        if !first {
            self.enqueue(now, level, entry);
            return;
        }
        self.heed(now);
        self.queue.push_first(level, entry);
        self.medium.demand(now, self.demand());
    }

    /// One does not wait any more.
    pub(crate) fn unqueue_llc(&mut self, level: u8, slot: u16) {
        self.queue.unqueue(level, slot);
        self.lower_demand();
    }

    /// Those that are over do not wait any more.
    pub(crate) fn sweep_llc(&mut self, is_over: impl Fn(u16) -> bool) {
        self.queue.sweep(is_over);
        self.lower_demand();
    }

    /// A TPDU of a circuit waits.
    pub(crate) fn queue_circuit(&mut self, now: Instant, place: u16, tpdu: u16, level: u8) {
        let octets = rota_medium::FRAME_OCTETS + tpdu;
        self.enqueue(now, level.min(7), Entry { origin: Origin::Circuit(place), octets });
    }

    /// Completes the frame of a TPDU, which stands in its body. `None` when its receiver is gone.
    pub(crate) fn seal_circuit(&mut self, frame: &mut [u8], to: MacAddr, tpdu: usize) -> Option<u16> {
        self.medium.seal_for_port(frame, Way::Station(to), Kind::Circuit, tpdu)
    }

    /// A TPDU of a circuit leaves; see [`Port::llc_sent`].
    pub(crate) fn circuit_sent(&mut self, now: Instant, level: usize, octets: u16) {
        self.charge_circuit(now, octets);
        self.spend_on_bounded(now, level, octets);
    }

    /// A frame of link control has come: its own machine knows of it, and monitors are to.
    pub(crate) fn llc_heard(&mut self, octets: usize) {
        self.tally.llc_heard.add(octets as u64);
    }

    // ---- sending --------------------------------------------------------------------------------------

    /// The next thing to do. `None`: nothing until the deadline.
    pub(crate) fn poll(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        self.join_eligible(now);
        self.medium.begin_turn(now);
        self.heed(now);
        let output = self.outputs.pop_front().or_else(|| self.next_frame(now, frame));
        output.or_else(|| self.next_ungated(now, frame)).or_else(|| self.work(now, frame))
    }

    /// The next frame that needs no grant: the medium's control frames, and this port's own at their turn.
    #[inline]
    fn next_frame(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        let has_frame = self.own.is_writing() || self.medium.has_frame();
        if has_frame { self.write_next_frame(now, frame) } else { None }
    }

    fn write_next_frame(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        loop {
            if let Some(len) = self.write_own(now, frame) {
                return Some(Output::Transmit { port: self.id, len });
            }
            match self.medium.write_frame(now, frame.bytes)? {
                Frame::Written(len) => return Some(Output::Transmit { port: self.id, len }),
                Frame::Ports => self.own.begin(),
            }
        }
    }

    /// In plain mode the queue holds little but frames of link control, which leave at once, and of circuits,
    /// which keep the link's pace (`pace.rs`); behind a gate that is still to open all leave at that pace.
    fn next_ungated(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        if self.gate == GateOrder::Divert {
            return self.next_flushed(now, frame);
        }
        while let Some((level, entry)) = self.dequeue_ungated(now) {
            let output = self.let_go(level, entry.origin).or_else(|| self.next_frame(now, frame));
            if output.is_some() {
                return output;
            }
        }
        None
    }

    /// Asks the medium to go on, and spends its grants, until there is something to send or it waits. The
    /// bound is generous: a hold goes through few stages, and each turn either sends, waits or moves on.
    fn work(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        for _ in 0..1_000 {
            let turn = self.medium.advance(now);
            self.heed(now);
            let sent = match turn {
                Turn::Grant(grant) => self.spend(now, &grant, frame),
                Turn::Wait | Turn::On => None,
            };
            let output = sent.or_else(|| self.outputs.pop_front()).or_else(|| self.next_frame(now, frame));
            if output.is_some() || turn == Turn::Wait {
                return output;
            }
        }
        unreachable!("a medium that neither grants nor waits")
    }

    /// An entry leaves the queue: the frame itself, or one of this station that is written next.
    fn let_go(&mut self, level: usize, origin: Origin) -> Option<Output> {
        match origin {
            Origin::Host(tag) => Some(Output::TransmitHost { port: self.id, tag }),
            Origin::Llc(slot) => Some(Output::TransmitLlc { port: self.id, slot, level: level as u8 }),
            Origin::Circuit(place) => {
                Some(Output::TransmitCircuit { port: self.id, place, level: level as u8 })
            }
            _ => {
                self.own.push_entry(origin);
                self.own.push_mark();
                self.medium.queue_ports();
                None
            }
        }
    }

    /// A frame of link control leaves. Only now the visit has spent a place on it: an entry that turned out
    /// to be pointless costs none.
    pub(crate) fn llc_sent(&mut self, now: Instant, level: usize, octets: u16) {
        self.tally.sent[Class::Llc as usize].add(u64::from(octets));
        self.spend_on_bounded(now, level, octets);
    }

    /// When [`Self::handle_deadline`] or [`Self::poll`] wants to be called, and by which timer.
    pub(crate) fn deadline(&self) -> Deadline<Timer> {
        if !self.outputs.is_empty() || !self.own.is_drained() {
            return Deadline::new(Instant::ZERO, Timer::Waiting);
        }
        let flush = Deadline::new(self.flush_deadline(), Timer::Waiting);
        self.medium.deadline().or(flush).or(self.pace_deadline())
    }

    /// How long an ordinary frame of so many octets occupies the wire.
    fn frame_time(&self, octets: u16) -> Span {
        self.medium.frame_time(octets)
    }
}
