//! Channels whose stations are given other numbers, as when two rings of strangers become one.

use super::*;
use crate::io::{FrameBuf, Output, Payloads, UnitRef, session_of};
use crate::node::carry;
use crate::port::Port;
use crate::{Identity, PortId, Settings};
use rota_contract::{Tally, Unread};
use rota_units::{BitRate, Octets};
use rota_wire::{FrameView, Key, Kind};

mod ends;
mod refused;
mod unsent;

pub(super) const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
const C: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xc]);
/// Reports of counts are no closer to each other.
const TALLY_EVERY: Span = Span::from_millis(1_000);

/// The node of a station, as `meet` has it.
fn node_of(mac: MacAddr) -> NodeId {
    NodeId(mac.word())
}

struct Nothing;

impl Payloads for Nothing {
    fn copy_unit(&mut self, _: ChannelId, _: u64, _: u32, _: &mut [u8]) -> bool {
        false
    }
}

/// The ledger of station 1 and its link.
pub(super) struct Ledger {
    pub(super) now: Instant,
    pub(super) port: Port,
    pub(super) channels: Channels,
}

impl Ledger {
    /// A plain segment of station 1, of B with number 2 and of C with number 3.
    pub(super) fn new() -> Self {
        let mac = MacAddr([2, 0, 0, 0, 0, 0xa]);
        let identity = Identity { node_id: NodeId(1), boot_id: 1, mac, name: "n1".to_owned() };
        let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        let now = Instant::from_nanos(1);
        let port = Port::new(now, PortId(0), identity, &Key::new([1; 32]), settings.medium, 1);
        let mut ledger = Self { now, port, channels: Channels::new(NodeId(1), 1) };
        while ledger.port.medium().station() == 0 {
            ledger.now += Span::from_millis(5);
            ledger.port.handle_deadline(ledger.now);
            ledger.sent();
        }
        ledger.number(2, B);
        ledger.number(3, C);
        ledger
    }

    fn tell_all(&mut self) {
        while let Some(event) = self.port.next_event() {
            self.tell(event);
        }
    }

    /// Does what the channels want.
    fn carry(&mut self) {
        carry::channels(self.now, &mut self.channels, &mut self.port);
    }

    pub(super) fn tell(&mut self, event: MediumEvent) {
        self.channels.on_medium_event(self.now, event, Segment::of(&self.port));
        self.carry();
    }

    pub(super) fn signal(&mut self, from: MacAddr, signal: &Signal) {
        self.channels.on_signal(self.now, from, signal, Segment::of(&self.port));
        self.carry();
    }

    pub(super) fn tick(&mut self) {
        self.channels.tick(self.now, Segment::of(&self.port));
        self.carry();
    }

    fn abort(&mut self, id: ChannelId) {
        self.channels.abort(self.now, id, Segment::of(&self.port));
        self.carry();
    }

    fn number(&mut self, station: u16, mac: MacAddr) {
        let rether = self.port.medium_mut().rether_mut().expect("RETHER");
        rether.meet(self.now, station, mac);
        self.tell_all();
    }

    fn gone(&mut self, mac: MacAddr) {
        self.tell(MediumEvent::MemberGone { mac, stopped: false, died: false });
    }

    pub(super) fn open(&mut self, to: MacAddr) -> ChannelId {
        let period = self.port.medium().settings().trt;
        let (hop, to) = (Some(to), Destination::Node(node_of(to)));
        let request = OpenRequest { to, service: 5, traffic: TrafficSpec::fixed(100, period, true) };
        let opened = self.channels.open(self.now, &request, hop, 0, Segment::of(&self.port));
        self.carry();
        opened.expect("a sound request")
    }

    fn hear(&mut self, from: MacAddr, verb: Verb, channel: ChannelId) {
        let signal = Signal { service: 5, ..Signal::new(verb, channel, 1) };
        self.signal(from, &signal);
        self.tell_all();
    }

