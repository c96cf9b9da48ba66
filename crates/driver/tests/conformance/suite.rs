//! What every device must do, written once.

use crate::rig::{MTU, PATIENCE, Rig, STATIONS, await_path, drain, frame, mac, next, number};
use rota_driver::clock;
use rota_driver::device::{BROADCAST, Backlog, DeviceError, Stamp, Transmit};
use rota_driver::poller::{Poller, Trigger};
use rota_units::{Instant, Span};

pub type Check = fn(&mut dyn Rig);

pub const CHECKS: &[(&str, Check)] = &[
    ("frames_keep_their_order", order),
    ("frames_of_every_size_arrive_unchanged", sizes),
    ("impossible_lengths_are_refused", lengths),
    ("a_small_buffer_is_reported", small_buffer),
    ("unicast_reaches_only_its_station", unicast),
    ("broadcast_reaches_all_but_the_sender", broadcast),
    ("stamps_rise_and_precede_the_dequeue", stamps),
    ("foreign_frames_do_not_wake", foreign),
    ("the_backlog_empties", backlog),
    ("a_link_that_was_down_works_again", link),
];

fn send(rig: &mut dyn Rig, from: usize, frame: &[u8]) {
    let limit = clock::now() + PATIENCE;
    while rig.device(from).transmit(frame).unwrap() == Transmit::NoRoom {
        assert!(clock::now() < limit, "the device has no room for ever");
        clock::sleep_until(clock::now() + Span::from_micros(100));
    }
}

fn order(rig: &mut dyn Rig) {
    for burst in 0..10 {
        for k in 0..50 {
            send(rig, 0, &frame(0, mac(1), 100, burst * 50 + k));
        }
        for k in 0..50 {
            assert_eq!(number(&next(rig, 1).1), burst * 50 + k);
        }
    }
}

fn sizes(rig: &mut dyn Rig) {
    for len in 60..=MTU + 14 {
        let sent = frame(0, mac(2), len, len as u32);
        send(rig, 0, &sent);
        let (received, octets) = next(rig, 2);
        assert_eq!((received.len, received.broadcast), (len, false));
        assert!(octets == sent, "{len} octets arrived changed");
    }
}

fn lengths(rig: &mut dyn Rig) {
    let device = rig.device(0);
    let max = MTU + 14;
    let long = device.transmit(&frame(0, mac(1), max + 1, 0)).unwrap_err();
    assert_eq!(long, DeviceError::FrameTooLong { len: max + 1, max });
    assert_eq!(device.transmit(&[0; 13]).unwrap_err(), DeviceError::FrameTooShort { len: 13 });
    assert_eq!(device.transmit(&[]).unwrap_err(), DeviceError::FrameTooShort { len: 0 });
}

fn small_buffer(rig: &mut dyn Rig) {
    let before = rig.device(1).counters().truncated;
    send(rig, 0, &frame(0, mac(1), 200, 1));
    send(rig, 0, &frame(0, mac(1), 100, 2));
    let mut buf = [0; 100];
    let limit = clock::now() + PATIENCE;
    let first = loop {
        match rig.device(1).receive(&mut buf) {
            Ok(None) => assert!(clock::now() < limit, "no frame came"),
            other => break other,
        }
    };
    assert_eq!(first, Err(DeviceError::Truncated { room: 100 }));
    assert_eq!(number(&next(rig, 1).1), 2);
    assert_eq!(rig.device(1).counters().truncated, before + 1);
}

fn unicast(rig: &mut dyn Rig) {
    send(rig, 0, &frame(0, mac(1), 60, 1));
    send(rig, 0, &frame(0, [2, 9, 9, 9, 9, 9], 60, 2));
    send(rig, 0, &frame(0, BROADCAST, 60, 3));
    assert_eq!(number(&next(rig, 2).1), 3, "a frame for another station was delivered");
    assert_eq!(number(&next(rig, 1).1), 1);
    assert_eq!(number(&next(rig, 1).1), 3);
}

