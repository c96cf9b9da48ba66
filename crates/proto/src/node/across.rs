//! Channels across segments at this node: what RCAP wants of RTIP and of the media is done here, and what
//! these find out goes back to it. Programs see such a channel as any other one.
//!
//! A session with a neighbour ([`Node::neighbour_up`], [`Node::neighbour_lost`]) carries the messages of RCAP
//! and of link-state routing ([`Node::on_neighbour_message`], [`Node::next_neighbour_message`]). A neighbour
//! is on the way of channels while it is a member of a segment of this node as well.
//!
//! On a link the packets of a hop are scheduled by the discipline of its port, and a longer bound leaves
//! others more room: the hop is relaxed on the way back. On a RETHER segment the bound is that of a share,
//! and none is cheaper for a longer bound: such a hop stays as it was offered.

mod approach;
mod branches;
mod change;
mod invite;
mod joint;
mod names;
mod reroute;
mod sessions;
mod status;
mod terms;
mod tree;

use super::Node;
use super::offers::denied_by;
use crate::across::{
    Across, DRAIN_LOOK, End, Held, STATUS_EVERY, State, delay_default, granted, leaves_within, made_for,
    promised, served_by,
};
use crate::channels::{ChannelEvent, OpenRequest, RequestError};
use crate::io::{ChannelId, Destination, PortId, Way};
use crate::rcap::{
    ChannelKey, ChannelRequest, Ending, EntryId, Installed, Nodes, Promise, RcapEvent, RcapInitiation,
    RcapOutput, Record,
};
use crate::rtip::table::Key;
use crate::rtip::{HopError, HopEvent, HopSpec};
use rota_admission::path::Goal;
use rota_admission::rtip::{Chance, Messages};
use rota_admission::subnet::payload_max;
use rota_contract::{Chances, CloseCause, Granted, Group, NodeId, PartitionName, Tally, Via};
use rota_units::{Instant, Octets, Span};

pub use tree::ReceiverDetail;

use terms::{chances_of, refusing};

/// The statement of a program about a channel across segments, beside its traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// The user of the program.
    pub uid: u32,
    /// X_ave of units; their period if it states none.
    pub average: Option<Span>,
    /// I; X_ave if it states none.
    pub interval: Option<Span>,
    /// D_max; if it states none half a second, or less where that would bring more than 12,800 packets.
    pub delay: Option<Span>,
    /// For how long another path is looked for when the channel's fails; the node's own time if it states
    /// none, not at all if it is zero.
    pub reroute: Option<Span>,
    /// J_max; any jitter if it states none.
    pub jitter: Option<Span>,
    /// The way may lead through a network without Rota, where nothing is guaranteed.
    pub allow_withdrawn: bool,
    /// The receiver's number of the invitation that it answers; none for an ordinary channel.
    pub invitation: ChannelId,
    /// The partition that it counts in, on each link that has one of this name.
    pub partition: Option<PartitionName>,
    /// The group with which it shares what the links of its way reserve.
    pub group: Option<Group>,
    /// A second path is reserved beforehand, for the failure of the first one.
    pub has_second: bool,
    /// When it is needed first, from now on; at once if it states none.
    pub start: Option<Span>,
    /// When it ends by itself, from now on; never if it states none.
    pub end: Option<Span>,
    /// The chances of the statistical class; none in the guaranteed one.
    pub chances: Chances,
    /// The gateways that its path is to lead through, in this order.
    pub via: Option<Via>,
}

/// Steps of one call: each needs an answer of the step before.
const STEPS: usize = 10_000;

impl Node {
    pub(super) fn tell_across<R>(&mut self, now: Instant, tell: impl FnOnce(&mut Across) -> R) -> Option<R> {
        self.assert_drained();
        let answer = tell(self.across.as_mut()?);
        if self.across.as_mut().is_some_and(|across| across.looks_for_ways(now)) {
            self.find_ways(now);
        }
        self.carry_across(now);
        Some(answer)
    }

    // ---- calls of programs ----------------------------------------------------------------------------

    /// True if the destination is reached over other nodes only, or over a tunnel.
    pub(super) fn is_beyond(&self, to: &Destination) -> bool {
        let (Destination::Node(node), Some(across)) = (to, &self.across) else { return false };
        let Some(route) = across.rcap.routes().route(*node) else { return false };
        match self.way_to(*node) {
            Some(way) => self.is_withdrawn(way.port),
            None => route.hops > 1,
        }
    }