    /// The program of the first channel sent here has handed over so many units.
    fn hands_over(&mut self, units: u64) {
        let unit = UnitRef { number: units - 1, octets: 9, schedule_ns: 0, left_out: 0 };
        self.channels.outgoing[0].meter.offer(&unit);
    }

    /// A channel that a station has opened to here.
    pub(super) fn opened_by(&mut self, from: MacAddr, channel: u64) -> ChannelId {
        let id = self.accepted_from(from, channel);
        self.hear(from, Verb::Opened, ChannelId(channel));
        id
    }

    /// One that was accepted, and whose sender has not said that it is open.
    pub(super) fn accepted_from(&mut self, from: MacAddr, channel: u64) -> ChannelId {
        self.channels.listen(Listener { id: channel, service: 5, from: None });
        self.hear(from, Verb::Connect, ChannelId(channel));
        let id = self.channels.incoming[self.channels.incoming.len() - 1].id;
        assert!(self.channels.accept(id));
        self.carry();
        id
    }

    /// The verbs that have left since it was asked last.
    pub(super) fn sent(&mut self) -> Vec<(MacAddr, Verb)> {
        self.signals().into_iter().map(|(to, signal)| (to, signal.verb)).collect()
    }

    /// The signals that have left since it was asked last.
    pub(super) fn signals(&mut self) -> Vec<(MacAddr, Signal)> {
        let (mut bytes, mut sent) = ([0; 1_600], Vec::new());
        loop {
            let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut Nothing };
            let Some(output) = self.port.poll(self.now, &mut frame) else { return sent };
            let Output::Transmit { len, .. } = output else { continue };
            let view = FrameView::parse(&bytes[..usize::from(len)], self.port.medium().settings().ether_type);
            let view = view.expect("a frame of ours");
            if view.header().kind == Kind::Signal {
                let signal = Signal::parse(view.body()).expect("a sound one");
                sent.push((view.destination_mac(), signal));
            }
        }
    }

    /// The signals that are repeated.
    pub(super) fn repeated(&mut self) -> Vec<(MacAddr, Verb)> {
        self.sent();
        self.now += SIGNAL_INTERVAL;
        self.tick();
        // Repeated signals go to the station's group address.
        let group =
            |mac: MacAddr| if mac.is_group() { MacAddr([mac.0[0] & !1, 0, 0, 0, 0, mac.0[5]]) } else { mac };
        self.sent().into_iter().map(|(to, verb)| (group(to), verb)).collect()
    }

    /// Channels that have ended, and why.
    pub(super) fn closed(&mut self) -> Vec<(ChannelId, CloseCause)> {
        let events = core::iter::from_fn(|| self.channels.next_event());
        events
            .filter_map(|event| match event {
                ChannelEvent::Closed { channel, cause, .. } => Some((channel, cause)),
                _ => None,
            })
            .collect()
    }

    /// The number of the other end of each channel, as it is reported.
    fn peers(&self) -> Vec<u16> {
        let ends =
            (0..self.channels.ends()).filter_map(|at| self.channels.report_of(at, Segment::of(&self.port)));
        ends.map(|end| end.peer_station).collect()
    }
}

#[test]
fn a_channel_goes_on_with_a_station_that_has_another_number() {
    let mut ledger = Ledger::new();
    let (out, back) = (ledger.open(B), ledger.opened_by(B, 70));
    assert_eq!(ledger.peers(), [2, 2]);
    // C takes the number that B had.
    ledger.number(9, B);
    ledger.number(2, C);
    assert_eq!((ledger.peers(), ledger.closed()), (vec![9, 9], vec![]));
    assert_eq!(ledger.repeated(), [(B, Verb::Connect)]);
    ledger.gone(C);
    assert_eq!(ledger.closed(), [], "whoever has the old number now is another station");
    ledger.hear(C, Verb::Accept, out);
    assert!(matches!(ledger.channels.outgoing[0].state, Sending::Connecting(_)));
    ledger.hear(B, Verb::Accept, out);
    assert_eq!(ledger.channels.outgoing[0].state, Sending::Reserving);
    ledger.hear(B, Verb::Close, ChannelId(70));
    assert_eq!(ledger.closed(), [(back, CloseCause::Finished)]);
}

