use super::*;
use serde_json::Value;

fn text() -> String {
    crate::plan::tests::certificate(0)
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(&text()).expect("JSON");
    change(&mut value);
    Document::read(&value.to_string()).expect_err("it was changed")
}

#[test]
fn a_certificate_is_read_and_holds() {
    let document = Document::read(&text()).expect("sound");
    assert_eq!((document.check(), document.hops()), (Ok(()), 3));
    assert!(document.promise().delay <= document.channel().delay_max);
}

#[test]
fn every_missing_unknown_or_doubled_field_is_named() {
    assert_eq!(
        refused(|all| drop(all["promises"][0].as_object_mut().unwrap().remove("delay"))),
        "promises[0].delay: is missing"
    );
    assert_eq!(
        refused(|all| all["hops"][1]["port"]["more"] = 1.into()),
        "hops[1].port.more: is no field of a certificate"
    );
    assert_eq!(refused(|all| all["note"] = "x".into()), "note: is no field of a certificate");
    assert_eq!(refused(|all| all["seal"] = 7.into()), "seal: is no text; write it in quotes");
    assert_eq!(refused(|all| all["hops"] = 7.into()), "hops: is no list");
    assert_eq!(
        refused(|all| all["promises"] = Value::Array(vec![])),
        "promises: a channel has 1 to 64 receivers"
    );
    assert_eq!(refused(|all| all["hops"][1]["flows"][0] = 7.into()), "hops[1].flows[0]: is no table");
    let number = refused(|all| all["channel"]["s_max"] = "1".into());
    assert_eq!(number, "channel.s_max: is no whole number from 0 to 2^64 - 1");
    for odd in ["-1", "1.5", "null", "true", "18446744073709551616"] {
        let said = Document::read(&text().replacen("\"version\": 5", &format!("\"version\": {odd}"), 1));
        assert!(said.is_err(), "{odd}");
    }
    let twice = text().replacen("\"version\": 5", "\"version\": 5, \"version\": 5", 1);
    assert!(Document::read(&twice).expect_err("doubled").starts_with("field 'version' stands twice"));
    let old = text().replacen("\"version\": 5", "\"version\": 4", 1);
    let said = Document::read(&old).expect_err("another form");
    assert_eq!(said, "version: is 4; this checker knows version 5, make it anew");
    let (deep, cut) = ("[".repeat(100_000), &text()[..90]);
    assert!(Document::read(&deep).is_err() && Document::read(cut).is_err());
}

/// "+5" and "005" were taken for 5, so that one certificate had many texts.
#[test]
fn a_seal_is_written_in_one_way() {
    let sound: Value = serde_json::from_str(&text()).expect("JSON");
    let seal = sound["seal"].as_str().expect("a text").to_owned();
    for odd in [format!("+{seal}"), format!("00{seal}"), format!(" {seal}"), "-0".to_owned(), String::new()] {
        let said = refused(|all| all["seal"] = odd.clone().into());
        assert_eq!(said, "seal: is no whole number of 64 bits, or has signs or zeros before it", "{odd}");
    }
}

/// Each number, made better by one, is found; so is a better promise with a seal of its own.
#[test]
fn a_number_that_was_changed_proves_nothing() {
    let sound: Value = serde_json::from_str(&text()).expect("JSON");
    for place in ["/channel/delay_max", "/promises/0/delay", "/packets/spread", "/hops/1/port/slack"] {
        let mut value = sound.clone();
        let number = value.pointer_mut(place).expect(place);
        *number = (number.as_u64().expect("a number") - 1).into();
        let document = Document::read(&value.to_string()).expect("the form is sound");
        assert!(document.check().is_err(), "{place}");
    }
}

/// The fuzz target has seeds of the version that there is, of each kind of part.
#[test]
fn the_seeds_of_the_fuzz_target_hold() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/certificate");
    for seed in ["booked", "levels", "slots", "tree", "video", "voice"] {
        let text = std::fs::read_to_string(folder.join(seed)).expect(seed);
        let document = Document::read(&text).expect(seed);
        assert_eq!(document.check(), Ok(()), "{seed}");
    }
}

#[test]
fn the_corpus_of_certificates_replays() {
    crate::scenario::tests::replay("fuzz/corpus/certificate", fuzz_certificate);
}
