//! The medium of a port: one of those that there are. No call on the frame path is dispatched dynamically.
//!
//! Most calls are the door that every medium has (`medium/src/door.rs`). The part at the end is RETHER's own:
//! another medium answers it with nothing.

use rota_admission::rtip::{Chance, Denied};
use rota_admission::{Admitted, StandingSlot};
use rota_contract::NodeId;
use rota_medium::door::PartitionLoad;
use rota_medium::door::{DataFacts, Deadline, Demand, Frame, Grant, GroupLoad, Identity, Note};
use rota_medium::door::{FrameVerdict, MediumKind, Place, PortId, StationId, Turn, Units, Visited, Way};
use rota_medium::door::{SessionId, Share, Timer};
use rota_medium::link::{FlowPort, Link, PortThen};
use rota_medium::rether::{Refused, Rether, Sign};
use rota_medium::{
    Arrived, Counters, MediumEvent, MediumTally, Member, Mismatched, ModeName, Settings, TimersInForce,
    WillName,
};
use rota_units::{Instant, Octets, Span};
use rota_wire::{Generation, Key, Kind, MacAddr, PayloadKind, Slot, Token};

/// The medium of a port.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "RETHER stands in its port: no step to it on the frame path")]
pub enum Medium {
    /// A timed token over a shared segment.
    Rether(Rether),
    /// A full-duplex cable between two stations. It is apart, so that it takes no room beside RETHER.
    Link(Box<Link>),
}

/// Asks the medium that is there.
macro_rules! each {
    ($of:expr, $medium:ident => $answer:expr) => {
        match $of {
            Self::Rether($medium) => $answer,
            Self::Link($medium) => $answer,
        }
    };
}

impl Medium {
    /// The medium that the settings name; it begins to look for its segment at `now`.
    pub(super) fn new(
        now: Instant,
        port: PortId,
        me: Identity,
        secret: &Key,
        settings: Settings,
        seed: u64,
    ) -> Self {
        match settings.medium {
            MediumKind::Rether => Self::Rether(Rether::new(now, port, me, secret, settings, seed)),
            MediumKind::Link => Self::Link(Box::new(Link::new(now, port, me, secret, settings, seed))),
        }
    }

    // ---- this station, and the others -----------------------------------------------------------------

    /// The settings.
    #[inline]
    pub fn settings(&self) -> &Settings {
        each!(self, medium => medium.settings())
    }

    /// The mode as users see it.
    #[inline]
    pub fn mode(&self) -> ModeName {
        each!(self, medium => medium.mode())
    }

    /// This station's place, 0 while it has none.
    #[inline]
    pub fn station(&self) -> StationId {
        each!(self, medium => medium.station())
    }

    /// This boot of this station.
    pub fn incarnation(&self) -> u32 {
        each!(self, medium => medium.incarnation())
    }

    /// This host's id.
    pub fn node_id(&self) -> NodeId {
        each!(self, medium => medium.node_id())
    }

    /// This station's name.
    pub fn name(&self) -> &str {
        each!(self, medium => medium.name())
    }

    /// This station's address.
    #[inline]
    pub fn mac(&self) -> MacAddr {
        each!(self, medium => medium.mac())
    }

    /// Stations of the segment, this one included.
    pub fn stations(&self) -> u16 {
        match self {
            Self::Rether(rether) => rether.ring_size(),
            Self::Link(link) => link.stations(),
        }
    }

    /// The other stations.
    pub fn members(&self) -> &[Member] {
        each!(self, medium => medium.members())
    }

    /// The other station of this address.
    #[inline]
    pub fn member_at(&self, mac: MacAddr) -> Option<&Member> {
        each!(self, medium => medium.member_at(mac))
    }

    /// The number that the station of this address has now, this one included; 0 while it has none.
    pub fn number(&self, mac: MacAddr) -> StationId {
        each!(self, medium => medium.number(mac))
    }

    /// The address of the station that has this number now, this one included.
    pub fn address(&self, station: StationId) -> Option<MacAddr> {
        each!(self, medium => medium.address(station))
    }

    /// True if that station's clock is this one's: delays between the two can be measured.
    #[inline]
    pub fn shares_clock(&self, mac: MacAddr) -> bool {
        each!(self, medium => medium.shares_clock(mac))
    }

