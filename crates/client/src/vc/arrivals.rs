//! The receiving end of a guaranteed circuit, and those that wait for a listener.

use super::watch::{Any, Watch};
use super::{Report, VcError, channel_service};
use crate::node::listen_by;
use crate::now;
use crate::reattach::ListenOrigin;
use crate::receive::{AcceptError, Listener, Received, RecvChannel};
use crate::session::Deadline;
use rota_contract::{ChannelId, FlowName};
use rota_proto::vc::{CARRIED_WINDOW, CarriedSink};
use rota_shm::control::{CircuitTerms, ControlName};
use rota_shm::{CellPart, ChannelState, CircuitEnd};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, BorrowedFd};

/// Units that the memory of a receiver holds.
const BUFFERS: u16 = 32;
/// A channel that sends nothing for so long behind its opening is no circuit.
const GREETING: Span = Span::from_millis(3_000);

pub(super) struct Arrivals {
    channel: RecvChannel,
    sink: CarriedSink,
    watch: Watch,
    unit: Vec<u8>,
    end: Option<CircuitEnd>,
}

impl Arrivals {
    fn new(channel: RecvChannel) -> Result<Self, VcError> {
        let (session, _) = channel.parts();
        let watch = Watch::new(session, channel.id())?;
        let sink = CarriedSink::new(channel.contract().unit_octets_max);
        Ok(Self { channel, sink, watch, unit: Vec::new(), end: None })
    }

    /// Takes units from the channel until there is something for the program.
    pub(super) fn pump(&mut self) {
        while self.end.is_none() && self.sink.peek().is_none() {
            match self.channel.try_recv(&mut self.unit) {
                Ok(Some(Received::Unit(unit))) if unit.complete => self.sink.handle(unit.number, &self.unit),
                // A gap of the numbers tells of it.
                Ok(Some(Received::Unit(_))) => {}
                Ok(Some(Received::End(end))) => {
                    if let Some(units) = end.units_sent {
                        self.sink.all_sent(units);
                    }
                    self.end = Some(CircuitEnd::Finished);
                }
                Ok(None) => return,
                Err(_) => return self.end = self.end_of_board(),
            }
        }
    }

    fn end_of_board(&self) -> Option<CircuitEnd> {
        match self.channel.state() {
            ChannelState::Closed(cause) => Some(CircuitEnd::of_channel(cause)),
            _ => None,
        }
    }

    /// How it has ended, if it has. Octets that came before may still be read.
    pub(super) fn end(&self) -> Option<CircuitEnd> {
        self.end.or_else(|| self.end_of_board())
    }

    /// The same once all that came before was read.
    pub(super) fn end_behind(&self) -> Option<CircuitEnd> {
        self.end
    }

    /// The next TPDU's octets, to the front of `into`.
    pub(super) fn next_part(&mut self, into: &mut [u8]) -> Option<CellPart> {
        self.pump();
        let lost = u32::try_from(self.sink.gap()).unwrap_or(u32::MAX);
        let (piece, data) = self.sink.peek()?;
        into[..data.len()].copy_from_slice(data);
        let part = CellPart { octets: data.len(), last: piece.last, lost };
        self.sink.take();
        Some(part)
    }

    /// True if a TPDU is there, or a part of one.
    pub(super) fn has_next(&self) -> bool {
        self.sink.peek().is_some() || self.channel.parts().1.ring.has_next()
    }

    /// True if the program has something to take, or to hear.
    pub(super) fn is_due(&self) -> bool {
        self.sink.peek().is_some() || self.end.is_some()
    }

    pub(super) fn lost(&self) -> Report {
        let losses = self.sink.losses();
        Report { messages: losses.messages, tpdus: losses.tpdus + losses.dropped }
    }

    pub(super) fn channel(&self) -> &RecvChannel {
        &self.channel
    }

    pub(super) fn carried(&self) -> (ChannelId, Span) {
        (self.channel.id(), Span::from_nanos(self.channel.contract().bound_ns))
    }

    pub(super) fn from(&self) -> String {
        let peer = self.channel.peer();
        if peer.name.is_empty() { peer.mac.clone() } else { peer.name.clone() }
    }

