//! The host's ordinary frames: from the gate to the queue, from the queue to the card. Each that comes in
//! leaves, waits, or is dropped under a name that says why.

use super::held::{Look, Restraint};
use super::turn::TurnLimits;
use super::waits::{self, CONTROL, GATE, Waits};
use super::way::Way;
use super::{Data, Stopped, system};
use crate::gate::Egress;
use crate::pool::Pool;
use crate::trace::Tracer;
use rota_driver::clock::now;
use rota_driver::device::{Backlog, DeviceError, ETHERNET_HEADER, FrameDevice, Transmit};
use rota_driver::poller::Trigger;
use rota_proto::{GateOrder, HostTag, Input, NODE_LEVEL, Node, Port, PortId, Settings};
use rota_units::{Instant, Span};
use rota_wire::host_level;

/// Fewer than those of the wire, because the token may arrive meanwhile.
const HOST_FRAMES_A_TURN: usize = 16;
/// Frames of the host that are kept at most, on the fastest links.
const FRAMES_KEPT_MAX: usize = 16_384;
/// After the diversion the card is looked at so often.
const BACKLOG_AGAIN: Span = Span::from_micros(500);
/// Octets that a VLAN tag adds to a frame.
const VLAN_TAG: usize = 4;
/// While it is not known when the gate opens it is asked so often.
const OPENING_AGAIN: Span = Span::from_millis(1);
/// For so long before and after the gate opens it is read without a pause: a frame that comes just before
/// waits for no wake-up, so that the next one, straight to the card, does not overtake it.
const AROUND_THE_OPENING: Span = Span::from_micros(80);
/// A host that has sent nothing for so long is not waited for in this way.
const IDLE: Span = Span::from_millis(20);
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
    /// The same while the gate was held, because the queue was full.
    pub(crate) held: u64,
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

/// The machine lets traffic flow, and the gate is to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateOpening {
    /// Frames that were read before leave first.
    Wanted,
    Asked,
    /// From then on the host's frames go straight to the card.
    At(Instant),
}

/// A door of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Host,
    /// For messages between nodes: no flood of the host keeps them out.
    Control,
}

/// The result of a look at the gate.
enum Read {
    Nothing,
    /// A frame was dropped.
    Dropped,
    /// A frame is kept under that tag.
    Kept {
        tag: HostTag,
        octets: u16,
        level: u8,
    },
}

/// The way of the host's frames, from the gate to the card.
pub(super) struct HostWay<G> {
    pub(super) gate: G,
    gate_watched: bool,
    control_watched: bool,
    /// The host's frames come to this node.
    pub(super) diverted: bool,
    /// The machine waits until the frames that left before the diversion have left the card too.
    card_wanted: bool,
    opening: Option<GateOpening>,
    /// When the newest frame of the host came.
    heard: Instant,
    restraint: Restraint,
    pool: Pool,
    counts: HostFrames,
    /// One frame of the host, and one octet more.
    buffer: Box<[u8]>,
}

impl<G: Egress> HostWay<G> {
    /// One place for each frame that the machine's queue can hold, and some for those on their way.
    pub(super) fn new(gate: G, port: &Port, settings: &Settings, mtu: u16) -> Self {
        let (room, frames) = port.queue_room();
        let frames = frames.clamp(64, FRAMES_KEPT_MAX);
        let longest = longest(mtu);
        Self {
            gate,
            gate_watched: false,
            control_watched: false,
            diverted: false,
            card_wanted: false,
            opening: None,
            heard: Instant::ZERO,
            restraint: Restraint::new(settings, longest),
            pool: Pool::new(frames, room.get(), longest),
            counts: HostFrames::default(),
            buffer: vec![0; longest + 1].into_boxed_slice(),
        }
    }

