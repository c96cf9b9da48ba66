//! What is measured, on the thread and with the waits of a node.

use super::circuits;
use super::file::{About, Calibration, Costs, Measurement};
use super::fit::{Spread, line, up};
use super::station::Station;
use crate::clock;
use rota_admission::SegmentParams;
use rota_answer::Failure;
use rota_driver::stall::STALL_MIN;
use rota_units::{Instant, Octets, Span};
use rota_wire::{Kind, LINK_HEADER_OCTETS, MacAddr, TAG_OCTETS};

/// Frames in a row whose preparation is timed; the first one is part of the visit.
const ROW: usize = 16;
/// A visit measured is no longer than this.
const VISIT: Span = Span::from_millis(5);
/// As many visits of one frame beside each long one.
const SHORT_VISITS: usize = 6;
/// No packet of ours, and none of the shortest either, is smaller.
const SHORT: usize = 1;
const ANSWER_WITHIN: Span = Span::from_millis(100);
/// Fewer samples of anything say nothing about its tail.
pub(super) const SAMPLES_MIN: usize = 100;

/// How long each part is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// All of it.
    pub duration: Span,
}

impl Effort {
    pub(super) fn part(self, percent: u64) -> Span {
        Span::from_nanos(self.duration.as_nanos() / 100 * percent)
    }
}

/// Everything that is needed to measure.
pub struct Bench {
    /// The device.
    pub station: Station,
    /// Where data frames go.
    pub to: MacAddr,
    /// Who sends tokens back.
    pub peer: Option<MacAddr>,
    /// The defaults of this rate.
    pub params: SegmentParams,
    /// How long.
    pub effort: Effort,
    /// A hop among running nodes, where there are some: it has the protocol's own work in it.
    pub node_hop: Option<Spread>,
}

/// What a hop came to.
struct Hop {
    spread: Spread,
    receive: Spread,
    longest: Span,
}

impl Bench {
    /// Measures everything.
    ///
    /// Nine in ten frames, visits and hops cost no more than what is charged for each. Their tails are not
    /// charged K times a cycle: they are the host's lateness, which every bound has once as J.
    pub fn run(&mut self, about: About) -> Result<Calibration, Failure> {
        let full = self.params.link.framing.unit_payload_max() as usize;
        let wake = self.wake()?;
        let prepare = self.prepare(full)?;
        let short = self.prepare(SHORT)?;
        let (frame, visit) = self.visits(full, prepare.p90.max(short.p90))?;
        let hop = self.peer.map(|peer| self.hop(peer)).transpose()?;
        // A longer pause is recorded as a stall where it happens, and excused by that record alone.
        let slack = wake.max.min(STALL_MIN);
        let charged = prepare.p90.max(short.p90);
        let admission = Costs {
            prepare: charged,
            per_frame: frame.p50,
            per_visit: visit.p90.max(charged),
            hop: hop.as_ref().map_or(self.params.link.hop, |hop| hop.longest),
            host_slack: slack,
        };
        let mut measured = vec![
            (Measurement::Prepare, prepare),
            (Measurement::PrepareShort, short),
            (Measurement::Frame, frame),
            (Measurement::Visit, visit),
        ];
        if let Some(hop) = hop {
            measured.extend([(Measurement::Hop, hop.spread), (Measurement::Receive, hop.receive)]);
        }
        measured.push((Measurement::Wake, wake));
        let of_circuits = circuits::measure(self)?;
        measured.extend(of_circuits.measured());
        Ok(Calibration { about, admission, circuits: Some(of_circuits.costs()), measured })
    }

    /// J: how late a wait ends, for waits as long as those between two deadlines of a busy node.
    fn wake(&mut self) -> Result<Spread, Failure> {
        let end = clock::now() + self.effort.part(25);
        let (mut late, mut step) = (Vec::new(), 1u64);
        while clock::now() < end || late.len() < SAMPLES_MIN {
            // From 0.2 to 1.2 ms in an order that is no multiple of any tick.
            step = step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let due = clock::now() + Span::from_nanos(200_000 + (step >> 33) % 1_000_000);
            late.push(self.station.wait_until(due)?.since(due).as_nanos());
        }
        Ok(Spread::of(late))
    }

    /// How long one frame after another takes to be built, tagged and handed over.
    fn prepare(&mut self, octets: usize) -> Result<Spread, Failure> {
        let wire = self.wire(octets);
        let end = clock::now() + self.effort.part(10);
        let mut times = Vec::new();
        while clock::now() < end || times.len() < SAMPLES_MIN {
            let begun = clock::now();
            let mut before = begun;
            for nth in 0..ROW {
                if !self.station.send_fragment(self.to, octets)? {
                    break;
                }
                let after = clock::now();
                if nth > 0 {
                    times.push(after.since(before).as_nanos());
                }
                before = after;
            }
            if before == begun {
                return Err(Failure::failed("the device takes no frame; is its queue blocked?"));
            }
            self.station.wait_drained(begun + wire * ROW as u64)?;
        }
        Ok(Spread::of(times))
    }

