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
        ledger.channels.count_unit(out, 1_400);
    }
    ledger.channels.state(out, Stated { units: 7, left_out: 0, unsent: 0 });
    let tally = Tally { units: 2, lost: 3, ..Tally::default() };
    let code = CloseCause::ReceiverClosed.code();
    for verb in [Verb::Tally, Verb::Refuse] {
        let said = Signal { code, tally, ..Signal::new(verb, out.0, 1) };
        ledger.signal(C, &said);
    }
    ledger.tell(LinkEvent::Released { channel: out });
    // It answers the close with the counts that it had without the sender's statement.
    let ack = Signal { code: CloseCause::PeerGone.code(), tally, ..Signal::new(Verb::CloseAck, out.0, 1) };
    ledger.signal(C, &ack);
    let closed = core::iter::from_fn(|| ledger.channels.next_event()).find_map(|event| match event {
        ChannelEvent::Closed { stated, tally, .. } => Some((stated, tally.units, tally.lost)),
        _ => None,
    });
    let stated = Stated { units: 7, left_out: 0, unsent: 2 };
    assert_eq!(closed, Some((Some(stated), 2, 5)));
}
