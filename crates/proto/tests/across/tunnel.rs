//! Ways with a tunnel, on which nothing is guaranteed.

use super::{SERVICE, id, incoming, meet, open, request, until};
use crate::hops::Net;
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::{Beyond, ChannelEvent};
use rota_units::Span;

fn denied_for(event: &ChannelEvent) -> Option<(&'static str, u64, Option<String>)> {
    match event {
        ChannelEvent::Denied { denied, withdrawn, .. } => {
            Some((denied.test.name(), denied.node.0, withdrawn.map(|withdrawn| withdrawn.to_string())))
        }
        _ => None,
    }
}

/// A hop without a guarantee is refused where it is not allowed, and named at both ends where it is.
#[test]
fn a_tunnel_carries_a_channel_whose_program_allows_it() {
    let mut net = meet(Net::with_tunnel(&[Rether, Link, Link], 1));
    net.nodes[3].listen(SERVICE);
    open(&mut net, 5_000, Beyond::default());
    let (test, node, hop) = until(&mut net, 0, denied_for);
    assert_eq!((test, node, hop.as_deref()), ("Withdrawn", 2, Some("no guarantee from n1 to n2")));
    net.run(Span::from_millis(200));
    assert_eq!((net.reservations(0, 0), net.reservations(1, 1)), (0, 0), "nothing stays reserved");
    net.told.clear();
    open(&mut net, 5_000, Beyond { allow_withdrawn: true, ..Beyond::default() });
    let told = |event: &ChannelEvent| match event {
        ChannelEvent::Incoming { channel, granted, .. } | ChannelEvent::Opened { channel, granted, .. } => {
            Some((*channel, granted.but()))
        }
        _ => None,
    };
    let (receiving, at_receiver) = until(&mut net, 3, told);
    let now = net.now;
    assert!(net.nodes[3].accept(now, receiving));
    net.drain(3);
    let (sending, at_sender) = until(&mut net, 0, told);
    assert_eq!((&*at_sender, &*at_receiver), ("; no guarantee from n1 to n2", &*at_sender));
    let detail = net.nodes[0].detail(sending).expect("it is sent here");
    let media: Vec<u8> = detail.hops.iter().map(|(record, _)| record.hop.medium).collect();
    assert_eq!(media, [1, 4, 2]);
}

/// The peer of a tunnel is no station of a segment: no channel goes there beside RCAP.
#[test]
fn a_channel_to_the_other_end_of_a_tunnel_needs_leave_too() {
    let mut net = meet(Net::with_tunnel(&[Link], 0));
    net.nodes[1].listen(SERVICE);
    assert!(net.nodes[0].find("n1").is_err());
    assert_eq!(net.nodes[0].called_beyond("n1"), [id(1)]);
    let now = net.now;
    net.nodes[0].open(now, &request(1, 1_000)).expect("a sound request");
    net.drain(0);
    let (test, node, hop) = until(&mut net, 0, denied_for);
    assert_eq!((test, node, hop.as_deref()), ("Withdrawn", 1, Some("no guarantee from n0 to n1")));
    net.told.clear();
    open(&mut net, 1_000, Beyond { allow_withdrawn: true, ..Beyond::default() });
    let (receiving, ..) = until(&mut net, 1, incoming);
    let now = net.now;
    assert!(net.nodes[1].accept(now, receiving));
    net.drain(1);
    until(&mut net, 0, |event| matches!(event, ChannelEvent::Opened { .. }).then_some(()));
}
