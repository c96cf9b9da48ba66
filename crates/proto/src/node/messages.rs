//! Link control of a node: one set of sockets, whose messages go over the port on whose segment their station
//! is. A message to all goes over each port, and is over when it is over on all of them.
//!
//! A socket may also be that of one port alone; then no other port has part in it.

use super::{Line, Node};
use crate::io::PortId;
use crate::llc::{LLC_BROADCAST, Llc, LlcBusy, LlcEvent, LlcRequest, MESSAGES_MAX};
use crate::segment::Segment;
use rota_contract::MessageOutcome;
use rota_units::Instant;
use std::collections::VecDeque;

/// A message to all on several ports.
#[derive(Clone, Copy, Debug)]
struct ToAll {
    socket: u8,
    number: u64,
    /// Ports on which it is not over.
    left: usize,
    /// It has left on one of them.
    is_sent: bool,
}

/// The part of link control that all ports share.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    to_all: Vec<ToAll>,
    /// Events of messages whose port is gone.
    orphaned: VecDeque<LlcEvent>,
}

impl Messages {
    pub(super) fn new(ports: usize) -> Self {
        // A node of one port never has any.
        let room = if ports > 1 { MESSAGES_MAX } else { 0 };
        Self { to_all: Vec::with_capacity(room), orphaned: VecDeque::new() }
    }

    pub(super) fn has_event(&self) -> bool {
        !self.orphaned.is_empty()
    }

    /// A port is gone: its messages are over.
    pub(super) fn end_with_port(&mut self, llc: Llc) {
        self.orphaned.extend(llc.end_with_port());
    }

    /// The event as programs are told it: of a message to all one end, and no copy for the sender's own
    /// station but one.
    fn told(&mut self, event: LlcEvent, has_copy: bool) -> Option<LlcEvent> {
        let LlcEvent::Done { socket, number, outcome } = event else {
            return (!has_copy || !matches!(event, LlcEvent::Local { .. })).then_some(event);
        };
        let is_it = |of: &ToAll| (of.socket, of.number) == (socket, number);
        let Some(at) = self.to_all.iter().position(is_it) else { return Some(event) };
        let of = &mut self.to_all[at];
        of.left -= 1;
        of.is_sent |= outcome == MessageOutcome::Sent;
        if of.left > 0 {
            return None;
        }
        let outcome = if of.is_sent { MessageOutcome::Sent } else { outcome };
        self.to_all.swap_remove(at);
        Some(LlcEvent::Done { socket, number, outcome })
    }

    fn forget(&mut self, socket: u8) {
        self.to_all.retain(|of| of.socket != socket);
        self.orphaned.retain(|event| event.socket() != socket);
    }
}

impl Node {
    /// Link control of the first port, to look at.
    pub fn llc(&self) -> &Llc {
        &self.lines[0].llc
    }

    /// Link control of a port, to look at; none where it is gone.
    pub fn llc_at(&self, port: PortId) -> Option<&Llc> {
        Some(&self.lines[self.place(port)?].llc)
    }

    /// A program has this socket of the first port from now on.
    pub fn llc_open(&mut self, socket: u8) {
        self.assert_drained();
        self.lines[0].llc.open(socket);
    }

    /// A program has this socket from now on, for stations of all ports.
    pub fn llc_open_on_all(&mut self, socket: u8) {
        self.assert_drained();
        self.lines.iter_mut().for_each(|line| line.llc.open(socket));
    }

    /// Nobody has this socket any more; what it still wanted sent is given up.
    pub fn llc_close(&mut self, now: Instant, socket: u8) {
        self.assert_drained();
        self.messages.forget(socket);
        self.lines.iter_mut().for_each(|line| line.tell_llc(now, |llc, _| llc.close(now, socket)));
    }

    /// A message to be sent; what becomes of it comes as an event.
    ///
    /// # Errors
    /// [`LlcBusy`]: offer it again when an event has told of another one's end.
    pub fn llc_send(&mut self, now: Instant, request: &LlcRequest) -> Result<(), LlcBusy> {
        self.assert_drained();
        if let [only] = &mut self.lines[..] {
            return only.tell_llc(now, |llc, segment| llc.send(now, request, segment));
        }
        let has_it = |line: &&Line| line.llc.is_open(request.socket);
        let several = self.lines.iter().filter(has_it).count();
        if several > 1 && request.to.node == LLC_BROADCAST && !request.ack {
            return self.send_to_all(now, request, several);
        }
        let at = self.line_to(request);
        self.lines[at].tell_llc(now, |llc, segment| llc.send(now, request, segment))
    }

    /// All ports take it, or none does: half of them must not send it again.
    fn send_to_all(&mut self, now: Instant, request: &LlcRequest, ports: usize) -> Result<(), LlcBusy> {
        let LlcRequest { socket, number, .. } = *request;
        let is_full = self.messages.to_all.len() == MESSAGES_MAX;
        let mut lines = self.lines.iter_mut().filter(|line| line.llc.is_open(socket));
        if is_full || lines.any(|line| !line.llc.has_room()) {
            return Err(LlcBusy);
        }
        self.messages.to_all.push(ToAll { socket, number, left: ports, is_sent: false });
        for line in self.lines.iter_mut().filter(|line| line.llc.is_open(socket)) {
            line.tell_llc(now, |llc, segment| llc.send(now, request, segment))?;
        }
        Ok(())
    }

    /// The line over which a message goes: the one that has the station, a live one first; else the first one
    /// that has the socket, which says why the message cannot go.
    fn line_to(&self, request: &LlcRequest) -> usize {
        let has_it = |line: &&(usize, &Line)| line.1.llc.is_open(request.socket);
        let lines: [Option<(usize, u8)>; super::PORTS_MAX] = std::array::from_fn(|at| {
            let line = Some((at, self.lines.get(at)?)).filter(|line| has_it(&line))?;
            Some((at, line.1.llc.distance(request.to.node, Segment::of(&line.1.port))))
        });
        lines.into_iter().flatten().min_by_key(|(at, distance)| (*distance, *at)).map_or(0, |(at, _)| at)
    }

    /// Gives up whatever a socket still wants sent; nothing is told of it.
    pub fn llc_cancel(&mut self, now: Instant, socket: u8) {
        self.assert_drained();
        self.messages.forget(socket);
        self.lines.iter_mut().for_each(|line| line.tell_llc(now, |llc, _| llc.cancel(now, socket)));
    }

    /// The next event of a message, after [`crate::Output::Event`]: take events until there are none.
    pub fn next_llc_event(&mut self) -> Option<LlcEvent> {
        if let [only] = &mut self.lines[..]
            && !self.messages.has_event()
            && self.messages.to_all.is_empty()
        {
            return only.llc.next_event();
        }
        loop {
            let (at, event) = self.raw_llc_event()?;
            // The first port that has the socket tells of the copy for this station.
            let first = self.lines[..at].iter().any(|line| line.llc.is_open(event.socket()));
            if let Some(event) = self.messages.told(event, first) {
                return Some(event);
            }
        }
    }

    fn raw_llc_event(&mut self) -> Option<(usize, LlcEvent)> {
        let orphan = self.messages.orphaned.pop_front().map(|event| (0, event));
        let of = |(at, line): (usize, &mut Line)| Some((at, line.llc.next_event()?));
        orphan.or_else(|| self.lines.iter_mut().enumerate().find_map(of))
    }
}
