//! When two worlds count as the same: every time relative to the present, every token's name relative to the
//! others, nonces and keys by who shares them.
//!
//! One step is not exact: a gap between two sequence numbers, generations or cycles that is larger than
//! [`GAP_MAX`] counts as that large. It can hide a difference that shows only when something stale catches
//! up over so many hops; it cannot invent a counter-example, since each state is one that was reached.

use ahash::{AHasher, RandomState};
use rota_proto::Visit;
use rota_units::{Instant, Span};
use rota_wire::{Generation, Key, LinkHeader, MacAddr, PayloadKind, emit_frame};
use std::hash::{BuildHasher, Hash, Hasher};

/// Larger gaps between neighbouring numbers count as this one.
pub const GAP_MAX: u64 = 4;
/// The bound for lists of the names that one world can hold.
const NAMES: usize = 64;

/// One word of a state, and what equality means for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// As it is.
    Word(u64),
    /// How far ahead.
    Until(Instant),
    /// How far behind, up to a cap.
    Since(Instant, Span),
    /// A token's name.
    Stamp(Generation, u64),
    /// A cycle.
    Cycle(u32),
    /// A frame counter of the station whose address ends so.
    FrameSeq(u8, u64),
    /// Equality only.
    Name(u64),
}

/// A state, word by word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items(Vec<Item>);

impl Items {
    /// Adds one.
    pub fn push(&mut self, item: Item) {
        self.0.push(item);
    }

    /// The greatest token that a station has ever seen: shown first.
    pub fn seen(&self) -> Option<(Generation, u64)> {
        self.0.iter().find_map(|item| match item {
            Item::Stamp(generation, seq) => Some((*generation, *seq)),
            _ => None,
        })
    }

    /// That in one word.
    pub fn seen_word(&self) -> u64 {
        let generation = self.seen().map(|(generation, _)| generation).unwrap_or_default();
        u64::from(generation.counter) << 16 | u64::from(generation.station)
    }

    /// The last frame counter heard of the station with this address.
    pub fn heard_of(&self, of: MacAddr) -> u64 {
        let all = self.0.iter().filter_map(|item| match item {
            Item::FrameSeq(known, seq) if *known == of.0[5] => Some(*seq),
            _ => None,
        });
        all.max().unwrap_or(0)
    }
}

impl Visit for Items {
    fn word(&mut self, word: u64) {
        self.push(Item::Word(word));
    }
    fn until(&mut self, at: Instant) {
        self.push(Item::Until(at));
    }
    fn since(&mut self, at: Instant, cap: Span) {
        self.push(Item::Since(at, cap));
    }
    fn stamp(&mut self, generation: Generation, seq: u64) {
        self.push(Item::Stamp(generation, seq));
    }
    fn cycle(&mut self, cycle: u32) {
        self.push(Item::Cycle(cycle));
    }
    fn frame_seq(&mut self, of: MacAddr, seq: u64) {
        self.push(Item::FrameSeq(of.0[5], seq));
    }
    fn name(&mut self, name: u64) {
        self.push(Item::Name(name));
    }
    fn key(&mut self, epoch: u8, key: &Key) {
        self.push(Item::Word(u64::from(epoch)));
        self.push(Item::Name(key_name(key)));
    }
}

/// The ring keys that a machine has.
#[derive(Default)]
pub struct Keys(pub Vec<(u8, Key)>);

impl Visit for Keys {
    fn word(&mut self, _: u64) {}
    fn until(&mut self, _: Instant) {}
    fn since(&mut self, _: Instant, _: Span) {}
    fn stamp(&mut self, _: Generation, _: u64) {}
    fn cycle(&mut self, _: u32) {}
    fn frame_seq(&mut self, _: MacAddr, _: u64) {}
    fn name(&mut self, _: u64) {}
    fn key(&mut self, epoch: u8, key: &Key) {
        self.0.push((epoch, key.clone()));
    }
}

/// A number that only this key has: the tag that it puts under an empty frame.
pub fn key_name(key: &Key) -> u64 {
    let header = LinkHeader {
        kind: rota_wire::Kind::Mode,
        key_epoch: 0,
        payload: PayloadKind::None,
        source: 0,
        segment: 0,
        incarnation: 0,
        generation: Generation::default(),
        seq: 0,
    };
    let mut octets = [0; 64];
    emit_frame(&mut octets, MacAddr::BROADCAST, MacAddr([0; 6]), 0, &header, 0, key);
    let mut tag = [0; 8];
    tag.copy_from_slice(&octets[42..50]);
    u64::from_be_bytes(tag)
}

