//! What the data thread notes of everything that happens, in the ring of [`rota_shm::trace`].
//!
//! The machines know nothing of it: what became of a frame is seen in what they counted. No allocation, no
//! lock and no system call on the frame path. An event that starts an incident is told to the control thread,
//! which keeps a copy of the events around it ([`crate::incidents`]).

mod counted;
mod judge;
mod seat;
#[cfg(test)]
mod tests;

pub(crate) use counted::Counted;
use judge::Judge;
use rota_contract::{Contract, GroupKey};
use rota_driver::stall::{StallEvent, StallKind, StallLog};
use rota_proto::{
    ChannelEvent, ChannelId, Delivery, Excluded, FrameVerdict, Node, Port, PortId, ReceiverChange, Stated,
    StationId,
};
use rota_shm::{TraceEvent, TraceFile, TraceRecord, TraceVerdict};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, PayloadKind, StationSet};
use seat::{Seat, Seen};
use std::io::Write;

const SOURCE_AT: usize = 20;
const STAMP_AT: usize = 30;
const BODY_AT: usize = 42;
const ANNOUNCED_STATE_AT: usize = BODY_AT + 24;
const SCHEDULE_AT: usize = BODY_AT + 12;
/// The frame's kind, and the payload's, in the link header.
const KIND_AT: usize = 15;
const PAYLOAD_AT: usize = 17;
/// Of a packet of a channel across segments: what its header says of it.
const LOCAL_ID_AT: usize = BODY_AT + 2;
const PACKET_NUMBER_AT: usize = BODY_AT + 6;
const ANNOUNCE: u8 = 1;
const TOKEN: u8 = 5;
const DATA: u8 = 13;
const LEAVING: u8 = 3;
/// A host that stands still for so long is an incident, whatever came of it.
pub(crate) const STALL_KEPT_NS: u64 = 250_000_000;
const CHANNELS_MAX: usize = 512;
/// The list of stations is looked up again at most this often for one that is not known.
const LOOK_EVERY: Span = Span::from_millis(100);
/// The control thread is woken for each kind of incident at most this often.
const INCIDENT_EVERY: Span = Span::from_millis(100);

/// True if a data frame carries a packet of a channel across segments.
fn is_packet(frame: &[u8]) -> bool {
    frame.get(PAYLOAD_AT) == Some(&PayloadKind::Rtip.code())
}

/// The first of the alarms of programs that do not read; their channels share them.
const UNREAD_ALARM: usize = 7;
/// The longest name of a group and its user need less.
const GROUP_WORDS: usize = 64;
/// Units that a machine is offered ahead, at most.
const HANDED: usize = 64;
const UNREAD_ALARMS: usize = 4;

/// What is known of an open channel.
struct Known {
    port: PortId,
    channel: ChannelId,
    /// Its sender's id, by which people know it at both ends: events bear it.
    id: ChannelId,
    /// Its label, where this station sends on it; 0 otherwise.
    label: u16,
    bound: Span,
    judge: Judge,
    /// On a channel that sends: units that its receiver's node has reported as not read.
    unread: u64,
    /// On one whose program counts: units left out of which it was told.
    left_out: u64,
    /// The newest units of a channel that is sent here, by their numbers on the wire: for how long after its
    /// schedule its program had not handed each over.
    handed: [(u16, Span); HANDED],
}

/// Something of which an incident should be kept.
#[derive(Clone, Copy, Default)]
struct Alarm {
    /// Its event, until the control thread has been told.
    event: Option<u64>,
    /// When the next one of its kind may be told.
    next: Instant,
}

/// The data thread's hand on the event log; without a file it does nothing.
pub(crate) struct Tracer {
    file: Option<TraceFile>,
    ether_type: u16,
    boot_id: u64,
    /// Those that are gone are among them: the number of a port is its place.
    ports: Vec<Seat>,
    stalls: u64,
    known: Vec<Known>,
    /// What went wrong, by its kind: many late units must not hide one lost station.
    alarms: [Alarm; UNREAD_ALARM + UNREAD_ALARMS],
}

impl Tracer {
    /// The log of a node whose ports, numbered from 0, have these addresses.
    pub(crate) fn new(file: Option<TraceFile>, ether_type: u16, macs: &[[u8; 6]], boot_id: u64) -> Self {
        Self {
            file,
            ether_type,
            boot_id,
            ports: macs.iter().zip(0..).map(|(mac, port)| Seat::new(PortId(port), *mac)).collect(),
            stalls: 0,
            known: Vec::with_capacity(CHANNELS_MAX),
            alarms: [Alarm::default(); UNREAD_ALARM + UNREAD_ALARMS],
        }
    }

