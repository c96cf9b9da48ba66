//! The nearest request to one that was refused: the numbers in which it differs. Each offer was asked for
//! before it is made, so that the plan accepts it.
//!
//! Where the time of the whole way is too short, the delay and the jitter grow as far as they must, and both
//! together where one is not enough. Where a port has no room, messages become smaller, with the same goal if
//! that helps, and with a longer one if not. Where no message is small enough, they become fewer. Where a
//! segment has no such period, they have the nearest one that it has. A channel that another one follows ends
//! before that, if an end helps.

use super::engine::{Plan, Refused};
use super::file::Wanted;
use super::ledger::{Life, QUIET};
use rota_admission::path::Goal;
use rota_admission::rtip::Messages;
use rota_admission::search::largest;
use rota_units::{Octets, Span};

/// A number in which an offered request differs from the one that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// A longer delay.
    Delay(Span),
    /// A larger jitter.
    Jitter(Span),
    /// Smaller messages.
    SMax(Octets),
    /// Fewer messages.
    XMin(Span),
    /// Their average is no shorter.
    XAve(Span),
    /// Nor is its interval.
    Interval(Span),
    /// An earlier end.
    End(Span),
}

/// The answer to a request, if it were asked now.
type Ask<'a> = &'a dyn Fn(&Wanted) -> Result<(), Box<Refused>>;

/// The two answers to a request. Nearly all that passes the tests has a certificate, which takes time of its
/// own to make and to check: an offer is found by the tests, and proven once.
pub(super) struct Asks<'a> {
    /// By the tests alone.
    pub(super) tests: Ask<'a>,
    /// The same, and a certificate that the checker accepts.
    pub(super) proof: Ask<'a>,
}

/// Times that a goal becomes longer: its delay, and the jitter of that delay; and both once more where a
/// chance of late packets is divided anew.
const LONGER_MAX: usize = 4;

/// The same request with a goal that its way can keep, if only its goal was in the way.
fn reached(wanted: &Wanted, ask: Ask<'_>) -> Option<Wanted> {
    let mut next = wanted.clone();
    for _ in 0..LONGER_MAX {
        let Err(why) = ask(&next) else { return Some(next) };
        let Goal { delay, jitter } = next.goal;
        next.goal = match (why.test, jitter) {
            ("PathDelay", _) => Goal { delay: delay + why.margin, jitter },
            ("PathJitter", Some(jitter)) => Goal { delay, jitter: Some(jitter + why.margin) },
            _ => return None,
        };
    }
    ask(&next).is_ok().then_some(next)
}

/// The request with the largest message below its own with which it fits.
fn smaller(wanted: &Wanted, fits: impl Fn(&Wanted) -> Option<Wanted>) -> Option<Wanted> {
    let with = |octets| {
        let messages = Messages { s_max: Octets::new(octets), ..wanted.messages };
        fits(&Wanted { messages, ..wanted.clone() })
    };
    let asked = wanted.messages.s_max.get();
    if asked <= 1 || with(1).is_none() {
        return None;
    }
    with(largest(1, asked, |octets| with(octets).is_some()))
}

/// The request with the shortest X_min above its own with which it fits.
fn slower(wanted: &Wanted, fits: impl Fn(&Wanted) -> Option<Wanted>) -> Option<Wanted> {
    let with = |x_min: Span| {
        let messages = wanted.messages.slower(x_min);
        fits(&Wanted { messages, ..wanted.clone() })
    };
    with(wanted.messages.quickest_of(|x_min| with(x_min).is_some())?)
}

/// The request with the period that a segment's cycle allows, by which the asked one is too short or too
/// long. An average and an interval that were those of the messages stay so.
fn in_step(wanted: &Wanted, margin: Span, ask: Ask<'_>) -> Option<Wanted> {
    let Messages { x_min, x_ave, interval, s_max } = wanted.messages;
    let with = |to: Span| {
        let x_ave_to = if x_ave == x_min { to } else { x_ave.max(to) };
        let interval = if interval == x_ave { x_ave_to } else { interval.max(x_ave_to) };
        let messages = Messages { x_min: to, x_ave: x_ave_to, interval, s_max };
        Wanted { messages, ..wanted.clone() }
    };
    let mut both = [x_min.checked_sub(margin), Some(x_min + margin)].into_iter().flatten().map(with);
    both.find(|next| !ask(next).is_err_and(|why| matches!(why.test, "Period" | "Traffic")))
}

impl Plan<'_> {
    /// The nearest request that would be accepted now; no number where there is none.
    pub(super) fn nearest(&self, wanted: &Wanted, why: &Refused, asks: &Asks<'_>) -> Vec<Offered> {
        let found = match self.nearest_request(wanted, why, asks.tests) {
            // A request that passes the tests may have no certificate: both look for the nearest one then.
            Some(found) if (asks.proof)(&found).is_err() => self.nearest_request(wanted, why, asks.proof),
            found => found,
        };
        found.map_or_else(Vec::new, |found| differences(wanted, &found))
    }

    fn nearest_request(&self, wanted: &Wanted, why: &Refused, ask: Ask<'_>) -> Option<Wanted> {
        if let Some(longer) = reached(wanted, ask) {
            return Some(longer);
        }
        if why.test == "Period" {
            let next = in_step(wanted, why.margin, ask)?;
            // Its period is no obstacle now, and another test may be.
            return match ask(&next) {
                Ok(()) => Some(next),
                Err(why) => self.nearest_request(&next, &why, ask),
            };
        }
        if why.from > wanted.life.start {
            // The channels that stand now leave room until another channel starts.
            let apart = wanted.goal.delay + QUIET;
            let ends = self.ledger.starts().into_iter().filter_map(|start| start.checked_sub(apart));
            let life = |end| Life { end: Some(end), ..wanted.life };
            let ends = ends.filter(|end| *end > wanted.life.start);
            let mut sooner = ends.map(|end| Wanted { life: life(end), ..wanted.clone() });
            if let Some(sooner) = sooner.find(|sooner| ask(sooner).is_ok()) {
                return Some(sooner);
            }
        }
        if wanted.group.is_some() {
            // Its group states the messages.
            return None;
        }
        let as_asked = |wanted: &Wanted| ask(wanted).is_ok().then(|| wanted.clone());
        let longer = |wanted: &Wanted| reached(wanted, ask);
        smaller(wanted, as_asked)
            .or_else(|| smaller(wanted, longer))
            .or_else(|| slower(wanted, as_asked))
            .or_else(|| slower(wanted, longer))
    }
}

fn differences(asked: &Wanted, found: &Wanted) -> Vec<Offered> {
    let (was, is) = (asked.messages, found.messages);
    let span = |of: fn(Span) -> Offered, was: Span, is: Span| (was != is).then(|| of(is));
    let all = [
        span(Offered::Delay, asked.goal.delay, found.goal.delay),
        found.goal.jitter.filter(|_| asked.goal.jitter != found.goal.jitter).map(Offered::Jitter),
        (was.s_max != is.s_max).then_some(Offered::SMax(is.s_max)),
        span(Offered::XMin, was.x_min, is.x_min),
        span(Offered::XAve, was.x_ave, is.x_ave),
        span(Offered::Interval, was.interval, is.interval),
        found.life.end.filter(|_| asked.life.end != found.life.end).map(Offered::End),
    ];
    all.into_iter().flatten().collect()
}