    /// Takes one frame from the gate, if there is one.
    fn read(&mut self, at: Instant, (port, door): (PortId, Door), tracer: &mut Tracer) -> Read {
        let octets = match door {
            Door::Host => self.gate.recv(&mut self.buffer),
            Door::Control => self.gate.recv_control(&mut self.buffer),
        };
        let Some(octets) = octets else { return Read::Nothing };
        self.heard = at;
        self.counts.taken += 1;
        // One octet more than the longest frame is read, so that a longer one is seen to be one.
        let frame = &self.buffer[..octets.min(self.buffer.len())];
        let longest = self.buffer.len() - 1 - if is_tagged(frame) { 0 } else { VLAN_TAG };
        if octets < ETHERNET_HEADER {
            self.counts.malformed += 1;
            return Read::Dropped;
        }
        if octets > longest {
            self.counts.too_long += 1;
            return Read::Dropped;
        }
        let (level, tag) = match door {
            Door::Host => (host_level(frame), self.pool.put(frame)),
            Door::Control => (NODE_LEVEL, self.pool.put_of_nodes(frame)),
        };
        let Some(tag) = tag else {
            self.counts.pool += 1;
            tracer.dropped(port, at, frame);
            return Read::Dropped;
        };
        Read::Kept { tag, octets: octets as u16, level }
    }

    /// Does what the machine orders.
    pub(super) fn order_gate(
        &mut self,
        port: PortId,
        order: GateOrder,
        waits: &Waits,
    ) -> Result<(), Stopped> {
        match order {
            GateOrder::Divert => {
                // A gate that is to open, and diverts still, would open later.
                if !self.diverted || self.opening.is_some() {
                    self.gate.divert().map_err(|error| Stopped::Gate(port, error))?;
                }
                (self.diverted, self.opening) = (true, None);
                self.watch_control(port, waits)?;
                if !self.restraint.is_held() {
                    self.watch(port, waits)?;
                }
                self.card_wanted = true;
            }
            GateOrder::Pass => {
                self.card_wanted = false;
                self.opening = self.diverted.then_some(GateOpening::Wanted);
            }
        }
        Ok(())
    }

    /// From now on the thread waits for frames of the gate.
    fn watch(&mut self, port: PortId, waits: &Waits) -> Result<(), Stopped> {
        if !self.gate_watched
            && let Some(fd) = self.gate.wait_fd()
        {
            let added = waits.add(fd, waits::of(GATE, port), Trigger::Level);
            added.map_err(system("the gate cannot be waited on"))?;
            self.gate_watched = true;
        }
        Ok(())
    }

    /// The same for what nodes tell each other, whatever the host does.
    fn watch_control(&mut self, port: PortId, waits: &Waits) -> Result<(), Stopped> {
        if !self.control_watched
            && let Some(fd) = self.gate.control_fd()
        {
            let added = waits.add(fd, waits::of(CONTROL, port), Trigger::Level);
            added.map_err(system("the gate cannot be waited on"))?;
            self.control_watched = true;
        }
        Ok(())
    }

    /// From now on it does not.
    fn ignore(&mut self, waits: &Waits) {
        if self.gate_watched
            && let Some(fd) = self.gate.wait_fd()
        {
            waits.remove(fd);
        }
        self.gate_watched = false;
    }

    /// Counts what the kernel has dropped by now, `lost` of it by the word of the gate's interface.
    pub(super) fn count_lost(&mut self, at: Instant, lost: u64) {
        let lost = lost + self.gate.lost();
        let (more, held) = self.restraint.lost(at, lost);
        *if held { &mut self.counts.held } else { &mut self.counts.gate } += more;
    }

    /// From now on the host's frames do not come to this node.
    fn pass(&mut self, port: PortId) -> Result<(), Stopped> {
        self.gate.pass().map_err(|error| Stopped::Gate(port, error))?;
        (self.diverted, self.opening) = (false, None);
        Ok(())
    }

    /// After the diversion: have the frames that left before it also left the card? True if the machine was
    /// told so.
    pub(super) fn look_at_card<D: FrameDevice>(
        &mut self,
        (port, at): (PortId, Instant),
        device: &mut D,
        node: &mut Node,
    ) -> bool {
        let is_empty = self.card_wanted && matches!(device.backlog(), Backlog::Empty { .. });
        if is_empty {
            self.card_wanted = false;
            node.handle(at, Input::CardEmpty { port });
        }
        is_empty
    }