    /// a and b. The line through the medians of short and long visits is a; b is what a visit of one frame
    /// takes beyond it. A long visit says nothing of b's tail: whatever stalls the host meanwhile is J,
    /// which every bound has once.
    fn visits(&mut self, octets: usize, prepare: Span) -> Result<(Spread, Spread), Failure> {
        let wire = self.wire(octets);
        let most = VISIT.count_down(wire).clamp(4, 256);
        let sizes = [1, most / 4, most / 2, most];
        let end = clock::now() + self.effort.part(25);
        let mut beyond: [Vec<u64>; 4] = Default::default();
        while clock::now() < end || beyond[0].len() < SAMPLES_MIN {
            for (index, frames) in sizes.into_iter().enumerate() {
                for _ in 0..if frames == 1 { SHORT_VISITS } else { 1 } {
                    let taken = self.visit(octets, frames, wire)?;
                    beyond[index].push(taken.minus(wire.max(prepare) * frames).as_nanos());
                }
            }
        }
        let median = |times: &[u64]| Spread::of(times.to_vec()).p50.as_nanos() as f64;
        let medians: Vec<(f64, f64)> =
            sizes.iter().zip(&beyond).map(|(frames, times)| (*frames as f64, median(times))).collect();
        let a = up(line(&medians).1);
        let samples = beyond.iter().map(Vec::len).sum::<usize>() as u64;
        let visit = beyond[0].iter().map(|time| time.saturating_sub(a.as_nanos())).collect();
        Ok((Spread::flat(samples, a), Spread::of(visit)))
    }

    /// From when a slot was to open until the token could leave, with the holder's own rule: no more than a
    /// burst ahead of the wire, and not away before the last frame is.
    fn visit(&mut self, octets: usize, frames: u64, wire: Span) -> Result<Span, Failure> {
        let burst = self.params.link.rate.span_of_up(self.params.card_burst_octets);
        let opens = clock::now() + Span::from_micros(300);
        let mut now = self.station.wait_until(opens)?;
        let mut card_free = opens;
        for _ in 0..frames {
            if card_free > now + burst {
                now = self.station.wait_until(card_free.minus(burst.div_down(2)))?;
            }
            while !self.station.send_fragment(self.to, octets)? {
                now = self.station.wait_until(clock::now() + wire)?;
            }
            card_free = card_free.max(now) + wire;
            now = clock::now();
        }
        let away = self.station.wait_until(card_free)?;
        self.station.wait_drained(away)?;
        Ok(away.since(opens))
    }

    /// h: half of a token's way to the peer and back, for the shortest and the longest token, or what nodes
    /// measured of their own token.
    fn hop(&mut self, peer: MacAddr) -> Result<Hop, Failure> {
        let overhead = (LINK_HEADER_OCTETS + TAG_OCTETS) as u64;
        let longest =
            SegmentParams::TOKEN_FIXED_OCTETS + SegmentParams::SLOT_OCTETS * u64::from(self.params.slots_max);
        let bodies = [SegmentParams::TOKEN_FIXED_OCTETS, longest].map(|octets| octets - overhead);
        let framing = self.params.link.framing;
        let wire = |body: u64| framing.wire_octets(body + overhead).get();
        // A ring's hops use one link after another; here one link would be asked for more than its rate.
        let pause = self.params.link.rate.span_of_up(Octets::new(wire(bodies[1]))) * 5;
        let end = clock::now() + self.effort.part(15);
        let (mut hops, mut receive): ([Vec<u64>; 2], _) = (Default::default(), Vec::new());
        let mut lost = 0;
        while clock::now() < end || hops[0].len() < SAMPLES_MIN {
            for (index, body) in bodies.into_iter().enumerate() {
                let begun = clock::now();
                let seq = self.station.send_control(peer, Kind::Token, body as usize)?;
                match self.answer_to(seq, begun + ANSWER_WITHIN)? {
                    Some((back, cost)) => {
                        hops[index].push(back.since(begun).as_nanos() / 2);
                        receive.push(cost.as_nanos());
                    }
                    None => lost += 1,
                }
                self.station.wait_until(begun + pause)?;
                if lost > SAMPLES_MIN {
                    return Err(Failure::failed("the peer has stopped answering; start its '--echo' again"));
                }
            }
        }
        let medians: Vec<(f64, f64)> = bodies
            .iter()
            .zip(&hops)
            .map(|(body, times)| (wire(*body) as f64, Spread::of(times.clone()).p50.as_nanos() as f64))
            .collect();
        let per_octet = line(&medians).1.max(0.0);
        let samples = bodies.iter().zip(&hops).flat_map(|(body, times)| {
            let of_wire = (per_octet * wire(*body) as f64) as u64;
            times.iter().map(move |time| time.saturating_sub(of_wire))
        });
        let spread = self.node_hop.unwrap_or_else(|| Spread::of(samples.collect()));
        let longest = wire(bodies[1]);
        // A virtual wire carries a frame in no time: then both links are charged at their rate all the same.
        let nominal = self.params.link.rate.span_of_up(Octets::new(longest)) * 2;
        let carried = up(per_octet * longest as f64).max(nominal);
        Ok(Hop { spread, receive: Spread::of(receive), longest: spread.p90 + carried })
    }

    fn answer_to(&mut self, seq: u64, deadline: Instant) -> Result<Option<(Instant, Span)>, Failure> {
        while let Some(heard) = self.station.hear(deadline)? {
            if heard.kind == Kind::Token && heard.seq == seq {
                return Ok(Some((clock::now(), heard.cost)));
            }
        }
        Ok(None)
    }

    /// Wire time of a fragment with `octets` of a unit.
    pub(super) fn wire(&self, octets: usize) -> Span {
        let link = &self.params.link;
        link.frame_span_up(octets as u64 + u64::from(link.framing.rota_octets))
    }
}