    /// Opens a channel across segments; the outcome comes as an event.
    ///
    /// # Errors
    /// The request can be seen to be wrong without asking anybody. A node on the way that denies it is an
    /// event.
    pub fn open_beyond(
        &mut self,
        now: Instant,
        request: &OpenRequest,
        beyond: Beyond,
    ) -> Result<ChannelId, RequestError> {
        let Destination::Node(destination) = request.to else { return Err(RequestError::Group) };
        let id = self.lines[0].channels.next_id();
        let via = self.gateways(beyond.via).map_err(RequestError::Across)?;
        let asked = ChannelRequest { via, ..self.request_beyond(request, destination, &beyond) };
        let work = match self.cpu_to_send_across(destination, &asked) {
            Ok(work) => work,
            Err(denied) => return Ok(self.deny_cpu(0, denied)),
        };
        let own = self.medium().node_id();
        let opened = self.tell_across(now, |across| {
            across.rcap.establish(now, id, asked)?;
            let key = ChannelKey { origin: own, channel: id };
            let mut end = End::asked(key, (true, destination), granted(&asked, asked.goal.delay), None);
            end.opened.request = Some(asked);
            end.begins = if asked.life.0 == Span::ZERO { Instant::ZERO } else { now + asked.life.0 };
            end.ends = asked.life.1.map_or(Instant::FAR, |life| now + life);
            across.ends.entry(id).or_insert(end);
            Ok(id)
        });
        let opened = opened.unwrap_or(Ok(id)).map_err(RequestError::Across)?;
        self.has_cpu_across(opened, work);
        Ok(opened)
    }

    /// The request of a program, as RCAP has it.
    fn request_beyond(&self, request: &OpenRequest, destination: NodeId, beyond: &Beyond) -> ChannelRequest {
        let s_max = Octets::new(request.traffic.unit_octets_max.into());
        let reroute = self.across.as_ref().map_or(Span::ZERO, |across| across.reroute);
        let x_min = request.traffic.period;
        let x_ave = beyond.average.unwrap_or(x_min);
        let interval = beyond.interval.unwrap_or(x_ave);
        let (late_most, loss_most) = chances_of(beyond.chances);
        let packet_max = self.packet_max();
        let messages = Messages { x_min, x_ave, interval, s_max };
        let default = delay_default(&messages, packet_max);
        ChannelRequest {
            destination,
            service: request.service,
            uid: beyond.uid,
            messages,
            shortest: Octets::new(1),
            goal: Goal { delay: beyond.delay.unwrap_or(default), jitter: beyond.jitter },
            late_most,
            loss_most,
            packet_max,
            host_slack: self.host_delay_to(destination),
            reroute: beyond.reroute.unwrap_or(reroute),
            allows_withdrawn: beyond.allow_withdrawn,
            room: s_max.max(Octets::new(request.traffic.room_octets.into())),
            initiation: match beyond.invitation.is_some() {
                true => RcapInitiation::Receiver(beyond.invitation),
                false => RcapInitiation::Source,
            },
            partition: beyond.partition,
            group: beyond.group,
            has_second: beyond.has_second,
            life: (beyond.start.unwrap_or(Span::ZERO), beyond.end),
            tree: ChannelId::NONE,
            via: Nodes::default(),
        }
    }

    /// The largest packet that each port carries.
    fn packet_max(&self) -> Octets {
        let most = self.ports().map(|port| payload_max(&port.medium().settings().link.framing)).min();
        most.unwrap_or(Octets::new(1))
    }

    /// The end of a channel across segments here.
    pub(super) fn end_across(&self, channel: ChannelId) -> Option<&End> {
        self.across.as_ref()?.ends.get(&channel)
    }

    /// The program of an end is done with it, or somebody ends it by hand: what is ready leaves first. True
    /// if it is one across segments.
    pub(super) fn close_across(&mut self, now: Instant, channel: ChannelId, cause: CloseCause) -> bool {
        let Some(&End { key, sending, .. }) = self.end_across(channel) else { return false };
        self.tell_across(now, |across| {
            let is_broken =
                across.ends.get(&channel).is_some_and(|end| matches!(end.state, State::Broken { .. }));
            if sending && (cause == CloseCause::Finished || !is_broken) {
                across.drain(now, channel, cause);
            } else {
                let cause = if cause == CloseCause::Finished { CloseCause::ReceiverClosed } else { cause };
                across.close(now, key, cause);
            }
        });
        if let Some(end) = self.forget_asked(channel) {
            self.tell_closed(channel, &end, CloseCause::ReceiverClosed, Tally::default());
        }
        true
    }

