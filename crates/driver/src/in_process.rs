//! A segment inside one process: a full-duplex store-and-forward switch whose ports are frame devices.
//!
//! Each port has a queue on the way in and one on the way out, served first in first out at the segment's
//! rate. No thread turns the switch: when a frame leaves is known when it enters, so whoever touches the
//! segment brings it up to date, and each port's timer fires when its next frame has arrived in full.

use crate::clock;
use crate::device::{
    Backlog, DeviceCounters, DeviceError, ETHERNET_HEADER, Evidence, FrameDevice, ReceivedFrame, Stamp,
    Transmit,
};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rota_units::{BitRate, Instant, Octets, Span};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Preamble, check sequence and gap around each frame on the wire.
const WIRE_OVERHEAD: usize = 24;
/// The shortest frame without its check sequence.
const FRAME_MIN: usize = 60;

/// What a segment is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    /// The rate of each port in each direction; `None` for no shaping at all.
    pub rate: Option<BitRate>,
    /// Octets that may wait before each port, in each direction.
    pub port_queue: Octets,
}

/// A switch inside this process. Clones are the same switch.
#[derive(Clone, Debug)]
pub struct Segment {
    shared: Arc<Mutex<Switch>>,
}

/// One port of a [`Segment`], usable from any thread.
#[derive(Debug)]
pub struct InProcessDevice {
    shared: Arc<Mutex<Switch>>,
    port: usize,
    mac: [u8; 6],
    mtu: u16,
    timer: Arc<TimerFd>,
    counters: DeviceCounters,
}

#[derive(Debug)]
struct Switch {
    spec: SegmentSpec,
    ports: Vec<Port>,
    /// Frames on their way into the switch, the earliest first.
    entering: BinaryHeap<Reverse<Entering>>,
    entered: u64,
    /// Frame buffers that are not in use: after a while nothing is allocated any more.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Port {
    mac: [u8; 6],
    timer: Arc<TimerFd>,
    up: bool,
    /// Set when the link went down, until the device has told its user.
    went_down: bool,
    /// When the last frame handed over will be in the switch.
    way_in_free: Instant,
    /// When the last frame for this port will have arrived.
    way_out_free: Instant,
    arriving: VecDeque<Arriving>,
    waiting_octets: u64,
    drops: u64,
    armed: Instant,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entering {
    at: Instant,
    /// Breaks ties in the order of sending.
    number: u64,
    from: usize,
    frame: Vec<u8>,
}

#[derive(Debug)]
struct Arriving {
    at: Instant,
    frame: Vec<u8>,
}

impl Segment {
    /// A switch without ports.
    pub fn new(spec: SegmentSpec) -> Self {
        let switch =
            Switch { spec, ports: Vec::new(), entering: BinaryHeap::new(), entered: 0, spare: Vec::new() };
        Self { shared: Arc::new(Mutex::new(switch)) }
    }