    /// The facts of the data frames of a channel from that station. RETHER has none: its stations read each
    /// frame of data, by which they know that a token lives and that nobody else sends.
    pub fn data_facts(&self, from: MacAddr, payload: PayloadKind, label: u16) -> Option<DataFacts> {
        match self {
            Self::Rether(_) => None,
            Self::Link(link) => link.data_facts(from, payload, label),
        }
    }

    /// Stations that do not fit here, why, and both values.
    pub fn mismatches(&self, now: Instant) -> impl Iterator<Item = Mismatched<'_>> {
        let (rether, link) = match self {
            Self::Rether(rether) => (Some(rether), None),
            Self::Link(link) => (None, Some(link)),
        };
        let rether = rether.into_iter().flat_map(move |rether| rether.mismatches(now));
        rether.chain(link.into_iter().flat_map(move |link| link.mismatches(now)))
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        each!(self, medium => medium.counters())
    }

    /// The counts of frames sent and heard.
    pub fn tally(&self) -> &MediumTally {
        each!(self, medium => medium.tally())
    }

    /// The name of the will that this station would leave if it died now.
    #[inline]
    pub fn will_name(&self) -> Option<WillName> {
        each!(self, medium => medium.will_name())
    }

    /// Writes the frame of [`Self::will_name`] and returns its length; `None` while there is none.
    pub fn write_will(&self, frame: &mut [u8]) -> Option<usize> {
        each!(self, medium => medium.write_will(frame))
    }

    /// Is told if a station has a channel to this one.
    #[inline]
    pub(crate) fn set_receives(&mut self, receives: bool) {
        each!(self, medium => medium.set_receives(receives));
    }

    /// This host stood still for so long until now.
    pub(crate) fn stood_still(&mut self, now: Instant, stall: Span) {
        each!(self, medium => medium.stood_still(now, stall));
    }

    /// An interval between two reports is over.
    pub(crate) fn next_interval(&mut self) {
        each!(self, medium => medium.next_interval());
    }

    /// Leaves the segment in good order.
    pub(super) fn leave(&mut self, now: Instant) {
        each!(self, medium => medium.leave(now));
    }

    /// True once this station has said that it leaves.
    pub(super) fn is_leaving(&self) -> bool {
        each!(self, medium => medium.is_leaving())
    }

    // ---- frames and timers ----------------------------------------------------------------------------

    /// One frame. Bad ones are counted, never an error.
    #[inline]
    pub(super) fn on_frame<'a>(&mut self, now: Instant, at: Option<Instant>, data: &'a [u8]) -> Arrived<'a> {
        match self {
            Self::Rether(rether) => rether.on_frame(now, at, data),
            Self::Link(link) => link.on_frame(now, data),
        }
    }

    /// Data came that left under the grant of this stamp, and this is its place among its sender's.
    #[inline]
    pub(super) fn on_place(
        &mut self,
        at: Option<Instant>,
        from: MacAddr,
        stamp: (Generation, u64),
        place: Place,
    ) {
        if let Some(rether) = self.rether_mut() {
            rether.on_place(at, from, stamp, place);
        }
    }

    /// Notes a verdict on the newest frame that its content has shown.
    pub(crate) fn judge(&mut self, verdict: FrameVerdict) {
        each!(self, medium => medium.judge(verdict));
    }

    /// The verdict on the newest frame.
    #[inline]
    pub(crate) fn take_verdict(&mut self) -> FrameVerdict {
        each!(self, medium => medium.take_verdict())
    }

    /// The frames that this station itself sent have left its card.
    pub(super) fn on_card_empty(&mut self, now: Instant) {
        each!(self, medium => medium.on_card_empty(now));
    }

    /// Timers. Harmless when early.
    #[inline]
    pub(super) fn handle_deadline(&mut self, now: Instant) {
        each!(self, medium => medium.handle_deadline(now));
    }

    /// When `handle_deadline` wants to be called, and by which timer.
    #[inline]
    pub fn deadline(&self) -> Deadline<Timer> {
        each!(self, medium => medium.deadline())
    }

    /// The next note to the port.
    #[inline]
    pub(super) fn next_note(&mut self) -> Option<Note> {
        each!(self, medium => medium.next_note())
    }

    /// True if there is a note.
    #[inline]
    pub(super) fn has_note(&self) -> bool {
        each!(self, medium => medium.has_note())
    }

    /// True if there is an event.
    #[inline]
    pub(crate) fn has_event(&self) -> bool {
        each!(self, medium => medium.has_event())
    }

    /// True if a frame waits, or the mark of the port's own.
    #[inline]
    pub(super) fn has_frame(&self) -> bool {
        each!(self, medium => medium.has_frame())
    }

    /// The next event.
    #[inline]
    pub(super) fn next_event(&mut self) -> Option<MediumEvent> {
        each!(self, medium => medium.next_event())
    }

    // ---- what waits, and what is granted --------------------------------------------------------------

    /// The port says which ordinary frame would leave next. The first that waits has a grant asked for.
    #[inline]
    pub(super) fn demand(&mut self, now: Instant, first: Option<Demand>) {
        each!(self, medium => medium.demand(now, first));
    }

    /// The same where nothing has joined the queue.
    #[inline]
    pub(super) fn set_demand(&mut self, first: Option<Demand>) {
        each!(self, medium => medium.set_demand(first));
    }

    /// The introduction has left the port's queue, and is written at its place among the own frames.
    pub(super) fn take_introduction(&mut self) {
        if let Some(rether) = self.rether_mut() {
            rether.take_introduction();
        }
    }

    /// Before anything leaves: what was found out since goes first.
    #[inline]
    pub(super) fn begin_turn(&mut self, now: Instant) {
        each!(self, medium => medium.begin_turn(now));
    }

    /// Goes on by one stage: it grants something, waits, or moves on.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) -> Turn {
        each!(self, medium => medium.advance(now))
    }

    /// A frame of so many octets, from the destination address on, has left under the grant.
    #[inline]
    pub(super) fn spent(&mut self, now: Instant, octets: u16) {
        each!(self, medium => medium.spent(now, octets));
    }

    /// Nothing more leaves under the grant of this slot or visit.
    #[inline]
    pub(super) fn done(&mut self, now: Instant, visited: Visited) {
        each!(self, medium => medium.done(now, visited));
    }

    /// True if a frame of the medium has to leave before one that takes so long.
    #[inline]
    pub(super) fn answers_before(&mut self, now: Instant, frame: Span) -> bool {
        match self {
            Self::Rether(rether) => rether.answers_before(now, frame),
            Self::Link(_) => false,
        }
    }

    /// The number of the ordinary visit that is under way.
    #[inline]
    pub(super) fn visit_number(&self) -> Option<u32> {
        each!(self, medium => medium.visit_number())
    }

    /// How long an ordinary frame of so many octets occupies the wire.
    #[inline]
    pub(super) fn frame_time(&self, octets: u16) -> Span {
        each!(self, medium => medium.frame_time(octets))
    }

    // ---- frames that leave ----------------------------------------------------------------------------

    /// The port's next own frames come behind the frames that wait by now.
    pub(super) fn queue_ports(&mut self) {
        each!(self, medium => medium.queue_ports());
    }

    /// Writes the next waiting frame, or says that the port's own ones have their turn.
    #[inline]
    pub(super) fn write_frame(&mut self, now: Instant, frame: &mut [u8]) -> Option<Frame> {
        each!(self, medium => medium.write_frame(now, frame))
    }

    /// Writes this station's introduction, at the turn of the port's own frames.
    pub(super) fn write_introduction(&mut self, now: Instant, frame: &mut [u8]) -> Option<u16> {
        each!(self, medium => medium.write_introduction(now, frame))
    }

    /// Completes a frame of the port whose body stands in the buffer, and says how long it is.
    pub(super) fn seal_for_port(
        &mut self,
        frame: &mut [u8],
        way: Way,
        kind: Kind,
        octets: usize,
    ) -> Option<u16> {
        each!(self, medium => medium.seal_for_port(frame, way, kind, octets))
    }

    /// The same for data that leaves under a grant.
    #[inline]
    pub(super) fn seal_data(
        &mut self,
        frame: &mut [u8],
        to: MacAddr,
        grant: &Grant,
        payload: PayloadKind,
        octets: usize,
    ) -> Option<u16> {
        each!(self, medium => medium.seal_data(frame, to, grant, payload, octets))
    }

    // ---- shares ---------------------------------------------------------------------------------------

    /// Asks for a share; the answer comes as an event.
    pub(super) fn reserve(&mut self, now: Instant, id: SessionId, share: Share) {
        each!(self, medium => medium.reserve(now, id, share));
    }

    /// True if a share would be granted beside those that stand, as far as this station knows them. Only a
    /// link has bookings, for which it is `thorough`.
    pub(crate) fn would_fit(&mut self, now: Instant, share: &Share, thorough: bool) -> bool {
        match self {
            Self::Link(link) => link.would_fit(now, share, thorough),
            Self::Rether(rether) => rether.would_fit(share),
        }
    }

    /// The port of a link as it will be at a moment; no other medium has bookings.
    pub(crate) fn port_then(&mut self, now: Instant, at: Instant) -> Option<PortThen> {
        match self {
            Self::Link(link) => link.port_then(now, at),
            Self::Rether(_) => None,
        }
    }

    /// Gives a share back.
    pub(super) fn release(&mut self, now: Instant, id: SessionId) {
        each!(self, medium => medium.release(now, id));
    }

    /// Gives a flow of a link a longer bound, of `delay` at most; the one that it has now. `None` where the
    /// session is no flow.
    pub(super) fn relax(&mut self, id: SessionId, delay: Span) -> Option<Span> {
        match self {
            Self::Link(link) => link.relax(id, delay),
            Self::Rether(_) => None,
        }
    }

    /// The chance of a late packet that a session has: only a link has the class.
    pub(super) fn chance_of(&self, id: SessionId) -> Chance {
        match self {
            Self::Link(link) => link.chance_of(id),
            Self::Rether(_) => Chance::NEVER,
        }
    }

    /// Has a share carry these packets in the place of its own. A flow of a link gets the bound that it
    /// should have, or the shortest one: its bound now. Of a share of a RETHER segment an event tells later.
    ///
    /// # Errors
    /// They do not fit within the longest bound. All is as it was.
    pub(super) fn enlarge(
        &mut self,
        now: Instant,
        id: SessionId,
        share: &Share,
        bounds: (Span, Span),
    ) -> Result<Option<Span>, (Denied, Option<Octets>)> {
        match self {
            Self::Link(link) => link.reshape(now, id, share, bounds).map(Some),
            Self::Rether(rether) => {
                rether.enlarge(id, share);
                Ok(None)
            }
        }
    }

    /// The figures and slots that a share of a RETHER segment will have once it carries no more than this.
    pub(super) fn lessened(&self, id: SessionId, share: &Share) -> Option<(Admitted, Vec<StandingSlot>)> {
        self.rether()?.lessened(id, share)
    }

    /// A share carries less from now on: these packets, within this bound.
    pub(super) fn lessen(&mut self, now: Instant, id: SessionId, share: &Share, delay: Span) {
        match self {
            Self::Link(link) => link.lessen(now, id, share, delay),
            Self::Rether(rether) => rether.lessen(id, share),
        }
    }

    /// The port of a flow of a link, for its certificate.
    pub(super) fn port_of(&self, now: Instant, id: SessionId) -> Option<FlowPort> {
        match self {
            Self::Link(link) => link.port_of(now, id),
            Self::Rether(_) => None,
        }
    }

    /// The load of each partition.
    pub(super) fn partition_loads(&self) -> Vec<PartitionLoad> {
        match self {
            Self::Link(link) => link.partition_loads().collect(),
            Self::Rether(rether) => rether.partition_loads().collect(),
        }
    }

    /// The groups of which hops of this port are members.
    pub(super) fn groups(&self) -> Vec<GroupLoad> {
        match self {
            Self::Link(link) => link.groups().collect(),
            Self::Rether(rether) => rether.groups().collect(),
        }
    }

    /// Changes the largest unit of a session; the answer comes as an event.
    pub(super) fn resize(&mut self, id: SessionId, unit_octets_max: u32) {
        each!(self, medium => medium.resize(id, unit_octets_max));
    }

    /// True if a smaller size that was asked for may take effect.
    pub(super) fn may_shrink(&mut self, id: SessionId, allowed: bool) {
        each!(self, medium => medium.may_shrink(id, allowed));
    }

    /// True if the session has a share, or waits for one.
    pub(super) fn has_share(&self, id: SessionId) -> bool {
        each!(self, medium => medium.has_share(id))
    }

    /// The largest unit of a session; `None` when it has no such session.
    pub(super) fn share_octets(&self, id: SessionId) -> Option<u32> {
        each!(self, medium => medium.share_octets(id))
    }

    /// Units that a session can send in one cycle.
    pub(super) fn units_a_cycle(&self, id: SessionId) -> usize {
        each!(self, medium => medium.units_a_cycle(id))
    }

    /// The port says what has become of the units of a session that wait. RETHER's slots come whether any
    /// wait or not.
    #[inline]
    pub(super) fn note_units(&mut self, now: Instant, id: SessionId, units: Units) {
        if let Self::Link(link) = self {
            link.note_units(now, id, units);
        }
    }

    /// True while channels go on: in a ring, or on a link whose other end is known.
    pub(crate) fn carries_channels(&self) -> bool {
        match self {
            Self::Rether(rether) => rether.mode() == ModeName::Token,
            Self::Link(link) => link.mode() != ModeName::Joining,
        }
    }

    /// The shares that this station knows: all of a ring, and of a link those that it has itself.
    pub fn reservations(&self) -> impl Iterator<Item = Slot> + Clone + '_ {
        let (list, link) = match self {
            Self::Rether(rether) => (rether.list(), None),
            Self::Link(link) => (None, Some(link)),
        };
        let ring = list.into_iter().flat_map(|list| list.slots.as_slice().iter().copied());
        ring.chain(link.into_iter().flat_map(|link| link.reservations()))
    }

    /// The load of a link's window; nothing of a ring, which has a list of its slots.
    pub fn window_load(&self) -> Span {
        match self {
            Self::Rether(_) => Span::ZERO,
            Self::Link(link) => link.window_load(),
        }
    }

    /// The kind of the medium.
    pub fn kind(&self) -> MediumKind {
        self.settings().medium
    }

    // ---- RETHER's own ---------------------------------------------------------------------------------

    /// The token machine, where the medium is RETHER.
    #[inline]
    pub fn rether(&self) -> Option<&Rether> {
        match self {
            Self::Rether(rether) => Some(rether),
            Self::Link(_) => None,
        }
    }

    /// The same, to tell it something.
    pub(crate) fn rether_mut(&mut self) -> Option<&mut Rether> {
        match self {
            Self::Rether(rether) => Some(rether),
            Self::Link(_) => None,
        }
    }

    /// The newest reservation list that this station has seen, while a token rules.
    pub fn list(&self) -> Option<&Token> {
        self.rether()?.list()
    }

    /// True if a token skips this station.
    pub fn is_dead(&self, station: StationId) -> bool {
        self.rether().is_some_and(|rether| rether.is_dead(station))
    }

    /// True if this station holds a token whose lease has not ended.
    pub fn holds_token(&self, now: Instant) -> bool {
        self.rether().is_some_and(|rether| rether.holds_token(now))
    }

    /// How many modes the segment has seen.
    pub fn mode_epoch(&self) -> u32 {
        self.rether().map_or(0, Rether::mode_epoch)
    }

    /// The generation counter of the newest token seen.
    pub fn generation(&self) -> u32 {
        self.rether().map_or(0, Rether::generation)
    }

    /// Stations that do not take part in a ring, and why.
    pub fn refused(&self) -> &[Refused] {
        self.rether().map_or(&[], Rether::refused)
    }

    /// The timers in force and why.
    pub fn timers_in_force(&self, now: Instant) -> TimersInForce {
        match self {
            Self::Rether(rether) => rether.timers_in_force(now),
            Self::Link(link) => link.timers_in_force(),
        }
    }

    /// True if a ring runs without this station.
    pub(crate) fn is_outside(&self) -> bool {
        self.rether().is_some_and(Rether::is_outside)
    }

    /// This station has heard of its ring in every cycle since then.
    pub(crate) fn ring_lived_since(&self) -> Instant {
        self.rether().map_or(Instant::FAR, Rether::ring_lived_since)
    }

    /// Addresses of stations that strangers use.
    pub fn contested(&self) -> impl Iterator<Item = MacAddr> + '_ {
        self.rether().into_iter().flat_map(Rether::contested)
    }

    /// True if a stranger uses this address.
    pub fn is_contested(&self, mac: MacAddr) -> bool {
        self.rether().is_some_and(|rether| rether.is_contested(mac))
    }

    /// True if frames for this address go astray.
    pub fn is_astray(&self, mac: MacAddr) -> bool {
        self.rether().is_some_and(|rether| rether.is_astray(mac))
    }

    /// True if a station has said that frames for this address, its own, go astray or may do so.
    pub(crate) fn is_doubted(&self, now: Instant, mac: MacAddr) -> bool {
        self.rether().is_some_and(|rether| rether.is_doubted(now, mac))
    }

    /// A station is silent or repeats itself.
    pub(crate) fn contest(&mut self, now: Instant, mac: MacAddr, sign: Sign) {
        if let Some(rether) = self.rether_mut() {
            rether.contest(now, mac, sign);
        }
    }
}
