//! Neighbours that send what they should not.

use super::*;
use rota_wire::RcapApproach;
use std::collections::BTreeSet;

/// Does what the machine calls for; half of the questions to the medium are answered later, or never.
fn serve(rcap: &mut Rcap, now: u64, rng: &mut Rng, held: &mut BTreeSet<EntryId>) {
    while let Some(output) = rcap.poll() {
        let answers = !rng.next_u64().is_multiple_of(4);
        match output {
            RcapOutput::Reserve { entry, .. } if answers => {
                held.insert(entry);
                rcap.reserved(at(now), entry, hop());
            }
            RcapOutput::Relax { entry, delay } if answers => {
                rcap.relaxed(at(now), entry, Offer { delay, ..offer() }, vec![1; 20]);
            }
            RcapOutput::Release { entry, .. } => {
                held.remove(&entry);
            }
            RcapOutput::Event(RcapEvent::Incoming { key, .. }) if answers => {
                rcap.answer(at(now), key, true).unwrap();
            }
            _ => {}
        }
        rcap.audit();
    }
}

/// Sound messages of each kind for three channels.
fn sound_messages() -> Vec<Vec<u8>> {
    let close = RcapClose { cause: CloseCause::Finished, node: A };
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for channel in 1..=3 {
        let of = of(channel, 1);
        bodies.push(request(channel, 1));
        bodies.push(request_of(of, ask(B), &[A], ms(500)));
        bodies.push(request_of(of, ChannelRequest { reroute: ms(9), ..ask(B) }, &[A], ms(500)));
        bodies.push(accept(of, &[record(A), own()]));
        bodies.push(accept(of, &[record(A), own(), record(C)]));
        bodies.push(octets(of, RcapBody::EstablishDenied(io::simply(C, RcapTest::Load))));
        bodies.push(octets(of, RcapBody::CloseForward(close)));
        bodies.push(octets(of, RcapBody::CloseReverse(close)));
        let status = RcapStatus { question: 1, nodes: RcapRecords::default() };
        bodies.push(octets(of, RcapBody::StatusRequest(status)));
        bodies.push(octets(of, RcapBody::StatusReport(status)));
        for source in [B, C] {
            let nodes = RcapRoute::written(&[A]);
            let way = RcapRoute::parse(&nodes).unwrap();
            let (service, lease_ns, pair) = (SERVICE, 3_000_000_000, ChannelId(channel - 1));
            bodies.push(octets(of, RcapBody::Invite(RcapInvite { source, service, lease_ns, pair, way })));
        }
        let nodes = RcapRoute::written(&[A]);
        let (passed, via) = (RcapRoute::parse(&nodes).unwrap(), RcapRoute::default());
        let (destination, lease_ns, around) = (C, 3_000_000_000, via);
        let word = RcapApproach { destination, lease_ns, passed, via, around };
        bodies.push(octets(of, RcapBody::Approach(word)));
        let (denied, own) = (io::simply(C, RcapTest::NoSource), RcapChannel { origin: B, ..of });
        let nodes = RcapRoute::written(&[A]);
        for (of, way) in [(of, RcapRoute::parse(&nodes).unwrap()), (own, RcapRoute::default())] {
            bodies.push(octets(of, RcapBody::InviteDenied(RcapInviteDenied { denied, way })));
        }
    }
    bodies
}

/// Sound messages with octets changed and lengths mended, in any order and from either side: nothing panics,
/// and nothing is left when the neighbours are gone.
#[test]
fn neighbours_that_send_garbage_leave_nothing() {
    let bodies = sound_messages();
    let (mut opened, mut malformed) = (0, 0);
    for seed in 0..2_000 {
        let (mut rcap, mut rng, mut held) = (b(), Rng::new(seed), BTreeSet::new());
        rcap.add_invitee(5, SERVICE, 9).unwrap();
        let (source, listener, pair) = (C, 4, ChannelId::NONE);
        let invitation = Invitation { source, service: SERVICE, listener, pair };
        rcap.invite(at(0), ChannelId(1 + seed % 3), invitation).unwrap();
        for step in 1..40 {
            let mut draw = |most: usize| (rng.next_u64() % most as u64) as usize;
            let mut message = bodies[draw(bodies.len())].clone();
            let from = if draw(3) == 0 { C } else { A };
            let from = if message[5] == 1 && draw(4) > 0 { C } else { from };
            for _ in 0..draw(3) {
                let place = draw(message.len());
                message[place] = [0, 1, 2, 0xff, draw(256) as u8][draw(5)];
            }
            if draw(8) == 0 {
                message.truncate(draw(message.len()).max(4));
                let length = (message.len() as u16).to_be_bytes();
                message[2..4].copy_from_slice(&length);
            }
            let now = step * 20;
            malformed += u32::from(rcap.on_message(at(now), from, &message).is_err());
            serve(&mut rcap, now, &mut rng, &mut held);
            rcap.handle_deadline(at(now));
            serve(&mut rcap, now, &mut rng, &mut held);
        }
        opened += rcap.entries().filter(|(_, _, is_open, _)| *is_open).count();
        rcap.neighbour_lost(at(900), A);
        rcap.neighbour_lost(at(900), C);
        serve(&mut rcap, 900, &mut rng, &mut held);
        assert_eq!(rcap.entries().collect::<Vec<_>>(), [], "seed {seed}");
        // Ends that wait for another path have their time, a minute at most.
        rcap.handle_deadline(at(900 + 60_000 + 2_000));
        serve(&mut rcap, 62_900, &mut rng, &mut held);
        assert_eq!((rcap.buffer_octets(), rcap.deadline(), held.len()), (0, Instant::FAR, 0), "seed {seed}");
    }
    assert!(opened > 100 && malformed > 1_000, "{opened} open, {malformed} malformed");
}
