//! The control thread: connections of programs, their requests, and the news they wait for.

mod circuits;
mod ended;
mod entrance;
mod incoming;
mod invited;
mod list;
mod llc;
mod logged;
mod memory;
mod modify;
mod places;
mod queue;
mod receivers;
mod rights;
mod shown;

use crate::commands::{Command, ControlEnd, Note, Peer};
use crate::incidents::Incidents;
use crate::journal::Journal;
use crate::log::{Level, say};
use crate::rerouting::Rerouting;
use crate::session::{Asked, Coming, Owned, Question, Session};
use crate::status::{Facts, Snapshot};
use circuits::Offers;
pub(crate) use circuits::OwnCircuits;
use ended::EndedChannels;
use entrance::Entrance;
pub(crate) use modify::Untold;
use nix::sys::signalfd::SignalFd;
use rota_admission::Refusal;
use rota_contract::{CloseCause, Granted, Withdrawn};
use rota_driver::clock::now;
use rota_driver::poller::{Poller, Ready, Trigger};
use rota_driver::realtime::Realtime;
use rota_proto::{ChannelEvent, ChannelId, NotFound, PortId, Shortage, Stated};
use rota_shm::control::{ControlListener, ReceiverInfo, RefusalInfo, Reply, Request, UNASKED};
use rota_shm::{ChannelState, SourceShape, TraceReader};
use rota_units::{Instant, Span};
use rota_wire::{RcapDenied, RcapTest};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

const SIGNALS: u64 = 0;
const LISTENER: u64 = 1;
const NOTES: u64 = 2;
const BROKER: u64 = 3;
const FIRST_SESSION: u64 = 16;
/// A copy of its state takes the data thread some tens of microseconds: at most this often.
const SNAPSHOT_EVERY: Span = Span::from_millis(5);

/// Takes SIGINT and SIGTERM over for this process: they arrive as readable events.
pub(crate) fn block_signals() -> io::Result<SignalFd> {
    Ok(rota_driver::signals::catch(&rota_driver::signals::ENDS)?)
}

struct Control<'a> {
    facts: &'a Facts,
    realtime: &'a Realtime,
    data: &'a ControlEnd,
    sessions: Vec<Session>,
    next: u64,
    user: u32,
    /// The data thread has been asked for its state and has not answered yet.
    snapshot_asked: bool,
    next_snapshot: Instant,
    incidents: Incidents,
    journal: Journal,
    ended: EndedChannels,
    rerouting: Rerouting,
    /// Of channels to several receivers: each as last heard of.
    receivers: BTreeMap<ChannelId, Vec<ReceiverInfo>>,
    /// Circuits that no program has accepted yet.
    offers: Offers,
    listing: circuits::Listing,
    entrance: Entrance,
    over: bool,
}

/// Runs until the data thread has ended.
///
/// # Errors
/// The kernel does not let it wait: the data thread is told to stop.
pub(crate) fn run(
    facts: &Facts,
    realtime: &Realtime,
    (listener, signals): (&ControlListener, &SignalFd),
    data: &ControlEnd,
) -> io::Result<()> {
    let mut control = Control::new(facts, realtime, data, listener);
    let ended = control.turns(listener, signals);
    if let Err(error) = &ended {
        say(Level::Error, "control", &format!("the control thread ends: {error}"));
        // Without its control thread a node cannot be used; without being told, it would never stop.
        data.say(Command::Stop);
    }
    ended
}

impl<'a> Control<'a> {
    fn new(
        facts: &'a Facts,
        realtime: &'a Realtime,
        data: &'a ControlEnd,
        listener: &ControlListener,
    ) -> Self {
        let (sessions, user) = (Vec::new(), nix::unistd::geteuid().as_raw());
        let log = facts.log.as_ref().and_then(|log| log.try_clone().ok());
        let incidents = Incidents::new(log.and_then(|log| TraceReader::open(log).ok()));
        Self {
            facts,
            realtime,
            data,
            sessions,
            next: FIRST_SESSION,
            user,
            snapshot_asked: false,
            next_snapshot: Instant::ZERO,
            incidents,
            journal: Journal::new(facts),
            ended: EndedChannels::default(),
            rerouting: Rerouting::default(),
            receivers: BTreeMap::new(),
            offers: Offers::new(),
            listing: circuits::Listing::new(),
            entrance: Entrance::new(listener),
            over: false,
        }
    }
}

