//! Channels across RETHER segments in partitions (TENET-7-2).

use super::meet;
use super::suite::{channels_of, close_all, filled, parted, percents_of};
use crate::hops::Net;
use rota_contract::NodeId;
use rota_proto::MediumKind::{Link, Rether};
use rota_units::Span;

/// A full partition of a ring refuses by its name, takes nothing of another one, and its slots go back to it.
#[test]
fn a_full_partition_of_a_ring_refuses_by_name_and_the_others_have_room() {
    let shares = parted(&[("studio", 40), ("office", 20)]);
    let mut alone = meet(Net::parted(&[Rether, Rether], shares));
    let (.., untouched) = filled(&mut alone, Some("office"));
    let mut net = meet(Net::parted(&[Rether, Rether], shares));
    let (denied, by, studio) = filled(&mut net, Some("studio"));
    assert_eq!((denied.node, by.as_deref()), (NodeId(1), Some("studio")), "{denied:?}");
    assert_eq!(denied.test.name(), "RetherShare");
    let (_, by, office) = filled(&mut net, Some("office"));
    assert_eq!((by.as_deref(), office.len()), (Some("office"), untouched.len()));
    assert!(studio.len() > office.len() && !office.is_empty(), "{} {}", studio.len(), office.len());
    net.run(Span::from_millis(100));
    for (node, port) in [(0, 0), (1, 0), (1, 1)] {
        let slots = channels_of(&net, node, port);
        assert_eq!(slots[1..], [studio.len(), office.len()], "all stations have one list");
    }
    let detail = net.nodes[0].detail(studio[0]).expect("it is sent here");
    assert_eq!(percents_of(&detail), [40; 2]);
    close_all(&mut net, [studio, office].concat());
    for (node, port) in [(0, 0), (1, 1)] {
        assert_eq!(channels_of(&net, node, port)[1..], [0, 0]);
    }
    let (.., again) = filled(&mut net, Some("office"));
    assert_eq!(again.len(), untouched.len());
}

/// Each segment of the way has its own partitions of a name: a ring and a link.
#[test]
fn a_partition_goes_over_segments_of_both_kinds() {
    let mut net = meet(Net::parted(&[Link, Rether], parted(&[("studio", 30)])));
    let (denied, by, open) = filled(&mut net, Some("studio"));
    assert_eq!(by.as_deref(), Some("studio"), "{denied:?}");
    assert!(!open.is_empty());
    let detail = net.nodes[0].detail(open[0]).expect("it is sent here");
    assert_eq!(percents_of(&detail), [30; 2]);
    let (_, by, rest) = filled(&mut net, None);
    assert!(by.as_deref() != Some("studio") && !rest.is_empty());
}
