//! What has left this end of a link, and may still be ahead of the statistical class (`rota_admission`,
//! `subnet/statistical.rs`, *Coming and going*).

use super::flows::Flows;
use super::shares::Session;
use rota_admission::LinkModel;
use rota_admission::rtip::Traffic;
use rota_admission::subnet::{Ask, Certain};
use rota_units::{Instant, Span};

/// Those that have left a port while it was busy, each by itself; more of them count as one.
const LEFT_MAX: usize = 32;

/// One that has left.
#[derive(Clone, Copy, Debug)]
struct Gone {
    of: Certain,
    /// Slots keep their place among those that stand until then.
    from: Instant,
    /// e + p.
    until: Instant,
}

/// All that have left since the port was idle and had brought something since.
#[derive(Clone, Debug)]
pub(super) struct Left {
    gone: Vec<Gone>,
    /// Since when the port has been busy, at the earliest.
    busy: Instant,
}

impl Default for Left {
    fn default() -> Self {
        Self { gone: Vec::new(), busy: Instant::ZERO }
    }
}

/// True if a flow of this traffic that has ended at `end` counts at another moment.
pub(super) fn counts(traffic: &Traffic, end: Instant, at: Instant, horizon: Span) -> bool {
    at < end + Span::from_nanos(traffic.pause()) + horizon
}

impl Left {
    /// Neither a slot nor a packet nor an announcement waits.
    pub(super) fn idle(&mut self, now: Instant) {
        self.gone.clear();
        self.busy = now;
    }

    /// The link is empty.
    pub(super) fn clear(&mut self) {
        self.gone.clear();
    }

    /// A flow has left, whose newest packet came then.
    pub(super) fn flow(
        &mut self,
        now: Instant,
        (link, ask): (&LinkModel, &Ask),
        came: Option<Instant>,
        horizon: Span,
    ) {
        if came.is_some_and(|came| came >= self.busy) {
            let until = now + Span::from_nanos(ask.traffic.pause());
            self.add(now, Gone { of: Certain::of(link, ask), from: Instant::ZERO, until }, horizon);
        }
    }

    fn add(&mut self, now: Instant, one: Gone, horizon: Span) {
        self.gone.retain(|gone| now < gone.until + horizon);
        let is_full = self.gone.len() >= LEFT_MAX;
        match self.gone.last_mut().filter(|_| is_full) {
            Some(last) => {
                let (from, until) = (last.from.min(one.from), last.until.max(one.until));
                *last = Gone { of: last.of.and(&one.of), from, until };
            }
            None => self.gone.push(one),
        }
    }

    /// What counts at a moment, now or later, beside this.
    pub(super) fn beside(&self, other: Certain, (now, at): (Instant, Instant), horizon: Span) -> Certain {
        let counted = self.gone.iter().filter(|gone| gone.from <= now && at < gone.until + horizon);
        counted.fold(other, |sum, gone| sum.and(&gone.of))
    }
}

impl Flows {
    /// A session has from now on a load of `rest` in each window, in slots.
    pub(super) fn slots_left(&mut self, now: Instant, session: &Session, (rest, window): (Span, Span)) {
        let Some((had, opened)) = session.had(now) else { return };
        if opened >= self.left.busy && had > rest {
            let (of, until) = (Certain::of_slots(had.minus(rest), window), opened + window);
            let horizon = self.horizon();
            self.left.add(now, Gone { of, from: until, until }, horizon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Beyond the memory the last ones are one, which counts as early and as long as any of them.
    #[test]
    fn what_is_counted_as_one_counts_from_the_first_to_the_last_of_it() {
        let window = Span::from_millis(10);
        let of = |octets| Certain::of_slots(Span::from_micros(octets), window);
        let gone = |from, until| Gone { of: of(7), from: at(from), until: at(until) };
        for (one, other) in [((300, 900), (100, 500)), ((100, 500), (300, 900))] {
            let mut left = Left::default();
            for _ in 1..LEFT_MAX {
                left.add(at(1), gone(0, 2), Span::ZERO);
            }
            for (from, until) in [one, other] {
                left.add(at(1), gone(from, until), Span::ZERO);
            }
            let most = |now, then| format!("{:?}", left.beside(of(0), (at(now), at(then)), Span::ZERO));
            let both = format!("{:?}", of(0).and(&of(7)).and(&of(7)));
            for now in [100, 899] {
                assert_eq!((most(now, now), most(now, 899)), (both.clone(), both.clone()), "{now}");
            }
            assert_eq!((most(99, 99), most(900, 900)), (format!("{:?}", of(0)), format!("{:?}", of(0))));
        }
    }
}
