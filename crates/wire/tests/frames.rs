//! One whole frame of each kind, as it was once written: a change of the format must change this
//! file too.

use crate::samples;
use rota_wire::{
    DEFAULT_ETHERTYPE, FrameView, Generation, Key, Kind, LinkHeader, MacAddr, PayloadKind, emit_frame, verify,
};

/// `kind hex` in each line. The key is 32 octets of 7.
const FRAMES: &str = include_str!("frames.txt");

fn key() -> Key {
    Key::new([7; 32])
}

fn write(kind: Kind, body: &[u8]) -> Vec<u8> {
    let payload = if kind == Kind::Data { PayloadKind::Unit } else { PayloadKind::None };
    let under_ring_key =
        matches!(kind, Kind::Token | Kind::TokenAck | Kind::List | Kind::Request | Kind::Data | Kind::Will);
    let generation =
        if under_ring_key { Generation { counter: 9, station: 2 } } else { Generation::default() };
    let header = LinkHeader {
        kind,
        key_epoch: u8::from(under_ring_key),
        payload,
        source: 1,
        segment: 1,
        incarnation: 0xaa,
        generation,
        seq: 501,
    };
    let mut frame = vec![0; 1_514];
    frame[42..42 + body.len()].copy_from_slice(body);
    let unicast = matches!(
        kind,
        Kind::Token
            | Kind::TokenAck
            | Kind::Request
            | Kind::Data
            | Kind::SwitchAck
            | Kind::ClaimGrant
            | Kind::JoinAnswer
    );
    let to = if unicast { samples::mac(2) } else { MacAddr::BROADCAST };
    let length = emit_frame(&mut frame, to, samples::mac(1), DEFAULT_ETHERTYPE, &header, body.len(), &key());
    frame.truncate(length);
    frame
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hex")).collect()
}

#[test]
fn captured_frames_are_what_is_written_today() {
    let written: Vec<String> = samples::bodies()
        .iter()
        .map(|(kind, body)| format!("{kind:?} {}", hex(&write(*kind, body))))
        .collect();
    let captured: Vec<&str> = FRAMES.lines().collect();
    assert_eq!(captured.len(), 17, "one of each kind; today's are:\n{}", written.join("\n"));
    for (captured, written) in captured.iter().zip(&written) {
        assert_eq!(captured, written);
    }
}

#[test]
fn captured_frames_are_proven_and_read_as_their_kind() {
    for line in FRAMES.lines() {
        let (kind, frame) = line.split_once(' ').expect("kind and octets");
        let frame = octets(frame);
        let view = FrameView::parse(&frame, DEFAULT_ETHERTYPE).expect("a sound frame");
        assert!(verify(&view, &key()), "{kind}");
        assert_eq!(format!("{:?}", view.header().kind), kind);
        let (_, body) =
            samples::bodies().into_iter().find(|(of, _)| *of == view.header().kind).expect("known");
        assert_eq!(view.body(), body, "{kind}");
    }
}
