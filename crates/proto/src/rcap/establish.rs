//! The forward pass: a request arrives, the local medium is asked for its best, the request goes on.

use super::Rcap;
use super::io::{
    ChannelRequest, Ending, EntryId, HopDenied, HopOffer, RcapEvent, RcapOutput, counted, nearest_ns,
    nearest_octets, path_denied, simply,
};
use super::ledger::{Entry, Excess, State, key};
use super::record::{Demand, Record, of_wire, written};
use rota_contract::NodeId;
use rota_units::{Instant, Span};
use rota_wire::{
    RCAP_NODES_MAX, RCAP_OCTETS_MAX, RcapBody, RcapChannel, RcapDenied, RcapRecords, RcapRequest, RcapRoute,
    RcapStanding, RcapTest,
};

/// An attempt to establish a channel, as it reaches a node.
pub(super) struct Attempt {
    pub(super) of: RcapChannel,
    /// The neighbour that it comes from; none at the source.
    pub(super) before: Option<NodeId>,
    pub(super) demand: Demand,
    /// The nodes before.
    pub(super) records: Vec<Record>,
    /// How long reservations may wait for the accept.
    pub(super) lease: Span,
}

impl Rcap {
    pub(super) fn on_request(
        &mut self,
        now: Instant,
        from: NodeId,
        of: &RcapChannel,
        wire: &RcapRequest<'_>,
    ) {
        let records = of_wire(&wire.nodes);
        if records.iter().any(|record| record.node == self.own) {
            return self.deny(from, of, simply(self.own, RcapTest::Loop));
        }
        let begins = records.first().map(|record| record.node);
        let is_sound = records.last().is_some_and(|record| record.node == from) && begins == Some(of.origin);
        if !is_sound {
            return self.deny(from, of, simply(self.own, RcapTest::Garbage));
        }
        let standing: Vec<EntryId> = self.ledger.all_of(&key(of)).collect();
        let newest = standing.last().and_then(|id| self.ledger.get(*id)).map(|entry| entry.of.attempt);
        if newest.is_some_and(|newest| of.attempt <= newest) || self.ledger.has_ended(now, of) {
            self.counters.repeated += 1;
            return;
        }
        let kept = self.stay_beside(of, wire);
        for earlier in standing.into_iter().filter(|id| !kept.contains(id)) {
            self.release(now, earlier, Ending::Superseded, None);
        }
        if wire.again.is_none() {
            self.begins_anew(key(of));
        }
        let Ok(demand) = Demand::of_wire(now, wire) else {
            return self.deny(from, of, simply(self.own, RcapTest::Traffic));
        };
        let lease = Span::from_nanos(wire.lease_ns);
        let attempt = Attempt { of: *of, before: Some(from), demand, records, lease };
        if let Err(denied) = self.begin(now, attempt) {
            self.deny(from, of, denied);
        }
    }

    /// The entries of a channel that stay beside a request for it: the open contract and its path in reserve
    /// beside a change, until its source gives up one of both, and all of them beside the second path of the
    /// newest one. A second path that was asked for before does not.
    fn stay_beside(&self, of: &RcapChannel, wire: &RcapRequest<'_>) -> Vec<EntryId> {
        let is_second = wire.again.is_some_and(|again| again.apart.octets() > 0);
        let is_change = wire.again.is_some_and(|again| again.is_change);
        let Some(first) = self.ledger.find(&key(of)).filter(|_| is_change || is_second) else {
            return Vec::new();
        };
        let may_stay = |id: &EntryId| {
            let open = self.ledger.get(*id).filter(|entry| entry.state.is_open());
            open.is_some_and(|of| *id == first || if is_second { *id < first } else { of.standby.is_some() })
        };
        self.ledger.all_of(&key(of)).rev().filter(may_stay).take(3).collect()
    }

