//! The board of a channel: what the node tells the client besides data. One writer (the node), any number
//! of readers.

use std::mem::offset_of;
use std::sync::Arc;

use rota_contract::{CloseCause, Tally};
use rota_units::{Instant, Span};

use crate::layout::BoardHeader;
use crate::message::MessageProgress;
use crate::raw::{ReadPages, Waited, WritePages, futex_value, futex_wait, futex_wake};

const STATE: usize = offset_of!(BoardHeader, state);
const CAUSE: usize = offset_of!(BoardHeader, cause);
const FINAL_UNITS: usize = offset_of!(BoardHeader, final_units);
const UNSTATED: usize = offset_of!(BoardHeader, unstated);
pub(crate) const BOUND: usize = offset_of!(BoardHeader, bound_ns);
const UNSENT: usize = offset_of!(BoardHeader, unsent);
const EVENT: usize = offset_of!(BoardHeader, event);
const RELEASED: usize = offset_of!(BoardHeader, tx_released);
const UNITS_SENT: usize = offset_of!(BoardHeader, units_sent);
const SLOT_SEQUENCE: usize = offset_of!(BoardHeader, slot_sequence);
const SLOT_NUMBER: usize = offset_of!(BoardHeader, slot_number);
const SLOT_AT: usize = offset_of!(BoardHeader, slot_at);
const TALLY: usize = offset_of!(BoardHeader, tally);
const COMPLETIONS: usize = offset_of!(BoardHeader, completions);
const CIRCUIT: usize = offset_of!(BoardHeader, circuit);
const CIRCUIT_END: usize = offset_of!(BoardHeader, circuit_end);
const COUNTERS: usize = offset_of!(BoardHeader, counters);

/// Where a channel is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelState {
    /// Admission has not answered yet, or the client has not mapped its memory.
    Opening,
    /// Units flow.
    Open,
    /// No new unit is taken; what is in the ring still leaves.
    Closing,
    /// Over. The cause says why, and whether that is an error.
    Closed(CloseCause),
}

/// Counters on each channel's board, written by the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelCounter {
    /// Fragments sent or received.
    Fragments,
    /// Octets of payload sent or received.
    Octets,
    /// Slots that came while the ring was empty.
    SlotsEmpty,
    /// Units that were not in the ring at their slot but came before the next.
    UnitsLate,
    /// Units that needed more than one slot.
    UnitsSplit,
    /// Fragments dropped because their tag, number or place was wrong.
    FragmentsBad,
    /// Fragments that arrived twice.
    FragmentsDouble,
    /// Times the client was woken.
    Wakes,
}

impl ChannelCounter {
    /// All counters with their names, in the order of their place on the board.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Fragments, "fragments"),
        (Self::Octets, "octets"),
        (Self::SlotsEmpty, "slots_empty"),
        (Self::UnitsLate, "units_late"),
        (Self::UnitsSplit, "units_split"),
        (Self::FragmentsBad, "fragments_bad"),
        (Self::FragmentsDouble, "fragments_double"),
        (Self::Wakes, "wakes"),
    ];

    fn place(self) -> usize {
        COUNTERS + 8 * self as usize
    }
}

const _: () = assert!(ChannelCounter::ALL.len() <= crate::layout::CHANNEL_COUNTERS);

fn completion_place(number: u64) -> usize {
    COMPLETIONS + 8 * (number % crate::layout::COMPLETIONS as u64) as usize
}

/// The newest slot of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotMark {
    /// How many slots the channel has had, this one included.
    pub number: u64,
    /// When this one began.
    pub at: Instant,
}

/// The node's hand on a channel's board. Clones write the same board; each word must have one writing
/// thread, except for the counters.
#[derive(Clone)]
pub struct Board {
    pages: Arc<WritePages>,
}

impl Board {
    pub(crate) fn new(pages: Arc<WritePages>) -> Self {
        Self { pages }
    }

    /// Moves the channel to another state. A closed channel stays closed, with its first cause.
    /// `final_units`, where known, is how many units the sender had handed over or left out in all.
    pub fn set_state(&self, state: ChannelState, final_units: Option<u64>) {
        if matches!(self.view().state(), ChannelState::Closed(_)) {
            return;
        }
        if let ChannelState::Closed(cause) = state {
            self.pages.store(CAUSE, u64::from(cause.code()));
            self.pages.store(FINAL_UNITS, final_units.map_or(0, |units| units.saturating_add(1)));
        }
        let code = match state {
            ChannelState::Opening => 0,
            ChannelState::Open => 1,
            ChannelState::Closing => 2,
            ChannelState::Closed(_) => 3,
        };
        self.pages.store_release(STATE, code);
        self.notify();
    }