fn broadcast(rig: &mut dyn Rig) {
    for sender in 0..STATIONS {
        send(rig, sender, &frame(sender, BROADCAST, 60, 10 + sender as u32));
        for other in (0..STATIONS).filter(|other| *other != sender) {
            let (received, octets) = next(rig, other);
            assert_eq!((number(&octets), received.broadcast), (10 + sender as u32, true));
        }
        let other = (sender + 1) % STATIONS;
        send(rig, other, &frame(other, mac(sender), 60, 20));
        assert_eq!(number(&next(rig, sender).1), 20, "a station heard itself");
    }
}

fn stamps(rig: &mut dyn Rig) {
    let mut latest = Instant::ZERO;
    for burst in 0..20 {
        let before = clock::now();
        for k in 0..10 {
            send(rig, 0, &frame(0, mac(1), 60 + 100 * k, burst));
        }
        for _ in 0..10 {
            let (received, _) = next(rig, 1);
            assert_eq!(received.stamp, Stamp::Kernel);
            assert!(received.at >= latest, "stamps went back by {}", latest.since(received.at));
            assert!(received.at <= received.dequeued && received.dequeued <= clock::now());
            // The conversion rounds towards the past, by no more than an undisturbed reading of the clocks.
            assert!(received.at + Span::from_millis(1) >= before, "a frame arrived before it was sent");
            latest = received.at;
        }
    }
    let counters = rig.device(1).counters();
    assert_eq!((counters.stamps_missing, counters.stamps_invalid), (0, 0));
}

fn foreign(rig: &mut dyn Rig) {
    let mut ip = frame(0, mac(1), 60, 1);
    ip[12..14].copy_from_slice(&0x0800_u16.to_be_bytes());
    if !rig.send_any(&ip) {
        return;
    }
    let mut next_version = frame(0, mac(1), 60, 2);
    next_version[14] = 0x20;
    assert!(rig.send_any(&next_version));
    let mut poller = Poller::new(1).unwrap();
    poller.add(rig.device(1).wait_fd().unwrap(), 0, Trigger::Level).unwrap();
    let woken = poller.wait(clock::now() + Span::from_millis(20)).unwrap().count();
    assert_eq!(woken, 0, "a foreign frame woke the device");
    send(rig, 0, &frame(0, mac(1), 60, 3));
    assert_eq!(number(&next(rig, 1).1), 3);
}

fn backlog(rig: &mut dyn Rig) {
    send(rig, 0, &frame(0, mac(1), MTU + 14, 1));
    let limit = clock::now() + PATIENCE;
    let evidence = loop {
        match rig.device(0).backlog() {
            Backlog::Empty { evidence } => break evidence,
            Backlog::Pending => assert!(clock::now() < limit, "the backlog never empties"),
        }
    };
    println!("    evidence: {evidence:?}");
    next(rig, 1);
}

fn link(rig: &mut dyn Rig) {
    assert!(rig.device(1).link_up());
    rig.set_link(1, false);
    assert!(!rig.device(1).link_up());
    let mut buf = vec![0; MTU + 14];
    let mut poller = Poller::new(1).unwrap();
    poller.add(rig.device(1).wait_fd().unwrap(), 0, Trigger::Level).unwrap();
    assert_eq!(poller.wait(clock::now() + PATIENCE).unwrap().count(), 1, "a waiting user learns of it");
    assert_eq!(rig.device(1).receive(&mut buf), Err(DeviceError::LinkDown));
    assert_eq!(rig.device(1).receive(&mut buf), Ok(None), "the loss of the link is told once");
    assert_eq!(rig.device(1).transmit(&frame(1, mac(0), 60, 1)), Err(DeviceError::LinkDown));
    assert!(rig.device(1).counters().link_down >= 2);
    rig.set_link(1, true);
    let limit = clock::now() + PATIENCE;
    while !rig.device(1).link_up() {
        assert!(clock::now() < limit, "the link does not come back");
    }
    await_path(rig, 0, 1);
    await_path(rig, 1, 0);
    drain(rig);
}