    /// Denies a request that has no entry here.
    fn deny(&mut self, to: NodeId, of: &RcapChannel, denied: RcapDenied) {
        self.send(to, *of, RcapBody::EstablishDenied(denied));
        if self.has_word(of, to) {
            self.take_back(of, &Ending::Denied(denied));
        }
    }

    /// Begins an attempt at this node: an entry, and a question to the medium or to the receiving program.
    pub(super) fn begin(&mut self, now: Instant, attempt: Attempt) -> Result<EntryId, RcapDenied> {
        let Attempt { of, before, demand, records, .. } = &attempt;
        if let Err(Excess { test, nearest_octets, count }) =
            self.ledger.allows(&self.limits, self.own, of, *before, demand)
        {
            let standing = self.standing(of, |_| true);
            return Err(RcapDenied { standing, nearest_octets, ..counted(self.own, test, count) });
        }
        if demand.request.destination == self.own {
            // Nothing is prepared here, and what else is told of this request is for its entry.
            self.ahead.remove(of);
            return self.arrive(now, attempt);
        }
        // The destination has a place in a status, too.
        if records.len() + 2 > RCAP_NODES_MAX {
            return Err(simply(self.own, RcapTest::PathTooLong));
        }
        let route = self.route_of(demand, records);
        let unknown = if demand.is_second() { RcapTest::NoSecondPath } else { RcapTest::NoRoute };
        let route = route.ok_or(simply(self.own, unknown))?;
        if records.iter().any(|record| record.node == route.hop.node) {
            return Err(simply(self.own, RcapTest::Loop));
        }
        if !demand.request.allows_withdrawn && self.graph.is_withdrawn(self.own, route.hop.node) {
            return Err(simply(self.own, RcapTest::Withdrawn));
        }
        let (ask, request, life) = (demand.ask(), demand.request, demand.charged_life());
        let late_most = demand.late_at_hop(records, route.hops);
        let entry = self.add(now, attempt, Some(route.hop), State::Reserving);
        if let Some((with, hop)) = self.ledger.shared(entry) {
            self.outputs.push_back(RcapOutput::Share { entry, with });
            self.reserved(now, entry, hop);
            return Ok(entry);
        }
        let (partition, group, hop) = (request.partition, request.group_share(), route.hop);
        let former = self.ledger.former(entry);
        let reserve = RcapOutput::Reserve { entry, hop, ask, late_most, partition, group, life, former };
        self.outputs.push_back(reserve);
        Ok(entry)
    }

    pub(super) fn add(
        &mut self,
        now: Instant,
        attempt: Attempt,
        hop: Option<super::NextHop>,
        state: State,
    ) -> EntryId {
        let Attempt { of, before, demand, records, lease } = attempt;
        let due = now + lease.min(super::RcapLimits::LEASE_MAX);
        let (label, buffer_octets, asked, first) = (0, 0, None, None);
        let (promise, memory, newest) = (Span::ZERO, 0, of.attempt);
        self.ledger.add(Entry {
            of,
            before,
            hop,
            demand,
            records,
            state,
            due,
            label,
            buffer_octets,
            asked,
            first,
            former: None,
            orphan_until: Instant::ZERO,
            promise,
            memory,
            newest,
            standby: None,
            is_pending: false,
            agreed: Instant::ZERO,
        })
    }

    /// How final a refusal is, by the tentative reservations among the entries that may be in the way. Each
    /// node orders two requests alike, so that they do not wait for each other.
    fn standing(&self, of: &RcapChannel, among: impl Fn(&Entry) -> bool) -> RcapStanding {
        let is_rival = |entry: &&Entry| !entry.state.is_open() && entry.key() != key(of) && among(entry);
        let rivals = self.ledger.iter().map(|(_, entry)| entry).filter(is_rival);
        match rivals.map(Entry::key).min() {
            None => RcapStanding::Final,
            Some(first) if key(of) < first => RcapStanding::RaceFirst,
            Some(_) => RcapStanding::RaceLast,
        }
    }

