//! The device: frames that come, and frames of this station that leave.

use super::behind::Behind;
use super::rings::Rings;
use super::way::{self, Way};
use super::{Data, Stopped, WireCounts, host};
use crate::garbage::Garbage;
use crate::gate::Egress;
use crate::trace::Tracer;
use rota_driver::clock::now;
use rota_driver::device::{DeviceError, FrameDevice, Stamp, Transmit};
use rota_proto::{Delivered, Disposition, FrameVerdict, HostTag, Input, Node};
use rota_units::Instant;

const FRAMES_A_TURN: usize = 64;
/// The same while strangers flood the wire: each of their frames takes less than a microsecond, and a keyed
/// frame waits behind all that came before it.
const FRAMES_A_TURN_OF_FLOOD: usize = 256;
/// Frames of ours may be longer than an interface's MTU allows; such a one is then refused and counted.
const BUFFER_OCTETS: usize = 2_048;

/// The device, and what is known of the frames that come from it.
pub(super) struct Wire<D> {
    pub(super) device: D,
    receive_buffer: Box<[u8]>,
    pub(super) behind: Behind,
    /// The turn before had frames of link control too.
    pub(super) llc_streams: bool,
    pub(super) garbage: Garbage,
    pub(super) counts: WireCounts,
    /// Frames of the newest look, if strangers alone sent them though the door is closed to them: they name a
    /// station of the segment. Otherwise 0.
    pub(super) flood: usize,
}

impl<D: FrameDevice> Wire<D> {
    pub(super) fn new(device: D) -> Self {
        let buffer = host::longest(device.mtu()).max(BUFFER_OCTETS);
        Self {
            device,
            receive_buffer: vec![0; buffer].into_boxed_slice(),
            behind: Behind::default(),
            llc_streams: false,
            garbage: Garbage::new(),
            counts: WireCounts::default(),
            flood: 0,
        }
    }

    /// No frame waits.
    pub(super) fn heard_nothing(&mut self) {
        self.behind.read_all();
        self.flood = 0;
    }

    /// Octets of the longest frame that may be sent here.
    pub(super) fn frame_octets(&self) -> usize {
        self.receive_buffer.len()
    }
}

impl<D: FrameDevice, G: Egress> Way<D, G> {
    /// Hands a frame of ours to the device.
    pub(super) fn transmit(
        &mut self,
        at: Instant,
        frame: &[u8],
        (tracer, node): (&mut Tracer, &Node),
    ) -> Result<(), Stopped> {
        let sent = self.wire.device.transmit(frame);
        tracer.sent_own((self.port, node), at, frame, matches!(sent, Ok(Transmit::Sent)));
        let counts = &mut self.wire.counts;
        counts.own_frames += 1;
        match sent {
            Ok(Transmit::Sent) => Ok(()),
            Err(DeviceError::Gone) => Err(Stopped::Device(self.port, DeviceError::Gone)),
            // A frame that could not leave is a lost frame, which the protocol repairs.
            Ok(Transmit::NoRoom) => {
                counts.no_room += 1;
                Ok(())
            }
            Err(_) => {
                counts.send_failed += 1;
                Ok(())
            }
        }
    }

    /// Hands a frame of the host to the device.
    pub(super) fn transmit_host(
        &mut self,
        at: Instant,
        tag: HostTag,
        tracer: &mut Tracer,
    ) -> Result<(), Stopped> {
        self.host.transmit(at, (self.port, tag), &mut self.wire.device, tracer)
    }
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn receive(&mut self, place: usize) -> Result<(), Stopped> {
        let mut buffer = std::mem::take(&mut self.ways[place].wire.receive_buffer);
        let received = self.receive_into(place, &mut buffer);
        self.ways[place].wire.receive_buffer = buffer;
        received
    }

