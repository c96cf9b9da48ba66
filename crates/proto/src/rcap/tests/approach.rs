//! Words that go ahead of requests.

use super::*;
use rota_wire::RcapApproach;

fn word(of: RcapChannel, destination: NodeId, passed: &[NodeId], via: &[NodeId]) -> Vec<u8> {
    let [passed, via] = [passed, via].map(RcapRoute::written);
    let [passed, via] = [&passed, &via].map(|nodes| RcapRoute::parse(nodes).unwrap());
    let (lease_ns, around) = (ms(500).as_nanos(), RcapRoute::default());
    octets(of, RcapBody::Approach(RcapApproach { destination, lease_ns, passed, via, around }))
}

/// The answer of the machine to a word: the hop that is prepared, and the word that goes on.
fn heard(rcap: &mut Rcap, from: NodeId, word: &[u8]) -> Vec<RcapOutput> {
    rcap.on_message(at(10), from, word).unwrap();
    let outputs = drain(rcap);
    assert_eq!((rcap.entries().count(), rcap.deadline()), (0, Instant::FAR), "nothing is reserved");
    outputs
}

#[test]
fn a_word_is_passed_on_at_once_and_reserves_nothing() {
    let (mut rcap, hop) = (b(), NextHop { node: C, port: PortId(3) });
    let further = RcapOutput::Send { to: C, message: word(of(1, 1), D, &[A, B], &[]) };
    let expected = [RcapOutput::Prepare { hop, until: at(510) }, further];
    for _ in 0..2 {
        assert_eq!(heard(&mut rcap, A, &word(of(1, 1), D, &[A], &[])), expected, "and again");
    }
    // One for this node has nothing to prepare.
    assert_eq!(heard(&mut rcap, A, &word(of(1, 1), B, &[A], &[])), []);
}

#[test]
fn a_word_that_cannot_be_true_does_nothing() {
    let mut rcap = b();
    let of = of(1, 1);
    // From a stranger, by a wrong sender, with another origin, in a circle, and to nobody.
    assert_eq!(heard(&mut rcap, D, &word(of, C, &[A, D], &[])), []);
    assert_eq!(heard(&mut rcap, C, &word(of, D, &[A], &[])), []);
    assert_eq!(heard(&mut rcap, A, &word(of, D, &[C, A], &[])), []);
    assert_eq!(heard(&mut rcap, C, &word(of, D, &[A, B, C], &[])), []);
    assert_eq!(heard(&mut rcap, A, &word(of, NodeId(9), &[A], &[])), []);
    assert_eq!(heard(&mut rcap, A, &word(of, D, &[A], &[NodeId(9)])), [], "no way leads through 9");
    assert_eq!(rcap.counters().stray, 4);
}

#[test]
fn the_request_makes_its_word_needless() {
    let mut rcap = b();
    rcap.on_message(at(5), A, &request(1, 1)).unwrap();
    drain(&mut rcap);
    rcap.on_message(at(10), A, &word(of(1, 1), C, &[A], &[])).unwrap();
    assert_eq!(drain(&mut rcap), []);
    rcap.neighbour_lost(at(20), A);
    drain(&mut rcap);
    rcap.neighbour_up(at(21), A);
    rcap.on_message(at(22), A, &word(of(1, 1), C, &[A], &[])).unwrap();
    assert_eq!((drain(&mut rcap), rcap.counters().repeated), (vec![], 2), "that attempt has ended");
}

/// The word is sent while the medium decides, and at no other time.
#[test]
fn a_node_whose_medium_takes_its_time_sends_a_word() {
    let mut rcap = b();
    rcap.on_message(at(5), A, &request(1, 1)).unwrap();
    let Some(RcapOutput::Reserve { entry, .. }) = drain(&mut rcap).pop() else { panic!("it asks") };
    rcap.takes_time(at(7), entry);
    let outputs = drain(&mut rcap);
    let [RcapOutput::Send { to: C, message }] = &outputs[..] else { panic!("{outputs:?}") };
    let RcapBody::Approach(approach) = RcapMessage::parse(message).unwrap().body else { panic!("a word") };
    assert_eq!(approach.passed.iter().collect::<Vec<_>>(), [A, B]);
    assert_eq!(approach.via, RcapRoute::default());
    rcap.reserved(at(8), entry, hop());
    drain(&mut rcap);
    rcap.takes_time(at(9), entry);
    assert_eq!(drain(&mut rcap), [], "its medium has answered");
}
