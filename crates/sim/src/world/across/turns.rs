//! The turns of groups: the programs of a group's members agree on who sends, so that no more of them send at
//! a time than the group's contract says, and one begins D_max + I behind the last unit of the one before.
//!
//! A member that takes no turns breaks the contract of its group: members are promised nothing then, and all
//! others as much as ever.

use super::{EndState, Manner, World};
use rota_contract::GroupName;
use rota_units::{Instant, Span};

/// The right to send of one member at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnLane {
    group: (u32, GroupName),
    holder: Option<usize>,
    until: Instant,
    /// When another member may begin.
    free: Instant,
}

/// Clocks of two members differ, and so does what each takes for D_max + I.
const APART: Span = Span::from_millis(2);

impl World {
    /// True if some member of its group takes no turns, or sends what it likes.
    pub(super) fn is_unruly(&self, at: usize) -> bool {
        let spec = &self.across.flows[at].spec;
        let Some(group) = spec.suite.group else { return false };
        self.across.flows.iter().any(|other| {
            let is_member = other.spec.suite.group.is_some_and(|of| of.name == group.name);
            is_member && other.spec.uid == spec.uid && !other.spec.manner.conforms()
        })
    }

    /// True if this program may hand a unit over now; it keeps its turn, or takes one.
    pub(super) fn has_turn(&mut self, at: usize) -> bool {
        let now = self.now();
        let spec = &self.across.flows[at].spec;
        let Some(group) = spec.suite.group.filter(|_| spec.manner != Manner::AtOnce) else { return true };
        let key = (spec.uid, group.name);
        let (period, behind) = (spec.period, self.across.flows[at].asked_delay() + spec.period + APART);
        let standing = self.across.lanes.iter().filter(|lane| lane.group == key).count();
        for _ in standing..usize::from(group.at_once) {
            let lane = TurnLane { group: key, holder: None, until: Instant::ZERO, free: Instant::ZERO };
            self.across.lanes.push(lane);
        }
        for place in 0..self.across.lanes.len() {
            let TurnLane { holder, until, .. } = self.across.lanes[place];
            let Some(holder) = holder else { continue };
            let flow = &self.across.flows[holder];
            let is_done = now >= until && flow.ready.is_empty() && !flow.paths.is_cut;
            if is_done || self.program_state(holder) != EndState::Open || flow.is_closing {
                self.across.lanes[place].holder = None;
            }
        }
        let mut lanes = self.across.lanes.iter_mut().filter(|lane| lane.group == key);
        if let Some(lane) = lanes.find(|lane| lane.holder == Some(at)) {
            let goes_on = now < lane.until;
            lane.free = if goes_on { now + behind } else { lane.free };
            return goes_on;
        }
        let mut lanes = self.across.lanes.iter_mut().filter(|lane| lane.group == key);
        let Some(lane) = lanes.find(|lane| lane.holder.is_none() && lane.free <= now) else { return false };
        let turn = period * self.across.flows[at].random.between(3, 16);
        (lane.holder, lane.until, lane.free) = (Some(at), now + turn, now + behind);
        true
    }
}
