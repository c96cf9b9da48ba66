//! Packet-pair beside exact fractions, its discovery, and senders that stand still.

use crate::vc_path::{Net, PACE, Path, QUIET, TPDU, messages, request};
use proptest::prelude::*;
use rota_proto::vc::{End, Expiry, PacketPair, Request, Smart, Trips};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{FlowControl, Quality};

/// A TPDU, in the parts of which a rate has one in a nanosecond.
const PARTS: i128 = 1_000_000_000_000_000;
const TRIPS: Trips = Trips { smooth: Span::from_millis(20), shortest: Span::from_millis(18) };

/// Lets one pair leave, and its two acknowledgements come `gap` apart.
fn pair(machine: &mut PacketPair, now: &mut Instant, next: &mut u64, gap: Span, flying: u64) -> bool {
    machine.left(*now, *next, true, true, flying, TRIPS);
    machine.left(*now, *next + 1, true, true, flying, TRIPS);
    *now += TRIPS.smooth;
    let fits = machine.on_ack(*now, *next, 1, flying, TRIPS);
    *now += gap;
    *next += 2;
    machine.on_ack(*now, *next - 1, 1, flying, TRIPS) && fits
}

/// α of theory d.3 in tenths, from the signs of the large errors.
#[derive(Default)]
struct Alpha {
    errors: Vec<i8>,
    tenths: i128,
}

impl Alpha {
    fn after(&mut self, sample: i128, estimate: i128) -> i128 {
        let error = sample - estimate;
        let large = if error.abs() * 5 > estimate { error.signum() as i8 } else { 0 };
        if large == 0 || self.errors.last().is_some_and(|before| *before != large) {
            (self.tenths, self.errors) = (1, vec![]);
        }
        if large != 0 {
            self.errors.push(large);
            if self.errors.len().is_multiple_of(3) {
                self.tenths = (self.tenths * 2).min(5);
            }
        }
        self.tenths = self.tenths.max(1);
        self.tenths
    }
}

proptest! {
    /// TRANSPORT-R30, TRANSPORT-R31: each step is the exact fraction, rounded once.
    #[test]
    fn estimate_and_rate_are_the_exact_fractions_rounded_once(
        gaps in prop::collection::vec(
            prop_oneof![1u64..2_000_000_000, 900_000u64..1_100_000], 1..60,
        ),
        flying in 0u64..2_000,
    ) {
        let (mut now, mut next) = (Instant::from_nanos(1_000_000_000), 1);
        let mut machine = PacketPair::new(now, 128);
        let mut alpha = Alpha { tenths: 1, ..Alpha::default() };
        prop_assert_eq!(machine.estimate(), None);
        // Two TPDUs in a round trip of 20 ms.
        prop_assert_eq!(machine.rate(flying, TRIPS), 100_000_000);
        for gap in gaps {
            let before = machine.estimate().map(i128::from);
            pair(&mut machine, &mut now, &mut next, Span::from_nanos(gap), 10);
            let estimate = i128::from(machine.estimate().expect("a pair was measured"));
            // 1/gap: off by half a unit at most.
            let sample = (2 * PARTS + i128::from(gap)) / (2 * i128::from(gap));
            prop_assert!((sample * i128::from(gap) - PARTS).abs() * 2 <= i128::from(gap));
            match before {
                None => prop_assert_eq!(estimate, sample),
                Some(before) => {
                    let tenths = alpha.after(sample, before);
                    let exact = (10 - tenths) * before + tenths * sample;
                    prop_assert!((10 * estimate - exact).abs() <= 5, "{} of {}/10", estimate, exact);
                }
            }
            // λ = μ̂ + (B* − n̂)/(2T), with n̂ = flying − μ̂·T_min, rounded down.
            let missing = (4 - i128::from(flying)) * PARTS + estimate * 18_000_000;
            let more = i128::from(machine.rate(flying, TRIPS)) - estimate;
            let trip = 2 * 20_000_000;
            if more > -estimate {
                prop_assert!(more * trip <= missing && missing < (more + 1) * trip);
            } else {
                prop_assert!(missing <= -estimate * trip + trip, "the rate is 0");
            }
        }
    }

    /// TRANSPORT-5.3.3-9: whatever a pair says, a reliable circuit loses nothing, and its windows hold.
    #[test]
    fn a_reliable_circuit_of_packet_pair_loses_nothing(
        seed in any::<u64>(),
        (lost, ack_lost, doubled) in (0u64..200, 0u64..200, 0u64..200),
        (jitter, window) in (0u64..1_000_000, 1u64..64),
        sizes in prop::collection::vec(0usize..1_000, 1..40),
    ) {
        let net = Net { lost, ack_lost, doubled, jitter, ..QUIET };
        let quality = Quality { flow: FlowControl::PacketPair, ..Quality::RELIABLE };
        let mut path = Path::new(seed, net, &request(quality, window));
        let sent = messages(&sizes);
        path.send(&sent);
        let read: Vec<_> = path.read.iter().map(|(_, message)| message.clone()).collect();
        prop_assert_eq!(&sent[..read.len()], &read[..]);
        if let Some(End::Finished { .. }) = path.ends.0 {
            prop_assert_eq!(read.len(), sent.len());
        }
    }
}

