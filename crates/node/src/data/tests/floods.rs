//! Floods of frames that no key proves, from which the device keeps nothing out.

use super::*;
use crate::data::ease::{PAUSE, pause_of_flood};
use std::collections::VecDeque;

/// Frames in one look: fewer than a turn takes.
const A_LOOK: u32 = 32;

/// Each frame had a turn of its own, and at 89,000 a second they took 58 % of a core.
#[test]
fn strangers_behind_a_closed_door_are_taken_many_at_once() {
    let (mut data, _control) = alone();
    let look = |data: &mut Data<Sink, NoGate>| {
        data.ways[0].wire.device.strange = A_LOOK;
        data.node.handle_deadline(now());
        assert!(data.receive(0).is_ok() && data.drain().is_ok());
        let (began, before) = (now(), data.work.ease.pauses);
        let until = data.pause(began).unwrap_or_else(|_| panic!("a pause"));
        (data.work.ease.pauses - before, until.since(began))
    };
    for nth in 0..512 / A_LOOK - 1 {
        assert_eq!(look(&mut data).0, 0, "look {nth}: the door is open");
    }
    let slept: Vec<_> = (0..8).map(|_| look(&mut data)).filter(|(pauses, _)| *pauses > 0).collect();
    assert!(slept.len() >= 4 && slept.iter().any(|(_, slept)| *slept >= PAUSE), "{slept:?}");
    data.ways[0].wire.heard_nothing();
    let before = data.work.ease.pauses;
    assert!(data.pause(now()).is_ok());
    assert_eq!(data.work.ease.pauses, before, "no frame of a stranger waits");
}

#[test]
fn a_denser_flood_is_taken_after_longer_pauses_and_none_is_longer_than_two() {
    assert_eq!(pause_of_flood(1), PAUSE + Span::from_micros(3));
    assert_eq!([50, 256].map(pause_of_flood), [PAUSE * 2; 2]);
}

/// Gives what a test has written, and keeps what its station sends.
struct Script {
    mac: [u8; 6],
    come: VecDeque<Result<Vec<u8>, DeviceError>>,
    sent: Vec<Vec<u8>>,
}

impl FrameDevice for Script {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        1_500
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        let Some(octets) = self.come.pop_front().transpose()? else { return Ok(None) };
        buffer[..octets.len()].copy_from_slice(&octets);
        let at = now();
        Ok(Some(ReceivedFrame { len: octets.len(), at, stamp: Stamp::Kernel, dequeued: at, broadcast: true }))
    }

    fn transmit(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        self.sent.push(frame.to_vec());
        Ok(Transmit::Sent)
    }

    fn backlog(&mut self) -> Backlog {
        Backlog::Empty { evidence: Evidence::NoQueue }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn link_up(&mut self) -> bool {
        true
    }
}

/// A station that begins, and what it has said after 50 ms.
fn beginner(last: u8) -> Data<Script, NoGate> {
    let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    let (_there, control) = Wiring::pair().expect("two ends");
    let (_, published) = counters::file(&["none"]).expect("memory");
    let files = Files { published, log: None, wills: Wills::default() };
    let device = Script { mac: [2, 0, 0, 0, 0, last], come: VecDeque::new(), sent: Vec::new() };
    let data = Data::new(&spec("n", settings), device, NoGate, control, files);
    let Ok(mut data) = data else { panic!("a station") };
    let begin = now();
    for step in 0..10 {
        data.node.handle_deadline(begin + Span::from_millis(5) * step);
        assert!(data.drain().is_ok());
    }
    data
}

/// The batches of a flood: damaged and foreign frames, one with a true tag among them, and errors.
#[test]
fn a_keyed_frame_is_heard_wherever_it_stands_in_a_flood() {
    let other = beginner(7);
    let true_frame = other.ways[0].wire.device.sent.first().expect("it announces itself").clone();
    let mut damaged = true_frame.clone();
    *damaged.last_mut().expect("a tag") ^= 1;
    let (mut foreign, short) = (damaged.clone(), damaged[..30].to_vec());
    foreign[12..14].copy_from_slice(&[8, 0]);
    let from = MacAddr(other.ways[0].wire.device.mac);
    for place in [0, 1, 63, 64, 65, 300] {
        let mut data = beginner(1);
        let rubbish = (0..400).map(|k| Ok([&damaged, &foreign, &short][k % 3].clone()));
        let mut come: VecDeque<_> = rubbish.collect();
        come.insert(place, Ok(true_frame.clone()));
        come.insert(place, Err(DeviceError::Truncated { room: 2_048 }));
        come.insert(place / 2, Err(DeviceError::LinkDown));
        data.ways[0].wire.device.come = come;
        let mut looks = 0;
        while data.node.medium().member_at(from).is_none() {
            assert!(!data.ways[0].wire.device.come.is_empty(), "unheard in place {place}");
            assert!(data.receive(0).is_ok() && data.drain().is_ok());
            looks += 1;
        }
        assert!(looks <= 2 + place / 64, "place {place}: {looks} looks");
        while !data.ways[0].wire.device.come.is_empty() {
            assert!(data.receive(0).is_ok() && data.drain().is_ok());
        }
        let counters = data.node.medium().counters();
        assert_eq!(
            (counters.frames_unproven, data.ways[0].wire.counts.receive_too_long),
            (134, 1),
            "place {place}"
        );
    }
}

/// With a turn's share of 64 frames a backlog went down by a third of what came meanwhile.
#[test]
fn a_look_into_a_flood_takes_more_frames_than_one_into_a_calm_wire() {
    let (mut data, _control) = alone();
    let taken = |data: &mut Data<Sink, NoGate>| {
        data.ways[0].wire.device.strange = 1_000;
        data.node.handle_deadline(now());
        assert!(data.receive(0).is_ok() && data.drain().is_ok());
        1_000 - data.ways[0].wire.device.strange
    };
    assert_eq!(taken(&mut data), 64);
    let most = (0..12).map(|_| taken(&mut data)).max();
    assert_eq!(most, Some(256), "the door is closed");
    data.ways[0].wire.heard_nothing();
    assert_eq!(taken(&mut data), 64);
}
