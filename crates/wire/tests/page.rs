//! Holds `docs/wire.md` to the code: offsets follow from lengths, and lengths are what is written.

use crate::samples;
use rota_wire::{
    ClaimGrant, ETHERNET_HEADER_OCTETS, Form, Kind, LINK_HEADER_OCTETS, Leases, TAG_OCTETS, Token,
    UNIT_HEADER_OCTETS,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The part of each table that has a fixed length, by heading.
fn documented() -> BTreeMap<String, usize> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let page = std::fs::read_to_string(page).expect("the page is part of the repository");
    let (mut heading, mut sizes) = (String::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.to_owned();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (Some(offset), Some(octets)) = (cells.get(1), cells.get(2)) else { continue };
        // Behind a part of variable length offsets read "26 + d"; the number counts the fixed part.
        let fixed = offset.split(" + ").next().unwrap_or(offset);
        let (Ok(offset), size) = (fixed.parse::<usize>(), sizes.entry(heading.clone()).or_insert(0)) else {
            continue;
        };
        if *octets == "to" || heading == "Kinds" {
            continue;
        }
        assert_eq!(offset, *size, "'{heading}': {line}");
        *size += octets.parse::<usize>().unwrap_or(0);
    }
    sizes
}

#[test]
fn the_page_says_what_the_code_writes() {
    let page = documented();
    assert_eq!(page["Ethernet header"], ETHERNET_HEADER_OCTETS);
    assert_eq!(page["Link header"], LINK_HEADER_OCTETS);
    assert_eq!(page["Unit header"], UNIT_HEADER_OCTETS);
    assert_eq!(page["Tag"], TAG_OCTETS);
    assert_eq!(page["Tags of data"], 2 * rota_wire::HALF_OCTETS);
    assert_eq!(page["LLC header"], rota_wire::llc::LLC_INFORMATION);
    assert_eq!(page["LLC fragment"], rota_wire::llc::FRAGMENT_OCTETS);
    assert_eq!(page["RTIP header"], rota_wire::RTIP_HEADER_OCTETS);
    rcap(&page);
    tpdus(&page);
    let mut out = [0; 1_500];
    let alone = (rota_contract::NodeId(1), 1);
    let octets = rota_wire::LinkStatement::emit(&mut out, alone, true, "", std::iter::empty());
    assert_eq!(page["Statement of neighbours"], octets);
    assert_eq!(page["Announce"], samples::announce("").emit(&mut out));
    assert_eq!(page["Stated settings"], rota_wire::StatedSettings::OCTETS);
    assert_eq!(page["Form"], Form::new(4, 1, 0, 1).emit(&mut out));
    assert_eq!(page["Form member"], samples::member(1).key_material().len());
    assert_eq!(page["Token"], samples::token(0, false).emit(&mut out));
    assert_eq!(page["Token"] + page["Slot"], samples::token(1, false).emit(&mut out));
    assert_eq!(page["Token"] + 2, samples::token(0, true).emit(&mut out), "two octets of dead set");
    let follows = Token { leases: Some(Leases::SAFE), ..samples::token(0, false) };
    assert_eq!(page["Leases"], Leases::OCTETS);
    assert_eq!(page["Token"] + page["Leases"], follows.emit(&mut out));
    assert_eq!(page["Report"], samples::report(0).emit(&mut out));
    assert_eq!(page["Report"] + page["Channel of a report"], samples::report(1).emit(&mut out));
    assert_eq!(page["Tally"], rota_wire::TALLY_OCTETS);
    let bodies = samples::bodies();
    let body = |kind: Kind| &bodies.iter().find(|(of, _)| *of == kind).expect("a sample of each").1;
    for kind in
        [Kind::Switch, Kind::SwitchAck, Kind::Claim, Kind::Nack, Kind::Mode, Kind::Signal, Kind::JoinAnswer]
    {
        assert_eq!(page[&format!("{kind:?}")], body(kind).len(), "{kind:?}");
    }
    let grant =
        ClaimGrant { list: None, ..ClaimGrant::parse(body(Kind::ClaimGrant)).expect("a sound sample") };
    assert_eq!(page["ClaimGrant"], grant.emit(&mut out));
}

/// The TPDUs of circuits, by samples of the fuzz corpus.
fn tpdus(page: &BTreeMap<String, usize>) {
    let octets = |name: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tpdu").join(name);
        let tpdu = std::fs::read(file).expect("a sample of each");
        rota_wire::Tpdu::parse(&tpdu).expect("a sound sample").0.emit(0, &mut [0; 64])
    };
    let head = page["TPDU"];
    assert_eq!(head + page["TPDU of data"], rota_wire::TPDU_HEADER_OCTETS);
    assert_eq!(head + page["TPDU of data"], octets("data"));
    assert_eq!(head + page["TPDU ack"], octets("ack"));
    assert_eq!(head + page["TPDU of a handshake"], octets("open"));
    assert_eq!(head + page["TPDU refuse"], octets("refuse"));
    assert_eq!(head + page["TPDU reset"], octets("reset"));
    assert_eq!(head + page["TPDU close"], octets("close"));
    assert_eq!(head, octets("ask"));
}

/// The messages of RCAP, by samples of the fuzz corpus.
fn rcap(page: &BTreeMap<String, usize>) {
    let octets = |name: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rcap").join(name);
        let message = std::fs::read(file).expect("a sample of each");
        let message = rota_wire::RcapMessage::parse(&message).expect("a sound sample");
        message.octets()
    };
    let (header, record) = (page["RCAP header"], page["RCAP record"]);
    assert_eq!((header, record), (rota_wire::RCAP_HEADER_OCTETS, rota_wire::RcapRecord::OCTETS));
    assert_eq!(page["RCAP request"], octets("request-of-none") - header);
    assert_eq!(page["RCAP accept"], octets("accept") - header - 2 * record - "terms".len());
    assert_eq!(page["RCAP denied"], octets("denied") - header);
    assert_eq!(page["RCAP status"], octets("status-report") - header - 2 * record);
    assert_eq!(page["RCAP close"], octets("close-forward") - header);
    let way_of_two = 2 * 8;
    assert_eq!(page["RCAP invite"], octets("invite") - header - way_of_two);
    assert_eq!(page["RCAP approach"], octets("approach") - header - 2 * way_of_two);
    assert_eq!(page["RCAP invite denied"], octets("invite-denied") - header - way_of_two);
}

#[test]
fn the_page_lists_every_test_of_a_denial_with_its_code() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let page = std::fs::read_to_string(page).expect("the page is part of the repository");
    for (code, test) in rota_wire::RcapTest::ALL.iter().enumerate() {
        assert!(page.contains(&format!("{code} {}", test.name())), "{code} {}", test.name());
    }
}

#[test]
fn the_page_lists_every_kind_with_its_code() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let page = std::fs::read_to_string(page).expect("the page is part of the repository");
    for code in 0..=255 {
        let kind = Kind::from_code(code);
        if !matches!(kind, Kind::Unknown(_)) {
            assert!(page.contains(&format!("\n| {code} | {kind:?} |")), "{code} {kind:?}");
        }
    }
}
