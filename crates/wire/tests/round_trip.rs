//! Properties: what is written reads back, what reads is written back, and no octets make a parser panic.

use crate::samples;
use proptest::prelude::*;
use rota_contract::{ChannelId, NodeId, Tally};
use rota_wire::bodies::{MAX_NAME_OCTETS, StationState};
use rota_wire::fuzz::{fuzz_bodies, fuzz_frame, fuzz_llc};
use rota_wire::llc::{
    Control, Fragment, LLC_INFORMATION, LlcHeader, LlcView, MESSAGE_OCTETS_MAX, emit_llc, fragment_payload,
    is_llc,
};
use rota_wire::{
    Announce, ChannelReport, Claim, ClaimGrant, DEFAULT_ETHERTYPE, Form, FormMember, Foul, FrameView,
    Generation, JoinAnswer, Key, Kind, Leases, LinkHeader, Load, MacAddr, ModeNotice, Nack, PayloadKind,
    Phase, Report, ReportHead, Signal, Slot, SlotList, StatedSettings, StationSet, Struck, Switch, SwitchAck,
    TALLY_OCTETS, Token, UnitHeader, Verb, Verdict, emit_frame, verify,
};

fn generation() -> impl Strategy<Value = Generation> {
    (any::<u32>(), any::<u16>()).prop_map(|(counter, station)| Generation { counter, station })
}

fn slots() -> impl Strategy<Value = SlotList> {
    prop::collection::vec((1u16..=255, any::<u32>(), any::<bool>(), 0u8..8), 0..=220).prop_map(|all| {
        let mut list = SlotList::EMPTY;
        for (station, tht_ns, periodic, partition) in all {
            assert!(list.push(Slot { station, tht_ns, periodic, partition }), "220 fit");
        }
        list
    })
}

fn dead() -> impl Strategy<Value = StationSet> {
    prop::collection::vec(1u16..=255, 0..40).prop_map(|stations| {
        let mut set = StationSet::EMPTY;
        stations.into_iter().for_each(|station| set.insert(station));
        set
    })
}

prop_compose! {
    fn token()(
        (mode_epoch, cycle, trt_ns) in (any::<u32>(), any::<u32>(), 1u32..),
        spent in any::<u32>(),
        phase in prop::sample::select(vec![Phase::First, Phase::RealTime, Phase::NonRealTime, Phase::Home]),
        (rested, position, next_nrt, idle_visits) in any::<(bool, u16, u16, u16)>(),
        (dead, audit) in (dead(), prop::option::of(any::<[u8; 6]>())),
        struck in prop::option::of((1u16..=255, prop::sample::select(vec![Foul::Held, Foul::Sent]))),
        slots in slots(),
        (follows, hold, drain, stall) in any::<(bool, u8, u8, u8)>(),
        (station, gathered, gatherer) in any::<(u8, u8, u8)>(),
    ) -> Token {
        let audit = audit.map(MacAddr);
        let struck = struck.map(|(station, why)| Struck { station, why });
        let (hold, drain) = (hold.min(drain), hold.max(drain));
        let leases = Leases { hold, drain, stall, station, gathered, gatherer };
        let fits = dead.iter().all(|station| station < 208);
        let residual_ns = trt_ns - spent % trt_ns;
        Token {
            mode_epoch, cycle, residual_ns, trt_ns, phase, rested, audit, struck, position, next_nrt,
            idle_visits, dead, slots, leases: (follows && fits).then_some(leases),
        }
    }
}

prop_compose! {
    fn form()(
        (mode_epoch, key_epoch, parts) in (any::<u32>(), 1u8.., 1u8..),
        members in prop::collection::vec((1u16..=255, any::<[u8; 6]>(), any::<u32>(), any::<u64>()), 0..=64),
    ) -> Form {
        let mut form = Form::new(mode_epoch, key_epoch, parts - 1, parts);
        for (station, mac, incarnation, nonce) in members {
            assert!(form.push(FormMember { station, mac: MacAddr(mac), incarnation, nonce }), "64 fit");
        }
        form
    }
}

