//! The way back: the program's answer, relaxing, telling RTIP, and the accept that goes upstream.

use super::Rcap;
use super::backup::Pending;
use super::io::{
    ChannelKey, ChannelRequest, Ending, EntryId, Installed, RcapCallError, RcapEvent, RcapOutput, simply,
};
use super::ledger::State;
use super::record::{Demand, Record, hops, of_wire, written};
use rota_admission::rtip::Regulator;
use rota_admission::subnet::Offer;
use rota_admission::{Clocks, path};
use rota_contract::NodeId;
use rota_units::{Instant, Span};
use rota_wire::{RCAP_OCTETS_MAX, RcapAccept, RcapBody, RcapChannel, RcapDenied, RcapRecords, RcapTest};

/// Octets that records may fill in an accept: its header and its own fields stay free.
const RECORDS_ROOM: usize = RCAP_OCTETS_MAX - 64;

impl Rcap {
    /// The receiving program accepts a request or refuses it, finally (`TENET-4.1-5`).
    ///
    /// # Errors
    /// [`RcapCallError::NoChannel`]: the request is over, or was answered.
    pub fn answer(&mut self, now: Instant, of: ChannelKey, accepts: bool) -> Result<(), RcapCallError> {
        let id = self.ledger.find(&of).ok_or(RcapCallError::NoChannel)?;
        let entry = self.ledger.get(id).ok_or(RcapCallError::NoChannel)?;
        if entry.state != State::Answering {
            return Err(RcapCallError::NoChannel);
        }
        self.invites.met(entry.demand.request.initiation.invitation());
        if accepts {
            self.accept(now, id);
        } else {
            let refused = Ending::Denied(simply(self.own, RcapTest::ReceiverRefused));
            self.release(now, id, refused, Some(super::end::Side::Program));
        }
        Ok(())
    }

    /// This node refuses a request for which its program has been asked.
    pub fn refuse(&mut self, now: Instant, of: ChannelKey, denied: RcapDenied) {
        let Some(id) = self.ledger.find(&of) else { return };
        if let Some(entry) = self.ledger.get(id).filter(|entry| entry.state == State::Answering) {
            self.invites.met(entry.demand.request.initiation.invitation());
            self.release(now, id, Ending::Denied(denied), Some(super::end::Side::Program));
        }
    }

    /// The request for which a program of this node has been asked.
    pub fn asked_here(&self, of: ChannelKey) -> Option<ChannelRequest> {
        let entry = self.ledger.get(self.ledger.find(&of)?)?;
        (entry.state == State::Answering).then_some(entry.demand.request)
    }

    /// The destination accepts: the channel is open here.
    pub(super) fn accept(&mut self, now: Instant, id: EntryId) {
        self.open(now, id, &[], None);
    }

    pub(super) fn on_accept(
        &mut self,
        now: Instant,
        from: NodeId,
        of: &RcapChannel,
        accept: &RcapAccept<'_>,
    ) {
        let Some(id) = self.entry_of(of) else {
            // A lease has ended here, or a close has crossed the accept: it is final (`TENET-R11`).
            return self.close_unknown(from, *of);
        };
        let entry = self.ledger.get_mut(id).expect("it was found");
        let is_due = entry.state == State::Forwarded && entry.hop.is_some_and(|hop| hop.node == from);
        if !is_due {
            self.counters.stray += 1;
            return;
        }
        let mut behind = of_wire(&accept.nodes);
        let known = entry.records.len();
        let is_same =
            behind.len() >= known && entry.records.iter().zip(&behind).all(|(a, b)| a.is_same_offer(b));
        let whole = entry.demand.check(&behind);
        let (true, Ok(whole)) = (is_same, whole) else {
            let garbage = Ending::Denied(simply(self.own, RcapTest::Garbage));
            return self.release(now, id, garbage, None);
        };
        let counts = path::counts_for_jitter(&hops(&behind), known - 1);
        let share = whole.for_first(known as u64).share(counts);
        let own = entry.records.last().expect("a node that has forwarded has a record");
        let share = if entry.demand.is_branch() { Span::ZERO } else { share };
        let delay = own.hop.offer.delay + share;
        behind.drain(..known);
        entry.state = State::Relaxing { label: accept.label, behind };
        self.outputs.push_back(RcapOutput::Relax { entry: id, delay });
    }

    /// The local medium has no cheaper reservation for an entry: its offer stays. `terms` as for
    /// [`Self::relaxed`].
    pub fn kept(&mut self, now: Instant, id: EntryId, terms: Vec<u8>) {
        let own = self.ledger.get(id).and_then(|entry| entry.records.last());
        match own.map(|own| own.hop.offer) {
            Some(offer) => self.relaxed(now, id, offer, terms),
            None => self.release_again(id),
        }
    }

    /// The local medium has relaxed the reservation of an entry to this. `terms` are this node's part of the
    /// certificate; empty for none.
    pub fn relaxed(&mut self, now: Instant, id: EntryId, offer: Offer, terms: Vec<u8>) {
        let Some(entry) = self.ledger.get_mut(id) else { return self.release_again(id) };
        let State::Relaxing { label, behind } = &mut entry.state else { return };
        let (label, behind) = (*label, std::mem::take(behind));
        let before = entry.records.last_mut().expect("its own record");
        before.hop.offer = offer;
        before.terms = terms;
        // An offer that uses more than all that is left would break D_max or J_max.
        let path: Vec<Record> = entry.records.iter().chain(&behind).cloned().collect();
        let Ok(left) = entry.demand.check(&path) else {
            let broken = Ending::Denied(simply(self.own, RcapTest::ShareLost));
            return self.release(now, id, broken, None);
        };
        let place = entry.place();
        let further = if place == 0 { Span::ZERO } else { left.slack() };
        let packets = entry.demand.buffers(&path, place, further);
        let own = entry.records.last_mut().expect("as above");
        own.buffers = packets.min(own.buffers);
        let octets = own.buffers.saturating_mul(entry.demand.packets.octets.get());
        assert!(self.ledger.set_buffers(id, octets, u64::MAX), "relaxing needs no more buffers");
        self.open(now, id, &behind, Some(label));
    }