/// Seed 506463 of the product's timers: a receiver had just booted when it accepted. The ring that its sender
/// wanted formed without it. The channel was open, and its units reached nobody until the ring let it in.
#[test]
fn a_receiver_without_a_number_is_asked_again() {
    let mut ledger = Ledger::new();
    let out = ledger.open(B);
    ledger.sent();
    ledger.number(0, B);
    ledger.hear(B, Verb::Accept, out);
    assert!(matches!(ledger.channels.outgoing[0].state, Sending::Connecting(_)));
    ledger.number(9, B);
    assert_eq!(ledger.repeated(), [(B, Verb::Connect)]);
    ledger.hear(B, Verb::Accept, out);
    assert_eq!(ledger.channels.outgoing[0].state, Sending::Reserving);
}

/// A station in a ring has a number: only channels to one that has none have ended. A receiver that its ring
/// took for dead kept its channel for ever, and its sender had forgotten it.
#[test]
fn who_was_taken_for_dead_asks_for_its_channels_and_is_told_of_their_end() {
    let mut ledger = Ledger::new();
    let open = ledger.opened_by(B, 70);
    ledger.sent();
    let dead = |ledger: &mut Ledger| {
        ledger.tell(MediumEvent::TakenForDead);
        ledger.sent()
    };
    assert_eq!(dead(&mut ledger), [(B, Verb::Ask)]);
    assert_eq!(dead(&mut ledger), [], "one question at a time");
    ledger.hear(B, Verb::Opened, ChannelId(70));
    ledger.sent();
    assert_eq!((ledger.repeated(), ledger.closed()), (vec![], vec![]), "it goes on");
    dead(&mut ledger);
    let end = Signal {
        code: CloseCause::PeerGone.code(),
        final_unit: 9,
        ..Signal::new(Verb::Close, ChannelId(70), 1)
    };
    ledger.signal(B, &end);
    let told: Vec<_> = core::iter::from_fn(|| ledger.channels.next_event()).collect();
    let lost = |event: &ChannelEvent| match event {
        ChannelEvent::Closed { channel, cause: CloseCause::WasSilent, tally, .. } if *channel == open => {
            tally.lost
        }
        _ => 0,
    };
    assert_eq!(told.iter().map(lost).max(), Some(9), "{told:?}");
    // A sender that never answers.
    let open = ledger.opened_by(C, 71);
    dead(&mut ledger);
    for _ in 0..9 {
        assert_eq!(ledger.repeated(), [(C, Verb::Ask)]);
    }
    assert_eq!(ledger.repeated(), []);
    assert_eq!(ledger.closed(), [(open, CloseCause::WasSilent)]);
}

#[test]
fn a_sender_repeats_an_end_that_its_receiver_could_not_hear() {
    let mut ledger = Ledger::new();
    let sent = ledger.open(B);
    ledger.channels.outgoing[0].granted.contract.bound_ns = Span::from_millis(40).as_nanos();
    ledger.channels.outgoing[0].state = Sending::Open { telling: None };
    ledger.sent();
    ledger.hear(B, Verb::Ask, sent);
    assert_eq!(ledger.sent(), [(B, Verb::Opened)], "it goes on");
    ledger.channels.state(sent, Stated { units: 30, left_out: 4, unsent: 0 });
    ledger.gone(B);
    ledger.tell(MediumEvent::Released { session: session_of(sent) });
    assert!(ledger.channels.outgoing.is_empty(), "its program hears of it at once");
    ledger.sent();
    for _ in 0..2 {
        ledger.hear(B, Verb::Ask, sent);
        let [(to, end)] = ledger.signals().try_into().expect("one answer");
        // A repeated signal goes to the station's group address.
        assert!(to == B || to.is_group());
        assert_eq!((end.verb, end.code), (Verb::Close, CloseCause::PeerGone.code()));
        assert_eq!((end.final_unit, end.left_out), (30, 4));
    }
    ledger.hear(C, Verb::Ask, sent);
    assert_eq!(ledger.sent(), [], "the channel of another station");
    // It has counted the end now: the parent learns of it, once.
    let counted = |ledger: &mut Ledger, code| {
        let tally = Tally { lost: 30, ..Tally::default() };
        let told = Signal { code, tally, ..Signal::new(Verb::CloseAck, sent, 1) };
        ledger.signal(B, &told);
        let events = core::iter::from_fn(|| ledger.channels.next_event());
        let told = events.filter_map(|event| match event {
            ChannelEvent::Afterwards { channel, stated, tally, sending: true } => {
                Some((channel, stated, tally))
            }
            _ => None,
        });
        told.map(|(channel, stated, tally)| (channel, stated.units, tally.units, tally.lost))
            .collect::<Vec<_>>()
    };
    assert_eq!(counted(&mut ledger, CloseCause::PeerGone.code()), [], "counted without the statement");
    assert_eq!(counted(&mut ledger, CloseCause::Finished.code()), [(sent, 30, 0, 30)]);
    assert_eq!(counted(&mut ledger, CloseCause::Finished.code()), []);
}

