//! S3, R4: every conforming unit is delivered within its bound, unless its way meets a window. S4: whole,
//! unaltered, in order, once. R4: slots come no further apart than their gap.

use super::{Checker, Findings, Seen, View};
use crate::world::FlowState;
use rota_admission::{Slot, gap_early};
use rota_units::{Instant, Span};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How one channel fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowReport {
    /// The bound it was promised.
    pub bound: Span,
    /// Units that were ready.
    pub ready: u64,
    /// Units that came whole.
    pub whole: u64,
    /// Units late or lost that a window excuses.
    pub excused: u64,
    /// Units late or lost that nothing excuses.
    pub missed: u64,
    /// The longest way of a unit that no window met.
    pub worst: Span,
    /// The longest time between two slots that no window met.
    pub worst_gap: Span,
}

#[derive(Clone, Debug, Default)]
struct Watch {
    report: FlowReport,
    /// Units whose time has not come.
    pending: VecDeque<Pending>,
    newest: Option<u64>,
    /// The newest unit that was ready, and when.
    made: Option<(u64, Instant)>,
    /// The newest unit that has left.
    left: Option<u64>,
    /// When its newest slot began, whether the ring was strict then, and the unit that it was promised
    /// and how many slots its station had.
    slot: Option<(Instant, bool, (u32, usize))>,
    /// Its program has sent a unit larger than the contract, whose rest takes a slot of its own.
    too_large: bool,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    ready: Instant,
    /// What was promised when it was ready: a change of the contract does not change it.
    bound: Span,
    /// When it must be there.
    due: Instant,
    /// When the unit before it was ready, if its period is long and that one has not left.
    behind: Option<Instant>,
    /// It is there already.
    there: bool,
    /// It has been judged, and leaves the list behind those before it.
    judged: bool,
}

impl Watch {
    /// A unit that is not judged yet. Its program numbers its units in the order in which they are ready; a
    /// thousand of them may wait at once, so none is looked for from the front.
    fn unit(&mut self, number: u64) -> Option<&mut Pending> {
        let at = self.pending.binary_search_by_key(&number, |unit| unit.number).ok()?;
        self.pending.get_mut(at).filter(|unit| !unit.judged)
    }

    fn judged(&mut self, number: u64) {
        if let Some(unit) = self.unit(number) {
            unit.judged = true;
        }
        while self.pending.front().is_some_and(|unit| unit.judged) {
            self.pending.pop_front();
        }
    }
}

impl Pending {
    /// When it must be there, or later because slots before its own, or its own, took longer than they are
    /// charged.
    fn allowed(&self, view: &View<'_>) -> Instant {
        self.due + flooded(view, self.due)
    }
}

/// Watches every flow.
#[derive(Debug, Default)]
pub struct Deliveries {
    flows: Vec<Watch>,
    /// When which flow's pending unit is due, when it was ready, and its number.
    due: BinaryHeap<Reverse<(Instant, usize, Instant, u64)>>,
}

impl Deliveries {
    /// How the flow fared.
    pub fn report(&self, flow: usize) -> FlowReport {
        self.flows.get(flow).map_or_else(FlowReport::default, |watch| watch.report)
    }

