//! Questions if frames for a receiver's own address arrive, while its units go to its group address
//! (decision 014).
//!
//! ```text
//! sender                                     receiver
//!   │── unit ──► (goes astray)                  │
//!   │◄── announcement: the group address ───────┤  the next unit shows that one is missing
//!   │── units to the group address ────────────►│
//!   │── Reach 1 ──► (goes astray)               │  to its own address
//!   │── Reach 1, again ────────────────────────►│  to the group address, after 200 ms: it went astray
//!   │◄── Reached 1, again ──────────────────────┤  five seconds more; the fourth is the sign
//! ```
//!
//! While units go to the group address, none of them shows whether a stranger goes on. So the sender of an
//! open channel asks. If the questions arrive, the units go to the own address again after five seconds: on
//! a wire that merely loses frames, a lost unit costs the other ports those seconds. Questions and answers
//! are ordinary traffic under the token. One sender has one question to a station under way, for all its
//! channels.

use super::{Channels, Incoming, Outgoing, SIGNAL_INTERVAL, Sending, Want};
use crate::segment::{Segment, Wants};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Signal, Verb};

/// The next question follows so soon where a sign has been told already: it says only if that lasts.
const KNOWN_INTERVAL: Span = Span::from_millis(1_000);
/// In a question's code, and in that of its answer: it goes to the group address.
const AGAIN: u8 = 1;

/// The questions of one channel's sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    number: u64,
    asked: Asked,
    /// When it goes on; none while nothing is asked.
    pub(super) due: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asked {
    /// The newest question is answered, or nobody will answer it.
    #[default]
    Nothing,
    Once,
    Again,
}

impl Channels {
    /// When the next question leaves.
    pub(super) fn reach_deadline(&self) -> Instant {
        let due = self.outgoing.iter().filter_map(|channel| channel.reach.due);
        due.min().unwrap_or(Instant::FAR)
    }

    /// A receiver says that frames for its own address go astray, or may do so: the sender asks from now on.
    pub(super) fn on_doubted(&mut self, now: Instant, hop: MacAddr, segment: Segment<'_>) {
        self.hand_on_asking(hop, Some(now + interval(hop, segment)));
    }

    /// Asks the receivers whose units go to their group addresses.
    pub(super) fn ask_reach(&mut self, now: Instant, segment: Segment<'_>) {
        for at in 0..self.outgoing.len() {
            let channel = &mut self.outgoing[at];
            let Some(due) = channel.reach.due.filter(|due| now >= *due) else { continue };
            if channel.is_open() {
                channel.go_on_asking(now, segment, &mut self.wants);
            } else {
                let hop = channel.hop;
                channel.reach = Reach::default();
                self.hand_on_asking(hop, Some(due));
            }
        }
    }

    /// The first open channel to that station asks at that time, if none to it asks already.
    pub(super) fn hand_on_asking(&mut self, hop: MacAddr, due: Option<Instant>) {
        let mut to_it = self.outgoing.iter_mut().filter(|channel| channel.hop == hop && channel.is_open());
        let first = to_it.next().filter(|first| first.reach.due.is_none());
        if let Some(channel) = first
            && to_it.all(|other| other.reach.due.is_none())
        {
            channel.reach.due = due;
        }
    }

    /// A sender asks if its frames arrive.
    pub(super) fn on_reach(&mut self, from: MacAddr, signal: &Signal) {
        let known = self.incoming.iter_mut().find(|c| c.hop == from && c.remote == signal.channel);
        let Some(Incoming { reached, .. }) = known else { return };
        if signal.code != AGAIN {
            self.wants.push(Want::NoteReached);
        } else if *reached != signal.final_unit {
            // Once for each question.
            self.wants.push(Want::NoteReachedAgain);
        }
        *reached = signal.final_unit;
        self.wants.push(Want::Signal { to: from, signal: Signal { verb: Verb::Reached, ..*signal } });
    }

    /// A receiver answers.
    pub(super) fn on_reached(&mut self, now: Instant, from: MacAddr, signal: &Signal, segment: Segment<'_>) {
        let Some(channel) = self.answered(from, signal) else { return };
        let is_again = signal.code == AGAIN;
        let reach = &mut channel.reach;
        let is_answer = match reach.asked {
            Asked::Nothing => false,
            Asked::Once => !is_again,
            Asked::Again => true,
        };
        if is_answer && reach.number == signal.final_unit {
            (reach.asked, reach.due) = (Asked::Nothing, Some(now + interval(from, segment)));
            if is_again {
                self.wants.push(Want::Doubt { mac: from });
            }
        }
    }
}

/// The time between two questions.
fn interval(to: MacAddr, segment: Segment<'_>) -> Span {
    if segment.is_astray(to) { KNOWN_INTERVAL } else { SIGNAL_INTERVAL }
}

impl Outgoing {
    fn is_open(&self) -> bool {
        matches!(self.state, Sending::Open { .. })
    }

    /// The next question, or the last one again.
    fn go_on_asking(&mut self, now: Instant, segment: Segment<'_>, wants: &mut Wants<Want>) {
        let (to, reach) = (self.hop, &mut self.reach);
        let code = match reach.asked {
            Asked::Nothing if segment.is_doubted(now, to) => {
                (reach.number, reach.asked) = (reach.number + 1, Asked::Once);
                0
            }
            Asked::Once => {
                reach.asked = Asked::Again;
                AGAIN
            }
            // It is not reached at all, which other signs tell.
            Asked::Again => {
                (reach.asked, reach.due) = (Asked::Nothing, Some(now + interval(to, segment)));
                return;
            }
            Asked::Nothing => {
                reach.due = None;
                return;
            }
        };
        reach.due = Some(now + SIGNAL_INTERVAL);
        let question = Signal::new(Verb::Reach, self.id, self.label);
        let signal = Signal { code, final_unit: self.reach.number, ..question };
        wants.push(Want::Signal { to, signal });
    }
}