    /// A new port with the station `mac` behind it, for frames of up to `mtu` octets of payload.
    ///
    /// # Errors
    /// The kernel has no descriptor for the port's timer.
    pub fn port(&self, mac: [u8; 6], mtu: u16) -> io::Result<InProcessDevice> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Arc::new(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        let mut switch = lock(&self.shared);
        let port = switch.ports.len();
        switch.ports.push(Port {
            mac,
            timer: Arc::clone(&timer),
            up: true,
            went_down: false,
            way_in_free: Instant::ZERO,
            way_out_free: Instant::ZERO,
            arriving: VecDeque::with_capacity(256),
            waiting_octets: 0,
            drops: 0,
            armed: Instant::FAR,
        });
        let shared = Arc::clone(&self.shared);
        Ok(InProcessDevice { shared, port, mac, mtu, timer, counters: DeviceCounters::default() })
    }
}

/// A panic of another thread leaves the switch consistent between frames, so the lock's poison is ignored.
fn lock(shared: &Mutex<Switch>) -> MutexGuard<'_, Switch> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    fn wire_time(&self, len: usize) -> Span {
        let octets = Octets::new((len.max(FRAME_MIN) + WIRE_OVERHEAD) as u64);
        self.spec.rate.map_or(Span::ZERO, |rate| rate.span_of_up(octets))
    }

    fn transmit(&mut self, from: usize, frame: &[u8], now: Instant) -> Transmit {
        let start = self.ports[from].way_in_free.max(now);
        if let Some(rate) = self.spec.rate {
            let waiting = rate.octets_in_down(start.since(now)) + Octets::new(frame.len() as u64);
            if waiting > self.spec.port_queue {
                return Transmit::NoRoom;
            }
        }
        let at = start + self.wire_time(frame.len());
        self.ports[from].way_in_free = at;
        let mut copy = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(2_048));
        copy.clear();
        copy.extend_from_slice(frame);
        let number = self.entered;
        self.entered += 1;
        self.entering.push(Reverse(Entering { at, number, from, frame: copy }));
        if at <= now {
            self.advance(now);
        } else {
            // The receivers' timers: none of these frames can have arrived before it is in the switch.
            for port in self.receivers(from, frame).filter(|port| *port != from) {
                self.arm(port, at);
            }
        }
        Transmit::Sent
    }

    /// The ports that a frame from `from` goes to: a group address means all others.
    fn receivers(&self, from: usize, frame: &[u8]) -> std::ops::Range<usize> {
        if frame[0] & 1 == 1 {
            return 0..self.ports.len();
        }
        match self.ports.iter().position(|port| port.mac[..] == frame[..6]) {
            Some(port) if port != from => port..port + 1,
            _ => 0..0,
        }
    }

    /// Lets every frame that has entered by `now` join the queues of its receivers, in the order of entering.
    fn advance(&mut self, now: Instant) {
        while self.entering.peek().is_some_and(|Reverse(first)| first.at <= now) {
            let Some(Reverse(Entering { at, from, frame, .. })) = self.entering.pop() else {
                return;
            };
            for port in self.receivers(from, &frame) {
                if port != from {
                    self.enqueue(port, at, &frame);
                }
            }
            self.spare.push(frame);
        }
    }

    fn enqueue(&mut self, to: usize, at: Instant, frame: &[u8]) {
        let wire_time = self.wire_time(frame.len());
        let len = frame.len() as u64;
        let waiting = match self.spec.rate {
            Some(rate) => rate.octets_in_down(self.ports[to].way_out_free.since(at)).get(),
            None => self.ports[to].waiting_octets,
        };
        if !self.ports[to].up || waiting + len > self.spec.port_queue.get() {
            self.ports[to].drops += 1;
            return;
        }
        let mut copy = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(2_048));
        copy.clear();
        copy.extend_from_slice(frame);
        let port = &mut self.ports[to];
        let arrived = port.way_out_free.max(at) + wire_time;
        port.way_out_free = arrived;
        port.waiting_octets += len;
        port.arriving.push_back(Arriving { at: arrived, frame: copy });
        let first = port.arriving[0].at;
        self.arm(to, first);
    }

    /// Sees to it that the port's timer fires at `at` or before.
    fn arm(&mut self, port: usize, at: Instant) {
        let port = &mut self.ports[port];
        if at < port.armed {
            port.armed = at;
            set_timer(&port.timer, at);
        }
    }

    fn receive(
        &mut self,
        to: usize,
        buf: &mut [u8],
        now: Instant,
    ) -> Result<Option<ReceivedFrame>, DeviceError> {
        self.advance(now);
        let port = &mut self.ports[to];
        if port.went_down {
            port.went_down = false;
            return Err(DeviceError::LinkDown);
        }
        if port.arriving.front().is_none_or(|first| first.at > now) {
            self.rearm(to);
            return Ok(None);
        }
        let Some(Arriving { at, frame }) = port.arriving.pop_front() else {
            return Ok(None);
        };
        let len = frame.len();
        port.waiting_octets -= len as u64;
        if port.arriving.front().is_none_or(|next| next.at > now) {
            self.rearm(to);
        }
        let room = buf.len();
        let fits = buf.get_mut(..len).map(|part| part.copy_from_slice(&frame));
        let broadcast = frame[0] & 1 == 1;
        self.spare.push(frame);
        fits.ok_or(DeviceError::Truncated { room })?;
        // An unshaped frame arrives when it is sent, possibly after the caller of this read its clock.
        Ok(Some(ReceivedFrame { len, at, stamp: Stamp::Kernel, dequeued: now.max(at), broadcast }))
    }

    /// Sets the port's timer anew: to its next arrival, or to the next frame that may be for it.
    fn rearm(&mut self, to: usize) {
        let entering = self.entering.iter().map(|Reverse(frame)| frame);
        let coming = entering
            .filter(|e| e.from != to && self.receivers(e.from, &e.frame).contains(&to))
            .map(|e| e.at)
            .min();
        let port = &mut self.ports[to];
        let next = port.arriving.front().map(|first| first.at).into_iter().chain(coming).min();
        port.armed = next.unwrap_or(Instant::FAR);
        set_timer(&port.timer, port.armed);
    }

    fn set_link(&mut self, of: usize, up: bool) {
        let Self { ports, spare, .. } = self;
        let port = &mut ports[of];
        if port.up && !up {
            port.went_down = true;
            port.waiting_octets = 0;
            spare.extend(port.arriving.drain(..).map(|arriving| arriving.frame));
            // A user who waits must learn of it, as AF_PACKET tells with ENETDOWN.
            port.armed = Instant::ZERO;
            set_timer(&port.timer, Instant::ZERO);
        }
        port.up = up;
    }
}

