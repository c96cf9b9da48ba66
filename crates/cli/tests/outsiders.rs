//! Stations that stand still for less than they may, and one whose settings differ: nobody's channel ends.

mod common;

use common::Lab;
use common::stream::Stream;
use common::{pid, signal};
use serde_json::Value;
use std::time::Duration;

fn claims(lab: &Lab) -> u64 {
    lab.all().map(|k| lab.status(k)["token"]["claims"].as_u64().unwrap()).sum()
}

/// Fault row 14: each pause is a fifth of the product's death timer.
#[test]
fn stations_that_stand_still_for_less_than_the_death_timer_cost_nobody_a_channel() {
    let Some(lab) = Lab::up("pause", 3) else { return };
    let streams = [Stream::start(&lab, 1, 3), Stream::start(&lab, 2, 3)];
    streams.iter().for_each(Stream::assert_goes_on);
    let before = claims(&lab);
    for k in [1, 2, 3] {
        let process = pid(&lab.status(k));
        signal(process, "STOP");
        std::thread::sleep(Duration::from_millis(100));
        signal(process, "CONT");
        streams.iter().for_each(Stream::assert_goes_on);
    }
    assert_eq!(claims(&lab), before, "somebody took a pause of 100 ms for a death");
}

/// Fault row 32: told at both ends what differs, and no part of what the others do.
#[test]
fn a_station_with_another_cycle_stays_outside_and_both_sides_say_why() {
    let Some(lab) = Lab::without_nodes("skew", 3, &[]) else { return };
    let (_one, _two) = (lab.start_node(1, &[]), lab.start_node(2, &[]));
    for k in [1, 2] {
        let both = |status: &Value| status["members"].as_array().unwrap().len() == 2;
        lab.wait_for_status(k, "the other station", both);
    }
    let stream = Stream::start(&lab, 1, 2);
    stream.assert_goes_on();
    let _three = lab.start_node(3, &["--trt".into(), "20ms".into()]);
    for k in [1, 3] {
        let told = |status: &Value| {
            status["notes"]
                .as_array()
                .unwrap()
                .iter()
                .any(|note| note.as_str().unwrap().contains("does not take part: its cycle (--trt)"))
        };
        let status = lab.wait_for_status(k, "a note about other settings", told);
        let stranger = if k == 1 { "n3" } else { "n1" };
        let knows = status["members"].as_array().unwrap().iter().any(|member| member["name"] == stranger);
        assert!(!knows, "n{k}: {status}");
    }
    stream.assert_goes_on();
    let refused =
        lab.rota(3, &["channel", "open", "--to", "n1", "--service", "9", "--rate", "1mbit", "--probe"]);
    assert!(refused.code() == 5 && refused.err.contains("no station 'n1'"), "{refused:?}");
    stream.assert_goes_on();
}
