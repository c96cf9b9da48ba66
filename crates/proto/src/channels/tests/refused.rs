//! Counts that a station with the key invents.

use super::*;

/// One report of 2^64 − 1 units made the counts of a channel void; its incident named an innocent program.
#[test]
fn counts_that_contradict_the_sender_are_refused() {
    let mut ledger = Ledger::new();
    let out = ledger.open(B);
    ledger.channels.outgoing[0].state = Sending::Open { acknowledged: true };
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
        let told = Signal { tally, ..Signal::new(verb, out.0, 1) };
        ledger.channels.on_signal(ledger.now, B, &told, &mut ledger.link);
        assert_eq!(ledger.channels.outgoing[0].meter.tally, none, "{tally:?}");
        assert_eq!(ledger.link.counters().tallies_refused, at as u64 + 1, "{tally:?}");
    }
    let true_one = Tally { units: 6, late: 2, lost: 3, incomplete: 1, latest_by_ns: 900, unread: 2 };
    let told = Signal { tally: true_one, ..Signal::new(Verb::Tally, out.0, 1) };
    ledger.channels.on_signal(ledger.now, B, &told, &mut ledger.link);
    assert_eq!(ledger.channels.outgoing[0].meter.tally, true_one);
    // A lie at the end confirms nothing, and the channel ends all the same.
    ledger.channels.outgoing[0].state = Sending::Closing;
    let end = Signal { tally: Tally { lost: all, ..none }, ..Signal::new(Verb::CloseAck, out.0, 1) };
    ledger.channels.on_signal(ledger.now, B, &end, &mut ledger.link);
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
        let told = |tally| Signal { tally, ..Signal::new(Verb::Tally, out.0, 1) };
        ledger.channels.on_signal(ledger.now, B, &told(tally), &mut ledger.link);
        assert_eq!(ledger.channels.outgoing[0].meter.tally, tally, "{dues:?}");
        let lie = told(Tally { latest_by_ns: 60_000_000_000, ..tally });
        ledger.channels.on_signal(ledger.now, B, &lie, &mut ledger.link);
        assert_eq!(ledger.link.counters().tallies_refused, 1, "{dues:?}");
    }
}