#[cfg(test)]
mod tests {
    use super::super::outgoing::Repeats;
    use super::super::tests::{B, Ledger};
    use super::*;
    use crate::io::ChannelId;

    const GROUP: MacAddr = B.own_group();

    fn questions(ledger: &mut Ledger) -> Vec<(MacAddr, u8, u64)> {
        let sent = ledger.signals().into_iter().filter(|(_, signal)| signal.verb == Verb::Reach);
        sent.map(|(to, signal)| (to, signal.code, signal.final_unit)).collect()
    }

    fn wait(ledger: &mut Ledger, span: Span) -> Vec<(MacAddr, u8, u64)> {
        ledger.now += span;
        ledger.tick();
        questions(ledger)
    }

    fn answer(ledger: &mut Ledger, code: u8, final_unit: u64) {
        let id = ledger.channels.outgoing[0].id;
        let signal = Signal { code, final_unit, ..Signal::new(Verb::Reached, id, 1) };
        ledger.signal(B, &signal);
    }

    /// Two open channels to a station that doubts its own address.
    fn doubted() -> Ledger {
        let mut ledger = Ledger::new();
        for _ in 0..2 {
            ledger.open(B);
        }
        for channel in &mut ledger.channels.outgoing {
            channel.state = Sending::Open { telling: None };
        }
        ledger.port.medium_mut().rether_mut().expect("RETHER").doubt(ledger.now, B);
        ledger.channels.on_doubted(ledger.now, B, Segment::of(&ledger.port));
        ledger
    }

    #[test]
    fn a_sender_asks_while_its_receiver_doubts_and_one_astray_prolongs_the_doubt() {
        let mut ledger = doubted();
        let begun = ledger.now;
        ledger.channels.on_doubted(begun, B, Segment::of(&ledger.port));
        assert_eq!(questions(&mut ledger), []);
        // One question for both channels: to the own address, then to the group address.
        assert_eq!(wait(&mut ledger, SIGNAL_INTERVAL), [(B, 0, 1)]);
        assert_eq!(wait(&mut ledger, SIGNAL_INTERVAL), [(GROUP, 1, 1)]);
        answer(&mut ledger, 1, 1);
        assert_eq!(wait(&mut ledger, SIGNAL_INTERVAL), [(B, 0, 2)]);
        answer(&mut ledger, 1, 2);
        answer(&mut ledger, 0, 1);
        assert_eq!(wait(&mut ledger, SIGNAL_INTERVAL), [(GROUP, 1, 2)], "answers to other questions");
        answer(&mut ledger, 0, 2);
        let doubts = |ledger: &Ledger, ms| ledger.port.medium().is_doubted(begun + Span::from_millis(ms), B);
        assert!(doubts(&ledger, 5_399) && !doubts(&ledger, 5_400), "five seconds behind the only one astray");
        for number in 3..20 {
            assert_eq!(wait(&mut ledger, SIGNAL_INTERVAL), [(B, 0, number)]);
            answer(&mut ledger, 0, number);
        }
        assert_eq!(wait(&mut ledger, Span::from_millis(2_000)), [], "the doubt is over");
        assert_eq!(ledger.channels.reach_deadline(), Instant::FAR);
    }

    /// The channel that asks is the first; when it ended, nobody asked any more.
    #[test]
    fn another_channel_goes_on_asking_when_the_one_that_asked_has_ended() {
        let mut ledger = doubted();
        ledger.channels.outgoing[0].state = Sending::Closing(Repeats::from(ledger.now));
        assert_eq!(wait(&mut ledger, SIGNAL_INTERVAL), [(B, 0, 1)], "the second one");
        ledger.open(B);
        ledger.channels.outgoing[2].state = Sending::Open { telling: None };
        let asker = ledger.channels.outgoing[1].id;
        ledger.channels.reap(|channel| channel.id == asker);
        assert_eq!(wait(&mut ledger, SIGNAL_INTERVAL), [(B, 0, 1)], "the third one");
    }

    #[test]
    fn a_receiver_counts_the_questions_that_came_again_only() {
        let mut ledger = Ledger::new();
        ledger.opened_by(B, 70);
        let hear = |ledger: &mut Ledger, code, final_unit| {
            let question = Signal { code, final_unit, ..Signal::new(Verb::Reach, ChannelId(70), 1) };
            ledger.signal(B, &question);
            ledger.port.medium().is_astray(ledger.port.medium().mac())
        };
        for number in 1..9 {
            assert!(!hear(&mut ledger, 0, number) && !hear(&mut ledger, AGAIN, number), "both came");
        }
        for number in 9..12 {
            assert!(!hear(&mut ledger, AGAIN, number) && !hear(&mut ledger, AGAIN, number));
        }
        // Questions that seldom go astray are lost frames.
        (12..17).for_each(|number| assert!(!hear(&mut ledger, 0, number)));
        for number in 17..20 {
            assert!(!hear(&mut ledger, AGAIN, number));
        }
        assert!(hear(&mut ledger, AGAIN, 20));
        let unknown = Signal { final_unit: 1, ..Signal::new(Verb::Reach, ChannelId(99), 1) };
        ledger.sent();
        ledger.signal(B, &unknown);
        assert_eq!(ledger.sent(), [], "no channel of that sender");
    }
}
