//! Ordinary frames of a host across switches of mode: between two stations of a segment in this process.

use super::*;
use crate::commands::ControlEnd;
use crate::data::ease::PAUSE;
use crate::gate::EgressError;
use nix::sys::eventfd::EventFd;
use rota_contract::AskedTerms;
use rota_driver::device::ReceivedFrame;
use rota_driver::in_process::{InProcessDevice, Segment, SegmentSpec};
use rota_proto::ModeName;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const PATIENCE: Span = Span::from_millis(15_000);
const FRAME: usize = 1_514;
const SERVICE: u16 = 7;
/// 2.5 ms of the link's time: longer than a turn, and short enough to leave long before the room shrinks.
const SOME_FRAMES: u64 = 20;

/// The host's frames: those given to the card, in order, and those waiting behind the gate.
#[derive(Default)]
struct Host {
    card: Vec<u32>,
    behind: VecDeque<Vec<u8>>,
    diverted: bool,
    sent: u32,
    /// A program sends more than anything takes: the gate is never empty.
    floods: bool,
    reads: u64,
    /// Messages between nodes.
    control: VecDeque<Vec<u8>>,
}

impl Host {
    fn send(&mut self, octets: usize) {
        self.sent += 1;
        if !self.diverted {
            self.card.push(self.sent);
            return;
        }
        let mut frame = vec![0; octets];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[20..24].copy_from_slice(&self.sent.to_be_bytes());
        self.behind.push_back(frame);
    }
}

/// The same for the gate, the card and the test. The gate has a descriptor that is always readable.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Host>>, Option<Rc<EventFd>>);

impl Egress for Shared {
    fn divert(&mut self) -> Result<(), EgressError> {
        self.0.borrow_mut().diverted = true;
        Ok(())
    }

    fn pass(&mut self) -> Result<(), EgressError> {
        self.0.borrow_mut().diverted = false;
        Ok(())
    }

    fn recv(&mut self, into: &mut [u8]) -> Option<usize> {
        let mut host = self.0.borrow_mut();
        host.reads += 1;
        if host.floods && host.diverted && host.behind.is_empty() {
            host.send(FRAME);
        }
        let frame = host.behind.pop_front()?;
        let octets = frame.len().min(into.len());
        into[..octets].copy_from_slice(&frame[..octets]);
        Some(octets)
    }

    fn recv_control(&mut self, into: &mut [u8]) -> Option<usize> {
        let frame = self.0.borrow_mut().control.pop_front()?;
        into[..frame.len()].copy_from_slice(&frame);
        Some(frame.len())
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.1.as_ref().map(|bell| bell.as_fd())
    }
}

/// A card that says what it was given.
struct Card {
    inner: InProcessDevice,
    host: Shared,
    full: bool,
}

impl FrameDevice for Card {
    fn mac(&self) -> [u8; 6] {
        self.inner.mac()
    }

    fn mtu(&self) -> u16 {
        self.inner.mtu()
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        self.inner.receive(into)
    }

    fn transmit(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        if frame[12..14] != [8, 0] {
            return self.inner.transmit(frame);
        }
        if self.full {
            return Ok(Transmit::NoRoom);
        }
        let number = frame[20..24].try_into().expect("four octets");
        self.host.0.borrow_mut().card.push(u32::from_be_bytes(number));
        Ok(Transmit::Sent)
    }

    fn backlog(&mut self) -> Backlog {
        self.inner.backlog()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wait_fd()
    }

    fn link_up(&mut self) -> bool {
        true
    }
}

struct Station {
    data: Data<Card, Shared>,
    control: ControlEnd,
    host: Shared,
}

