//! Bugs to be found: each tampers with what one station is given or sends, never with the product's code.

use crate::frame::Frame;
use crate::world::{SECRET, Spec, World, mac, settings};
use rota_proto::{Input, PortId};
use rota_units::Instant;
use rota_wire::{
    Claim, ClaimGrant, FrameView, Generation, Key, Kind, LinkHeader, MacAddr, PayloadKind, emit_frame,
};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The lease runs from when the process took the token out of its queue.
    StampAtDequeue,
    /// A claim that is behind is ignored.
    NackNotSent,
    /// A claimant ignores the answer that it is behind.
    NackIgnored,
    /// After its last claim a station counts the silent as having granted: no drain.
    NoDrain,
    /// The paper's rule: whoever notices the silence makes a token at once, asking nobody.
    NoGrants,
    /// A granter keeps the token that it holds, and goes on.
    GrantWithoutFence,
    /// A claim that is behind is granted.
    LowerClaimGranted,
    /// A token that is not newer than the newest seen is believed.
    StaleTokenBelieved,
    /// A token that is sent again gets a new sequence number.
    RetransmissionRenumbered,
    /// The token leaves for two stations.
    TokenForked,
    /// Acknowledgements are ignored.
    AckIgnored,
    /// Nothing is acknowledged.
    AckNotSent,
    /// A newer reservation list does not end an old token.
    ListIgnored,
    /// Stations on the dead list are not asked for a grant.
    DeadNotAsked,
    /// A station on the dead list that is heard stays on it.
    RevivalForgotten,
    /// A claim is never heard, so that all others seem silent.
    ClaimNotSent,
    /// A token that was lost is not sent again.
    TokenNotRepeated,
}

/// All of them.
pub const ALL: [Bug; 17] = [
    Bug::StampAtDequeue,
    Bug::NackNotSent,
    Bug::NackIgnored,
    Bug::NoDrain,
    Bug::NoGrants,
    Bug::GrantWithoutFence,
    Bug::LowerClaimGranted,
    Bug::StaleTokenBelieved,
    Bug::RetransmissionRenumbered,
    Bug::TokenForked,
    Bug::AckIgnored,
    Bug::AckNotSent,
    Bug::ListIgnored,
    Bug::DeadNotAsked,
    Bug::RevivalForgotten,
    Bug::ClaimNotSent,
    Bug::TokenNotRepeated,
];

/// Faults under which bugs are looked for, in this order: with a partition, two rings that have just met may
/// both hold, which hides some bugs.
pub const HUNTS: [&str; 2] =
    ["3 loss=3 dup=2 crash=1 pause=1 channels=3", "3 loss=2 dup=2 pause=1 split=1 channels=3"];

/// The first of so many walks that finds this bug under these faults: its seed, and what did not hold.
///
/// # Errors
/// The faults cannot be read, or the ring does not form.
pub fn hunt(bug: Bug, faults: &str, walks: u64) -> Result<Option<(u64, crate::walk::Walk)>, String> {
    let mut spec = crate::schedule::read_spec(faults.split_whitespace())?;
    spec.bug = Some(bug);
    let start = World::formed(&spec)?;
    let walks = (0..walks).map(|seed| (seed, crate::walk::walk(&spec, &start, seed, 400)));
    Ok(walks.into_iter().find(|(_, walk)| walk.violation.is_some()))
}

/// What becomes of a frame that reaches a station.
pub enum Incoming {
    /// The station never sees it.
    Dropped,
    /// It sees this.
    Is {
        /// The frame.
        octets: Vec<u8>,
        /// With this receive stamp.
        at: Instant,
    },
    /// It answers, but does not change.
    AnswersOnly,
}

const BODY: usize = 42;

fn bootstrap_key() -> Key {
    Key::new(SECRET).derive("rota 2026 bootstrap frames", [settings().segment.to_be_bytes()].iter())
}