    fn seat(&mut self, port: PortId) -> Option<&mut Seat> {
        self.ports.get_mut(usize::from(port.0))
    }

    /// The event of which the control thread should keep what is around it, once.
    pub(crate) fn incident(&mut self, now: Instant) -> Option<u64> {
        let due = self.alarms.iter_mut().find(|alarm| alarm.event.is_some() && now >= alarm.next)?;
        due.next = now + INCIDENT_EVERY;
        due.event.take()
    }

    fn note(&mut self, record: &TraceRecord<'_>) {
        let Some(file) = &mut self.file else { return };
        let index = file.push(record);
        let alarm = match record.event {
            TraceEvent::Missed if record.verdict == TraceVerdict::LeftOut => 5,
            TraceEvent::Missed if record.verdict == TraceVerdict::Unread => {
                let alarm = UNREAD_ALARM + (record.channel.0 % UNREAD_ALARMS as u64) as usize;
                // The newest one says how many there are by now.
                self.alarms[alarm].event = Some(index);
                return;
            }
            TraceEvent::Missed => 0,
            TraceEvent::Refused => 1,
            // A station that says goodbye is not lost.
            TraceEvent::Lost if record.number == 0 => 2,
            TraceEvent::Closed if record.extra[0] == 1 => 3,
            TraceEvent::PathFailed => 3,
            // The others take this station for lost, or soon would have.
            TraceEvent::Stall if record.extra[1].saturating_sub(record.extra[0]) > STALL_KEPT_NS => 4,
            TraceEvent::BeyondContract => 6,
            _ => return,
        };
        // The first of several.
        self.alarms[alarm].event.get_or_insert(index);
    }

    // ---- frames ---------------------------------------------------------------------------------------

    /// Whether there is a log.
    pub(crate) fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// A frame that the machine has handled, where there is a log, and its verdict on it.
    pub(crate) fn received(
        &mut self,
        port: PortId,
        (at, dequeued): (Instant, Instant),
        frame: &[u8],
        verdict: FrameVerdict,
        node: &Node,
        delivery: Option<&Delivery>,
    ) {
        let ether_type = self.ether_type;
        let Some(seat) = self.seat(port) else { return };
        let mut record = seat.frame(ether_type, TraceEvent::Received, frame);
        (record.at_ns, record.noted_ns) = (at.as_nanos(), dequeued.as_nanos());
        record.verdict = logged(verdict);
        let believed = !verdict.is_invalid();
        // Its number was drawn after it was last looked who there is.
        let is_new = record.src != 0 && record.src != seat.seen.station && !seat.alive.contains(record.src);
        if believed && record.kind == ANNOUNCE && frame.get(ANNOUNCED_STATE_AT) == Some(&LEAVING) {
            seat.left.insert(record.src);
        }
        if believed && is_new && dequeued >= seat.look_again {
            seat.look_again = dequeued + LOOK_EVERY;
            self.members(dequeued, port, node);
        }
        let known = delivery.and_then(|d| self.known.iter_mut().find(|known| known.channel == d.channel));
        let Some((delivery, known)) = delivery.zip(known) else {
            if believed && record.kind == DATA && is_packet(frame) {
                let from = MacAddr(octets(frame, 6));
                record.channel = node.channel_in(port, from, record.label).unwrap_or(ChannelId::NONE);
            }
            return self.note(&record);
        };
        let judged = known.judge.fragment(&delivery.descriptor, delivery.octets, at);
        record.channel = known.id;
        record.number = delivery.descriptor.number;
        record.deadline_ns = judged.deadline_ns;
        record.late_ns = judged.late_ns;
        record.verdict = judged.verdict;
        self.note(&record);
        for missed in judged.missed.into_iter().flatten() {
            let record = TraceRecord { octets: &[], src: record.src, dst: record.dst, ..record };
            self.missed(missed, record);
        }
    }