    /// The local medium has reserved this for an entry.
    pub fn reserved(&mut self, now: Instant, id: EntryId, hop: HopOffer) {
        let Some(entry) = self.ledger.get_mut(id) else { return self.release_again(id) };
        let (State::Reserving, Some(next)) = (&entry.state, entry.hop) else { return };
        // The way may have come to be a tunnel since the graph was computed.
        if hop.medium == super::TUNNEL && !entry.demand.request.allows_withdrawn {
            let denied = simply(self.own, RcapTest::Withdrawn);
            return self.release(now, id, Ending::Denied(denied), None);
        }
        let (node, port) = (self.own, next.port);
        let (is_open, buffers, counts, terms) = (false, 0, Default::default(), Vec::new());
        entry.records.push(Record { node, port, is_open, hop, buffers, counts, terms });
        match self.reserve_buffers(id) {
            Ok(()) => self.forward(now, id),
            Err(denied) => self.release(now, id, Ending::Denied(denied), None),
        }
    }

    /// Takes room for the packets of the largest bound that relaxing may allow (`TENET-R6`). Where the bounds
    /// exceed what was asked for already, the destination denies the request: it alone knows the least that
    /// the whole way can promise.
    fn reserve_buffers(&mut self, id: EntryId) -> Result<(), RcapDenied> {
        let entry = self.ledger.get(id).expect("the caller has it");
        let demand = entry.demand;
        // By the delay alone: a hop behind this one may yet remove jitter.
        let best = demand.delay(&entry.records);
        let slack = demand.request.goal.delay.minus(best);
        let slack = if demand.is_branch() { Span::ZERO } else { slack };
        self.check_chance(&demand, &entry.records)?;
        let packets = demand.buffers(&entry.records, entry.place(), slack);
        let octets = packets.saturating_mul(demand.packets.octets.get());
        let of = entry.of;
        let most = self.packets_most(id);
        if packets > most || !self.ledger.set_buffers(id, octets, self.limits.buffer_octets) {
            let entry = self.ledger.get(id).expect("as above");
            let (records, place) = (&entry.records, entry.place());
            let few = most.min(self.limits.channel_buffers);
            let nearest = (!demand.is_branch()).then(|| demand.delay_within(records, place, few)).flatten();
            let (smaller, slower) = match nearest {
                None if demand.request.group.is_none() => demand.messages_within(records, place, few),
                _ => (None, None),
            };
            return Err(RcapDenied {
                standing: self.standing(&of, |_| true),
                nearest_delay_ns: nearest_ns(nearest),
                nearest_octets: nearest_octets(smaller),
                nearest_x_min_ns: nearest_ns(slower),
                ..counted(self.own, RcapTest::PortBuffer, (packets, most))
            });
        }
        let entry = self.ledger.get_mut(id).expect("as above");
        entry.records.last_mut().expect("its own").buffers = packets;
        Ok(())
    }

    fn check_chance(&self, demand: &Demand, records: &[Record]) -> Result<(), RcapDenied> {
        match demand.late(records) > demand.borne() {
            true => Err(simply(self.own, RcapTest::PathChance)),
            false => Ok(()),
        }
    }

    fn forward(&mut self, now: Instant, id: EntryId) {
        let entry = self.ledger.get_mut(id).expect("the caller has it");
        let lease = entry.due.since(now);
        if lease == Span::ZERO {
            return self.lapse(now, id);
        }
        entry.state = State::Forwarded;
        let octets = written(&entry.records, RCAP_OCTETS_MAX);
        let nodes = RcapRecords::parse(&octets, entry.records.len()).expect("sound records");
        let written = entry.demand.nodes_written();
        let routes = written.each_ref().map(|nodes| RcapRoute::parse(nodes).expect("nodes of a path"));
        let request = entry.demand.to_wire(now, lease, nodes, routes);
        let (of, to) = (entry.of, entry.hop.expect("no destination").node);
        self.send(to, of, RcapBody::EstablishRequest(request));
        self.follows(&of, to);
    }

