//! Counts that a station with the key invents.

use super::*;

/// One report of 2^64 − 1 units made the counts of a channel void; its incident named an innocent program.
#[test]
fn counts_that_contradict_the_sender_are_refused() {
    let mut ledger = Ledger::new();
    let out = ledger.open(B);
    ledger.channels.outgoing[0].state = Sending::Open { telling: None };
    ledger.channels.state(out, Stated { units: 10, left_out: 1, unsent: 0 });
    let (none, all) = (Tally::default(), u64::MAX);
    let lies = [
        Tally { units: all, ..none },
        Tally { lost: all, ..none },
        Tally { units: 6, lost: 4, incomplete: 1, ..none },
        Tally { late: 11, ..none },
        Tally { lost: 2, unread: 3, ..none },
        Tally { late: 1, latest_by_ns: all, ..none },
        Tally { units: all, late: all, lost: all, incomplete: all, latest_by_ns: all, unread: all },
    ];
    for (at, tally) in lies.into_iter().enumerate() {
        let verb = [Verb::Tally, Verb::Ask][at % 2];
        let told = Signal { tally, ..Signal::new(verb, out, 1) };
        ledger.signal(B, &told);
        assert_eq!(ledger.channels.outgoing[0].meter.tally, none, "{tally:?}");
        assert_eq!(ledger.port.counters().tallies_refused, at as u64 + 1, "{tally:?}");
    }
    let true_one = Tally { units: 6, late: 2, lost: 3, incomplete: 1, latest_by_ns: 900, unread: 2 };
    let told = Signal { tally: true_one, ..Signal::new(Verb::Tally, out, 1) };
    ledger.signal(B, &told);
    assert_eq!(ledger.channels.outgoing[0].meter.tally, true_one);
    // A lie at the end confirms nothing, and the channel ends all the same.
    ledger.channels.outgoing[0].state = Sending::Closing(Repeats::from(ledger.now));
    let end = Signal { tally: Tally { lost: all, ..none }, ..Signal::new(Verb::CloseAck, out, 1) };
    ledger.signal(B, &end);
    let told: Vec<_> = core::iter::from_fn(|| ledger.channels.next_event()).collect();
    let all = |tally: &Tally| tally.units + tally.lost + tally.incomplete;
    let ended =
        |event: &ChannelEvent| matches!(event, ChannelEvent::Closed { tally, .. } if all(tally) == 10);
    assert!(told.iter().any(ended), "{told:?}");
}

/// A receiver takes the unit that left longest before its schedule for the quickest, and the others for late.
/// Such a true report was refused.
#[test]
fn counts_of_units_that_left_before_their_schedules_are_believed() {
    let second = Span::from_millis(1_000);
    for (dues, after) in [([5, 1], 2), ([60, 60], 5)] {
        let mut ledger = Ledger::new();
        let out = ledger.open(B);
        for (number, due) in dues.into_iter().enumerate() {
            let schedule_ns = (ledger.now + second * due).as_nanos();
            let unit = UnitRef { number: number as u64, octets: 9, schedule_ns, left_out: 0 };
            ledger.channels.note_offer(out, &unit);
        }
        ledger.now += second * after;
        let tally = Tally { units: 2, late: 1, latest_by_ns: 4_900_000_000, ..Tally::default() };
        let told = |tally| Signal { tally, ..Signal::new(Verb::Tally, out, 1) };
        ledger.signal(B, &told(tally));
        assert_eq!(ledger.channels.outgoing[0].meter.tally, tally, "{dues:?}");
        let lie = told(Tally { latest_by_ns: 60_000_000_000, ..tally });
        ledger.signal(B, &lie);
        assert_eq!(ledger.port.counters().tallies_refused, 1, "{dues:?}");
    }
}

/// The end of the newest channel that B has opened to here, with these units stated at it: the units that are
/// stated to the program, those that count as lost, and the answer's code.
fn ends_with(ledger: &mut Ledger, stated: Stated) -> (Option<Stated>, u64, u8) {
    let Stated { units: final_unit, left_out, unsent } = stated;
    let unsent = u32::try_from(unsent).expect("32 bits on the wire");
    let close = Signal { final_unit, left_out, unsent, ..Signal::new(Verb::Close, ChannelId(70), 1) };
    ledger.signals();
    ledger.signal(B, &close);
    let ended = core::iter::from_fn(|| ledger.channels.next_event()).find_map(|event| match event {
        ChannelEvent::Closed { stated, tally, .. } => Some((stated, tally.lost)),
        _ => None,
    });
    let (stated, lost) = ended.expect("it has ended");
    (stated, lost, ledger.signals().pop().expect("an answer").1.code)
}

