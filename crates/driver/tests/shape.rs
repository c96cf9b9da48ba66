//! Shaped ports against the arithmetic of the wire.

mod support;

use rota_driver::shape::{PortShape, PriorityMatch, PrioritySpec, Shaper};
use rota_units::{BitRate, Octets};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{B, Pair};

const RATE: BitRate = BitRate::from_mbit(10);
const QUEUE: Octets = Octets::new(150_000);
/// Ethernet, IPv4 and UDP headers, then check sequence, preamble and gap.
const OVERHEAD: u64 = 14 + 20 + 8 + 24;
const FRAME_ON_WIRE_MIN: u64 = 84;

fn main() {
    support::run(&[
        ("full_frames_get_the_wire_rate", full_frames),
        ("the_shortest_frames_pay_for_padding", short_frames),
        ("a_queue_holds_what_it_was_told", queue_limit),
        ("the_priority_class_is_served_first", priority),
        ("shapes_can_be_swapped_under_traffic", swap),
    ]);
}

fn shaped(shape: &PortShape) -> (Pair, Shaper) {
    let pair = Pair::new();
    let mut shaper = Shaper::new(pair.index_a);
    shaper.apply(&mut pair.a.route().unwrap(), shape).unwrap();
    (pair, shaper)
}

fn plain() -> PortShape {
    PortShape { rate: RATE, queue: QUEUE, priority: None, mtu: 1_500 }
}

fn receiver(pair: &Pair, port: u16) -> UdpSocket {
    let socket = pair.b.run(|| UdpSocket::bind((B, port))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket
}

fn sender(pair: &Pair, port: u16) -> UdpSocket {
    let socket = pair.a.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    socket.connect((B, port)).unwrap();
    socket
}

/// Keeps the port's queue filled while `work` runs.
fn under_flood<T>(rate: BitRate, from: &UdpSocket, payload: usize, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pause = rate.span_of_up(Octets::new(20 * (payload as u64 + OVERHEAD)));
            let octets = vec![0; payload];
            while !done.load(Ordering::Relaxed) {
                for _ in 0..30 {
                    let _ = from.send(&octets);
                }
                std::thread::sleep(Duration::from_nanos(pause.as_nanos()));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Frames a second, as the median of nine windows: a window that the test's own host slept through says
/// nothing about the port.
fn frames_per_second(to: &UdpSocket) -> f64 {
    let mut buf = [0; 2_000];
    to.recv(&mut buf).unwrap();
    let mut windows: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            let mut frames = 0u32;
            while start.elapsed() < Duration::from_millis(200) {
                to.recv(&mut buf).unwrap();
                frames += 1;
            }
            f64::from(frames) / start.elapsed().as_secs_f64()
        })
        .collect();
    windows.sort_by(f64::total_cmp);
    windows[4]
}

fn measure(rate: BitRate, payload: usize) {
    let wire = (payload as u64 + OVERHEAD).max(FRAME_ON_WIRE_MIN);
    let expected = rate.as_bps() as f64 / (8 * wire) as f64;
    let mut ratios = Vec::new();
    // Three tries, because a shared machine may take the processor away for a whole run.
    while ratios.len() < 3 && !ratios.iter().any(|ratio| (0.97..=1.03).contains(ratio)) {
        let (pair, _shaper) = shaped(&PortShape { rate, ..plain() });
        let (to, from) = (receiver(&pair, 9), sender(&pair, 9));
        ratios.push(under_flood(rate, &from, payload, || frames_per_second(&to)) / expected);
    }
    eprintln!("{payload} octets of payload at {rate}, as a part of the wire's arithmetic: {ratios:.4?}");
    assert!(ratios.iter().any(|ratio| (0.97..=1.03).contains(ratio)), "{ratios:?}");
}

fn full_frames() {
    measure(RATE, 1_472);
}

fn short_frames() {
    // Slowly, so that not the processor is measured.
    measure(BitRate::from_mbit(1), 1);
}

fn queue_limit() {
    let (pair, _shaper) = shaped(&PortShape { queue: Octets::new(45_420), ..plain() });
    let (to, from) = (receiver(&pair, 9), sender(&pair, 9));
    to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let start = Instant::now();
    for _ in 0..60 {
        from.send(&[0; 1_472]).unwrap();
    }
    let left_meanwhile = start.elapsed().as_nanos() / 1_230_400;
    let arrived = std::iter::from_fn(|| to.recv(&mut [0; 2_000]).ok()).count();
    // 30 frames of 1,514 octets fill the queue; one more was in the bucket.
    let most = 31 + usize::try_from(left_meanwhile).unwrap() + 1;
    assert!((30..=most).contains(&arrived), "{arrived} arrived, at most {most} could");
}

fn priority() {
    for matches in [PriorityMatch::UdpPorts { first: 4_999, last: 5_002 }, PriorityMatch::Dscp(0)] {
        let rule = PrioritySpec { matches, share_percent: 95 };
        let (pair, _shaper) = shaped(&PortShape { priority: Some(rule), ..plain() });
        let (video_to, video_from) = (receiver(&pair, 5_001), sender(&pair, 5_001));
        let (flood_to, flood_from) = (receiver(&pair, 9), sender(&pair, 9));
        if matches == PriorityMatch::Dscp(0) {
            // The flood is marked instead, so that it is the one outside the class.
            let tos = nix::sys::socket::sockopt::Ipv4Tos;
            nix::sys::socket::setsockopt(&flood_from, tos, &(8 << 2)).unwrap();
        }
        let sent = 200;
        // Both are read all the time, for a socket's own buffer holds some ninety frames.
        let (arrived, flood) = std::thread::scope(|scope| {
            let count = |to: UdpSocket| {
                to.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
                scope.spawn(move || std::iter::from_fn(|| to.recv(&mut [0; 2_000]).ok()).count())
            };
            let (video, flood) = (count(video_to), count(flood_to));
            under_flood(RATE, &flood_from, 1_472, || {
                for _ in 0..sent {
                    video_from.send(&[0; 1_000]).unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            (video.join().unwrap(), flood.join().unwrap())
        });
        eprintln!("{matches:?}: {arrived} of {sent} frames of the class, {flood} of the rest");
        assert_eq!(arrived, sent, "the class loses nothing below its share");
        assert!(flood > 50, "the rest gets what the class leaves");
    }
}

fn swap() {
    let (pair, mut shaper) = shaped(&plain());
    let (to, from) = (receiver(&pair, 9), sender(&pair, 9));
    let mut route = pair.a.route().unwrap();
    let rule = PrioritySpec { matches: PriorityMatch::Dscp(46), share_percent: 90 };
    under_flood(RATE, &from, 1_472, || {
        for priority in [Some(rule), Some(PrioritySpec { share_percent: 50, ..rule }), None, Some(rule), None]
        {
            shaper.apply(&mut route, &PortShape { priority, ..plain() }).unwrap();
            for _ in 0..5 {
                to.recv(&mut [0; 2_000]).expect("traffic goes on");
            }
        }
    });
}
