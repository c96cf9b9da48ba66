//! What only the AF_PACKET device offers: opening and its refusals, groups, evidence, the bare ring.

use crate::rig::{ETHERTYPE, MTU, PATIENCE, PacketRig, Rig, drain, frame, mac, next, number};
use rota_driver::bare_ring::bare_ring_station;
use rota_driver::claim::ClaimError;
use rota_driver::clock;
use rota_driver::device::{Backlog, DeviceError, Evidence, FrameDevice};
use rota_driver::filter::GROUPS_MAX;
use rota_driver::packet::{DeviceOpenError, PacketDevice, PacketOptions};
use rota_driver::port::Port;
use rota_driver::realtime::{Realtime, Wish};
use rota_units::Span;
use std::thread;

type Check = fn(&mut PacketRig);

pub fn run(mut rig: PacketRig, chosen: &dyn Fn(&str) -> bool) {
    let checks: [(&str, Check); 9] = [
        ("opening_says_what_is_wrong", refusals),
        ("a_port_carries_every_frame_whole", port),
        ("a_second_daemon_is_refused", second_daemon),
        ("only_chosen_groups_are_heard", groups),
        ("a_queueing_discipline_changes_the_evidence", evidence),
        ("nothing_is_lost_uncounted", drops),
        ("a_small_ring_keeps_the_oldest_frames_and_comes_round", small_ring),
        ("the_bare_ring_turns", bare_ring),
        // The last one: it takes station 2 away.
        ("a_removed_interface_is_gone", removed),
    ];
    for (name, check) in checks.iter().filter(|(name, _)| chosen(name)) {
        println!("test AF_PACKET: {name} ...");
        check(&mut rig);
    }
}

fn refusals(rig: &mut PacketRig) {
    let open = |iface: &str| PacketDevice::open(iface, ETHERTYPE, 0).unwrap_err();
    assert_eq!(open("nosuch0"), DeviceOpenError::NoSuchInterface("nosuch0".into()));
    assert_eq!(
        open("a-name-that-is-too-long"),
        DeviceOpenError::NoSuchInterface("a-name-that-is-too-long".into())
    );
    assert_eq!(open("lo"), DeviceOpenError::NotEthernet("lo".into()));
    assert_eq!(open("probe0"), DeviceOpenError::Down("probe0".into()));
    assert!(open("probe0").to_string().contains("ip link set probe0 up"));
    let mut many = PacketOptions::new("e0", ETHERTYPE, 0);
    many.groups = vec![[3, 0, 0, 0, 0, 0]; GROUPS_MAX + 1];
    assert_eq!(PacketDevice::open_with(&many).unwrap_err(), DeviceOpenError::TooManyGroups(GROUPS_MAX + 1));
    drain(rig);
}

/// A port of a segment in user space: it hears what is for others, of any EtherType, with its VLAN tag.
fn port(rig: &mut PacketRig) {
    rig.netlink.add_veth("w0", mac(8), "w1").unwrap();
    rig.netlink.set_up("w1", true).unwrap();
    rig.netlink.set_up("w0", true).unwrap();
    let mut station = PacketDevice::open("w0", ETHERTYPE, 0).unwrap();
    let mut port = Port::open("w1").unwrap();
    let taken = DeviceOpenError::Claimed(ClaimError::Taken("w1".into()));
    assert_eq!(Port::open("w1").unwrap_err(), taken);
    assert_eq!(Port::open("lo").unwrap_err(), DeviceOpenError::NotEthernet("lo".into()));
    let of_type = |mut frame: Vec<u8>, ethertype: [u8; 2]| {
        frame[12..14].copy_from_slice(&ethertype);
        frame
    };
    let plain = of_type(frame(8, mac(9), 300, 1), [0x12, 0x34]);
    let mut tagged = of_type(frame(8, mac(9), 1_514, 2), [0x08, 0x00]);
    tagged.splice(12..12, [0x81, 0x00, 0xa0, 0x07]);
    tagged.truncate(1_514);
    let mut got = Vec::new();
    for sent in [&plain, &tagged] {
        station.send_any(sent).unwrap();
        let limit = clock::now() + Span::from_millis(10_000);
        // The kernel says a word of its own on a new interface now and then.
        while port.receive(&mut got).unwrap().is_none() || got != *sent {
            assert!(clock::now() < limit, "the port never gave {} octets as they were sent", sent.len());
        }
    }
    let mut buf = [0; 1_514];
    port.send(&frame(9, mac(8), 1_514, 3)).unwrap();
    let received = std::iter::repeat_with(|| station.receive(&mut buf).unwrap()).flatten().next().unwrap();
    assert_eq!((received.len, number(&buf)), (1_514, 3));
    let before = port.counters();
    for impossible in [&buf[..13], &[0; 1_519][..]] {
        port.send(impossible).unwrap();
    }
    let after = port.counters();
    assert_eq!((after.impossible - before.impossible, after.sent), (2, 1));
    drain(rig);
}

