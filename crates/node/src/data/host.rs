//! The host's ordinary frames: from the gate to the queue, from the queue to the card. Each that comes in
//! leaves, waits, or is dropped under a name that says why.

use super::{Data, GATE, HOST_FRAMES_A_TURN, Stopped, system};
use crate::gate::Egress;
use rota_driver::clock::now;
use rota_driver::device::{Backlog, DeviceError, ETHERNET_HEADER, FrameDevice, Transmit};
use rota_driver::poller::Trigger;
use rota_proto::{GateOrder, HostTag, Input, PortId};
use rota_units::{Instant, Span};
use rota_wire::host_level;

/// Octets that a VLAN tag adds to a frame.
pub(super) const VLAN_TAG: usize = 4;
/// While the gate is to open it is looked at so often.
const OPENING_AGAIN: Span = Span::from_micros(50);
/// A host that has sent nothing for so long is between two bursts: none of its frames is on its way through
/// the gate, so that none can be overtaken by one that goes straight to the card.
const QUIET: Span = Span::from_micros(150);
/// A host that never pauses is not waited for.
const QUIET_WITHIN: Span = Span::from_millis(500);
/// Most frames that the gate's device holds: at most so many are read at the opening.
const IN_THE_GATE: usize = 4_096;

/// Counts of the host's frames that were diverted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostFrames {
    /// Came through the gate.
    pub(crate) taken: u64,
    /// Handed to the card.
    pub(crate) left: u64,
    /// No Ethernet frames.
    pub(crate) malformed: u64,
    /// Longer than the interface's MTU allows.
    pub(crate) too_long: u64,
    /// No place left to keep them.
    pub(crate) pool: u64,
    /// The machine had no room: its counters say why.
    pub(crate) refused: u64,
    /// The card's queue was full.
    pub(crate) no_room: u64,
    /// The link was down.
    pub(crate) link_down: u64,
    /// The kernel refused for another reason.
    pub(crate) failed: u64,
    /// Dropped by the kernel before they could be read; not among those taken.
    pub(crate) gate: u64,
    /// Waiting now.
    pub(crate) waiting: u64,
}

impl HostFrames {
    /// Frames whose end no counter names.
    #[cfg(test)]
    pub(crate) fn unaccounted(&self) -> i64 {
        let Self { taken, left, malformed, too_long, pool, refused, no_room, link_down, failed, .. } = *self;
        let ended = left + malformed + too_long + pool + refused + no_room + link_down + failed;
        taken as i64 - (ended + self.waiting) as i64
    }
}

/// The machine lets traffic flow, and the gate opens at the host's next pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateOpening {
    until: Instant,
    heard: Instant,
}

impl GateOpening {
    /// When to look again.
    pub(super) fn again(now: Instant) -> Instant {
        now + OPENING_AGAIN
    }
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn take_host_frames(&mut self, at: Instant) -> Result<(), Stopped> {
        for _ in 0..HOST_FRAMES_A_TURN {
            if !self.take_host_frame(at)? {
                return Ok(());
            }
        }
        // More frames wait. In a lab nodes share a CPU under SCHED_FIFO: the token holder must not wait for a
        // host's whole backlog. Alone on a CPU this costs nothing.
        let _ = nix::sched::sched_yield();
        Ok(())
    }

    /// One frame, if there is one.
    fn take_host_frame(&mut self, at: Instant) -> Result<bool, Stopped> {
        let Some(octets) = self.gate.recv(&mut self.host_buffer) else { return Ok(false) };
        if let Some(opening) = &mut self.opening {
            opening.heard = at;
        }
        self.host.taken += 1;
        // One octet more than the longest frame is read, so that a longer one is seen to be one.
        let frame = &self.host_buffer[..octets.min(self.host_buffer.len())];
        let longest = self.host_buffer.len() - 1 - if is_tagged(frame) { 0 } else { VLAN_TAG };
        if octets < ETHERNET_HEADER {
            self.host.malformed += 1;
            return Ok(true);
        }
        if octets > longest {
            self.host.too_long += 1;
            return Ok(true);
        }
        let level = host_level(frame);
        let Some(tag) = self.pool.put(frame) else {
            self.host.pool += 1;
            self.tracer.dropped(at, frame);
            return Ok(true);
        };
        self.node.handle(at, Input::HostFrame { port: PortId(0), tag, octets: octets as u16, level });
        self.drain()?;
        Ok(true)
    }