    /// A fragment that waited for those before it goes to its program; its frame has been noted.
    pub(crate) fn kept(&mut self, at: Instant, delivery: &Delivery) {
        let Some(known) = self.known.iter_mut().find(|known| known.channel == delivery.channel) else {
            return;
        };
        let judged = known.judge.fragment(&delivery.descriptor, delivery.octets, at);
        let (channel, _, port) = self.called(delivery.channel);
        for missed in judged.missed.into_iter().flatten() {
            let own = self.own(TraceEvent::Missed, at, port);
            self.missed(missed, TraceRecord { channel, ..own });
        }
    }

    fn missed(&mut self, missed: judge::Missed, record: TraceRecord<'_>) {
        let extra = [missed.units, missed.octets, missed.early_ns];
        let (event, verdict, number) = (TraceEvent::Missed, missed.verdict, missed.number);
        let (deadline_ns, late_ns) = (missed.deadline_ns, missed.late_ns);
        self.note(&TraceRecord { event, verdict, number, extra, deadline_ns, late_ns, kind: 0, ..record });
    }

    /// The program of a channel of this station left out so many units, from this one on.
    pub(crate) fn left_out(&mut self, at: Instant, channel: ChannelId, number: u64, units: u64) {
        let (channel, label, port) = self.called(channel);
        let own = self.own(TraceEvent::Missed, at, port);
        let (verdict, extra) = (TraceVerdict::LeftOut, [units, 0, 0]);
        self.note(&TraceRecord { verdict, channel, label, number, extra, ..own });
    }

    /// The program of a channel that is received here did not read so many units in time, from this one on,
    /// and so many in all.
    pub(crate) fn unread(&mut self, at: Instant, channel: ChannelId, number: u64, [units, all]: [u64; 2]) {
        self.note_unread(at, channel, number, [units, 1, all]);
    }

    /// The receiver's node of a channel of this station has reported its counts.
    fn reported(&mut self, at: Instant, channel: ChannelId, unread: u64) {
        let known = self.known.iter_mut().find(|known| known.channel == channel && known.label != 0);
        let Some(known) = known.filter(|known| unread > known.unread) else { return };
        let more = unread - known.unread;
        known.unread = unread;
        self.note_unread(at, channel, 0, [more, 0, unread]);
    }

    fn note_unread(&mut self, at: Instant, channel: ChannelId, number: u64, extra: [u64; 3]) {
        let (channel, _, port) = self.called(channel);
        let (verdict, own) = (TraceVerdict::Unread, self.own(TraceEvent::Missed, at, port));
        self.note(&TraceRecord { verdict, channel, number, extra, ..own });
    }

    /// The id of a channel for people, its label and its port; of one that is not known its number alone.
    fn called(&self, channel: ChannelId) -> (ChannelId, u16, Option<PortId>) {
        let known = self.known.iter().find(|known| known.channel == channel);
        known.map_or((channel, 0, None), |known| (known.id, known.label, Some(known.port)))
    }

    /// A program has handed over a unit, so long after its schedule at least.
    pub(crate) fn handed_over(&mut self, channel: ChannelId, number: u64, late: Span) {
        if let Some(known) = self.known.iter_mut().find(|known| known.channel == channel) {
            known.handed[number as usize % HANDED] = (number as u16, late);
        }
    }

    /// A frame that was handed to the device, or that it had no room for.
    pub(crate) fn sent(&mut self, port: PortId, at: Instant, frame: &[u8], has_left: bool) {
        self.sent_of(ChannelId::NONE, port, at, frame, has_left);
    }

    /// A frame of this node's. A packet of a channel across segments is named by its channel.
    pub(crate) fn sent_own(
        &mut self,
        (port, node): (PortId, &Node),
        at: Instant,
        frame: &[u8],
        has_left: bool,
    ) {
        let is_named = self.is_on() && is_packet(frame) && frame.get(KIND_AT) == Some(&DATA);
        let named = is_named.then(|| {
            // Group addresses are those of frames that leave at all ports of a switch.
            let [first, rest @ ..] = octets::<6>(frame, 0);
            let [b, c, d, e, f] = rest;
            let local_id = u16::from_be_bytes(octets(frame, LOCAL_ID_AT));
            node.channel_out(port, MacAddr([first & !1, b, c, d, e, f]), local_id)
        });
        self.sent_of(named.flatten().unwrap_or(ChannelId::NONE), port, at, frame, has_left);
    }