fn second_daemon(rig: &mut PacketRig) {
    let taken = DeviceOpenError::Claimed(ClaimError::Taken("e0".into()));
    assert_eq!(PacketDevice::open("e0", ETHERTYPE, 0).unwrap_err(), taken);
    let mut beside = PacketOptions::new("e0", ETHERTYPE, 0);
    beside.exclusive = false;
    assert_eq!(PacketDevice::open_with(&beside).unwrap().mac(), mac(0));
    // The station of another user has no lock that we could see: each user has a directory of their own.
    rig.netlink.add_veth("c0", mac(7), "c1").unwrap();
    rig.netlink.set_up("c0", true).unwrap();
    beside.iface = "c0".into();
    let other = PacketDevice::open_with(&beside).unwrap();
    let taken = DeviceOpenError::Claimed(ClaimError::Taken("c0".into()));
    assert_eq!(PacketDevice::open("c0", ETHERTYPE, 0).unwrap_err(), taken);
    drop(other);
    PacketDevice::open("c0", ETHERTYPE, 0).unwrap();
    drain(rig);
}

fn groups(rig: &mut PacketRig) {
    let (ours, other) = ([0x03, 0, 0, 0, 0, 1], [0x03, 0, 0, 0, 0, 2]);
    rig.devices[1].set_groups(&[ours]).unwrap();
    for (k, to) in [other, ours, other].into_iter().enumerate() {
        rig.device(0).transmit(&frame(0, to, 60, k as u32)).unwrap();
    }
    rig.device(0).transmit(&frame(0, mac(1), 60, 9)).unwrap();
    let (received, octets) = next(rig, 1);
    assert_eq!((number(&octets), received.broadcast), (1, true));
    assert_eq!(number(&next(rig, 1).1), 9);
    rig.devices[1].set_groups(&[]).unwrap();
    rig.device(0).transmit(&frame(0, ours, 60, 10)).unwrap();
    drain(rig);
}

fn evidence(rig: &mut PacketRig) {
    assert_eq!(rig.device(2).backlog(), Backlog::Empty { evidence: Evidence::NoQueue });
    rig.netlink.add_pfifo("e2").unwrap();
    let limit = clock::now() + Span::from_millis(10_000);
    // The old answer is believed for a moment; then a frame is followed through the discipline.
    loop {
        rig.device(2).transmit(&frame(2, mac(0), 60, 1)).unwrap();
        match rig.device(2).backlog() {
            Backlog::Empty { evidence: Evidence::NoQueue } => assert!(clock::now() < limit),
            Backlog::Empty { evidence: Evidence::QdiscAndWait(wait) } => panic!("{wait} cannot have passed"),
            Backlog::Empty { evidence } => panic!("{evidence:?} on a veth"),
            Backlog::Pending => break,
        }
        drain(rig);
    }
    loop {
        match rig.device(2).backlog() {
            Backlog::Empty { evidence: Evidence::QdiscAndWait(wait) } => {
                println!("    with a discipline: after {wait}");
                break;
            }
            Backlog::Empty { evidence } => panic!("{evidence:?} although there is a discipline"),
            Backlog::Pending => assert!(clock::now() < limit, "the wait never ends"),
        }
    }
    drain(rig);
}

fn drops(rig: &mut PacketRig) {
    // More than the receive buffer holds even where its size may be forced.
    let before = rig.device(1).counters();
    let sent = 20_000;
    for k in 0..sent {
        rig.device(0).transmit(&frame(0, mac(1), 60, k)).unwrap();
    }
    let mut buf = [0; 1_514];
    let mut heard = 0;
    // The kernel's softirq may still be delivering: the numbers must add up in the end.
    let limit = clock::now() + Span::from_millis(10_000);
    let dropped = loop {
        while rig.device(1).receive(&mut buf).unwrap().is_some() {
            heard += 1;
        }
        let dropped = rig.device(1).counters().receive_drops - before.receive_drops;
        if heard + dropped == u64::from(sent) {
            break dropped;
        }
        if clock::now() >= limit {
            println!("    {heard} heard, {dropped} dropped: the rest was lost before the socket");
            break dropped;
        }
    };
    assert!(dropped > 0, "a buffer without end");
    println!("    of {sent} frames {heard} were heard and {dropped} dropped, all counted");
    drain(rig);
}

