//! Groups on a segment under a token: one share for the members that one station sends, as nodes have it.

use super::*;
use rota_admission::certificate::StandingShare;
use rota_admission::rtip::NodeTest;

/// Two cameras and three screens on a segment of 10 Mbit/s, and a group of which so many send at once.
fn text(at_once: usize, channels: &[(&str, &str)]) -> String {
    let mut text = "[[segment]]\nname = \"floor\"\nrate = \"10mbit\"\n".to_owned();
    for name in ["a", "b", "screen", "wall", "desk"] {
        text += &format!("[[station]]\nname = \"{name}\"\neth0 = \"floor\"\n");
    }
    text += &format!(
        "[[group]]\nname = \"talk\"\nat-once = {at_once}\nxmin = \"4ms\"\nxave = \"8ms\"\n\
         interval = \"40ms\"\nsmax = \"1200B\"\n"
    );
    for (at, (from, to)) in channels.iter().enumerate() {
        text += &format!(
            "[[channel]]\nname = \"c{at}\"\nfrom = \"{from}\"\nto = {to}\ngroup = \"talk\"\n\
             delay = \"400ms\"\n"
        );
    }
    text
}

/// Three members have the time of one in the cycle. A member that another station sends has a share of its
/// own, for which there is no room.
#[test]
fn members_that_one_station_sends_have_one_share_under_a_token() {
    let ways = [("a", "\"screen\""), ("a", "\"wall\""), ("a", "\"screen\""), ("b", "\"screen\"")];
    let file = parse(&text(3, &ways), Path::new("")).expect("a plan");
    let mut network = Plan::new(&file);
    let all: Vec<_> = file.wanted.iter().map(|wanted| network.decide(wanted)).collect();
    assert_eq!(all.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, false], "{all:?}");
    assert_eq!(all[3].as_ref().expect_err("no room").test, NodeTest::RetherShare.name());
    let (slots, _) = network.ledger.ring(0, Span::ZERO, usize::MAX);
    let shares: Vec<_> = all.iter().flatten().map(|one| one.legs[0].share.expect("a token")).collect();
    assert_eq!((slots.len(), slots[0].tht), (1, shares[0].admitted.tht));
    assert!(shares.windows(2).all(|pair| pair[0] == pair[1]), "{shares:?}");
    // No number of a certificate says that members take turns.
    assert!(all.iter().flatten().all(|one| one.certificate.is_none()));
}

/// The bound is that which a node computes from the grant of its token.
#[test]
fn the_share_of_a_group_has_the_bound_of_the_nodes() {
    for at_once in [1, 2, 3] {
        let file = parse(&text(at_once, &[("a", "\"screen\"")]), Path::new("")).expect("a plan");
        let mut network = Plan::new(&file);
        let one = network.decide(&file.wanted[0]).expect("one share fits");
        let (share, params) = (one.legs[0].share.expect("a token"), network.params[0]);
        let ask = engine::asked_of(&one.packets);
        let each = ask.traffic.half_open(params.trt);
        assert_eq!(share.pace.units(), each * at_once as u64);
        let standing = StandingShare {
            params: &params,
            traffic: ask.traffic,
            octets: ask.octets,
            octets_least: ask.octets_least,
            is_packet: true,
            pace: share.pace,
            periodic: false,
            admitted: share.admitted,
        };
        assert_eq!(standing.share_of_group(at_once as u8), Ok(share), "{at_once}");
    }
    // A cycle of 33 ms has 834 packets of each: seven at once are more than a share can have.
    let dense = text(7, &[("a", "\"screen\"")]).replace("\"4ms\"", "\"40us\"").replace("\"8ms\"", "\"40us\"");
    let dense = dense.replace("\"40ms\"", "\"4ms\"");
    let file = parse(&dense, Path::new("")).expect("a plan");
    let refused = Plan::new(&file).decide(&file.wanted[0]).expect_err("too many packets");
    assert_eq!(refused.test, NodeTest::CyclePackets.name());
}

/// The slot goes on under the next member, in its place, until the last one leaves.
#[test]
fn a_slot_of_a_group_stays_while_a_member_does() {
    let ways = [("a", "[\"screen\"]"), ("a", "[\"wall\"]"), ("a", "[\"desk\"]")];
    let file = parse(&text(1, &ways), Path::new("")).expect("a plan");
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
        let mut network = Plan::new(&file);
        let all: Vec<_> = file.wanted.iter().flat_map(|wanted| network.decide_tree(wanted)).collect();
        assert!(all.iter().all(|(_, answer)| answer.is_ok()), "{all:?}");
        let slots = |network: &Plan<'_>| network.ledger.ring(0, Span::ZERO, usize::MAX).0;
        let stood = slots(&network);
        assert_eq!(stood.len(), 1);
        for (gone, at) in order.into_iter().enumerate() {
            let wanted = &file.wanted[at];
            assert!(network.leave(&wanted.name, wanted.to[0]));
            assert_eq!(
                slots(&network),
                if gone < 2 { stood.clone() } else { Vec::new() },
                "{order:?} {gone}"
            );
        }
    }
}