impl Station {
    fn new(name: &str, segment: &Segment, last: u8) -> Self {
        let spec = spec(name, Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000)));
        let inner = segment.port([2, 0, 0, 0, 0, last], 1_500).expect("a timer");
        let bell = EventFd::from_value(1).expect("an eventfd");
        let host = Shared(Rc::default(), Some(Rc::new(bell)));
        let card = Card { inner, host: host.clone(), full: false };
        let (control, end) = Wiring::pair().expect("two ends");
        let (_, published) = counters::file(&["none"]).expect("memory");
        let made = Data::new(
            &spec,
            card,
            host.clone(),
            end,
            Files { published, log: None, wills: Wills::default() },
        );
        let Ok(mut data) = made else { panic!("a station") };
        data.node.listen(Listener::from(SERVICE));
        Self { data, control, host }
    }

    /// As the data thread's, without sleeping.
    fn turn(&mut self) {
        let data = &mut self.data;
        data.begin_turn(now());
        assert!(data.receive(0).is_ok() && data.look_at_held_gates(now()).is_ok());
        if is_watched(data) {
            assert!(data.take_host_frames(0, now()).is_ok());
        }
        look_at_card(data);
        assert!(data.drain().is_ok() && data.open_gate(0).is_ok());
        if data.node.deadline() <= now() {
            data.node.handle_deadline(now());
        }
        assert!(data.drain().is_ok());
        for _ in 0..accept_incoming(&mut self.control, data) {
            data.node.listen(Listener::from(SERVICE));
        }
        assert_eq!(data.host_frames().unaccounted(), 0, "{:?}", data.host_frames());
    }

    fn mode(&self) -> ModeName {
        self.data.node.medium().mode()
    }

    /// 60 Mbit/s, as far as this machine lets the test run.
    fn offer(&mut self, share: &mut Instant) {
        let mut burst = 0;
        while *share < now() && burst < 16 {
            *share += Span::from_micros(200);
            burst += 1;
            self.host.0.borrow_mut().send(FRAME);
        }
        if burst == 16 {
            *share = now();
        }
    }

    /// While there is a ring, more frames wait than leave in a turn: some are then there when it ends.
    fn fill_queue(&mut self) {
        while self.mode() == ModeName::Token && self.data.host_frames().waiting < SOME_FRAMES {
            self.host.0.borrow_mut().send(FRAME);
            assert!(self.data.take_host_frames(0, now()).is_ok());
        }
    }
}

/// True if the data thread waits for the gate, which always has something to say.
fn is_watched(data: &mut Data<Card, Shared>) -> bool {
    let gate = waits::of(waits::GATE, PortId(0));
    data.waits.all.wait(Instant::ZERO).expect("a wait").any(|ready| ready.token == gate)
}

fn lan() -> (Station, Station) {
    let segment = Segment::new(SegmentSpec { rate: None, port_queue: Octets::new(150_000) });
    let mut lan = (Station::new("a", &segment, 1), Station::new("b", &segment, 2));
    let knows = |station: &Station| {
        let members = station.data.node.medium().members();
        members.len() == 1 && members[0].station != 0 && station.data.node.medium().station() != 0
    };
    until(&mut lan, "plain mode", |lan| {
        knows(&lan.0) && knows(&lan.1) && lan.0.mode() == ModeName::Plain && lan.1.mode() == ModeName::Plain
    });
    lan
}

fn until(lan: &mut (Station, Station), what: &str, mut wanted: impl FnMut(&mut (Station, Station)) -> bool) {
    let give_up = now() + PATIENCE;
    while !wanted(lan) {
        assert!(now() < give_up, "{what}: never, {} {}", lan.0.mode() as u8, lan.1.mode() as u8);
        lan.0.turn();
        lan.1.turn();
    }
}

fn open(lan: &mut (Station, Station)) -> ChannelId {
    let period = lan.0.data.node.medium().settings().trt;
    let traffic = TrafficSpec::fixed(100, period, true);
    let (terms, answers) = (AskedTerms::default(), None);
    let request = Opening { traffic, terms, before: 0, probe: false, uid: 0, answers };
    let Ok((channel, _)) = commands::open(&mut lan.0.data.node, now(), "b", SERVICE, &request) else {
        panic!("the station is known")
    };
    channel
}

#[test]
fn a_switch_of_mode_loses_and_reorders_nothing_of_the_host() {
    let mut lan = lan();
    let mut share = now();
    let flushed = |lan: &(Station, Station)| lan.0.data.node.port().counters().host_frames_flushed;
    let mut round = 0;
    // A machine that stands still in the last turn may send them all before.
    while round < 4 || round < 40 && flushed(&lan) == 0 {
        round += 1;
        let channel = open(&mut lan);
        until(&mut lan, "token mode", |lan| {
            lan.0.offer(&mut share);
            lan.0.mode() == ModeName::Token
        });
        let begin = now();
        until(&mut lan, "some cycles", |lan| {
            lan.0.offer(&mut share);
            now().since(begin) > Span::from_millis(50)
        });
        lan.0.fill_queue();
        lan.0.data.node.close(now(), channel);
        let closed = now();
        until(&mut lan, "the gate opens", |lan| {
            lan.0.fill_queue();
            // A machine that is slower than the wire would have a queue for ever.
            if now().since(closed) < PATIENCE.div_down(2) {
                lan.0.offer(&mut share);
            }
            lan.0.mode() == ModeName::Plain && !lan.0.data.ways[0].host.diverted
        });
        let begin = now();
        until(&mut lan, "plain mode again", |lan| {
            lan.0.offer(&mut share);
            now().since(begin) > Span::from_millis(30)
        });
        let host = lan.0.host.0.borrow();
        let right: Vec<u32> = (1..=host.sent).collect();
        assert_eq!(host.card, right, "round {round}");
        assert!(host.behind.is_empty());
    }
    let frames = lan.0.data.host_frames();
    assert!(frames.taken > 100 && frames.left == frames.taken && frames.waiting == 0, "{frames:?}");
    assert!(flushed(&lan) > 0, "some waited for the last token");
}