    pub(super) fn order_gate(&mut self, order: GateOrder) -> Result<(), Stopped> {
        match order {
            GateOrder::Divert => {
                self.opening = None;
                if !self.diverted {
                    self.gate.divert().map_err(Stopped::Gate)?;
                    self.diverted = true;
                }
                if !self.gate_watched
                    && let Some(fd) = self.gate.wait_fd()
                {
                    self.poller
                        .add(fd, GATE, Trigger::Level)
                        .map_err(system("the gate cannot be waited on"))?;
                    self.gate_watched = true;
                }
                self.card_wanted = true;
            }
            GateOrder::Pass => {
                self.card_wanted = false;
                let at = now();
                self.opening = self.diverted.then_some(GateOpening { until: at + QUIET_WITHIN, heard: at });
            }
        }
        Ok(())
    }

    /// Opens the gate as soon as no frame can overtake another: the diverted frames have left, and the host
    /// pauses.
    pub(super) fn open_gate(&mut self) -> Result<(), Stopped> {
        let Some(opening) = self.opening else { return Ok(()) };
        // Frames that were read and not sent yet go first.
        if self.has_more {
            return Ok(());
        }
        let at = now();
        // A host that offers more than is read here never leaves the gate empty: the time counts for it too.
        if at < opening.until && (self.take_host_frame(at)? || at.since(opening.heard) < QUIET) {
            return Ok(());
        }
        self.gate.pass().map_err(Stopped::Gate)?;
        (self.diverted, self.opening) = (false, None);
        // Frames read now must leave in this turn without a limit: later frames do not pass through the gate.
        (self.turn_frames, self.turn_until) = (u64::MAX, Instant::FAR);
        for _ in 0..IN_THE_GATE {
            if !self.take_host_frame(now())? {
                break;
            }
        }
        self.begin_turn(now());
        Ok(())
    }

    /// After the diversion: have the frames that left before it also left the card?
    pub(super) fn look_at_card(&mut self, at: Instant) {
        if self.card_wanted && matches!(self.device.backlog(), Backlog::Empty { .. }) {
            self.card_wanted = false;
            self.node.handle(at, Input::CardEmpty { port: PortId(0) });
        }
    }

    pub(super) fn transmit_host(&mut self, at: Instant, tag: HostTag) -> Result<(), Stopped> {
        let sent = self.device.transmit(self.pool.frame(tag));
        self.tracer.sent(at, self.pool.frame(tag), matches!(sent, Ok(Transmit::Sent)));
        self.pool.give_back(tag);
        *match sent {
            Ok(Transmit::Sent) => &mut self.host.left,
            Ok(Transmit::NoRoom) => &mut self.host.no_room,
            Err(DeviceError::Gone) => return Err(Stopped::Device(DeviceError::Gone)),
            Err(DeviceError::LinkDown) => &mut self.host.link_down,
            Err(DeviceError::FrameTooLong { .. }) => &mut self.host.too_long,
            Err(DeviceError::FrameTooShort { .. }) => &mut self.host.malformed,
            Err(DeviceError::Truncated { .. } | DeviceError::Os { .. }) => &mut self.host.failed,
        } += 1;
        Ok(())
    }

    pub(super) fn drop_host(&mut self, at: Instant, tag: HostTag) {
        self.host.refused += 1;
        self.tracer.dropped(at, self.pool.frame(tag));
        self.pool.give_back(tag);
    }

    /// Counts of the host's frames so far.
    pub(super) fn host_frames(&self) -> HostFrames {
        HostFrames { waiting: self.pool.used() as u64, gate: self.published.gate_lost(), ..self.host }
    }
}

/// Whether a frame has a VLAN tag, which the MTU does not count.
pub(super) fn is_tagged(frame: &[u8]) -> bool {
    matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]))
}
