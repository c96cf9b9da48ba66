//! The memory of a channel that comes, between two stations of a segment in this process.

use super::*;
use crate::commands::{ControlEnd, SinkMemory};
use rota_contract::AskedTerms;
use rota_driver::in_process::{InProcessDevice, Segment, SegmentSpec};
use rota_proto::ChannelEvent;
use rota_shm::{NodeSink, SinkShape};

const SERVICE: u16 = 7;
pub(super) const PATIENCE: Span = Span::from_millis(15_000);
const SHAPE: SinkShape = SinkShape { slots: 8, fragment_octets: 100, unit_octets_max: 100 };

/// A station, and the control thread's end, which the test plays.
struct Station {
    data: Data<InProcessDevice, NoGate>,
    control: ControlEnd,
    heard: Vec<ChannelEvent>,
    log: TraceReader,
    /// The channel that it asked for.
    asked: Option<ChannelId>,
}

impl Station {
    fn new(name: &str, segment: &Segment, last: u8) -> Self {
        let rate = BitRate::from_mbit(100);
        let report = Span::from_millis(100);
        let mut settings = Settings::ethernet(rate, Octets::new(150_000));
        settings.report = report;
        let spec = spec(name, settings);
        let device = segment.port([2, 0, 0, 0, 0, last], 1_500).expect("a timer");
        let (control, end) = Wiring::pair().expect("two ends");
        let (_, published) = counters::file(&["none"]).expect("memory");
        let file = TraceFile::create(64, 0, 0x88b5, &["none"]).expect("memory");
        let log = TraceReader::open(file.descriptor().try_clone_to_owned().expect("a copy")).expect("a log");
        let files = Files { published, log: Some(file), wills: Wills::default() };
        let Ok(data) = Data::new(&spec, device, NoGate, end, files) else { panic!("a station") };
        Self { data, control, heard: Vec::new(), log, asked: None }
    }

    fn turn(&mut self) {
        assert!(self.data.receive(0).is_ok() && self.data.commands(now()).is_ok());
        look_at_card(&mut self.data);
        if self.data.node.deadline() <= now() {
            self.data.node.handle_deadline(now());
        }
        assert!(self.data.drain().is_ok());
        while let Some(note) = self.control.heard() {
            match note {
                Note::Channel { event, .. } => self.heard.push(event),
                Note::Asked { result, .. } => self.asked = result.ok().map(|(channel, _)| channel),
                _ => {}
            }
        }
    }

    /// A channel of units that fit [`SHAPE`], one in each cycle.
    fn opening(&self) -> Opening {
        let period = self.data.node.medium().settings().trt;
        let traffic = TrafficSpec::fixed(SHAPE.unit_octets_max, period, true);
        Opening { traffic, terms: AskedTerms::default(), before: 0, probe: false, uid: 0, answers: None }
    }

    /// The newest event that says that, and no event is left.
    fn took<T>(&mut self, of: impl Fn(&ChannelEvent) -> Option<T>) -> Option<T> {
        let found = self.heard.iter().rev().find_map(of)?;
        self.heard.clear();
        Some(found)
    }
}

struct Lan {
    sender: Station,
    receiver: Station,
}

impl Lan {
    fn new() -> Self {
        let spec = SegmentSpec { rate: None, port_queue: Octets::new(150_000) };
        let segment = Segment::new(spec);
        let (sender, receiver) = (Station::new("a", &segment, 1), Station::new("b", &segment, 2));
        let mut lan = Self { sender, receiver };
        // Before that it would ask for nothing.
        let knows = |station: &Station| {
            let medium = station.data.node.medium();
            medium.members().len() == 1 && medium.mode() == rota_proto::ModeName::Plain
        };
        lan.until("they know each other", |lan| (knows(&lan.sender) && knows(&lan.receiver)).then_some(()));
        lan
    }

    fn until<T>(&mut self, what: &str, wanted: impl Fn(&mut Self) -> Option<T>) -> T {
        let give_up = now() + PATIENCE;
        loop {
            self.sender.turn();
            self.receiver.turn();
            if let Some(found) = wanted(self) {
                return found;
            }
            assert!(now() < give_up, "{what}: never");
        }
    }

    /// A channel that has come to the receiver, which has no memory for it yet: its name at both ends.
    fn comes(&mut self) -> (ChannelId, ChannelId) {
        self.comes_as(self.sender.opening())
    }

    fn comes_as(&mut self, request: Opening) -> (ChannelId, ChannelId) {
        self.receiver.control.say(Command::Listen { ask: 2, service: SERVICE, from: None, invites: None });
        self.receiver.turn();
        self.sender.control.say(Command::Open { ask: 1, to: "b".into(), service: SERVICE, request });
        let incoming = |event: &ChannelEvent| match event {
            ChannelEvent::Incoming { channel, .. } => Some(*channel),
            _ => None,
        };
        let here = self.until("a channel comes", |lan| lan.receiver.took(incoming));
        (self.sender.asked.expect("the station is known"), here)
    }

