//! Senders whose true frames count as replays here, because another holder of the key has spent their frame
//! counters: a frame in a sender's name, with a counter far ahead, that the sender itself did not hear.
//!
//! The receiver asks. Its question has a fresh challenge and the counter to exceed; the sender skips towards
//! it, as far as `Skips` allows, and answers the challenge by an announcement. An answer below the counter
//! known here counts if no frame so far has had its counter (`Leaps`): the receiver goes on from it.
//!
//! # Replays stay refused
//! While the sender alone makes frames in its name, all counters known here when it is asked are below that
//! of its answer, so nothing falls. Where another holder of the key makes frames or answers, a counter can
//! fall, but no frame counts twice.
//!
//! # The limits of the mend
//! A stranger's old frames can provoke questions, and a holder of the key can provoke answers and skips. All
//! have budgets; questions that were played again have one of their own. At `SKIP_MAX` in ten seconds the
//! 48-bit counter lasts for 178 years; at its end the station goes on as a new incarnation.

use super::outbox::Pending;
use super::{Mode, Rether};
use crate::door::FrameVerdict;
use crate::leaps::Leaps;
use crate::members::{Announced, Behind, Member, Members};
use core::cmp::Ordering;
use rota_units::{Instant, Span};
use rota_wire::{Announce, FrameView, JoinAnswer, Kind, LinkHeader, MacAddr, Verdict};

/// So many old frames in a row, each newer than the one before, are a sender that is behind. Copies of the
/// wire and single replays are followed by a newer frame.
const RISING: u8 = 2;
/// One sender is asked once in so long.
const ASK_EVERY: Span = Span::from_millis(1_000);
/// So often are questions of one station answered that have been heard before.
const ANSWER_AGAIN: Span = Span::from_millis(1_000);

/// True for a challenge that stations make. 0 answers nothing; the highest values in the place of an
/// answer are signs of a contested address.
pub(super) const fn is_challenge(value: u64) -> bool {
    value != 0 && value >> 63 == 0
}

/// True for an answer to a joiner, or a question, that stations make.
pub(super) const fn is_well_asked(answer: &JoinAnswer) -> bool {
    !matches!(answer.verdict, Verdict::Prove | Verdict::Behind) || is_challenge(answer.challenge)
}

impl Behind {
    /// A frame with this counter was refused. True when its sender is to be asked.
    fn refused(&mut self, now: Instant, seq: u64) -> bool {
        self.rising = match seq.cmp(&self.last) {
            Ordering::Greater => self.rising.saturating_add(1),
            Ordering::Equal => self.rising,
            // Another line begins: a frame far ahead was refused before, or an older one was played again.
            Ordering::Less => 1,
        };
        self.last = seq;
        self.rising >= RISING && now >= self.next
    }
}

impl Member {
    /// The frame counter of this boot and its leaps. `None`: no frame of that boot is refused as a replay.
    fn counter_of(&mut self, incarnation: u32) -> Option<(u64, &mut Leaps)> {
        if incarnation == self.incarnation {
            return Some((self.frame_seq, &mut self.leaps));
        }
        let before = &mut self.before;
        (incarnation == before.incarnation).then_some((before.seq, &mut before.leaps))
    }
}

impl Members {
    /// The answer to the open challenge, if it is one: this boot's counter stands where its frame says.
    fn answered(&mut self, now: Instant, mac: MacAddr, of: (u32, u64), challenge: u64) -> Option<Announced> {
        let member = self.by_mac_mut(mac).filter(|member| member.behind.challenge == challenge)?;
        let (incarnation, seq) = of;
        let (last, leaps) = member.counter_of(incarnation).filter(|_| challenge != 0)?;
        // Above the last one it was refused as spent, or as a leap, which an answer makes no better.
        if seq > last || !leaps.fall(last, seq) {
            return None;
        }
        member.behind.reset();
        if incarnation == member.incarnation {
            member.frame_seq = seq;
            (member.heard, member.again) = (now, true);
            return Some(Announced::Known);
        }
        member.before.seq = seq.saturating_sub(1);
        Some(Announced::New)
    }
}

