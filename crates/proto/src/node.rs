//! The machines of one host, composed: one line for each port, and what the lines share.
//!
//! A line is a port with the machines that live and die with it (`line.rs`). Its channels, reports and
//! messages are those of its segment, so that an event of a medium or a signal that comes in reaches nothing
//! of another port. The lines share the listeners of this host's programs: each line knows all of them, and
//! one that has taken a channel on one line is taken back from the others.
//!
//! No frame is forwarded between ports. A packet of a channel across segments goes on in a share of another
//! port (`node/hops.rs`).

mod across;
mod apart;
pub(crate) mod carry;
mod circuits;
mod cpu;
pub(crate) mod detail;
mod fan;
mod holdings;
mod hops;
mod line;
mod messages;
mod named;
mod offers;
mod peers;
mod ports;
mod work;

use crate::across::Across;
use crate::channels::{ChannelEvent, Listener, OpenRequest, RequestError, ResizeError, Shortage, Stated};
use crate::circuits::CircuitEvent;
use crate::io::{ChannelId, Delivery, Disposition, FrameBuf, FrameVerdict, Input, Output, PortId, Way};
use crate::port::{Medium, Port};
use crate::report::{HostSigns, Reports};
use crate::rtip::table::Table;
use crate::segment::Segment;
use crate::settings::Settings;
pub use across::{Beyond, ReceiverDetail};
pub use apart::Facing;
pub use circuits::CircuitOpenError;
use cpu::Cpu;
pub use cpu::CpuStatus;
pub use detail::ChannelDetail;
pub use holdings::Holdings;
use line::Line;
use messages::Messages;
use peers::Route;
pub use peers::{Found, NotFound};
pub use ports::{PORTS_MAX, PortSpec, PortsError};
use rota_contract::{AskedChange, AskedTerms, CloseCause, Granted, NodeId, Tally, Unread};
use rota_medium::door::{self, Deadline, Identity};
use rota_medium::rether::Rether;
use rota_units::{Instant, Span};
use rota_wire::{ChannelReport, Key, MacAddr, ReportHead};
use std::collections::VecDeque;
use work::Turns;

/// The timer that a node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timer {
    /// One of a port, or of its medium.
    Port(PortId, door::Timer),
    /// A channel of this port repeats itself, or gives up.
    Channels(PortId),
    /// A message of this port repeats itself, or gives up.
    LinkControl(PortId),
    /// An end of a circuit of this port repeats itself, or gives up.
    Circuits(PortId),
    /// The next report of this port is due.
    Reports(PortId),
    /// A packet of a channel across segments becomes eligible on this port.
    Regulator(PortId),
    /// A channel across segments waits for other nodes, or for its last packet.
    Across,
}

/// The machines of one host.
#[derive(Clone, Debug)]
pub struct Node {
    /// The ports that are there, the first one first. Never empty.
    lines: Vec<Line>,
    turns: Turns,
    /// Events of channels whose port is gone.
    orphaned: VecDeque<(PortId, ChannelEvent)>,
    messages: Messages,
    /// Circuits whose port is gone.
    lost_circuits: VecDeque<CircuitEvent>,
    /// The ways of channels across segments through this node.
    hops: Table,
    /// The channels across segments, where this node takes part in them.
    across: Option<Box<Across>>,
    cpu: Cpu,
    /// The newest poll answered with something to do, so that another one must follow.
    is_draining: bool,
}

impl Node {
    /// A station of one port that begins to look for its segment. `secret` is the segment's, `seed` must
    /// differ at each boot.
    pub fn new(now: Instant, identity: Identity, secret: &Key, settings: Settings, seed: u64) -> Self {
        Self::of_lines(vec![Line::new(now, PortId(0), identity, secret, settings, seed)])
    }

    /// The one rule: nothing is handled between two polls of one drain. The work that an output calls for
    /// waits for the drain's end, or its effects would overtake the outputs that are still to come.
    fn assert_drained(&self) {
        debug_assert!(!self.is_draining, "handled amid a drain: poll until `None` first, or break off");
    }

    /// Ends a drain whose caller has no budget left for it: the remaining outputs come with later polls.
    /// Until then they wait behind whatever is handled, so a caller without such a limit polls until `None`.
    pub fn break_off(&mut self) {
        self.is_draining = false;
    }

