//! The outputs of a machine: messages on their sessions, shares of the medium, and its programs' part.

use super::*;

impl World {
    pub(super) fn drain(&mut self, at: usize) {
        while let Some(output) = self.stations[at].machine.as_mut().and_then(Rcap::poll) {
            self.perform(at, output);
        }
        self.check();
        let Some(machine) = &self.stations[at].machine else { return };
        let due = machine.deadline();
        if due < self.stations[at].timer {
            self.stations[at].timer = due;
            let life = self.stations[at].life;
            self.at(due, What::Timer { at, life });
        }
    }

    pub(super) fn perform(&mut self, at: usize, output: RcapOutput) {
        let life = self.stations[at].life;
        match output {
            RcapOutput::Send { to, message } => self.send(at, place(to), message),
            RcapOutput::Install { entry, channel } => {
                if channel.way.is_none() && !self.reroutes.changes.next.contains_key(&(at, entry)) {
                    let was = self.reroutes.ends.insert(channel.of, false);
                    assert!(was.is_none_or(|waits| waits), "opened twice at its destination");
                }
                self.stations[at].installed.insert(entry, channel);
            }
            RcapOutput::Event(event) => self.event(at, event),
            // A release overtakes a question that the medium has not answered yet.
            RcapOutput::Release { entry, .. } => {
                self.stations[at].installed.remove(&entry);
                self.reroutes.changes.next.remove(&(at, entry));
                self.shares
                    .values_mut()
                    .for_each(|shares| shares.retain_mut(|share| !share.leave(at, entry)));
            }
            RcapOutput::Share { entry, with } => {
                let share = self.shares.values_mut().flatten().find(|share| share.is_of(at, with));
                share.expect("it was reserved").others.push(entry);
            }
            asked => {
                if let RcapOutput::Reserve { entry, .. } = asked
                    && self.happens(500)
                    && let Some(machine) = &mut self.stations[at].machine
                {
                    machine.takes_time(self.now, entry);
                }
                let late = Span::from_nanos(self.below(2_000_000));
                let last = self.arrivals.get(&(at, at)).copied().unwrap_or(self.now);
                let when = last.max(self.now + late);
                self.arrivals.insert((at, at), when);
                self.at(when, What::Medium { at, life, asked });
            }
        }
    }

    pub(super) fn send(&mut self, from: usize, to: usize, octets: Vec<u8>) {
        let Some(session) = self.sessions.get(&link(from, to)).copied() else { return };
        let kind = RcapMessage::parse(&octets).expect("our own messages are sound").body.kind();
        let is_close = matches!(kind, RcapKind::CloseForward | RcapKind::CloseReverse);
        if !is_close && self.happens(self.noise.lost) {
            return;
        }
        let copies = if self.happens(self.noise.doubled) { 2 } else { 1 };
        for copy in 0..copies {
            let late = Span::from_nanos(500_000 + self.below(8_000_000) + copy * self.below(500_000_000));
            let last = self.arrivals.get(&(from, to)).copied().unwrap_or(self.now);
            // Only a copy may be overtaken.
            let when = if copy == 0 { last.max(self.now + late) } else { self.now + late };
            if copy == 0 {
                self.arrivals.insert((from, to), when);
            }
            self.at(when, What::Deliver { session, from, to, octets: octets.clone() });
        }
    }

    pub(super) fn resource(&self, at: usize, hop: NextHop) -> (usize, usize) {
        let pair = (at, place(hop.node));
        if self.is_shared { link(pair.0, pair.1) } else { pair }
    }

