//! Records that both nodes keep of channels that end, and of intervals that have ended.

use super::*;
use rota_admission::Admitted;

#[test]
fn a_sender_whose_last_units_wait_answers_that_its_channel_goes_on() {
    for state in [Sending::Open { telling: None }, Sending::Draining] {
        let mut ledger = Ledger::new();
        let sent = ledger.open(B);
        ledger.channels.outgoing[0].state = state;
        ledger.sent();
        ledger.hear(B, Verb::Ask, sent);
        assert_eq!(ledger.sent(), [(B, Verb::Opened)], "{:?}", ledger.channels.outgoing[0].state);
    }
}

/// A sender repeats its close, and takes as come what an unknown channel's receiver does not deny.
#[test]
fn the_counts_of_a_lossy_channel_are_kept_longer_than_those_of_whole_ones() {
    let mut ledger = Ledger::new();
    let lost = |ledger: &mut Ledger, channel, final_unit| {
        ledger.sent();
        let close = Signal { final_unit, ..Signal::new(Verb::Close, ChannelId(channel), 1) };
        ledger.signal(B, &close);
        let ack = ledger.signals().into_iter().find(|(_, sent)| sent.verb == Verb::CloseAck);
        ack.expect("an answer").1.tally.lost
    };
    ledger.opened_by(B, 70);
    assert_eq!(lost(&mut ledger, 70, 9), 9);
    for channel in 100..=100 + ENDED_MAX as u64 {
        ledger.opened_by(B, channel);
        assert_eq!(lost(&mut ledger, channel, 0), 0);
    }
    assert_eq!(ledger.channels.ended.len(), ENDED_MAX);
    assert_eq!(lost(&mut ledger, 70, 9), 9, "it is no whole one that made room");
}

/// A station that stood still came back, and its sender stated the end to a node that had ended the channel
/// as of a silent station. That node confirmed nothing, and the two ends stated different numbers.
#[test]
fn a_sender_that_was_taken_for_dead_and_its_receiver_count_the_same_units_afterwards() {
    let mut ledger = Ledger::new();
    let open = ledger.opened_by(B, 70);
    ledger.sent();
    ledger.gone(B);
    assert_eq!(ledger.closed(), [(open, CloseCause::PeerGone)], "its program hears of it at once");
    let lost = CloseCause::ReservationLost.code();
    let mut close = |from, final_unit| {
        ledger.sent();
        let close =
            Signal { code: lost, final_unit, unsent: 1, ..Signal::new(Verb::Close, ChannelId(70), 1) };
        ledger.signal(from, &close);
        let [(_, ack)] = ledger.signals().try_into().expect("one answer");
        let told = match ledger.channels.next_event() {
            Some(ChannelEvent::Afterwards { channel, stated, tally, sending: false }) => {
                Some((channel, stated.units, stated.unsent, tally.lost))
            }
            _ => None,
        };
        (ended::confirms(&ack), ack.tally.lost, told)
    };
    assert_eq!(close(C, 9), (false, 0, None), "the channel of another station");
    assert_eq!(close(B, 1_000_000), (false, 0, None), "more than there can have been");
    assert_eq!(close(B, 9), (true, 9, Some((open, 9, 1, 9))));
    assert_eq!(close(B, 9), (true, 9, None), "the answer is repeated, and nothing counts twice");
}

/// Its close was repeated before it was back in the ring.
#[test]
fn a_sender_that_is_in_the_ring_again_is_asked_for_the_end() {
    let mut ledger = Ledger::new();
    for (from, channel) in [(B, 70), (C, 71)] {
        ledger.opened_by(from, channel);
        ledger.gone(from);
    }
    ledger.sent();
    ledger.tell(MediumEvent::MemberUp { station: 3 });
    assert_eq!(ledger.sent(), [(C, Verb::Ask)]);
}

#[test]
fn of_more_ends_than_a_sender_can_keep_the_newest_are_repeated() {
    let mut ledger = Ledger::new();
    let ids: Vec<ChannelId> = (0..=ENDED_MAX).map(|_| ledger.open(B)).collect();
    for channel in &mut ledger.channels.outgoing {
        channel.granted.contract.bound_ns = Span::from_millis(40).as_nanos();
        channel.state = Sending::Over;
    }
    ledger.channels.remember_unheard();
    ledger.channels.outgoing.clear();
    let mut answers = |id: ChannelId| {
        ledger.sent();
        ledger.hear(B, Verb::Ask, id);
        ledger.sent()
    };
    assert_eq!(answers(ids[0]), [], "the oldest has made room");
    for id in &ids[1..] {
        let [(_, Verb::Close)] = answers(*id)[..] else { panic!("{id:?} is forgotten") };
    }
}

#[test]
fn the_recent_delay_of_a_report_is_the_longest_of_its_interval_only() {
    let mut ledger = Ledger::new();
    ledger.opened_by(B, 70);
    let mut number = 0;
    let mut interval = |delays: &[u64]| {
        for delay in delays {
            let unit = crate::io::UnitDescriptor {
                number,
                unit_octets: 9,
                fragment: 0,
                fragment_offset: 0,
                last: true,
                schedule_ns: 1_000,
                arrived: Some(Instant::from_nanos(1_000 + delay)),
                left_out: 0,
            };
            number += 1;
            ledger.channels.incoming[0].meter.fragment(&unit, 9, true, Span::ZERO);
        }
        ledger.channels.next_interval();
        let said = ledger.channels.report_of(0, Segment::of(&ledger.port)).expect("one end");
        (said.delay_recent_ns, said.delay_max_ns)
    };
    assert_eq!(interval(&[300, 700, 500]), (700, 700));
    assert_eq!(interval(&[200]), (200, 700));
    assert_eq!(interval(&[]), (0, 700), "nothing came");
}

/// A station that was forgotten because it shared its number is called gone by nobody. The word that the
/// channel is open was sent to no station; after the last time it counted as acknowledged, and its slot was
/// kept.
#[test]
fn a_channel_that_opens_to_a_station_without_a_number_ends() {
    let mut ledger = Ledger::new();
    let id = ledger.open(B);
    ledger.hear(B, Verb::Accept, id);
    ledger.number(0, B);
    let [tht, offset, bound, t_nrt, gap, spare] = [Span::from_millis(1); 6];
    let admitted = Admitted { tht, offset, bound, t_nrt, gap, spare };
    ledger.tell(MediumEvent::Reserved { session: session_of(id), admitted });
    for _ in 0..300 {
        assert_eq!(ledger.repeated(), []);
        ledger.tell_all();
    }
    assert_eq!(ledger.closed(), [(id, CloseCause::PeerGone)]);
    assert!(ledger.channels.outgoing.is_empty());
}

/// Seed 2689718 of the product's timers: two stations had one number, and the ring formed without them. The
/// sender's program was told that its channel to one of them was open.
#[test]
fn a_reservation_in_a_ring_without_its_receiver_opens_no_channel() {
    let mut ledger = Ledger::new();
    let out = ledger.open(B);
    ledger.hear(B, Verb::Accept, out);
    ledger.number(0, B);
    let [tht, offset, bound, t_nrt, gap, spare] = [Span::from_millis(1); 6];
    let admitted = Admitted { tht, offset, bound, t_nrt, gap, spare };
    let reserved = MediumEvent::Reserved { session: session_of(out), admitted };
    ledger.tell(reserved);
    ledger.tell(MediumEvent::Released { session: session_of(out) });
    ledger.tick();
    assert_eq!(ledger.closed(), [(out, CloseCause::PeerGone)]);
    assert!(ledger.channels.outgoing.is_empty());
}