impl Rether {
    /// A challenge: neither 0, which answers nothing, nor a sign of a contested address.
    pub(super) fn challenge(&mut self) -> u64 {
        self.rng.next_u64() >> 1 | 1
    }

    /// A proven frame under the segment key counts as a replay. `Some`: it counts after all.
    pub(super) fn on_replay(&mut self, now: Instant, view: &FrameView<'_>) -> Option<Announced> {
        let (header, mac) = (view.header(), view.source_mac());
        match header.kind {
            // Each of two may be behind at the other. An old question costs an answer, and changes nothing.
            Kind::JoinAnswer => {
                let asked = JoinAnswer::parse(view.body()).ok().filter(|it| it.verdict == Verdict::Behind);
                if let Some(asked) = asked {
                    if is_well_asked(&asked) {
                        self.on_asked_behind(now, Announced::Replay, mac, header, &asked);
                    } else {
                        self.judge(FrameVerdict::Malformed);
                    }
                    // Its sender is behind here, or somebody plays it again.
                }
            }
            Kind::Announce => {
                let said = Announce::parse(view.body()).ok()?;
                let of = (header.incarnation, header.seq);
                if let Some(heard) = self.members.answered(now, mac, of, said.answers) {
                    return Some(heard);
                }
            }
            _ => {}
        }
        self.on_refused(now, mac, header.incarnation, header.seq);
        None
    }

    /// A proven frame was refused for its counter: perhaps its sender is behind.
    pub(super) fn on_refused(&mut self, now: Instant, mac: MacAddr, incarnation: u32, seq: u64) {
        let speaks = self.may_speak();
        let Some(member) = self.members.by_mac_mut(mac) else { return };
        let Some((last, leaps)) = member.counter_of(incarnation) else { return };
        leaps.refuse(now, seq);
        let known = leaps.goal(last, seq);
        if !member.behind.refused(now, seq) || !speaks || !self.may_ask(now) {
            return;
        }
        let challenge = self.challenge();
        let Some(member) = self.members.by_mac_mut(mac) else { return };
        (member.behind.challenge, member.behind.next) = (challenge, now + ASK_EVERY);
        self.counters.senders_behind += 1;
        let answer = JoinAnswer::new(known, challenge, Verdict::Behind);
        self.out.outbox.push_back(Pending::JoinAnswer { to: mac, answer });
    }

    /// This station's frames count as replays at that one, which names the counter to exceed in the place of
    /// the nonce.
    pub(super) fn on_asked_behind(
        &mut self,
        now: Instant,
        heard: Announced,
        mac: MacAddr,
        header: &LinkHeader,
        asked: &JoinAnswer,
    ) {
        if !self.may_speak() {
            return;
        }
        let boot = |member: &&mut Member| member.incarnation == header.incarnation;
        let asker = self.members.by_mac_mut(mac).filter(boot).map(|member| member.behind);
        let (seq, is_known) = (header.seq, asker.is_some());
        // Of an asker that is behind here, a question above its answered ones is no replay.
        let is_fresh = asker.is_some_and(|asker| heard == Announced::Known || seq > asker.asked);
        let taken = match asker {
            Some(_) if is_fresh => self.may_prove(now),
            Some(asker) => self.may_prove_again(now, now >= asker.again),
            None => self.may_prove_to_stranger(now),
        };
        if !taken {
            return;
        }
        if let Some(member) = self.members.by_mac_mut(mac).filter(|_| is_known) {
            member.behind.asked = member.behind.asked.max(seq);
            if !is_fresh {
                member.behind.again = now + ANSWER_AGAIN;
            }
        }
        if is_known || self.is_joiner(mac, header.incarnation) {
            self.own.frame_seq +=
                self.others.budgets.skips.take(now, asked.nonce.saturating_sub(self.own.frame_seq));
        }
        self.out.outbox.push_back(Pending::Proof { to: mac, challenge: asked.challenge });
    }