    /// The program of an end is dead.
    pub(super) fn abort_across(&mut self, now: Instant, channel: ChannelId) -> bool {
        let Some(&End { key, sending, .. }) = self.end_across(channel) else { return false };
        let cause = if sending { CloseCause::SenderDied } else { CloseCause::ReceiverDied };
        self.tell_across(now, |across| across.close(now, key, cause));
        if let Some(end) = self.forget_asked(channel) {
            self.tell_closed(channel, &end, cause, Tally::default());
        }
        true
    }

    /// The program that is to receive has room, or has none.
    pub(super) fn answer_across(&mut self, now: Instant, channel: ChannelId, accepts: bool) -> Option<bool> {
        let key = self.end_across(channel)?.key;
        let answered = self.tell_across(now, |across| across.rcap.answer(now, key, accepts).is_ok());
        if !accepts {
            // The parent has its listener listen again, and hears of no end.
            self.forget_asked(channel);
        }
        answered
    }

    /// A request to a program of this node is over, and RCAP tells nobody.
    pub(super) fn forget_asked(&mut self, channel: ChannelId) -> Option<End> {
        let is_asked = |end: &&End| !end.sending && end.state == State::Asked;
        self.end_across(channel).filter(is_asked)?;
        self.forget_end(channel)
    }

    /// Forgets an end. The listener of a channel that never opened may listen again.
    fn forget_end(&mut self, channel: ChannelId) -> Option<End> {
        let across = self.across.as_mut()?;
        let end = across.ends.remove(&channel)?;
        if let Some(arrival) = end.arrival {
            across.rcap.face(arrival.local_id, false);
        }
        if end.sending && across.trees.remove(&channel).is_some() {
            self.hops.fans.forget(channel);
        }
        self.hops.send_on(channel, channel);
        if let Some(taken) = end.unopened_listener() {
            self.lines[0].channels.give_back(taken.clone());
        }
        Some(end)
    }

    /// The parent is told that an end is over.
    pub(super) fn tell_closed(&mut self, channel: ChannelId, end: &End, cause: CloseCause, tally: Tally) {
        let listener = end.unopened_listener().map(|listener| listener.id);
        // Beyond the segment nobody states units afterwards.
        let (stated, awaits) = (None, false);
        let event = ChannelEvent::Closed { channel, cause, stated, tally, listener, awaits };
        if let Some(across) = &mut self.across {
            across.events.push_back((end.port(), event));
        }
    }

    // ---- carrying -------------------------------------------------------------------------------------

    /// When the channels across segments want to be called.
    pub fn deadline_across(&self) -> Instant {
        let Some(across) = &self.across else { return self.hops.deadline() };
        if self.hops.has_event() { Instant::ZERO } else { across.deadline().min(self.hops.deadline()) }
    }

    /// As [`Node::handle_deadline`], for channels across segments alone.
    pub fn handle_deadline_across(&mut self, now: Instant) {
        self.assert_drained();
        self.hops.handle_deadline(now);
        self.settle_hops(now);
        self.tick_across(now);
    }

    /// Timers of channels across segments.
    pub(super) fn tick_across(&mut self, now: Instant) {
        if self.across.is_none() {
            return;
        }
        self.end_lives(now);
        self.lapse_keepers(now);
        self.end_drained(now);
        self.ask_statuses(now);
        if self.across.as_ref().is_some_and(|across| across.deadline() <= now) {
            self.tell_across(now, |across| across.rcap.handle_deadline(now));
        }
        self.carry_across(now);
    }

    /// Channels that end by themselves: what is ready leaves first.
    fn end_lives(&mut self, now: Instant) {
        let Some(across) = &mut self.across else { return };
        let is_over = |end: &End| end.sending && end.state == State::Open && end.ends <= now;
        let over = across.ends.iter().filter(|(_, end)| is_over(end)).map(|(id, _)| *id);
        for id in over.collect::<Vec<_>>() {
            across.drain(now, id, CloseCause::Finished);
        }
    }