/// The same body under another header, or to somebody else.
fn reseal(frame: &Frame, header: &LinkHeader, to: MacAddr, key: &Key) -> Option<Vec<u8>> {
    let view = FrameView::parse(&frame.octets, settings().ether_type).ok()?;
    let mut octets = vec![0; 1600];
    octets[BODY..BODY + view.body().len()].copy_from_slice(view.body());
    let length =
        emit_frame(&mut octets, to, view.source_mac(), settings().ether_type, header, view.body().len(), key);
    octets.truncate(length);
    Some(octets)
}

fn source(frame: &Frame) -> MacAddr {
    let mut mac = [0; 6];
    mac.copy_from_slice(&frame.octets[6..12]);
    MacAddr(mac)
}

impl Bug {
    /// What a station makes of a frame.
    pub fn incoming(self, world: &mut World, index: usize, at: Instant, frame: &Frame) -> Incoming {
        let kind = frame.header.kind;
        let octets = frame.octets.clone();
        let dead = |station: u16| {
            world.stations[index].node.as_ref().is_some_and(|node| node.rether().is_dead(station))
        };
        match (self, kind) {
            (Self::StampAtDequeue, _) => return Incoming::Is { octets, at: world.now },
            (Self::NackIgnored, Kind::Nack)
            | (Self::AckIgnored, Kind::TokenAck)
            | (Self::ListIgnored, Kind::List) => return Incoming::Dropped,
            (Self::RevivalForgotten, Kind::Announce) if dead(frame.header.source) => {
                return Incoming::Dropped;
            }
            (Self::GrantWithoutFence, Kind::Claim) => return Incoming::AnswersOnly,
            (Self::LowerClaimGranted, Kind::Claim) => {
                let view = FrameView::parse(&frame.octets, settings().ether_type).ok();
                if let Some(claim) = view.and_then(|view| Claim::parse(view.body()).ok()) {
                    let Generation { counter, station } = claim.generation;
                    world.stations[index].memory = u64::from(counter) << 16 | u64::from(station);
                }
            }
            (Self::StaleTokenBelieved, Kind::Token) => {
                if let Some(octets) = self.renewed(world, index, frame) {
                    return Incoming::Is { octets, at };
                }
            }
            _ => {}
        }
        Incoming::Is { octets, at }
    }

    /// A stale token, numbered as if it were the newest.
    fn renewed(self, world: &World, index: usize, frame: &Frame) -> Option<Vec<u8>> {
        let (generation, seq) = world.stations[index].items.seen()?;
        if (frame.header.generation, frame.header.seq) > (generation, seq) {
            return None;
        }
        let header = LinkHeader { generation, seq: seq + 1, ..frame.header };
        let (_, key) = world.keys(index).into_iter().next()?;
        reseal(frame, &header, frame.destination(), &key)
    }

    /// What leaves instead of a frame.
    pub fn outgoing(self, world: &mut World, spec: &Spec, index: usize, frame: Frame) -> Vec<Frame> {
        let changed = match (self, frame.header.kind) {
            (Self::NackNotSent, Kind::Nack)
            | (Self::AckNotSent, Kind::TokenAck)
            | (Self::ClaimNotSent, Kind::Claim) => Some(Vec::new()),
            (Self::TokenNotRepeated, Kind::Token) => {
                let seq = frame.header.seq;
                let last = core::mem::replace(&mut world.stations[index].memory, seq);
                (last == seq).then(Vec::new)
            }
            (Self::LowerClaimGranted, Kind::Nack) => Some(granted(world, index, &frame)),
            (Self::RetransmissionRenumbered, Kind::Token) => renumbered(world, index, &frame),
            (Self::TokenForked, Kind::Token) => Some(forked(world, index, &frame)),
            (Self::DeadNotAsked, Kind::Claim) => Some(asks_the_living(world, index, &frame)),
            (Self::NoGrants, Kind::Claim) => {
                grant_everything(world, spec, index, &frame);
                None
            }
            (Self::NoDrain, Kind::Claim) => {
                let claim = u64::from(frame.header.incarnation) ^ world.stations[index].items.seen_word();
                if world.stations[index].memory == claim {
                    grant_everything(world, spec, index, &frame);
                } else {
                    world.stations[index].memory = claim;
                }
                None
            }
            _ => None,
        };
        let Some(changed) = changed else { return vec![frame] };
        let keys: Vec<Key> = world.keys(index).into_iter().map(|(_, key)| key).collect();
        changed.iter().filter_map(|octets| Frame::read(octets, &settings(), &keys)).collect()
    }
}