fn set_timer(timer: &TimerFd, at: Instant) {
    // Zero would disarm; any other time that has passed fires at once.
    let at = at.max(Instant::from_nanos(1));
    let done = if at == Instant::FAR {
        timer.unset()
    } else {
        timer.set(Expiration::OneShot(clock::timespec(at)), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    };
    debug_assert!(done.is_ok(), "a timer of our own takes any valid time");
}

impl InProcessDevice {
    /// Unplugs or plugs this port's cable. Frames that wait for it are lost.
    pub fn set_link(&mut self, up: bool) {
        lock(&self.shared).set_link(self.port, up);
    }

    fn check_length(&self, len: usize) -> Result<(), DeviceError> {
        let max = usize::from(self.mtu) + ETHERNET_HEADER;
        if len > max {
            return Err(DeviceError::FrameTooLong { len, max });
        }
        if len < ETHERNET_HEADER { Err(DeviceError::FrameTooShort { len }) } else { Ok(()) }
    }
}

impl Drop for InProcessDevice {
    fn drop(&mut self) {
        // The port stays, so that the numbers of the others hold, but nothing is kept for it any more.
        lock(&self.shared).set_link(self.port, false);
    }
}

impl FrameDevice for InProcessDevice {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn receive(&mut self, buf: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        let result = {
            let mut switch = lock(&self.shared);
            switch.receive(self.port, buf, clock::now())
        };
        match &result {
            Ok(Some(_)) => self.counters.received += 1,
            Err(DeviceError::LinkDown) => self.counters.link_down += 1,
            Err(DeviceError::Truncated { .. }) => self.counters.truncated += 1,
            _ => {}
        }
        result
    }

    fn transmit(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        self.check_length(frame.len())?;
        let mut switch = lock(&self.shared);
        if !switch.ports[self.port].up {
            self.counters.link_down += 1;
            return Err(DeviceError::LinkDown);
        }
        let result = switch.transmit(self.port, frame, clock::now());
        match result {
            Transmit::Sent => self.counters.sent += 1,
            Transmit::NoRoom => self.counters.no_room += 1,
        }
        Ok(result)
    }

    fn backlog(&mut self) -> Backlog {
        if lock(&self.shared).ports[self.port].way_in_free > clock::now() {
            return Backlog::Pending;
        }
        Backlog::Empty { evidence: Evidence::OwnQueue }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.timer.as_fd())
    }

    fn link_up(&mut self) -> bool {
        lock(&self.shared).ports[self.port].up
    }

    fn counters(&mut self) -> DeviceCounters {
        self.counters.receive_drops = lock(&self.shared).ports[self.port].drops;
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poller::{Poller, Trigger};

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const C: [u8; 6] = [2, 0, 0, 0, 0, 3];

    fn frame(to: [u8; 6], len: usize) -> Vec<u8> {
        let mut frame = vec![0; len];
        frame[..6].copy_from_slice(&to);
        frame
    }

    fn segment(rate: Option<BitRate>, queue: u64) -> (InProcessDevice, InProcessDevice, InProcessDevice) {
        let segment = Segment::new(SegmentSpec { rate, port_queue: Octets::new(queue) });
        let port = |mac| segment.port(mac, 1_500).unwrap();
        (port(A), port(B), port(C))
    }

    fn await_one(device: &mut InProcessDevice) -> ReceivedFrame {
        let mut poller = Poller::new(1).unwrap();
        poller.add(device.wait_fd().unwrap(), 0, Trigger::Level).unwrap();
        let limit = clock::now() + Span::from_millis(5_000);
        let mut buf = [0; 1_514];
        while clock::now() < limit {
            if let Some(received) = device.receive(&mut buf).unwrap() {
                return received;
            }
            let _ = poller.wait(limit).unwrap();
        }
        panic!("no frame came within five seconds");
    }

    #[test]
    fn two_senders_share_the_receivers_port() {
        // 1,000,000 ns per frame: 1,250 octets with overhead at 10 Mbit/s.
        let (mut a, mut b, mut c) = segment(Some(BitRate::from_mbit(10)), 100_000);
        let start = clock::now();
        for _ in 0..2 {
            a.transmit(&frame(C, 1_226)).unwrap();
            b.transmit(&frame(C, 1_226)).unwrap();
        }
        let arrivals: Vec<Instant> = (0..4).map(|_| await_one(&mut c).at).collect();
        assert!(arrivals[0] >= start + Span::from_millis(2), "a frame crosses two links");
        for pair in arrivals.windows(2) {
            let gap = pair[1].since(pair[0]);
            assert!(gap >= Span::from_millis(1), "a port carries one frame at a time, not one after {gap}");
        }
        assert_eq!(a.backlog(), Backlog::Empty { evidence: Evidence::OwnQueue });
    }

    #[test]
    fn a_full_queue_refuses_the_sender_and_drops_for_the_receiver() {
        // So slow (8 s a frame) that no stall of the host lets a frame leave meanwhile.
        let (mut a, _b, mut c) = segment(BitRate::new(1_000), 4_000);
        let mut taken = 0;
        while a.transmit(&frame(C, 1_000)).unwrap() == Transmit::Sent {
            taken += 1;
        }
        assert_eq!(taken, 3, "frames of 1,000 octets, with what surrounds them, in a queue of 4,000");
        assert_eq!((a.backlog(), a.counters().no_room), (Backlog::Pending, 1));
        let (mut d, _e, mut f) = segment(None, 4_000);
        for _ in 0..6 {
            assert_eq!(d.transmit(&frame(C, 1_000)).unwrap(), Transmit::Sent);
        }
        assert_eq!(f.counters().receive_drops, 2);
        assert_eq!(c.counters().receive_drops, 0);
    }

    #[test]
    fn buffers_are_used_again() {
        let (mut a, _b, mut c) = segment(None, 100_000);
        let mut buf = [0; 1_514];
        for _ in 0..1_000 {
            a.transmit(&frame(C, 100)).unwrap();
            assert!(c.receive(&mut buf).unwrap().is_some());
        }
        assert!(lock(&a.shared).spare.len() <= 2);
    }
}