    /// Channels whose last packet has left, and has arrived.
    fn end_drained(&mut self, now: Instant) {
        let Some(across) = &self.across else { return };
        let of = |(id, end): (&ChannelId, &End)| (*id, end.key, end.state, end.is_moved);
        let ends: Vec<_> = across.ends.iter().map(of).collect();
        for (id, key, state, is_moved) in ends {
            let state = match state {
                State::Draining { look, until, .. } if now < look.min(until) => continue,
                // Nothing is on its way, and nothing has to be counted.
                State::Draining { cause, .. } if !is_moved && self.is_unused_hop(id) => {
                    self.tell_across(now, |across| across.close(now, key, cause));
                    continue;
                }
                State::Draining { cause, until, .. } if now >= until || self.is_source_drained(id) => {
                    State::Arriving { cause, until: self.all_come(now, id) }
                }
                State::Draining { cause, until, .. } => {
                    State::Draining { cause, until, look: now + DRAIN_LOOK }
                }
                State::Arriving { cause, until } if now >= until => {
                    // A question that is under way was asked before the last unit came.
                    match self.tell_across(now, |across| across.ask_status(now, id)) {
                        Some(false) => State::Arriving { cause, until: now + DRAIN_LOOK },
                        _ => State::Counting { cause, until: now + STATUS_EVERY },
                    }
                }
                State::Counting { cause, until } if now >= until => {
                    self.tell_across(now, |across| across.close(now, key, cause));
                    continue;
                }
                state => state,
            };
            if let Some(end) = self.across.as_mut().and_then(|across| across.ends.get_mut(&id)) {
                end.state = state;
            }
        }
    }

    /// The nodes of the path of a channel that is sent here, the destination last, as they last told.
    pub fn path_of(&self, channel: ChannelId) -> &[Record] {
        self.end_across(channel).map_or(&[], |end| &end.nodes)
    }

    /// Does what RCAP wants, and tells it what the media say, until neither has anything more.
    pub(super) fn carry_across(&mut self, now: Instant) {
        for _ in 0..STEPS {
            let Some(across) = &mut self.across else { return };
            if let Some(output) = across.rcap.poll() {
                self.perform_across(now, output);
            } else if let Some(event) = self.hops.next_event() {
                self.on_hop_event(now, event);
            } else if let Some(node) = across.died.pop() {
                across.rcap.neighbour_died(now, node);
            } else if !self.settle_trees(now) {
                return;
            }
        }
        debug_assert!(false, "RCAP and the media answer each other for ever");
    }

    fn perform_across(&mut self, now: Instant, output: RcapOutput) {
        match output {
            RcapOutput::Send { to, message } => {
                if let Some(across) = &mut self.across {
                    across.outbox.push_back((to, message));
                }
            }
            RcapOutput::Reserve { entry, hop, ask, late_most: late, partition, group, life, former } => {
                let (none, waits, joint) = (ChannelId::NONE, false, None);
                let is_late_before = self.across.as_ref().is_some_and(|across| {
                    across.rcap.records(entry).iter().any(|node| node.hop.late > Chance::NEVER)
                });
                let next = hop;
                let asked =
                    Held { hop: none, next, ask, partition, group, life, late, is_late_before, waits, joint };
                match former {
                    None => self.reserve_across(now, entry, asked),
                    Some(former) => self.reserve_joint(now, entry, asked, &former),
                }
            }
            RcapOutput::Prepare { of, hop, until } => self.prepare_across(now, of, hop, until),
            RcapOutput::Forgo { of } => self.forgo_across(now, &of),
            RcapOutput::Share { entry, with } => {
                let Some(across) = &mut self.across else { return };
                match across.held.get(&with).copied() {
                    Some(held) => _ = across.held.insert(entry, held),
                    // Its hop has just ended by itself.
                    None => across.rcap.share_lost(now, entry),
                }
            }
            RcapOutput::Relax { entry, delay } => self.relax_across(now, entry, delay),
            RcapOutput::Install { entry, channel } => {
                if self.install(now, entry, &channel).is_err()
                    && let Some(across) = &mut self.across
                {
                    across.rcap.share_lost(now, entry);
                }
            }
            RcapOutput::Inspect { entry } => {
                let counts = self.counts_of(entry);
                if let Some(across) = &mut self.across {
                    across.rcap.inspected(entry, counts);
                }
            }
            RcapOutput::Release { entry, .. } => {
                self.leave_entry(entry);
                let held = self.across.as_mut().and_then(|across| across.release(entry));
                let of_others = |hop| self.across.as_ref().is_some_and(|of| of.entry_of(hop).is_some());
                match held.filter(|held| !held.waits) {
                    Some(held) if of_others(held.hop) => self.leave_joint(now, entry, &held),
                    Some(held) => self.end_hop(now, held.hop),
                    None => {}
                }
            }
            RcapOutput::Event(event) => self.on_rcap_event(now, event),
        }
    }