impl Control<'_> {
    fn turns(&mut self, listener: &ControlListener, signals: &SignalFd) -> io::Result<()> {
        let mut poller = Poller::new(64)?;
        poller.add(signals.as_fd(), SIGNALS, Trigger::Level)?;
        poller.add(listener.as_fd(), LISTENER, Trigger::Level)?;
        poller.add(self.data.wait_fd(), NOTES, Trigger::Edge)?;
        if let Some(broker) = self.facts.privileges.broker_socket() {
            poller.add(broker, BROKER, Trigger::Edge)?;
        }
        while !self.over {
            let due = self.ask_for_snapshot(now()).min(self.incidents.turn(now()));
            let due = due.min(self.tell_changes(now())).min(self.journal.turn(now()));
            let due = due.min(self.attend(&poller, listener, now())).min(self.rule_waiting(now()));
            let due = due.min(self.look_at_queues(now())).min(self.ask_for_circuits(now()));
            let ready: Vec<Ready> = poller.wait(due)?.collect();
            for event in ready {
                match event.token {
                    SIGNALS => {
                        while let Ok(Some(_)) = signals.read_signal() {
                            // Told first: the others' answers to our goodbye would sound as if they had gone.
                            say(Level::Info, "stopped", "asked to stop: this station leaves the segment");
                            self.tell_stopped();
                            self.data.say(Command::Stop);
                        }
                    }
                    LISTENER => self.accept(&poller, listener),
                    NOTES => self.notes(),
                    BROKER if event.hangup => self.facts.privileges.broker_hung_up(),
                    BROKER => {}
                    id => self.serve(&poller, id),
                }
            }
            self.incidents.explain(now(), &self.journal);
            self.reap(&poller);
            self.data.refusals().set_memory(self.facts.ledger.used());
        }
        self.tell_stopped();
        Ok(())
    }

    fn tell_stopped(&self) {
        for owned in self.sessions.iter().flat_map(|session| &session.channels) {
            if let Some(board) = &owned.board {
                board.set_state(ChannelState::Closed(CloseCause::NodeStopped), None);
            }
        }
    }

    /// Asks the data thread for its state if somebody wants it, for all who want it at once and not more
    /// often than it can bear; returns when to try again.
    fn ask_for_snapshot(&mut self, now: Instant) -> Instant {
        let wanted = |session: &Session| session.asked.iter().any(|question| is_of_state(&question.asked));
        if self.snapshot_asked || !self.sessions.iter().any(wanted) {
            return Instant::FAR;
        }
        if now < self.next_snapshot {
            return self.next_snapshot;
        }
        self.snapshot_asked = true;
        self.next_snapshot = now + SNAPSHOT_EVERY;
        self.data.say(Command::Snapshot { ask: self.next, shown: self.to_be_shown() });
        Instant::FAR
    }

    /// How many channels the user of a session has, asks for, or listens for.
    fn channels_of_user(&self, at: usize) -> usize {
        let user = self.sessions[at].user;
        self.sessions.iter().filter(|session| session.user == user).map(Session::weight).sum()
    }

    fn serve(&mut self, poller: &Poller, id: u64) {
        let Some(at) = self.sessions.iter().position(|session| session.id == id) else { return };
        self.next += 1;
        let ask = self.next;
        let had = self.channels_of_user(at);
        let (request, along) = self.sessions[at].connection.try_request_with();
        self.sessions[at].heard = now();
        // Nobody else hands a descriptor over.
        let Ok(mut along) = queue::socket_of(&request, along) else { return self.forget(poller, at) };
        let (number, request) = match request {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(_) => return self.forget(poller, at),
        };
        let session = self.sessions[at].to(number);
        if self.is_beyond_asking(at, &request) || self.is_for_others(at, &request) {
            return;
        }
        match request {
            Request::LlcOpen { socket } if session.greeted => self.llc_open(at, socket),
            Request::UdpOpen { ring_octets, peer } if session.greeted => {
                self.queue_open(at, had, along.take(), (ring_octets, peer));
            }
            Request::Circuit(asked) if session.greeted => self.circuit_asked(at, ask, had, asked),
            Request::UdpClose if session.greeted => self.queue_close(at),
            Request::UdpDiscarded if session.greeted => self.tell_discarded(at),
            Request::Incidents if session.greeted => session.answer(&Reply::Incidents(self.incidents.list())),
            Request::Incident { number } if session.greeted => match self.incidents.one(number) {
                Some((info, file)) => _ = session.reply(&Reply::Incident(info.clone()), &[file]),
                None => session.not_there(no_incident(number, &self.incidents.list())),
            },
            Request::Answer { channel, accepts } if session.greeted => self.on_answer(at, channel, accepts),
            Request::Close { channel } if session.greeted && !session.has(channel) => {
                self.close_foreign(at, channel);
            }
            request => self.ask(at, ask, had, request),
        }
    }

    /// A request of a session about what is its own.
    fn ask(&mut self, at: usize, ask: u64, had: usize, request: Request) {
        if let Request::Open { buffers, traffic, .. } = request
            && let Some(refusal) = self.no_memory(at, buffers, traffic.room_octets, traffic.unit_octets_max)
        {
            return self.sessions[at].answer(&Reply::Refused(refusal));
        }
        let is_more =
            matches!(request, Request::Open { .. } | Request::Listen { .. } | Request::Invitee { .. });
        // The channel that answers an invitation takes the place of the invitee, which counts until its
        // program has the channel.
        let answers = matches!(request, Request::Open { answers: Some(_), .. });
        let user = self.sessions[at].user;
        let places = if answers { places::of_invitees(&self.sessions, user) } else { 0 };
        let session = &mut self.sessions[at];
        match self.facts.quota.one_more_channel(had - places) {
            Err(sentence) if matches!(request, Request::Open { .. }) => {
                let refusal = self.one_channel_too_many(sentence);
                self.sessions[at].answer(&Reply::Refused(refusal));
            }
            Err(sentence) if is_more => session.error(sentence, false),
            _ => session.request(request, ask, now(), self.data, self.facts),
        }
    }

    fn close_foreign(&mut self, asker: usize, named: ChannelId) {
        let all = self.sessions.iter_mut().flat_map(|session| &mut session.channels);
        let mut found: Vec<&mut Owned> = all.filter(|owned| owned.shared == named).collect();
        match &mut found[..] {
            [] => self.sessions[asker].not_there(no_channel(named)),
            [owned] => {
                let channel = owned.channel;
                owned.closing = true;
                self.data.say(Command::Revoke { channel });
                self.sessions[asker].answer(&Reply::Done);
            }
            several => {
                let ends = several.iter().map(|owned| (owned.sending, &*owned.peer.name));
                let sentence = ambiguous(named, ends);
                self.sessions[asker].error(sentence, true);
            }
        }
    }

    fn forget(&mut self, poller: &Poller, at: usize) {
        self.release_queue(at);
        let mut session = self.sessions.swap_remove(at);
        let _ = poller.remove(session.connection.as_fd());
        // Of a request that was never granted no end is told.
        let told = session.channels.iter().filter(|owned| !owned.sending || owned.closing || owned.told);
        told.for_each(|owned| self.ended.keep_name(owned.channel, owned.called()));
        if let Some(service) = session.forget(self.data) {
            self.forget_service(service);
        }
    }

    /// Programs that died without a word.
    fn reap(&mut self, poller: &Poller) {
        while let Some(at) = self.sessions.iter().position(Session::is_over) {
            self.forget(poller, at);
        }
    }

    /// Takes the record of an outstanding question, to which the next reply of its session is.
    fn asked(&mut self, ask: u64) -> Option<(&mut Session, Asked)> {
        self.sessions.iter_mut().find_map(|session| {
            let at = session.asked.iter().position(|question| question.ask == ask)?;
            let Question { number, asked, .. } = session.asked.swap_remove(at);
            session.to(number);
            Some((session, asked))
        })
    }

    // ---- news from the data thread --------------------------------------------------------------------

    fn notes(&mut self) {
        while let Some(note) = self.data.heard() {
            match note {
                Note::Asked { ask, result } => self.on_asked(ask, result),
                Note::Channel { port, event, peer } => self.on_channel(port, event, peer),
                Note::Listening { ask, result } => self.on_listening(ask, result),
                Note::Resizing { ask, result } => self.on_resizing(ask, result),
                Note::Joining { ask, result } => self.on_joining(ask, result),
                Note::Snapshot { ask, snapshot } => self.on_snapshot(ask, &snapshot),
                Note::Incident { event } => self.begin_incident(event),
                Note::SessionEnded { note } => say(Level::Warn, "neighbour", &note),
                Note::PortLost { note } => crate::log::say(crate::log::Level::Warn, "port", &note),
                Note::Hostile { channel, why } => self.on_hostile(channel, &why),
                Note::HostileSocket { attached, why } => self.on_socket_ended(attached, &why),
                Note::Circuit(note) => self.on_circuit(note),
                Note::Done { ask } => self.on_done(ask),
                // Unmaps: the data thread has no time for that.
                Note::Remains(remains) => drop(remains),
                Note::Over => self.over = true,
            }
        }
    }

    fn on_asked(&mut self, ask: u64, result: Result<(ChannelId, Peer), NotFound>) {
        let asked = self.asked(ask);
        let Some((session, Asked::Open { to, service, buffers, room_octets, name, answers })) = asked else {
            // The program left while its request was on its way.
            if let Ok((channel, _)) = result {
                self.data.say(Command::Abort { channel });
            }
            return;
        };
        if let Ok((channel, _)) = result
            && answers
        {
            session.answers_with.retain(|of| session.channels.iter().any(|owned| owned.channel == *of));
            session.answers_with.push(channel);
        }
        match result {
            Ok((channel, peer)) => session.channels.push(Owned {
                channel,
                shared: channel,
                sending: true,
                service,
                peer,
                name,
                buffers,
                room_octets,
                number: session.number(),
                ..Owned::default()
            }),
            Err(why) => session.answer_not_found(&to, &why),
        }
    }

    fn on_listening(&mut self, ask: u64, result: Result<(), NotFound>) {
        let (session, from, listener) = match self.asked(ask) {
            Some((session, Asked::Listen { from, listener })) => (session, from, listener),
            Some((session, Asked::Invitee { service })) => {
                match result {
                    Ok(()) => {
                        session.invitees.push(ask);
                        session.answer(&Reply::Listening { service });
                    }
                    Err(error) => session.error(error.to_string(), false),
                }
                return;
            }
            _ => return,
        };
        match result {
            Ok(()) => {
                session.listens.push(listener);
                session.answer(&Reply::Listening { service: listener.service });
            }
            Err(why) => session.answer_not_found(&from.unwrap_or_default(), &why),
        }
    }

    fn owner(&mut self, channel: ChannelId) -> Option<(usize, usize)> {
        self.sessions.iter().enumerate().find_map(|(at, session)| {
            session.channels.iter().position(|owned| owned.channel == channel).map(|place| (at, place))
        })
    }

    fn on_channel(&mut self, port: PortId, event: ChannelEvent, peer: Option<Peer>) {
        self.log_channel(port, &event);
        if let ChannelEvent::Opened { channel, .. } | ChannelEvent::IncomingOpened { channel, .. } = &event
            && let Some((at, place)) = self.owner(*channel)
        {
            let owned = &self.sessions[at].channels[place];
            let source = (!owned.sending).then_some(&*owned.peer.name);
            self.incidents.met(owned.shared, owned.peer.hop.word(), source);
        }
        match event {
            ChannelEvent::Opened { channel, label, granted } => self.on_opened(channel, label, granted),
            ChannelEvent::Probed { channel, granted } => self.on_probed(channel, granted),
            ChannelEvent::Refused { channel, refusal } => self.on_refused(port, channel, &refusal),
            ChannelEvent::Denied { channel, denied, name, withdrawn, partition } => {
                self.on_denied(channel, &denied, (name.as_deref(), withdrawn, partition.as_deref()));
            }
            ChannelEvent::Changed { channel, granted } | ChannelEvent::Rerouted { channel, granted } => {
                self.on_changed(channel, granted);
            }
            ChannelEvent::Invited { .. } => self.on_invited(&event),
            ChannelEvent::NotInvited { listener, denied, name } => {
                self.on_not_invited(listener, &denied, name.as_deref());
            }
            ChannelEvent::ChangeDenied { channel, denied, name, partition, to } => {
                let by = (name.as_deref(), partition.as_deref());
                self.on_change_denied(channel, &denied, by, to.as_deref());
            }
            ChannelEvent::NotChanged { channel, refusal } => self.on_not_changed(port, channel, &refusal),
            ChannelEvent::NoMemory { channel, unit_octets_max, short } => {
                self.on_no_memory(channel, unit_octets_max, short);
            }
            ChannelEvent::Incoming { channel, remote: shared, label, listener, granted, before, .. } => {
                let Some(peer) = peer else { return };
                self.on_incoming(listener, Coming { channel, shared, label, peer, granted, before });
            }
            ChannelEvent::IncomingOpened { channel, granted } => {
                self.on_incoming_opened(channel, peer, granted);
            }
            ChannelEvent::Closed { channel, cause, stated, listener, awaits, .. } => {
                self.on_closed(channel, cause, (stated, awaits), listener);
            }
            ChannelEvent::Afterwards { channel, stated, sending: false, .. } => {
                self.ended.state(channel, stated);
            }
            ChannelEvent::Receiver { channel, to, name, change } => {
                self.on_receiver(channel, (to, name), &change);
            }
            ChannelEvent::Told { .. }
            | ChannelEvent::Rerouting { .. }
            | ChannelEvent::NotRerouted { .. }
            | ChannelEvent::SecondLost { .. }
            | ChannelEvent::Afterwards { .. }
            | ChannelEvent::Refusal { .. }
            | ChannelEvent::Contested { .. }
            | ChannelEvent::Struck(_)
            | ChannelEvent::ModeChanged
            | ChannelEvent::MembersChanged => {}
        }
    }

    fn on_opened(&mut self, channel: ChannelId, label: u16, granted: Granted) {
        let Some((at, place)) = self.owner(channel) else {
            self.data.say(Command::Abort { channel });
            return;
        };
        let owned = &self.sessions[at].channels[place];
        let buffers = owned.buffers.max(granted.contract.buffers);
        let shape = SourceShape { buffers, unit_octets_max: owned.room_octets };
        let (unit_octets, number) = (granted.contract.unit_octets_max, owned.number);
        let (source, charge) = match self.make_source(at, shape, unit_octets) {
            Ok(made) => made,
            Err(reply) => {
                self.sessions[at].channels.swap_remove(place);
                self.data.say(Command::Abort { channel });
                self.sessions[at].to(number).reply(&reply, &[]);
                return;
            }
        };
        let session = &mut self.sessions[at];
        let owned = &mut session.channels[place];
        owned.charge = Some(charge);
        owned.label = label;
        owned.granted = granted;
        owned.board = Some(source.board.clone());
        owned.told = true;
        owned.number = UNASKED;
        let reply = Reply::Opened { channel, label, contract: granted };
        session.to(number).reply(&reply, &source.descriptors());
        session.channels[place].source = Some(source);
    }

    fn on_refused(&mut self, port: PortId, channel: ChannelId, refusal: &Refusal) {
        let Some((at, place)) = self.owner(channel) else { return };
        let number = self.sessions[at].channels.swap_remove(place).number;
        let info = RefusalInfo::new(refusal, &self.facts.name, &self.facts.port(port).interface);
        self.sessions[at].to(number).reply(&Reply::Refused(info), &[]);
    }

    fn on_denied(
        &mut self,
        channel: ChannelId,
        denied: &RcapDenied,
        (name, withdrawn, partition): (Option<&str>, Option<Withdrawn>, Option<&str>),
    ) {
        let name = self.name_of(denied, name);
        self.receivers.remove(&channel);
        let Some((at, place)) = self.owner(channel) else { return };
        let number = self.sessions[at].channels.swap_remove(place).number;
        let sentence = logged::denial(denied, &name, withdrawn, partition);
        let session = self.sessions[at].to(number);
        // The same answer as on one segment, so that a program tells it from other refusals there, too.
        if denied.test == RcapTest::NoListener {
            session.reply(&Reply::NoListener { sentence }, &[]);
            return;
        }
        let is_absent =
            matches!(denied.test, RcapTest::NoRoute | RcapTest::ReceiverSilent | RcapTest::NeighbourLost);
        if is_absent {
            return session.not_there(sentence);
        }
        let mut info = modify::refusal_of(denied, name, sentence, partition);
        info.withdrawn = withdrawn;
        session.reply(&Reply::Refused(info), &[]);
    }

    fn on_probed(&mut self, channel: ChannelId, granted: Granted) {
        let Some((at, place)) = self.owner(channel) else { return };
        let number = self.sessions[at].channels.swap_remove(place).number;
        self.sessions[at].to(number).reply(&Reply::Probed { contract: granted }, &[]);
    }

    /// The memory is there before the sender knows that it may send.
    fn on_closed(
        &mut self,
        channel: ChannelId,
        cause: CloseCause,
        (stated, awaits): (Option<Stated>, bool),
        listener: Option<u64>,
    ) {
        let final_unit = stated.map(|stated| stated.units);
        // A program that still waits for a change of it must not wait for ever.
        for (asker, number) in self.modifiers(channel) {
            self.sessions[asker].to(number).not_there(no_channel(channel));
        }
        self.no_joiners(channel);
        let Some((at, place)) = self.owner(channel) else { return self.withdraw(channel) };
        let session = &mut self.sessions[at];
        let owned = session.channels.swap_remove(place);
        // It never came to be, and its program still waits.
        match (owned.listener, listener) {
            // The program has answered, and waits for this channel alone.
            (Some(listened), Some(listener)) if listened.asks => {
                self.data.say(Command::Unlisten { listener })
            }
            (Some(listened), Some(listener)) => {
                self.data.say(Command::ListenAgain { listener });
                session.listens.push(listened);
                return;
            }
            _ => {}
        }
        if let Some(board) = &owned.board {
            board.set_unsent(stated.map_or(0, |stated| stated.unsent));
            board.close(cause, final_unit, awaits);
            if !owned.sending && stated.is_none() {
                self.ended.keep_board(channel, board.clone());
            }
        }
        let reply = if owned.sending && !owned.told {
            not_opened(cause, &owned.peer.name, owned.service)
        } else {
            let cause = cause.sentence().into();
            Reply::Closed { channel: owned.shared, cause, final_units: final_unit }
        };
        session.to(owned.number).reply(&reply, &[]);
    }

    fn on_hostile(&mut self, channel: ChannelId, why: &str) {
        let Some((at, place)) = self.owner(channel) else { return };
        let owned = self.sessions[at].channels.swap_remove(place);
        self.ended.keep_name(channel, owned.called());
        if let Some(board) = &owned.board {
            board.set_state(ChannelState::Closed(CloseCause::Hostile), None);
        }
        self.ended.throw_out(channel, format!("the node ended it: {why}"));
        let text = format!("channel {} was ended: {why}", owned.shared);
        say(Level::Warn, "hostile", &format!("{text}; {}", self.sessions[at].program()));
        self.sessions[at].to(UNASKED).error(text, true);
    }

    /// Answers all who asked before the copy was made.
    fn on_snapshot(&mut self, ask: u64, snapshot: &Snapshot) {
        self.snapshot_asked = false;
        for at in 0..self.sessions.len() {
            let is_due = |question: &mut Question| question.ask <= ask && is_of_state(&question.asked);
            let due: Vec<_> = self.sessions[at].asked.extract_if(.., is_due).collect();
            for Question { number, asked, .. } in due {
                let reply = match asked {
                    Asked::List { after } => self.channels(snapshot, after),
                    Asked::Show { channel } => self.detail(snapshot, channel),
                    _ => {
                        let mut info = snapshot.info(self.facts, self.realtime);
                        info.notes.extend(self.broken_channels());
                        info.notes.extend(self.rerouting.notes());
                        info.notes.extend(self.ended.notes(now()));
                        self.journal.mismatches(&mut info);
                        self.tell_queues(&mut info);
                        Reply::Status(Box::new(info))
                    }
                };
                self.sessions[at].to(number).reply(&reply, &[]);
            }
        }
    }
}