    /// The receiver's control thread has made its memory.
    fn attach(&mut self, channel: ChannelId) {
        let (ring, board) = NodeSink::create(SHAPE).expect("memory").into_parts();
        let memory = SinkMemory { ring, sleeper: sleeper(&board), board, is_apart: false, _charge: None };
        self.receiver.control.say(Command::AttachSink { channel, buffers: 4, memory });
        self.receiver.turn();
    }
}

fn sleeper(board: &rota_shm::Board) -> std::sync::Arc<crate::waker::Sleeper> {
    Waker::new().expect("an eventfd").sleeper(board.clone(), None)
}

fn closed(event: &ChannelEvent) -> Option<ChannelId> {
    if let ChannelEvent::Closed { channel, .. } = event { Some(*channel) } else { None }
}

fn opened(event: &ChannelEvent) -> Option<ChannelId> {
    if let ChannelEvent::Opened { channel, .. } = event { Some(*channel) } else { None }
}

#[test]
fn a_channel_is_accepted_when_its_receiver_has_memory_which_goes_with_the_channel() {
    let mut lan = Lan::new();
    let (there, here) = lan.comes();
    let begin = now();
    lan.until("time passes", |_| (now().since(begin) > Span::from_millis(150)).then_some(()));
    assert!(lan.sender.took(opened).is_none(), "its first units would have come to nobody");
    lan.attach(here);
    let held: Vec<ChannelId> = lan.receiver.data.rings.sinks.iter().map(|sink| sink.channel).collect();
    assert_eq!(held, [here]);
    assert_eq!(lan.until("it opens", |lan| lan.sender.took(opened)), there);
    lan.sender.control.say(Command::Abort { channel: there });
    assert_eq!(lan.until("it ends", |lan| lan.receiver.took(closed)), here);
    assert!(lan.receiver.data.rings.sinks.is_empty(), "nobody would take it away later");
}

/// The second unit of a slot was offered amid the drain in which the first one left.
#[test]
fn as_many_units_are_offered_ahead_as_a_slot_carries() {
    let mut lan = Lan::new();
    let request = lan.sender.opening();
    let traffic = TrafficSpec { period: request.traffic.period.div_down(2), ..request.traffic };
    let (there, here) = lan.comes_as(Opening { traffic, ..request });
    lan.attach(here);
    lan.until("it opens", |lan| lan.sender.took(opened));
    let (mut program, memory) = source(SHORT);
    for _ in 0..3 {
        program.ring.try_write(b"unit", now()).expect("room");
    }
    lan.sender.data.attach(now(), there, memory);
    assert_eq!(lan.sender.data.rings.sources[0].offered.len(), 2);
    let sent = |lan: &Lan| lan.sender.data.node.port().counters().units_sent;
    let slot = lan.until("two leave", |lan| (sent(lan) >= 2).then(|| program.board.slot()));
    assert_eq!((sent(&lan), slot.map(|slot| slot.number)), (2, Some(1)), "in one slot");
    assert_eq!(lan.sender.data.rings.sources[0].offered.len(), 1, "the third one is offered behind them");
    lan.until("all leave", |_| (program.ring.waiting() == 0).then_some(()));
    assert_eq!(program.board.slot().map(|slot| slot.number), Some(2));
    lan.sender.control.say(Command::Close { channel: there });
    lan.sender.turn();
    program.ring.try_write(b"late", now()).expect("room");
    assert!(!lan.sender.data.offer(now(), 0), "its channel ends");
}

/// Nothing of these units ever leaves. The end that a program asks for tells of them, as its death does.
#[test]
fn the_units_of_a_program_that_dies_or_closes_are_stated_to_the_receiver() {
    let ends = [|channel| Command::Abort { channel }, |channel| Command::Close { channel }];
    for end in ends {
        let mut lan = Lan::new();
        let (there, here) = lan.comes();
        lan.attach(here);
        lan.until("it opens", |lan| lan.sender.took(opened));
        let (mut program, memory) = source(SHORT);
        lan.sender.control.say(Command::AttachSource { channel: there, memory });
        program.ring.leave_out(3);
        lan.sender.control.say(end(there));
        let stated = |event: &ChannelEvent| match event {
            ChannelEvent::Closed { stated, .. } => *stated,
            _ => None,
        };
        let told = lan.until("it ends", |lan| lan.receiver.took(stated));
        assert_eq!(told, rota_proto::Stated { units: 3, left_out: 3, unsent: 0 });
    }
}

