//! Units that never left, of a channel that its receiver ended.

use super::*;

/// The receiver's node had reported three lost units, and never heard of the sender's statement. Two units
/// that never left were said to have come.
#[test]
fn units_that_never_left_are_lost_where_the_receiver_ended_the_channel() {
    let mut ledger = Ledger::new();
    let out = ledger.open(C);
    ledger.channels.outgoing[0].state = Sending::Open { telling: None };
    for number in 0..5 {
        ledger.channels.note_offer(out, &UnitRef { number, octets: 9, schedule_ns: 0, left_out: 0 });
        ledger.channels.count_unit(out, 9, 1_400);
    }
    ledger.channels.state(out, Stated { units: 7, left_out: 0, unsent: 0 });
    let tally = Tally { units: 2, lost: 3, ..Tally::default() };
    let code = CloseCause::ReceiverClosed.code();
    for verb in [Verb::Tally, Verb::Refuse] {
        let said = Signal { code, tally, ..Signal::new(verb, out, 1) };
        ledger.signal(C, &said);
    }
    ledger.tell(MediumEvent::Released { session: session_of(out) });
    // It answers the close with the counts that it had without the sender's statement.
    let ack = Signal { code: CloseCause::PeerGone.code(), tally, ..Signal::new(Verb::CloseAck, out, 1) };
    ledger.signal(C, &ack);
    let closed = core::iter::from_fn(|| ledger.channels.next_event()).find_map(|event| match event {
        ChannelEvent::Closed { stated, tally, .. } => Some((stated, tally.units, tally.lost)),
        _ => None,
    });
    let stated = Stated { units: 7, left_out: 0, unsent: 2 };
    assert_eq!(closed, Some((Some(stated), 2, 5)));
}

/// A unit that its program left out stood in no count of either node; nor did a last unit that never left.
#[test]
fn units_that_never_left_are_lost_at_both_ends() {
    let mut ledger = Ledger::new();
    let out = ledger.open(C);
    let told = |ledger: &mut Ledger| {
        let events = core::iter::from_fn(|| ledger.channels.next_event());
        let lost = |event| match event {
            ChannelEvent::Told { tally, .. } | ChannelEvent::Closed { tally, .. } => Some(tally.lost),
            _ => None,
        };
        events.filter_map(lost).collect::<Vec<u64>>()
    };
    let offer = |ledger: &mut Ledger, number, left_out| {
        ledger.channels.note_offer(out, &UnitRef { number, octets: 9, schedule_ns: 0, left_out });
        ledger.channels.count_unit(out, 9, 1_400);
    };
    offer(&mut ledger, 0, 0);
    offer(&mut ledger, 15, 14);
    assert_eq!(told(&mut ledger), [14], "at once");
    // The receiver's report has them, or not yet.
    for (reported, known) in [(3, 14), (16, 16)] {
        let tally = rota_contract::Tally { lost: reported, ..rota_contract::Tally::default() };
        let report = Signal { tally, ..Signal::new(Verb::Tally, out, 1) };
        ledger.signal(C, &report);
        assert_eq!(told(&mut ledger), [known]);
    }
    // Two wait in the ring, and three more were left out, when the program dies.
    ledger.channels.state(out, Stated { units: 21, left_out: 17, unsent: 0 });
    assert_eq!(told(&mut ledger), [17]);
    ledger.sent();
    ledger.channels.begin_closing(ledger.now, out, CloseCause::SenderDied, false);
    ledger.tick();
    let (_, close) =
        ledger.signals().into_iter().find(|(_, sent)| sent.verb == Verb::Close).expect("a close");
    assert_eq!((close.final_unit, close.left_out, close.unsent), (21, 17, 2));
    ledger.gone(C);
    ledger.tick();
    assert_eq!(told(&mut ledger), [19], "no receiver counts any more: 17 and the two that waited");
    // At the receiver.
    ledger.opened_by(B, 70);
    ledger.signal(B, &Signal { channel: ChannelId(70), ..close });
    assert_eq!(told(&mut ledger), [21], "nothing came");
}

/// A wire had lost three of five units before the receiver fell silent, and two waited in the ring.
#[test]
fn units_that_never_left_are_lost_beside_those_that_the_wire_had_lost() {
    let mut ledger = Ledger::new();
    let out = ledger.open(C);
    for number in 0..5 {
        ledger.channels.note_offer(out, &UnitRef { number, octets: 9, schedule_ns: 0, left_out: 0 });
        ledger.channels.count_unit(out, 9, 1_400);
    }
    let report =
        Signal { tally: Tally { units: 2, lost: 3, ..Tally::default() }, ..Signal::new(Verb::Tally, out, 1) };
    ledger.signal(C, &report);
    ledger.channels.state(out, Stated { units: 7, left_out: 0, unsent: 0 });
    ledger.gone(C);
    ledger.tell(MediumEvent::Released { session: session_of(out) });
    let closed = core::iter::from_fn(|| ledger.channels.next_event()).find_map(|event| match event {
        ChannelEvent::Closed { stated, tally, .. } => Some((stated, tally.units, tally.lost)),
        _ => None,
    });
    let stated = Stated { units: 7, left_out: 0, unsent: 2 };
    assert_eq!(closed, Some((Some(stated), 2, 5)));
}