/// What is answered with a copy of the data thread's state.
fn is_of_state(asked: &Asked) -> bool {
    matches!(asked, Asked::Status | Asked::List { .. } | Asked::Show { .. })
}

/// Why a channel never came to be.
fn not_opened(cause: CloseCause, peer: &str, service: u16) -> Reply {
    match cause {
        CloseCause::NoMemory => Reply::Refused(memory::of_peer(peer, 0, Shortage::default())),
        CloseCause::ReceiverClosed => Reply::Refused(incoming::unwanted(peer)),
        CloseCause::NoListener => Reply::NoListener {
            sentence: format!(
                "nobody on {peer} listens to service {service}; run 'rota recv --service {service}' \
                 there first"
            ),
        },
        CloseCause::NotForYou => Reply::NoListener {
            sentence: format!(
                "the listener of service {service} on {peer} takes channels of another station only; \
                 leave --from out there, or name this station"
            ),
        },
        CloseCause::NoAnswer => Reply::Error {
            sentence: format!("{peer} does not answer; see with 'rota status' whether it is alive"),
            wrong_use: false,
        },
        _ => {
            Reply::Error { sentence: format!("no channel to {peer}: {}", cause.sentence()), wrong_use: false }
        }
    }
}

impl Session {
    /// A name means no station, or none that will do.
    fn answer_not_found(&mut self, called: &str, why: &NotFound) {
        match why {
            NotFound::Unknown { known } => self.answer(&no_station(called, known)),
            NotFound::Nowhere { .. } => self.answer(&Reply::NoSuchStation { sentence: why.to_string() }),
            NotFound::Wrong(error) => self.error(error.to_string(), true),
        }
    }
}

