//! Probes: the contract of a channel that is not opened.

use crate::lan::Lan;
use rota_contract::AskedTerms;
use rota_proto::ModeName;
use rota_units::Span;

fn listen_again(lan: &mut Lan) {
    let (k, listener) = lan.returned.take().expect("the listener has no channel");
    lan.nodes[k].listen_again(listener);
}

/// A probe once took the channel that the receiver listened for.
#[test]
fn probes_hear_the_contract_and_leave_the_listener_to_a_channel() {
    let mut lan = Lan::plain(3);
    lan.nodes[1].listen(7);
    for round in 0..3 {
        lan.probe(0, 1, 1_000);
        lan.run(Span::from_millis(1_500));
        let granted = lan.probed.take().expect("it is answered").expect("it fits");
        listen_again(&mut lan);
        assert_eq!(granted.contract.unit_octets_max, 1_000);
        assert!(granted.bound() > Span::ZERO && granted.tht() > Span::ZERO, "{round}: {granted:?}");
        assert!(!lan.opened && !lan.refused);
    }
    // One that is refused leaves it too.
    lan.probe(2, 1, 100_000);
    lan.run(Span::from_millis(1_500));
    assert!(lan.refused && lan.probed.is_none());
    listen_again(&mut lan);
    // Nothing is reserved any more: the segment is plain again.
    lan.run(Span::from_millis(5_000));
    assert!(lan.nodes.iter().all(|node| node.rether().mode() == ModeName::Plain));
    lan.request(2, 1);
    lan.run(Span::from_millis(1_500));
    assert!(lan.opened, "the listener waits for a channel");
}

/// A delay that the segment cannot keep is refused with the one that it can, and its receiver is left alone.
#[test]
fn a_channel_of_one_segment_opens_only_within_the_delay_that_is_borne() {
    let mut lan = Lan::plain(3);
    lan.nodes[1].listen(7);
    let ask = |lan: &mut Lan, terms: AskedTerms| {
        let channel = lan.request(0, 1);
        lan.nodes[0].keep_within(channel, &terms);
        lan.run(Span::from_millis(1_500));
        lan.probed.take().map(|denied| denied.expect_err("it is no probe"))
    };
    let ms = |ms| Some(Span::from_millis(ms));
    let denied =
        ask(&mut lan, AskedTerms { delay: ms(20), ..AskedTerms::default() }).expect("a cycle is longer");
    assert_eq!((denied.test.name(), denied.node), ("PathDelay", crate::lan::node_id(0)));
    assert_eq!(denied.nearest_delay_ns, 20_000_000 + denied.margin_ns);
    assert!(!lan.opened && !lan.refused);
    listen_again(&mut lan);
    let nearest = Some(Span::from_nanos(denied.nearest_delay_ns));
    let denied = ask(&mut lan, AskedTerms { delay: nearest, jitter: ms(20), ..AskedTerms::default() });
    let denied = denied.expect("a unit may wait for a cycle, or for none");
    assert_eq!((denied.test.name(), denied.nearest_delay_ns), ("PathJitter", 0));
    listen_again(&mut lan);
    let jitter = Some(Span::from_nanos(denied.nearest_jitter_ns));
    assert_eq!(ask(&mut lan, AskedTerms { delay: nearest, jitter, ..AskedTerms::default() }), None);
    assert!(lan.opened, "the nearest request fits");
}
