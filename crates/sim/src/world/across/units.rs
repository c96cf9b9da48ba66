//! Units of channels across segments: how programs hand them over, and what is judged of each at its
//! receiver.

use super::{AcrossFlow, AcrossSpec, EndState, Manner, Ready, SHORT, SKIPS, UNITS_MAX, World};
use crate::hosts::Receipt;
use crate::world::Event;
use rota_contract::CloseCause;
use rota_proto::{ChannelId, Input, UnitRef};
use rota_units::{Instant, Span};

impl World {
    /// The program of a channel hands over its next units.
    pub(in crate::world) fn emit_across(&mut self, at: usize, boot: u32) {
        let AcrossSpec { from, octets, period, manner, .. } = self.across.flows[at].spec;
        let is_open = self.program_state(at) == EndState::Open;
        let flow = &self.across.flows[at];
        let is_done = flow.beside.ends.is_some_and(|ends| self.engine.now() >= ends);
        let is_over = self.hosts[from].boots != boot || !is_open || flow.is_closing || is_done;
        // A new path has an event of its own, beside the one that hands over.
        if is_over || self.offer_across_again(at) {
            return;
        }
        let has_turn = self.has_turn(at);
        let flow = &mut self.across.flows[at];
        let (count, wait) = match manner {
            Manner::Greedy | Manner::AtOnce => (1, period),
            // A whole period apart each is always within its traffic.
            Manner::Random => (1, period + Span::from_nanos(flow.random.below(period.as_nanos()))),
            Manner::Hasty => (8, period * 8),
            Manner::Hurried => (Manner::HURRY, period),
            Manner::OnOff => (1, self.burst_wait(at)),
        };
        let count = if has_turn { count } else { 0 };
        let stands = self.engine.now() < self.hosts[from].process.paused_until;
        let targets = self.targets(at);
        for _ in 0..count {
            let most = UNITS_MAX[usize::from(period <= SHORT)];
            let is_full = targets.iter().any(|to| self.across.flows[*to].ready.len() >= most);
            self.shares_skips(at, &targets);
            let flow = &mut self.across.flows[at];
            // A stopped process takes nothing: the memory of the program is full.
            if flow.skips > 0 || is_full || stands || flow.paths.is_cut {
                flow.skips = flow.skips.saturating_sub(1);
                flow.counts.skipped += 1;
                continue;
            }
            let octets = match manner {
                Manner::Greedy | Manner::Hurried | Manner::AtOnce => octets,
                _ => 1 + flow.random.below(u64::from(octets)) as u32,
            };
            // A receiver of several finds the number of a unit in its first word.
            let least = if flow.beside.tree.is_some() { 8 } else { 1 };
            self.across_unit(at, &targets, octets.max(least));
        }
        // A program counts its time by the clock of its host. One that has booked hands one unit over early.
        let clock = &self.hosts[from].clock;
        let since = self.engine.now().max(self.across.flows[at].beside.begins);
        let next = clock.when(clock.read(since) + wait).max(self.engine.now());
        self.engine.schedule(next, Event::Across { flow: at, boot });
    }

    /// What held a unit up at one of several receivers makes the program leave out the next ones for all.
    fn shares_skips(&mut self, at: usize, targets: &[usize]) {
        if self.across.flows[at].beside.tree.is_none() {
            return;
        }
        let skips = targets.iter().map(|to| std::mem::take(&mut self.across.flows[*to].skips)).max();
        let flow = &mut self.across.flows[at];
        flow.skips = flow.skips.max(skips.unwrap_or(0));
    }

    fn across_unit(&mut self, at: usize, targets: &[usize], octets: u32) {
        let now = self.now();
        let AcrossFlow { spec, channel, counts, beside, .. } = &self.across.flows[at];
        let (from, channel, ready, tree) = (spec.from, *channel, now.max(beside.begins), beside.tree);
        let number = match tree {
            Some(tree) => self.across.trees[tree].next,
            None => counts.units,
        };
        if let Some(tree) = tree {
            self.across.trees[tree].next += 1;
        }
        for to in targets {
            let flow = &mut self.across.flows[*to];
            flow.counts.units += 1;
            let waits = flow.waits_for_others(ready);
            flow.ready.push_back(Ready { number, at: ready, handed: now, waits, octets });
        }
        self.with(from, |node, local| {
            let unit = UnitRef { number, octets, schedule_ns: local.as_nanos(), left_out: 0 };
            node.handle(local, Input::UnitReady { channel, unit });
        });
    }