/// A sender that went on without its node counted units that stood in no node.
#[test]
fn the_units_of_a_channel_are_those_before_its_end_was_stated() {
    let mut ledger = Ledger::new();
    let out = ledger.open(C);
    let stated = |units, left_out| Stated { units, left_out, unsent: 0 };
    ledger.channels.state(out, stated(5, 5));
    ledger.sent();
    ledger.channels.begin_closing(ledger.now, out, CloseCause::ReservationLost, false);
    ledger.channels.state(out, stated(9, 8));
    let late = UnitRef { number: 9, octets: 9, schedule_ns: 0, left_out: 8 };
    ledger.channels.note_offer(out, &late);
    for _ in 0..3 {
        ledger.tick();
        let closes = ledger.signals().into_iter().filter(|(_, sent)| sent.verb == Verb::Close);
        assert!(closes.map(|(_, close)| (close.final_unit, close.left_out)).all(|end| end == (5, 5)));
        ledger.now += SIGNAL_INTERVAL;
    }
}

/// Reports had the late units only: a monitor at a third station showed 0 lost ones.
#[test]
fn a_report_of_either_end_states_all_units_that_were_not_there_as_promised() {
    let mut ledger = Ledger::new();
    ledger.open(B);
    ledger.opened_by(B, 70);
    let tally = Tally { units: 5, late: 1, lost: 14, incomplete: 2, latest_by_ns: 800_000, unread: 3 };
    ledger.channels.outgoing[0].meter.tally = tally;
    ledger.channels.incoming[0].meter.tally = Tally { units: 8, lost: 11, unread: 0, ..tally };
    let unread = Unread { lost: 3, in_part: 0, incomplete: 0, late: 0 };
    ledger.channels.incoming[0].meter.unread = unread;
    for at in 0..2 {
        let said = ledger.channels.report_of(at, Segment::of(&ledger.port)).expect("two ends");
        assert_eq!(Tally { units: 5, ..said.tally() }, tally, "end {at}");
    }
}

#[test]
fn what_was_asked_of_a_station_without_a_number_waits_until_it_has_one_again() {
    let mut ledger = Ledger::new();
    ledger.open(B);
    let open = ledger.opened_by(C, 70);
    ledger.channels.listen(5.into());
    ledger.hear(C, Verb::Connect, ChannelId(71));
    ledger.number(0, B);
    ledger.number(0, C);
    assert_eq!(ledger.closed(), [(open, CloseCause::PeerGone)]);
    assert_eq!(ledger.peers(), [0, 0], "one is asked for, and one has not opened yet");
    assert_eq!(ledger.repeated(), [], "it is nobody now");
    ledger.number(4, B);
    assert_eq!((ledger.repeated(), ledger.peers()), (vec![(B, Verb::Connect)], vec![4, 0]));
    let request = ledger.channels.outgoing[0].request.clone();
    let request = OpenRequest { to: Destination::Node(node_of(C)), ..request };
    let refused = ledger.channels.open(ledger.now, &request, Some(C), 0, Segment::of(&ledger.port));
    assert_eq!(refused, Err(RequestError::PeerNotJoined(C)));
}

