//! The client's end of its own ring.

use std::mem::offset_of;
use std::sync::Arc;

use rota_units::Instant;

use crate::board::BoardView;
use crate::layout::{TX_HEADER_OCTETS, TxDescriptor, TxHeader, sequence_open, sequence_shut, tx_slot_octets};
use crate::message::Sleep;
use crate::raw::WritePages;

/// Why a unit was not taken into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryWriteError {
    /// All buffers are full.
    #[error("all {slots} buffers of the channel are full")]
    Full {
        /// Buffers of the channel.
        slots: u32,
    },
    /// The unit is longer than the contract allows.
    #[error("the unit has {octets} octets where the contract allows {octets_max}")]
    TooLong {
        /// The unit's length.
        octets: usize,
        /// The contract's.
        octets_max: u32,
    },
}

/// Puts units into a client-written ring.
pub struct TxWriter {
    pages: Arc<WritePages>,
    board: BoardView,
    slots: u32,
    unit_octets_max: u32,
    written: u64,
    left_out: u64,
}

impl TxWriter {
    pub(crate) fn new(pages: Arc<WritePages>, board: BoardView, slots: u32, unit_octets_max: u32) -> Self {
        let slot_octets = tx_slot_octets(unit_octets_max);
        assert!(slots > 0 && pages.read().octets() >= TX_HEADER_OCTETS + slots as usize * slot_octets);
        Self { pages, board, slots, unit_octets_max, written: 0, left_out: 0 }
    }

    /// Copies one unit into the next free buffer and publishes it. Returns its number: how many
    /// units were written or left out before it.
    ///
    /// # Errors
    /// [`TryWriteError`]; nothing is written then.
    pub fn try_write(&mut self, payload: &[u8], schedule: Instant) -> Result<u64, TryWriteError> {
        self.try_write_to(payload, schedule, 0)
    }

    /// As [`TxWriter::try_write`], with where the unit is to go: a packed [`crate::MessageRoute`].
    ///
    /// # Errors
    /// [`TryWriteError`]; nothing is written then.
    pub fn try_write_to(
        &mut self,
        payload: &[u8],
        schedule: Instant,
        route: u64,
    ) -> Result<u64, TryWriteError> {
        let octets_max = self.unit_octets_max;
        if payload.len() > octets_max as usize {
            return Err(TryWriteError::TooLong { octets: payload.len(), octets_max });
        }
        if self.waiting() >= u64::from(self.slots) {
            return Err(TryWriteError::Full { slots: self.slots });
        }
        let (index, number) = (self.written, self.written.saturating_add(self.left_out));
        let place = (index % u64::from(self.slots)) as usize;
        let slot = TX_HEADER_OCTETS + place * tx_slot_octets(octets_max);
        let pages = &self.pages;
        pages.store(slot + offset_of!(TxDescriptor, sequence), sequence_open(index));
        pages.write_barrier();
        pages.store(slot + offset_of!(TxDescriptor, number), number);
        pages.store(slot + offset_of!(TxDescriptor, octets), payload.len() as u64);
        pages.store(slot + offset_of!(TxDescriptor, schedule_ns), schedule.as_nanos());
        pages.store(slot + offset_of!(TxDescriptor, route), route);
        pages.copy_in(slot + size_of::<TxDescriptor>(), payload);
        pages.store_release(slot + offset_of!(TxDescriptor, sequence), sequence_shut(index));
        self.written += 1;
        pages.store_release(offset_of!(TxHeader, head), self.written);
        Ok(number)
    }

    /// Leaves out so many units: they take numbers, and no slots. The node learns of them by the next unit,
    /// or when the channel ends.
    pub fn leave_out(&mut self, units: u64) {
        self.left_out = self.left_out.saturating_add(units);
        self.pages.store_release(offset_of!(TxHeader, left_out), self.left_out);
    }

    /// Units left out so far.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Asks the node for one octet on the bell when something has happened.
    pub(crate) fn arm(&self) {
        self.pages.add(offset_of!(TxHeader, armed), 1);
    }

    /// Tells the node how the client sleeps. Before a sleep: whoever tells it of news afterwards sees this.
    pub(crate) fn set_asleep(&self, sleep: Sleep) {
        self.pages.store(offset_of!(TxHeader, asleep), sleep.code());
        self.pages.full_barrier();
    }

    /// Slots of the ring.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Units written that the node has not taken yet.
    pub fn waiting(&self) -> u64 {
        self.written.saturating_sub(self.board.units_released())
    }

    /// Units written in all.
    pub fn written(&self) -> u64 {
        self.written
    }
}