/// TRANSPORT-5.3.3-3: TPDUs leave two by two, and pairs keep the rate.
#[test]
fn tpdus_leave_in_pairs_at_the_rate_of_the_estimate() {
    let start = Instant::from_nanos(1_000_000_000);
    let (mut now, mut next) = (start, 1);
    let mut machine = PacketPair::new(now, 128);
    // 1,000 TPDUs in a second; 18 are on a path of 18 ms, and four wait: the rate is the estimate.
    pair(&mut machine, &mut now, &mut next, Span::from_millis(1), 22);
    assert_eq!(machine.rate(22, TRIPS), 1_000_000_000);
    assert_eq!(machine.rate(18, TRIPS), 1_100_000_000, "the queue is filled");
    assert_eq!(machine.rate(62, TRIPS), 0, "40 too many in a round trip of 20");
    assert_eq!(machine.earliest(now, 62, TRIPS), Instant::FAR);
    now += Span::from_millis(100);
    let mut left = vec![];
    for sequence in next..next + 20 {
        now = now.max(machine.earliest(now, 22, TRIPS));
        machine.left(now, sequence, true, true, 22, TRIPS);
        left.push(now);
    }
    for two in left.chunks(2) {
        assert_eq!(two[0], two[1], "back to back");
        assert_eq!(two[0].since(left[0]).as_nanos() % 2_000_000, 0, "one pair in 2 ms");
    }
    assert_eq!(left[19].since(left[0]), Span::from_millis(18));
}

/// TRANSPORT-R30: acknowledgements of a pair measure only where both were sent once, and came apart.
#[test]
fn a_pair_of_which_one_was_sent_again_measures_nothing() {
    let mut now = Instant::from_nanos(1_000_000_000);
    let mut machine = PacketPair::new(now, 128);
    let left = |machine: &mut PacketPair, now, sequence, is_new, more| {
        machine.left(now, sequence, is_new, more, 2, TRIPS);
    };
    let mut acked = |machine: &mut PacketPair, all: &[(u64, u64)]| {
        for (sequence, wait) in all {
            now += Span::from_micros(*wait);
            machine.on_ack(now, *sequence, 1, 2, TRIPS);
        }
        machine.samples()
    };
    let start = Instant::from_nanos(2_000_000_000);
    left(&mut machine, start, 1, true, true);
    left(&mut machine, start, 2, true, true);
    left(&mut machine, start + Span::from_millis(50), 1, false, false);
    assert_eq!(acked(&mut machine, &[(1, 10), (2, 10)]), 0, "the first one was sent again");
    left(&mut machine, start + Span::from_millis(100), 3, true, false);
    left(&mut machine, start + Span::from_millis(110), 4, true, true);
    assert_eq!(acked(&mut machine, &[(3, 10), (4, 10)]), 0, "the second one was not there in time");
    left(&mut machine, start + Span::from_millis(200), 5, true, true);
    left(&mut machine, start + Span::from_millis(200), 6, true, true);
    assert_eq!(acked(&mut machine, &[(5, 10), (6, 0)]), 0, "at one instant");
    left(&mut machine, start + Span::from_millis(300), 7, true, true);
    left(&mut machine, start + Span::from_millis(300), 8, true, true);
    assert_eq!(acked(&mut machine, &[(7, 10), (0, 3), (8, 7)]), 1, "an answer to an ask is none of a pair");
    assert_eq!(machine.estimate(), Some(100_000_000_000));
}

/// TRANSPORT-R32: the discovery. Behind turns what arrives is the estimate, behind one queue it is less.
#[test]
fn an_estimate_that_does_not_fit_what_arrives_is_found_out_and_no_other() {
    // Of a hundred TPDUs at the rate of the estimate so many are sent, and so many arrive.
    for (sent, arrives, flying, fits) in [
        (100, 100, 22, true),
        (100, 85, 22, true),
        (100, 60, 22, false),
        (100, 12, 22, false),
        // The rate has been lowered for the queue that is on the path.
        (12, 12, 60, false),
        (90, 90, 60, true),
        // The sender has little to send.
        (30, 30, 10, true),
    ] {
        let (mut now, mut next) = (Instant::from_nanos(1_000_000_000), 1);
        let mut machine = PacketPair::new(now, 1_024);
        pair(&mut machine, &mut now, &mut next, Span::from_millis(1), flying);
        let mut all_fit = true;
        for turn in 0..10_000u64 {
            let falls = |share: u64| (turn * share) / 100 != ((turn + 1) * share) / 100;
            if falls(sent) {
                machine.left(now, next, false, false, flying, TRIPS);
            }
            now += Span::from_millis(1);
            if falls(arrives) {
                all_fit &= machine.on_ack(now, 1, 1, flying, TRIPS);
            }
        }
        assert_eq!(all_fit, fits, "{sent} of a hundred are sent, {arrives} arrive, {flying} on their way");
    }
}

