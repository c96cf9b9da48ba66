//! Channels whose program takes their frames itself, from a queue that the kernel fills: no frame of them
//! comes by here. The program's counts take the place of those made of frames.
//!
//! A program that lies about its counts misleads the sender of its own channel, as one that throws units away
//! does, and nobody else: no number of it goes into a count of a port or of the node.

use super::incoming::Incoming;
use super::{ChannelEvent, Channels};
use crate::io::{ChannelId, ReaderCounts};
use crate::segment::Segment;
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

/// How long a close waits for the program to read what had come before. Its sender repeats it meanwhile.
const READS_ON: Span = Span::from_millis(300);

/// The state of such a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Apart {
    counts: ReaderCounts,
    /// The first close of its sender.
    closing: Option<Instant>,
}

impl Channels {
    /// The station that a channel which is received here comes from, and its label.
    pub(crate) fn incoming_label(&self, id: ChannelId) -> Option<(MacAddr, u16)> {
        let channel = self.incoming.iter().find(|channel| channel.id == id)?;
        Some((channel.hop, channel.label))
    }

    /// Frames of a channel have come whose sender's word that it is open has not.
    pub(crate) fn frames_came(&mut self, id: ChannelId) {
        let channel = self.incoming.iter_mut().find(|channel| channel.id == id);
        if let Some(channel) = channel.filter(|channel| channel.accepted && !channel.opened) {
            channel.opened = true;
            let (channel, granted) = (channel.id, channel.granted);
            self.events.push_back(ChannelEvent::IncomingOpened { channel, granted });
        }
    }

    /// The program takes the frames of a channel itself, and counts so far. No count falls.
    pub(crate) fn take_counts(&mut self, id: ChannelId, counts: &ReaderCounts, segment: Segment<'_>) {
        let Some(channel) = self.incoming.iter_mut().find(|channel| channel.id == id) else { return };
        let one_clock = segment.shares_clock(channel.hop);
        let known = channel.apart.get_or_insert_default();
        let counts = counts.sound().not_below(&known.counts);
        if known.counts == counts {
            return;
        }
        let has_come = counts.fragments > known.counts.fragments;
        known.counts = counts;
        channel.meter.take(&counts, one_clock);
        channel.last_number = counts.next.saturating_sub(1);
        if has_come {
            // No end of a doubt: these frames may have come long before it, and waited in the queue.
            channel.newest = Some((channel.last_number, u16::MAX));
        }
    }
}

impl Incoming {
    /// True while the program may still have units to read of so many that its sender states at its end.
    pub(super) fn is_read_on(&mut self, now: Instant, units: u64) -> bool {
        let Some(apart) = &mut self.apart else { return false };
        let since = *apart.closing.get_or_insert(now);
        let has_all = apart.counts.next >= units && apart.counts.missing == 0;
        !has_all && now.since(since) < READS_ON
    }
}

#[cfg(test)]
mod tests {
    use super::super::doubt::TRIES;
    use super::super::tests::{B, Ledger};
    use super::*;
    use crate::segment::MediumEvent;
    use rota_contract::CloseCause;
    use rota_wire::{Signal, Verb};

    /// The node has answered at once, and counted units as lost that the program was about to read.
    #[test]
    fn a_close_waits_for_a_program_that_still_reads() {
        let close = Signal { final_unit: 9, ..Signal::new(Verb::Close, ChannelId(70), 1) };
        let eight = ReaderCounts { units: 8, fragments: 8, next: 8, ..ReaderCounts::default() };
        for reads in [true, false] {
            let mut ledger = Ledger::new();
            let id = ledger.opened_by(B, 70);
            ledger.channels.take_counts(id, &eight, Segment::of(&ledger.port));
            ledger.signals();
            ledger.signal(B, &close);
            assert!(ledger.signals().is_empty() && ledger.channels.received(id).is_some(), "it waits");
            if reads {
                let nine = ReaderCounts { units: 9, fragments: 9, next: 9, ..eight };
                ledger.channels.take_counts(id, &nine, Segment::of(&ledger.port));
            } else {
                ledger.now += READS_ON;
            }
            ledger.signal(B, &close);
            let (_, ack) = ledger.signals().pop().expect("an answer");
            assert_eq!((ack.verb, ack.tally.lost), (Verb::CloseAck, u64::from(!reads)));
            assert_eq!(ledger.channels.received(id), None);
        }
    }

    /// A channel that its sender had forgotten stayed open for ever: its program read what had come before.
    #[test]
    fn frames_that_are_read_late_end_no_doubt() {
        let mut ledger = Ledger::new();
        let id = ledger.opened_by(B, 70);
        ledger.tell(MediumEvent::TakenForDead);
        let mut counts = ReaderCounts::default();
        for _ in 0..=TRIES {
            (counts.fragments, counts.next) = (counts.fragments + 1, counts.next + 1);
            ledger.channels.take_counts(id, &counts, Segment::of(&ledger.port));
            ledger.repeated();
        }
        assert_eq!(ledger.closed(), [(id, CloseCause::WasSilent)]);
    }

    /// It waited for the sender to repeat its word: no frame of the channel comes to the node.
    #[test]
    fn frames_open_a_channel_whose_word_was_lost() {
        let mut ledger = Ledger::new();
        let id = ledger.accepted_from(B, 70);
        let opened = |ledger: &mut Ledger| {
            let events = std::iter::from_fn(|| ledger.channels.next_event());
            events.filter(|event| matches!(event, ChannelEvent::IncomingOpened { .. })).count()
        };
        assert_eq!(opened(&mut ledger), 0);
        ledger.channels.frames_came(id);
        ledger.channels.frames_came(id);
        assert_eq!(opened(&mut ledger), 1);
        assert!(ledger.channels.received(id).is_some());
    }

    #[test]
    fn counts_of_a_program_never_fall_and_never_overflow() {
        let some =
            ReaderCounts { units: 7, lost: 2, fragments: 9, next: 9, missing: 5, ..ReaderCounts::default() };
        let fewer = ReaderCounts { units: 6, lost: 3, missing: 0, ..some };
        let found = fewer.sound().not_below(&some);
        assert_eq!((found.units, found.lost, found.missing), (7, 3, 0));
        let lie = ReaderCounts { units: u64::MAX, incomplete: u64::MAX, next: u64::MAX, ..some };
        assert!(lie.sound().incomplete < 1 << 50 && lie.sound().next < 1 << 50);
    }
}