    /// When to look at the card or at the gate again.
    pub(super) fn due(&self) -> Instant {
        let card = if self.card_wanted { now() + BACKLOG_AGAIN } else { Instant::FAR };
        let gate = match self.opening {
            None => Instant::FAR,
            Some(GateOpening::Wanted) => Instant::ZERO,
            Some(GateOpening::Asked) => now() + OPENING_AGAIN,
            Some(GateOpening::At(at)) => self.looks_at_opening(at),
        };
        card.min(gate)
    }

    /// When to begin to read without a pause, or, where the host is idle, to see that the gate is open.
    fn looks_at_opening(&self, opens: Instant) -> Instant {
        match opens.since(self.heard) < IDLE {
            true => opens.minus(AROUND_THE_OPENING),
            false => opens + AROUND_THE_OPENING,
        }
    }

    /// Brings the opening of the gate on. Returns the instant at which it opens, once that is near.
    fn opens(&mut self, port: PortId, has_more: bool) -> Result<Option<Instant>, Stopped> {
        if self.opening == Some(GateOpening::Wanted) && !has_more {
            self.gate.open().map_err(|error| Stopped::Gate(port, error))?;
            self.opening = Some(GateOpening::Asked);
        }
        if self.opening == Some(GateOpening::Asked)
            && let Some(at) = self.gate.opens()
        {
            self.opening = Some(GateOpening::At(at));
        }
        let Some(GateOpening::At(at)) = self.opening else { return Ok(None) };
        Ok(Some(at).filter(|at| self.looks_at_opening(*at) <= now()))
    }

    /// Hands a frame to the card.
    pub(super) fn transmit<D: FrameDevice>(
        &mut self,
        at: Instant,
        (port, tag): (PortId, HostTag),
        device: &mut D,
        tracer: &mut Tracer,
    ) -> Result<(), Stopped> {
        let sent = device.transmit(self.pool.frame(tag));
        tracer.sent(port, at, self.pool.frame(tag), matches!(sent, Ok(Transmit::Sent)));
        self.pool.give_back(tag);
        *match sent {
            Ok(Transmit::Sent) => &mut self.counts.left,
            Ok(Transmit::NoRoom) => &mut self.counts.no_room,
            Err(DeviceError::Gone) => return Err(Stopped::Device(port, DeviceError::Gone)),
            Err(DeviceError::LinkDown) => &mut self.counts.link_down,
            Err(DeviceError::FrameTooLong { .. }) => &mut self.counts.too_long,
            Err(DeviceError::FrameTooShort { .. }) => &mut self.counts.malformed,
            Err(DeviceError::Truncated { .. } | DeviceError::Os { .. }) => &mut self.counts.failed,
        } += 1;
        Ok(())
    }

    /// The machine had no room for a frame.
    pub(super) fn drop(&mut self, at: Instant, (port, tag): (PortId, HostTag), tracer: &mut Tracer) {
        self.counts.refused += 1;
        tracer.dropped(port, at, self.pool.frame(tag));
        self.pool.give_back(tag);
    }

    /// Frames that the card has taken so far.
    pub(super) fn left(&self) -> u64 {
        self.counts.left
    }
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn take_host_frames(&mut self, place: usize, at: Instant) -> Result<(), Stopped> {
        for _ in 0..HOST_FRAMES_A_TURN {
            if !self.may_read_gate(place, at)? {
                return Ok(());
            }
            if !self.take_host_frame((place, Door::Host), at)? {
                self.ways[place].host.restraint.found_empty();
                return Ok(());
            }
        }
        // More frames wait. In a lab nodes share a CPU under SCHED_FIFO: the token holder must not wait for a
        // host's whole backlog. Alone on a CPU this costs nothing.
        let _ = nix::sched::sched_yield();
        Ok(())
    }