    /// Between the modes a station is silent.
    fn may_speak(&self) -> bool {
        match &self.mode {
            Mode::Joining(joining) => !joining.ring || joining.card_empty,
            Mode::Plain | Mode::Ring(_) => !self.tells.leaving,
            Mode::Initiating(_) | Mode::Yielding(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_contract::NodeId;
    use rota_wire::bodies::StationState;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);

    fn members(seq: u64, challenge: u64) -> Members {
        let mut members = Members::new();
        let said = Announce::new(NodeId::UNKNOWN, 1, 0, StationState::Plain, "");
        members.announce(Instant::ZERO, 3, MAC, 7, &said, seq);
        members.by_mac_mut(MAC).expect("known").behind.challenge = challenge;
        members
    }

    #[test]
    fn the_open_challenge_counts_once_and_no_other() {
        let mut members = members(1_000_000, 77);
        assert_eq!(members.answered(Instant::ZERO, MAC, (7, 20), 78), None, "another challenge");
        assert_eq!(members.answered(Instant::ZERO, MAC, (9, 20), 77), None, "another boot");
        assert_eq!(members.answered(Instant::ZERO, MAC, (7, 20), 77), Some(Announced::Known));
        assert_eq!(members.heard(Instant::ZERO, MAC, 7, 20), Announced::Replay, "the answer's own counter");
        assert_eq!(members.answered(Instant::ZERO, MAC, (7, 20), 77), None, "the answer played again");
        assert_eq!(members.answered(Instant::ZERO, MAC, (7, 20), 0), None, "0 answers nothing");
        assert_eq!(members.heard(Instant::ZERO, MAC, 7, 21), Announced::Known);
    }

    /// An answer that comes late, behind newer frames of its sender, would make those new again.
    #[test]
    fn a_newer_frame_closes_the_challenge() {
        let mut members = members(10, 77);
        assert_eq!(members.heard(Instant::ZERO, MAC, 7, 12), Announced::Known);
        assert_eq!(members.answered(Instant::ZERO, MAC, (7, 11), 77), None);
        assert_eq!(members.heard(Instant::ZERO, MAC, 7, 12), Announced::Replay);
    }

    #[test]
    fn only_frames_that_rise_without_a_newer_one_provoke_a_question() {
        let (now, mut behind) = (Instant::ZERO, Behind::default());
        assert!(![5, 5, 4, 4].into_iter().any(|seq| behind.refused(now, seq)), "copies of one frame");
        behind.reset();
        assert!(!behind.refused(now, u64::MAX), "a leap");
        assert!(!behind.refused(now, 6));
        assert!(behind.refused(now, 7));
        behind.next = now + ASK_EVERY;
        assert!(!behind.refused(now, 8), "asked a moment ago");
        assert!(behind.refused(behind.next, 8));
    }

    /// An insider that let two boots of a station take turns put its counter up without a rate.
    #[test]
    fn leaps_of_boots_that_take_turns_have_the_same_rate() {
        let mut members = members(1_000, 0);
        let said = Announce::new(NodeId::UNKNOWN, 1, 0, StationState::Plain, "");
        let (mut counter, mut refused) = (1_000, 0);
        for step in 0..6_500 {
            let now = Instant::ZERO + Span::from_millis(1_000 + step * 10);
            let leaps = step % 2 == 1;
            let (boot, seq) = if leaps { (7, counter + 1_000_000) } else { (9, step + 1) };
            match members.heard(now, MAC, boot, seq) {
                Announced::New => members.announce(now, 3, MAC, boot, &said, seq),
                Announced::Known => {}
                Announced::Replay => refused += u64::from(leaps),
            }
            let known = members.by_mac_mut(MAC).expect("known");
            counter = if known.incarnation == 7 { known.frame_seq } else { counter };
        }
        assert!(counter < 8_500_000 && refused > 1_000, "{counter}, {refused} refused");
    }
}