    fn judge_due(&mut self, view: &View<'_>, findings: &mut Findings) {
        while let Some(Reverse((due, flow, ready, number))) = self.due.peek().copied() {
            if due >= view.now {
                return;
            }
            self.due.pop();
            let watch = &mut self.flows[flow];
            let Some(unit) = watch.unit(number).copied() else { continue };
            let channel = &view.flows[flow];
            // A unit that was on its way when its channel ended is judged by how the channel ended.
            let ended = channel.state != FlowState::Open && channel.since <= due;
            // A station that is dead, or began anew and knows no channel, receives nothing: how soon the
            // sender must be told is another rule.
            let receiver = view.at(channel.to);
            let ended = ended || receiver.port().is_none() || receiver.boots != channel.receiver_boots;
            let excuse = |begin| view.windows.excuse(begin, due, channel.from, channel.to);
            // It is judged at the later time that it was given, or will be given: see `unit_left`.
            if unit.due > due || (!unit.there && !ended && unit.behind.is_some_and(excuse)) {
                continue;
            }
            let allowed = unit.allowed(view);
            if !unit.there && allowed > due {
                self.due.push(Reverse((allowed, flow, ready, number)));
                continue;
            }
            watch.judged(number);
            if unit.there {
                continue;
            }
            if ended || excuse(ready) {
                watch.report.excused += 1;
            } else {
                watch.report.missed += 1;
                let what =
                    format!("unit {number} of flow {flow} was due {} after it was ready", due.since(ready));
                findings.add(view.now, "S3", what);
            }
        }
    }
}

impl Checker for Deliveries {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.flows.resize(view.flows.len(), Watch::default());
        for seen in view.seen {
            match *seen {
                Seen::Ready { flow, number, octets } => {
                    check_notice(view, flow, findings);
                    self.unit_ready(view, flow, number, octets);
                }
                Seen::Delivered { flow, receipt } => {
                    let (from, to) = (view.flows[flow].from, view.flows[flow].to);
                    let watch = &mut self.flows[flow];
                    if watch.newest.is_some_and(|newest| receipt.number <= newest) {
                        let what = format!("unit {} of flow {flow} came again or too late", receipt.number);
                        findings.add(view.now, "S4", what);
                    }
                    watch.newest = Some(receipt.number);
                    if receipt.complete && !receipt.intact {
                        let what = format!("unit {} of flow {flow} was altered", receipt.number);
                        findings.add(view.now, "S4", what);
                    }
                    if !receipt.complete {
                        continue;
                    }
                    watch.report.whole += 1;
                    let promised = watch.report.bound;
                    let unit = watch.unit(receipt.number);
                    let bound = unit.as_ref().map_or(promised, |unit| unit.bound);
                    let in_time = unit.as_ref().is_some_and(|unit| receipt.at <= unit.allowed(view));
                    if receipt.delay > bound && !in_time {
                        continue;
                    }
                    if let Some(unit) = unit {
                        unit.there = true;
                    }
                    let ready = receipt.at.minus(receipt.delay);
                    if receipt.delay > bound {
                        watch.report.excused += 1;
                    } else if !view.windows.excuse(ready, receipt.at, from, to) {
                        watch.report.worst = watch.report.worst.max(receipt.delay);
                    }
                }
                Seen::Slot { flow, began, unit } => {
                    if let Some(number) = unit {
                        self.unit_left(view, flow, number, began);
                    }
                    self.slot(view, flow, began, findings);
                }
                Seen::Flow { flow, .. } => self.flows[flow].slot = None,
                _ => {}
            }
        }
        self.judge_due(view, findings);
    }
}

impl Deliveries {
    fn unit_ready(&mut self, view: &View<'_>, flow: usize, number: u64, octets: u32) {
        let (watch, granted, ready) = (&mut self.flows[flow], &view.flows[flow].granted, view.now);
        let bound = granted.bound();
        (watch.report.bound, watch.report.ready) = (bound, watch.report.ready + 1);
        let (before, cycle) = (watch.made.replace((number, ready)), view.flows[flow].cycle());
        if octets > granted.contract.unit_octets_max {
            watch.too_large = true;
            return;
        }
        let waits = before.filter(|before| granted.period() > cycle && Some(before.0) > watch.left);
        let (due, behind) = (ready + bound, waits.map(|before| before.1));
        watch.pending.push_back(Pending { number, ready, bound, due, behind, there: false, judged: false });
        self.due.push(Reverse((due, flow, ready, number)));
    }

