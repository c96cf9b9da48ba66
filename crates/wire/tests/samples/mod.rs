//! One value of each kind of body, the same for the page, the captured frames and the properties.

use rota_contract::{ChannelId, NodeId};
use rota_wire::bodies::StationState;
use rota_wire::{
    Announce, ChannelReport, Claim, ClaimGrant, Form, FormMember, Generation, JoinAnswer, Kind, Load,
    MacAddr, ModeNotice, Nack, Phase, Report, ReportHead, Signal, Slot, SlotList, StationSet, Switch,
    SwitchAck, Token, Tpdu, TpduBody, UnitHeader, Verb, Verdict,
};

/// A station's address, as in the lab.
pub fn mac(station: u8) -> MacAddr {
    MacAddr([2, 0x52, 0x4f, 0x54, 0x41, station])
}

pub fn announce(name: &str) -> Announce {
    let mut said = Announce::new(NodeId(0x11), 0x2222, 0x3333, StationState::Plain, name);
    (said.mode_epoch, said.trt_ns, said.rate_bps) = (4, 33_333_333, 10_000_000);
    (said.settings, said.answers, said.llc_address) = (0x5e77, 0xa2, 1);
    said
}

pub fn member(station: u16) -> FormMember {
    FormMember { station, mac: mac(station as u8), incarnation: 0xaa, nonce: 0xbb00 + u64::from(station) }
}

/// A token with so many slots, and with dead stations up to number 11 if wanted.
pub fn token(slots: usize, dead: bool) -> Token {
    let mut list = SlotList::EMPTY;
    for at in 0..slots {
        let station = at as u16 % 250 + 1;
        assert!(
            list.push(Slot { station, tht_ns: 6_000_000, periodic: at % 2 == 0, partition: 0 }),
            "it fits"
        );
    }
    let mut gone = StationSet::EMPTY;
    if dead {
        gone.insert(3);
        gone.insert(11);
    }
    Token {
        mode_epoch: 4,
        cycle: 77,
        residual_ns: 20_000_000,
        trt_ns: 33_333_333,
        phase: Phase::RealTime,
        rested: true,
        audit: None,
        struck: None,
        position: 1,
        next_nrt: 2,
        idle_visits: 3,
        dead: gone,
        slots: list,
        leases: None,
    }
}

/// A report of so many channels.
pub fn report(channels: usize) -> Report {
    let load = |frames| Load { frames, octets: frames * 100 };
    let mut head = ReportHead { at_ns: 5_000_000_000, every_ms: 1_000, ..ReportHead::default() };
    head.kinds = [1, 2, 3, 4, 5].map(load);
    head.levels = [10, 11, 12, 13, 14, 15, 16, 17].map(load);
    (head.foreign, head.foreign_mac) = (load(9), mac(99));
    (head.stalls, head.stall_longest_ns, head.faults, head.dropped) = (2, 3_000_000, 1, 7);
    (head.rotation_ns, head.rotation_max_ns, head.queued) = (33_333_333, 33_400_000, 6);
    head.channels_all = channels as u16;
    let mut report = Report::new(head);
    for at in 0..channels {
        let channel = ChannelReport {
            channel: ChannelId(0x1_0000_0001 + at as u64),
            peer_station: 5,
            label: 7,
            sending: at % 2 == 0,
            one_clock: true,
            unit_octets_max: 6_250,
            period_ns: 33_333_333,
            tht_ns: 6_000_000,
            bound_ns: 40_000_000,
            units: 100,
            fragments: 500,
            octets: 600_000,
            late: 1,
            lost: 14,
            incomplete: 2,
            latest_by_ns: 800_000,
            unread: 3,
            delay_max_ns: 34_000_000,
            delay_recent_ns: 33_000_000,
        };
        assert!(report.push(channel), "it fits");
    }
    report
}

/// The body of each kind: what it is, and its octets.
pub fn bodies() -> Vec<(Kind, Vec<u8>)> {
    let generation = Generation { counter: 9, station: 2 };
    let mut form = Form::new(4, 1, 0, 1);
    assert!(form.push(member(1)) && form.push(member(2)), "two fit");
    form.settings = 0x5e77;
    let list = Some(token(1, false));
    let answer = JoinAnswer::new(6, 0xc4, Verdict::Prove);
    let grant = ClaimGrant { generation, seen: generation, seen_seq: 500, key_epoch: 1, list };
    let mut signal = Signal::new(Verb::Opened, ChannelId(0x1_0000_0001), 7);
    (signal.service, signal.unit_octets_max, signal.period_ns) = (5, 6_250, 33_333_333);
    (signal.bound_ns, signal.final_unit) = (40_000_000, 0);
    let switch =
        Switch { mode_epoch: 4, nonce: 6, trt_ns: 33_333_333, rate_bps: 10_000_000, settings: 0x5e77 };
    let ack = SwitchAck { mode_epoch: 4, initiator: 1, nonce: 8 };
    let unit = UnitHeader {
        label: 7,
        number: 41,
        fragment: 4,
        last: true,
        left_out: 0,
        unit_octets: 5_748,
        schedule_ns: 99,
    };
    let of = |emit: &dyn Fn(&mut [u8]) -> usize| {
        let mut body = vec![0; 1_500];
        let length = emit(&mut body);
        body.truncate(length);
        body
    };
    let unit = of(&|body| {
        unit.emit(body);
        body[20..24].copy_from_slice(b"rota");
        24
    });
    let tpdu = Tpdu { to: 7, circuit: 9, body: TpduBody::Ack { cum: 5, cause: 7, limit: 64 } };
    vec![
        (Kind::Announce, of(&|body| announce("n1").emit(body))),
        (Kind::Switch, of(&|body| switch.emit(body))),
        (Kind::SwitchAck, of(&|body| ack.emit(body))),
        (Kind::Form, of(&|body| form.emit(body))),
        (Kind::Token, of(&|body| token(2, true).emit(body))),
        (Kind::TokenAck, Vec::new()),
        (Kind::List, of(&|body| token(1, false).emit(body))),
        (Kind::Request, Vec::new()),
        (Kind::Claim, of(&|body| Claim { generation, mode_epoch: 4 }.emit(body))),
        (Kind::ClaimGrant, of(&|body| grant.emit(body))),
        (Kind::Nack, of(&|body| Nack { generation, mode_epoch: 4 }.emit(body))),
        (Kind::Mode, of(&|body| ModeNotice { mode_epoch: 5, ring: false }.emit(body))),
        (Kind::Data, unit),
        (Kind::Signal, of(&|body| signal.emit(body))),
        (Kind::JoinAnswer, of(&|body| answer.emit(body))),
        (Kind::Report, of(&|body| report(1).emit(body))),
        (Kind::Will, Vec::new()),
        (Kind::Circuit, of(&|body| tpdu.emit(0, body))),
    ]
}
