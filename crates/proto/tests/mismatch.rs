//! Stations that do not fit this segment, as their frames show it.

use crate::rig::{Rig, mac, ms};
use rota_contract::Mismatch;
use rota_proto::Difference;
use rota_proto::Settings;
use rota_units::{BitRate, Octets};
use rota_wire::{Announce, Kind};

/// Such a station was refused for "another setting", and one of another link version was not mentioned.
#[test]
fn stations_of_another_mtu_and_another_link_version_are_named_with_both_values() {
    let of = |mtu| Settings::ethernet_of(BitRate::from_mbit(10), Octets::new(150_000), mtu);
    let (mut here, mut there) = (Rig::with(of(1_500)), Rig::with(of(9_000)));
    for _ in 0..60 {
        here.run(ms(100));
        there.run(ms(100));
        // Each hears the announcements of the other one as those of station 4.
        let bodies = |rig: &mut Rig| {
            let sent = rig.sent.drain(..).filter(|sent| sent.header.kind == Kind::Announce);
            sent.map(|sent| sent.body).collect::<Vec<_>>()
        };
        let (ours, theirs) = (bodies(&mut here), bodies(&mut there));
        assert!(ours.iter().chain(&theirs).all(|body| body.len() <= Announce::OCTETS_MAX));
        theirs.iter().for_each(|body| here.hear(4, Kind::Announce, body));
        ours.iter().for_each(|body| there.hear(4, Kind::Announce, body));
        let mut foreign = here.frame(&here.header(5, Kind::Announce), &[], &here.segment_key);
        foreign[14] = 0x21;
        here.hear_raw(None, &foreign);
    }
    let found = |rig: &Rig| {
        let all = rig.node.rether().mismatches(rig.now).map(|found| (found.mac, found.difference));
        all.collect::<Vec<_>>()
    };
    let mtu = |ours, theirs| (mac(4), Difference { what: Mismatch::Mtu, ours, theirs });
    let mut all = found(&here);
    all.sort_by_key(|(mac, _)| *mac);
    assert_eq!(all, [mtu(1_500, 9_000), (mac(5), Difference { what: Mismatch::Link, ours: 1, theirs: 2 })]);
    assert_eq!(found(&there), [mtu(9_000, 1_500)]);
    let named = here.node.rether().mismatches(here.now).find(|found| found.mac == mac(4));
    assert_eq!(named.expect("it was found").name, "n2", "its other announcements have its name");
}
