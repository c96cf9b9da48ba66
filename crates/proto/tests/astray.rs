//! Signs that frames for a station go astray (decision 014).

use crate::rig::{ME, Rig, mac, ms};
use rota_units::Span;
use rota_wire::bodies::StationState;
use rota_wire::{DEFAULT_ETHERTYPE, Generation, Kind, LinkHeader, MacAddr, Phase, Token, emit_frame};

/// The answer field of an announcement: "frames for my address go astray".
const ASTRAY: u64 = u64::MAX - 2;

/// The newest token, to one of this station's addresses.
fn token_to(rig: &Rig, to: MacAddr, token: &Token) -> Vec<u8> {
    let (counter, station, seq) = rig.stamp;
    let generation = Generation { counter, station };
    let header = LinkHeader { key_epoch: rig.ring_key.0, generation, seq, ..rig.header(1, Kind::Token) };
    let mut frame = vec![0; 1_514];
    let octets = token.emit(&mut frame[42..]);
    let length = emit_frame(&mut frame, to, mac(1), DEFAULT_ETHERTYPE, &header, octets, &rig.ring_key.1);
    frame.truncate(length);
    frame
}

/// Its token came in time to its own address, and its repetition came to the group address. Read after a
/// stall of a lease, the first one is void. Two such stalls made the station call its address astray, and
/// that excused its strikes.
#[test]
fn a_station_that_stalls_longer_than_its_lease_finds_nothing_astray() {
    let mut rig = Rig::ring();
    let (lease, hop_timeout) = (rig.settings.lease, rig.settings.hop_timeout);
    for cycle in 11..43 {
        let list = Token { cycle, ..rig.token(Phase::RealTime, &[(1, 6_000, true)]) };
        rig.stamp.2 += 1;
        let mut body = [0; 1_400];
        let length = list.emit(&mut body);
        let heard = rig.ring_frame(1, Kind::List, rig.stamp, &body[..length]);
        let sent = rig.now;
        rig.stamp.2 += 1;
        let (own, group) = (mac(ME), mac(ME).own_group());
        let (first, again) = (token_to(&rig, own, &list), token_to(&rig, group, &list));
        let stalls = cycle % 4 == 0;
        rig.now = if stalls { sent + lease + ms(2) } else { sent + ms(1) };
        let came = sent + Span::from_micros(500);
        rig.hear_raw(Some(sent), &heard);
        rig.hear_raw(Some(came), &first);
        if stalls {
            rig.hear_raw(Some(came + hop_timeout), &again);
        }
        rig.run(ms(30));
        rig.stamp.2 += 3;
    }
    let counters = rig.node.rether().counters();
    assert_eq!((counters.tokens_accepted, counters.tokens_expired), (32, 8));
    assert!(!rig.node.rether().is_astray(mac(ME)), "each first token came to its own address");
}

/// It was a minute.
#[test]
fn an_address_stays_astray_for_25_s_after_its_station_last_said_so() {
    let mut rig = Rig::ring();
    rig.answers = ASTRAY;
    rig.announce(3, StationState::Ring);
    assert!(rig.node.rether().is_astray(mac(3)));
    rig.run(ms(24_000));
    assert!(rig.node.rether().is_astray(mac(3)), "one lost announcement of those each ten seconds is no end");
    rig.run(ms(2_000));
    assert!(!rig.node.rether().is_astray(mac(3)));
}