    /// Packets of an entry for which there is room: in a gateway no more than one channel may have.
    fn packets_most(&self, id: EntryId) -> u64 {
        let entry = self.ledger.get(id).expect("the caller has it");
        let others = self.ledger.buffer_octets().saturating_sub(entry.buffer_octets);
        let left = self.limits.buffer_octets.saturating_sub(others);
        let left = left / entry.demand.packets.octets.get().max(1);
        let most = if entry.before.is_some() { self.limits.channel_buffers } else { u32::MAX.into() };
        left.min(most)
    }

    /// The local medium cannot reserve for an entry.
    pub fn denied(&mut self, now: Instant, id: EntryId, why: HopDenied) {
        let Some(entry) = self.ledger.get(id) else { return };
        if entry.state != State::Reserving {
            return;
        }
        let (of, port) = (entry.of, entry.hop.map(|hop| hop.port));
        let nearest_end = why.free_until.map_or(Span::ZERO, |until| entry.demand.nearest_end(now, until));
        let in_ledger = self.standing(&of, |rival| rival.hop.map(|hop| hop.port) == port);
        let standing = match in_ledger {
            RcapStanding::Final if why.others_tentative => RcapStanding::RaceLast,
            standing => standing,
        };
        let denied = RcapDenied {
            standing,
            margin_ns: why.margin.as_nanos(),
            nearest_octets: nearest_octets(why.nearest_octets),
            nearest_x_min_ns: nearest_ns(why.nearest_x_min),
            part: why.part,
            nearest_end_ns: nearest_end.as_nanos(),
            ..counted(self.own, why.test, why.count.unwrap_or_default())
        };
        self.release(now, id, Ending::Denied(denied), None);
    }

    /// At the destination: the whole path is tested, then the program is asked.
    fn arrive(&mut self, now: Instant, attempt: Attempt) -> Result<EntryId, RcapDenied> {
        let Attempt { of, demand, records, .. } = &attempt;
        if demand.is_branch() && self.ledger.has_branch_here(of, demand.request.tree) {
            return Err(simply(self.own, RcapTest::Garbage));
        }
        let request: ChannelRequest = demand.request;
        let goal = &demand.request.goal;
        let path_denied = |denied| path_denied(self.own, denied, goal, &demand.nearest(records));
        demand.check(records).map_err(path_denied)?;
        self.check_chance(demand, records)?;
        match demand.again {
            Some(again) if again.is_change || again.apart.is_some() => {
                return self.arrive_changed(now, attempt);
            }
            Some(_) => return self.arrive_again(now, attempt),
            None => {}
        }
        // A name that nobody on the way knows is a mistake. Another path may have no such partition.
        if demand.lacks_partition(records) {
            return Err(simply(self.own, RcapTest::Partition));
        }
        let invitation = request.initiation.invitation();
        let listener = match invitation.is_some() {
            false => self.listeners.get(&request.service).copied(),
            true => self.invites.listener(invitation, of.origin, request.service),
        };
        let absent = if invitation.is_some() { RcapTest::ReceiverRefused } else { RcapTest::NoListener };
        let listener = listener.ok_or(simply(self.own, absent))?;
        let waits = |entry: &Entry| {
            entry.state == State::Answering && entry.demand.request.service == request.service
        };
        if self.ledger.iter().filter(|(_, entry)| waits(entry)).count() >= self.limits.incoming {
            return Err(simply(self.own, RcapTest::ReceiverSilent));
        }
        let best = demand.delay(records);
        let key = key(of);
        // Its source asks for a branch within its part of a time: the word of this node comes before the end.
        let spare = if demand.is_branch() { attempt.lease.div_down(4) } else { Span::ZERO };
        let lease = attempt.lease.minus(spare).min(self.limits.answer);
        let entry = self.add(now, Attempt { lease, ..attempt }, None, State::Answering);
        self.promise_here(entry);
        self.tell(RcapEvent::Incoming { key, entry, listener, request, best });
        Ok(entry)
    }
}
