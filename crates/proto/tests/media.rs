//! The conformance suite of media: each passes the same tests. Two stations on a wire with the rate of the
//! link. The wire hands on frames one after another, and the calls of `Pair` fail where a node spins: a call
//! at its deadline has to do something or to move it.

use crate::pair::{self, A, B, Pair, Sent, UNIT, both, ms};
use rota_contract::{CloseCause, Granted};
use rota_proto::{ChannelEvent, ChannelId, MediumKind, ModeName};
use rota_units::{Instant, Span};
use rota_wire::Kind;

both!(
    two_stations_meet,
    a_share_is_granted_and_its_units_are_in_time,
    units_leave_within_their_share_only,
    a_unit_whose_first_frame_no_slot_takes_is_given_up,
    ordinary_frames_are_served_beside_a_channel_and_never_faster_than_the_link,
    a_share_changes_its_size_when_it_fits,
    a_share_that_is_given_back_leaves_nothing_behind,
    a_full_medium_refuses_and_leaves_old_shares_untouched,
    a_share_that_is_refused_after_its_node_promised_it_ends_its_channel_with_its_cause,
    a_peer_that_is_gone_ends_the_channel_with_a_cause,
    a_cut_wire_ends_the_channel_at_both_ends,
    a_node_that_stops_says_so,
);

const TRT: Span = Span::from_nanos(33_333_333);

/// Units of a channel, one each cycle, which all come within their bound.
fn stream(pair: &mut Pair, channel: ChannelId, first: u64, units: u64, bound: Span) {
    for number in first..first + units {
        pair.unit(channel, number, UNIT);
        pair.run(TRT);
    }
    pair.run(ms(80));
    let came: Vec<_> = pair.came.iter().filter(|came| came.number >= first).collect();
    assert_eq!(came.len() as u64, units);
    for came in came {
        assert!(came.took <= bound, "unit {} took {}, over {bound}", came.number, came.took);
    }
}

/// The cause of a channel's end at A.
fn cause(pair: &Pair, of: ChannelId) -> Option<CloseCause> {
    pair.events.iter().find_map(|(k, event)| match event {
        ChannelEvent::Closed { channel, cause, .. } if (*k, *channel) == (A, of) => Some(*cause),
        _ => None,
    })
}

fn data(pair: &Pair) -> Vec<Sent> {
    pair.sent.iter().filter(|sent| sent.kind == Some(Kind::Data)).copied().collect()
}

fn two_stations_meet(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let numbers = [A, B].map(|k| pair.node(k).medium().station());
    assert_eq!(numbers, [1, 2]);
    for (k, other) in [(A, B), (B, A)] {
        assert_eq!(pair.mode(k), ModeName::Plain);
        let names: Vec<String> =
            pair.node(k).medium().members().iter().map(|member| member.announce.name().to_owned()).collect();
        assert_eq!(names, [format!("n{}", other + 1)]);
        assert!(pair.node(k).medium().shares_clock(pair::mac(other)));
    }
    assert!(pair.gates.is_empty(), "nobody has reserved anything");
    pair.run(ms(20_000));
    pair.assert_nothing_left();
}

fn a_share_is_granted_and_its_units_are_in_time(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, granted) = pair.open(UNIT);
    assert_eq!(granted.contract.unit_octets_max, UNIT);
    assert!(granted.bound() > Span::ZERO && granted.bound() < TRT * 4, "{}", granted.bound());
    assert_eq!((pair.mode(A), pair.is_open(A)), (pair.busy(), false));
    let incoming = |(_, event): &(usize, ChannelEvent)| matches!(event, ChannelEvent::IncomingOpened { .. });
    assert!(pair.events.iter().any(incoming), "the receiver knows the contract");
    assert_eq!(data(&pair).len(), 0, "nothing waits");
    stream(&mut pair, channel, 0, 60, granted.bound());
    assert_eq!(data(&pair).len(), 60 * 5);
    let counters = *pair.node(A).port().counters();
    assert_eq!((counters.units_sent, counters.units_dropped), (60, 0));
}

/// A program that hands over thirty units at once gets no more of the medium than it has reserved.
fn units_leave_within_their_share_only(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, _) = pair.open(UNIT);
    (0..30).for_each(|number| pair.unit(channel, number, UNIT));
    pair.run(TRT * 33);
    let data = data(&pair);
    assert_eq!(data.len(), 30 * 5, "all leave in their turn");
    if kind == MediumKind::Link {
        // Its slots open a window apart, and nothing is ahead of them here.
        let first: Vec<Instant> = data.chunks(5).map(|unit| unit[0].at).collect();
        let apart = first.windows(2).map(|two| two[1].since(two[0])).min().expect("thirty");
        let window = rota_admission::link_window(TRT);
        assert!(apart >= window && apart <= window + ms(1), "{apart}, and a window is {window}");
        return;
    }
    // From its slot's beginning a unit may take its time: the fifteenth part is for that.
    let window = TRT.minus(TRT.div_down(15)).minus(ms(6));
    for (at, first) in data.iter().enumerate() {
        let within = data[at..].iter().take_while(|sent| sent.at < first.at + window).count();
        assert!(within <= 5, "{within} frames from {:?} on", first.at);
    }
}