    fn reserve_across(&mut self, now: Instant, entry: EntryId, asked: Held) {
        let late = self.late_of(&asked);
        let Some(across) = &mut self.across else { return };
        // The source's hop is the channel of its program.
        // Branches of one program have hops of their own.
        let has_own = |of: &ChannelId| {
            across.rcap.is_change(entry) || across.rcap.is_second_path(entry) || across.program_of(*of) != *of
        };
        let source = across.rcap.source_of(entry).filter(|of| !has_own(of));
        let is_again = source.is_some_and(|hop| self.hops.hop(hop).is_some());
        let hop = source.unwrap_or_else(|| self.lines[0].channels.next_id());
        if is_again {
            self.hops.await_release(hop);
        }
        across.held.insert(entry, Held { hop, late, waits: is_again, ..asked });
        if !is_again {
            self.ask_share(now, entry);
        }
    }

    /// Asks the medium for the share of an entry.
    fn ask_share(&mut self, now: Instant, entry: EntryId) {
        let held = self.across.as_ref().and_then(|across| across.held.get(&entry)).copied();
        let Some(held) = held else { return };
        let asked = self.share_of(&held).and_then(|(way, share)| {
            self.reserve_hop_as(now, held.hop, way, &share).map_err(|error| denied_by(&error))?;
            Ok(way.port)
        });
        let asked = asked.map_err(|denied| self.in_messages(now, entry, &held, denied));
        let Some(across) = &mut self.across else { return };
        match asked {
            Ok(port) => {
                self.hops.call(held.hop, across.rcap.called(entry).unwrap_or_default());
                self.has_asked(now, entry, port);
            }
            Err(denied) => {
                across.held.remove(&entry);
                across.rcap.denied(now, entry, denied);
            }
        }
    }

    /// RTIP is told of a channel that is open here.
    fn install(&mut self, now: Instant, entry: EntryId, channel: &Installed) -> Result<(), HopError> {
        let from = channel.before.and_then(|node| self.way_to(node));
        let held = self.across.as_ref().and_then(|across| across.held.get(&entry)).copied();
        let Some(((_, local_id), held)) = channel.way.zip(held) else {
            let id = self.across.as_ref().and_then(|across| across.end_of(channel.of, false));
            let (Some(id), Some(from), Some(label)) = (id, from, channel.label_in) else {
                return Err(HopError::NoHop(ChannelId(0)));
            };
            return self.install_here(entry, channel, id, (from, label));
        };
        let buffers = usize::try_from(channel.buffers).unwrap_or(usize::MAX);
        let Installed { traffic, regulator, delay, upstream, .. } = *channel;
        let spec = HopSpec { traffic, regulator, buffers, delay, upstream, local_id };
        if held.joint.is_some() {
            let octets = u32::try_from(channel.octets.get()).unwrap_or(u32::MAX);
            return self.install_joint(entry, (&spec, octets), channel.label_in.map(|label| (label, from)));
        }
        match (channel.label_in, from) {
            (None, _) => self.install_source(now, entry, held.hop, &spec),
            (Some(label), Some(from)) if channel.is_branch => {
                self.enter_gateway_beside(held.hop, &spec, from, label)
            }
            (Some(label), Some(from)) => self.enter_gateway_as(held.hop, &spec, from, label),
            (Some(_), None) => Err(HopError::NoHop(held.hop)),
        }
    }

    /// A channel that is received here is open.
    fn opened_here(&mut self, id: ChannelId, from: Way) {
        let Some(across) = &mut self.across else { return };
        let Some(end) = across.ends.get_mut(&id) else { return };
        let was_broken = matches!(end.state, State::Broken { .. });
        (end.state, end.way) = (State::Open, Some(from));
        let (channel, granted) = (id, end.granted);
        let event = match was_broken {
            true => ChannelEvent::Rerouted { channel, granted },
            false => ChannelEvent::IncomingOpened { channel, granted },
        };
        across.events.push_back((from.port, event));
    }

