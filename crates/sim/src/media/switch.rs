//! A full-duplex store-and-forward switch: it learns addresses, floods what it does not know, and has a
//! finite queue of eight priorities at each egress port.

use super::{Card, End, Frame, MediumCounters, Step, Steps, WireEvent, wire_time};
use rota_units::{BitRate, Instant, Octets, Span};
use std::collections::{BTreeMap, VecDeque};

/// What a switch takes between having a frame whole and beginning to send it.
const FORWARDING: Span = Span::from_micros(2);

#[derive(Debug)]
struct Port {
    /// When the frame that is being sent will have left.
    free: Instant,
    /// Whether an event will come when it has.
    woken: bool,
    backlog: u64,
    waiting: usize,
    queues: [VecDeque<(usize, Frame)>; 8],
}

/// The switch.
#[derive(Debug)]
pub struct Switch {
    rate: BitRate,
    card_queue: Octets,
    port_queue: Octets,
    latency: Span,
    cards: Vec<Card>,
    ports: Vec<Port>,
    learnt: BTreeMap<[u8; 6], usize>,
    pub(super) counters: MediumCounters,
}

impl Switch {
    /// A switch whose stations have a frame whole `latency` after its last bit has left the port.
    pub fn new(
        stations: usize,
        rate: BitRate,
        card_queue: Octets,
        port_queue: Octets,
        latency: Span,
    ) -> Self {
        let port = || Port {
            free: Instant::ZERO,
            woken: false,
            backlog: 0,
            waiting: 0,
            queues: std::array::from_fn(|_| VecDeque::new()),
        };
        Self {
            rate,
            card_queue,
            port_queue,
            latency,
            cards: vec![Card::IDLE; stations],
            ports: (0..stations).map(|_| port()).collect(),
            learnt: BTreeMap::new(),
            counters: MediumCounters::default(),
        }
    }

    pub(super) fn card_empty_at(&self, station: usize) -> Instant {
        self.cards[station].empty_at()
    }

    pub(super) fn backlog(&self, now: Instant, station: usize) -> Octets {
        self.cards[station].backlog(now, self.rate)
    }

    pub(super) fn send(&mut self, now: Instant, from: usize, frame: Frame, steps: &mut Steps) {
        self.counters.sent += 1;
        match self.cards[from].take(now, self.rate, self.card_queue, frame.len()) {
            Some(left) => {
                steps.push((left + FORWARDING, Step::Later(WireEvent::AtSwitch { from, frame })));
            }
            None => {
                self.counters.card_drops += 1;
                steps.push((now, Step::Gone { frame, end: End::CardFull }));
            }
        }
    }

    pub(super) fn happen(&mut self, now: Instant, event: WireEvent, steps: &mut Steps) {
        match event {
            WireEvent::AtSwitch { from, frame } => self.forward(now, from, &frame, steps),
            WireEvent::PortFree { port } => self.next(now, port, steps),
            WireEvent::Carrier => {}
        }
    }

    fn forward(&mut self, now: Instant, from: usize, frame: &Frame, steps: &mut Steps) {
        let Some((to, source)) = addresses(frame) else {
            // Too short to say where it goes: nobody gets it, and it is counted.
            self.counters.copies += 1;
            self.counters.port_drops += 1;
            steps.push((now, Step::Gone { frame: frame.clone(), end: End::NoWay }));
            return;
        };
        if source[0] & 1 == 0 && self.learnt.get(&source) != Some(&from) {
            self.learnt.insert(source, from);
        }
        let known = if to[0] & 1 == 0 { self.learnt.get(&to).copied() } else { None };
        match known {
            Some(port) if port != from => self.enqueue(now, port, from, frame.clone(), steps),
            // It has been seen on the port it came from: a switch sends nothing back.
            Some(_) => steps.push((now, Step::Gone { frame: frame.clone(), end: End::NoWay })),
            None => {
                let more = (self.ports.len() as u64).saturating_sub(2);
                steps.push((now, Step::Split { frame: frame.clone(), more }));
                for port in (0..self.ports.len()).filter(|port| *port != from) {
                    self.enqueue(now, port, from, frame.clone(), steps);
                }
            }
        }
    }