    fn sent_of(&mut self, named: ChannelId, port: PortId, at: Instant, frame: &[u8], has_left: bool) {
        let (ether_type, is_on) = (self.ether_type, self.is_on());
        let Some(seat) = self.ports.get_mut(usize::from(port.0)).filter(|_| is_on) else { return };
        let event = if has_left { TraceEvent::Sent } else { TraceEvent::Dropped };
        let mut record = seat.frame(ether_type, event, frame);
        (record.at_ns, record.noted_ns) = (at.as_nanos(), at.as_nanos());
        record.channel = named;
        if !has_left {
            record.verdict = TraceVerdict::NoRoom;
        } else if record.kind == TOKEN {
            let stamp = octets(frame, STAMP_AT);
            if stamp == seat.last_token {
                record.verdict = TraceVerdict::Again;
            }
            seat.last_token = stamp;
        } else if record.kind == DATA
            && !is_packet(frame)
            && let Some(known) =
                self.known.iter_mut().find(|known| known.port == port && known.label == record.label)
        {
            let schedule = u64::from_be_bytes(octets(frame, SCHEDULE_AT));
            let deadline = schedule.saturating_add(known.bound.as_nanos());
            record.channel = known.id;
            record.number = u16::from_be_bytes(octets(frame, BODY_AT + 2)).into();
            record.deadline_ns = deadline;
            record.late_ns = at.as_nanos().cast_signed().saturating_sub(deadline.cast_signed());
            // The first fragment of a unit; the others say the same.
            let begins = u16::from_be_bytes(octets(frame, BODY_AT + 4)) >> 4 == 0;
            let early_ns = if begins { known.judge.sends(schedule) } else { 0 };
            if record.late_ns > 0 {
                record.verdict = TraceVerdict::Late;
                let (number, late) = known.handed[record.number as usize % HANDED];
                let handed = if u64::from(number) == record.number { late } else { Span::ZERO };
                let extra = [known.bound.as_nanos(), handed.as_nanos(), early_ns];
                self.note(&record);
                if begins {
                    let event = TraceEvent::Missed;
                    self.note(&TraceRecord { event, extra, kind: 0, octets: &[], ..record });
                }
                return;
            }
        }
        self.note(&record);
    }

    /// An ordinary frame of this host's that found no room.
    pub(crate) fn dropped(&mut self, port: PortId, at: Instant, frame: &[u8]) {
        self.sent(port, at, frame, false);
    }

    // ---- everything else ------------------------------------------------------------------------------

