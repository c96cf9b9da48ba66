//! A host of the paper (TRANSPORT-6-2): one processor, what each step costs it, and an adaptor that cuts
//! frames into cells and fills buffers with frames.
//!
//! **Printed** (§6.1, §6.3) are 41 µs of a call, 54 µs more of a message, 35 µs of a TPDU and 50 µs of a
//! Kbyte in `t_send`, 140 µs until the task scheduler is active, and 315 µs for all that a packet of 64
//! octets does before its adaptor has it; what is left of these 315 are the task and the driver, 43.4 µs.
//! **Derived** (theory d.5) from the printed 40 and 50 Mbps: an interrupt with its resupply takes 164 µs,
//! and a TPDU of 4 Kbytes 655 µs of the receiver, of which an octet's part follows. **Assumed**: the
//! receiver's call and TPDU cost what the sender's do; the driver waits for the bus (EISA, 33 Mbyte/s); of
//! the 43.4 µs the task has 15; a TPDU passes over those of its message that came before, 2 µs each, so
//! that the peak of Figure 6 stands between the sizes that the text calls small and large.
//!
//! Not modelled: other processes, memory that runs out, the adaptor's own processor.

use rota_proto::watermarks::Backlog;
use rota_units::{Instant, Span};
use rota_wire::cells::Cell;
use std::collections::VecDeque;

/// The costs of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCosts {
    /// A call of the program: a switch into the kernel and the connection's lock.
    pub call: Span,
    /// The rest of `t_send` that a message costs.
    pub message: Span,
    /// The part of `t_send` that a TPDU costs.
    pub tpdu: Span,
    /// Copying and allocation, picoseconds for an octet.
    pub copy_ps: u64,
    /// Until a sleeping task scheduler is active; the processor does other things.
    pub wake: Span,
    /// `t_schedule_send`, for a TPDU.
    pub task: Span,
    /// The driver, for a TPDU.
    pub driver: Span,
    /// The bus, picoseconds for an octet.
    pub bus_ps: u64,
    /// An interrupt and the supply of buffers behind it.
    pub interrupt: Span,
    /// The receiver's work on a TPDU.
    pub take_tpdu: Span,
    /// The receiver's work on an octet, picoseconds.
    pub take_ps: u64,
    /// The receiver's work for each TPDU of the message that came before.
    pub search: Span,
    /// The call that takes a message.
    pub take_call: Span,
}

impl HostCosts {
    /// The 80486 at 66 MHz.
    pub const PAPER: Self = Self {
        call: Span::from_micros(41),
        message: Span::from_micros(54),
        tpdu: Span::from_micros(35),
        copy_ps: 48_828,
        wake: Span::from_micros(140),
        task: Span::from_micros(15),
        driver: Span::from_nanos(26_500),
        bus_ps: 30_300,
        interrupt: Span::from_nanos(163_840),
        take_tpdu: Span::from_micros(35),
        take_ps: 148_500,
        search: Span::from_micros(2),
        take_call: Span::from_micros(41),
    };
    /// A host that takes no time.
    pub const NONE: Self = Self {
        call: Span::ZERO,
        message: Span::ZERO,
        tpdu: Span::ZERO,
        copy_ps: 0,
        wake: Span::ZERO,
        task: Span::ZERO,
        driver: Span::ZERO,
        bus_ps: 0,
        interrupt: Span::ZERO,
        take_tpdu: Span::ZERO,
        take_ps: 0,
        search: Span::ZERO,
        take_call: Span::ZERO,
    };

    /// `t_send` without the call, for a TPDU of so many octets; `first` of its message.
    pub fn send(&self, octets: usize, first: bool) -> Span {
        let message = if first { self.message } else { Span::ZERO };
        message + self.tpdu + picos(self.copy_ps, octets)
    }

    /// Task and driver, for a frame of so many octets.
    pub fn transmit(&self, octets: usize) -> Span {
        self.task + self.driver + picos(self.bus_ps, octets)
    }

    /// A TPDU at the receiver, behind `before` others of its message.
    pub fn take(&self, octets: usize, before: u32) -> Span {
        self.take_tpdu + picos(self.take_ps, octets) + self.search * u64::from(before)
    }
}

/// The time of so many octets.
pub fn picos(each: u64, octets: usize) -> Span {
    Span::from_nanos(each * octets as u64 / 1_000)
}

