//! The machines of one station, composed.

pub(crate) mod carry;

use crate::channels::{
    ChannelEvent, Channels, Contract, Listener, OpenError, OpenRequest, ResizeError, Shortage, Stated, Unread,
};
use crate::io::{
    ChannelId, Delivery, Disposition, FrameBuf, FrameVerdict, Input, Output, PortId, Received, StationId,
    UnitFate,
};
use crate::llc::{Llc, LlcBusy, LlcEvent, LlcRequest};
use crate::port::{self, Port};
use crate::report::{HostSigns, Reports};
use crate::segment::Segment;
use crate::settings::Settings;
use rota_medium::door::{self, Deadline, Identity};
use rota_medium::rether::{Arrived, Counters, ModeName, Refused, Rether};
use rota_units::{Instant, Span};
use rota_wire::llc::is_llc;
use rota_wire::{ChannelReport, Key, MacAddr, Report, ReportHead, Tally, UNIT_HEADER_OCTETS};

/// One reservation as everybody on the segment knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Whose.
    pub station: StationId,
    /// Its share of each cycle.
    pub tht: Span,
    /// Whether it keeps the strict period.
    pub periodic: bool,
}

/// What `rota status` shows of the machines.
#[derive(Clone, Debug)]
pub struct Status {
    /// This station's place.
    pub station: StationId,
    /// The mode.
    pub mode: ModeName,
    /// How many modes the segment has seen.
    pub mode_epoch: u32,
    /// The generation counter of the newest token.
    pub generation: u32,
    /// The reservations in the token.
    pub reservations: Vec<Reservation>,
    /// Ordinary frames waiting here.
    pub queued_frames: usize,
    /// Who does not take part, and why.
    pub refused: Vec<Refused>,
    /// Addresses of stations that strangers use.
    pub contested: Vec<MacAddr>,
    /// Those of them to which frames go astray, while no station hears the stranger.
    pub astray: Vec<MacAddr>,
    /// What the medium counted.
    pub counters: Counters,
    /// What was counted of units and ordinary frames.
    pub port_counters: port::Counters,
}

/// The timer that a node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timer {
    /// One of its port, or of the port's medium.
    Port(door::Timer),
    /// A channel repeats itself, or gives up.
    Channels,
    /// A message repeats itself, or gives up.
    LinkControl,
    /// The next report is due.
    Reports,
}

/// The machines of one station. One port so far: a gateway will have several.
#[derive(Clone, Debug)]
pub struct Node {
    port: Port,
    channels: Channels,
    reports: Reports,
    llc: Llc,
    /// The newest poll answered with something to do, so that another one must follow.
    is_draining: bool,
}

/// How often one poll asks the link. Each further time needs an event that the time before brought; one
/// suffices, and the rest keeps two machines that answer each other from going on for ever.
const SETTLE_TURNS: usize = 4;

impl Node {
    /// A station that begins to look for its segment. `secret` is the segment's, `seed` must differ
    /// at each boot.
    pub fn new(now: Instant, identity: Identity, secret: &Key, settings: Settings, seed: u64) -> Self {
        let channels = Channels::new(identity.node_id, seed);
        let reports = Reports::new(now, settings.report);
        let llc = Llc::new(now, identity.mac, settings.llc.clone());
        let port = Port::new(now, PortId(0), identity, secret, settings.of_medium(), seed);
        Self { port, channels, reports, llc, is_draining: false }
    }

    /// The one rule: nothing is handled between two polls of one drain. What an output calls for waits for
    /// the drain's end, or its effects would overtake the outputs that are still to come.
    fn assert_drained(&self) {
        debug_assert!(!self.is_draining, "handled amid a drain: poll until `None` first, or break off");
    }

    /// Ends a drain whose caller has no budget left for it: the remaining outputs come with later polls.
    /// Until then they wait behind whatever is handled, so a caller without such a limit polls until `None`.
    pub fn break_off(&mut self) {
        self.is_draining = false;
    }