    /// An event of this station, of now and with nothing more to say. Without a port it is one of the host,
    /// which is known by its number on the first port.
    fn own(&self, event: TraceEvent, at: Instant, port: Option<PortId>) -> TraceRecord<'static> {
        let seat = self.ports.get(port.map_or(0, |port| usize::from(port.0)));
        let (at_ns, src) = (at.as_nanos(), seat.map_or(0, |seat| seat.seen.station));
        let port = port.map(|port| port.0);
        TraceRecord { event, at_ns, noted_ns: at_ns, src, port, ..TraceRecord::default() }
    }

    fn plain_event(&mut self, event: TraceEvent, at: Instant, port: PortId) {
        self.note(&self.own(event, at, Some(port)));
    }

    /// A frame came, so that the link is up, also where there is no log.
    pub(crate) fn heard(&mut self, port: PortId, at: Instant) {
        if self.seat(port).is_some_and(|seat| std::mem::take(&mut seat.link_down)) {
            self.plain_event(TraceEvent::LinkUp, at, port);
        }
    }

    /// The device says that its link is down. True when that is news.
    pub(crate) fn link_down(&mut self, port: PortId, at: Instant) -> bool {
        let is_news = self.seat(port).is_some_and(|seat| !std::mem::replace(&mut seat.link_down, true));
        if is_news {
            self.plain_event(TraceEvent::LinkDown, at, port);
        }
        is_news
    }

    /// The interface of a port is gone. Nobody is lost with it: its stations are only out of sight.
    pub(crate) fn port_lost(&mut self, port: PortId, at: Instant, why: &str) {
        let own = self.own(TraceEvent::PortLost, at, Some(port));
        self.note(&TraceRecord { octets: why.as_bytes(), ..own });
    }

    /// The end of a turn: notes what is different from the last one.
    pub(crate) fn turn(&mut self, now: Instant, node: &Node, stalls: &StallLog) {
        if self.file.is_none() {
            return;
        }
        if self.stalls != stalls.total() {
            self.stalls = stalls.total();
            if let Some(stall) = stalls.recent().max_by_key(|stall| stall.to) {
                self.stall(*stall, now);
            }
        }
        for port in node.ports() {
            self.turn_of(now, port.id(), node, Seen::of(port.medium()));
            self.beyond(now, port);
        }
    }

    /// A group that sends beyond its contract at this port is noted, at most ten times a second.
    fn beyond(&mut self, now: Instant, port: &Port) {
        let (id, held) = (port.id(), port.counters().packets.held);
        let Some(seat) = self.seat(id).filter(|seat| seat.held != held && now >= seat.held_again) else {
            return;
        };
        let number = held.saturating_sub(seat.held);
        (seat.held, seat.held_again) = (held, now + INCIDENT_EVERY);
        let mut words = [0; GROUP_WORDS];
        let octets = port.beyond().map_or(&[][..], |group| group_words(&group, &mut words));
        let own = self.own(TraceEvent::BeyondContract, now, Some(id));
        self.note(&TraceRecord { number, octets, ..own });
    }

    fn turn_of(&mut self, now: Instant, port: PortId, node: &Node, seen: Seen) {
        let Some(seat) = self.seat(port) else { return };
        let before = std::mem::replace(&mut seat.seen, seen);
        if before == seen {
            return;
        }
        let counted = [
            (before.claims, seen.claims, TraceEvent::Claim),
            (before.regenerated, seen.regenerated, TraceEvent::Regenerated),
            (before.leases, seen.leases, TraceEvent::LeaseEnded),
            (before.skipped, seen.skipped, TraceEvent::CycleSkipped),
        ];
        for (_, _, event) in counted.into_iter().filter(|(before, now, _)| before != now) {
            self.plain_event(event, now, port);
        }
        if before.mode != seen.mode {
            let (number, extra) = (seen.mode as u64, [before.mode as u64, 0, 0]);
            self.note(&TraceRecord { number, extra, ..self.own(TraceEvent::ModeChange, now, Some(port)) });
        }
        let same = (before.mode, before.station, before.members, before.dead)
            == (seen.mode, seen.station, seen.members, seen.dead);
        if !same {
            self.members(now, port, node);
        }
    }

    fn stall(&mut self, stall: StallEvent, now: Instant) {
        let verdict = match stall.kind {
            StallKind::TimerLate => TraceVerdict::TimerLate,
            StallKind::DequeueLate => TraceVerdict::DequeueLate,
        };
        let extra = [stall.from.as_nanos(), stall.to.as_nanos(), 0];
        let at_ns = stall.to.as_nanos();
        self.note(&TraceRecord { verdict, extra, at_ns, ..self.own(TraceEvent::Stall, now, None) });
    }

    /// Stations were found, lost, or have their number now.
    pub(crate) fn members(&mut self, now: Instant, port: PortId, node: &Node) {
        let Some(medium) = node.port_at(port).map(Port::medium) else { return };
        let Some(file) = &self.file else { return };
        let Some(seat) = self.ports.get_mut(usize::from(port.0)) else { return };
        let before = seat.look(file, medium);
        self.compare(port, before, now);
    }

    /// Notes who has come or gone on a port since it was looked before.
    fn compare(&mut self, port: PortId, was: StationSet, now: Instant) {
        let at = usize::from(port.0);
        // By their addresses: who has another number now is neither lost nor found.
        for index in 0..self.ports[at].before.len() {
            let seat = &mut self.ports[at];
            let (mac, station) = seat.before[index];
            if was.contains(station) && !is_among(mac, &seat.stations, &seat.alive) {
                let number = u64::from(seat.left.contains(station));
                seat.left.remove(station);
                self.station_event(TraceEvent::Lost, (port, station), number, now);
            }
        }
        for index in 0..self.ports[at].stations.len() {
            let seat = &self.ports[at];
            let (mac, station) = seat.stations[index];
            if seat.alive.contains(station) && !is_among(mac, &seat.before, &was) {
                self.station_event(TraceEvent::Back, (port, station), 0, now);
            }
        }
    }

    fn station_event(
        &mut self,
        event: TraceEvent,
        (port, src): (PortId, StationId),
        number: u64,
        at: Instant,
    ) {
        self.note(&TraceRecord { src, number, ..self.own(event, at, Some(port)) });
    }

    /// Something happened to a channel of a port, or to the stations that take part there.
    pub(crate) fn channel(&mut self, now: Instant, port: PortId, event: &ChannelEvent, node: &Node) {
        if self.file.is_none() {
            return;
        }
        match event {
            ChannelEvent::Opened { channel, label, granted } => {
                self.learn((port, *channel), *channel, *label, &granted.contract, false);
                self.contract(TraceEvent::Opened, now, *channel, *label, &granted.contract);
            }
            ChannelEvent::Incoming { channel, remote, granted, .. } => {
                let of = node.port_at(port).zip(node.hop(*channel));
                let member = of.and_then(|(port, hop)| port.medium().member_at(hop));
                let same_clock = member.is_some_and(|member| member.announce.boot_id == self.boot_id);
                self.learn((port, *channel), *remote, 0, &granted.contract, same_clock);
            }
            ChannelEvent::IncomingOpened { channel, granted } => {
                self.relearn(*channel, &granted.contract);
                self.contract(TraceEvent::Opened, now, *channel, 0, &granted.contract);
            }
            ChannelEvent::Changed { channel, granted } => {
                self.relearn(*channel, &granted.contract);
                self.contract(TraceEvent::Changed, now, *channel, 0, &granted.contract);
            }
            ChannelEvent::Refused { channel, refusal } | ChannelEvent::NotChanged { channel, refusal } => {
                let offer = refusal.counter_offer.map_or(0, |octets| octets.get());
                let extra = [refusal.margin.as_nanos(), refusal.margin_bps, offer];
                self.refusal((now, port), *channel, extra, refusal.test.name());
            }
            ChannelEvent::Denied { channel, denied, .. }
            | ChannelEvent::ChangeDenied { channel, denied, .. }
            | ChannelEvent::NotRerouted { channel, denied, .. }
            | ChannelEvent::Receiver { channel, change: ReceiverChange::Refused { denied, .. }, .. } => {
                let extra = [denied.margin_ns, 0, denied.nearest_octets.into()];
                self.refusal((now, port), *channel, extra, denied.test.name());
            }
            ChannelEvent::Rerouting { channel, cause, node, name } => {
                // Off the frame path.
                let words = crate::rerouting::why(*cause, *node, name.as_deref());
                let (id, own) = (self.called(*channel).0, self.own(TraceEvent::PathFailed, now, Some(port)));
                self.note(&TraceRecord { channel: id, octets: words.as_bytes(), ..own });
            }
            ChannelEvent::Rerouted { channel, granted } => {
                self.relearn(*channel, &granted.contract);
                self.contract(TraceEvent::Rerouted, now, *channel, 0, &granted.contract);
            }
            ChannelEvent::Told { channel, tally } => self.reported(now, *channel, tally.unread),
            ChannelEvent::Closed { channel, cause, stated, tally, .. } => {
                self.reported(now, *channel, tally.unread);
                self.closed((now, port), *channel, *cause, *stated);
            }
            ChannelEvent::Struck(Excluded { mac, here, .. }) => {
                self.refused_station((now, port), *mac, rota_wire::Verdict::HeldOff, *here, node);
            }
            ChannelEvent::Refusal { mac, why, here } => {
                self.refused_station((now, port), *mac, *why, *here, node);
            }
            ChannelEvent::MembersChanged => self.members(now, port, node),
            ChannelEvent::ModeChanged
            | ChannelEvent::Contested { .. }
            | ChannelEvent::Afterwards { .. }
            | ChannelEvent::Receiver { .. }
            | ChannelEvent::Probed { .. }
            | ChannelEvent::Invited { .. }
            | ChannelEvent::NotInvited { .. }
            | ChannelEvent::SecondLost { .. }
            | ChannelEvent::NoMemory { .. } => {}
        }
    }

    /// A channel was refused, by a test of this name.
    fn refusal(&mut self, (now, port): (Instant, PortId), channel: ChannelId, extra: [u64; 3], test: &str) {
        let own = self.own(TraceEvent::Refused, now, Some(port));
        self.note(&TraceRecord { channel, extra, octets: test.as_bytes(), ..own });
    }

    fn learn(
        &mut self,
        (port, channel): (PortId, ChannelId),
        id: ChannelId,
        label: u16,
        contract: &Contract,
        same_clock: bool,
    ) {
        if self.known.len() < CHANNELS_MAX {
            let judge = Judge::new(contract, same_clock);
            let handed = [(0, Span::ZERO); HANDED];
            let bound = Span::from_nanos(contract.bound_ns);
            self.known.push(Known { port, channel, id, label, bound, judge, unread: 0, left_out: 0, handed });
        }
    }

    fn relearn(&mut self, channel: ChannelId, contract: &Contract) {
        if let Some(known) = self.known.iter_mut().find(|known| known.channel == channel) {
            known.bound = Span::from_nanos(contract.bound_ns);
            known.judge.change(contract);
        }
    }

    fn contract(&mut self, event: TraceEvent, now: Instant, channel: ChannelId, label: u16, told: &Contract) {
        let extra = [told.unit_octets_max.into(), told.period_ns, told.bound_ns];
        let (channel, _, port) = self.called(channel);
        self.note(&TraceRecord { channel, label, extra, ..self.own(event, now, port) });
    }

    fn closed(
        &mut self,
        (now, port): (Instant, PortId),
        channel: ChannelId,
        cause: rota_contract::CloseCause,
        stated: Option<Stated>,
    ) {
        let (id, own) = (self.called(channel).0, self.own(TraceEvent::Closed, now, Some(port)));
        if let Some(at) = self.known.iter().position(|known| known.channel == channel) {
            let mut known = self.known.swap_remove(at);
            // Only a receiver judges, of what it was promised: a sender's channel has a label here.
            let sent = stated.filter(|_| known.label == 0 && known.bound > Span::ZERO);
            for missed in known.judge.end(sent).into_iter().flatten() {
                self.missed(missed, TraceRecord { channel: id, src: 0, dst: own.src, ..own });
            }
        }
        use rota_contract::CloseCause::{PeerDied, PeerGone, ReservationLost, WasSilent};
        let broken = matches!(cause, ReservationLost | PeerGone | PeerDied | WasSilent);
        let octets = cause.sentence().as_bytes();
        let number = stated.map_or(0, |stated| stated.units.saturating_add(1));
        self.note(&TraceRecord { channel: id, number, extra: [u64::from(broken), 0, 0], octets, ..own });
    }

    fn refused_station(
        &mut self,
        (now, port): (Instant, PortId),
        mac: MacAddr,
        why: rota_wire::Verdict,
        here: bool,
        node: &Node,
    ) {
        // Comes at most once a second, off the frame path.
        let words = crate::status::refusal(mac, why, here);
        let src = node.port_at(port).map_or(0, |port| port.medium().number(mac));
        let (own, octets) = (self.own(TraceEvent::RefusedStation, now, Some(port)), words.as_bytes());
        self.note(&TraceRecord { src, octets, ..own });
    }
}

