//! `--reattach`: the change from a channel that the end of a node has ended to the next one, and its time.

use rota::{CloseCause, OpenError};
use rota_answer::{Exit, Failure, complain};
use rota_units::{Instant, Span};

/// True if a node has ended at one end, so that the channel can be opened again at the next node.
pub(super) fn is_of_node(cause: CloseCause) -> bool {
    use CloseCause::{NodeStopped, PeerDied, PeerGone, PeerStopped, WasSilent};
    matches!(cause, PeerGone | PeerDied | NodeStopped | PeerStopped | WasSilent)
}

/// The time of a change. It is spent on all steps together, and on all channels that end before a unit has
/// crossed one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    time: Span,
    until: Option<Instant>,
    /// One of these ends broke the promise: a node died, and nobody knows what became of the newest units.
    is_broken: bool,
}

impl Change {
    pub(super) fn within(time: Span) -> Self {
        Self { time, until: None, is_broken: false }
    }

    /// A channel has ended so. The time begins, if no change was under way.
    pub(super) fn begin(&mut self, end: &Failure, now: Instant) {
        self.until.get_or_insert(now + self.time);
        self.is_broken |= end.exit == Exit::Broken;
    }

    /// The end of the program, for one reason or another: a broken promise takes precedence over its code, at
    /// both ends.
    pub(super) fn judged(&self, end: Failure) -> Failure {
        Failure { exit: if self.is_broken { Exit::Broken } else { end.exit }, ..end }
    }

    /// A unit has crossed the new channel: the next end begins a change of its own.
    pub(super) fn over(&mut self) {
        *self = Self::within(self.time);
    }

    pub(super) fn left(&self, now: Instant) -> Span {
        self.until.map_or(self.time, |until| until.since(now))
    }

    /// States the end of a channel, and what the program waits for.
    pub(super) fn announce(&self, end: &Failure, awaited: &str, now: Instant) {
        let hundredths = (self.left(now).as_nanos() + 5_000_000) / 10_000_000;
        let left = Span::from_millis(10 * hundredths);
        complain(&format!("{}; {awaited} within {left} (--reattach)", end.sentence));
    }

    /// The end of the program, because the time is over.
    pub(super) fn gave_up(&self, end: &Failure, why: &str) -> Failure {
        let sentence = format!("{}; not open again within {} (--reattach): {why}", end.sentence, self.time);
        Failure { exit: end.exit, sentence }
    }

    /// The end of the program, because the channel could not be opened again: its exit code is that of this
    /// error, also of a refusal, which is final.
    pub(super) fn failed(&self, end: &Failure, error: OpenError) -> Failure {
        let is_final = matches!(error, OpenError::Refused(_));
        let Failure { exit, sentence: why } = error.into();
        let ended = if is_final { self.denied(end, &why) } else { self.gave_up(end, &why) };
        Failure { exit, ..ended }
    }

    /// The end of the program before the time is over, because of an answer that is final.
    fn denied(&self, end: &Failure, why: &str) -> Failure {
        let sentence = format!("{}; not opened again (--reattach {}): {why}", end.sentence, self.time);
        Failure { exit: end.exit, sentence }
    }
}

/// Whole periods between the turns of two units, without the turns of these units.
pub(super) fn turns_between(last: Instant, next: Instant, period: Span) -> u64 {
    (next.since(last) + period.div_down(2)).count_down(period).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_time_of_a_change_is_spent_once() {
        let at = |ms| Instant::from_nanos(0) + Span::from_millis(ms);
        let mut change = Change::within(Span::from_millis(100));
        let ended = Failure::failed("the channel ended");
        change.begin(&ended, at(1_000));
        assert_eq!(change.left(at(1_040)), Span::from_millis(60));
        change.begin(&ended, at(1_060));
        assert_eq!(change.left(at(1_060)), Span::from_millis(40), "no unit has crossed since");
        assert_eq!(change.left(at(1_200)), Span::ZERO);
        change.over();
        change.begin(&ended, at(2_000));
        assert_eq!(change.left(at(2_000)), Span::from_millis(100));
    }

    /// It read "not open again within 30 s" after a millisecond.
    #[test]
    fn a_final_answer_does_not_speak_of_the_time_that_is_over() {
        let (change, end) = (Change::within(Span::from_millis(30_000)), Failure::failed("the node is gone"));
        let denied = change.denied(&end, "refused: no room").sentence;
        assert_eq!(denied, "the node is gone; not opened again (--reattach 30 s): refused: no room");
        let gave_up = change.gave_up(&end, "no node").sentence;
        assert!(gave_up.contains("not open again within 30 s (--reattach): no node"), "{gave_up}");
    }

    #[test]
    fn a_refusal_of_the_next_node_has_the_exit_code_of_a_refusal() {
        let (change, end) = (Change::within(Span::from_millis(25_000)), Failure::failed("the node is gone"));
        let refusal = rota::RefusalInfo { sentence: "no room".into(), ..rota::RefusalInfo::default() };
        let refused = change.failed(&end, OpenError::Refused(Box::new(refusal)));
        assert_eq!((refused.exit, refused.sentence.contains("not opened again")), (Exit::Refused, true));
        let nobody = change.failed(&end, OpenError::NoListener("nobody listens".into()));
        assert_eq!((nobody.exit, nobody.sentence.contains("not open again within")), (Exit::NotThere, true));
    }

    /// After a kill of a node `send` ended with 5, as nobody listened yet, and `recv` with 4.
    #[test]
    fn the_death_of_a_node_decides_the_code_of_a_change_that_fails() {
        let mut change = Change::within(Span::from_millis(25_000));
        let killed = Failure { exit: Exit::Broken, sentence: "the node is gone".into() };
        let stopped = Failure::failed("the node was stopped");
        let nobody = |change: &Change| {
            let error = OpenError::NoListener("nobody listens".into());
            change.judged(change.failed(&stopped, error)).exit
        };
        change.begin(&stopped, Instant::from_nanos(0));
        assert_eq!(nobody(&change), Exit::NotThere, "no promise was broken");
        change.begin(&killed, Instant::from_nanos(1));
        change.begin(&stopped, Instant::from_nanos(2));
        assert_eq!(nobody(&change), Exit::Broken);
        let again = change.gave_up(&stopped, "no sender came back");
        assert_eq!(change.judged(again).exit, Exit::Broken, "the end of a second node is no milder one");
        change.over();
        assert_eq!(nobody(&change), Exit::NotThere, "a unit has crossed the new channel");
    }

    #[test]
    fn the_turns_that_passed_are_counted_to_the_nearest_one() {
        let at = |us| Instant::from_nanos(0) + Span::from_micros(us);
        let period = Span::from_millis(10);
        for (next, turns) in [(10_000, 0), (14_000, 0), (16_000, 1), (20_000, 1), (1_003_000, 99), (0, 0)] {
            assert_eq!(turns_between(at(0), at(next), period), turns, "{next}");
        }
    }
}