    fn receive_into(&mut self, place: usize, buffer: &mut [u8]) -> Result<(), Stopped> {
        // Frames without valid content bring only announcements forward; those can wait for the next turn.
        let (mut due, mut strange, mut sound) = (None, 0, false);
        let is_flood = self.ways[place].wire.flood > 0;
        for _ in 0..if is_flood { FRAMES_A_TURN_OF_FLOOD } else { FRAMES_A_TURN } {
            self.measures.count_frame();
            let begin = self.measures.sample();
            let received = match self.ways[place].wire.device.receive(buffer) {
                Ok(Some(received)) => received,
                Ok(None) => {
                    self.ways[place].wire.behind.read_all();
                    break;
                }
                // The link will come back; what was lost is seen by the protocol.
                Err(DeviceError::LinkDown) => {
                    let way = &mut self.ways[place];
                    let is_news = self.told.tracer.link_down(way.port, now());
                    way.wire.counts.link_downs += u64::from(is_news);
                    continue;
                }
                Err(DeviceError::Truncated { .. }) => {
                    self.ways[place].wire.counts.receive_too_long += 1;
                    continue;
                }
                Err(error) => return Err(Stopped::Device(self.ways[place].port, error)),
            };
            let at = (received.stamp == Stamp::Kernel).then_some(received.at);
            if let Some(at) = at {
                self.measures.stalls.on_dequeue(at, received.dequeued);
            }
            self.ways[place].wire.behind.read(at, received.dequeued);
            let taken = self.measures.sample();
            let (verdict, handled) = self.arrived(place, at, received.dequeued, &buffer[..received.len]);
            if verdict.is_invalid() {
                let Way { port, wire, .. } = &mut self.ways[place];
                let medium = way::medium(&self.node, *port);
                let noted = wire.note_unproven(received.dequeued, &buffer[..received.len], medium);
                noted.map_err(|error| Stopped::Device(*port, error))?;
                strange += 1;
                // The frame has changed no state from which a frame to send could follow.
                let due = *due.get_or_insert_with(|| self.node.deadline());
                if !self.work.has_more && due > received.dequeued {
                    continue;
                }
            }
            sound |= !verdict.is_invalid();
            if let Some(begin) = begin {
                self.measures.on_handled(begin, taken, handled);
            }
            let sent_before = self.own_frames;
            due = None;
            self.drain_from(received.dequeued)?;
            // A station that has just answered waits for the answer's answer: a look at the empty socket
            // first would delay the next station. Of a stream each frame is answered, and a turn for each
            // would cost more than the frame.
            if self.own_frames != sent_before && !self.ways[place].wire.device.has_frame() {
                break;
            }
        }
        let wire = &mut self.ways[place].wire;
        wire.flood = if sound || !wire.garbage.is_closed() { 0 } else { strange };
        Ok(())
    }

    /// Frames of link control that do not come with the others.
    pub(super) fn receive_llc(&mut self, place: usize) -> Result<(), Stopped> {
        let mut buffer = std::mem::take(&mut self.ways[place].wire.receive_buffer);
        let received = self.receive_llc_into(place, &mut buffer);
        self.ways[place].wire.receive_buffer = buffer;
        received
    }

    fn receive_llc_into(&mut self, place: usize, buffer: &mut [u8]) -> Result<(), Stopped> {
        // One that comes alone is answered before the next: a look at the empty queue would only delay
        // whoever waits for it. Of a stream many are taken at once; the level-triggered wait forgets none.
        let frames = if self.ways[place].wire.llc_streams { FRAMES_A_TURN } else { 1 };
        for nth in 0..frames {
            let len = match self.ways[place].wire.device.receive_llc(buffer) {
                Ok(Some(len)) => len,
                Ok(None) => break,
                Err(DeviceError::LinkDown) => continue,
                Err(DeviceError::Truncated { .. }) => {
                    self.ways[place].wire.counts.receive_too_long += 1;
                    continue;
                }
                Err(error) => return Err(Stopped::Device(self.ways[place].port, error)),
            };
            self.arrived(place, None, now(), &buffer[..len]);
            if nth == 0 {
                // Of many that come together the others are told at the end of the turn.
                self.drain()?;
                let Rings { sockets, wakes, .. } = &mut self.rings;
                sockets.wake(wakes);
            }
        }
        self.drain().map(|_| ())
    }

    /// A fragment has waited for those before it, and its octets are in the buffer of frames.
    pub(super) fn deliver_kept(&mut self, at: Instant) {
        let Some(delivery) = self.node.take_kept() else { return };
        let tracer = &mut self.told.tracer;
        if tracer.is_on() {
            tracer.kept(at, &delivery);
        }
        if let Some(index) = self.rings.deliver(&delivery, &self.frame[..], at, &self.node) {
            self.rings.note_unread(index, &mut self.node, tracer);
        }
    }

    /// A frame: for the machines, for the log, and for the program that it is for. Returns the verdict on it,
    /// and when it was handled.
    pub(super) fn arrived(
        &mut self,
        place: usize,
        at: Option<Instant>,
        dequeued: Instant,
        octets: &[u8],
    ) -> (FrameVerdict, Option<Instant>) {
        let tracer = &mut self.told.tracer;
        let port = self.ways[place].port;
        tracer.heard(port, dequeued);
        let input = Input::Frame { port, at, data: octets };
        let Disposition { verdict, received } = self.node.handle(dequeued, input);
        let handled = self.measures.sample();
        let fragment = match &received {
            Some(Delivered::Fragment(fragment)) => Some(fragment),
            _ => None,
        };
        // A flood of frames without valid content would overwrite what came before it.
        let garbage = &mut self.ways[place].wire.garbage;
        if tracer.is_on() && !(verdict.is_invalid() && garbage.is_logged_enough(dequeued)) {
            let times = (at.unwrap_or(dequeued), dequeued);
            tracer.received(port, times, octets, verdict, &self.node, fragment);
        }
        match &received {
            Some(Delivered::Fragment(delivery)) => {
                if let Some(index) = self.rings.deliver(delivery, octets, dequeued, &self.node) {
                    self.rings.note_unread(index, &mut self.node, tracer);
                }
            }
            Some(Delivered::Message(message)) => self.rings.sockets.deliver(port, message, octets),
            None => {}
        }
        (verdict, handled)
    }
}