    /// Closes the channel. Where its units are not known, the sender may state them later, or will not.
    pub fn close(&self, cause: rota_contract::CloseCause, final_units: Option<u64>, awaits: bool) {
        let is_first = !matches!(self.view().state(), ChannelState::Closed(_));
        self.set_state(ChannelState::Closed(cause), final_units);
        if is_first && final_units.is_none() && !awaits {
            self.pages.store_release(UNSTATED, 1);
            self.notify();
        }
    }

    /// From now on units have this bound, for a program that takes its frames itself.
    pub fn set_bound(&self, bound: Span) {
        self.pages.store(BOUND, bound.as_nanos());
    }

    /// Says how many of the final units never left, before [`Board::set_state`] closes the channel.
    pub fn set_unsent(&self, units: u64) {
        self.pages.store(UNSENT, units);
    }

    /// The sender of a channel that has ended without its statement has stated these units afterwards.
    pub fn state_afterwards(&self, units: u64, unsent: u64) {
        if matches!(self.view().state(), ChannelState::Closed(_)) && self.view().0.load(FINAL_UNITS) == 0 {
            self.pages.store(UNSENT, unsent);
            self.pages.store_release(FINAL_UNITS, units.saturating_add(1));
            self.notify();
        }
    }

    /// Says that `units` units have left completely. Call [`Board::notify`] after the last change of a turn.
    pub fn set_units_sent(&self, units: u64) {
        self.pages.store_release(UNITS_SENT, units);
    }

    /// Publishes the newest slot; its number must have grown, the first is 1. Call [`Board::notify`] after
    /// the last change of a turn.
    pub fn set_slot(&self, mark: SlotMark) {
        self.pages.store(SLOT_SEQUENCE, mark.number.wrapping_mul(2).wrapping_sub(1));
        self.pages.write_barrier();
        self.pages.store(SLOT_NUMBER, mark.number);
        self.pages.store(SLOT_AT, mark.at.as_nanos());
        self.pages.store_release(SLOT_SEQUENCE, mark.number.wrapping_mul(2));
    }

    /// Writes the counts. Each word is written by itself: a reader may see some older than others.
    pub fn set_tally(&self, tally: &Tally) {
        let Tally { units, late, lost, incomplete, latest_by_ns, unread } = *tally;
        let words = [units, late, lost, incomplete, latest_by_ns, unread];
        for (place, word) in words.into_iter().enumerate() {
            self.pages.store(TALLY + 8 * place, word);
        }
    }

    /// The counts, as the node itself wrote them.
    pub fn tally(&self) -> Tally {
        self.view().tally()
    }

    /// Units of which the last frame has left.
    pub fn units_sent(&self) -> u64 {
        self.pages.read().load(UNITS_SENT)
    }

    /// Adds to one of the channel's counters.
    pub fn count(&self, counter: ChannelCounter, amount: u64) {
        self.pages.add(counter.place(), amount);
    }

    /// Wakes the client if it sleeps, two threads of it at most; never blocks. Rings and setters other than
    /// the state do not wake by themselves, so that a turn with many frames costs one wake.
    pub fn notify(&self) {
        self.pages.bump(EVENT);
        futex_wake(&self.pages, EVENT);
    }

    /// The first half of [`Board::notify`]: nobody falls asleep on what was there before. The client's word
    /// of its sleep may be read after it.
    pub fn tell(&self) {
        self.pages.bump(EVENT);
        self.pages.full_barrier();
    }

    /// The second half: wakes the client; never blocks.
    pub fn wake(&self) {
        futex_wake(&self.pages, EVENT);
    }

    /// Says what became of a socket's message. Call [`Board::notify`] after the last change of a turn.
    pub fn set_completion(&self, number: u64, progress: MessageProgress) {
        self.pages.store_release(completion_place(number), progress.word(number));
    }

    pub(crate) fn set_circuit_words(&self, counts: [u64; 6], end: u64) {
        for (place, word) in counts.into_iter().enumerate() {
            self.pages.store(CIRCUIT + 8 * place, word);
        }
        self.pages.store_release(CIRCUIT_END, end);
    }

    pub(crate) fn set_released(&self, units: u64) {
        self.pages.store_release(RELEASED, units);
    }

