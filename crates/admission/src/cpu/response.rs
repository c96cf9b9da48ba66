//! The bound of a client's response: the least fixed point of the head of `cpu`.

use super::{Ask, Host, NO_BOUND, Promise, Share, nanos, span_of};
use rota_units::Span;

/// How far beyond its deadline a response is looked for, so that a refusal says by how much.
const FAR: u128 = 64;
/// Most steps of an iteration: near the whole CPU one takes very many, and then the answer is no.
const STEPS_MAX: u32 = 10_000;

/// The clients of a host, and one more.
#[derive(Clone, Copy)]
pub(super) struct Set<'s> {
    pub(super) host: &'s Host,
    pub(super) standing: &'s [Share],
    pub(super) more: Option<&'s Ask>,
}

/// The response of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Within its deadline. Without a promise it is 0.
    Within(Span),
    /// Late by so much; `None` where no end was found.
    Late(Option<Span>),
}

/// ⌈(R + D)/x⌉ messages.
fn messages(within: u128, promise: &Promise) -> u128 {
    (within + nanos(promise.deadline)).div_ceil(nanos(promise.period))
}

impl<'s> Set<'s> {
    /// All clients.
    pub(super) fn asks(self) -> impl Iterator<Item = &'s Ask> {
        self.standing.iter().map(|share| &share.ask).chain(self.more)
    }

    /// Of a client, which is at this place or is the one more. `from` is no longer than its response.
    pub(super) fn response(self, own: &Ask, place: Option<usize>, from: Span) -> Found {
        let Some(promise) = own.promise else { return Found::Within(Span::ZERO) };
        if from == NO_BOUND {
            return Found::Late(None);
        }
        let deadline = nanos(promise.deadline);
        let mut response = nanos(from).max(own.work(promise.units));
        for _ in 0..STEPS_MAX {
            let next = self.work_within(own, &promise, place, response);
            if next <= response {
                return match response.checked_sub(deadline) {
                    None | Some(0) => Found::Within(span_of(response)),
                    Some(margin) => Found::Late(Some(span_of(margin))),
                };
            }
            response = next;
            if response > deadline.saturating_mul(FAR) {
                break;
            }
        }
        Found::Late(None)
    }

    /// All work that can run in so many nanoseconds before the client's message is complete.
    fn work_within(self, own: &Ask, promise: &Promise, place: Option<usize>, within: u128) -> u128 {
        let turns = u128::from(promise.units.div_ceil(own.weight.into()));
        let (mut sum, mut longest_below) = (nanos(self.host.slack) + own.work(promise.units), 0);
        let own_place = place.unwrap_or(self.standing.len());
        for (at, other) in self.asks().enumerate() {
            if at == own_place {
                continue;
            }
            let of_messages = |promise: &Promise| messages(within, promise) * other.work(promise.units);
            let of_messages = other.promise.as_ref().map(of_messages);
            if other.class > own.class {
                longest_below = longest_below.max(nanos(other.cost()));
            } else if other.class == own.class {
                let begun = other.promise.map(|promise| messages(within, &promise));
                let of_turns = other.turns(turns, begun);
                sum += of_messages.map_or(of_turns, |work| work.min(of_turns));
            } else {
                // A class above a promised one has promises only, or there is no bound.
                sum += of_messages.unwrap_or(u128::from(u64::MAX));
            }
        }
        if let Some((work, period)) = self.host.above {
            sum += (1 + within.div_ceil(nanos(period).max(1))) * nanos(work);
        }
        sum + longest_below
    }
}