/// Numbers by their order, large gaps shortened.
#[derive(Default)]
struct Ranks(Vec<(u64, u64)>);

impl Ranks {
    fn of(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        let (mut before, mut rank) = (0, 0);
        let ranked = numbers.into_iter().map(|number| {
            rank += (number - before).min(GAP_MAX);
            before = number;
            (number, rank)
        });
        Self(ranked.collect())
    }

    fn get(&self, number: u64) -> u64 {
        self.0.iter().find(|(known, _)| *known == number).map_or(0, |(_, rank)| *rank)
    }
}

/// A quick hash, the same in every run: nobody here chooses states so that they collide.
pub fn quick() -> AHasher {
    RandomState::with_seeds(1, 2, 3, 4).build_hasher()
}

/// How the numbers of one world are to be read.
pub struct Canon {
    now: Instant,
    counters: Ranks,
    seqs: Vec<(Generation, Ranks)>,
    cycles: Ranks,
    frame_seqs: Vec<(u8, Ranks)>,
    names: Vec<u64>,
}

impl Canon {
    /// Learns all numbers of a world. Stations must come in the same order for equal worlds: they decide how
    /// nonces and keys are called. A name that only a frame knows is nobody's.
    pub fn learn<'a>(
        now: Instant,
        stations: impl Iterator<Item = &'a Items> + Clone,
        frames: impl Iterator<Item = &'a Items>,
    ) -> Self {
        let (mut counters, mut cycles) = (Vec::new(), Vec::new());
        let mut seqs: Vec<(Generation, Vec<u64>)> = Vec::new();
        let mut frame_seqs: Vec<(u8, Vec<u64>)> = Vec::new();
        let mut names = Vec::with_capacity(NAMES);
        for item in stations.clone().flat_map(|items| &items.0) {
            if let Item::Name(name) = item
                && !names.contains(name)
            {
                names.push(*name);
            }
        }
        for item in stations.chain(frames).flat_map(|items| &items.0) {
            match item {
                Item::Stamp(generation, seq) => {
                    counters.push(u64::from(generation.counter));
                    match seqs.iter_mut().find(|(known, _)| known == generation) {
                        Some((_, list)) => list.push(*seq),
                        None => seqs.push((*generation, vec![*seq])),
                    }
                }
                Item::Cycle(cycle) => cycles.push(u64::from(*cycle)),
                Item::FrameSeq(of, seq) => match frame_seqs.iter_mut().find(|(known, _)| known == of) {
                    Some((_, list)) => list.push(*seq),
                    None => frame_seqs.push((*of, vec![*seq])),
                },
                Item::Name(_) | Item::Word(_) | Item::Until(_) | Item::Since(..) => {}
            }
        }
        Self {
            now,
            counters: Ranks::of(counters),
            seqs: seqs.into_iter().map(|(generation, list)| (generation, Ranks::of(list))).collect(),
            cycles: Ranks::of(cycles),
            frame_seqs: frame_seqs.into_iter().map(|(of, list)| (of, Ranks::of(list))).collect(),
            names,
        }
    }

    /// Hashes one part of the world.
    pub fn hash(&self, items: &Items, into: &mut impl Hasher) {
        for item in &items.0 {
            match item {
                Item::Word(word) => word.hash(into),
                Item::Until(at) if *at < self.now => 0u64.hash(into),
                Item::Until(Instant::FAR) => u64::MAX.hash(into),
                Item::Until(at) => (1 + at.since(self.now).as_nanos()).hash(into),
                Item::Since(at, _) if *at > self.now => {
                    (1u64 << 63 | at.since(self.now).as_nanos()).hash(into)
                }
                Item::Since(at, cap) => self.now.since(*at).min(*cap).as_nanos().hash(into),
                Item::Stamp(generation, seq) => {
                    self.counters.get(u64::from(generation.counter)).hash(into);
                    let ranks = self.seqs.iter().find(|(known, _)| known == generation);
                    let seq = ranks.map_or(0, |(_, ranks)| ranks.get(*seq));
                    (u64::from(generation.station) << 32 | seq).hash(into);
                }
                Item::Cycle(cycle) => self.cycles.get(u64::from(*cycle)).hash(into),
                Item::FrameSeq(of, seq) => {
                    let ranks = self.frame_seqs.iter().find(|(known, _)| known == of);
                    ranks.map_or(0, |(_, ranks)| ranks.get(*seq)).hash(into);
                }
                Item::Name(name) => {
                    self.names.iter().position(|known| known == name).unwrap_or(NAMES).hash(into);
                }
            }
        }
    }
}