    pub(super) fn medium(&mut self, at: usize, life: u64, asked: RcapOutput) {
        match asked {
            RcapOutput::Reserve { entry, hop, former: Some(former), .. } => {
                self.take_place(at, life, entry, (hop, former));
            }
            RcapOutput::Reserve { entry, hop, group, .. } => self.reserve(at, life, entry, (hop, group)),
            RcapOutput::Prepare { until, .. } => assert!(until <= self.now + RcapLimits::LEASE_MAX),
            RcapOutput::Forgo { .. } => {}
            RcapOutput::Relax { entry, delay } => {
                let is_lost = self.happens(self.noise.share_lost);
                let shares = self.shares.values_mut().flatten();
                let share = shares.into_iter().find(|share| share.is_of(at, entry));
                let Some(share) = share.filter(|_| self.stations[at].life == life) else { return };
                share.is_final = true;
                let (is_joint, terms) = (share.others.contains(&entry), vec![at as u8; 9]);
                let offer = Offer { delay, ..offer() };
                self.with(at, life, |machine, now| match is_joint && !machine.is_last_hop(entry) {
                    true => machine.kept(now, entry, terms),
                    false => machine.relaxed(now, entry, offer, terms),
                });
                if is_lost {
                    self.with(at, life, |machine, now| machine.share_lost(now, entry));
                }
            }
            RcapOutput::Inspect { entry } => {
                self.with(at, life, |machine, _| machine.inspected(entry, Default::default()));
            }
            _ => {}
        }
    }

    pub(super) fn reserve(
        &mut self,
        at: usize,
        life: u64,
        entry: EntryId,
        (hop, group): (NextHop, Option<GroupShare>),
    ) {
        if self.stations[at].life != life {
            return;
        }
        let key = self.resource(at, hop);
        let shares = self.shares.entry(key).or_default();
        assert!(!shares.iter().any(|share| share.node == at && share.entry == entry), "reserved twice");
        let (others, is_final) = (Vec::new(), false);
        shares.push(Share { node: at, entry, others, is_final, group });
        let key = |share: &Share| (share.node, share.group.map(|group| group.key));
        let has_other_terms =
            |share: &Share| group.is_some_and(|_| key(share) == (at, group.map(|of| of.key)));
        let differs = shares.iter().any(|share| has_other_terms(share) && share.group != group);
        if !differs && taken(shares) <= self.capacity {
            let (regulator, host_slack, late) = (Regulator::Rate, Span::ZERO, Chance::NEVER);
            let hop = HopOffer { offer: offer(), regulator, host_slack, late, medium: 2, percent: 0 };
            return self.with(at, life, |machine, now| machine.reserved(now, entry, hop));
        }
        shares.pop();
        let others_tentative = !differs && shares.iter().any(|share| !share.is_final);
        let (margin, test) = (ms(1), if differs { RcapTest::Group } else { RcapTest::Load });
        let denied = HopDenied { others_tentative, ..HopDenied::new(test, margin) };
        self.with(at, life, |machine, now| machine.denied(now, entry, denied));
    }

    /// A contract takes the place of another one: both have one share.
    fn take_place(&mut self, at: usize, life: u64, entry: EntryId, (hop, former): (NextHop, Former)) {
        if self.stations[at].life != life {
            return;
        }
        let key = self.resource(at, hop);
        let shares = self.shares.entry(key).or_default();
        let share = shares.iter_mut().find(|share| share.is_of(at, former.entry));
        let Some(share) = share else {
            return self.with(at, life, |machine, now| machine.share_lost(now, entry));
        };
        share.others.push(entry);
        self.reroutes.changes.joint += 1;
        self.with(at, life, |machine, now| {
            // Only the last hop may have a shorter bound than before.
            let shorter = HopOffer { offer: offer(), ..former.offer };
            let offer = if machine.is_last_hop(entry) { shorter } else { former.offer };
            machine.reserved(now, entry, offer);
        });
    }