#[test]
fn a_program_that_reads_nothing_has_its_unread_units_counted_as_they_come() {
    let mut lan = Lan::new();
    let (there, here) = lan.comes();
    lan.attach(here);
    lan.until("it opens", |lan| lan.sender.took(opened));
    let (program, memory) = source(SHORT);
    lan.sender.control.say(Command::AttachSource { channel: there, memory });
    let program = std::cell::RefCell::new(program);
    lan.until("units are not read", |lan| {
        let _ = program.borrow_mut().ring.try_write(b"one", now());
        (lan.receiver.data.rings.sinks[0].unread.units() > 0).then_some(())
    });
}

/// A turn in which nothing came wakes nobody.
#[test]
fn a_receiver_is_woken_once_for_what_came() {
    let mut lan = Lan::new();
    let (_, here) = lan.comes();
    let memory = NodeSink::create(SHAPE).expect("memory");
    let files = memory.descriptors().iter().map(|fd| fd.try_clone_to_owned().expect("a copy")).collect();
    let program = rota_shm::open_sink(files).expect("the client's side");
    let (ring, board) = memory.into_parts();
    let memory = SinkMemory { ring, sleeper: sleeper(&board), board, is_apart: false, _charge: None };
    lan.receiver.control.say(Command::AttachSink { channel: here, buffers: 4, memory });
    lan.receiver.turn();
    let Data { rings, node, .. } = &mut lan.receiver.data;
    let delivery = rota_proto::Delivery {
        channel: here,
        offset: 0,
        octets: 3,
        descriptor: rota_proto::UnitDescriptor {
            number: 0,
            unit_octets: 3,
            fragment: 0,
            fragment_offset: 0,
            last: true,
            schedule_ns: 0,
            arrived: None,
            left_out: 0,
        },
    };
    assert_eq!(rings.deliver(&delivery, b"one", now(), node), Some(0));
    (0..3).for_each(|_| rings.wake_receivers(node));
    assert_eq!(program.board.counter(rota_shm::ChannelCounter::Wakes), 1);
}

#[test]
fn memory_that_comes_when_its_channel_has_ended_is_not_kept() {
    let mut lan = Lan::new();
    let (there, here) = lan.comes();
    lan.sender.control.say(Command::Abort { channel: there });
    assert_eq!(lan.until("it ends", |lan| lan.receiver.took(closed)), here);
    lan.attach(here);
    assert!(lan.receiver.data.rings.sinks.is_empty(), "nobody would take it away later");
}

/// A station that is meant by a number is meant still when another station has that number; and what the
/// control thread keeps of a channel's other end is no number.
#[test]
fn a_station_that_was_named_by_its_number_is_kept_by_its_node() {
    let mut lan = Lan::new();
    let numbered =
        |lan: &mut Lan| Some(lan.sender.data.node.medium().members()[0].station).filter(|n| *n != 0);
    let number = lan.until("it has a number", numbered);
    let mac = lan.receiver.data.node.medium().mac();
    let request = lan.sender.opening();
    let opened = open(&mut lan.sender.data.node, now(), &number.to_string(), SERVICE, &request);
    let Ok((channel, peer)) = opened else { panic!("the station is known") };
    assert_eq!((peer.hop, peer.name.as_str()), (mac, "b"));
    let node_id = lan.receiver.data.node.medium().node_id();
    assert_eq!((peer.node_id, lan.sender.data.node.peer(channel)), (node_id, Some(node_id)));
    assert_eq!(lan.sender.data.node.hop(channel), Some(mac));
    assert_eq!(lan.sender.data.snapshot().number_of(mac), number);
    let mut hears = |from: &str| listen(&mut lan.sender.data.node, (now(), 1), SERVICE, (Some(from), None));
    assert!(hears(&number.to_string()).is_ok() && hears("b").is_ok());
    assert!(matches!(hears("99"), Err(rota_proto::NotFound::Unknown { known }) if known == ["b"]));
}

/// "no station 'b,nobody'": the one that is not there was not named.
#[test]
fn of_several_receivers_the_one_that_is_not_known_is_named() {
    let mut lan = Lan::new();
    let is_known = |lan: &mut Lan| lan.sender.data.node.find("b").is_ok().then_some(());
    lan.until("it is known", is_known);
    let request = lan.sender.opening();
    let opened = open(&mut lan.sender.data.node, now(), "b, nobody", SERVICE, &request);
    let Err(why) = opened else { panic!("nobody is called so") };
    assert_eq!(why.to_string(), "no node 'nobody' is known here; there are: b");
}