    /// The agreement, once its first unit has come.
    pub(super) fn terms(&self, service: u32) -> Option<CircuitTerms> {
        let stream = self.sink.stream()?;
        Some(CircuitTerms {
            circuit: self.channel.id().0,
            service: self.sink.service().unwrap_or(service),
            window: CARRIED_WINDOW,
            octets: u32::from(self.sink.tpdu()),
            error_control: false,
            stream,
            flow: FlowName::Channel,
        })
    }

    /// It is no circuit, or over before it was one.
    fn is_stranger(&self) -> bool {
        self.end.is_some() || self.sink.bad() > 0 || self.sink.stream().is_some()
    }

    /// Before a wait for its descriptor: the octets on its bell.
    pub(super) fn arm(&self) -> usize {
        let octets = self.watch.octets();
        let (session, sink) = self.channel.parts();
        let _ = session.discard();
        sink.arm();
        octets
    }

    /// There is nothing to do now, or before `until`.
    pub(super) fn rest(&self, octets: usize, until: Option<Instant>) {
        self.watch.rest(octets, until);
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

/// The guaranteed circuits that come to a listener. A channel is one once it has greeted.
pub(super) struct Coming {
    control: ControlName,
    service: u32,
    backlog: usize,
    listener: Option<Listener>,
    /// Those that have not been accepted, and until when each may keep its greeting.
    all: Vec<(Arrivals, Instant)>,
}

impl Coming {
    /// None where no guaranteed circuit leads to that service.
    pub(super) fn listen(
        control: &ControlName,
        service: u32,
        backlog: u16,
        any: &Any,
    ) -> Result<Option<Self>, VcError> {
        if channel_service(service).is_none() {
            return Ok(None);
        }
        let (control, backlog) = (control.clone(), usize::from(backlog));
        let mut coming = Self { control, service, backlog, listener: None, all: Vec::new() };
        coming.listen_again(any)?;
        Ok(Some(coming))
    }

    /// A listener takes one channel: the next one needs another.
    fn listen_again(&mut self, any: &Any) -> Result<(), VcError> {
        let Some(service) = channel_service(self.service).filter(|_| self.all.len() < self.backlog) else {
            return Ok(());
        };
        if self.listener.is_none() {
            let (control, from, buffers) = (self.control.clone(), None, BUFFERS);
            let origin = ListenOrigin { control, from, buffers, asks: false, invites: None, apart: false };
            let listener = listen_by(origin, service, Deadline::NONE)?;
            any.add(&listener)?;
            self.listener = Some(listener);
        }
        Ok(())
    }

    /// Takes the channels that have come.
    fn take_channels(&mut self, any: &Any) -> Result<(), VcError> {
        loop {
            // Where there is no room for one channel more, other circuits come all the same.
            let _ = self.listen_again(any);
            let Some(listener) = &mut self.listener else { return Ok(()) };
            let came = match listener.accept(Span::ZERO) {
                Err(AcceptError::TimedOut { .. }) => return Ok(()),
                Err(AcceptError::NodeGone) => return Err(VcError::NodeGone),
                came => came,
            };
            // The connection is the channel's from now on.
            if let Some(listener) = self.listener.take() {
                any.remove(&listener);
            }
            // One whose memory cannot be used ends here, and its sender is told.
            if let Ok(channel) = came {
                let arrivals = Arrivals::new(channel)?;
                any.add(&arrivals)?;
                self.all.push((arrivals, now() + GREETING));
            }
        }
    }

    /// The next circuit, if one is there; never waits. Otherwise `any` is readable when there is news.
    pub(super) fn next(&mut self, any: &Any) -> Result<Option<(Arrivals, CircuitTerms)>, VcError> {
        self.take_channels(any)?;
        let mut place = 0;
        while let Some((arrivals, until)) = self.all.get_mut(place) {
            let octets = arrivals.arm();
            arrivals.pump();
            let terms = arrivals.terms(self.service).filter(|terms| terms.service == self.service);
            let is_none = terms.is_none() && (arrivals.is_stranger() || *until <= now());
            if terms.is_none() && !is_none {
                arrivals.rest(octets, Some(*until));
                place += 1;
                continue;
            }
            let (arrivals, _) = self.all.remove(place);
            any.remove(&arrivals);
            if let Some(terms) = terms {
                return Ok(Some((arrivals, terms)));
            }
        }
        Ok(None)
    }
}
