//! Grants are spent here and nowhere else: a slot's on the units of its session (`units.rs`), an ordinary
//! visit's on the queue.

use super::queue::{Origin, SIGNALLING};
use super::{Counters, Port};
use crate::io::{FrameBuf, Output, channel_of};
use rota_medium::door::{Grant, Lane, Visited};
use rota_units::{Instant, Span};

/// What an ordinary visit has sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sent {
    #[default]
    Nothing,
    /// Signalling only; how long the frames that share one place have taken.
    Signalling(Span),
    /// Other frames too; how long those that share the newest place have taken.
    Others(Span),
}

impl Counters {
    /// A visit that had sent `before` has sent `now`: its first frame counts it.
    fn visited(&mut self, before: Sent, now: Sent) {
        self.ordinary_visits += u64::from(before == Sent::Nothing);
        let has_others = |sent| matches!(sent, Sent::Others(_));
        self.other_visits += u64::from(!has_others(before) && has_others(now));
    }
}

/// How far the grants of one slot or visit are spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spending {
    /// The number of these grants.
    pub(super) number: u32,
    /// Units that have left whole.
    pub(super) units: u32,
    /// The places for full frames of ordinary traffic, and how many are left.
    pub(super) most: u32,
    pub(super) left: u32,
    pub(super) sent: Sent,
}

impl Port {
    /// Spends what the medium grants: one frame at a time, since the parent takes one at a time. Without a
    /// frame the grant is used up, or something of the medium goes first.
    pub(super) fn spend(&mut self, now: Instant, grant: &Grant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        if self.spending.number != grant.number {
            let Grant { number, most, .. } = *grant;
            self.spending = Spending { number, most, left: most, ..Spending::default() };
            if let Lane::RealTime(session) = grant.lane {
                self.tell_sharers(grant, channel_of(session));
            }
        }
        match grant.lane {
            Lane::RealTime(session) => self.spend_slot(now, grant, session, frame),
            Lane::NonRealTime => self.spend_visit(now, grant),
        }
    }

    /// Nothing more leaves under these grants.
    pub(super) fn end_grant(&mut self, now: Instant, used: u32) {
        self.medium.done(now, Visited::Used(used));
        self.heed(now);
    }

    fn spend_visit(&mut self, now: Instant, grant: &Grant) -> Option<Output> {
        let Spending { left, sent, .. } = self.spending;
        let next = self.queue.front().and_then(|(level, entry)| {
            let with = self.with_frame(level == usize::from(SIGNALLING), entry.octets, left, sent)?;
            Some((entry, with))
        });
        let Some((entry, (left, with))) = next else { return self.end_visit(now) };
        if !grant.fits(now, self.frame_time(entry.octets)) {
            if sent != Sent::Nothing {
                return self.end_visit(now);
            }
            self.medium.done(now, Visited::Unfit);
            self.heed(now);
            return None;
        }
        if self.medium.answers_before(now, self.frame_time(entry.octets)) {
            return None;
        }
        let (level, entry) = self.dequeue()?;
        if let Origin::Llc(_) | Origin::Circuit(_) = entry.origin {
            // Its own machine writes it, and says so: see `llc_sent` and `circuit_sent`.
            return self.let_go(level, entry.origin);
        }
        self.note_sent(left, with);
        if let Origin::Host(_) = entry.origin {
            self.counters.host_frames_sent += 1;
            self.tally.count_host(level, entry.octets);
        }
        self.medium.spent(now, entry.octets);
        self.let_go(level, entry.origin)
    }

    fn note_sent(&mut self, left: u32, with: Sent) {
        self.counters.visited(self.spending.sent, with);
        (self.spending.left, self.spending.sent) = (left, with);
    }

    fn end_visit(&mut self, now: Instant) -> Option<Output> {
        let Spending { most, left, sent, .. } = self.spending;
        self.queue.others_first = matches!(sent, Sent::Signalling(_));
        self.lower_demand();
        self.end_grant(now, most - left);
        None
    }

    /// A frame of link control or a circuit has left, in an ordinary visit or without any.
    pub(super) fn spend_on_bounded(&mut self, now: Instant, level: usize, octets: u16) {
        if self.medium.visit_number() != Some(self.spending.number) {
            return;
        }
        let Spending { left, sent, .. } = self.spending;
        // One longer than its entry said takes the last place whole.
        let whole = Sent::Others(self.medium.settings().link.frame_cost_max());
        let (left, with) = self.with_frame(false, octets, left, sent).unwrap_or((0, whole));
        self.note_sent(left, with);
        self.tally.count_level(level, octets);
        self.medium.spent(now, octets);
    }

    /// How many more frames a visit may send, and what it has sent, once a frame of so many octets has left;
    /// `None` when it may not. Frames that together take no longer than one full frame share its place:
    /// signalling with signalling before others, and behind the first other frame all with each other.
    pub(super) fn with_frame(
        &self,
        is_signalling: bool,
        octets: u16,
        left: u32,
        sent: Sent,
    ) -> Option<(u32, Sent)> {
        let link = &self.medium.settings().link;
        let takes = link.frame_cost(self.frame_time(octets));
        let shared = match sent {
            Sent::Signalling(took) if is_signalling => Some(took + takes),
            Sent::Others(took) if !is_signalling => Some(took + takes),
            _ => None,
        };
        let shared = shared.filter(|took| *took <= link.frame_cost_max());
        let left = if shared.is_some() { left } else { left.checked_sub(1)? };
        let took = shared.unwrap_or(takes);
        // A visit that has sent others too is no visit of signalling.
        let only_signals = is_signalling && !matches!(sent, Sent::Others(_));
        Some((left, if only_signals { Sent::Signalling(took) } else { Sent::Others(took) }))
    }
}