/// A report has the time at which its frame came, and programs may have been told of others since then.
#[test]
fn a_report_that_waited_before_it_was_taken_is_told_to_the_program() {
    let mut lan = Lan::new();
    let (there, here) = lan.comes();
    lan.attach(here);
    lan.until("it opens", |lan| lan.sender.took(opened));
    let (mut program, memory) = source(SHORT);
    program.ring.try_write(b"one", now()).expect("room");
    lan.sender.control.say(Command::AttachSource { channel: there, memory });
    let reported = |lan: &mut Lan| {
        let heard = lan.sender.data.node.reports(PortId(0)).expect("it is there").channels().iter();
        heard.filter(|heard| heard.said.units > 0 && !heard.said.sending).map(|heard| heard.at).next()
    };
    let at = lan.until("its receiver reports it", reported);
    // On a busy machine the unit may have been late, which its receiver tells by itself.
    lan.sender.data.rings.sources[0].memory.board.set_tally(&rota_contract::Tally::default());
    let told = at + Span::from_millis(150);
    lan.sender.data.rings.reported = told;
    let Data { rings, node, .. } = &mut lan.sender.data;
    rings.tell_reports(told, node);
    assert_eq!(program.board.tally().units, 1);
}

#[test]
fn the_log_names_the_first_of_the_units_that_were_not_read() {
    let mut lan = Lan::new();
    let (_, here) = lan.comes();
    lan.attach(here);
    let Station { data, log, .. } = &mut lan.receiver;
    for number in 0..u64::from(SHAPE.slots) + 2 {
        let unit = rota_shm::RingFragment { number, last: true, unit_octets: 3, ..Default::default() };
        assert!(data.rings.sinks[0].memory.ring.push(&unit, b"one"));
        data.rings.note_unread(0, &mut data.node, &mut data.told.tracer);
    }
    data.abort(now(), here);
    let mut into = [0; TRACE_SNAP_OCTETS];
    let told = std::iter::from_fn(|| {
        let (_, record) = log.next(&mut into)?.ok()?;
        Some((record.verdict, record.number, record.extra[0]))
    });
    let told: Vec<_> = told.filter(|(verdict, ..)| *verdict == TraceVerdict::Unread).collect();
    let unread = |first, units| (TraceVerdict::Unread, first, units);
    assert_eq!(told, [unread(0, 1), unread(1, 1), unread(2, 8)]);
}

/// It counted as late, and once more as lost.
#[test]
fn a_late_unit_that_its_program_does_not_read_is_lost_and_not_late() {
    let mut lan = Lan::new();
    let (there, here) = lan.comes();
    lan.attach(here);
    lan.until("it opens", |lan| lan.sender.took(opened));
    let begin = now();
    let (mut program, memory) = source(SHORT);
    lan.sender.control.say(Command::AttachSource { channel: there, memory });
    let came = |lan: &Lan| lan.receiver.data.node.received(here).expect("it is open");
    program.ring.try_write(b"quick", now()).expect("room");
    lan.until("it comes", |lan| (came(lan).units == 1).then_some(()));
    // More than the bound of this channel, which is some 35 ms.
    let late = begin + Span::from_millis(500);
    lan.until("time passes", |_| (now() > late).then_some(()));
    program.ring.try_write(b"late", begin).expect("room");
    lan.until("it comes", |lan| (came(lan).units == 2).then_some(()));
    let tally = came(&lan);
    assert!(tally.late >= 1 && tally.latest_by_ns > 0, "{tally:?}");
    let Data { rings, node, told, .. } = &mut lan.receiver.data;
    rings.sinks[0].memory.ring.abandon();
    rings.note_unread(0, node, &mut told.tracer);
    let missed = rota_contract::Tally { lost: 2, unread: 2, ..rota_contract::Tally::default() };
    assert_eq!(came(&lan), missed, "each unit counts once");
}

/// Each turn took one frame of a circuit's stream, since each is acknowledged.
#[test]
fn a_turn_takes_all_frames_that_wait_though_each_is_answered() {
    let mut lan = Lan::new();
    let (service, quality) = (9, rota_wire::Quality::RELIABLE);
    let request =
        rota_proto::circuits::CircuitRequest { service, window: 4, quality, bucket: None, level: 0 };
    let sent = |lan: &mut Lan| lan.sender.data.ways[0].wire.device.counters().sent;
    let before = sent(&mut lan);
    for _ in 0..3 {
        assert!(lan.sender.data.node.circuit_open(now(), "b", &request).is_ok());
        assert!(lan.sender.data.drain().is_ok());
    }
    let give_up = now() + PATIENCE;
    while sent(&mut lan) < before + 3 {
        assert!(now() < give_up, "they keep to the rate of the link, and leave soon");
        lan.sender.turn();
    }
    let answers = lan.receiver.data.own_frames;
    assert!(lan.receiver.data.receive(0).is_ok());
    assert!(lan.receiver.data.own_frames > answers, "nobody listens, and they are told so");
    let left = lan.receiver.data.ways[0].wire.device.receive(&mut [0; 2_048]);
    assert!(matches!(left, Ok(None)), "{left:?}");
}
