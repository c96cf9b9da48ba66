//! Fuzz targets as plain functions: a fuzzer or a committed corpus calls them with any octets.

use crate::aal5::Aal5Trailer;
use crate::atm::{CELL_HEADER_OCTETS, CELL_OCTETS, CellHeader};
use crate::cells::{Reassembly, cut};
use crate::llc::{self, Fragment, LlcView};
use crate::{
    Announce, CIRCUIT_HEADER_OCTETS, CircuitHeader, Claim, ClaimGrant, DEFAULT_ETHERTYPE, Form, FrameView,
    JoinAnswer, Key, Kind, LINK_STATE_OCTETS_MAX, LinkStatement, ModeNotice, Nack, RESERVED_HEADER_OCTETS,
    RTIP_HEADER_OCTETS, RcapMessage, RcapTerms, Report, ReservedHeader, RtipHeader, Signal, Switch,
    SwitchAck, TPDU_CONTROL_OCTETS_MAX, Token, Tpdu, UNIT_HEADER_OCTETS, UnitHeader, host_level,
    parse_fragment, verify,
};

/// Any octets as a received frame, and its body as the kind it claims to be. A frame that parses must emit
/// the same octets.
pub fn fuzz_frame(data: &[u8]) {
    let _ = host_level(data);
    let Ok(view) = FrameView::parse(data, DEFAULT_ETHERTYPE) else { return };
    assert!(!verify(&view, &Key::new([0x5a; 32])), "a tag was guessed");
    fuzz_body(view.header().kind, view.body());
}

/// Any octets as any body: the first octet chooses the kind.
pub fn fuzz_bodies(data: &[u8]) {
    if let Some((kind, body)) = data.split_first() {
        fuzz_body(Kind::from_code(*kind), body);
    }
}

/// Any octets as a message of a reliable circuit. Parsed octets must be emitted unchanged.
pub fn fuzz_circuit(data: &[u8]) {
    let Ok((header, message)) = CircuitHeader::parse(data) else { return };
    let mut out = [0u8; CIRCUIT_HEADER_OCTETS];
    assert_eq!(header.emit(&mut out), CIRCUIT_HEADER_OCTETS);
    assert_eq!(
        (&out[..], message),
        data.split_at(CIRCUIT_HEADER_OCTETS),
        "what was read is what was written"
    );
}

/// Any octets as a TPDU of a circuit. Parsed octets must be emitted unchanged.
pub fn fuzz_tpdu(data: &[u8]) {
    let Ok((tpdu, payload)) = Tpdu::parse(data) else { return };
    let mut out = [0u8; TPDU_CONTROL_OCTETS_MAX];
    let length = tpdu.emit(payload.len() as u16, &mut out);
    assert_eq!((&out[..length], payload), data.split_at(length), "what was read is what was written");
}

/// Any octets as the CPCS-PDU of AAL5, and the first five as a cell's header. Parsed octets must be emitted
/// unchanged, but for the padding.
pub fn fuzz_aal5(data: &[u8]) {
    if let Some(octets) = data.first_chunk()
        && let Ok(header) = CellHeader::parse(octets)
    {
        assert_eq!(header.emit(), *octets);
    }
    let Ok((trailer, payload)) = Aal5Trailer::parse(data) else { return };
    let mut out = data.to_vec();
    assert_eq!(trailer.emit(&mut out), data.len());
    assert_eq!(Aal5Trailer::parse(&out), Ok((trailer, payload)));
}

/// Any octets as cells of two circuits: of each 49 the first one is the circuit, the payload type and the
/// soundness of the header. A frame that comes is cut into the same cells again.
pub fn fuzz_cells(data: &[u8]) {
    let mut reassembly = Reassembly::new(&[(0, 32), (1, 33)], 700);
    let mut came = [Vec::new(), Vec::new()];
    for octets in data.as_chunks::<49>().0 {
        let [first, payload @ ..] = octets;
        let place = usize::from(first & 1);
        let pti = first >> 1 & 7;
        let header =
            CellHeader { gfc: 0, vpi: place as u8, vci: 32 + place as u16, pti, clp: first & 16 != 0 };
        let mut cell = [0; CELL_OCTETS];
        cell[..CELL_HEADER_OCTETS].copy_from_slice(&header.emit());
        cell[CELL_HEADER_OCTETS..].copy_from_slice(payload);
        cell[4] ^= first >> 5;
        let is_sound = first >> 5 == 0;
        let came = &mut came[place];
        if is_sound && pti & 4 == 0 {
            came.push(*payload);
        }
        match reassembly.handle(&cell) {
            Ok(Some(frame)) => {
                assert!(is_sound && header.is_last() && frame.payload.len() <= 700);
                let again: Vec<[u8; 48]> = cut(header, frame.pdu).map(|cell| payload_of(&cell)).collect();
                assert_eq!(&again, came, "a frame is the cells since the last one");
            }
            Ok(None) => {}
            Err(_) if is_sound => assert!(header.is_last() || came.len() > 14, "nothing is dropped early"),
            Err(_) => {}
        }
        if is_sound && header.is_last() {
            came.clear();
        }
    }
}

fn payload_of(cell: &[u8; CELL_OCTETS]) -> [u8; 48] {
    let mut payload = [0; 48];
    payload.copy_from_slice(&cell[CELL_HEADER_OCTETS..]);
    payload
}

