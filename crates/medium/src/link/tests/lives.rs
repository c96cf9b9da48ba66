//! Lives of flows that begin or end while something else is asked for.

use super::super::booked::STARTS_MAX;
use super::*;

/// The place of the session that asked was that of another one by then, or none.
#[test]
fn a_request_at_the_moment_at_which_the_life_of_another_flow_ends_is_decided() {
    let mut bench = Bench::quiet(10);
    assert!(flow_during(&mut bench, 90, 100, Life::ALWAYS).is_ok());
    let end = bench.now + ms(200);
    assert!(flow_during(&mut bench, 91, 100, Life { from: Instant::ZERO, until: end }).is_ok());
    bench.run(end.since(bench.now).minus(ms(1)));
    let traffic = Traffic::periodic(ms(100)).expect("sound");
    let share = share_of(FlowShare::guaranteed(traffic));
    bench.link.reserve(end, SessionId(92), share);
    assert!(!bench.link.has_share(SessionId(91)) && bench.link.has_share(SessionId(92)));
}

/// A request is tested at each start of what is booked, on the data thread.
#[test]
fn so_many_starts_are_booked_and_no_more() {
    let mut bench = Bench::quiet(10);
    assert!(flow_during(&mut bench, 90, 1_000, Life::ALWAYS).is_ok());
    let from = |bench: &Bench, at: u64| Life { from: bench.now + ms(60_000 + at), until: Instant::FAR };
    let first = from(&bench, 0);
    for at in 0..STARTS_MAX as u64 {
        let life = if at == 0 { first } else { from(&bench, at) };
        assert!(flow_during(&mut bench, 100 + at, 1_000, life).is_ok(), "{at}");
    }
    let more = from(&bench, 999);
    assert!(flow_during(&mut bench, 200, 1_000, more).is_err());
    assert!(flow_during(&mut bench, 201, 1_000, first).is_ok(), "a start that is there already");
}

/// The host's slack is a term of its own in a certificate, for those that count later, too.
#[test]
fn a_certificate_has_the_bounds_of_booked_flows_on_the_port() {
    let mut bench = Bench::quiet(10);
    let slack = bench.link.settings.link.host_slack;
    let life = Life { from: bench.now + ms(60_000), until: bench.now + ms(90_000) };
    let booked = flow_during(&mut bench, 101, 20, life).expect("room").bound;
    let stands = flow_during(&mut bench, 102, 20, Life::ALWAYS).expect("room").bound;
    let port = bench.link.port_of(bench.now, SessionId(102)).expect("a flow");
    let bound = |is_later: bool| {
        port.flows.iter().find(|flow| (flow.life.from > Span::ZERO) == is_later).expect("one").delay
    };
    assert!(slack > Span::ZERO);
    assert_eq!((bound(true), bound(false)), (booked.minus(slack), stands.minus(slack)));
}