#[test]
fn two_stations_that_swap_their_numbers_keep_their_channels() {
    let mut ledger = Ledger::new();
    let (to_b, to_c) = (ledger.open(B), ledger.open(C));
    let (from_b, from_c) = (ledger.opened_by(B, 70), ledger.opened_by(C, 70));
    ledger.number(3, B);
    assert_eq!(ledger.repeated(), [(B, Verb::Connect), (C, Verb::Connect)], "while they share one, too");
    ledger.number(2, C);
    assert_eq!((ledger.peers(), ledger.closed()), (vec![3, 2, 3, 2], vec![]));
    assert_eq!(ledger.repeated(), [(B, Verb::Connect), (C, Verb::Connect)]);
    ledger.hear(C, Verb::Refuse, to_b);
    assert_eq!(ledger.closed(), [], "it was not asked");
    let unit = unit(0);
    let located = |ledger: &mut Ledger, from| {
        ledger.channels.locate(from, &unit, None, (9, 1_400), true).map(|(channel, _)| channel)
    };
    assert_eq!([located(&mut ledger, B), located(&mut ledger, C)], [Some(from_b), Some(from_c)]);
    ledger.gone(B);
    ledger.tick();
    assert_eq!(ledger.closed(), [(from_b, CloseCause::PeerGone), (to_b, CloseCause::PeerGone)]);
    let left: Vec<ChannelId> = ledger.channels.outgoing.iter().map(|channel| channel.id).collect();
    assert_eq!((left, ledger.channels.incoming[0].id), (vec![to_c], from_c));
}

/// Names were looked up as numbers, and the number as a station again: the one with the smaller address was
/// asked, whoever was meant.
#[test]
fn of_two_stations_that_share_a_number_the_one_that_was_meant_is_asked() {
    let mut ledger = Ledger::new();
    ledger.number(2, C);
    ledger.open(C);
    assert_eq!(ledger.sent(), [(C, Verb::Connect)]);
    ledger.hear(B, Verb::Accept, ledger.channels.outgoing[0].id);
    assert!(matches!(ledger.channels.outgoing[0].state, Sending::Connecting(_)));
}

/// A unit of one frame.
fn unit(number: u16) -> UnitHeader {
    UnitHeader { label: 1, number, fragment: 0, last: true, left_out: 0, unit_octets: 9, schedule_ns: 0 }
}

/// They were known to the receiving program alone, and the sender's program ended with 0.
#[test]
fn units_that_the_receiving_program_did_not_read_reach_the_sender() {
    let mut ledger = Ledger::new();
    let (id, out) = (ledger.opened_by(B, 70), ledger.open(C));
    for number in 0..10 {
        ledger.channels.locate(B, &unit(number), None, (9, 1_400), true).expect("in order");
    }
    let reports = |ledger: &mut Ledger| {
        ledger.sent();
        ledger.now += TALLY_EVERY;
        ledger.tick();
        ledger.signals().into_iter().filter(|(_, sent)| sent.verb == Verb::Tally).map(|(_, sent)| sent.tally)
    };
    assert_eq!(reports(&mut ledger).count(), 0, "all is well");
    ledger.channels.unread(id, Unread { lost: 4, in_part: 0, incomplete: 1, late: 0 });
    let told: Vec<_> = reports(&mut ledger).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].units, told[0].lost, told[0].incomplete, told[0].unread), (5, 4, 1, 5));
    // Its program dies, and two more units are in the memory that nobody will read.
    ledger.channels.unread(id, Unread { lost: 6, in_part: 0, incomplete: 1, late: 0 });
    ledger.abort(id);
    let told = ledger.signals();
    let verbs: Vec<Verb> = told.iter().map(|(_, sent)| sent.verb).collect();
    assert_eq!(verbs, [Verb::Tally, Verb::Refuse], "the counts come before the end");
    assert_eq!((told[0].1.tally.units, told[0].1.tally.unread), (3, 7));
    // At the sender.
    ledger.hands_over(10);
    let report = Signal { channel: out, ..told[0].1 };
    ledger.signal(C, &report);
    let told = std::iter::from_fn(|| ledger.channels.next_event()).find_map(|event| match event {
        ChannelEvent::Told { channel, tally } => Some((channel, tally.lost, tally.unread)),
        _ => None,
    });
    assert_eq!(told, Some((out, 6, 7)));
    assert_eq!(
        ledger.channels.report_of(0, Segment::of(&ledger.port)).map(|said| said.unread),
        Some(7),
        "for monitors"
    );
}