fn no_station(called: &str, known: &[String]) -> Reply {
    let there = if known.is_empty() { "no other yet".into() } else { known.join(", ") };
    Reply::NoSuchStation { sentence: format!("no station '{called}' on this segment; there are: {there}") }
}

/// Ids are made of the senders' addresses: only addresses that were chosen so make two alike.
fn ambiguous<'a>(id: ChannelId, ends: impl Iterator<Item = (bool, &'a str)>) -> String {
    let ends = ends.map(|(sending, peer)| format!("{} {peer}", if sending { "to" } else { "from" }));
    let ends: Vec<String> = ends.collect();
    let count = ends.len();
    format!("{count} channels here have the id {id}: {}; end it at its other station", ends.join(", "))
}

fn no_channel(channel: ChannelId) -> String {
    format!("no channel {channel} here; 'rota channel list' shows them")
}

fn no_incident(number: u64, kept: &[rota_shm::control::IncidentInfo]) -> String {
    match (kept.first(), kept.last()) {
        (Some(first), Some(last)) => {
            format!("no incident {number} is kept; there are {} to {}", first.number, last.number)
        }
        _ => format!("no incident {number}: nothing has been missed, refused or lost since this node began"),
    }
}

#[cfg(test)]
mod tests {
    /// The first of them was ended, whichever was meant.
    #[test]
    fn an_id_of_two_channels_is_refused_with_both() {
        let said = super::ambiguous(rota_contract::ChannelId(7), [(true, "n2"), (false, "n3")].into_iter());
        assert_eq!(said, "2 channels here have the id 7: to n2, from n3; end it at its other station");
    }
}
