//! The terms of the second suite between nodes: partitions, chances, and bookings.

use super::*;

pub(super) fn parted(shares: &[(&str, u8)]) -> NamedPartitions {
    let mut partitions = NamedPartitions::default();
    for (name, percent) in shares {
        partitions.add(name.parse().expect("a name"), *percent).expect("room");
    }
    partitions
}

/// Opens channels of one partition until a node refuses; the refusal, the partition that it names, and the
/// channels that are open.
pub(super) fn filled(net: &mut Net, name: Option<&str>) -> (RcapDenied, Option<String>, Vec<ChannelId>) {
    let partition = name.map(|name| name.parse().expect("a name"));
    let (last, mut all) = (net.last(), Vec::new());
    for _ in 0..200 {
        net.told.clear();
        net.nodes[last].listen(SERVICE);
        let channel = open(net, 7_000, Beyond { partition, ..Beyond::default() });
        let answer = until_answered(net, last);
        match answer {
            Ok(()) => all.push(channel),
            Err((denied, by)) => return (denied, by, all),
        }
    }
    panic!("a partition that is never full");
}

/// The receiver accepts, if it is asked; the answer that the source gets.
fn until_answered(net: &mut Net, last: usize) -> Result<(), (RcapDenied, Option<String>)> {
    for _ in 0..400 {
        let asked = net.told.iter().find_map(|(of, event)| incoming(event).filter(|_| *of == last));
        if let Some((receiving, ..)) = asked {
            let now = net.now;
            net.told.retain(|(_, event)| incoming(event).is_none());
            assert!(net.nodes[last].accept(now, receiving));
            net.drain(last);
        }
        let answer = net.told.iter().find_map(|(of, event)| match event {
            ChannelEvent::Opened { .. } if *of == 0 => Some(Ok(())),
            ChannelEvent::Denied { denied, partition, .. } if *of == 0 => {
                Some(Err((*denied, partition.clone())))
            }
            _ => None,
        });
        if let Some(answer) = answer {
            return answer;
        }
        net.run(Span::from_millis(1));
    }
    panic!("neither opened nor denied: {:?}", net.told);
}

/// The source closes these channels, and all nodes hear of it.
pub(super) fn close_all(net: &mut Net, channels: Vec<ChannelId>) {
    for channel in channels {
        let now = net.now;
        net.nodes[0].close(now, channel);
        net.drain(0);
    }
    net.run(Span::from_millis(1_000));
}

/// The percent of each network of its way that the partition of a channel has.
pub(super) fn percents_of(detail: &ChannelDetail) -> Vec<u8> {
    detail.hops.iter().map(|(record, _)| record.hop.percent).collect()
}

pub(super) fn channels_of(net: &Net, node: usize, port: u8) -> Vec<usize> {
    let port = net.nodes[node].ports().nth(usize::from(port)).expect("it has it");
    port.status().partitions.iter().map(|of| of.load.channels).collect()
}

/// TENET-7-2: a full partition refuses by its name, takes nothing of another one, and nothing leaks when its
/// channels end.
#[test]
fn a_full_partition_of_nodes_refuses_by_name_and_the_others_have_room() {
    let shares = parted(&[("studio", 40), ("office", 20)]);
    let mut alone = meet(Net::parted(&[Link, Link], shares));
    let (.., untouched) = filled(&mut alone, Some("office"));
    let mut net = meet(Net::parted(&[Link, Link], shares));
    let (denied, by, studio) = filled(&mut net, Some("studio"));
    assert_eq!((denied.node, by.as_deref()), (id(0), Some("studio")), "{denied:?}");
    let (_, by, office) = filled(&mut net, Some("office"));
    assert_eq!((by.as_deref(), office.len()), (Some("office"), untouched.len()));
    assert!(studio.len() > office.len() && !office.is_empty(), "{} {}", studio.len(), office.len());
    let (_, by, rest) = filled(&mut net, None);
    assert_eq!(by.as_deref(), Some("rest"));
    for (node, port) in [(0, 0), (1, 1)] {
        assert_eq!(channels_of(&net, node, port), [rest.len(), studio.len(), office.len()]);
    }
    let (denied, by, _) = filled(&mut net, Some("nobody"));
    // The rest is full already: that is what a name counts in which a link does not have.
    assert_eq!((by.as_deref(), denied.test.name()), (Some("rest"), "Load"));
    let detail = net.nodes[0].detail(studio[0]).expect("it is sent here");
    assert_eq!(
        (percents_of(&detail), detail.partition.map(|name| name.to_string())),
        (vec![40; 2], Some("studio".into()))
    );
    // Their time is given back, each to its own partition.
    close_all(&mut net, [studio, office].concat());
    for (node, port) in [(0, 0), (1, 1)] {
        assert_eq!(channels_of(&net, node, port), [rest.len(), 0, 0]);
    }
    let (.., again) = filled(&mut net, Some("office"));
    assert_eq!(again.len(), untouched.len());
}