    fn enqueue(&mut self, now: Instant, to: usize, from: usize, frame: Frame, steps: &mut Steps) {
        self.counters.copies += 1;
        let port = &mut self.ports[to];
        if port.waiting == 0 && port.free <= now {
            port.free = now + wire_time(self.rate, frame.len());
            self.counters.arrived += 1;
            steps.push((port.free + self.latency, Step::Arrive { to, from, frame }));
            return;
        }
        let sending = self.rate.octets_in_down(port.free.since(now)).get();
        if port.backlog + sending > self.port_queue.get() {
            self.counters.port_drops += 1;
            steps.push((now, Step::Gone { frame, end: End::PortFull }));
            return;
        }
        port.backlog += frame.len() as u64;
        port.waiting += 1;
        port.queues[priority(&frame)].push_back((from, frame));
        if !port.woken {
            port.woken = true;
            steps.push((port.free, Step::Later(WireEvent::PortFree { port: to })));
        }
    }

    fn next(&mut self, now: Instant, to: usize, steps: &mut Steps) {
        let port = &mut self.ports[to];
        port.woken = false;
        let Some((from, frame)) = port.queues.iter_mut().rev().find_map(VecDeque::pop_front) else { return };
        port.waiting -= 1;
        port.backlog -= frame.len() as u64;
        port.free = now + wire_time(self.rate, frame.len());
        if port.waiting > 0 {
            port.woken = true;
            steps.push((port.free, Step::Later(WireEvent::PortFree { port: to })));
        }
        self.counters.arrived += 1;
        steps.push((port.free + self.latency, Step::Arrive { to, from, frame }));
    }
}

fn addresses(frame: &[u8]) -> Option<([u8; 6], [u8; 6])> {
    let (to, rest) = frame.split_first_chunk()?;
    Some((*to, *rest.first_chunk()?))
}

/// The 802.1Q priority code point; untagged frames are best effort.
fn priority(frame: &[u8]) -> usize {
    match frame.get(12..15) {
        Some([0x81, 0x00, tci]) => usize::from(tci >> 5),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT10: BitRate = BitRate::from_mbit(10);

    fn frame(to: u8, from: u8, pcp: Option<u8>, octets: usize) -> Frame {
        let mut frame = vec![0; octets];
        frame[5] = to;
        frame[11] = from;
        if let Some(pcp) = pcp {
            frame[12..15].copy_from_slice(&[0x81, 0, pcp << 5]);
        }
        frame.into()
    }

    /// Runs a switch alone and lists who got what when, in microseconds.
    fn run(switch: &mut Switch, sends: &[(usize, Frame)]) -> Vec<(u64, usize, u8)> {
        let (mut steps, mut got) = (Steps::new(), Vec::new());
        for (from, frame) in sends {
            switch.send(Instant::ZERO, *from, frame.clone(), &mut steps);
        }
        while let Some(next) = (0..steps.len()).min_by_key(|at| steps[*at].0) {
            let (now, step) = steps.remove(next);
            match step {
                Step::Later(event) => switch.happen(now, event, &mut steps),
                Step::Arrive { to, frame, .. } => got.push((now.as_nanos() / 1_000, to, frame[11])),
                Step::CardEmpty { .. } | Step::Split { .. } | Step::Gone { .. } => {}
            }
        }
        got.sort_unstable();
        got
    }

    fn switch(port_queue: u64) -> Switch {
        Switch::new(3, MBIT10, Octets::new(1 << 20), Octets::new(port_queue), Span::ZERO)
    }

    #[test]
    fn it_floods_until_it_has_learnt() {
        let mut switch = switch(150_000);
        let got = run(&mut switch, &[(0, frame(7, 1, None, 60))]);
        assert_eq!(got, [(136, 1, 1), (136, 2, 1)], "67.2 us twice and 2 us in between, to both others");
        run(&mut switch, &[(2, frame(1, 7, None, 60))]);
        assert_eq!(run(&mut switch, &[(0, frame(7, 1, None, 60))]).len(), 1);
    }

    #[test]
    fn a_full_port_drops_and_a_high_priority_overtakes() {
        let mut switch = switch(2_500);
        run(&mut switch, &[(2, frame(9, 3, None, 60))]);
        let bulk = |from: u8| frame(3, from, None, 1226);
        let sends = [(0, bulk(1)), (1, bulk(2)), (0, bulk(1)), (1, frame(3, 8, Some(6), 1226))];
        let got = run(&mut switch, &sends);
        assert_eq!(got.iter().map(|got| got.2).collect::<Vec<_>>(), [1, 8, 2, 1]);
        let four: Vec<_> = (0..8).map(|at| (at % 2, bulk(1 + at as u8))).collect();
        let got = run(&mut switch, &four);
        assert!(got.len() < 8 && switch.counters.port_drops > 0);
        assert_eq!(switch.counters.copies, switch.counters.arrived + switch.counters.port_drops);
    }
}
