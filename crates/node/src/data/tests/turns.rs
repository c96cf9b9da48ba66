//! What a turn leaves for the next one, and what the data thread measures of itself.

use super::*;
use rota_proto::GateOrder;

const HOPS: Span = Span::from_millis(10);

#[test]
fn a_node_that_is_told_to_stop_still_says_that_its_mtu_has_changed() {
    let (mut data, _control) = alone();
    let long_ago = now().minus(Span::from_millis(1_000));
    data.work.leave(long_ago, Some(Mtu { port: PortId(0), was: 1_500, is: 9_000 }));
    data.work.leave(long_ago, None);
    assert!(matches!(data.turns(), Err(Stopped::Mtu { was: 1_500, is: 9_000, .. })));
}

/// Without a log only the first one counted.
#[test]
fn a_link_that_goes_down_again_is_news_with_and_without_a_log() {
    for events in [0, 16] {
        let log = (events > 0).then(|| TraceFile::create(events, 0, 0x88b5, &["none"]).expect("memory"));
        let (mut data, _control) = alone_with(log);
        let down = |data: &mut Data<Sink, NoGate>| data.told.tracer.link_down(PortId(0), now());
        assert_eq!([(); 2].map(|()| down(&mut data)), [true, false], "{events}");
        data.arrived(0, None, now(), &[0; 60]);
        assert_eq!([(); 2].map(|()| down(&mut data)), [true, false], "{events}");
    }
}

#[test]
fn a_turn_ends_after_so_many_frames_and_after_so_much_time() {
    let (mut data, _control) = alone();
    let (at, frames) = (now(), data.own_frames);
    let most = frames + FRAMES_OUT_A_TURN as u64;
    data.begin_turn(at);
    assert!(!data.work.is_done(most - 1, at));
    assert!(data.work.is_done(most, at));
    assert!(data.work.is_done(frames, at + Span::from_micros(200)));
}

#[test]
fn while_the_gate_is_to_open_it_is_looked_at_soon_and_the_turn_that_opens_it_has_its_limits() {
    let (mut data, _control) = alone();
    assert_eq!(data.ways[0].host.due(), Instant::FAR);
    data.ways[0].host.diverted = true;
    assert!(data.ways[0].host.order_gate(PortId(0), GateOrder::Pass, &data.waits).is_ok());
    assert!(data.ways[0].host.due() < now() + Span::from_millis(1));
    let give_up = now() + Span::from_millis(15_000);
    while data.ways[0].host.diverted {
        assert!(data.open_gate(0).is_ok() && now() < give_up);
    }
    assert_eq!(data.ways[0].host.due(), Instant::FAR);
    assert!(data.work.is_done(data.own_frames + FRAMES_OUT_A_TURN as u64, now()));
}

/// The gate waits for a pause of the host to open when the token comes back.
#[test]
fn a_gate_that_is_to_open_stays_closed_once_the_token_is_back() {
    let (mut data, _control) = alone();
    let order = |data: &mut Data<Sink, NoGate>, order| {
        assert!(data.ways[0].host.order_gate(PortId(0), order, &data.waits).is_ok());
    };
    order(&mut data, GateOrder::Divert);
    order(&mut data, GateOrder::Pass);
    order(&mut data, GateOrder::Divert);
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert!(data.open_gate(0).is_ok());
    assert!(data.ways[0].host.diverted, "the host paused long enough");
}

#[test]
fn each_doorbell_has_a_name_of_its_own() {
    let (mut data, _control) = alone();
    let (_first, memory) = source(SHORT);
    data.attach(now(), ChannelId(5), memory);
    let (_second, memory) = source(SHORT);
    data.attach(now(), ChannelId(6), memory);
    let sources = &data.rings.sources;
    assert_ne!(sources[0].token, sources[1].token);
}

#[test]
fn hops_that_are_measured_anew_are_summed_from_nothing() {
    let (mut data, _control) = alone();
    let measures = &mut data.measures;
    let at = now();
    measures.measure_hops(at + HOPS);
    assert!(measures.sample().is_some(), "the clock is read while hops are measured");
    measures.on_handled(at, Some(at + HOPS), Some(at + HOPS * 2));
    measures.on_built(at, Some(at + HOPS), Some(at + HOPS * 2));
    measures.on_idle_round(4, HOPS);
    measures.on_hold(1, at, at);
    measures.measure_hops(at + HOPS);
    let counts = measures.counts;
    let parts = [counts.receive_ns, counts.handle_ns, counts.build_ns, counts.transmit_ns];
    assert_eq!((counts.hops_split, parts), (0, [0; 4]));
    assert_eq!((measures.hops.len(), measures.rounds.len()), (0, 0));
}

/// The last round of a measurement begins in its time and ends a little later.
#[test]
fn hops_are_measured_until_the_last_round_is_over() {
    let (mut data, _control) = alone();
    let measures = &mut data.measures;
    let until = now() + HOPS;
    measures.measure_hops(until);
    measures.end_if_over(until + Span::from_millis(200));
    assert!(measures.sample().is_some());
    measures.end_if_over(until + Span::from_millis(201));
    assert!(measures.sample().is_none());
}
