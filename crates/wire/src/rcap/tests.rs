use super::*;
use crate::fuzz::fuzz_rcap;
use proptest::prelude::*;
use rota_contract::{CloseCause, Group};

fn of() -> RcapChannel {
    RcapChannel { origin: NodeId(0x0101), channel: ChannelId(0x0202), attempt: 3 }
}

fn record(terms: &[u8]) -> RcapRecord<'_> {
    let clock = RcapRecord { regulator: 3, error_ns: 4, medium: 1, ..RcapRecord::default() };
    RcapRecord {
        node: NodeId(7),
        delay_ns: 10,
        link_least_ns: 2,
        link_most_ns: 3,
        buffers: 5,
        terms,
        ..clock
    }
}

fn written(records: &[RcapRecord<'_>]) -> Vec<u8> {
    let mut octets = Vec::new();
    records.iter().for_each(|record| record.append(&mut octets).expect("a short record"));
    octets
}

fn request(nodes: RcapRecords<'_>) -> RcapRequest<'_> {
    RcapRequest {
        destination: NodeId(0x0303),
        service: 9,
        uid: 1000,
        initiation: RcapInitiation::Source,
        way: RcapWay {
            allows_withdrawn: false,
            partition: "studio".parse().ok(),
            start_ns: 70,
            end_ns: 80,
            tree: ChannelId::NONE,
            group: None,
            via: RcapRoute::default(),
        },
        lease_ns: 1_000,
        x_min_ns: 10,
        x_ave_ns: 20,
        interval_ns: 40,
        s_max: 500,
        s_min: 100,
        packet_max: 1_000,
        host_slack_ns: 1,
        delay_max_ns: 99,
        jitter_max_ns: u64::MAX,
        chances: RcapChances { late_most: 5, loss_most: 0 },
        reroute_ns: 2_000,
        room: 600,
        again: Some(RcapAgain {
            is_change: false,
            takes_place: false,
            avoid: NodeId(6),
            apart: RcapRoute::default(),
        }),
        nodes,
    }
}

fn octets(body: RcapBody<'_>) -> Vec<u8> {
    let message = RcapMessage { of: of(), body };
    let mut out = vec![0xee; message.octets()];
    assert_eq!(message.emit(&mut out), Some(message.octets()));
    assert_eq!(RcapMessage::parse(&out), Ok(message));
    out
}

fn denied() -> RcapDenied {
    RcapDenied {
        node: NodeId(4),
        test: RcapTest::PathDelay,
        standing: RcapStanding::RaceLast,
        margin_ns: 5,
        nearest_delay_ns: 6,
        nearest_jitter_ns: 11,
        nearest_x_min_ns: 12,
        nearest_octets: 7,
        part: RcapPart::Rest,
        nearest_end_ns: 8,
        needed: 9,
        most: 10,
    }
}

/// 2, then 5.
fn way() -> RcapRoute<'static> {
    RcapRoute::parse(&[0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 5]).unwrap()
}

fn invite() -> RcapInvite<'static> {
    let (source, pair) = (NodeId(9), ChannelId(8));
    RcapInvite { source, service: 3, lease_ns: 4_000, pair, way: way() }
}

fn approach() -> RcapApproach<'static> {
    let (destination, via, around) = (NodeId(9), RcapRoute::default(), way());
    RcapApproach { destination, lease_ns: 4_000, passed: way(), via, around }
}

/// TENET-R13: the header octet by octet, and each kind with its code and direction.
#[test]
fn each_kind_has_its_code_and_direction_and_reads_back() {
    let records = written(&[record(&[]), record(&[])]);
    let certified = written(&[record(b"terms"), record(&[])]);
    let plain = RcapRecords::parse(&records, 2).unwrap();
    let nodes = RcapRecords::parse(&certified, 2).unwrap();
    let close = RcapClose { cause: CloseCause::PeerGone, node: NodeId(8) };
    let status = RcapStatus { question: 6, nodes };
    let all = [
        RcapBody::EstablishRequest(request(plain)),
        RcapBody::EstablishAccept(RcapAccept { label: 0x0405, nodes }),
        RcapBody::EstablishDenied(denied()),
        RcapBody::StatusRequest(status),
        RcapBody::StatusReport(status),
        RcapBody::CloseForward(close),
        RcapBody::CloseReverse(close),
        RcapBody::Invite(invite()),
        RcapBody::InviteDenied(RcapInviteDenied { denied: denied(), way: way() }),
        RcapBody::Approach(approach()),
    ];
    let codes = [(1, 0), (2, 1), (3, 1), (4, 0), (5, 1), (6, 0), (7, 1), (8, 1), (9, 0), (10, 0)];
    for (body, (code, upstream)) in all.into_iter().zip(codes) {
        let message = octets(body);
        let length = (message.len() as u16).to_be_bytes();
        assert_eq!(
            message[..6],
            [0x52, RCAP_VERSION, length[0], length[1], code, upstream],
            "{:?}",
            body.kind()
        );
        assert_eq!(message[6..24], [0, 3, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2]);
        assert_eq!(
            (body.kind(), body.kind().is_downstream()),
            (RcapKind::ALL[usize::from(code) - 1], upstream == 0)
        );
        fuzz_rcap(&message);
    }
    assert_eq!(nodes.iter().collect::<Vec<_>>(), [record(b"terms"), record(&[])]);
    assert_eq!((nodes.count(), RcapRecords::default().iter().count()), (2, 0));
}

