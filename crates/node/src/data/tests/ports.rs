//! A node with a port on each of two segments in this process.

use super::sinks::PATIENCE;
use super::*;
use crate::commands::ControlEnd;
use crate::gate::EgressError;
use rota_contract::AskedTerms;
use rota_driver::in_process::{InProcessDevice, Segment, SegmentSpec};
use rota_proto::ModeName;
use rota_shm::{CounterReader, Monitor, SegmentRow, TraceEvent, TraceRecord};
use std::cell::Cell;
use std::rc::Rc;

const INTERFACES: [&str; 2] = ["left", "right"];
const SERVICE: u16 = 7;

/// The gate of a host that still sends so many frames.
#[derive(Clone, Default)]
struct Offer(Rc<Cell<u64>>, Option<Rc<std::io::PipeReader>>);

impl crate::gate::Egress for Offer {
    fn divert(&mut self) -> Result<(), EgressError> {
        Ok(())
    }

    fn pass(&mut self) -> Result<(), EgressError> {
        Ok(())
    }

    fn recv(&mut self, into: &mut [u8]) -> Option<usize> {
        self.0.set(self.0.get().checked_sub(1)?);
        into[..1_514].fill(0);
        into[12] = 8;
        Some(1_514)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.1.as_ref()?.as_fd())
    }
}

struct Station {
    data: Data<InProcessDevice, Offer>,
    offers: [Offer; 2],
    control: ControlEnd,
    file: CounterReader,
    log: TraceReader,
}

impl Station {
    /// A station whose ports have the addresses `last`, one on each of these segments.
    fn new(name: &str, segments: &[&Segment], last: u8) -> Self {
        let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        let spec = spec(name, settings.clone());
        let (control, end) = Wiring::pair().expect("two ends");
        let interfaces = &INTERFACES[..segments.len()];
        let (table, published) = counters::file(interfaces).expect("memory");
        let file = CounterReader::open(table.descriptor().try_clone_to_owned().expect("a copy"));
        let log = TraceFile::create(4_096, 0, 0x88b5, interfaces).expect("memory");
        let read = TraceReader::open(log.descriptor().try_clone_to_owned().expect("a copy"));
        let offers = <[Offer; 2]>::default();
        let plugs = segments.iter().zip(interfaces).zip(0..).map(|((segment, interface), port)| Plug {
            interface: (*interface).to_owned(),
            settings: settings.clone(),
            device: segment.port([2, 0, 0, 0, port, last], 1_500).expect("a timer"),
            gate: offers[usize::from(port)].clone(),
            wills: Wills::default(),
            meter: crate::meter::Meter::new(),
        });
        let made = Data::with_ports(&spec, plugs.collect(), end, (published, Some(log), None));
        let Ok(data) = made else { panic!("a station") };
        Self { data, offers, control, file: file.expect("a table"), log: read.expect("a log") }
    }

    fn turn(&mut self) {
        let data = &mut self.data;
        data.begin_turn(now());
        for place in 0..data.ways.len() {
            assert!(data.receive(place).is_ok() && data.take_host_frames(place, now()).is_ok());
            let way = &mut data.ways[place];
            way.host.look_at_card((way.port, now()), &mut way.wire.device, &mut data.node);
            assert!(data.drain().is_ok());
        }
        if data.node.deadline() <= now() {
            data.node.handle_deadline(now());
        }
        assert!(data.drain().is_ok());
        accept_incoming(&mut self.control, data);
        data.end_turn(now());
    }

    fn mode(&self, port: u8) -> ModeName {
        self.data.node.port_at(PortId(port)).expect("it is there").medium().mode()
    }

    /// The stations of a port that have numbers and names.
    fn members(&self, port: u8) -> usize {
        let port = self.data.node.port_at(PortId(port));
        let members = port.into_iter().flat_map(|port| port.medium().members());
        members.filter(|member| member.station != 0 && !member.announce.name().is_empty()).count()
    }

    /// The rows of a port, once they are written.
    fn rows(&self, port: usize) -> Monitor {
        let mut rows = Monitor::default();
        assert!(self.file.monitor(port, &mut rows), "port {port}");
        rows
    }