/// Where both acknowledgements of each pair come at one instant, a sender would stay at one pair in a round
/// trip.
#[test]
fn a_path_on_which_no_pair_can_be_measured_takes_the_window() {
    let (mut now, mut next) = (Instant::from_nanos(1_000_000_000), 1);
    let mut machine = PacketPair::new(now, 64);
    for pairs in 1..=16 {
        let fits = pair(&mut machine, &mut now, &mut next, Span::ZERO, 2);
        assert_eq!((fits, machine.estimate()), (pairs < 16, None), "{pairs}");
    }
    // On a path without delay the harness of circuits has it so.
    let quality = Quality { flow: FlowControl::PacketPair, ..Quality::RELIABLE };
    let net = Net { delay: 0, slot: 0, ..QUIET };
    let mut path = Path::new(1, net, &request(quality, 64));
    path.send(&messages(&[100; 2_000]));
    assert_eq!((path.read.len(), path.source.flow()), (2_000, FlowControl::Window));
}

/// A reader's finding: an update of the window that is lost held a sender for a quarter of the time of
/// silence, since the condition of the quick ask never came.
#[test]
fn a_lost_update_of_the_window_holds_the_sender_no_longer_than_it_has_stood() {
    let quality = Quality { flow: FlowControl::Open, ..Quality::RELIABLE };
    for stands in [5, 20, 80] {
        let mut path = Path::new(1, QUIET, &request(quality, 8));
        path.reads = 0;
        let wait = |path: &mut Path, span: Span| {
            path.until = path.now + span;
            while path.now < path.until {
                while path.source.write(&[1; 100], true).ended {}
                path.step();
            }
            path.until = Instant::FAR;
        };
        wait(&mut path, Span::from_millis(20));
        assert_eq!(path.sent[0], 8, "the window is full");
        wait(&mut path, Span::from_millis(stands));
        // The program reads all, and the word of it is lost.
        (path.reads, path.net.ack_lost) = (1, 1_000);
        let read = path.now;
        while path.read.len() < 8 {
            path.step();
        }
        path.step();
        path.net.ack_lost = 0;
        while path.sent[0] == 8 {
            while path.source.write(&[1; 100], true).ended {}
            path.step();
        }
        let held = path.now.since(read);
        let stood = Span::from_millis(20 + stands);
        assert!(held <= stood * 2 + Span::from_millis(10), "{held} behind {stood}");
        assert!(held < PACE.silence.div_down(8), "{held}");
    }
}

/// A reader's finding: time-outs ran while nothing could leave, and the eighth ended a circuit whose resend
/// still waited for its bucket.
#[test]
fn a_circuit_whose_resend_waits_for_its_bucket_is_not_given_up() {
    let quality = Quality { flow: FlowControl::Bucket, ..Quality::RELIABLE };
    // Three TPDUs of 132 octets at once, and one in five seconds.
    let bucket = Some((Octets::new(3 * 132), BitRate::new(211).expect("a rate")));
    let mut path = Path::new(1, QUIET, &Request { bucket, ..request(quality, 8) });
    while path.opened.is_none() {
        path.step();
    }
    path.net.lost = 1_000;
    for _ in 0..3 {
        assert!(path.source.write(&[1; TPDU as usize], true).ended);
    }
    while path.sent[0] < 3 {
        path.step();
    }
    path.net.lost = 0;
    while path.read.len() < 3 {
        assert!(path.step(), "given up: {:?}", path.ends);
    }
    assert_eq!(path.source.resent(), 3);
    assert!(path.now.since(Instant::ZERO) > Span::from_millis(15_000), "the bucket holds: {:?}", path.now);
    assert_eq!(path.ends, (None, None));
}

/// The other half of that finding: a time-out runs from what has left, so a port that grants late is no peer
/// that is silent.
#[test]
fn a_time_out_runs_from_the_first_resend_that_has_left() {
    let (mut smart, mut now) = (Smart::new(4, PACE), Instant::from_nanos(1));
    smart.send(now);
    loop {
        let (at, is_time_out) = smart.deadline();
        now = at;
        smart.handle_deadline(now);
        if is_time_out {
            break;
        }
        smart.send_again(now);
    }
    // No grant for a long time.
    let granted = now + Span::from_millis(100_000);
    while smart.deadline().0 < granted {
        now = smart.deadline().0;
        assert_eq!(smart.handle_deadline(now), Some(Expiry::Probe), "nothing has left");
    }
    assert_eq!(smart.send_again(granted), Some(1));
    let mut time_outs = 1;
    let mut at = granted + smart.waits().1;
    loop {
        let (due, is_time_out) = smart.deadline();
        let expiry = smart.handle_deadline(due);
        smart.send_again(due);
        if is_time_out {
            assert_eq!(due, at, "from the resend on");
            time_outs += 1;
            at = due + smart.waits().1;
        }
        if expiry == Some(Expiry::GivenUp) {
            break;
        }
    }
    assert_eq!(time_outs, 8, "those count behind which something left");
}