/// It stuck, and all units behind it.
fn a_unit_whose_first_frame_no_slot_takes_is_given_up(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, _) = pair.open(200);
    for (number, octets) in [(0, 200), (1, UNIT), (2, 200)] {
        pair.unit(channel, number, octets);
    }
    pair.run(TRT * 5);
    let came: Vec<_> = pair.came.iter().map(|came| came.number).collect();
    assert_eq!(came, [0, 2]);
    assert_eq!(pair.node(A).port().counters().units_dropped, 1);
}

fn ordinary_frames_are_served_beside_a_channel_and_never_faster_than_the_link(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, granted) = pair.open(UNIT);
    let begin = pair.now;
    let mut offered = 0;
    // More than the link carries: the queue is full all the time.
    for number in 0..40 {
        pair.unit(channel, number, UNIT);
        for _ in 0..11 {
            for _ in 0..3 {
                pair.host_frame(A, offered);
                offered += 1;
            }
            pair.run(ms(3));
        }
    }
    pair.run(ms(80));
    assert!(pair.came.len() == 40, "{}", pair.came.len());
    assert!(pair.came.iter().all(|came| came.took <= granted.bound()), "{:?}", pair.came);
    let since: Vec<Sent> =
        pair.sent.iter().filter(|sent| sent.from == A && sent.at >= begin).copied().collect();
    let host = since.iter().filter(|sent| sent.kind.is_none()).count();
    assert!(host > 300, "ordinary frames have what is left: {host}");
    assert!(host < offered as usize);
    // At no time more is handed over than the link has carried, but for what the card may hold ahead.
    let mut free = begin;
    for sent in &since {
        let ahead = free.max(sent.at).since(sent.at);
        assert!(ahead <= ms(6), "{ahead} ahead of the wire at {:?}", sent.at);
        free = free.max(sent.at) + wire_time(sent.octets);
    }
}

fn wire_time(octets: usize) -> Span {
    pair::settings(MediumKind::Rether).link.frame_span_up(octets as u64 - 14)
}

fn a_share_changes_its_size_when_it_fits(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, _) = pair.open(UNIT);
    let resized = |pair: &mut Pair, octets: u32| {
        pair.events.clear();
        let now = pair.now;
        pair.node(A).resize(now, channel, octets).expect("it is open");
        pair.drain(A);
        pair.run(TRT * 5);
        pair.events.iter().find_map(|(k, event)| match event {
            ChannelEvent::Changed { granted, .. } if *k == A => Some(Ok(*granted)),
            ChannelEvent::NotChanged { refusal, .. } => Some(Err(refusal.clone())),
            _ => None,
        })
    };
    let less = resized(&mut pair, 2_000).expect("an answer").expect("less always fits");
    assert_eq!(less.contract.unit_octets_max, 2_000);
    let more = resized(&mut pair, UNIT).expect("an answer").expect("it fits again");
    assert!(more.bound() >= less.bound());
    let refusal = resized(&mut pair, UNIT * 8).expect("an answer").expect_err("50 kB are more than a cycle");
    let offer = refusal.counter_offer.expect("something larger than nothing fits").get() as u32;
    assert!((UNIT..UNIT * 8).contains(&offer), "{offer}");
    assert_eq!(pair.node(A).granted(channel).expect("it is open").contract.unit_octets_max, UNIT);
    stream(&mut pair, channel, 0, 20, more.bound());
}

fn a_share_that_is_given_back_leaves_nothing_behind(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    for round in 0..3 {
        let (channel, granted) = pair.open(UNIT);
        stream(&mut pair, channel, 0, 5, granted.bound());
        pair.came.clear();
        let now = pair.now;
        pair.node(A).close(now, channel);
        pair.drain(A);
        pair.run(ms(3_000));
        assert_eq!(cause(&pair, channel), Some(CloseCause::Finished), "round {round}");
        assert_eq!(pair.ends(B).len(), round + 1);
        pair.assert_nothing_left();
    }
}

/// Channels until one is refused: those that are open, with their contracts, and the one that was refused.
fn fill(pair: &mut Pair) -> (Vec<(ChannelId, Granted)>, ChannelId) {
    let mut open = Vec::new();
    loop {
        let channel = pair.ask(UNIT, UNIT);
        pair.run(ms(1_500));
        match pair.granted(channel) {
            Some(granted) => open.push((channel, granted)),
            None => return (open, channel),
        }
        assert!(open.len() < 20);
    }
}

fn refusal(pair: &Pair, of: ChannelId) -> Option<rota_admission::Refusal> {
    pair.events.iter().find_map(|(_, event)| match event {
        ChannelEvent::Refused { channel, refusal } if *channel == of => Some(refusal.clone()),
        _ => None,
    })
}