    fn on_hop_event(&mut self, now: Instant, event: HopEvent) {
        if self.is_of_keeper(&event) {
            return;
        }
        let Some(across) = &mut self.across else { return };
        let of = |hop| across.entry_of(hop);
        match event {
            HopEvent::Reserved { hop, admitted } => {
                let Some(entry) = of(hop) else { return self.end_hop(now, hop) };
                self.on_reserved_hop(now, entry, hop, &admitted);
            }
            HopEvent::Refused { hop, refusal } => self.on_refused_hop(now, hop, &refusal),
            HopEvent::Ended { hop, label, cause } => {
                if of(hop).is_some() {
                    let all: Vec<EntryId> = across.entries_of(hop).collect();
                    all.into_iter().for_each(|entry| across.rcap.hop_ended(now, entry, cause));
                } else if let Some((end, label)) = across.ends.get(&hop).zip(label)
                    && !end.sending
                {
                    across.rcap.arrival_ended(now, end.key, label, cause);
                }
            }
            HopEvent::Begun { hop, label } => {
                let is_it = |(id, (.., of)): &(ChannelId, Key)| *id == hop && *of == label;
                let begun =
                    across.entered.iter().find(|(_, entered)| is_it(entered)).map(|(entry, _)| *entry);
                begun.into_iter().for_each(|entry| self.on_changed_here(hop, entry));
            }
            HopEvent::Released { hop } => {
                let waiting = of(hop).filter(|entry| across.held[entry].waits);
                if let Some(entry) = waiting {
                    across.held.entry(entry).and_modify(|held| held.waits = false);
                    self.ask_share(now, entry);
                }
            }
        }
    }

    fn on_rcap_event(&mut self, now: Instant, event: RcapEvent) {
        let Some(event) = self.on_branch_event(now, event) else { return };
        match event {
            RcapEvent::Opened { channel, promise, nodes, .. } => {
                self.on_opened_across(now, channel, &promise, nodes);
            }
            RcapEvent::Refused { channel, denied, .. } => {
                let Some(across) = &mut self.across else { return };
                let end = across.ends.remove(&channel);
                let (to, request) = end.map_or((NodeId::UNKNOWN, None), |end| (end.peer, end.opened.request));
                let partition = refusing(&denied, request.as_ref());
                let name = across.links.name(denied.node).map(str::to_owned);
                let withdrawn = across.withdrawn_behind(&denied, to);
                let event = ChannelEvent::Denied { channel, denied, name, withdrawn, partition };
                across.events.push_back((PortId(0), event));
            }
            RcapEvent::Incoming { key, entry, listener, request, best } => {
                let across = self.across.as_ref();
                let promise = across.and_then(|across| across.rcap.promised(entry)).unwrap_or(best);
                self.on_incoming((key, entry), listener, &request, promise);
            }
            RcapEvent::Switched { channel, promise, nodes, .. } => {
                self.on_switched(now, channel, &promise, nodes);
            }
            RcapEvent::SecondLost { channel, cause, node } => self.on_second_lost(channel, cause, node),
            RcapEvent::Invited { key, invitee, service, pair } => {
                self.on_invited(key, invitee, (service, pair))
            }
            RcapEvent::NotInvited { listener, denied } => self.on_not_invited(listener, denied),
            RcapEvent::IncomingGone { key, ending } => {
                let cause = match ending {
                    Ending::Closed { cause, .. } => cause,
                    Ending::Denied(_) | Ending::Superseded => CloseCause::NoAnswer,
                };
                self.end_across_at(now, key, false, cause);
            }
            RcapEvent::Broken { key, sending, cause, node } => {
                self.on_broken(now, (key, sending), cause, node);
            }
            RcapEvent::Again { key, entry, request, promise } => {
                self.on_again((key, entry), &request, promise);
            }
            RcapEvent::Changed { channel, request, promise, nodes, .. } => {
                self.on_changed_across(now, channel, &request, &promise, nodes);
            }
            RcapEvent::NotChanged { channel, denied } => self.on_not_changed(channel, denied),
            // Of branches alone, which come above.
            RcapEvent::Ready { .. } => {}
            RcapEvent::Changing { key, entry, request, promise } => {
                self.on_changing(key, entry, &granted(&request, promise));
            }
            RcapEvent::ChangedHere { key, entry } => {
                let id = self.across.as_ref().and_then(|across| across.end_of(key, false));
                id.into_iter().for_each(|id| self.on_changed_here(id, entry));
            }
            RcapEvent::Closed { key, sending, cause, denied, .. } => {
                self.tell_no_way(key, denied);
                self.end_across_at(now, key, sending, cause);
            }
            RcapEvent::Status { channel, nodes } => self.on_status(now, channel, nodes),
            RcapEvent::NoStatus { channel } => self.on_status(now, channel, Vec::new()),
        }
    }