    pub(super) fn event(&mut self, at: usize, event: RcapEvent) {
        let now = self.now;
        let key_of = |channel: ChannelId| ChannelKey { origin: node(at), channel };
        match event {
            RcapEvent::Opened { channel, promise, nodes, .. } => {
                let goal = request(0).goal.delay;
                assert!(promise.delay <= goal && nodes.iter().all(|node| node.is_open), "{nodes:?}");
                assert!(
                    nodes.iter().all(|node| node.terms.len() == 9),
                    "each node's part of the certificate"
                );
                let is_again = self.calls[&key_of(channel)].outcome == Outcome::Broken;
                self.reroutes.changes.contracts.entry((key_of(channel), true)).or_insert(S_MAX);
                (self.reroutes.done, self.opened) =
                    (self.reroutes.done + u64::from(is_again), self.opened + u64::from(!is_again));
                self.settle(key_of(channel), Outcome::Opened, &[Outcome::Waits, Outcome::Broken]);
                let life = self.stations[at].life;
                self.with_status(at, life, channel);
            }
            RcapEvent::Refused { channel, denied, attempts } => {
                self.settle(key_of(channel), Outcome::Refused(denied.test, attempts), &[Outcome::Waits]);
            }
            RcapEvent::Broken { key, sending: true, .. } => {
                self.settle(key, Outcome::Broken, &[Outcome::Opened]);
            }
            RcapEvent::Broken { key, .. } => {
                assert_eq!(self.reroutes.ends.insert(key, true), Some(false), "an open end breaks once");
            }
            RcapEvent::Closed { key, sending: true, cause, .. } => {
                self.settle(key, Outcome::Closed(cause), &[Outcome::Opened, Outcome::Broken]);
            }
            RcapEvent::Closed { key, .. } => {
                assert!(self.reroutes.ends.remove(&key).is_some(), "an end is told once");
            }
            RcapEvent::Incoming { key, request, .. } => {
                self.arrives(at, key, &request);
                assert!(!self.reroutes.ends.contains_key(&key), "a program has it already");
                self.reroutes.changes.contracts.insert((key, false), S_MAX);
                if self.happens(self.noise.silent) {
                    return;
                }
                let accepts = !self.happens(self.noise.refused);
                let (life, late) = (self.stations[at].life, Span::from_nanos(self.below(3_000_000)));
                self.at(now + late, What::Answer { at, life, key, accepts });
            }
            RcapEvent::Invited { key, .. } => self.invited(at, key),
            RcapEvent::NotInvited { listener, denied } => self.not_invited(at, listener, denied.test),
            RcapEvent::Status { nodes, .. } => {
                assert!(nodes.len() >= 2 && nodes.iter().all(|node| node.is_open));
                self.statuses += 1;
            }
            RcapEvent::Switched { channel, promise, .. } => {
                assert!(promise.delay <= request(0).goal.delay);
                self.reroutes.switched += 1;
                self.settle(key_of(channel), Outcome::Opened, &[Outcome::Broken]);
            }
            RcapEvent::SecondLost { .. } => self.reroutes.second_lost += 1,
            event => self.change_event(at, event),
        }
    }

    pub(super) fn change_event(&mut self, at: usize, event: RcapEvent) {
        let key_of = |channel: ChannelId| ChannelKey { origin: node(at), channel };
        match event {
            RcapEvent::Changed { channel, request, promise, nodes, .. } => {
                assert!(promise.delay <= request.goal.delay && nodes.iter().all(|node| node.is_open));
                assert_eq!(
                    self.calls[&key_of(channel)].outcome,
                    Outcome::Opened,
                    "only what is open changes"
                );
                self.reroutes.changes.contracts.insert((key_of(channel), true), request.messages.s_max.get());
                self.reroutes.changes.done += 1;
            }
            RcapEvent::NotChanged { .. } => self.reroutes.changes.denied += 1,
            RcapEvent::Changing { key, entry, request, .. } => {
                self.reroutes.changes.next.insert((at, entry), (key, request.messages.s_max.get()));
            }
            RcapEvent::ChangedHere { key, entry } => {
                let next = self.reroutes.changes.next.remove(&(at, entry));
                let (of, octets) = next.expect("it was told of");
                assert_eq!(of, key);
                self.reroutes.changes.contracts.insert((key, false), octets);
            }
            RcapEvent::Again { key, request, .. } => {
                self.reroutes.changes.contracts.insert((key, false), request.messages.s_max.get());
            }
            _ => {}
        }
    }

    /// Asks for the status of a channel that has just opened, once in two times.
    pub(super) fn with_status(&mut self, at: usize, life: u64, channel: ChannelId) {
        if self.below(2) == 0
            && self.stations[at].life == life
            && let Some(machine) = &mut self.stations[at].machine
        {
            machine.status(self.now, channel).expect("it is open");
        }
    }
}