/// A name that no link of the way has is a mistake, and is told as one.
#[test]
fn a_partition_that_no_link_has_is_refused_by_the_destination() {
    let mut net = meet(Net::parted(&[Link, Link], parted(&[("studio", 40)])));
    let (denied, by, open) = filled(&mut net, Some("studoi"));
    assert_eq!((denied.node, denied.test.name(), by), (id(2), "Partition", None));
    assert!(open.is_empty());
    net.run(Span::from_millis(200));
    assert_eq!((net.reservations(0, 0), net.reservations(1, 1)), (0, 0), "nothing stays reserved");
}

/// Opens a channel that may be late by one unit in ten; the packets in 2^63 that may be late at each hop.
fn late_at_hops(net: &mut Net, beyond: Beyond) -> Vec<u64> {
    let last = net.last();
    net.told.clear();
    net.nodes[last].listen(SERVICE);
    let chances = Chances { late_ppb: 100_000_000, loss_ppb: 100_000_000 };
    let channel = open(net, 1_000, Beyond { chances, ..beyond });
    until_answered(net, last).expect("there is room");
    let detail = net.nodes[0].detail(channel).expect("it is sent here");
    detail.hops.iter().take(last).map(|(record, _)| record.hop.late.get()).collect()
}

/// The test of the class is proved for whole links and for all times: elsewhere a hop is guaranteed, which
/// keeps each chance.
#[test]
fn a_statistical_channel_is_guaranteed_on_divided_links_and_where_it_is_booked() {
    let late = late_at_hops(&mut chain(&[Link, Link]), Beyond::default());
    assert!(late.len() == 2 && late.iter().all(|late| *late > 0), "{late:?}");
    let booked = Beyond { end: Some(Span::from_millis(60_000)), ..Beyond::default() };
    assert_eq!(late_at_hops(&mut chain(&[Link, Link]), booked), [0, 0]);
    let mut net = meet(Net::parted(&[Link, Link], parted(&[("studio", 40)])));
    assert_eq!(late_at_hops(&mut net, Beyond::default()), [0, 0]);
    let partition = Some("studio".parse().expect("a name"));
    assert_eq!(late_at_hops(&mut net, Beyond { partition, ..Beyond::default() }), [0, 0]);
    assert_eq!(channels_of(&net, 0, 0), [1, 1]);
}

/// TENET-7-3: a booked channel is agreed on at once. Its units wait for its start, it ends by itself, and the
/// nodes have nothing of it left.
#[test]
fn a_booked_channel_begins_and_ends_by_itself() {
    let mut net = chain(&[Link, Link]);
    net.nodes[2].listen(SERVICE);
    let asked = net.now;
    let (start, end) = (Span::from_millis(400), Span::from_millis(900));
    let sending = open(&mut net, 1_000, Beyond { start: Some(start), end: Some(end), ..Beyond::default() });
    let answer = until_answered(&mut net, 2);
    assert!(answer.is_ok(), "{answer:?}");
    net.unit(sending, 0, 1_000);
    net.run(Span::from_millis(200));
    assert!(net.came.is_empty(), "nothing leaves before the start");
    net.run(Span::from_millis(300));
    let first = net.came.first().map(|came| (came.number, came.took));
    assert!(first.is_some_and(|(number, took)| number == 0 && took >= Span::from_millis(300)), "{first:?}");
    net.unit(sending, 1, 1_000);
    let (of, cause) = until(&mut net, 0, closed);
    assert_eq!((of, cause), (sending, CloseCause::Finished));
    let took = net.now.since(asked);
    assert!(took >= end && took < end + Span::from_millis(1_500), "{took}");
    assert_eq!(until(&mut net, 2, closed).1, CloseCause::Finished);
    assert_eq!(net.came.iter().map(|came| came.number).collect::<Vec<_>>(), [0, 1]);
    net.run(Span::from_millis(500));
    assert_eq!((net.reservations(0, 0), net.reservations(1, 1)), (0, 0), "nothing stays reserved");
}