    /// A unit has come as far as it will. True if it is of a channel across segments.
    pub(in crate::world) fn across_receipt(
        &mut self,
        host: usize,
        channel: ChannelId,
        receipt: &Receipt,
        packets: u64,
    ) -> bool {
        let Some(at) = self.across.receiving.get(&(host, channel)).copied() else { return false };
        let flow = &mut self.across.flows[at];
        if receipt.number < flow.beside.first || (flow.beside.tree.is_some() && flow.sender != EndState::Open)
        {
            // It joins others, and its sender has not heard of that, or has heard of its end.
            return true;
        }
        let (mut missing, mut lost) = (None, 0);
        let unit = loop {
            match flow.ready.front().copied() {
                Some(unit) if unit.number < receipt.number => {
                    missing = missing.or(Some(unit));
                    lost += 1;
                    flow.ready.pop_front();
                }
                Some(unit) if unit.number == receipt.number => break unit,
                _ => {
                    let what = format!("unit {} of channel {at} came twice or out of order", receipt.number);
                    self.broke("S4", what);
                    return true;
                }
            }
        };
        flow.ready.pop_front();
        let (bound, begins) = (flow.allowed(unit.at), flow.beside.begins);
        let took = receipt.at.since(unit.at);
        let (is_promised, is_lossless) = (self.is_promised(at), self.is_lossless(at));
        if !receipt.intact {
            self.broke("S4", format!("unit {} of channel {at} was altered", receipt.number));
        }
        let is_excused = self.unit_excused(at, &missing.unwrap_or(unit), receipt.at);
        if receipt.at < begins && !is_excused {
            self.broke("T8", format!("unit {} of channel {at} came before its beginning", receipt.number));
        }
        let (is_late, is_broken) = (took > bound && is_promised, !receipt.complete);
        if !is_excused {
            self.tally_across(at, (lost, took > bound, is_broken));
        }
        if let Some(Ready { number, .. }) = missing.filter(|of| !is_excused && self.is_kept(at, of)) {
            self.broke("T2", format!("unit {number} of channel {at} was lost"));
        }
        if is_broken && !is_excused && is_lossless {
            self.broke("T2", format!("unit {} of channel {at} came in part", receipt.number));
        }
        if is_late && !is_excused && took > bound + unit.waits {
            let what = format!("unit {} of channel {at} took {took}; the promise is {bound}", receipt.number);
            self.broke("T1", what);
        }
        let flow = &mut self.across.flows[at];
        let is_held = is_late || is_broken || missing.is_some();
        flow.is_held = is_held;
        flow.skips = if is_held { SKIPS } else { flow.skips };
        flow.counts.excused += u64::from(is_held);
        flow.counts.whole += u64::from(receipt.complete);
        flow.counts.packets += packets;
        if !is_excused && is_promised {
            flow.count_use((took, bound), packets);
            if receipt.complete && unit.waits == Span::ZERO {
                self.judge_jitter(at, receipt.number, took);
            }
        }
        true
    }

    /// True if a named fault met the way of a unit, or one before it that was held up. A bound earlier, since
    /// a fault makes units wait that are still in time.
    pub(super) fn across_excused(&self, at: usize, ready: Instant, until: Instant) -> bool {
        let flow = &self.across.flows[at];
        let begin = Instant::from_nanos(ready.as_nanos().saturating_sub(2 * flow.bound.as_nanos()));
        flow.is_held
            || flow.is_of_old_path(ready)
            || flow.is_doubtful(ready, until)
            || self.segments.iter().any(|segment| segment.windows.touches(begin, until))
    }

    /// The same of a unit. One of a booking is handed over before its promise begins, and its path may fail
    /// meanwhile.
    pub(super) fn unit_excused(&self, at: usize, unit: &Ready, until: Instant) -> bool {
        let flow = &self.across.flows[at];
        flow.is_of_old_path(unit.handed) || self.across_excused(at, unit.at, until)
    }

    /// A channel is over at its receiver: units that were handed over before a close in good order have come.
    pub(super) fn across_last_units(&mut self, at: usize, cause: CloseCause) {
        let now = self.now();
        let flow = &mut self.across.flows[at];
        let left: Vec<Ready> = flow.ready.drain(..).collect();
        let Some(first) = left.first().copied() else { return };
        if cause != CloseCause::Finished || flow.sender == EndState::Dead {
            return;
        }
        flow.counts.excused += left.len() as u64;
        // The end follows the last unit by its bound, which knows no slots whose units leave at all ports.
        let begin = Instant::from_nanos(first.at.as_nanos().saturating_sub(2 * flow.bound.as_nanos()));
        let flooded = self.segments.iter().any(|segment| segment.windows.flooded_between(begin, now) > 0);
        if !flooded && !self.unit_excused(at, &first, now) && self.is_lossless(at) {
            let (count, number) = (left.len(), first.number);
            let what = format!("channel {at} finished without {count} units, the first one is {number}");
            self.broke("T2", what);
        }
    }

    /// Slots for shares that the node of a host has for hops, asks for, or gives back: each change of a
    /// channel may have brought another one. Checkers of segments know no others.
    pub(in crate::world) fn count_hops(&mut self, index: usize) {
        if self.spec.across.is_none() {
            return;
        }
        let asked = |flow: &AcrossFlow| {
            flow.counts.changed + flow.counts.unchanged + u64::from(flow.beside.wish.is_some())
        };
        let changes: u64 = self.across.flows.iter().map(asked).sum();
        let host = &mut self.hosts[index];
        for port in 0..host.ports.len() {
            let id = rota_proto::PortId(port as u8);
            let hops = host.node.as_ref().map_or(0, |node| node.hops_at(id) as u64);
            host.ports[port].hops = if hops > 0 { hops + changes } else { 0 };
        }
    }
}