    /// One frame, request or indication. One for a port that is gone does nothing.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) -> Disposition {
        self.assert_drained();
        let line = match input {
            Input::Frame { port, .. } | Input::CardEmpty { port } | Input::HostFrame { port, .. } => {
                self.place(port)
            }
            Input::UnitReady { channel, .. } => Some(self.place_of(self.hops.hop_of(channel))),
        };
        if let Input::UnitReady { channel, unit } = &input
            && self.hops.fans.has(*channel)
        {
            self.offer_to_all(now, *channel, *unit);
            return Disposition::default();
        }
        let Some(at) = line else {
            return Disposition { verdict: FrameVerdict::Foreign, received: None };
        };
        if self.is_foreign_unit(&input) {
            return Disposition::default();
        }
        let input = match input {
            Input::UnitReady { channel, unit } => {
                Input::UnitReady { channel: self.hops.hop_of(channel), unit }
            }
            input => input,
        };
        let (mut disposition, packet) = self.lines[at].handle(now, input);
        if let Some(packet) = packet {
            disposition = self.on_packet(now, at, &packet);
        }
        self.share_listeners(at);
        self.settle_hops(now);
        self.carry_across(now);
        disposition
    }

    /// A listener that has taken a channel on one line takes none on another.
    fn share_listeners(&mut self, at: usize) {
        let Some(taken) = self.lines[at].channels.take_taken() else { return };
        let others = self.lines.iter_mut().enumerate().filter(|(other, _)| *other != at);
        others.for_each(|(_, line)| line.channels.unlisten(taken));
    }

    /// Timers. Harmless when early.
    pub fn handle_deadline(&mut self, now: Instant) {
        self.assert_drained();
        self.lines.iter_mut().for_each(|line| line.handle_deadline(now));
        self.hops.handle_deadline(now);
        self.settle_hops(now);
        self.tick_across(now);
    }

    /// The next thing to do; `None` when drained. Frames are written into `frame`. Until then nothing else is
    /// handled: a debug build panics.
    pub fn poll(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        let mut output = self.next_output(now, frame);
        while self.settle_hops(now) && output.is_none() {
            // A share that has just been given back has something to say.
            output = self.next_output(now, frame);
        }
        let output = output.or_else(|| self.event());
        self.is_draining = output.is_some();
        output
    }

    /// The ports take turns, so that none waits for another one's whole backlog.
    fn next_output(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        while self.hops.has_kept() {
            if self.hops.next_kept(now, frame.bytes) {
                return Some(Output::Kept);
            }
        }
        if !self.hops.fans.has_sources() {
            return self.output_of_lines(now, frame);
        }
        if let Some(over) = self.hops.fans.next_over() {
            return Some(over);
        }
        // A unit that one hop has sent may be another one's to send yet: the next output is asked for.
        while let Some(output) = self.output_of_lines(now, frame) {
            if let Some(output) = self.hops.fans.merge(output) {
                return Some(output);
            }
        }
        None
    }

    fn output_of_lines(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        if let [only] = &mut self.lines[..] {
            return only.poll(now, frame);
        }
        for _ in 0..self.lines.len() {
            let output = self.lines[self.turns.next(now)].poll(now, frame);
            self.turns.done(now, output.is_some());
            if output.is_some() {
                return output;
            }
        }
        None
    }

    fn event(&self) -> Option<Output> {
        let is_told = self.messages.has_event() || self.has_event_across();
        let is_told = is_told || !self.lost_circuits.is_empty();
        let has_event = !self.orphaned.is_empty() || is_told || self.lines.iter().any(Line::has_event);
        has_event.then_some(Output::Event)
    }

    /// The fragment of the newest [`Output::Kept`].
    pub const fn take_kept(&mut self) -> Option<Delivery> {
        self.hops.take_kept()
    }

    /// When to call [`Self::handle_deadline`].
    pub fn deadline(&self) -> Instant {
        self.timer().at
    }

    /// The same with the timer that wants it, and its port.
    pub fn timer(&self) -> Deadline<Timer> {
        let timers = self.lines.iter().map(Line::timer);
        let first = timers.reduce(Deadline::or).expect("a node has a port");
        let waits = !self.orphaned.is_empty()
            || !self.lost_circuits.is_empty()
            || self.messages.has_event()
            || self.hops.has_event();
        let at = if waits { Instant::ZERO } else { first.at };
        let across = self.across.as_ref().map_or(Instant::FAR, |across| across.deadline());
        let across = across.min(self.hops.deadline());
        Deadline { at, ..first }.or(Deadline::new(across, Timer::Across))
    }

    /// What happened to channels, after [`Output::Event`]: take events until there are none.
    pub fn next_event(&mut self) -> Option<ChannelEvent> {
        self.next_port_event().map(|(_, event)| event)
    }

    /// The same with the port that it happened on, which may be gone.
    pub fn next_port_event(&mut self) -> Option<(PortId, ChannelEvent)> {
        let of = |line: &mut Line| Some((line.port.id(), line.channels.next_event()?));
        let across = self.across.as_mut().and_then(|across| across.events.pop_front());
        let event = across.or_else(|| self.orphaned.pop_front());
        let (port, event) = event.or_else(|| self.lines.iter_mut().find_map(of))?;
        Some((port, self.with_cpu(event)))
    }

    // ---- channels -------------------------------------------------------------------------------------

    /// Opens a channel; the outcome comes as an event.
    ///
    /// # Errors
    /// The request can be seen to be wrong without asking anybody.
    pub fn open(&mut self, now: Instant, request: &OpenRequest) -> Result<ChannelId, RequestError> {
        self.go_on(now, None, request, 0)
    }

    /// Opens a channel that continues others, on which its program had handed over `before` units. The
    /// receiver is told that number, so that it can count the units that did not arrive. It goes this
    /// `way`, or the only one that is known to the destination.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn go_on(
        &mut self,
        now: Instant,
        way: Option<Way>,
        request: &OpenRequest,
        before: u64,
    ) -> Result<ChannelId, RequestError> {
        self.assert_drained();
        if way.is_none() && self.is_beyond(&request.to) {
            return self.open_beyond(now, request, Beyond::default());
        }
        let Route { line, hop } = self.route(way, &request.to)?;
        let work = match self.cpu_to_send(line, request) {
            Ok(work) => work,
            Err(denied) => return Ok(self.deny_cpu(line, denied)),
        };
        let opened = self.lines[line].open(now, request, hop, before);
        opened.inspect(|channel| self.has_cpu(line, *channel, work))
    }

    /// Asks for the contract that a channel would be granted. The receiver listens again afterwards; then the
    /// contract comes as [`ChannelEvent::Probed`].
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn probe(
        &mut self,
        now: Instant,
        way: Option<Way>,
        request: &OpenRequest,
    ) -> Result<ChannelId, RequestError> {
        self.assert_drained();
        let Route { line, hop } = self.route(way, &request.to)?;
        let work = match self.cpu_to_send(line, request) {
            Ok(work) => work,
            Err(denied) => return Ok(self.deny_cpu(line, denied)),
        };
        let opened = self.lines[line].probe(now, request, hop);
        opened.inspect(|channel| self.has_cpu(line, *channel, work))
    }

    /// A channel of one segment that was asked for just now opens only if its bound is within these terms;
    /// else it is denied with the nearest ones that fit.
    pub fn keep_within(&mut self, channel: ChannelId, terms: &AskedTerms) {
        let at = self.place_of(channel);
        self.lines[at].keep_within(channel, terms);
    }

    /// How many units of a channel its parent is to offer ahead of their slots: those that its slots of one
    /// cycle can carry. None of a channel that ends: what was offered by then leaves.
    pub fn units_ahead(&self, channel: ChannelId) -> usize {
        if self.hops.fans.has(channel) {
            return self.units_ahead_of_all(channel);
        }
        let hop = self.hops.hop_of(channel);
        self.line_of(hop).units_ahead(hop)
    }

    /// Tells the units that the program of a channel has handed over or left out, as far as they were not
    /// offered: to be called before the channel ends, so that its receiver learns of all of them.
    pub fn state_units(&mut self, channel: ChannelId, stated: Stated) {
        self.line_mut(channel).channels.state(channel, stated);
    }

    /// The program of a channel that is received here has not read so many units in time, since it began.
    pub fn unread(&mut self, channel: ChannelId, unread: Unread) {
        self.line_mut(channel).channels.unread(channel, unread);
    }

    /// Sends what is ready, gives the reservation back, tells the peer.
    pub fn close(&mut self, now: Instant, channel: ChannelId) {
        if self.close_across(now, channel, CloseCause::Finished) {
            return;
        }
        self.line_mut(channel).tell(now, |channels, segment| channels.close(now, channel, segment));
    }

    /// The units of an incoming channel have a place from now on: its sender may begin. Until then it waits,
    /// so that no unit comes before there is one. False when there is no such channel (any more), or no CPU
    /// for it: then its end was told, or is, and a place made for it would stay for ever.
    pub fn accept(&mut self, now: Instant, channel: ChannelId) -> bool {
        if !self.cpu_to_receive(now, channel) {
            return false;
        }
        if let Some(accepted) = self.answer_across(now, channel, true) {
            return accepted;
        }
        self.line_mut(channel).tell(now, |channels, _| channels.accept(channel))
    }

    /// Refuses an incoming channel for which there is no memory; its sender gets this cause and the numbers.
    pub fn decline(&mut self, now: Instant, channel: ChannelId, short: Shortage) {
        if self.answer_across(now, channel, false).is_some() {
            return;
        }
        self.line_mut(channel).tell(now, |channels, _| channels.decline(channel, short));
    }

    /// Refuses an incoming channel that is not accepted yet and that its program does not want.
    pub fn deny(&mut self, now: Instant, channel: ChannelId) {
        if self.answer_across(now, channel, false).is_some() {
            return;
        }
        self.line_mut(channel).tell(now, |channels, _| channels.deny(channel));
    }

    /// Its program is dead: frees the reservation at once, or when the unit that has left in part has left
    /// whole. True then: the payloads of the channel are needed until it is closed.
    pub fn abort(&mut self, now: Instant, channel: ChannelId) -> bool {
        if self.abort_across(now, channel) {
            return false;
        }
        self.line_mut(channel).tell(now, |channels, segment| channels.abort(now, channel, segment))
    }

    /// Asks for units of another size, up to the room it was opened with; the answer comes as an event, and
    /// until then, or when it is a refusal, the old contract stands.
    ///
    /// # Errors
    /// [`ResizeError`], without asking anybody.
    pub fn resize(
        &mut self,
        now: Instant,
        channel: ChannelId,
        unit_octets_max: u32,
    ) -> Result<(), ResizeError> {
        self.change(now, channel, &AskedChange::of_size(unit_octets_max))
    }

    /// Asks for another contract of an open channel; the answer comes as an event, and until then, or when it
    /// is a refusal, the old contract stands. A channel of one segment may change the size of its units, one
    /// across segments all of it, up to the room that it was opened with.
    ///
    /// # Errors
    /// [`ResizeError`], without asking anybody.
    pub fn change(
        &mut self,
        now: Instant,
        channel: ChannelId,
        change: &AskedChange,
    ) -> Result<(), ResizeError> {
        if let Some(asked) = self.change_across(now, channel, change) {
            return asked;
        }
        if self.granted(channel).is_none() {
            return Err(ResizeError::NoChannel(channel));
        }
        let unit_octets_max = change.size_alone().ok_or(ResizeError::SizeOnly)?;
        let line = self.line_mut(channel);
        line.tell(now, |channels, segment| channels.resize(channel, unit_octets_max, segment))
    }

    /// Somebody else than its program ends it: sends what is ready, tells both programs.
    pub fn revoke(&mut self, now: Instant, channel: ChannelId) {
        if self.close_across(now, channel, CloseCause::Revoked) {
            return;
        }
        self.line_mut(channel).tell(now, |channels, segment| channels.revoke(now, channel, segment));
    }

    /// Accepts one channel for this listener, on any port.
    pub fn listen(&mut self, listener: impl Into<Listener>) {
        self.assert_drained();
        let listener = listener.into();
        self.lines.iter_mut().for_each(|line| line.channels.listen(listener.clone()));
    }

    /// Has a listener whose channel never opened listen again, as [`ChannelEvent::Closed`] names it.
    pub fn listen_again(&mut self, listener: u64) {
        self.assert_drained();
        let returned = self.lines.iter_mut().enumerate().find_map(|(at, line)| {
            let listener = line.channels.listen_again(listener)?;
            Some((at, listener.clone()))
        });
        let Some((at, listener)) = returned else { return };
        for (_, line) in self.lines.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            line.channels.listen(listener.clone());
        }
    }

    /// Takes a listener back.
    pub fn unlisten(&mut self, listener: u64) {
        self.assert_drained();
        self.lines.iter_mut().for_each(|line| line.channels.unlisten(listener));
        self.uninvite(listener);
    }

    /// Keeps an idle token going round until then, so that hops can be measured.
    pub fn keep_awake(&mut self, now: Instant, until: Instant) {
        self.assert_drained();
        for line in &mut self.lines {
            line.port.tell(now, |medium| {
                if let Some(rether) = medium.rether_mut() {
                    rether.keep_awake(now, until);
                }
            });
            line.carry_wants(now);
        }
    }

    /// For tests: a station that has lived for so long that its counters are about to end.
    #[doc(hidden)]
    pub fn age(&mut self) {
        self.lines.iter_mut().filter_map(|line| line.port.medium_mut().rether_mut()).for_each(Rether::age);
    }

    /// The node at the other end of a channel; [`NodeId::UNKNOWN`] where its announcement has not been heard.
    pub fn peer(&self, channel: ChannelId) -> Option<NodeId> {
        if let Some(end) = self.end_across(channel) {
            return Some(end.peer);
        }
        let line = self.line_of(channel);
        let (peer, hop) = line.channels.peer(channel)?;
        // A peer that is not known is the node of the next hop, which may have announced itself since.
        Some(if peer.is_known() { peer } else { Segment::of(&line.port).node_at(hop) })
    }

    /// The next hop of a channel: the station of its port's segment with which its frames are exchanged, by
    /// its address. [`Medium::member_at`] knows its number and its name, as they are now.
    pub fn hop(&self, channel: ChannelId) -> Option<MacAddr> {
        let across = self.end_across(channel).and_then(|end| end.way).map(|way| way.hop);
        across.or_else(|| self.line_of(channel).channels.peer(channel).map(|(_, hop)| hop))
    }

    /// Leaves all segments in good order.
    pub fn leave(&mut self, now: Instant) {
        self.assert_drained();
        self.leave_across(now);
        for port in self.ports().map(Port::id).collect::<Vec<_>>() {
            self.end_hops_at(now, port, CloseCause::NodeStopped);
        }
        for line in &mut self.lines {
            line.port.leave(now);
            line.carry_wants(now);
        }
    }

    // ---- to look at -----------------------------------------------------------------------------------

    /// Shows a model checker all that can change what this node will do.
    #[cfg(feature = "model")]
    pub fn visit(&self, visit: &mut dyn rota_medium::rether::Visit) {
        for line in &self.lines {
            line.port.visit(visit);
            line.channels.visit(visit);
        }
    }

    /// This host stood still for so long until now.
    pub fn stood_still(&mut self, now: Instant, stall: Span) {
        self.assert_drained();
        self.lines.iter_mut().for_each(|line| line.port.tell(now, |medium| medium.stood_still(now, stall)));
    }

    /// The ends of channels at this host, as its stations would report them.
    pub fn own_channels(&self) -> impl Iterator<Item = ChannelReport> {
        self.lines.iter().flat_map(Line::ends)
    }

    /// The ends of channels on one port; none where it is gone.
    pub fn own_channels_at(&self, port: PortId) -> impl Iterator<Item = ChannelReport> {
        self.place(port).into_iter().flat_map(|at| self.lines[at].ends())
    }

    /// The counts so far of a channel that is received here.
    pub fn received(&self, channel: ChannelId) -> Option<Tally> {
        let tally = self.line_of(channel).channels.received(channel);
        tally.or_else(|| self.hops.tally(channel))
    }

    /// The contract of a channel that this node sends on.
    pub fn granted(&self, channel: ChannelId) -> Option<&Granted> {
        self.line_of(channel).channels.granted(channel)
    }
}