/// The receiver's last word was sent once: when it was lost, the sender's program ended with 0.
#[test]
fn the_end_is_acknowledged_with_what_came_each_time() {
    let mut ledger = Ledger::new();
    let id = ledger.opened_by(B, 70);
    let unit = UnitHeader {
        label: 1,
        number: 2,
        fragment: 0,
        last: true,
        left_out: 0,
        unit_octets: 9,
        schedule_ns: 0,
    };
    ledger.channels.locate(B, &unit, None, (9, 1_400), true).expect("its third unit");
    let close = Signal { final_unit: 3, ..Signal::new(Verb::Close, ChannelId(70), 1) };
    let mut told = Vec::new();
    for _ in 0..3 {
        ledger.signal(B, &close);
        told.extend(ledger.signals().into_iter().filter(|(_, signal)| signal.verb == Verb::CloseAck));
    }
    assert_eq!(ledger.closed(), [(id, CloseCause::Finished)]);
    let lost: Vec<u64> = told.iter().map(|(_, signal)| signal.tally.lost).collect();
    assert_eq!(lost, [2, 2, 2]);
    // And at the sender.
    let out = ledger.open(C);
    ledger.hands_over(3);
    ledger.hear(C, Verb::Accept, out);
    ledger.abort(out);
    ledger.channels.outgoing[0].ending.silent = false;
    let released = MediumEvent::Released { session: session_of(out) };
    ledger.tell(released);
    let tally = told[0].1.tally;
    let noted = Signal { tally, ..Signal::new(Verb::CloseAck, out, ledger.channels.outgoing[0].label) };
    ledger.signal(C, &noted);
    let events: Vec<ChannelEvent> = core::iter::from_fn(|| ledger.channels.next_event()).collect();
    let ended =
        |event: &ChannelEvent| matches!(event, ChannelEvent::Closed { tally: came, .. } if *came == tally);
    assert!(events.iter().any(ended), "{events:?}");
}

/// The receiver of a killed program counted as lost what its sender had still in hand, and could not tell
/// that from what the wire had lost.
#[test]
fn units_that_wait_when_their_program_dies_are_stated_once_their_bound_is_over() {
    for (after_ms, stated, unsent) in [(10, 3, 0), (11, 4, 1)] {
        let mut ledger = Ledger::new();
        let out = ledger.open(C);
        ledger.channels.outgoing[0].granted.contract.bound_ns = Span::from_millis(10).as_nanos();
        let schedule_ns = ledger.now.as_nanos();
        let unit = |number, left_out| UnitRef { number, octets: 9, schedule_ns, left_out };
        ledger.channels.note_offer(out, &unit(0, 0));
        ledger.channels.count_unit(out, 9, 1_400);
        // One unit was left out; this one waits, and another one was left out behind it.
        ledger.channels.note_offer(out, &unit(2, 1));
        ledger.channels.state(out, Stated { units: 4, left_out: 2, unsent: 0 });
        ledger.sent();
        ledger.now += Span::from_millis(after_ms);
        ledger.abort(out);
        let close = ledger.signals().into_iter().find(|(_, sent)| sent.verb == Verb::Close);
        let (_, close) = close.expect("a close");
        assert_eq!(
            (close.final_unit, close.left_out, close.unsent),
            (stated, 2, unsent),
            "after {after_ms} ms"
        );
    }
}

