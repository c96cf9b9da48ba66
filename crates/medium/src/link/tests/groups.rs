//! Groups share the reservations of a link (`TENET-6-5`).

use super::*;
use crate::door::{GroupLoad, GroupShare};
use rota_contract::GroupKey;

const TALK: &str = "talk";

/// 1,000 octets each 2 ms, 4.3 Mbit/s with their headers, of a member of a group.
fn member(name: &str, at_once: u8) -> FlowShare {
    let key = GroupKey { uid: 7, name: name.parse().expect("a name") };
    let group = Some(GroupShare { key, at_once });
    FlowShare { group, ..FlowShare::guaranteed(Traffic::periodic(ms(2)).expect("sound")) }
}

fn loads(bench: &Bench) -> Vec<(String, u8, usize)> {
    let load = |GroupLoad { key, at_once, members }| (key.name.to_string(), at_once, members);
    bench.link.groups().map(load).collect()
}

fn reserved(bench: &Bench) -> u64 {
    bench.link.reservations().map(|slot| u64::from(slot.tht_ns)).sum()
}

fn bench() -> Bench {
    let mut bench = Bench::quiet(10);
    assert!(flow_during(&mut bench, 90, 100, Life::ALWAYS).is_ok(), "one that stays");
    bench
}

/// Three members whose sum would not fit stand by one reservation, which goes with the last of them.
#[test]
fn members_of_a_group_stand_by_one_reservation_until_the_last_is_gone() {
    let mut bench = bench();
    let empty = reserved(&bench);
    let first = flow_of(&mut bench, 101, member(TALK, 1)).expect("room for one");
    let one = reserved(&bench);
    for id in [102, 103] {
        let further = flow_of(&mut bench, id, member(TALK, 1)).expect("it costs nothing");
        assert_eq!((further.bound, reserved(&bench)), (first.bound, one), "one bound, one reservation");
    }
    assert_eq!(loads(&bench), [(TALK.to_owned(), 1, 3)]);
    // Beside the group there is room for one more of its size, and not for two.
    assert!(flow_during(&mut bench, 104, 2, Life::ALWAYS).is_ok());
    assert!(flow_during(&mut bench, 105, 2, Life::ALWAYS).is_err());
    assert!(flow_of(&mut bench, 106, member("other", 1)).is_err(), "another group is none of its members");
    // The first one has the lane under its number: the others go on with it.
    bench.link.release(bench.now, SessionId(101));
    assert_eq!((loads(&bench), reserved(&bench)), (vec![(TALK.to_owned(), 1, 2)], one + one - empty));
    bench.link.release(bench.now, SessionId(103));
    assert!(flow_during(&mut bench, 107, 2, Life::ALWAYS).is_err());
    bench.link.release(bench.now, SessionId(102));
    assert!(loads(&bench).is_empty());
    assert!(flow_during(&mut bench, 108, 2, Life::ALWAYS).is_ok(), "what the group had is free");
}

#[test]
fn a_member_with_other_terms_is_refused_by_that_name_and_takes_nothing() {
    let mut bench = bench();
    flow_of(&mut bench, 101, member(TALK, 1)).expect("room for one");
    let slower = FlowShare { traffic: Traffic::periodic(ms(4)).expect("sound"), ..member(TALK, 1) };
    let apart = Share { partition: 1, ..share_of(member(TALK, 1)) };
    let booked = FlowShare { life: Life { from: bench.now + ms(900), ..Life::ALWAYS }, ..member(TALK, 1) };
    let (slower, two, booked) = (share_of(slower), share_of(member(TALK, 2)), share_of(booked));
    for (id, of) in [(102, slower), (103, apart), (104, two), (105, booked)] {
        let refused = answered(&mut bench, id, of).unwrap_err();
        assert_eq!((refused.test, refused.counter_offer), (rota_admission::Test::Group, None));
    }
    assert_eq!(loads(&bench), [(TALK.to_owned(), 1, 1)]);
    // Groups of one name of two users are two.
    let mut of_other = member(TALK, 1);
    of_other.group = of_other.group.map(|of| GroupShare { key: GroupKey { uid: 8, ..of.key }, ..of });
    flow_of(&mut bench, 106, of_other).expect("room for one more");
    assert_eq!(loads(&bench).len(), 2);
}

/// A group of two at once is reserved twice by its first member; if that does not fit, nothing stays.
#[test]
fn a_group_is_reserved_whole_or_not_at_all() {
    let mut bench = bench();
    let before = reserved(&bench);
    assert!(flow_of(&mut bench, 101, member(TALK, 3)).is_err());
    assert_eq!((loads(&bench), reserved(&bench)), (Vec::new(), before));
    flow_of(&mut bench, 102, member(TALK, 2)).expect("two fit");
    assert!(flow_during(&mut bench, 103, 2, Life::ALWAYS).is_err(), "both are taken");
    assert!(bench.link.port_of(Instant::ZERO, SessionId(102)).is_none(), "no certificate");
    let port = bench.link.port_of(Instant::ZERO, SessionId(90)).expect("a flow by itself");
    let of_group = |of: &&rota_admission::certificate::Standing| of.ask.traffic == member(TALK, 2).traffic;
    assert_eq!(port.flows.iter().filter(of_group).count(), 2, "others state the group as two channels");
    bench.link.release(bench.now, SessionId(102));
    assert!(flow_during(&mut bench, 104, 2, Life::ALWAYS).is_ok());
}

/// A bound that others stand by does not grow.
#[test]
fn the_bound_of_a_group_grows_for_a_member_that_is_alone() {
    let mut bench = bench();
    let first = flow_of(&mut bench, 101, member(TALK, 2)).expect("two fit");
    let longer = bench.link.relax(SessionId(101), first.bound + ms(7)).expect("a flow");
    assert!(longer > first.bound, "{longer}");
    let second = flow_of(&mut bench, 102, member(TALK, 2)).expect("it costs nothing");
    assert_eq!(second.bound, longer, "it finds the bound of the group");
    for id in [101, 102] {
        assert_eq!(bench.link.relax(SessionId(id), longer + ms(50)), Some(longer));
    }
    bench.link.release(bench.now, SessionId(101));
    let alone = bench.link.relax(SessionId(102), longer + ms(50)).expect("a flow");
    assert!(alone > longer);
}