prop_compose! {
    fn announce()(
        (node_id, nonce, boot_id, mode_epoch, trt_ns, rate_bps)
            in any::<(u64, u64, u64, u32, u32, u64)>(),
        state in prop::sample::select(vec![
            StationState::Joining, StationState::Plain, StationState::Ring, StationState::Leaving,
        ]),
        name in "[a-z0-9 äπ字-]{0,40}",
    ) -> Announce {
        // The settings stand in the place of the name.
        let name = if trt_ns & 1 == 1 { "" } else { &*name };
        let mut said = Announce::new(NodeId(node_id), nonce, boot_id, state, name);
        (said.mode_epoch, said.trt_ns, said.rate_bps) = (mode_epoch, trt_ns, rate_bps);
        said.stated = (trt_ns & 1 == 1).then_some(StatedSettings {
            version: node_id as u8, mtu: nonce as u16, stations: boot_id as u8, policy: node_id as u16,
            port_queue: trt_ns, latency_us: mode_epoch, share: rate_bps as u8, death_us: !trt_ns,
            flags: nonce as u8, per_frame_ns: trt_ns >> 8, prepare_ns: mode_epoch >> 8,
            per_visit_ns: node_id as u32 >> 8, hop_ns: boot_id as u32 >> 8,
        });
        (said.settings, said.answers, said.llc_address) = (nonce ^ 1, boot_id ^ 2, boot_id as u8 & 0x7f);
        said
    }
}

