//! The sending end of a guaranteed circuit: its TPDUs are units of a channel.

use super::guarantee::{Guarantee, Turns};
use super::watch::Watch;
use super::{Options, Report, VcError, channel_service};
use crate::node::{NodeError, OpenError, OpenRequest, open_by};
use crate::now;
use crate::overdue::Overdue;
use crate::send::SendChannel;
use crate::session::Deadline;
use rota_contract::{ChannelId, FlowName, Tally};
use rota_proto::vc::{CARRIED_WINDOW, CarriedSource};
use rota_shm::control::{CircuitTerms, ControlName};
use rota_shm::{ChannelState, CircuitEnd};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Admission takes no longer.
const ADMISSION: Span = Span::from_millis(10_000);

pub(super) struct Carrier {
    channel: SendChannel,
    source: CarriedSource,
    turns: Turns,
    watch: Watch,
    unit: Vec<u8>,
    /// Nothing is sent behind what was.
    finished: bool,
    /// The node was asked to end the channel.
    closes: AtomicBool,
}

impl Carrier {
    /// Opens the channel, and greets the listener.
    pub(super) fn open(
        control: &ControlName,
        (to, service): (&str, u32),
        (options, guarantee): (&Options, &Guarantee),
        deadline: Deadline,
    ) -> Result<(Self, CircuitTerms), VcError> {
        let request = request(to, service, options, guarantee)?;
        let request = OpenRequest { timeout: deadline.allows(ADMISSION), ..request };
        let channel =
            open_by(control, &request, 0, deadline).map_err(|error| not_open(error, to, service))?;
        let terms = CircuitTerms {
            circuit: channel.id().0,
            service,
            window: CARRIED_WINDOW,
            octets: u32::from(guarantee.tpdu()),
            error_control: false,
            stream: options.stream,
            flow: FlowName::Channel,
        };
        let (session, _) = channel.parts();
        let watch = Watch::new(session, channel.id())?;
        let (source, turns) = (CarriedSource::new(options.stream), Turns::new(guarantee));
        let mut carrier = Self {
            channel,
            source,
            turns,
            watch,
            unit: Vec::new(),
            finished: false,
            closes: AtomicBool::new(false),
        };
        carrier.unit.extend_from_slice(&carrier.source.greeting(service));
        carrier.hand_over(now());
        Ok((carrier, terms))
    }

    /// Hands the unit over that was made; false where it found no room.
    fn hand_over(&mut self, now: Instant) -> bool {
        let turn = self.turns.next(now);
        match self.channel.try_send(&self.unit, turn) {
            Ok(_) => {
                self.turns.give(turn);
                true
            }
            // An end is told by the board.
            Err(_) => false,
        }
    }

    /// Takes the next TPDU; false where there is no room for it now.
    pub(super) fn put(&mut self, octets: &[u8], last: bool) -> bool {
        let now = now();
        if !self.has_room_at(now) {
            return false;
        }
        self.unit.clear();
        self.unit.extend_from_slice(&self.source.head(last));
        self.unit.extend_from_slice(octets);
        let is_taken = self.hand_over(now);
        if is_taken {
            self.source.sent(last);
        }
        is_taken
    }

    pub(super) fn has_room(&self) -> bool {
        self.has_room_at(now())
    }

    /// Behind a stall of the host those that wait go first: a TPDU handed over now would be late.
    fn has_room_at(&self, now: Instant) -> bool {
        self.has_place()
            && self.turns.opens() <= now
            && !self.channel.is_behind_by(now, self.turns.next(now).since(now))
    }

    fn has_place(&self) -> bool {
        self.channel.waiting() < u64::from(self.channel.slots())
    }

    /// When there may be room without any news of the node.
    pub(super) fn opens(&self) -> Option<Instant> {
        let opens = self.turns.opens();
        (self.has_place() && opens > now()).then_some(opens)
    }

    pub(super) fn channel(&self) -> &SendChannel {
        &self.channel
    }

    pub(super) fn carried(&self) -> (ChannelId, Span) {
        (self.channel.id(), Span::from_nanos(self.channel.contract().bound_ns))
    }

    /// How it has ended, if it has.
    pub(super) fn end(&self) -> Option<CircuitEnd> {
        match self.channel.state() {
            ChannelState::Closed(cause) => Some(CircuitEnd::of_channel(cause)),
            _ => None,
        }
    }

    /// The TPDUs that had come to the receiver's node at the end, as that counted them; of messages so many
    /// at least. Nothing is known of them before.
    pub(super) fn taken(&self) -> Report {
        if self.end().is_none() {
            return Report { messages: 0, tpdus: 0 };
        }
        let Tally { units, lost, incomplete, .. } = self.channel.tally();
        // The greeting is a unit, too.
        let tpdus = units.saturating_sub(1);
        let away = lost.saturating_add(incomplete).saturating_add(self.channel.unknown());
        Report { messages: self.source.messages().saturating_sub(away).min(tpdus), tpdus }
    }

    /// Nothing is sent behind what was.
    pub(super) fn finish(&mut self) {
        self.finished = true;
        self.step();
    }

    /// Ends the channel once the node has taken all of it.
    pub(super) fn step(&self) {
        let is_due = self.finished && self.channel.waiting() == 0;
        if is_due && !self.closes.swap(true, Ordering::Relaxed) {
            // The board tells of the answer.
            let _ = self.channel.ask_to_close();
        }
    }

    /// Before a wait for its descriptor: the octets on its bell.
    pub(super) fn arm(&self) -> usize {
        let octets = self.watch.octets();
        let (session, source) = self.channel.parts();
        let _ = session.discard();
        source.arm();
        self.step();
        octets
    }

    /// There is nothing to do now.
    pub(super) fn rest(&self, octets: usize) {
        self.watch.rest(octets, self.opens().filter(|_| !self.finished));
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

/// The channel that is asked for.
fn request(to: &str, service: u32, options: &Options, guarantee: &Guarantee) -> Result<OpenRequest, VcError> {
    let misused = |sentence| VcError::Node(NodeError::Denied { sentence, wrong_use: true });
    if options.error_control {
        let sentence = "a guaranteed circuit has no error control: what its channel loses is lost";
        return Err(misused(sentence.to_owned()));
    }
    guarantee.check().map_err(misused)?;
    let service = channel_service(service).ok_or_else(|| {
        misused(format!("a guaranteed circuit leads to a service below {}, not {service}", super::SERVICES))
    })?;
    let buffers = guarantee.messages() + 2;
    let (traffic, terms) = (guarantee.traffic(), guarantee.terms());
    let base = OpenRequest::new(to, service, traffic.unit_octets_max, traffic.period);
    Ok(OpenRequest { traffic, terms, buffers, overdue: Overdue::Keep, name: Some("circuit".into()), ..base })
}

/// Why there is no circuit, in its words.
fn not_open(error: OpenError, to: &str, service: u32) -> VcError {
    match error {
        OpenError::Refused(refusal) => VcError::Refused(refusal),
        OpenError::NoSuchStation(sentence) => NodeError::NotThere(sentence).into(),
        OpenError::NoListener(_) => NodeError::NotThere(format!(
            "nobody on {to} listens to service {service} of circuits, or its listener has no room for one \
             circuit more; run 'rota pipe --listen {service}' there first"
        ))
        .into(),
        OpenError::Node(NodeError::NotOpened { .. }) => VcError::TimedOut,
        OpenError::Node(error) => error.into(),
    }
}