fn a_full_medium_refuses_and_leaves_old_shares_untouched(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (open, refused) = fill(&mut pair);
    assert_eq!(open.len(), 5, "five streams of 1.5 Mbit/s at 10 Mbit/s");
    let refusal = refusal(&pair, refused).expect("a reason");
    assert!(refusal.margin > Span::ZERO && refusal.margin_bps > 0, "{refusal}");
    for number in 0..30 {
        for (channel, _) in &open {
            pair.unit(*channel, number, UNIT);
        }
        pair.run(TRT);
    }
    pair.run(ms(100));
    assert_eq!(pair.came.len(), 30 * 5);
    for (channel, granted) in &open {
        assert_eq!(pair.node(A).granted(*channel), Some(granted), "no promise has changed");
    }
    // Each unit has its own channel's promise, as its receiver knows it.
    let promised = |of: ChannelId| {
        pair.events.iter().find_map(|(k, event)| match event {
            ChannelEvent::IncomingOpened { channel, granted } if (*k, *channel) == (B, of) => {
                Some(granted.bound())
            }
            _ => None,
        })
    };
    for came in &pair.came {
        let bound = promised(came.channel).expect("it was told");
        assert!(open.iter().any(|(_, granted)| granted.bound() == bound));
        assert!(came.took <= bound, "{came:?}, over {bound}");
    }
    let mut offer = Pair::request(refusal.counter_offer.map_or(1, |octets| octets.get() as u32), UNIT);
    offer.traffic.room_octets = UNIT;
    if refusal.counter_offer.is_some() {
        pair.listener += 1;
        let listener = rota_proto::Listener { id: pair.listener, service: 7, from: None };
        pair.node(B).listen(listener);
        let now = pair.now;
        let channel = pair.node(A).open(now, &offer).expect("a sound request");
        pair.drain(A);
        pair.run(ms(1_500));
        assert!(pair.granted(channel).is_some(), "the counter-offer fits");
    }
}

/// The node has taken the request, the receiver has accepted, and then the medium says no.
fn a_share_that_is_refused_after_its_node_promised_it_ends_its_channel_with_its_cause(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let channel = pair.ask(UNIT * 7, UNIT * 7);
    pair.run(ms(3_000));
    let refusal = refusal(&pair, channel).expect("43 kB in each cycle are more than the medium has");
    assert!(refusal.counter_offer.is_some());
    assert_eq!(pair.ends(A), [], "the refusal is the end");
    // Its listener hears that it never opened, and may listen again.
    let returned = pair.events.iter().find_map(|(k, event)| match event {
        ChannelEvent::Closed { cause, listener, .. } if *k == B => Some((*cause, listener.is_some())),
        _ => None,
    });
    assert_eq!(returned, Some((CloseCause::Refused, true)));
    pair.assert_nothing_left();
}

fn a_peer_that_is_gone_ends_the_channel_with_a_cause(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, granted) = pair.open(UNIT);
    stream(&mut pair, channel, 0, 5, granted.bound());
    pair.kill(B);
    let died = pair.now;
    pair.unit(channel, 5, UNIT);
    while cause(&pair, channel).is_none() && pair.now < died + ms(5_000) {
        pair.run(ms(10));
    }
    assert_eq!(cause(&pair, channel), Some(CloseCause::PeerGone));
    assert!(pair.now.since(died) < ms(2_000), "{}", pair.now.since(died));
    pair.run(ms(3_000));
    assert_eq!(pair.node(A).own_channels().count(), 0);
    assert!(pair.is_open(A), "ordinary traffic is free again");
    pair.restart(B);
    pair.run(ms(4_000));
    let (_, again) = pair.open(UNIT);
    assert_eq!(again.contract.unit_octets_max, UNIT);
}

fn a_cut_wire_ends_the_channel_at_both_ends(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, granted) = pair.open(UNIT);
    stream(&mut pair, channel, 0, 5, granted.bound());
    pair.is_cut = true;
    pair.run(ms(6_000));
    pair.is_cut = false;
    pair.run(ms(8_000));
    assert_eq!(cause(&pair, channel), Some(CloseCause::PeerGone));
    assert!(matches!(pair.ends(B)[..], [CloseCause::PeerGone | CloseCause::WasSilent]), "{:?}", pair.ends(B));
    pair.assert_nothing_left();
    pair.came.clear();
    let (channel, granted) = pair.open(UNIT);
    stream(&mut pair, channel, 0, 5, granted.bound());
}

fn a_node_that_stops_says_so(kind: MediumKind) {
    let mut pair = Pair::new(kind);
    let (channel, _) = pair.open(UNIT);
    let now: Instant = pair.now;
    pair.node(B).leave(now);
    pair.drain(B);
    pair.run(ms(300));
    pair.kill(B);
    pair.run(ms(3_000));
    assert_eq!(cause(&pair, channel), Some(CloseCause::PeerStopped));
    assert_eq!(pair.node(A).own_channels().count(), 0);
    assert!(pair.is_open(A));
}
