//! The cycle master says that this station is held off, and for how long.

use crate::rig::{ME, Rig, mac, ms};
use rota_wire::{JoinAnswer, Kind, Phase, Verdict};

fn hear(rig: &mut Rig, answer: &JoinAnswer) {
    let mut body = [0; 64];
    let len = answer.emit(&mut body);
    rig.hear(1, Kind::JoinAnswer, &body[..len]);
}

#[test]
fn a_station_that_its_list_calls_dead_learns_that_it_is_held_off() {
    let mut rig = Rig::ring();
    let nonce = {
        let mut list = rig.token(Phase::RealTime, &[(1, 6_000, true)]);
        list.dead.insert(ME);
        rig.clear();
        let mut body = [0; 1_400];
        let len = list.emit(&mut body);
        rig.stamp.2 += 1;
        rig.hear_ring(1, Kind::List, rig.stamp, &body[..len]);
        rig.run(ms(1));
        rota_wire::Announce::parse(&rig.last(Kind::Announce).body).expect("sound").nonce
    };
    assert!(rig.node.rether().is_outside());
    let answer = JoinAnswer { silences: 4, left_ms: 1_700, ..JoinAnswer::new(nonce, 0, Verdict::HeldOff) };
    hear(&mut rig, &JoinAnswer { nonce: nonce ^ 1, ..answer });
    assert_eq!(rig.node.rether().held_off(rig.now).count(), 0, "an answer to another boot");
    hear(&mut rig, &answer);
    let began = rig.now;
    rig.now += ms(250);
    hear(&mut rig, &JoinAnswer { left_ms: 1_451, ..answer });
    let held: Vec<_> = rig.node.rether().held_off(rig.now).collect();
    let [held] = held[..] else { panic!("{held:?}") };
    assert_eq!((held.mac, held.here, held.silences), (mac(ME), true, 4));
    assert_eq!((held.wait, held.until), (ms(1_700), began + ms(1_700)), "the first word stands");
    assert_eq!(rig.node.rether().held_off(held.until).count(), 0, "it is over");
    let shown = rig.node.rether().mismatches(rig.now).map(|found| found.name.to_owned()).collect::<Vec<_>>();
    assert_eq!(shown, ["n2"]);
    // A key holder may say anything: no wait is longer than the longest.
    hear(&mut rig, &JoinAnswer { silences: 5, left_ms: u32::MAX, ..answer });
    let longest = rig.node.rether().held_off(rig.now).map(|held| held.wait).collect::<Vec<_>>();
    assert_eq!(longest, [rota_proto::HOLD_OFF_MAX]);
}