#[test]
fn each_frame_that_is_dropped_is_counted_under_its_reason() {
    let mut lan = lan();
    let _ = open(&mut lan);
    until(&mut lan, "the gate is shut", |lan| lan.0.data.ways[0].host.diverted);
    let send = |lan: &(Station, Station), octets: &[usize]| {
        octets.iter().for_each(|octets| lan.0.host.0.borrow_mut().send(*octets));
    };
    // One octet too many, and without a tag also four.
    send(&lan, &[1_515, 1_518, 1_519, 9_000, 1_514]);
    lan.0.host.0.borrow_mut().behind.push_back(vec![1; 13]);
    let mut tagged = vec![0; 1_518];
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    lan.0.host.0.borrow_mut().behind.push_back(tagged);
    lan.0.turn();
    let frames = lan.0.data.host_frames();
    assert_eq!((frames.taken, frames.too_long, frames.malformed, frames.waiting), (7, 4, 1, 2));
    // More than the queue holds, even if part of it leaves while this machine stands still; and what was
    // queued before the card had no room for.
    let (room, _) = lan.0.data.node.port().queue_room();
    let many = usize::try_from(room.get()).expect("small") / FRAME * 10;
    send(&lan, &vec![FRAME; many]);
    while !lan.0.host.0.borrow().behind.is_empty() {
        lan.0.turn();
    }
    // The machine counts first; its word comes in a later turn where there are many.
    until(&mut lan, "each refused frame is counted", |lan| {
        let counters = lan.0.data.node.port().counters();
        let refused = counters.host_frames_dropped + counters.host_dropped_switch;
        refused > 0 && lan.0.data.host_frames().refused == refused
    });
    // The queue may be empty again by now: more frames find the card full, if the gate is still shut.
    lan.0.data.ways[0].wire.device.full = true;
    until(&mut lan, "all have ended", |lan| {
        let have_ended = lan.0.host.0.borrow().behind.is_empty() && lan.0.data.host_frames().waiting == 0;
        let found = lan.0.data.host_frames().no_room > 0;
        if have_ended && !found && lan.0.data.ways[0].host.diverted {
            send(lan, &[FRAME; 4]);
        }
        have_ended && found
    });
    let frames = lan.0.data.host_frames();
    assert!(frames.unaccounted() == 0, "{frames:?}");
}

/// Each of them was read and dropped, a hundred for one that left: the thread had no time for anything else.
#[test]
fn the_gate_of_a_host_that_floods_a_full_queue_is_held_and_every_frame_keeps_its_order() {
    let mut lan = lan();
    let channel = open(&mut lan);
    until(&mut lan, "token mode", |lan| lan.0.mode() == ModeName::Token);
    lan.0.host.0.borrow_mut().floods = true;
    let (begin, mut held, mut turns) = (now(), 0, 0);
    until(&mut lan, "a second of flood", |lan| {
        held += u32::from(!is_watched(&mut lan.0.data));
        turns += 1;
        now().since(begin) > Span::from_millis(1_000)
    });
    let (frames, reads) = (lan.0.data.host_frames(), lan.0.host.0.borrow().reads);
    assert!(frames.left > 200 && held * 2 > turns, "{held} of {turns} turns, {frames:?}");
    assert!(reads <= 2 * frames.left + frames.waiting + 128, "{reads} reads, {frames:?}");
    assert!(frames.waiting >= 100, "the queue of 50 ms keeps its frames: {frames:?}");

    // Neither a flood nor its end keeps the gate shut.
    lan.0.data.node.close(now(), channel);
    until(&mut lan, "the gate opens", |lan| {
        lan.0.mode() == ModeName::Plain && !lan.0.data.ways[0].host.diverted
    });
    lan.0.host.0.borrow_mut().floods = false;
    let _ = open(&mut lan);
    until(&mut lan, "token mode again", |lan| lan.0.mode() == ModeName::Token);
    lan.0.host.0.borrow_mut().send(FRAME);
    let last = lan.0.host.0.borrow().sent;
    until(&mut lan, "a frame behind the flood", |lan| lan.0.host.0.borrow().card.last() == Some(&last));
    assert!(is_watched(&mut lan.0.data), "one that floods no more is read as ever");
    assert!(lan.0.host.0.borrow().card.is_sorted());
}

