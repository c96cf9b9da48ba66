//! Properties of TPDUs: each reads back, and no octets make the parser panic (TRANSPORT-R15, TRANSPORT-R77).

use proptest::prelude::*;
use rota_wire::fuzz::{fuzz_aal5, fuzz_tpdu};
use rota_wire::{FlowControl, Quality, Refusal, ResetCause, TPDU_CONTROL_OCTETS_MAX, Terms, Tpdu, TpduBody};

fn terms() -> impl Strategy<Value = Terms> {
    let flow = prop::sample::select(vec![
        FlowControl::Open,
        FlowControl::Window,
        FlowControl::Bucket,
        FlowControl::PacketPair,
    ]);
    (any::<(u64, u64, u32, u32, u32, u16)>(), any::<(bool, bool)>(), flow).prop_map(
        |((source, serial, from, service, window, tpdu), (error_control, stream), flow)| {
            let quality = Quality { error_control, flow, stream };
            Terms { source, serial, from, service, window, tpdu, quality }
        },
    )
}

fn body() -> impl Strategy<Value = TpduBody> {
    let refusals = prop::sample::select(vec![Refusal::NoService, Refusal::Busy, Refusal::Expired]);
    let causes = prop::sample::select(vec![ResetCause::Unknown, ResetCause::Aborted, ResetCause::Silent]);
    let counts = any::<(u64, u64)>;
    prop_oneof![
        (1u64.., any::<(u32, u32, bool)>()).prop_map(|(sequence, (message, index, last))| TpduBody::Data {
            sequence,
            message,
            index,
            last
        }),
        any::<(u64, u64, u64)>().prop_map(|(a, cause, b)| TpduBody::Ack {
            cum: a.min(b),
            cause,
            limit: a.max(b)
        }),
        terms().prop_map(TpduBody::Open),
        terms().prop_map(TpduBody::Accept),
        terms().prop_map(TpduBody::Confirm),
        (any::<u64>(), refusals).prop_map(|(source, why)| TpduBody::Refuse { source, why }),
        causes.prop_map(|why| TpduBody::Reset { why }),
        counts().prop_map(|(tpdus, messages)| TpduBody::Close { tpdus, messages }),
        counts().prop_map(|(tpdus, messages)| TpduBody::Closed { tpdus, messages }),
        any::<u32>().prop_map(|reason| TpduBody::Decline { reason }),
        Just(TpduBody::Ask),
    ]
}

proptest! {
    #[test]
    fn tpdus_read_back(
        (to, circuit) in any::<(u32, u64)>(),
        body in body(),
        data in prop::collection::vec(any::<u8>(), 1..=1_468),
    ) {
        let nameless = matches!(body, TpduBody::Open(_));
        let data = if matches!(body, TpduBody::Data { .. }) { &data[..] } else { &[] };
        let tpdu = Tpdu { to, circuit: if nameless { 0 } else { circuit }, body };
        let mut out = [0; TPDU_CONTROL_OCTETS_MAX];
        let length = tpdu.emit(data.len() as u16, &mut out);
        let octets = [&out[..length], data].concat();
        prop_assert_eq!(Tpdu::parse(&octets), Ok((tpdu, data)));
        for cut in 0..octets.len().min(60) {
            prop_assert!(Tpdu::parse(&octets[..cut]).is_err(), "{} of {}", cut, octets.len());
        }
        prop_assert!(Tpdu::parse(&[&octets[..], &[0]].concat()).is_err(), "one octet too many");
    }

    #[test]
    fn random_octets_never_panic_as_a_tpdu(
        kind in 0u8..16,
        mut data in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        fuzz_tpdu(&data);
        fuzz_aal5(&data);
        if let Some(first) = data.first_mut() {
            *first = 0x10 | kind;
        }
        fuzz_tpdu(&data);
        // Flags and length that are right let the parser come to the fields behind them.
        if data.len() > 4 {
            let octets = data.len().saturating_sub(32) as u16;
            data[1] &= u8::from(kind == 1);
            data[2..4].copy_from_slice(&if kind == 1 { octets } else { 0 }.to_be_bytes());
        }
        fuzz_tpdu(&data);
    }
}