/// A group as people know it. The frame path takes no memory.
fn group_words<'w>(group: &GroupKey, words: &'w mut [u8; GROUP_WORDS]) -> &'w [u8] {
    let mut rest = &mut words[..];
    let _ = write!(rest, "group {} of user {}", group.name, group.uid);
    let left = rest.len();
    &words[..GROUP_WORDS - left]
}

/// Whether the station of this address is among those that live.
fn is_among(mac: [u8; 6], stations: &[([u8; 6], StationId)], alive: &StationSet) -> bool {
    let found = stations.binary_search_by_key(&mac, |(mac, _)| *mac);
    found.is_ok_and(|at| alive.contains(stations[at].1))
}

/// The verdict as the log has it.
fn logged(verdict: FrameVerdict) -> TraceVerdict {
    match verdict {
        FrameVerdict::Accepted => TraceVerdict::Accepted,
        FrameVerdict::Stale => TraceVerdict::Stale,
        FrameVerdict::Expired => TraceVerdict::Expired,
        FrameVerdict::Unproven => TraceVerdict::Unauthentic,
        FrameVerdict::Malformed => TraceVerdict::Malformed,
        FrameVerdict::Replayed => TraceVerdict::Replayed,
        FrameVerdict::Policed => TraceVerdict::Policed,
        FrameVerdict::UnknownChannel => TraceVerdict::UnknownChannel,
        FrameVerdict::Jump => TraceVerdict::Jump,
        _ => TraceVerdict::None,
    }
}

/// Octets of a frame; zeros where it ends before.
fn octets<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let mut octets = [0; N];
    if let Some(there) = frame.get(at..at + N) {
        octets.copy_from_slice(there);
    }
    octets
}