    fn on_opened_across(&mut self, now: Instant, channel: ChannelId, promise: &Promise, nodes: Vec<Record>) {
        let to = self.way_on(channel);
        let port = to.map(|way| way.port).unwrap_or_default();
        let Some(across) = &mut self.across else { return };
        let peer = across.ends.get(&channel).map(|end| end.peer);
        let withdrawn = peer.and_then(|peer| across.withdrawn(&nodes, peer));
        let Some(end) = across.ends.get_mut(&channel) else { return };
        promised(&mut end.granted, promise);
        end.granted = Granted { withdrawn, ..served_by(end.granted, &nodes) };
        end.granted.leaves_within_ns =
            end.opened.request.and_then(|of| leaves_within(&of, promise.octets, &nodes));
        (end.way, end.nodes, end.ask_status) = (to, nodes.clone(), now + STATUS_EVERY);
        (end.opened.octets, end.opened.nodes) = (promise.octets, nodes);
        let (was, granted) = (end.state, end.granted);
        if matches!(was, State::Asked | State::Broken { .. }) {
            end.state = State::Open;
        }
        end.is_moved |= matches!(was, State::Broken { .. });
        let event = match was {
            State::Broken { .. } => ChannelEvent::Rerouted { channel, granted },
            _ => ChannelEvent::Opened { channel, label: 0, granted },
        };
        across.events.push_back((port, event));
        if let State::Broken { closing: Some(cause) } = was {
            across.drain(now, channel, cause);
            // The parent hears of the new path now, and offers the units that have not left.
            across.look_later(channel, now + granted.period());
        }
    }

    /// Where no node can relax, the least that the path can promise is what it promises. Elsewhere the nodes
    /// before have yet to relax, and the destination knows D_max alone.
    fn on_incoming(
        &mut self,
        (key, entry): (ChannelKey, EntryId),
        listener: u64,
        request: &ChannelRequest,
        promise: Span,
    ) {
        let id = self.lines[0].channels.next_id();
        let arrival = self.arrival_of(entry);
        // It takes no second channel, on whatever port or path.
        let taken: Vec<_> = self.lines.iter_mut().map(|line| line.channels.take(listener)).collect();
        let Some(across) = &mut self.across else { return };
        let nodes = across.rcap.records(entry);
        let withdrawn = across.withdrawn(nodes, request.destination);
        let granted = Granted { withdrawn, ..served_by(granted(request, promise), nodes) };
        let end = End::asked(key, (false, key.origin), granted, taken.into_iter().flatten().next());
        across.ends.insert(id, End { arrival, ..end });
        let event = ChannelEvent::Incoming {
            channel: id,
            remote: key.channel,
            label: 0,
            listener,
            peer: key.origin,
            granted: made_for(granted, request),
            before: 0,
        };
        across.events.push_back((PortId(0), event));
    }

    /// An end of a channel here is over.
    fn end_across_at(&mut self, now: Instant, key: ChannelKey, sending: bool, cause: CloseCause) {
        let Some(id) = self.across.as_ref().and_then(|across| across.end_of(key, sending)) else { return };
        let tally = self.hops.tally(id);
        if !sending {
            self.end_hop(now, id);
        }
        if let Some(end) = self.forget_end(id) {
            self.tell_closed(id, &end, cause, tally.unwrap_or(end.tally));
        }
    }

    /// True if the parent is to take an event: those of hops are for RCAP where this node has it.
    pub(super) fn has_event_across(&self) -> bool {
        self.across.as_ref().map_or_else(|| self.hops.has_event(), |across| !across.events.is_empty())
    }
}