/// All units that had left counted as come, although their receiver's node had died.
#[test]
fn units_count_as_come_where_their_receiver_s_node_has_told_of_the_end() {
    let units = |how: fn(&mut Ledger, ChannelId)| {
        let mut ledger = Ledger::new();
        let out = ledger.open(C);
        for number in 0..9 {
            let unit = UnitRef { number, octets: 9, schedule_ns: 0, left_out: 0 };
            ledger.channels.note_offer(out, &unit);
            ledger.channels.count_unit(out, 9, 1_400);
        }
        let tally = rota_contract::Tally { units: 5, lost: 1, ..rota_contract::Tally::default() };
        let report = Signal { tally, ..Signal::new(Verb::Tally, out, 1) };
        ledger.signal(C, &report);
        ledger.channels.outgoing[0].state = Sending::Open { telling: None };
        how(&mut ledger, out);
        let released = MediumEvent::Released { session: session_of(out) };
        ledger.tell(released);
        while !ledger.channels.outgoing.is_empty() {
            ledger.now += SIGNAL_INTERVAL;
            ledger.tick();
        }
        let events = core::iter::from_fn(|| ledger.channels.next_event());
        let closed = events.filter_map(|event| match event {
            ChannelEvent::Closed { tally, .. } => Some((tally.units, tally.lost)),
            _ => None,
        });
        closed.last().expect("it has ended")
    };
    let refuse = |ledger: &mut Ledger, out: ChannelId| {
        let died = Signal { code: CloseCause::ReceiverDied.code(), ..Signal::new(Verb::Refuse, out, 1) };
        ledger.signal(C, &died);
    };
    assert_eq!(units(refuse), (8, 1), "its program died, and its node said so");
    assert_eq!(units(|ledger, _| ledger.gone(C)), (5, 1), "its node died: what it had reported has come");
    let unanswered = |ledger: &mut Ledger, out| {
        ledger.channels.begin_closing(ledger.now, out, CloseCause::Finished, false);
    };
    assert_eq!(units(unanswered), (5, 1), "the end was never confirmed");
}

#[test]
fn a_granted_probe_whose_receiver_vanishes_is_closed_and_not_probed() {
    let mut ledger = Ledger::new();
    let id = ledger.open(C);
    ledger.channels.probe(id);
    let channel = &mut ledger.channels.outgoing[0];
    (channel.state, channel.granted.contract.bound_ns) = (Sending::Releasing, 1_000_000);
    ledger.channels.begin_closing(ledger.now, id, CloseCause::PeerGone, false);
    ledger.gone(C);
    ledger.tick();
    assert_eq!(ledger.closed(), [(id, CloseCause::PeerGone)]);
}