/// Frames of all sizes through a ring that comes round several times, and a burst that it has no room for.
fn small_ring(rig: &mut PacketRig) {
    rig.netlink.add_veth("r0", mac(8), "r1").unwrap();
    for iface in ["r0", "r1"] {
        rig.netlink.set_up(iface, true).unwrap();
    }
    let mut options = PacketOptions::new("r0", ETHERTYPE, 0);
    options.receive_buffer = 1;
    let mut near = PacketDevice::open_with(&options).unwrap();
    let mut far = PacketDevice::open("r1", ETHERTYPE, 0).unwrap();
    let mut buf = [0; MTU + 14];
    let mut take =
        |near: &mut PacketDevice| near.receive(&mut buf).unwrap().map(|got| buf[..got.len].to_vec());
    let limit = clock::now() + PATIENCE;
    let as_sent = |k: u32| frame(9, mac(8), 60 + (k as usize * 37) % (MTU + 14 - 60), k);
    let (mut sent, mut read) = (0, 0);
    while read < 2_000 {
        for _ in 0..150 {
            far.transmit(&as_sent(sent)).unwrap();
            sent += 1;
        }
        // Some of each burst wait for the next one, so that bursts end anywhere in the ring.
        while read + 40 < sent {
            assert!(clock::now() < limit, "frame {read} of {sent} never came");
            let Some(octets) = take(&mut near) else { continue };
            assert!(octets == as_sent(read), "frame {read} of {sent}");
            read += 1;
        }
    }
    while read < sent {
        assert!(clock::now() < limit, "frame {read} of {sent} never came");
        read += u32::from(take(&mut near).is_some());
    }
    assert_eq!(near.counters().receive_drops, 0);
    for k in 0..1_000 {
        far.transmit(&as_sent(k)).unwrap();
    }
    let mut dropped = || near.counters().receive_drops as usize;
    let lost = loop {
        let before = dropped();
        clock::sleep_until(clock::now() + Span::from_millis(20));
        if before > 0 && dropped() == before {
            break before;
        }
        assert!(clock::now() < limit, "a ring without end");
    };
    let kept: Vec<_> = std::iter::from_fn(|| take(&mut near)).collect();
    assert_eq!(kept.len() + lost, 1_000);
    assert!(kept.iter().zip(0..).all(|(octets, k)| *octets == as_sent(k)), "the oldest are kept");
    far.transmit(&as_sent(7)).unwrap();
    let next =
        std::iter::repeat_with(|| take(&mut near)).take_while(|_| clock::now() < limit).flatten().next();
    assert_eq!(next, Some(as_sent(7)), "and the next one comes");
    println!("    a ring of {} frames", kept.len());
    drain(rig);
}

fn bare_ring(rig: &mut PacketRig) {
    const ROUNDS: usize = 2_000;
    let station = |k: usize| {
        thread::spawn(move || {
            Realtime::ask(Wish { fifo: None, cpu: None, lock: false });
            bare_ring_station(&format!("e{k}"), mac((k + 1) % 3), k == 0, ROUNDS)
        })
    };
    let ring: Vec<_> = (0..3).map(station).collect();
    let mut times: Vec<Vec<Span>> = ring.into_iter().map(|t| t.join().unwrap().unwrap()).collect();
    assert_eq!(times.iter().map(Vec::len).collect::<Vec<_>>(), [ROUNDS, 0, 0]);
    times[0].sort_unstable();
    let hop = times[0][ROUNDS / 2].div_down(3);
    println!("    {ROUNDS} rounds of 3 stations, median hop {hop}");
    drain(rig);
}

fn removed(rig: &mut PacketRig) {
    rig.netlink.remove("e2").unwrap();
    let device = &mut rig.devices[2];
    let sent = device.transmit(&frame(2, mac(0), 60, 1));
    assert_eq!((sent, device.link_up()), (Err(DeviceError::Gone), false));
    assert!(matches!(device.receive(&mut [0; 1_514]), Ok(None) | Err(DeviceError::LinkDown)));
}
