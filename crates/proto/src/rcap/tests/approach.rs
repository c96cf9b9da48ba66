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
    let expected = [RcapOutput::Prepare { of: of(1, 1), hop, until: at(510) }, further];
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

fn closed(of: RcapChannel, to: NodeId, node: NodeId) -> RcapOutput {
    let close = RcapClose { cause: CloseCause::Refused, node };
    RcapOutput::Send { to, message: octets(of, RcapBody::CloseForward(close)) }
}

/// It kept a ring for two seconds, with a slot of one octet.
#[test]
fn a_request_that_is_refused_before_it_goes_on_takes_its_word_back() {
    let word_of = |rcap: &mut Rcap| heard(rcap, A, &word(of(1, 1), D, &[A], &[]));
    let forgo = || RcapOutput::Forgo { of: of(1, 1) };
    // A node before has refused it, and says so by the way of the word.
    let mut rcap = b();
    word_of(&mut rcap);
    let close = octets(of(1, 1), RcapBody::CloseForward(RcapClose { cause: CloseCause::Refused, node: A }));
    rcap.on_message(at(11), C, &close).unwrap();
    assert_eq!((drain(&mut rcap), rcap.counters().stray), (vec![], 1), "not from there");
    rcap.on_message(at(12), A, &close).unwrap();
    assert_eq!(drain(&mut rcap), [forgo(), closed(of(1, 1), C, A)]);
    rcap.on_message(at(13), A, &close).unwrap();
    assert_eq!((drain(&mut rcap), rcap.counters().stray), (vec![], 2), "once");
    // This node refuses it, with an entry or without one.
    let (mut rcap, request) = (b(), request_of(of(1, 1), ask(D), &[A], ms(9)));
    word_of(&mut rcap);
    rcap.on_message(at(15), A, &request).unwrap();
    let entry = reserved(&drain(&mut rcap)).unwrap();
    rcap.denied(at(16), entry, HopDenied::new(RcapTest::RetherShare, ms(1)));
    let outputs = drain(&mut rcap);
    assert!(outputs.contains(&forgo()) && outputs.contains(&closed(of(1, 1), C, B)), "{outputs:?}");
    let mut rcap = machine(RcapLimits { entries: 0, ..RcapLimits::default() });
    word_of(&mut rcap);
    rcap.on_message(at(15), A, &request).unwrap();
    let outputs = drain(&mut rcap);
    assert!(outputs.contains(&forgo()) && outputs.contains(&closed(of(1, 1), C, B)), "{outputs:?}");
}

/// It took the word over, with a word of its own or a request that cannot be, and then took it back.
#[test]
fn another_neighbour_neither_takes_a_word_over_nor_takes_it_back() {
    let mut rcap = b();
    heard(&mut rcap, A, &word(of(1, 1), D, &[A], &[]));
    assert_eq!(heard(&mut rcap, C, &word(of(1, 1), D, &[A, C], &[])), []);
    assert_eq!(rcap.counters().stray, 1);
    let refused = request_of(of(1, 1), ask(D), &[A, B, C], ms(9));
    rcap.on_message(at(11), C, &refused).unwrap();
    let outputs = drain(&mut rcap);
    assert!(!outputs.contains(&RcapOutput::Forgo { of: of(1, 1) }), "{outputs:?}");
    assert!(rcap.has_word(&of(1, 1), A));
}

#[test]
fn a_request_that_goes_on_follows_its_word_and_one_to_another_node_takes_it_back() {
    let mut rcap = b();
    heard(&mut rcap, A, &word(of(1, 1), D, &[A], &[]));
    rcap.on_message(at(15), A, &request_of(of(1, 1), ask(D), &[A], ms(9))).unwrap();
    let entry = reserved(&drain(&mut rcap)).unwrap();
    rcap.reserved(at(16), entry, hop());
    let outputs = drain(&mut rcap);
    assert!(matches!(outputs[..], [RcapOutput::Send { to: C, .. }]), "the request alone: {outputs:?}");
    // The way was another one when the word came.
    let mut rcap = b();
    heard(&mut rcap, A, &word(of(1, 1), D, &[A], &[]));
    rcap.on_message(at(15), A, &request_of(of(1, 1), ask(C), &[A], ms(9))).unwrap();
    let entry = reserved(&drain(&mut rcap)).unwrap();
    rcap.follows(&of(1, 1), A);
    let outputs = drain(&mut rcap);
    assert_eq!(outputs, [RcapOutput::Forgo { of: of(1, 1) }, closed(of(1, 1), C, B)], "{entry:?}");
}

/// It took the word of its source's death for that of a request that was refused, while the lease ran.
#[test]
fn a_destination_forgets_the_word_when_the_request_has_come() {
    let mut rcap = b();
    assert_eq!(heard(&mut rcap, A, &word(of(1, 1), B, &[A], &[])), []);
    assert!(rcap.has_word(&of(1, 1), A));
    rcap.on_message(at(15), A, &request_of(of(1, 1), ask(B), &[A], ms(9))).unwrap();
    drain(&mut rcap);
    assert!(!rcap.has_word(&of(1, 1), A));
}

/// The close does not pass: the lease ends what was prepared, and a word of it is forgotten then.
#[test]
fn a_word_that_is_not_taken_back_is_forgotten_with_its_lease() {
    let mut rcap = b();
    heard(&mut rcap, A, &word(of(1, 1), D, &[A], &[]));
    rcap.neighbour_lost(at(20), A);
    rcap.neighbour_up(at(21), A);
    assert_eq!(drain(&mut rcap), []);
    rcap.on_message(at(520), A, &word(of(2, 1), D, &[A], &[])).unwrap();
    drain(&mut rcap);
    assert!(!rcap.has_word(&of(1, 1), A) && rcap.has_word(&of(2, 1), A));
}