/// The refusal of `message` with `octets` written over it at `at`.
fn refused(message: &[u8], at: usize, octets: &[u8]) -> Option<&'static str> {
    let mut message = message.to_vec();
    message[at..at + octets.len()].copy_from_slice(octets);
    match RcapMessage::parse(&message) {
        Err(Malformed::Field(name)) => Some(name),
        Err(Malformed::Version(_)) => Some("version"),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

#[test]
fn each_wrong_field_of_a_request_is_refused_by_its_name() {
    let records = written(&[record(&[])]);
    let message = octets(RcapBody::EstablishRequest(request(RcapRecords::parse(&records, 1).unwrap())));
    let body = RCAP_HEADER_OCTETS;
    let first = body + RcapRequest::OCTETS;
    let (zero, huge) = ([0; 8], [0xff; 8]);
    let (zero_32, huge_32) = ([0; 4], [0xff; 4]);
    let cases: &[(usize, &[u8], &str)] = &[
        (0, &[0x4c], "kind"),
        (1, &[RCAP_VERSION + 1], "version"),
        (2, &[0, 23], "length"),
        (4, &[11], "type"),
        (4, &[2], "direction"),
        (5, &[1], "direction"),
        (6, &[0, 0], "attempt"),
        (8, &zero, "origin"),
        (16, &zero, "channel"),
        (body, &zero, "destination"),
        (body + 14, &[3], "initiation"),
        (body + 14, &[1], "invitation"),
        (body + 15, &[4], "class"),
        (body + 15, &[0], "Z_min"),
        (body + 16, &zero, "lease"),
        (body + 16, &huge, "lease"),
        (body + 24, &zero, "X_min"),
        (body + 24, &huge, "X_ave"),
        (body + 32, &zero, "X_ave"),
        (body + 32, &huge, "I"),
        (body + 40, &zero, "I"),
        (body + 48, &zero_32, "S_max"),
        (body + 48, &[0, 0, 0, 1], "S_min"),
        (body + 52, &zero_32, "S_min"),
        (body + 52, &huge_32, "S_min"),
        (body + 56, &zero_32, "packet"),
        (body + 68, &zero, "D_max"),
        (body + 84, &huge, "Z_min"),
        (body + 84, &zero, "class"),
        (body + 92, &huge, "W_min"),
        (body + 100, &huge, "reroute"),
        (body + 100, &zero, "again"),
        (body + 108, &[5], "again"),
        (body + 108, &[3], "apart"),
        (body + 108, &[0], "avoid"),
        (body + 117, &[0, 0, 1, 0xf3], "room"),
        (body + 121, &[1], "invitation"),
        (body + 129, b" ", "partition"),
        (body + 144, b"x", "partition"),
        (body + 145, &huge, "start"),
        (body + 153, &[0; 8], "end"),
        (body + 153, &[0x7f; 8], "end"),
        (body + 161, &[1], "tree"),
        (body + 187, &[17], "way"),
        (body + 188, &[2], "record length"),
        (body + 188, &[17], "nodes"),
        (first, &[0, 0], "record length"),
        (first, &[0xff, 0xff], "record length"),
        (first + 2, &zero, "record node"),
        (first + 11, &[5], "record medium"),
        (first + 12, &[4], "record regulator"),
        (first + 12, &[1], "record error"),
        (first + 13, &[2], "record state"),
        (first + 38, &huge, "record most link time"),
        (first + 62, &huge, "record late"),
        (first + 98, &[100], "record percent"),
    ];
    for (at, wrong, name) in cases {
        assert_eq!(refused(&message, *at, wrong), Some(*name), "at {at}");
    }
}

fn member(at_once: u8, request: RcapRequest<'_>) -> RcapRequest<'_> {
    let group = Some(Group { name: "talk".parse().expect("a name"), at_once });
    let way = RcapWay { start_ns: 0, end_ns: u64::MAX, group, ..request.way };
    RcapRequest { way, chances: RcapChances::default(), ..request }
}

/// TENET-6-5: a member of a group is guaranteed, and has no time of its own.
#[test]
fn a_member_of_a_group_has_no_time_and_no_chance() {
    let message = octets(RcapBody::EstablishRequest(member(2, request(RcapRecords::default()))));
    let body = RCAP_HEADER_OCTETS;
    assert_eq!(message[body + 169..][..17], *b"talk\0\0\0\0\0\0\0\0\0\0\0\0\x02");
    let cases: [(usize, &[u8], &str); 5] = [
        (body + 152, &[1], "group"),
        (body + 153, &[0; 7], "group"),
        (body + 169, &[0; 16], "at once"),
        (body + 185, &[0], "at once"),
        (body + 185, &[17], "at once"),
    ];
    for (at, wrong, name) in cases {
        assert_eq!(refused(&message, at, wrong), Some(name), "at {at}");
    }
    let message = octets(RcapBody::EstablishRequest(request(RcapRecords::default())));
    let cases: [(usize, &[u8], &str); 4] = [
        (body + 169, b" ", "group"),
        (body + 169, b"talk", "at once"),
        (body + 184, b"x", "group"),
        (body + 185, &[1], "at once"),
    ];
    for (at, wrong, name) in cases {
        assert_eq!(refused(&message, at, wrong), Some(name), "without a group, at {at}");
    }
    let late = RcapChances { late_most: 1, loss_most: 0 };
    let chance = RcapRequest { chances: late, ..member(2, request(RcapRecords::default())) };
    let message = RcapMessage { of: of(), body: RcapBody::EstablishRequest(chance) };
    let mut out = vec![0; message.octets()];
    assert!(message.emit(&mut out).is_some());
    assert_eq!(RcapMessage::parse(&out), Err(Malformed::Field("group")));
}

/// TENET-7-4: a branch changes beside the contract that it has, and in no other way.
#[test]
fn a_branch_asks_again_for_a_change_beside_its_contract_alone() {
    let standing = request(RcapRecords::default());
    let way = RcapWay { tree: ChannelId(5), start_ns: 0, end_ns: u64::MAX, ..standing.way };
    let apart = RcapRoute::default();
    let beside = RcapAgain { is_change: true, takes_place: false, avoid: NodeId::UNKNOWN, apart };
    let changes = RcapRequest { way, reroute_ns: 0, again: Some(beside), ..standing };
    let message = octets(RcapBody::EstablishRequest(changes));
    let again = RCAP_HEADER_OCTETS + 108;
    assert_eq!(message[again], 2);
    assert_eq!(refused(&message, again, &[0]), None);
    assert_eq!(refused(&message, again, &[4]), Some("tree"));
    assert_eq!(refused(&message, again - 1, &[1, 1]), Some("tree"), "another path");
}

#[test]
fn a_request_with_terms_is_refused() {
    let records = written(&[record(b"terms")]);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let message = RcapMessage { of: of(), body: RcapBody::EstablishRequest(request(nodes)) };
    let mut out = vec![0; message.octets()];
    assert!(message.emit(&mut out).is_some());
    assert_eq!(RcapMessage::parse(&out), Err(Malformed::Field("terms")), "a request certifies nothing");
}

#[test]
fn each_wrong_field_of_an_answer_is_refused_by_its_name() {
    let records = written(&[record(&[])]);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let accept = octets(RcapBody::EstablishAccept(RcapAccept { label: 1, nodes }));
    assert_eq!(refused(&accept, 24, &[0, 0]), Some("label"));
    let mut empty = accept[..27].to_vec();
    (empty[3], empty[26]) = (27, 0);
    assert_eq!(RcapMessage::parse(&empty), Err(Malformed::Field("nodes")), "no node has accepted");
    let denied = octets(RcapBody::EstablishDenied(denied()));
    assert_eq!(refused(&denied, 24, &[0; 8]), Some("node"));
    assert_eq!(refused(&denied, 32, &[RcapTest::ALL.len() as u8]), Some("test"));
    assert_eq!(refused(&denied, 33, &[3]), Some("status"));
    assert_eq!(refused(&denied, 70, &[3]), Some("part"));
    let close = RcapClose { cause: CloseCause::Finished, node: NodeId(1) };
    let close = octets(RcapBody::CloseReverse(close));
    assert_eq!(refused(&close, 24, &[20]), Some("cause"));
    assert_eq!(refused(&close, 25, &[0; 8]), Some("node"));
    // Each cut of each message, its length mended, is refused by a field or as too long.
    for message in [accept, denied, close] {
        for cut in RCAP_HEADER_OCTETS..message.len() {
            let mut cut = message[..cut].to_vec();
            cut[3] = cut.len() as u8;
            assert!(matches!(RcapMessage::parse(&cut), Err(Malformed::Field(_))), "{cut:?}");
        }
        let mut longer = [&message[..], &[0]].concat();
        longer[3] = longer.len() as u8;
        assert!(RcapMessage::parse(&longer).is_err());
    }
}

/// TENET-6-8.
#[test]
fn each_wrong_field_of_an_invitation_is_refused_by_its_name() {
    let message = octets(RcapBody::Invite(invite()));
    let (body, zero, huge) = (RCAP_HEADER_OCTETS, [0; 8], [0xff; 8]);
    let two = [0, 0, 0, 0, 0, 0, 0, 2];
    let cases: [(usize, &[u8], &str); 8] = [
        (body, &zero, "source"),
        (body + 10, &zero, "lease"),
        (body + 10, &huge, "lease"),
        (body + 26, &[0], "way"),
        (body + 26, &[3], "way"),
        (body + 26, &[0xff], "way"),
        (body + 27, &zero, "way node"),
        (body + 35, &two, "way node"),
    ];
    for (at, wrong, name) in cases {
        let said = refused(&message, at, wrong);
        assert_eq!(said, Some(name), "at {at}");
    }
    let denied = octets(RcapBody::InviteDenied(RcapInviteDenied { denied: denied(), way: way() }));
    assert_eq!(refused(&denied, body + 8, &[RcapTest::ALL.len() as u8]), Some("test"));
    assert_eq!(refused(&denied, body + 64, &zero), Some("way node"));
    assert_eq!(way().iter().collect::<Vec<_>>(), [NodeId(2), NodeId(5)]);
    assert_eq!(RcapRoute::parse(&RcapRoute::written(&[NodeId(2), NodeId(5)])), Ok(way()));
    let many: Vec<NodeId> = (1..=RCAP_NODES_MAX as u64 + 1).map(NodeId).collect();
    assert!(RcapRoute::parse(&RcapRoute::written(&many)).is_err());
    assert!(RcapRoute::parse(&[1]).is_err(), "half a node");
}

#[test]
fn each_wrong_field_of_an_approach_is_refused_by_its_name() {
    let message = octets(RcapBody::Approach(approach()));
    let body = RCAP_HEADER_OCTETS;
    let cases: [(usize, &[u8], &str); 6] = [
        (5, &[1], "direction"),
        (body, &[0; 8], "destination"),
        (body + 8, &[0; 8], "lease"),
        (body + 8, &(RCAP_LEASE_MAX_NS + 1).to_be_bytes(), "lease"),
        (body + 17, &[0; 8], "way node"),
        (body + 34, &[9], "way"),
    ];
    for (at, wrong, name) in cases {
        assert_eq!(refused(&message, at, wrong), Some(name), "at {at}");
    }
    let nowhere = RcapApproach { passed: RcapRoute::default(), ..approach() };
    let message = RcapMessage { of: of(), body: RcapBody::Approach(nowhere) };
    let mut out = vec![0; message.octets()];
    assert_eq!(message.emit(&mut out), Some(out.len()));
    assert_eq!(RcapMessage::parse(&out), Err(Malformed::Field("way")), "it has passed nobody");
}

#[test]
fn a_message_and_a_record_have_a_largest_size() {
    let terms = vec![7; 0xffff - RcapRecord::OCTETS + 2];
    let mut octets = Vec::new();
    assert_eq!(record(&terms).append(&mut octets), Some(()));
    let longer = [&terms[..], &[7]].concat();
    assert_eq!(record(&longer).append(&mut octets), None);
    assert_eq!(octets.len(), 0xffff + 2, "nothing is appended");
    let nodes = RcapRecords::parse(&octets, 1).unwrap();
    let message = RcapMessage { of: of(), body: RcapBody::StatusReport(RcapStatus { question: 1, nodes }) };
    assert_eq!(message.emit(&mut vec![0; message.octets()]), None);
    let many = written(&[record(&[]); RCAP_NODES_MAX + 1]);
    assert_eq!(RcapRecords::parse(&many, RCAP_NODES_MAX + 1), Err(Malformed::Field("nodes")));
}

/// The length came first: an accept with 19,460 octets of certificates was taken for a statement of
/// neighbours, and its session ended.
#[test]
fn no_message_begins_as_a_statement_of_neighbours_does() {
    let terms = vec![7; 0x4c04 - RCAP_HEADER_OCTETS - 3 - RcapRecord::OCTETS];
    let records = written(&[record(&terms)]);
    let nodes = RcapRecords::parse(&records, 1).unwrap();
    let message = octets(RcapBody::EstablishAccept(RcapAccept { label: 1, nodes }));
    assert_eq!(message.len(), 0x4c04);
    assert_ne!(message[0], crate::LINK_STATE_KIND);
    assert!(crate::LinkStatement::parse(&message).is_err());
}

#[test]
fn every_test_has_its_code_and_words_of_its_own() {
    for (code, test) in (0..).zip(RcapTest::ALL) {
        assert_eq!((test.code(), RcapTest::from_code(code)), (code, Ok(*test)));
        assert!(RcapTest::ALL.iter().all(|other| other == test || other.words() != test.words()));
        assert_eq!(test.name(), format!("{test:?}"));
    }
}

prop_compose! {
    fn any_record()(
        (node, port, medium, is_open) in (1u64.., any::<u8>(), 0u8..=4, any::<bool>()),
        regulator in 0u8..=3,
        (error_ns, delay_ns, service_least_ns) in any::<(u64, u64, u64)>(),
        links in any::<(u64, u64)>(),
        (host_slack_ns, late, buffers) in (any::<u64>(), 0..=1u64 << 63, any::<u32>()),
        (packets, dropped, held) in any::<(u64, u64, u64)>(),
    ) -> RcapRecord<'static> {
        RcapRecord {
            node: NodeId(node), port, medium, regulator, is_open,
            error_ns: if regulator < 2 { 0 } else { error_ns },
            delay_ns, service_least_ns,
            link_least_ns: links.0.min(links.1), link_most_ns: links.0.max(links.1),
            host_slack_ns, late, buffers, packets, dropped, held, terms: &[],
            percent: if matches!(medium, 1 | 2 | 4) { port % 100 } else { 0 },
        }
    }
}

prop_compose! {
    fn any_request()(
        (destination, service, uid, way) in (1u64.., any::<u16>(), any::<u32>(), 0usize..3),
        invitation in (1u64..).prop_map(ChannelId),
        (lease_ns, x_min_ns) in (1..=RCAP_LEASE_MAX_NS, 1..1u64 << 40),
        (longer, longest) in (0..1u64 << 40, 0..1u64 << 40),
        sizes in (1..=u32::MAX, 1..=u32::MAX, 1..=u32::MAX), host_slack_ns in any::<u64>(),
        (delay_max_ns, jitter_max_ns) in (1u64.., any::<u64>()),
        (late_most, loss_most) in (0..1u64 << 63, 0..1u64 << 63),
        (reroute_ns, allows) in (0..=RCAP_REROUTE_MAX_NS, any::<bool>()),
    ) -> RcapRequest<'static> {
        RcapRequest {
            destination: NodeId(destination), service, uid,
            initiation: [
                RcapInitiation::Source,
                RcapInitiation::Receiver(invitation),
                RcapInitiation::Duplex(invitation),
            ][way],
            way: RcapWay {
                allows_withdrawn: allows,
                partition: allows.then(|| "part_1".parse().expect("a name")),
                start_ns: reroute_ns / 2,
                tree: ChannelId::NONE,
                end_ns: if allows { u64::MAX } else { reroute_ns + 1 },
                group: None,
                via: RcapRoute::default(),
            },
            lease_ns, x_min_ns, x_ave_ns: x_min_ns + longer, interval_ns: x_min_ns + longer + longest,
            s_max: sizes.0.max(sizes.1), s_min: sizes.0.min(sizes.1), packet_max: sizes.2, host_slack_ns,
            delay_max_ns, jitter_max_ns, chances: RcapChances { late_most, loss_most }, reroute_ns,
            room: sizes.0.max(sizes.1).max(sizes.2),
            again: (reroute_ns > 0 || loss_most % 2 == 1).then_some(RcapAgain {
                is_change: loss_most % 2 == 1,
                takes_place: loss_most % 4 == 3,
                avoid: NodeId(late_most),
                apart: RcapRoute::default(),
            }),
            nodes: RcapRecords::default(),
        }
    }
}