/// Reads back what was written, and refuses it with any octet cut off or one too many.
macro_rules! reads_back {
    ($kind:ty, $value:expr) => {{
        let (value, mut out) = ($value, [0u8; 2_000]);
        let length = value.emit(&mut out);
        prop_assert_eq!(<$kind>::parse(&out[..length]), Ok(value));
        prop_assert!(<$kind>::parse(&out[..length + 1]).is_err(), "one octet too many");
        prop_assert!(<$kind>::parse(&out[..length - 1]).is_err(), "one octet too few");
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn tokens_read_back(token in token()) {
        reads_back!(Token, token);
    }

    #[test]
    fn forms_read_back(form in form()) {
        prop_assert_eq!(form.emit(&mut [0; 2_000]), Form::octets_for(form.members().len()));
        reads_back!(Form, form);
    }

    #[test]
    fn announcements_read_back(said in announce()) {
        let behind = if said.stated.is_some() { StatedSettings::OCTETS } else { said.name().len() };
        prop_assert!(said.emit(&mut [0; 200]) == Announce::OCTETS_MAX - MAX_NAME_OCTETS + behind);
        reads_back!(Announce, said);
    }

    #[test]
    fn grants_read_back(
        (generation, seen) in (generation(), generation()),
        (seen_seq, key_epoch) in (0u64..1 << 48, any::<u8>()),
        list in prop::option::of(token()),
    ) {
        let grant = ClaimGrant { generation, seen, seen_seq, key_epoch, list };
        let mut out = [0; 2_000];
        let length = grant.emit(&mut out);
        prop_assert_eq!(ClaimGrant::parse(&out[..length]), Ok(grant));
    }

    #[test]
    fn short_bodies_read_back(
        (mode_epoch, nonce, trt_ns, rate_bps) in any::<(u32, u64, u32, u64)>(),
        (initiator, ring) in any::<(u16, bool)>(),
        generation in generation(),
    ) {
        reads_back!(Switch, Switch { mode_epoch, nonce, trt_ns, rate_bps, settings: nonce ^ rate_bps });
        reads_back!(SwitchAck, SwitchAck { mode_epoch, initiator, nonce });
        reads_back!(Claim, Claim { generation, mode_epoch });
        reads_back!(Nack, Nack { generation, mode_epoch });
        reads_back!(ModeNotice, ModeNotice { mode_epoch, ring });
        let all = [Verdict::Prove, Verdict::Full, Verdict::Settings, Verdict::HeldOff, Verdict::Behind];
        for verdict in all {
            let (silences, left_ms) = (rate_bps as u8, mode_epoch);
            reads_back!(JoinAnswer, JoinAnswer { nonce, challenge: rate_bps, verdict, silences, left_ms });
        }
    }

    #[test]
    fn signals_read_back(
        verb in prop::sample::select(vec![
            Verb::Connect, Verb::Accept, Verb::Refuse, Verb::Opened, Verb::OpenedAck, Verb::Close,
            Verb::CloseAck, Verb::Tally, Verb::Ask, Verb::Reach, Verb::Reached, Verb::Unknown(200),
        ]),
        (code, service, label, channel) in any::<(u8, u16, u16, u64)>(),
        (unit_octets_max, period_ns, bound_ns, final_unit) in any::<(u32, u32, u64, u64)>(),
    ) {
        let signal = Signal {
            verb, code, service, label, unit_octets_max, final_unit,
            channel: ChannelId(channel),
            period_ns: if verb == Verb::Close { 0 } else { period_ns },
            unsent: if verb == Verb::Close { period_ns } else { 0 },
            bound_ns: if verb == Verb::Close { 0 } else { bound_ns },
            left_out: if verb == Verb::Close { bound_ns } else { 0 },
            tally: Tally::default(),
        };
        let (late, lost) = (bound_ns >> 8, u64::from(period_ns));
        let (incomplete, latest_by_ns) = (final_unit, bound_ns);
        let tally = Tally { units: channel, late, lost, incomplete, latest_by_ns, unread: !bound_ns };
        let has_tally = matches!(verb, Verb::Tally | Verb::CloseAck | Verb::Ask);
        let signal = if has_tally { Signal { tally, ..signal } } else { signal };
        let octets = if has_tally { Signal::OCTETS } else { Signal::OCTETS - TALLY_OCTETS };
        prop_assert_eq!(signal.emit(&mut [0; 200]), octets);
        reads_back!(Signal, signal);
    }

    #[test]
    fn reports_read_back(
        words in prop::collection::vec(any::<u64>(), 32),
        (every_ms, stalls, rotation_ns, queued, channels_all) in any::<(u32, u32, u32, u32, u16)>(),
        channels in prop::collection::vec(any::<([u64; 11], [u32; 3], [u16; 2], [bool; 2])>(), 0..=10),
    ) {
        let load = |at: usize| Load { frames: words[at], octets: words[at + 1] };
        let mut report = Report::new(ReportHead {
            at_ns: words[0],
            every_ms,
            kinds: core::array::from_fn(load),
            levels: core::array::from_fn(|at| load(at + 8)),
            foreign: load(20),
            foreign_mac: samples::mac(words[3] as u8),
            stalls,
            stall_longest_ns: words[4],
            faults: words[5],
            dropped: words[6],
            rotation_ns,
            rotation_max_ns: !rotation_ns,
            queued,
            channels_all,
        });
        for ([channel, bound_ns, units, fragments, octets, late, lost, incomplete, latest_by_ns,
             delay_max_ns, delay_recent_ns],
             [unit_octets_max, period_ns, tht_ns], [peer_station, label], [sending, one_clock]) in channels
        {
            let channel = ChannelReport {
                channel: ChannelId(channel), peer_station, label, sending, one_clock, unit_octets_max,
                period_ns, tht_ns, bound_ns,
                units, fragments, octets, late, lost, incomplete, latest_by_ns, unread: !lost, delay_max_ns,
                delay_recent_ns,
            };
            prop_assert!(report.push(channel));
        }
        let mut out = [0; 2_000];
        prop_assert_eq!(report.emit(&mut out), report.octets());
        reads_back!(Report, report);
    }

    #[test]
    fn unit_headers_read_back(
        (label, number, fragment, last) in (any::<u16>(), any::<u16>(), 0u16..4096, any::<bool>()),
        (unit_octets, schedule_ns, left_out) in (100u32.., any::<u64>(), any::<u16>()),
    ) {
        let header = UnitHeader { label, number, fragment, last, left_out, unit_octets, schedule_ns };
        let mut body = [0; 120];
        header.emit(&mut body);
        let (read, payload) = UnitHeader::parse(&body).expect("a sound header");
        prop_assert_eq!((read, payload.len()), (header, 100));
    }

    #[test]
    fn frames_read_back(
        (code, key_epoch, source, segment, incarnation) in any::<(u8, u8, u16, u32, u32)>(),
        generation in generation(),
        seq in 0u64..1 << 48,
        body in prop::collection::vec(any::<u8>(), 0..=1_456),
    ) {
        let (kind, payload) = (Kind::from_code(code), PayloadKind::None);
        let header =
            LinkHeader { kind, key_epoch, payload, source, segment, incarnation, generation, seq };
        let (mut frame, key) = ([0; 1_514], Key::new([3; 32]));
        frame[42..42 + body.len()].copy_from_slice(&body);
        let (to, from) = (samples::mac(2), samples::mac(1));
        let length = emit_frame(&mut frame, to, from, DEFAULT_ETHERTYPE, &header, body.len(), &key);
        let view = FrameView::parse(&frame[..length], DEFAULT_ETHERTYPE).expect("a sound frame");
        prop_assert_eq!((view.header(), view.body()), (&header, &body[..]));
        prop_assert_eq!((view.destination_mac(), view.source_mac()), (to, from));
        prop_assert!(verify(&view, &key) && length >= 60);
    }

    #[test]
    fn random_octets_never_panic(data in prop::collection::vec(any::<u8>(), 0..1_600), kind in 0u8..17) {
        fuzz_frame(&data);
        fuzz_llc(&data);
        fuzz_bodies(&data);
        let mut framed = vec![0; 14];
        framed[12..14].copy_from_slice(&DEFAULT_ETHERTYPE.to_be_bytes());
        framed.extend([0x11, kind, 0, 0, 0, data.len().min(255) as u8]);
        framed.extend(&data);
        fuzz_frame(&framed);
        fuzz_bodies(&[&[kind], &data[..]].concat());
    }

    #[test]
    fn a_sample_with_octets_changed_never_panics(
        pick in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let bodies = samples::bodies();
        let (kind, body) = &bodies[pick.index(bodies.len())];
        let mut data = vec![kind.code()];
        data.extend(body);
        for (at, octet) in changes {
            let at = at.index(data.len());
            data[at] = octet;
        }
        fuzz_bodies(&data);
    }

    #[test]
    fn pdus_read_back(
        (to, from) in any::<([u8; 6], [u8; 6])>(),
        (dsap, ssap) in (1u8..=0x7e, 0u8..=0x7f),
        (kind, bit, poll, response) in (0u8..4, any::<bool>(), any::<bool>(), any::<bool>()),
        information in prop::collection::vec(any::<u8>(), 3..=1_497),
    ) {
        let (mut to, mut from) = (to, from);
        (to[0], from[0]) = (to[0] & 0xfe, from[0] & 0xfe);
        let control = match kind {
            0 => Control::Ui,
            1 => Control::Xid { poll },
            2 => Control::Test { poll },
            _ => Control::Ac { bit, poll },
        };
        let header = LlcHeader { dsap: dsap * 2, ssap: ssap * 2, response: response && kind > 0, control };
        let information = if kind == 1 { vec![0x81, 5, 0] } else { information };
        let mut frame = vec![0xee; 1_514];
        frame[LLC_INFORMATION..LLC_INFORMATION + information.len()].copy_from_slice(&information);
        let length = emit_llc(&mut frame, MacAddr(to), MacAddr(from), &header, information.len());
        prop_assert!(is_llc(&frame[..length]) && (60..=1_514).contains(&length));
        let view = LlcView::parse(&frame[..length]).expect("a sound frame");
        prop_assert_eq!((view.destination, view.source), (MacAddr(to), MacAddr(from)));
        prop_assert_eq!((view.header, view.information), (header, &information[..]));
        prop_assert!(LlcView::parse(&frame[..LLC_INFORMATION + information.len() - 1]).is_err());
        fuzz_llc(&frame[..length]);
    }

    #[test]
    fn fragments_read_back(
        (dsap, ssap, level, message) in (0u8..128, 0u8..128, 0u8..8, any::<u16>()),
        (total, mtu) in (1u16..=MESSAGE_OCTETS_MAX as u16, 576u16..=9_000),
        index in any::<prop::sample::Index>(),
    ) {
        let size = fragment_payload(mtu);
        let count = usize::from(total).div_ceil(usize::from(size));
        let index = index.index(count);
        let octets = (usize::from(total) - index * usize::from(size)).min(usize::from(size));
        let (dsap, ssap, last) = (dsap * 2, ssap * 2, index + 1 == count);
        let fragment = Fragment { dsap, ssap, level, index: index as u8, last, message, total, size };
        let mut out = vec![7; 13 + octets];
        prop_assert_eq!(fragment.emit(&mut out), 13);
        let (read, payload) = Fragment::parse(&out, size).expect("a sound fragment");
        prop_assert_eq!((read, payload.len()), (fragment, octets));
        out.push(0);
        prop_assert!(Fragment::parse(&out, size).is_err(), "one octet too many");
        prop_assert!(Fragment::parse(&out[..out.len() - 2], size).is_err(), "one octet too few");
    }
}
