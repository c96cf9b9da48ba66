//! A turn of the data thread: a look at the device and at the token, then a bounded amount of other work.
//!
//! Limits bound it: frames taken and sent, commands heard, octets copied for programs (`sockets`), and the
//! time after which no frame is sent. The remaining work waits for the next turn, which looks at the device
//! first, and which waits a moment where the work is not for the wire. Another thread unmaps memory.

use super::ease::PAUSE;
use super::host::GateOpening;
use super::{
    BACKLOG_AGAIN, COMMANDS, DEVICE, DOORBELL, Data, FRAMES_OUT_A_TURN, GATE, LEAVE_WAIT, LLC, Measured,
    READY_MAX, Stopped, behind, system, view,
};
use crate::commands::Note;
use crate::gate::Egress;
use rota_driver::clock::now;
use rota_driver::device::FrameDevice;
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

/// After this time a turn sends no more frames: the next turn looks at the device and the token first.
const TURN_WORK: Span = Span::from_micros(200);

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn turns(&mut self) -> Result<(), Stopped> {
        let mut at = now();
        while let Some(turned) = self.turn(at)? {
            at = turned;
        }
        let was = self.device.mtu();
        self.mtu_changed.map_or(Ok(()), |is| Err(Stopped::Mtu { was, is }))
    }

    /// One turn: a look at the device, and a bounded amount of other work. `at` is the end of the turn
    /// before. Returns the end of this one, or nothing if it was the last.
    pub(super) fn turn(&mut self, at: Instant) -> Result<Option<Instant>, Stopped> {
        let drained = self.drain_from(at)?;
        let armed = self.pause(drained)?;
        let due = self.due();
        let mut ready = [0; READY_MAX];
        let mut count = 0;
        for (place, event) in
            ready.iter_mut().zip(self.poller.wait_from(armed, due).map_err(system("epoll"))?)
        {
            *place = event.token;
            count += 1;
        }
        let ready = &ready[..count];
        let woke = now();
        self.ease.waited(armed, woke);
        self.ease.heard(ready.iter().any(|token| *token >= DOORBELL));
        // Only a timer that was set for later can be late; one that was due already says nothing.
        if due > armed && due < woke {
            self.stalls.on_timer(due, woke);
        }
        self.begin_turn(woke);
        self.hear_again(woke)?;
        // The token first: other ready work can wait for it, but the ring must not wait for that work. A
        // process that was stopped wakes without being told of the frames that wait.
        if ready.contains(&DEVICE) || behind::overslept(due.max(armed), woke) {
            self.receive()?;
        } else {
            self.behind.read_all();
        }
        if self.has_commands || ready.contains(&COMMANDS) {
            self.commands(woke)?;
        }
        for token in ready {
            match *token {
                GATE => self.take_host_frames(woke)?,
                LLC => self.receive_llc()?,
                _ => {}
            }
        }
        self.llc_streams = ready.contains(&LLC);
        self.look_at_rings(woke, ready)?;
        self.rings.looked = at;
        self.look_at_card(woke);
        self.open_gate()?;
        if self.node.deadline() <= woke && self.behind.may_judge() {
            self.node.handle_deadline(woke);
        }
        self.wake_receivers();
        self.wills.renew(&self.node);
        let turned = self.end_turn(woke);
        Ok(self.leaving.is_none_or(|until| woke < until).then_some(turned))
    }

    pub(super) fn begin_turn(&mut self, at: Instant) {
        self.turn_frames = self.own_frames + FRAMES_OUT_A_TURN as u64;
        self.turn_until = at + TURN_WORK;
        self.ease.begin_turn(self.frames_left());
    }

    /// Notes what the turn took. Returns its end.
    fn end_turn(&mut self, woke: Instant) -> Instant {
        let turned = now();
        self.measured.turn_longest = self.measured.turn_longest.max(turned.since(woke));
        // A turn takes microseconds: one of more than a millisecond was taken off its CPU.
        self.stalls.on_timer(woke, turned);
        self.announce_stall(turned);
        self.measured.turns += 1;
        self.tracer.turn(turned, &self.node, &self.stalls);
        while let Some(event) = self.tracer.incident(turned) {
            self.control.say(Note::Incident { event });
        }
        if self.published.is_due(turned) {
            self.look_at_mtu(turned);
            self.measured.refused = self.control.refusals().read();
            let host = self.host_frames();
            let Self { node, device, measured, own_frames, stalls, published, .. } = self;
            let mac = MacAddr(device.mac());
            published.publish(turned, node, mac, |node| view(node, measured, host, *own_frames, stalls));
            self.tell_reports(turned);
            self.state_left_out();
            return now();
        }
        turned
    }

    /// With another MTU this station is another one to its segment: it leaves in good order, and its node
    /// ends with the reason.
    fn look_at_mtu(&mut self, at: Instant) {
        let other = self.published.mtu().filter(|mtu| *mtu != self.device.mtu());
        if self.leaving.is_none() && other.is_some() {
            self.mtu_changed = other;
            self.node.leave(at);
            self.leaving = Some(at + LEAVE_WAIT);
        }
    }

    /// Waits for frames and nothing else, where other threads are to get the CPU; see [`super::ease`].
    /// Returns the end of the wait, or `at` if there was none.
    pub(super) fn pause(&mut self, at: Instant) -> Result<Instant, Stopped> {
        let serves = self.rings.sockets.has_more();
        let is_due =
            self.ease.owes(at, serves) || self.ease.sent_nothing(self.frames_left(), self.leaves_work());
        if !is_due || self.node.link().holds_token(at) {
            return Ok(at);
        }
        let until = self.node.deadline().min(at + PAUSE);
        let _frames = self.wire.wait_from(at, until).map_err(system("epoll"))?;
        let woke = now();
        self.ease.waited(at, woke);
        #[cfg(test)]
        {
            self.ease.pauses += 1;
        }
        Ok(woke)
    }

    /// Frames of this station and of its host that the card has taken so far.
    pub(super) fn frames_left(&self) -> u64 {
        let Measured { no_room, send_failed, .. } = self.measured;
        self.own_frames.saturating_sub(no_room + send_failed) + self.host.left
    }

    /// True if the machines or the sockets have work that the turn had no time for.
    fn leaves_work(&self) -> bool {
        self.has_more || self.rings.sockets.has_more()
    }

    pub(super) fn due(&self) -> Instant {
        if self.has_commands || self.leaves_work() {
            return Instant::ZERO;
        }
        let card = if self.card_wanted { now() + BACKLOG_AGAIN } else { Instant::FAR };
        let gate = self.opening.map_or(Instant::FAR, |_| GateOpening::again(now()));
        self.node.deadline().min(card).min(gate).min(self.leaving.unwrap_or(Instant::FAR))
    }
}