/// Any octets as a unit of a socket's reserved channel. Parsed octets must be emitted unchanged.
pub fn fuzz_reserved(data: &[u8]) {
    let Ok((header, message)) = ReservedHeader::parse(data) else { return };
    let mut out = [0u8; RESERVED_HEADER_OCTETS];
    assert_eq!(header.emit(&mut out), RESERVED_HEADER_OCTETS);
    assert_eq!((&out[..], message), data.split_at(RESERVED_HEADER_OCTETS));
}

/// Any octets as an RTIP packet. Parsed octets must be emitted unchanged.
pub fn fuzz_rtip(data: &[u8]) {
    let Ok((header, payload)) = RtipHeader::parse(data) else { return };
    let mut out = [0u8; RTIP_HEADER_OCTETS];
    assert_eq!(header.emit(&mut out, payload.len()), Some(RTIP_HEADER_OCTETS));
    assert_eq!((&out[..], payload), data.split_at(RTIP_HEADER_OCTETS));
    let Ok((unit, fragment)) = parse_fragment(payload) else { return };
    let mut out = [0u8; UNIT_HEADER_OCTETS];
    unit.emit(&mut out);
    assert_eq!((&out[..], fragment), payload.split_at(UNIT_HEADER_OCTETS));
}

/// Any octets as a node's statement of its neighbours. Parsed octets must be emitted unchanged.
pub fn fuzz_link_state(data: &[u8]) {
    let Ok(read) = LinkStatement::parse(data) else { return };
    let mut out = [0u8; LINK_STATE_OCTETS_MAX];
    let (named, neighbours) = ((read.origin, read.sequence), read.neighbours());
    let octets = LinkStatement::emit(&mut out, named, read.forwards, read.name, neighbours);
    assert_eq!(&out[..octets], data, "a statement has one form");
}

/// Any octets as a message of RCAP. Parsed octets must be emitted unchanged.
pub fn fuzz_rcap(data: &[u8]) {
    let Ok(message) = RcapMessage::parse(data) else { return };
    let mut out = vec![0; message.octets()];
    assert_eq!(message.emit(&mut out), Some(data.len()));
    assert_eq!(out, data, "what was read is what was written");
}

/// Any octets as a node's part of a certificate. Numbers that were read are written as the same octets.
pub fn fuzz_rcap_terms(data: &[u8]) {
    let Ok(terms) = RcapTerms::parse(data) else { return };
    let written = RcapTerms::written(terms.medium, terms.numbers());
    assert_eq!(written.as_deref(), Some(data), "terms have one form");
}

/// Any octets as a received 802.2 frame, and as a fragment. Parsed octets must be emitted unchanged.
pub fn fuzz_llc(data: &[u8]) {
    let _ = llc::is_llc(data);
    for size in [576, 1_400, 9_000].map(llc::fragment_payload) {
        let Ok((fragment, payload)) = Fragment::parse(data, size) else { continue };
        let mut head = [0; llc::FRAGMENT_OCTETS];
        assert_eq!(fragment.emit(&mut head), data.len() - payload.len());
        assert_eq!(Fragment::parse(&[&head[..], payload].concat(), size), Ok((fragment, payload)));
        assert!(fragment.offset() + payload.len() <= llc::MESSAGE_OCTETS_MAX);
        assert!(fragment.index < 32, "a receiver has a bit for each");
    }
    let Ok(view) = LlcView::parse(data) else { return };
    let mut out = [0; 1_514];
    let octets = view.information.len();
    out[llc::LLC_INFORMATION..llc::LLC_INFORMATION + octets].copy_from_slice(view.information);
    let length = llc::emit_llc(&mut out, view.destination, view.source, &view.header, octets);
    assert_eq!(out[..llc::LLC_INFORMATION + octets], data[..llc::LLC_INFORMATION + octets]);
    assert_eq!(LlcView::parse(&out[..length]), Ok(view), "what was written reads back");
    assert_eq!(length, usize::from(llc::llc_frame_octets(octets)));
}

fn fuzz_body(kind: Kind, body: &[u8]) {
    let mut out = [0u8; 4096];
    macro_rules! round_trip {
        ($value:ty) => {
            if let Ok(value) = <$value>::parse(body) {
                let length = value.emit(&mut out);
                assert_eq!(<$value>::parse(&out[..length]), Ok(value), "what was written reads back");
            }
        };
    }
    match kind {
        Kind::Announce => round_trip!(Announce),
        Kind::Switch => round_trip!(Switch),
        Kind::SwitchAck => round_trip!(SwitchAck),
        Kind::Form => round_trip!(Form),
        Kind::Token | Kind::List => round_trip!(Token),
        Kind::Claim => round_trip!(Claim),
        Kind::ClaimGrant => round_trip!(ClaimGrant),
        Kind::Nack => round_trip!(Nack),
        Kind::Mode => round_trip!(ModeNotice),
        Kind::Signal => round_trip!(Signal),
        Kind::JoinAnswer => round_trip!(JoinAnswer),
        Kind::Report => round_trip!(Report),
        Kind::Data => {
            if let Ok((header, payload)) = UnitHeader::parse(body) {
                assert!(payload.len() <= body.len());
                header.emit(&mut out);
                assert_eq!(out[..20], body[..20], "what was read is what was written");
            }
        }
        Kind::Circuit => fuzz_tpdu(body),
        Kind::TokenAck | Kind::Request | Kind::Will | Kind::Unknown(_) => {}
    }
}
