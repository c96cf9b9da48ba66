//! Checkers at their limits: each is shown events that a test made, just allowed and just forbidden. A
//! checker that is laxer or stricter by a nanosecond, a frame or a unit fails here.

mod bounds;
mod cycles;
mod deliveries;
mod gaps;
mod recoveries;
mod settled;
mod slots;
mod tokens;

use super::*;
use crate::world::{FlowState, Segment, World, WorldSpec};
use rota_proto::Node;
use rota_wire::{DEFAULT_ETHERTYPE, Generation, Key, LinkHeader, MacAddr, PayloadKind, Token, emit_frame};
use std::rc::Rc;

const NS: Span = Span::from_nanos(1);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// A segment that stands still: what its stations are and know is the same at all times.
struct Bench {
    world: World,
    settings: Settings,
    windows: Windows,
}

impl Bench {
    fn of(world: World) -> Self {
        Self { settings: world.spec().settings.clone(), windows: Windows::default(), world }
    }

    /// Five stations in plain mode.
    fn plain() -> Self {
        let mut world = World::new(7, WorldSpec::new(5));
        world.run_for(ms(2_000));
        Self::of(world)
    }

    /// Five stations in token mode, with a stream from each of the first three to the last.
    fn ring(periodic: bool) -> Self {
        let mut bench = Self::plain();
        for from in 0..3 {
            bench.world.open_flow(from, 4, 3_000, periodic).expect("a sound request");
            bench.world.run_for(ms(1_500));
            assert_eq!(bench.world.flows()[from].state, FlowState::Open);
        }
        assert_eq!(bench.world.violations(), []);
        bench
    }

    /// When the segment was stopped: no event is earlier.
    fn start(&self) -> Instant {
        self.world.now()
    }

    fn node(&self, host: usize) -> &Node {
        self.world.hosts[host].node.as_ref().expect("it runs")
    }

    /// What a checker finds when it sees this then: the names of the rules.
    fn look(&self, checker: &mut impl Checker, now: Instant, seen: &[Seen]) -> Vec<&'static str> {
        let Segment { wires, recovery, .. } = &self.world.segments[0];
        let (settings, windows, flows) = (&self.settings, &self.windows, self.world.flows());
        let stations = Stations::new(&self.world.hosts, 0, self.world.hosts.len());
        let view = View { now, settings, stations, flows, wires, windows, recovery, seen };
        let mut findings = Findings::default();
        checker.after(&view, &mut findings);
        findings.violations.iter().map(|found| found.rule).collect()
    }

    /// As [`Self::look`] when nothing happens.
    fn rest(&self, checker: &mut impl Checker, now: Instant) -> Vec<&'static str> {
        self.look(checker, now, &[])
    }

    /// A unit leaves at all ports of the switch then, in a slot of its own.
    fn flood(&mut self, now: Instant) {
        self.windows.flooded.sent(now, 0, &[0xff; 14], Some(Kind::List));
        self.windows.flooded.sent(now, 0, &[3, 0, 0, 0, 0, 0, 0], Some(Kind::Data));
    }

    /// A fault whose recovery takes from `begin` to `end`.
    fn excuse(&mut self, begin: Instant, end: Instant) {
        self.windows.open(begin, end.since(begin), Scope::All);
    }

    /// The list of this ring, with other slots.
    fn list(&self, cycle: u32, slots: &[(u16, Span, bool)]) -> Token {
        let mut list = *self.node(0).rether().list().expect("a ring");
        list.slots.retain(|_| false);
        for (station, tht, periodic) in slots.iter().copied() {
            let tht_ns = tht.as_nanos() as u32;
            assert!(list.slots.push(rota_wire::Slot { station, tht_ns, periodic, partition: 0 }));
        }
        Token { cycle, ..list }
    }
}

/// A frame of `kind` from station `source` whose body is written by `body`.
fn frame(kind: Kind, source: u16, stamp: (Generation, u64), body: impl Fn(&mut [u8]) -> usize) -> Frame {
    let mut buffer = [0; 1_514];
    let octets = body(&mut buffer[42..]);
    let (generation, seq) = stamp;
    let payload = PayloadKind::None;
    let header =
        LinkHeader { kind, key_epoch: 0, payload, source, segment: 1, incarnation: 99, generation, seq };
    let from = MacAddr([2, 9, 9, 9, 9, 9]);
    let key = Key::new([7; 32]);
    let length = emit_frame(&mut buffer, MacAddr::BROADCAST, from, DEFAULT_ETHERTYPE, &header, octets, &key);
    Rc::from(&buffer[..length])
}

fn generation(counter: u32) -> Generation {
    Generation { counter, station: 1 }
}

fn sent(host: usize, kind: Kind, frame: &Frame, holding: bool) -> Seen {
    Seen::Sent { host, frame: frame.clone(), kind: Some(kind), holding }
}

fn none() -> Vec<&'static str> {
    Vec::new()
}