/// It ended channels: a link between nodes of which nothing is heard for a while is down.
#[test]
fn a_flood_of_the_host_does_not_keep_what_nodes_tell_each_other_out() {
    let mut lan = lan();
    let _ = open(&mut lan);
    until(&mut lan, "token mode", |lan| lan.0.mode() == ModeName::Token);
    lan.0.host.0.borrow_mut().floods = true;
    let card = |lan: &(Station, Station)| lan.0.host.0.borrow().card.clone();
    until(&mut lan, "a held gate", |lan| {
        !is_watched(&mut lan.0.data) && lan.0.data.host_frames().waiting >= 100
    });
    tell_a_neighbour(&lan);
    let before = card(&lan).len();
    assert!(lan.0.data.take_control_frames(0, now()).is_ok());
    until(&mut lan, "a frame of a node", |lan| card(lan).contains(&u32::MAX));
    let place = card(&lan).iter().position(|number| *number == u32::MAX).expect("it left");
    assert!(place - before < 50, "{} went before it", place - before);
}

/// A node says something to a neighbour.
fn tell_a_neighbour(lan: &(Station, Station)) {
    let mut frame = vec![0; 100];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[20..24].copy_from_slice(&u32::MAX.to_be_bytes());
    lan.0.host.0.borrow_mut().control.push_back(frame);
}

/// It ended channels: a gateway that forwards more than its line carries keeps the queue full without a flood
/// that would hold its gate.
#[test]
fn a_full_queue_does_not_keep_what_nodes_tell_each_other_out() {
    let mut lan = lan();
    let _ = open(&mut lan);
    until(&mut lan, "token mode", |lan| lan.0.mode() == ModeName::Token);
    until(&mut lan, "a full queue", |lan| {
        lan.0.host.0.borrow_mut().send(FRAME);
        lan.0.data.host_frames().refused > 0
    });
    tell_a_neighbour(&lan);
    let refused = lan.0.data.host_frames().refused;
    assert!(lan.0.data.take_control_frames(0, now()).is_ok());
    assert_eq!(lan.0.data.host_frames().refused, refused);
    until(&mut lan, "a frame of a node", |lan| lan.0.host.0.borrow().card.contains(&u32::MAX));
}

/// A TCP stream fills the queue too, and loses a frame now and then: frames of higher levels must find the
/// gate empty.
#[test]
fn a_host_that_offers_a_little_too_much_is_read_as_ever() {
    let mut lan = lan();
    let _ = open(&mut lan);
    until(&mut lan, "token mode", |lan| lan.0.mode() == ModeName::Token);
    let frames = |lan: &(Station, Station)| lan.0.data.host_frames();
    until(&mut lan, "a full queue", |lan| {
        lan.0.host.0.borrow_mut().send(FRAME);
        frames(lan).refused > 0
    });
    for _ in 0..200 {
        let left = frames(&lan).left;
        until(&mut lan, "a frame leaves", |lan| frames(lan).left > left);
        lan.0.host.0.borrow_mut().send(FRAME);
        lan.0.turn();
        assert!(is_watched(&mut lan.0.data), "{:?}", frames(&lan));
    }
    let last = frames(&lan);
    assert!(last.waiting >= 300, "the whole queue is used: {last:?}");
}

/// A hostile program held the CPU of the thread for whole seconds: its doorbell ended each wait.
#[test]
fn a_turn_that_left_work_for_programs_waits_for_frames_alone() {
    let (mut lan, mut waits) = (lan(), 0);
    // A frame of the other station ends a wait before its time; most waits see none.
    for _ in 0..20 {
        // A frame that came already would end all of them.
        lan.0.turn();
        until(&mut lan, "nothing is due", |lan| {
            lan.0.data.node.deadline() > now() + Span::from_millis(20) && !lan.0.data.work.has_more
        });
        let data = &mut lan.0.data;
        data.work.has_more = true;
        data.begin_turn(now());
        let begin = now();
        assert!(data.pause(begin).is_ok());
        waits += u32::from(now().since(begin) >= PAUSE);
        data.work.has_more = false;
    }
    assert!(waits >= 5, "{waits} of 20");
}