fn renumbered(world: &mut World, index: usize, frame: &Frame) -> Option<Vec<Vec<u8>>> {
    let station = &mut world.stations[index];
    let (last, tries) = (station.memory >> 8, station.memory & 0xff);
    let seq = frame.header.seq;
    if last != seq {
        station.memory = seq << 8;
        return None;
    }
    station.memory += 1;
    let header = LinkHeader { seq: seq + tries + 2, ..frame.header };
    let (_, key) = world.keys(index).into_iter().next()?;
    Some(reseal(frame, &header, frame.destination(), &key).into_iter().collect())
}

fn forked(world: &World, index: usize, frame: &Frame) -> Vec<Vec<u8>> {
    let mut all = vec![frame.octets.clone()];
    let another = (0..world.stations.len()).find(|at| *at != index && mac(*at) != frame.destination());
    if let (Some(at), Some((_, key))) = (another, world.keys(index).into_iter().next()) {
        all.extend(reseal(frame, &frame.header, mac(at), &key));
    }
    all
}

fn asks_the_living(world: &World, index: usize, frame: &Frame) -> Vec<Vec<u8>> {
    let Some(node) = &world.stations[index].node else { return Vec::new() };
    let members = node.rether().members().iter();
    let living = members.filter(|member| member.station != 0 && !node.rether().is_dead(member.station));
    living.filter_map(|member| reseal(frame, &frame.header, member.mac, &bootstrap_key())).collect()
}

fn granted(world: &World, index: usize, nack: &Frame) -> Vec<Vec<u8>> {
    let memory = world.stations[index].memory;
    let generation = Generation { counter: (memory >> 16) as u32, station: memory as u16 };
    let epoch = world.keys(index).first().map_or(0, |(epoch, _)| *epoch);
    vec![grant(&nack.header, source(nack), nack.destination(), generation, epoch)]
}

fn grant(from: &LinkHeader, source: MacAddr, to: MacAddr, generation: Generation, epoch: u8) -> Vec<u8> {
    let grant =
        ClaimGrant { generation, seen: Generation::default(), seen_seq: 0, key_epoch: epoch, list: None };
    let header = LinkHeader { kind: Kind::ClaimGrant, payload: PayloadKind::None, key_epoch: 0, ..*from };
    let mut octets = vec![0; 1600];
    let body = grant.emit(&mut octets[BODY..]);
    let ether_type = settings().ether_type;
    let length = emit_frame(&mut octets, to, source, ether_type, &header, body, &bootstrap_key());
    octets.truncate(length);
    octets
}

/// The claimant is told that everybody has granted.
fn grant_everything(world: &mut World, spec: &Spec, index: usize, claim: &Frame) {
    let view = FrameView::parse(&claim.octets, settings().ether_type).ok();
    let Some(asked) = view.and_then(|view| Claim::parse(view.body()).ok()) else { return };
    let epoch = world.keys(index).first().map_or(0, |(epoch, _)| *epoch);
    let Some(node) = &world.stations[index].node else { return };
    let members: Vec<_> = node.rether().members().iter().map(|m| (m.station, m.mac, m.incarnation)).collect();
    for (source, from, incarnation) in members {
        let seq = world.stations[index].items.heard_of(from) + 1;
        let header = LinkHeader { source, incarnation, seq, ..claim.header };
        let octets = grant(&header, from, mac(index), asked.generation, epoch);
        world.with(spec, index, |node, now| {
            node.handle(now, Input::Frame { port: PortId(0), at: Some(now), data: &octets });
        });
    }
}