/// The acknowledgement of a node that knew nothing of the channel confirmed that all units had come.
#[test]
fn a_receiver_that_has_not_counted_the_end_confirms_no_units() {
    let close = Signal { final_unit: 9, ..Signal::new(Verb::Close, ChannelId(70), 1) };
    // Units that its sender takes as come after such a receiver's answer.
    let come = |receiver: &mut Ledger, verb: Verb| {
        receiver.signals();
        receiver.signal(B, &Signal { verb, ..close });
        let answer = receiver.signals()[0].1;
        let mut sender = Ledger::new();
        let out = sender.open(C);
        for number in 0..9 {
            let unit = UnitRef { number, octets: 9, schedule_ns: 0, left_out: 0 };
            sender.channels.note_offer(out, &unit);
            sender.channels.count_unit(out, 9, 1_400);
        }
        sender.channels.outgoing[0].state = Sending::Open { telling: None };
        let answer = Signal { channel: out, ..answer };
        if verb == Verb::Close {
            sender.channels.begin_closing(sender.now, out, CloseCause::Finished, false);
        }
        sender.signal(C, &answer);
        let released = MediumEvent::Released { session: session_of(out) };
        sender.tell(released);
        while !sender.channels.outgoing.is_empty() {
            sender.now += SIGNAL_INTERVAL;
            sender.tick();
        }
        let mut events = core::iter::from_fn(|| sender.channels.next_event());
        events.find_map(|event| match event {
            ChannelEvent::Closed { tally, .. } => Some((tally.units, tally.lost)),
            _ => None,
        })
    };
    let knows = |units: core::ops::Range<u16>| {
        let mut receiver = Ledger::new();
        receiver.opened_by(B, 70);
        for number in units {
            receiver.channels.locate(B, &unit(number), None, (9, 1_400), true).expect("in order");
        }
        receiver
    };
    assert_eq!(come(&mut Ledger::new(), Verb::Close), Some((0, 0)), "its node has started anew");
    assert_eq!(come(&mut Ledger::new(), Verb::Opened), Some((0, 0)), "which a changed contract shows, too");
    let (mut whole, mut lossy) = (knows(0..9), knows(2..9));
    for _ in 0..2 {
        assert_eq!(come(&mut whole, Verb::Close), Some((9, 0)), "each time");
        assert_eq!(come(&mut lossy, Verb::Close), Some((7, 2)), "each time");
    }
    let mut doubtful = knows(0..5);
    doubtful.tell(MediumEvent::TakenForDead);
    while doubtful.closed().is_empty() {
        doubtful.repeated();
    }
    assert_eq!(come(&mut doubtful, Verb::Close), Some((5, 4)), "it gave up, and counts afterwards");
}

/// A report to the sender came only with another broken unit.
#[test]
fn a_unit_in_part_that_is_lost_in_the_end_is_told_as_lost() {
    let mut ledger = Ledger::new();
    let (id, out) = (ledger.opened_by(B, 70), ledger.open(C));
    for number in 0..10 {
        ledger.channels.locate(B, &unit(number), None, (9, 1_400), true).expect("in order");
    }
    let told = |ledger: &mut Ledger| {
        ledger.signals();
        ledger.now += TALLY_EVERY;
        ledger.tick();
        let sent = ledger.signals();
        sent.into_iter().map(|(_, sent)| sent).find(|sent| sent.verb == Verb::Tally)
    };
    ledger.channels.unread(id, Unread { lost: 0, in_part: 0, incomplete: 1, late: 0 });
    let in_part = told(&mut ledger).expect("a broken unit");
    assert_eq!(told(&mut ledger), None, "once");
    ledger.channels.unread(id, Unread { lost: 1, in_part: 0, incomplete: 0, late: 0 });
    let lost = told(&mut ledger).expect("it is lost now");
    assert_eq!(told(&mut ledger), None, "once");
    // At the sender, also where the reports overtake each other.
    ledger.hands_over(10);
    for said in [in_part, lost, in_part] {
        let said = Signal { channel: out, ..said };
        ledger.signal(C, &said);
    }
    let tally = ledger.channels.outgoing[0].tally();
    assert_eq!((tally.lost, tally.incomplete), (1, 0));
    // A late unit that is read in part by then is late no more, and an older report does not undo that.
    let of = |late, incomplete| Tally { units: 9 - incomplete, late, incomplete, ..lost.tally };
    for tally in [of(1, 0), of(0, 1), of(1, 0)] {
        let said = Signal { channel: out, tally, ..lost };
        ledger.signal(C, &said);
    }
    let tally = ledger.channels.outgoing[0].tally();
    assert_eq!((tally.late, tally.incomplete), (0, 1));
}

/// Its program waited for two seconds for what a dead node does not state.
#[test]
fn an_end_by_a_will_awaits_no_statement_and_one_by_silence_does() {
    for died in [false, true] {
        let mut ledger = Ledger::new();
        let open = ledger.opened_by(B, 70);
        ledger.tell(MediumEvent::MemberGone { mac: B, stopped: false, died });
        let told = core::iter::from_fn(|| ledger.channels.next_event()).find_map(|event| match event {
            ChannelEvent::Closed { channel, awaits, .. } if channel == open => Some(awaits),
            _ => None,
        });
        assert_eq!(told, Some(!died));
    }
}