    /// The channel is open here: RTIP is told, then the node before, or at the source the program.
    fn open(&mut self, now: Instant, id: EntryId, behind: &[Record], label_out: Option<u16>) {
        self.ledger.open(id);
        let entry = self.ledger.get_mut(id).expect("the caller has it");
        if let (Some(own), Some(_)) = (entry.records.last_mut(), entry.hop) {
            own.is_open = true;
        }
        let installed = installed(entry, behind, label_out);
        let path: Vec<Record> = entry.records.iter().chain(behind).cloned().collect();
        // The terms are kept by the source alone.
        entry.records.iter_mut().for_each(|record| record.terms = Vec::new());
        let (of, before, label, demand) = (entry.of, entry.before, entry.label, entry.demand);
        let is_end = entry.before.is_none() || entry.hop.is_none();
        let is_at_source = entry.before.is_none();
        if demand.is_second() && is_end {
            self.stand_by(id, Some(installed).filter(|_| is_at_source));
        }
        // Packets leave here once there is a second path, or once that is needed; those of a branch with the
        // new contract of all others.
        let is_awaited = demand.is_change() && (demand.is_branch() || self.has_spare(&of));
        let waits = is_at_source && (demand.is_second() || is_awaited);
        if !waits {
            self.outputs.push_back(RcapOutput::Install { entry: id, channel: installed });
        }
        match before {
            Some(before) => {
                let octets = written(&path, RECORDS_ROOM);
                let nodes = RcapRecords::parse(&octets, path.len()).expect("sound records");
                self.send(before, of, RcapBody::EstablishAccept(RcapAccept { label, nodes }));
            }
            None => self.opened(now, &of, (id, installed), &demand, path),
        }
    }

    /// The accept has reached the source (`TENET-3.1-18`).
    fn opened(
        &mut self,
        now: Instant,
        of: &RcapChannel,
        (entry, installed): (EntryId, Installed),
        demand: &Demand,
        nodes: Vec<Record>,
    ) {
        let promise = demand.promise(&nodes);
        let call = self.calls.remove(&of.channel);
        if let Some(own) = self.ledger.get_mut(entry) {
            own.promise = promise.delay;
        }
        if demand.is_second() {
            return self.has_second(now, (of.channel, entry), (promise, nodes), call);
        }
        if demand.is_branch() && demand.is_change() {
            let (channel, installed) = (of.channel, Some(installed));
            return self.await_others(channel, Pending { entry, promise, nodes, installed });
        }
        let is_first = demand.request.has_second && demand.again.is_none();
        if is_first || demand.is_change() && self.has_spare(of) {
            let until = call.map_or(now, |call| call.until);
            let installed = Some(installed).filter(|_| !is_first);
            let first = Pending { entry, promise, nodes, installed };
            return self.ask_second(now, of.channel, first, until);
        }
        self.end_answer(now, of.channel, None);
        if demand.is_change() {
            return self.changed(now, of.channel, entry, (promise, nodes), Span::ZERO);
        }
        self.tell(RcapEvent::Opened { channel: of.channel, entry, promise, nodes });
    }
}

/// The channel as RTIP is told of it.
fn installed(entry: &super::ledger::Entry, behind: &[Record], label_out: Option<u16>) -> Installed {
    let demand = &entry.demand;
    let own = if entry.hop.is_some() { entry.records.last() } else { None };
    let packets = &demand.packets;
    // The source polices by its own clock; a regulator behind it must not fall behind that.
    let held = Clocks::APART.held(&packets.traffic);
    Installed {
        of: entry.key(),
        before: entry.before,
        label_in: entry.before.map(|_| entry.label),
        way: entry.hop.zip(label_out),
        traffic: if entry.before.is_some() { held } else { packets.traffic },
        octets: packets.octets,
        regulator: own.map_or(Regulator::None, |own| own.hop.regulator),
        delay: own.map_or(Span::ZERO, |own| own.hop.offer.delay),
        upstream: upstream(entry, own, behind),
        buffers: own.map_or_else(|| entry.held_packets(), |own| own.buffers),
        is_branch: demand.is_branch(),
    }
}

/// The longest time from a packet's eligibility at the source to that here. The nodes before are relaxed
/// after this one: they may have all that D_max leaves them, and each of them no more than its kind of
/// network gives. Both limits hold for a packet that keeps its bounds; the clocks of these nodes may be
/// slower.
fn upstream(entry: &super::ledger::Entry, own: Option<&Record>, behind: &[Record]) -> Span {
    let (demand, goal) = (&entry.demand, entry.demand.request.goal.delay);
    let spent = |record: &Record| record.hop.offer.delay + record.hop.offer.link_most;
    let rest: Span = own.into_iter().chain(behind).map(spent).sum();
    let before = &entry.records[..entry.records.len() - usize::from(own.is_some())];
    let most = |record: &Record| {
        let delay = if demand.is_branch() { record.hop.offer.delay } else { record.delay_most() };
        delay + record.hop.offer.link_most
    };
    let by_hops: Span = before.iter().map(most).sum();
    goal.minus(rest).minus(demand.host()).min(Clocks::APART.longer(by_hops.min(goal)))
}