/// A channel that B has opened to here, with so many units a cycle.
fn opened(ledger: &mut Ledger, units: u64) {
    ledger.opened_by(B, 70);
    let cycle = ledger.port.medium().settings().trt;
    let period = Span::from_nanos(cycle.as_nanos().div_ceil(units));
    ledger.channels.incoming[0].granted.contract.period_ns = period.as_nanos();
}

/// One close of 2^64 - 1 units, and the receiver had lost as many.
#[test]
fn a_close_of_more_units_than_had_slots_ends_the_channel_and_states_nothing() {
    let all = u64::MAX;
    let lies = [
        Stated { units: all, left_out: 0, unsent: 0 },
        Stated { units: all, left_out: all, unsent: 0 },
        Stated { units: all, left_out: all - 5, unsent: 0 },
        Stated { units: 9, left_out: 10, unsent: 0 },
        Stated { units: 9, left_out: 5, unsent: 5 },
        // Ten cycles, twice as many if they begin early, two more, and what may have waited.
        Stated { units: 22 + 64 + 1, left_out: 0, unsent: 0 },
        Stated { units: 22 + 64 + 1, left_out: 0, unsent: 64 },
    ];
    for lie in lies {
        let mut ledger = Ledger::new();
        opened(&mut ledger, 1);
        ledger.now += ledger.port.medium().settings().trt * 10;
        assert_eq!(ends_with(&mut ledger, lie), (None, 0, CloseCause::PeerGone.code()), "{lie:?}");
        assert_eq!(ledger.port.counters().tallies_refused, 1, "{lie:?}");
    }
}

/// As many as there can be, of a program that had no channel for a while as well, and after a day on a clock
/// that is quicker by a tenth of a thousandth.
#[test]
fn a_close_of_as_many_units_as_there_may_have_been_is_believed() {
    let day = Span::from_millis(24 * 3_600_000);
    let ten = Ledger::new().port.medium().settings().trt * 10;
    let cycles = day.count_down(ten) * 10;
    for (per_cycle, age, units, left_out) in [
        (1, ten, 12 + 64, 0),
        (3, ten, 3 * 12 + 64, 0),
        (1, Span::ZERO, 1, 0),
        (1, Span::ZERO, 100_000, 100_000),
        (1, day, cycles + cycles / 10_000, 0),
    ] {
        let mut ledger = Ledger::new();
        opened(&mut ledger, per_cycle);
        ledger.now += age;
        let stated = Stated { units, left_out, unsent: 0 };
        let counted = (Some(stated), units, CloseCause::Finished.code());
        assert_eq!(ends_with(&mut ledger, stated), counted, "{age}");
        assert_eq!(ledger.port.counters().tallies_refused, 0, "{age}");
    }
}

/// Its receiver does not want a channel: the sender hears so before it has reserved anything.
#[test]
fn a_channel_that_its_receiver_does_not_want_is_refused_before_it_opens() {
    let mut ledger = Ledger::new();
    ledger.channels.listen(Listener { id: 70, service: 5, from: None });
    ledger.hear(B, Verb::Connect, ChannelId(70));
    let id = ledger.channels.incoming[0].id;
    ledger.signals();
    ledger.channels.deny(id);
    ledger.carry();
    let (to, refuse) = ledger.signals().pop().expect("a word to the sender");
    assert_eq!((to, refuse.verb, refuse.code), (B, Verb::Refuse, CloseCause::ReceiverClosed.code()));
    assert!(ledger.channels.incoming.is_empty());
    // The same word at a sender.
    let out = ledger.open(C);
    ledger.signal(C, &Signal { code: refuse.code, ..Signal::new(Verb::Refuse, out, 1) });
    let told: Vec<_> = core::iter::from_fn(|| ledger.channels.next_event()).collect();
    let is_told = |event: &ChannelEvent| match event {
        ChannelEvent::Closed { channel, cause, .. } => {
            (*channel, *cause) == (out, CloseCause::ReceiverClosed)
        }
        _ => false,
    };
    assert!(told.iter().any(is_told), "{told:?}");
    // One that was accepted is not refused any more.
    let taken = ledger.opened_by(B, 71);
    ledger.channels.deny(taken);
    assert_eq!(ledger.channels.incoming.len(), 1);
}