    fn counter(&self, name: &str) -> u64 {
        self.file.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// The records of the log about each event since it was last asked.
    fn events(&mut self) -> Vec<(TraceEvent, Option<u8>)> {
        let mut into = [0; TRACE_SNAP_OCTETS];
        let next = std::iter::from_fn(|| {
            let (_, TraceRecord { event, port, .. }) = self.log.next(&mut into)?.expect("none is lost");
            Some((event, port))
        });
        next.collect()
    }

    fn open(&mut self, to: &str) {
        let period = self.data.node.medium().settings().trt;
        let traffic = TrafficSpec::fixed(100, period, true);
        let (terms, answers) = (AskedTerms::default(), None);
        let request = Opening { before: 0, probe: false, uid: 0, traffic, terms, answers };
        let opened = open(&mut self.data.node, now(), to, SERVICE, &request);
        assert!(opened.is_ok(), "{:?}", opened.err());
    }
}

/// A gateway, and two stations on each side.
struct Lan {
    gateway: Station,
    others: Vec<Station>,
}

impl Lan {
    fn new() -> Self {
        let segment = || Segment::new(SegmentSpec { rate: None, port_queue: Octets::new(150_000) });
        let (left, right) = (segment(), segment());
        let gateway = Station::new("gateway", &[&left, &right], 1);
        let of = |(name, segment, last)| Station::new(name, &[segment], last);
        let others = [("n1", &left, 11), ("n2", &left, 12), ("n3", &right, 13), ("n4", &right, 14)].map(of);
        let mut lan = Self { gateway, others: others.into() };
        lan.until("all have met", |lan| {
            lan.others.iter().all(|station| station.members(0) == 2)
                && lan.gateway.members(0) == 2
                && lan.gateway.members(1) == 2
                && [0, 1].iter().all(|port| lan.gateway.mode(*port) == ModeName::Plain)
        });
        lan
    }

    fn until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        let give_up = now() + PATIENCE;
        while !wanted(self) {
            assert!(now() < give_up, "{what}: never");
            self.gateway.turn();
            self.others.iter_mut().for_each(Station::turn);
        }
    }

    /// Both segments go by the token.
    fn token(&mut self) {
        for at in [0, 2] {
            self.others[at].data.node.listen(Listener::from(SERVICE));
        }
        self.gateway.open("n1");
        self.gateway.open("n3");
        let token = |station: &Station, port| station.mode(port) == ModeName::Token;
        self.until("the token", |lan| {
            token(&lan.gateway, 0) && token(&lan.gateway, 1) && lan.others.iter().all(|of| token(of, 0))
        });
    }
}

/// The monitor, the counters and the log were those of the first port, and ended with it.
#[test]
fn each_port_has_rows_counters_and_events_of_its_own_also_without_the_first() {
    let mut lan = Lan::new();
    lan.token();
    lan.until("rows", |lan| (0..2).all(|port| lan.gateway.rows(port).segment.mode == 3));
    for (port, names) in [(0, ["n1", "n2"]), (1, ["n3", "n4"])] {
        let rows = lan.gateway.rows(port);
        assert_eq!(rows.segment.interface(), INTERFACES[port]);
        let mut others: Vec<String> = rows.stations[1..].iter().map(|row| row.name()).collect();
        others.sort_unstable();
        assert_eq!(others, names);
    }
    let all = ["tokens_accepted", "left.tokens_accepted", "right.tokens_accepted"];
    lan.until("tokens", |lan| all.iter().all(|name| lan.gateway.counter(name) > 0));
    let [all, left, right] = all.map(|name| lan.gateway.counter(name));
    assert!(left > 0 && right > 0 && all == left + right, "{all} {left} {right}");
    let events = lan.gateway.events();
    for port in [Some(0), Some(1)] {
        let is_there = |event| events.contains(&(event, port));
        assert!([TraceEvent::Sent, TraceEvent::Received, TraceEvent::ModeChange].into_iter().all(is_there));
    }

    assert!(lan.gateway.data.survive(Stopped::Device(PortId(0), DeviceError::Gone)).is_ok());
    let before = lan.gateway.counter("right.tokens_accepted");
    lan.until("it goes on", |lan| lan.gateway.counter("right.tokens_accepted") > before + 10);
    assert_eq!(lan.gateway.rows(0).segment.mode, SegmentRow::LOST);
    assert_eq!(lan.gateway.rows(1).stations.len(), 3);
    let [all_now, left_now] =
        ["tokens_accepted", "left.tokens_accepted"].map(|name| lan.gateway.counter(name));
    assert!(left_now >= left && all_now > all, "counts never fall: {all_now} {all} {left_now} {left}");
    assert_eq!(lan.gateway.counter("mode"), 3, "that of the first port that is there");
    let events = lan.gateway.events();
    let lost = events.iter().position(|event| *event == (TraceEvent::PortLost, Some(0))).expect("it is told");
    let after: Vec<_> = events[lost..].iter().filter(|(event, _)| *event == TraceEvent::Received).collect();
    assert!(!after.is_empty() && after.iter().all(|(_, port)| *port == Some(1)), "{after:?}");
    assert!(!events[lost..].iter().any(|(event, _)| *event == TraceEvent::Lost), "nobody is lost there");
}