proptest! {
    #[test]
    fn every_message_reads_back(
        request in any_request(), records in prop::collection::vec(any_record(), 1..=RCAP_NODES_MAX),
        terms in prop::collection::vec(any::<u8>(), 0..40),
        (label, question) in (1u16.., any::<u32>()),
        (margin_ns, nearest_delay_ns, nearest_octets) in any::<(u64, u64, u32)>(),
        (test, cause, node) in (0..RcapTest::ALL.len(), 0u64..=18, 1u64..),
    ) {
        let plain = written(&records);
        let mut certified = records.clone();
        certified[0].terms = &terms;
        let certified = written(&certified);
        let nodes = RcapRecords::parse(&certified, records.len()).unwrap();
        let plain = RcapRecords::parse(&plain, records.len()).unwrap();
        prop_assert_eq!(&plain.iter().collect::<Vec<_>>(), &records);
        let close = RcapClose { cause: CloseCause::from_code(cause), node: NodeId(node) };
        let (test, standing) = (RcapTest::ALL[test], RcapStanding::RaceFirst);
        let node = NodeId(node);
        let part = [RcapPart::Whole, RcapPart::Named, RcapPart::Rest][usize::from(label % 3)];
        let nearest_end_ns = margin_ns ^ nearest_delay_ns;
        let denied = RcapDenied {
            node,
            test,
            standing,
            margin_ns,
            nearest_delay_ns,
            nearest_jitter_ns: nearest_delay_ns.rotate_left(3),
            nearest_x_min_ns: nearest_delay_ns ^ 5,
            nearest_octets,
            part,
            nearest_end_ns,
            needed: nearest_octets ^ 5,
            most: nearest_octets.rotate_left(7),
        };
        octets(RcapBody::EstablishRequest(RcapRequest { nodes: plain, ..request }));
        let of_group = member(1 + (label % 16) as u8, RcapRequest { nodes: plain, ..request });
        octets(RcapBody::EstablishRequest(of_group));
        let (is_change, takes_place, avoid) = (false, false, NodeId::UNKNOWN);
        let second = Some(RcapAgain { is_change, takes_place, avoid, apart: way() });
        octets(RcapBody::EstablishRequest(RcapRequest { nodes: plain, again: second, ..request }));
        let via = RcapWay { via: way(), ..request.way };
        octets(RcapBody::EstablishRequest(RcapRequest { nodes: plain, way: via, ..request }));
        octets(RcapBody::EstablishAccept(RcapAccept { label, nodes }));
        octets(RcapBody::EstablishDenied(denied));
        octets(RcapBody::StatusRequest(RcapStatus { question, nodes }));
        octets(RcapBody::StatusReport(RcapStatus { question, nodes }));
        octets(RcapBody::CloseForward(close));
        octets(RcapBody::CloseReverse(close));
        let nodes: Vec<NodeId> = (0..records.len() as u64).map(|of| NodeId(node.0 / 2 + 1 + of)).collect();
        let nodes = RcapRoute::written(&nodes);
        let way = RcapRoute::parse(&nodes).unwrap();
        let lease_ns = 1 + margin_ns % RCAP_INVITE_MAX_NS;
        let (source, pair) = (node, of().channel);
        octets(RcapBody::Invite(RcapInvite { source, service: label, lease_ns, pair, way }));
        octets(RcapBody::InviteDenied(RcapInviteDenied { denied, way }));
        if way.iter().len() > 0 {
            let lease_ns = 1 + margin_ns % RCAP_LEASE_MAX_NS;
            let (destination, passed) = (node, way);
            octets(RcapBody::Approach(RcapApproach { destination, lease_ns, passed, via: way, around: way }));
        }
    }

    /// Any octets, and a sound message with any octet changed: what parses is what was written.
    #[test]
    fn no_octets_make_the_parser_panic(
        octets in prop::collection::vec(any::<u8>(), 0..300),
        (at, octet) in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        fuzz_rcap(&octets);
        let records = written(&[record(&[]), record(&[])]);
        let nodes = RcapRecords::parse(&records, 2).unwrap();
        let mut message = super::tests::octets(RcapBody::EstablishRequest(request(nodes)));
        let at = at.index(message.len());
        message[at] = octet;
        fuzz_rcap(&message);
    }
}
