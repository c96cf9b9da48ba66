//! Periods that are not the cycle's, and reservations that change, as a user meets them.

mod common;

use common::{Lab, testdata};
use serde_json::Value;

#[test]
fn units_of_twice_and_of_half_a_cycle_arrive_whole() {
    let Some(lab) = Lab::up("periods", 5) else { return };
    let clip = testdata("clip.h264");
    let send = |from: u8, service: &str, period: &str, frames: &str| {
        let words =
            ["send", "--overdue", "keep", "--json", "--to", "n5", "--service", service, "--video", &clip];
        lab.start(from, &[&words[..], &["--period", period, "--frames", frames]].concat())
    };
    let receivers = [lab.receiver(5, "1", &[]), lab.receiver(5, "2", &[])];
    let senders = [send(1, "1", "66666666ns", "30"), send(2, "2", "16666666ns", "120")];
    for (sender, (units, period, cycles)) in
        senders.into_iter().zip([(30, 66_666_666, 2), (120, 16_666_667, 1)])
    {
        let sent = sender.finish().carried().json();
        assert_eq!((&sent["sent"], &sent["promise"]["period_ns"]), (&units.into(), &period.into()), "{sent}");
        let bound = sent["promise"]["bound_ns"].as_u64().unwrap();
        assert!(bound > 33_333_333 * cycles && bound < 33_333_333 * (cycles + 1), "{sent}");
    }
    for (receiver, units) in receivers.into_iter().zip([30, 120]) {
        let received = receiver.finish().carried().json();
        let told = |key: &str| received[key].as_u64();
        assert_eq!((told("complete"), told("incomplete")), (Some(units), Some(0)), "{received}");
    }
    let wrong = lab.rota(1, &["channel", "open", "--to", "n5", "--rate", "1mbit", "--period", "1ms"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.err);
    assert!(wrong.err.contains("is too short"), "{}", wrong.err);
    // 25 frames a second: a period that is no multiple and no whole part of the cycle.
    let _receiver = lab.receiver(5, "7", &[]);
    let open = |json: &[&str]| {
        let words = ["channel", "open", "--to", "n5", "--service", "7", "--rate", "1mbit", "--probe"];
        lab.rota(1, &[&words[..], &["--period", "40ms"], json].concat()).well()
    };
    let (text, contract) = (open(&[]).out, open(&["--json"]).json());
    assert!(text.contains("1 unit reserved in each cycle of 33.333 ms, 20.0 % more"), "{text}");
    // The channel itself was opened without a word of it.
    let words =
        ["send", "--to", "n5", "--service", "7", "--video", &clip, "--period", "40ms", "--frames", "3"];
    let sent = lab.rota(1, &[&words[..], &["--json"]].concat()).carried();
    assert!(sent.err.contains("; 1 unit reserved in each cycle of 33.333 ms, 20.0 % more"), "{}", sent.err);
    assert_eq!(sent.json()["promise"]["extra_ppm"], 200_000, "{}", sent.out);
    let contract = contract["contract"].clone();
    let told = |key: &str| contract[key].as_u64();
    let share = |key: &str| contract["rether"][key].as_u64();
    assert_eq!((told("period_ns"), share("reserved_units")), (Some(40_000_000), Some(1)), "{contract}");
    assert_eq!((share("reserved_cycles"), told("extra_ppm")), (Some(1), Some(200_000)), "{contract}");
}

/// The only channel that station 1 sends on.
fn channel(lab: &Lab) -> Value {
    let list = lab.rota(1, &["channel", "list", "--json"]).well().json();
    list["channels"].as_array().unwrap().iter().find(|channel| channel["sending"] == true).unwrap().clone()
}

#[test]
fn a_channel_grows_and_shrinks_by_hand_and_a_refusal_leaves_it_as_it_was() {
    let Some(lab) = Lab::up("grow", 5) else { return };
    let _receivers = [lab.receiver(5, "0", &[]), lab.receiver(5, "0", &[])];
    let hold = |from: u8| {
        let words = ["channel", "open", "--to", "n5", "--rate", "1mbit", "--room", "9mbit", "--json"];
        let program = lab.start(from, &words);
        lab.wait_for_status(from, "the reservation", |status| {
            let name = format!("n{from}");
            status["reservations"].as_array().unwrap().iter().any(|slot| slot["name"] == *name)
        });
        program
    };
    let _held = [hold(1), hold(2)];
    let before = channel(&lab);
    let id = before["channel"].as_str().unwrap().to_owned();
    let modify = |rate: &str| lab.rota(1, &["channel", "modify", &id, "--rate", rate, "--json"]);
    let grown = modify("3mbit").well().json();
    let units = |contract: &Value| contract["unit_octets_max"].as_u64().unwrap();
    assert_eq!(units(&grown["contract"]), 12_500);
    assert!(
        grown["contract"]["rether"]["tht_ns"].as_u64() > before["contract"]["rether"]["tht_ns"].as_u64(),
        "{grown}"
    );
    // The second channel stands behind the first one: what is missing has become a slot at the end.
    let own = |status: &Value| {
        let slots = status["reservations"].as_array().unwrap();
        slots.iter().filter(|slot| slot["name"] == "n1").count()
    };
    lab.wait_for_status(3, "two slots of n1", |status| own(status) == 2);
    // TENET-R16: the certificate has both.
    let proven = |slots: usize| {
        let made = lab.rota(1, &["channel", "show", "--certificate", &id]).well().out;
        let made: Value = serde_json::from_str(&made).expect("one document");
        assert_eq!(made["promises"][0]["delay"], channel(&lab)["contract"]["bound_ns"], "{made}");
        assert_eq!(made["hops"][0]["rether"].as_array().map(Vec::len), Some(slots), "{made}");
    };
    proven(2);

    let refused = modify("8.5mbit");
    assert_eq!(refused.status.code(), Some(3), "{} {}", refused.out, refused.err);
    let told: Value = serde_json::from_str(&refused.out).unwrap();
    let offer = told["refused"]["counter_offer_octets"].as_u64().unwrap();
    assert!(offer > 12_500 && told["refused"]["margin_ns"].as_u64().unwrap() > 0, "{told}");
    assert_eq!(units(&channel(&lab)["contract"]), 12_500, "the old contract stands");
    let beyond = modify("9.5mbit");
    assert_eq!(beyond.status.code(), Some(2), "{}", beyond.err);
    assert!(beyond.err.contains("it was opened with room for 37500"), "{}", beyond.err);

    assert_eq!(units(&modify("0.5mbit").well().json()["contract"]), 2_084);
    lab.wait_for_status(3, "one slot of n1", |status| own(status) == 1);
    proven(1);
    assert_eq!(units(&channel(&lab)["contract"]), 2_084);
}