#[test]
fn a_full_queue_of_one_port_keeps_no_gate_of_another_one_from_being_read() {
    let mut lan = Lan::new();
    lan.token();
    let host = |lan: &Lan, place: usize| lan.gateway.data.ways[place].host_frames();
    lan.gateway.offers[0].0.set(u64::MAX);
    lan.until("a full queue", |lan| host(lan, 0).refused > 0);
    lan.gateway.offers[1].0.set(100);
    lan.until("the frames of the other port", |lan| host(lan, 1).left == 100);
    let (flood, other) = (host(&lan, 0), host(&lan, 1));
    assert!(flood.taken <= 2 * flood.left + flood.waiting + 128, "{flood:?}");
    assert_eq!((other.taken, other.refused), (100, 0), "{other:?}");
}

/// No will was sent: the others waited for the death timer.
#[test]
fn a_port_that_is_lost_by_its_gate_sends_its_will() {
    let mut lan = Lan::new();
    lan.token();
    let failed = || Stopped::Gate(PortId(0), crate::gate::EgressError("it cannot be moved".into()));
    let begin = now();
    assert!(lan.gateway.data.survive(failed()).is_ok());
    let heard = |station: &Station| station.data.node.medium().counters().wills;
    lan.until("its will", |lan| lan.others[..2].iter().all(|station| heard(station) == 1));
    lan.until("it is left out", |lan| {
        let is_out = |station: &Station| {
            let medium = station.data.node.medium();
            let gateway = medium.member_at(MacAddr([2, 0, 0, 0, 0, 1]));
            gateway.is_none_or(|gateway| medium.is_dead(gateway.station))
        };
        lan.others[..2].iter().all(is_out)
    });
    let death = lan.others[0].data.node.medium().settings().death_timeout;
    assert!(now().since(begin) < death, "before the death timer of {death}");
    assert!(lan.others[2..].iter().all(|station| heard(station) == 0), "the other segment goes on");
    assert_eq!(lan.gateway.mode(1), ModeName::Token);
}

#[test]
fn a_port_that_is_lost_by_its_gate_outside_a_ring_says_farewell() {
    let mut lan = Lan::new();
    let failed = Stopped::Gate(PortId(0), crate::gate::EgressError("it cannot be moved".into()));
    let begin = now();
    assert!(lan.gateway.data.survive(failed).is_ok());
    lan.until("it is gone", |lan| lan.others[..2].iter().all(|station| station.members(0) == 1));
    assert!(now().since(begin) < Span::from_millis(1_000), "they have not waited for its hello");
    assert_eq!(lan.gateway.members(1), 2);
}

/// The words of nodes to each other at a port that was gone kept the thread awake for as long as the node
/// lived.
#[test]
fn a_lost_port_is_not_waited_for_any_more() {
    let mut lan = Lan::new();
    let pipes = [(); 2].map(|()| std::io::pipe().expect("a pipe"));
    let (read, mut frames): (Vec<_>, Vec<_>) = pipes.into_iter().unzip();
    for (way, read) in lan.gateway.data.ways.iter_mut().zip(read) {
        way.host.gate.1 = Some(Rc::new(read));
    }
    lan.token();
    frames.iter_mut().for_each(|frames| std::io::Write::write_all(frames, b"a frame").expect("room"));
    let controls = |lan: &mut Lan| {
        let mut ready = [0; waits::READY_MAX];
        let count = lan.gateway.data.waits.wait(now(), now(), false, &mut ready).expect("it waits");
        let is_control =
            |token: &u64| [0, 1].map(|port| waits::of(waits::CONTROL, PortId(port))).contains(token);
        ready[..count].iter().copied().filter(is_control).count()
    };
    assert_eq!(controls(&mut lan), 2);
    assert!(lan.gateway.data.survive(Stopped::Device(PortId(0), DeviceError::Gone)).is_ok());
    assert_eq!(controls(&mut lan), 1, "the other port's");
}