    fn view(&self) -> BoardRead<'_> {
        BoardRead(self.pages.read())
    }
}

/// The client's sight of a channel's board.
#[derive(Clone)]
pub struct BoardView {
    pages: Arc<ReadPages>,
}

/// What the board's event word was when it was looked at; see [`BoardView::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSeen(u32);

impl BoardView {
    pub(crate) fn new(pages: Arc<ReadPages>) -> Self {
        Self { pages }
    }

    /// Where the channel is in its life.
    pub fn state(&self) -> ChannelState {
        BoardRead(&self.pages).state()
    }

    /// How many units the sender had sent in all, once the channel is closed and the node knows.
    pub fn final_units(&self) -> Option<u64> {
        match self.state() {
            ChannelState::Closed(_) => self.pages.load_acquire(FINAL_UNITS).checked_sub(1),
            _ => None,
        }
    }

    /// True if [`BoardView::final_units`] will not change any more.
    pub fn is_final(&self) -> bool {
        self.final_units().is_some() || self.pages.load_acquire(UNSTATED) != 0
    }

    /// How many of [`BoardView::final_units`] waited at the end and never left; 0 before it.
    pub fn unsent(&self) -> u64 {
        self.final_units().map_or(0, |units| self.pages.load(UNSENT).min(units))
    }

    /// The counts, as the receiver's node counted them.
    pub fn tally(&self) -> Tally {
        BoardRead(&self.pages).tally()
    }

    /// Units of which the last frame has left the station.
    pub fn units_sent(&self) -> u64 {
        self.pages.load_acquire(UNITS_SENT)
    }

    /// Units that the node has taken out of the ring.
    pub fn units_released(&self) -> u64 {
        self.pages.load_acquire(RELEASED)
    }

    /// The newest slot, or `None` before the first.
    pub fn slot(&self) -> Option<SlotMark> {
        // Bounded: a writer that died inside its write must not hold a reader for ever.
        for _ in 0..64 {
            let before = self.pages.load_acquire(SLOT_SEQUENCE);
            if before == 0 {
                return None;
            }
            let number = self.pages.load(SLOT_NUMBER);
            let at = Instant::from_nanos(self.pages.load(SLOT_AT));
            self.pages.read_barrier();
            if before.is_multiple_of(2) && self.pages.load(SLOT_SEQUENCE) == before {
                return Some(SlotMark { number, at });
            }
            std::hint::spin_loop();
        }
        None
    }

    /// What became of a socket's message, as long as none of [`crate::layout::COMPLETIONS`] later has.
    pub fn completion(&self, number: u64) -> MessageProgress {
        MessageProgress::from_word(number, self.pages.load_acquire(completion_place(number)))
    }

    /// One of the channel's counters.
    pub fn counter(&self, counter: ChannelCounter) -> u64 {
        self.pages.load(counter.place())
    }

    pub(crate) fn circuit_words(&self) -> (u64, [u64; 6]) {
        let end = self.pages.load_acquire(CIRCUIT_END);
        (end, std::array::from_fn(|place| self.pages.load(CIRCUIT + 8 * place)))
    }

    /// To be taken *before* looking for what one would wait for.
    pub fn event(&self) -> EventSeen {
        EventSeen(futex_value(&self.pages, EVENT))
    }

    /// Sleeps until the board has changed since `seen`, at most for `timeout`. A dead node never wakes
    /// anybody: use slices of [`crate::max_slice`] and look at the control socket between them.
    pub fn wait(&self, seen: EventSeen, timeout: Span) -> Waited {
        futex_wait(&self.pages, EVENT, seen.0, timeout)
    }
}

struct BoardRead<'a>(&'a ReadPages);

impl BoardRead<'_> {
    fn tally(&self) -> Tally {
        let [units, late, lost, incomplete, latest_by_ns, unread] =
            std::array::from_fn(|place| self.0.load(TALLY + 8 * place));
        Tally { units, late, lost, incomplete, latest_by_ns, unread }
    }

    fn state(&self) -> ChannelState {
        match self.0.load_acquire(STATE) {
            0 => ChannelState::Opening,
            1 => ChannelState::Open,
            2 => ChannelState::Closing,
            _ => ChannelState::Closed(CloseCause::from_code(self.0.load(CAUSE))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stand_in_the_order_of_their_list() {
        for (place, (counter, _)) in ChannelCounter::ALL.iter().enumerate() {
            assert_eq!(counter.place(), COUNTERS + 8 * place);
        }
    }
}