/// A channel without an end is told when a booking would be in the way; with that end it fits. A booking
/// that its program leaves is gone.
#[test]
fn a_channel_without_an_end_is_told_when_a_booking_would_be_in_the_way() {
    let mut net = chain(&[Link, Link]);
    let minute = Span::from_millis(60_000);
    let mut ask = |octets: u32, start: Option<Span>, end: Option<Span>| {
        net.told.clear();
        net.nodes[2].listen(SERVICE);
        let channel = open(&mut net, octets, Beyond { start, end, ..Beyond::default() });
        until_answered(&mut net, 2).map(|()| channel).map_err(|(denied, _)| denied)
    };
    // 300,000 octets each 40 ms are 60 Mbit/s of 100.
    let booked = ask(300_000, Some(minute), Some(minute * 2)).expect("nobody else is there");
    let denied = ask(300_000, None, None).expect_err("the booking is in the way");
    assert_eq!((denied.node, denied.test.name()), (id(0), "Load"));
    let nearest = Span::from_nanos(denied.nearest_end_ns);
    assert!(nearest > Span::from_millis(50_000) && nearest < minute, "{nearest}");
    assert!(ask(300_000, None, Some(minute)).is_err(), "clocks and messages are charged");
    let until_then = ask(300_000, None, Some(nearest)).expect("it was said to fit");
    assert!(ask(300_000, Some(minute * 3), None).is_ok(), "behind the booking there is room");
    for channel in [booked, until_then] {
        let now = net.now;
        net.nodes[0].close(now, channel);
        net.drain(0);
        net.run(Span::from_millis(200));
    }
    net.told.clear();
    net.nodes[2].listen(SERVICE);
    open(&mut net, 300_000, Beyond { end: Some(minute * 2), ..Beyond::default() });
    assert!(until_answered(&mut net, 2).is_ok(), "the booking is gone");
}

/// A booking that begins so soon that no end fits before it left the refusal without any offer.
#[test]
fn a_channel_beside_a_booking_that_begins_soon_is_offered_less_for_all_its_time() {
    let mut net = chain(&[Link, Link]);
    let second = Span::from_millis(1_000);
    let mut ask = |octets: u32, start: Option<Span>, end: Option<Span>| {
        net.told.clear();
        net.nodes[2].listen(SERVICE);
        let channel = open(&mut net, octets, Beyond { start, end, ..Beyond::default() });
        until_answered(&mut net, 2).map(|()| channel).map_err(|(denied, _)| denied)
    };
    ask(300_000, Some(second * 5), Some(second * 60)).expect("nobody else is there");
    let denied = ask(300_000, None, None).expect_err("the booking is in the way");
    assert_eq!((denied.node, denied.test.name(), denied.nearest_end_ns), (id(0), "Load", 0));
    let offered = denied.nearest_octets;
    assert!((100_000..300_000).contains(&offered), "{denied:?}");
    let more = ask(offered + 2_000, None, None).expect_err("it is the largest");
    assert_eq!(more.nearest_octets, offered);
    ask(offered, None, None).expect("it was said to fit");
    // Now there is less than that beside both.
    let denied = ask(300_000, None, None).expect_err("no room");
    assert!(denied.nearest_octets < offered, "{denied:?}");
}