    /// Takes frames of messages between nodes.
    pub(super) fn take_control_frames(&mut self, place: usize, at: Instant) -> Result<(), Stopped> {
        for _ in 0..HOST_FRAMES_A_TURN {
            if !self.take_host_frame((place, Door::Control), at)? {
                break;
            }
        }
        Ok(())
    }

    /// True if the next frame of a gate may be read: the gate of a host that floods a full queue is held.
    fn may_read_gate(&mut self, place: usize, at: Instant) -> Result<bool, Stopped> {
        let Way { port, host, .. } = &mut self.ways[place];
        let Some(queue) = self.node.port_at(*port) else { return Ok(true) };
        let look = host.restraint.look(at, queue, &host.pool);
        match look {
            Look::Hold => host.ignore(&self.waits),
            Look::Freed => host.watch(*port, &self.waits)?,
            Look::Read | Look::Held => {}
        }
        Ok(matches!(look, Look::Read | Look::Freed))
    }

    /// Waits again for the gates whose queues have room again.
    pub(super) fn look_at_held_gates(&mut self, at: Instant) -> Result<(), Stopped> {
        for place in 0..self.ways.len() {
            if self.ways[place].host.restraint.is_held() {
                self.may_read_gate(place, at)?;
            }
        }
        Ok(())
    }

    /// One frame, if there is one.
    fn take_host_frame(&mut self, (place, door): (usize, Door), at: Instant) -> Result<bool, Stopped> {
        let way = &mut self.ways[place];
        let port = way.port;
        match way.host.read(at, (port, door), &mut self.told.tracer) {
            Read::Nothing => return Ok(false),
            Read::Dropped => {}
            Read::Kept { tag, octets, level } => {
                self.node.handle(at, Input::HostFrame { port, tag, octets, level });
                self.drain()?;
            }
        }
        let HostWay { restraint, counts, .. } = &mut self.ways[place].host;
        restraint.count(counts.refused + counts.pool, counts.left);
        Ok(true)
    }

    /// Brings the opening of a gate on. Around its instant the gate is read without a pause, so that no frame
    /// that came before overtakes one behind it.
    pub(super) fn open_gate(&mut self, place: usize) -> Result<(), Stopped> {
        let Way { port, host, .. } = &mut self.ways[place];
        let Some(opens) = host.opens(*port, self.work.has_more)? else { return Ok(()) };
        // Frames read now must leave in this turn without a limit: later frames do not pass through the gate.
        self.work.limits = TurnLimits::NONE;
        self.empty_gate(place)?;
        while now() < opens + AROUND_THE_OPENING {
            self.empty_gate(place)?;
        }
        let Way { port, host, .. } = &mut self.ways[place];
        host.pass(*port)?;
        self.empty_gate(place)?;
        self.begin_turn(now());
        Ok(())
    }

    /// Takes what waits in the gate.
    fn empty_gate(&mut self, place: usize) -> Result<(), Stopped> {
        for door in [Door::Control, Door::Host] {
            for _ in 0..IN_THE_GATE {
                if !self.take_host_frame((place, door), now())? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Counts of the host's frames on the first port so far.
    #[cfg(test)]
    pub(super) fn host_frames(&self) -> HostFrames {
        self.ways[0].host_frames()
    }
}

impl<D, G> Way<D, G> {
    /// Counts of the host's frames so far.
    pub(super) fn host_frames(&self) -> HostFrames {
        let HostWay { pool, counts, .. } = &self.host;
        HostFrames { waiting: pool.used() as u64, ..*counts }
    }
}

/// The longest frame of a host, with a VLAN tag, on an interface of that MTU.
pub(super) fn longest(mtu: u16) -> usize {
    usize::from(mtu) + ETHERNET_HEADER + VLAN_TAG
}

/// Whether a frame has a VLAN tag, which the MTU does not count.
fn is_tagged(frame: &[u8]) -> bool {
    matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]))
}