    /// One frame, request or indication.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) -> Disposition {
        self.assert_drained();
        let mut verdict = FrameVerdict::Taken;
        let received = match input {
            Input::Frame { data, .. } if is_llc(data) => {
                self.port.llc_heard(data.len());
                let received = self.llc.on_frame(now, data, Segment::of(&self.port)).map(Received::Message);
                carry::llc(now, &mut self.llc, &mut self.port);
                received
            }
            Input::Frame { at, data, .. } => {
                let received = self.on_frame(now, at, data).map(Received::Fragment);
                verdict = self.port.medium_mut().take_verdict();
                received
            }
            Input::CardEmpty { .. } => {
                self.port.on_card_empty(now);
                None
            }
            Input::HostFrame { tag, octets, level, .. } => {
                self.port.on_host_frame(now, tag, octets, level);
                None
            }
            Input::UnitReady { channel, unit } => {
                self.channels.note_offer(channel, &unit);
                self.port.on_unit_ready(channel, unit);
                None
            }
        };
        self.settle(now);
        Disposition { verdict, received }
    }

    fn on_frame(&mut self, now: Instant, at: Option<Instant>, data: &[u8]) -> Option<Delivery> {
        match self.port.on_frame(now, at, data) {
            Arrived::Nothing => None,
            Arrived::Signal(from, signal) => {
                self.channels.on_signal(now, from, &signal, Segment::of(&self.port));
                None
            }
            Arrived::Report(from, body) => {
                match Report::parse(body) {
                    Ok(report) => self.reports.take(now, from, &report, Segment::of(&self.port)),
                    Err(_) => self.port.medium_mut().judge(FrameVerdict::Malformed),
                }
                None
            }
            Arrived::Fragment(from, unit, payload) => {
                let payload_max = self.port.medium().settings().link.framing.unit_payload_max() as u32;
                let one_clock = self.port.medium().shares_clock(from);
                let octets = (payload.len(), payload_max);
                let located = self.channels.locate(from, &unit, at, octets, one_clock);
                let Some((channel, descriptor)) = located else {
                    self.port.medium_mut().judge(FrameVerdict::UnknownChannel);
                    return None;
                };
                self.port.count_fragment();
                let segment = Segment::of(&self.port);
                self.channels.note_astray(at.unwrap_or(now), channel, &unit, segment);
                let offset = (rota_wire::ETHERNET_HEADER_OCTETS
                    + rota_wire::LINK_HEADER_OCTETS
                    + UNIT_HEADER_OCTETS) as u16;
                Some(Delivery { channel, descriptor, offset, octets: payload.len() as u16 })
            }
        }
    }

    /// Timers. Harmless when early.
    pub fn handle_deadline(&mut self, now: Instant) {
        self.assert_drained();
        self.port.handle_deadline(now);
        self.tick_llc(now);
        self.tick_channels(now);
        self.tick_reports(now);
        self.settle(now);
    }

    fn tick_llc(&mut self, now: Instant) {
        self.llc.tick(now);
        carry::llc(now, &mut self.llc, &mut self.port);
    }

    fn tick_reports(&mut self, now: Instant) {
        if !self.reports.is_due(now) {
            return;
        }
        let Self { port, channels, reports, .. } = self;
        channels.next_interval();
        port.tell(now, |medium| medium.next_interval());
        let segment = Segment::of(port);
        let report = reports.write(now, segment, channels.ends(), |at| channels.report_of(at, segment));
        port.send_report(now, &report);
    }

    fn tick_channels(&mut self, now: Instant) {
        self.channels.tick(now, Segment::of(&self.port));
        carry::channels(now, &mut self.channels, &mut self.port);
    }

    /// What the channels want is done, and what the token machine found out goes to them at once. True if it
    /// found out anything: the channels may have queued signals then.
    fn settle(&mut self, now: Instant) -> bool {
        carry::channels(now, &mut self.channels, &mut self.port);
        let mut settled = false;
        while let Some(event) = self.port.next_event() {
            self.channels.on_link_event(now, event, Segment::of(&self.port));
            carry::channels(now, &mut self.channels, &mut self.port);
            settled = true;
        }
        settled
    }

    /// The next thing to do; `None` when drained. Frames are written into `frame`. Until then nothing else is
    /// handled: a debug build panics.
    pub fn poll(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        let output = self.next_output(now, frame);
        self.is_draining = output.is_some();
        output
    }

    fn next_output(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        self.port.medium_mut().set_receives(self.channels.has_incoming());
        for _ in 0..SETTLE_TURNS {
            let output = self.poll_link(now, frame);
            if let Some(Output::Slot { channel, unit: Some((_, fate)), .. }) = output {
                if fate == UnitFate::Sent {
                    let payload_max = self.port.medium().settings().link.framing.unit_payload_max();
                    self.channels.count_unit(channel, payload_max);
                }
                self.tick_channels(now);
            }
            let settled = self.settle(now);
            if output.is_some() || !settled {
                return output.or_else(|| self.event());
            }
            // A signal that the channels have just queued leaves now, not with the next frame or timer
            // (seeds 475174 and 510810 of the product's timers).
        }
        self.event()
    }

    fn event(&self) -> Option<Output> {
        (self.channels.has_event() || self.llc.has_event()).then_some(Output::Event)
    }

    /// What leaves the queue for link control is written by it; an entry that has become pointless is none.
    fn poll_link(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        if self.llc.deadline() <= now {
            // What has run out of time is not to stand in the queue when the token asks what is there.
            self.tick_llc(now);
        }
        loop {
            match self.port.poll(now, frame) {
                Some(Output::TransmitLlc { port, slot, level }) => {
                    let len = self.llc.transmit(now, slot, frame, Segment::of(&self.port));
                    carry::llc(now, &mut self.llc, &mut self.port);
                    if let Some(len) = len {
                        self.port.llc_sent(now, usize::from(level), len);
                        return Some(Output::Transmit { port, len });
                    }
                }
                other => return other,
            }
        }
    }

    /// When to call [`Self::handle_deadline`].
    pub fn deadline(&self) -> Instant {
        self.timer().at
    }

    /// The same with the timer that wants it.
    pub fn timer(&self) -> Deadline<Timer> {
        let port = self.port.deadline().map(Timer::Port);
        port.or(Deadline::new(self.channels.deadline(), Timer::Channels))
            .or(Deadline::new(self.llc.deadline(), Timer::LinkControl))
            .or(Deadline::new(self.reports.deadline(), Timer::Reports))
    }

    /// What happened to channels, after [`Output::Event`]: take events until there are none.
    pub fn next_event(&mut self) -> Option<ChannelEvent> {
        self.channels.next_event()
    }

    /// What happened to messages, after [`Output::Event`]: take events until there are none.
    pub fn next_llc_event(&mut self) -> Option<LlcEvent> {
        self.llc.next_event()
    }

    /// Link control, to look at.
    pub fn llc(&self) -> &Llc {
        &self.llc
    }

    /// A program has this socket from now on.
    pub fn llc_open(&mut self, socket: u8) {
        self.assert_drained();
        self.llc.open(socket);
    }

    /// Nobody has this socket any more; what it still wanted sent is given up.
    pub fn llc_close(&mut self, now: Instant, socket: u8) {
        self.assert_drained();
        self.llc.close(now, socket);
        carry::llc(now, &mut self.llc, &mut self.port);
    }

    /// A message to be sent; what becomes of it comes as an event.
    ///
    /// # Errors
    /// [`LlcBusy`]: offer it again when an event has told of another one's end.
    pub fn llc_send(&mut self, now: Instant, request: &LlcRequest) -> Result<(), LlcBusy> {
        self.assert_drained();
        let sent = self.llc.send(now, request, Segment::of(&self.port));
        carry::llc(now, &mut self.llc, &mut self.port);
        sent
    }

    /// Gives up whatever a socket still wants sent; nothing is told of it.
    pub fn llc_cancel(&mut self, now: Instant, socket: u8) {
        self.assert_drained();
        self.llc.cancel(now, socket);
        carry::llc(now, &mut self.llc, &mut self.port);
    }

    /// Opens a channel; the outcome comes as an event.
    ///
    /// # Errors
    /// The request can be seen to be wrong without asking anybody.
    pub fn open(&mut self, now: Instant, request: &OpenRequest) -> Result<ChannelId, OpenError> {
        self.go_on(now, request, 0)
    }

    /// Opens a channel that continues others, on which its program had handed over `before` units. The
    /// receiver is told that number, so that it can count the units that did not arrive.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn go_on(
        &mut self,
        now: Instant,
        request: &OpenRequest,
        before: u64,
    ) -> Result<ChannelId, OpenError> {
        self.assert_drained();
        let opened = self.channels.open(now, request, before, Segment::of(&self.port));
        self.settle(now);
        opened
    }

    /// Asks for the contract that a channel would be granted. The receiver listens again afterwards; then the
    /// contract comes as [`ChannelEvent::Probed`].
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn probe(&mut self, now: Instant, request: &OpenRequest) -> Result<ChannelId, OpenError> {
        self.assert_drained();
        let opened = self.channels.open(now, request, 0, Segment::of(&self.port));
        if let Ok(channel) = opened {
            self.channels.probe(channel);
        }
        self.settle(now);
        opened
    }

    /// How many units of a channel its parent is to offer ahead of their slots: those that its slots of one
    /// cycle can carry. None of a channel that ends: what was offered by then leaves.
    pub fn units_ahead(&self, channel: ChannelId) -> usize {
        if self.channels.is_ending(channel) { 0 } else { self.port.units_a_cycle(channel) }
    }

    /// Tells the units that the program of a channel has handed over or left out, as far as they were not
    /// offered: to be called before the channel ends, so that its receiver learns of all of them.
    pub fn state_units(&mut self, channel: ChannelId, stated: Stated) {
        self.assert_drained();
        self.channels.state(channel, stated);
    }

    /// The program of a channel that is received here has not read so many units in time, since it began.
    pub fn unread(&mut self, channel: ChannelId, unread: Unread) {
        self.assert_drained();
        self.channels.unread(channel, unread);
    }

    /// Sends what is ready, gives the reservation back, tells the peer.
    pub fn close(&mut self, now: Instant, channel: ChannelId) {
        self.assert_drained();
        self.channels.close(now, channel, Segment::of(&self.port));
        self.settle(now);
    }

    /// What an incoming channel brings has a place from now on: its sender may begin. Until then it waits, so
    /// that no unit comes before there is one. False when there is no such channel (any more): then its end
    /// was told already, and a place made for it would stay for ever.
    pub fn accept(&mut self, now: Instant, channel: ChannelId) -> bool {
        self.assert_drained();
        let is_known = self.channels.accept(channel);
        self.settle(now);
        is_known
    }

    /// Refuses an incoming channel for which there is no memory; its sender gets this cause and the numbers.
    pub fn decline(&mut self, now: Instant, channel: ChannelId, short: Shortage) {
        self.assert_drained();
        self.channels.decline(channel, short);
        self.settle(now);
    }

    /// Its program is dead: frees the reservation at once, or when the unit that has left in part has left
    /// whole. True then: the payloads of the channel are needed until it is closed.
    pub fn abort(&mut self, now: Instant, channel: ChannelId) -> bool {
        self.assert_drained();
        let goes_on = self.channels.abort(now, channel, Segment::of(&self.port));
        self.settle(now);
        goes_on
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
        self.assert_drained();
        let asked = self.channels.resize(channel, unit_octets_max, Segment::of(&self.port));
        self.settle(now);
        asked
    }

    /// Somebody else than its program ends it: sends what is ready, tells both programs.
    pub fn revoke(&mut self, now: Instant, channel: ChannelId) {
        self.assert_drained();
        self.channels.revoke(now, channel, Segment::of(&self.port));
        self.settle(now);
    }

    /// Accepts one channel for this listener.
    pub fn listen(&mut self, listener: impl Into<Listener>) {
        self.assert_drained();
        self.channels.listen(listener.into());
    }

    /// Has a listener whose channel never opened listen again, as [`ChannelEvent::Closed`] names it.
    pub fn listen_again(&mut self, listener: u64) {
        self.assert_drained();
        self.channels.listen_again(listener);
    }

    /// Takes a listener back.
    pub fn unlisten(&mut self, listener: u64) {
        self.assert_drained();
        self.channels.unlisten(listener);
    }

    /// Keeps an idle token going round until then, so that hops can be measured.
    pub fn keep_awake(&mut self, now: Instant, until: Instant) {
        self.assert_drained();
        self.port.tell(now, |medium| medium.keep_awake(now, until));
        self.settle(now);
    }

    /// For tests: a station that has lived for so long that its counters are about to end.
    #[doc(hidden)]
    pub fn age(&mut self) {
        self.port.medium_mut().age();
    }

    /// The station at the other end of a channel, by its address; [`Rether::member_at`] knows its number and
    /// its name, as they are now.
    pub fn peer(&self, channel: ChannelId) -> Option<MacAddr> {
        self.channels.peer(channel)
    }

    /// Leaves the segment in good order.
    pub fn leave(&mut self, now: Instant) {
        self.assert_drained();
        self.port.leave(now);
        self.settle(now);
    }

    /// The medium, to look at.
    pub fn link(&self) -> &Rether {
        self.port.medium()
    }

    /// The port, to look at: the units and the ordinary frames that wait for the medium.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Shows a model checker all that can change what this node will do.
    #[cfg(feature = "model")]
    pub fn visit(&self, visit: &mut dyn rota_medium::rether::Visit) {
        self.port.visit(visit);
        self.channels.visit(visit);
    }

    /// What the parent knows of its host, for reports and monitors.
    pub fn tell_host(&mut self, signs: HostSigns) {
        self.assert_drained();
        self.port.medium_mut().note_own_address(signs.own_address);
        self.reports.tell_host(signs, Segment::of(&self.port));
    }

    /// This host stood still for so long until now.
    pub fn stood_still(&mut self, now: Instant, stall: Span) {
        self.assert_drained();
        self.port.tell(now, |medium| medium.stood_still(now, stall));
    }

    /// What this station would report of itself now.
    pub fn own_report(&self, now: Instant) -> ReportHead {
        self.reports.own(now, Segment::of(&self.port), self.channels.ends())
    }

    /// The ends of channels at this station, as it would report them.
    pub fn own_channels(&self) -> impl Iterator<Item = ChannelReport> {
        (0..self.channels.ends()).filter_map(|at| self.channels.report_of(at, Segment::of(&self.port)))
    }

    /// The counts so far of a channel that is received here.
    pub fn received(&self, channel: ChannelId) -> Option<Tally> {
        self.channels.received(channel)
    }

    /// What other stations have reported.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// The contract of a channel that this node sends on.
    pub fn contract(&self, channel: ChannelId) -> Option<&Contract> {
        self.channels.contract(channel)
    }

    /// What `rota status` shows.
    pub fn status(&self) -> Status {
        let reservations = self.port.medium().list().map_or_else(Vec::new, |list| {
            let slots = list.slots.as_slice().iter();
            slots
                .map(|slot| Reservation {
                    station: slot.station,
                    tht: Span::from_nanos(u64::from(slot.tht_ns)),
                    periodic: slot.periodic,
                })
                .collect()
        });
        Status {
            station: self.port.medium().station(),
            mode: self.port.medium().mode(),
            mode_epoch: self.port.medium().mode_epoch(),
            generation: self.port.medium().generation(),
            reservations,
            queued_frames: self.port.queued_frames(),
            refused: self.port.medium().refused().to_vec(),
            contested: self.port.medium().contested().collect(),
            astray: self.port.medium().contested().filter(|mac| self.port.medium().is_astray(*mac)).collect(),
            counters: *self.port.medium().counters(),
            port_counters: *self.port.counters(),
        }
    }
}
