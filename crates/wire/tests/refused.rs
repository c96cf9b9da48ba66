//! Values at and beyond the edge of what a body may say.

use rota_wire::{
    ETHERNET_HEADER_OCTETS, Form, FormMember, FrameView, Key, Kind, LINK_HEADER_OCTETS, Leases, MacAddr,
    Phase, SlotList, StationSet, Token, emit_frame,
};

fn body(emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut body = vec![0; 2_000];
    let octets = emit(&mut body);
    body.truncate(octets);
    body
}

fn form(key_epoch: u8, part: u8, parts: u8, stations: &[u16]) -> Vec<u8> {
    let mut form = Form::new(7, key_epoch, part, parts);
    for &station in stations {
        assert!(form.push(FormMember { station, mac: MacAddr([2; 6]), incarnation: 3, nonce: 4 }));
    }
    body(|into| form.emit(into))
}

#[test]
fn a_form_names_stations_from_1_to_255_under_a_ring_key_in_parts_that_there_are() {
    assert!(Form::parse(&form(1, 0, 1, &[1, 255])).is_ok());
    assert!(Form::parse(&form(1, 1, 2, &[])).is_ok());
    for (key_epoch, part, parts, stations) in
        [(1, 0, 1, &[0][..]), (1, 0, 1, &[1, 256]), (0, 0, 1, &[1]), (1, 1, 1, &[1]), (1, 0, 0, &[1])]
    {
        let refused = Form::parse(&form(key_epoch, part, parts, stations));
        assert!(refused.is_err(), "{key_epoch} {part} {parts} {stations:?}");
    }
}

fn token(hold: u8, drain: u8) -> Vec<u8> {
    let token = Token {
        mode_epoch: 1,
        cycle: 2,
        residual_ns: 3,
        trt_ns: 4,
        phase: Phase::Home,
        rested: false,
        audit: None,
        struck: None,
        position: 0,
        next_nrt: 1,
        idle_visits: 0,
        dead: StationSet::EMPTY,
        slots: SlotList::EMPTY,
        leases: Some(Leases { hold, drain, ..Leases::SAFE }),
    };
    body(|into| token.emit(into))
}

/// A token that may be held for longer than a claim reckons with would be two tokens.
#[test]
fn no_hold_is_longer_than_the_drain() {
    for (hold, drain, sound) in [(0, 0, true), (9, 9, true), (8, 9, true), (10, 9, false), (255, 0, false)] {
        let mut body = token(0, 255);
        let at = body.len() - Leases::OCTETS;
        (body[at], body[at + 1]) = (hold, drain);
        assert_eq!(Token::parse(&body).is_ok(), sound, "{hold} {drain}");
    }
}

#[test]
fn sets_of_stations_count_and_cut() {
    let set = |stations: &[u16]| {
        let mut set = StationSet::EMPTY;
        stations.iter().for_each(|station| set.insert(*station));
        set
    };
    let (one, other) = (set(&[1, 2, 64, 200]), set(&[2, 3, 200, 255]));
    assert_eq!((one.len(), other.len(), StationSet::EMPTY.len()), (4, 4, 0));
    assert_eq!((one.within(&other), one.without(&other)), (set(&[2, 200]), set(&[1, 64])));
    assert_eq!(other.without(&one), set(&[3, 255]));
    assert!(one.without(&one).is_empty() && !one.is_empty() && one.within(&StationSet::EMPTY).is_empty());
}

#[test]
fn a_body_begins_behind_both_headers() {
    let header = rota_wire::LinkHeader {
        kind: Kind::Request,
        key_epoch: 0,
        payload: rota_wire::PayloadKind::None,
        source: 1,
        segment: 1,
        incarnation: 1,
        generation: Default::default(),
        seq: 1,
    };
    let mut frame = [0; 200];
    let offset = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS;
    frame[offset..offset + 3].copy_from_slice(b"abc");
    let (to, from) = (MacAddr::BROADCAST, MacAddr([2; 6]));
    let octets = emit_frame(&mut frame, to, from, 0x88b5, &header, 3, &Key::new([1; 32]));
    let view = FrameView::parse(&frame[..octets], 0x88b5).expect("sound");
    assert_eq!((view.body_offset(), view.body()), (offset, &b"abc"[..]));
}