    /// A unit left in a slot that began then. A window may have held it up beyond the window's own end: a
    /// unit of k cycles needs k slots, and takes those of the next one. That one is due a bound behind this
    /// slot, for the lemma of `admission/src/rether.rs` holds from there: the session's slots of the next k
    /// cycles are its own. No further unit is put off by that, since a program that is behind skips one.
    fn unit_left(&mut self, view: &View<'_>, flow: usize, number: u64, began: Instant) {
        let (watch, channel) = (&mut self.flows[flow], &view.flows[flow]);
        watch.left = watch.left.max(Some(number));
        let Some(next) = watch.unit(number + 1) else { return };
        let Some(ready) = next.behind.take() else { return };
        if view.windows.excuse(ready, began, channel.from, channel.to) {
            next.due = next.due.max(began + next.bound);
            self.due.push(Reverse((next.due, flow, next.ready, next.number)));
        }
    }

    fn slot(&mut self, view: &View<'_>, flow: usize, began: Instant, findings: &mut Findings) {
        let channel = &view.flows[flow];
        if channel.state != FlowState::Open {
            return;
        }
        let list = view.at(channel.from).rether().and_then(|link| link.list());
        let Some(list) = list else { return };
        let slots = list.slots.as_slice();
        let strict = slots.iter().any(|slot| slot.periodic);
        let watch = &mut self.flows[flow];
        let station = view.at(channel.from).rether().map_or(0, |link| link.station());
        let own = slots.iter().filter(|slot| slot.station == station).count();
        let size = (channel.granted.contract.unit_octets_max, own);
        let Some((last, was_strict, before)) = watch.slot.replace((began, strict, size)) else { return };
        let gap = began.since(last);
        // Two slots at once happen when a cycle begins while the last one's slot was late.
        let to_blame = watch.too_large;
        if to_blame || view.windows.excuse(last, began, channel.from, channel.to) {
            return;
        }
        watch.report.worst_gap = watch.report.worst_gap.max(gap);
        // The first slot of a ring that has become strict may follow one that came as early as it could.
        let strict = strict && was_strict;
        let slots: Vec<Slot> = super::ledger::admission_slots(slots);
        let params = view.settings.params(view.stations.count() as u16);
        let bound = if strict { params.trt } else { gap_early(&params, &slots) };
        // A unit of several cycles is told of when its last fragment leaves.
        let bound = bound + channel.granted.period().minus(params.trt);
        // A session that has just grown ends its units in a slot further back, at most at the list's end.
        let grows = size.0 > before.0 || size.1 > before.1;
        let bound = if grows { bound + rota_admission::reserved(&slots) } else { bound };
        let slack = params.link.host_slack + params.transit() + flooded(view, began);
        if gap > bound + slack {
            let what = format!("slots of flow {flow} began {gap} apart; {bound} is the bound");
            findings.add(view.now, "R4", what);
        }
    }
}

/// How much later a slot or a unit may come by then, because slots took longer than they are charged: those
/// of its own cycle, and those of the cycle before, which began it late.
fn flooded(view: &View<'_>, by: Instant) -> Span {
    let (trt, frame) = (view.settings.trt, view.settings.link.frame_span_max());
    frame * view.windows.flooded_between(by.minus(trt * 2), by)
}

/// S5, row 11: a sender learns that its receiver is gone. A dead station without a slot is noticed when the
/// token next goes round, at the latest after 32 cycles, and then by the claim that it takes.
fn check_notice(view: &View<'_>, flow: usize, findings: &mut Findings) {
    let channel = &view.flows[flow];
    let receiver = view.at(channel.to);
    if receiver.port().is_some() && receiver.boots == channel.receiver_boots {
        return;
    }
    let bound = view.settings.trt * 33 + view.recovery.crash(view.stations.count() as u64) * 2;
    let told = view.now.since(receiver.card.died.max(channel.since));
    if told > bound && !view.windows.cover(view.now) {
        let what = format!("flow {flow} still sends {told} after its receiver died");
        findings.add(view.now, "S5", what);
    }
}