/// When the adaptor interrupts, and what happens to frames that are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// Each frame interrupts, and the service routine drops it if so many of its host wait (Figure 7).
    EachFrame {
        /// Frames that may wait.
        limit: usize,
    },
    /// The adaptor drops what it has no buffer for; buffers are supplied between watermarks (Figure 8).
    /// Between them interrupts are masked while work waits; marks that are one apart are none, and each
    /// frame interrupts.
    Watermarks {
        /// No more buffers from here on.
        high: u32,
        /// Buffers again from here on.
        low: u32,
    },
}

/// What the processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// The service routine.
    Interrupt,
    /// The oldest frame that waits.
    Frame,
    /// A TPDU goes to the adaptor; of this circuit's sender if true.
    Transmit(usize, bool),
    /// The program of this circuit writes a TPDU.
    Write(usize),
}

/// The work of a sender's processor, for Figure 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls of programs that send.
    pub call: Span,
    /// The rest of `t_send`.
    pub send: Span,
    /// `t_schedule_send`.
    pub task: Span,
    /// Driver and bus.
    pub driver: Span,
}

/// The frames of the adaptor and of the processor.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) costs: HostCosts,
    limit: Option<usize>,
    masks: bool,
    pub(super) backlog: Backlog,
    /// Frames that fill buffers, and have not been noticed.
    filled: VecDeque<Vec<u8>>,
    /// Frames that wait for the processor.
    pub(super) waiting: VecDeque<Vec<u8>>,
    /// Interrupts that no job pays for yet.
    owed: u64,
    pub(super) job: Option<(Job, Instant)>,
    /// The task scheduler is active, or will be.
    pub(super) is_awake: bool,
    pub(super) is_waking: bool,
    /// Cells to the switch, and how many frames they are at most.
    pub(super) sending: VecDeque<Cell>,
    pub(super) is_sending: bool,
    /// Which circuit is asked first.
    pub(super) turn: usize,
    pub(super) spent: Spent,
    /// Frames that the adaptor or the service routine has dropped.
    pub(super) dropped: u64,
}

/// Cells that the adaptor has for the wire before the driver gives it another frame.
const AHEAD: usize = 90;

impl Host {
    pub(super) fn new(costs: HostCosts, intake: Intake) -> Self {
        let (limit, masks, marks) = match intake {
            Intake::EachFrame { limit } => (Some(limit), false, Backlog::new(u32::MAX, 0)),
            Intake::Watermarks { high, low } => (None, high > low + 1, Backlog::new(high, low)),
        };
        let marks = marks.unwrap_or_else(|bad| panic!("{bad}"));
        Self {
            costs,
            limit,
            masks,
            backlog: marks,
            filled: VecDeque::new(),
            waiting: VecDeque::new(),
            owed: 0,
            job: None,
            is_awake: false,
            is_waking: false,
            sending: VecDeque::new(),
            is_sending: false,
            turn: 0,
            spent: Spent::default(),
            dropped: 0,
        }
    }

    /// A frame is complete in the adaptor.
    pub(super) fn receives(&mut self, frame: Vec<u8>) {
        if let Some(limit) = self.limit {
            // The interrupt comes whatever the processor does, and what it does takes so much longer.
            match &mut self.job {
                Some((_, ends)) => *ends += self.costs.interrupt,
                None => self.owed += 1,
            }
            if self.waiting.len() >= limit {
                self.dropped += 1;
            } else {
                self.waiting.push_back(frame);
            }
        } else if self.filled.len() < self.backlog.supply() as usize {
            self.filled.push_back(frame);
        } else {
            self.dropped += 1;
        }
    }

    /// The service routine is worth its cost.
    pub(super) fn wants_interrupt(&self) -> bool {
        let is_masked = self.masks && self.backlog.pending() > 0;
        self.owed > 0 || !(is_masked || self.filled.is_empty())
    }

    /// How long the service routine takes.
    pub(super) fn interrupt_cost(&mut self) -> Span {
        let interrupts = if self.limit.is_some() { core::mem::take(&mut self.owed) } else { 1 };
        self.costs.interrupt * interrupts
    }

    /// The service routine has ended: all frames that have filled a buffer wait for the processor, or one
    /// where each interrupts.
    pub(super) fn interrupted(&mut self) {
        let count = if self.masks { self.filled.len() } else { self.filled.len().min(1) };
        self.backlog.arrived(count as u32);
        self.waiting.extend(self.filled.drain(..count));
    }

    /// True if the driver may give another frame.
    pub(super) fn has_room(&self) -> bool {
        self.sending.len() < AHEAD
    }
}
