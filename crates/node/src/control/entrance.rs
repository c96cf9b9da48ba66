//! Accepts connections, within limits; refuses them if no descriptor is left.

use super::{Control, LISTENER};
use crate::limits::Limit;
use crate::log::{Level, say};
use crate::session::Session;
use rota_driver::poller::{Poller, Trigger};
use rota_shm::control::{CircuitAsk, Connection, ControlListener, Reply, Request, SocketError, UNASKED};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, OwnedFd};

const SESSIONS_MAX: usize = 1_000;
/// Connections beyond a user's limit, which may read the node's state and nothing else: a user at the limit
/// must still be able to list the connections.
const ASKING_MAX: usize = 8;
/// The longest silence of a connection before its hello, and between questions if it may only ask.
const SILENT_MAX: Span = Span::from_millis(5_000);
/// A connection that may only ask, and has had its answer for so long, makes room for another.
const IDLE: Span = Span::from_millis(100);
/// The pause of the listener if no descriptor is left even for a refusal.
const PAUSE: Span = Span::from_millis(200);

/// The state of the listener.
pub(super) struct Entrance {
    /// A descriptor that is released to accept a program and send it the refusal. Another thread may take it
    /// meanwhile: then there is none until a descriptor is free again.
    reserve: Option<OwnedFd>,
    /// The end of a pause.
    paused: Option<Instant>,
}

impl Entrance {
    pub(super) fn new(listener: &ControlListener) -> Self {
        let mut new = Self { reserve: None, paused: None };
        new.keep_reserve(listener);
        new
    }

    /// Takes the reserved descriptor again if it is lost and one is free. To be called in each turn, after
    /// sessions have ended, and before a program is let in: that one must not take the last descriptor.
    fn keep_reserve(&mut self, listener: &impl AsFd) -> bool {
        if self.reserve.is_none() {
            self.reserve = listener.as_fd().try_clone_to_owned().ok();
        }
        self.reserve.is_some()
    }
}

impl Control<'_> {
    /// Ends silent connections, takes back the reserved descriptor and listens again after a pause. When to
    /// look next.
    pub(super) fn attend(&mut self, poller: &Poller, listener: &ControlListener, now: Instant) -> Instant {
        let mut next = Instant::FAR;
        while let Some(at) = self.sessions.iter().position(|session| silent_until(session) <= now) {
            let session = &self.sessions[at];
            if !session.greeted {
                session.error(format!("nothing was said for {SILENT_MAX}: hello comes first"), true);
                self.data.refusals().count(Limit::Silent);
            }
            self.forget(poller, at);
        }
        self.entrance.keep_reserve(listener);
        next = self.sessions.iter().map(silent_until).fold(next, Instant::min);
        if let Some(until) = self.entrance.paused {
            if now < until {
                return next.min(until);
            }
            let watched = poller.add(listener.as_fd(), LISTENER, Trigger::Level);
            self.entrance.paused = watched.is_err().then(|| now + PAUSE);
            next = next.min(self.entrance.paused.unwrap_or(Instant::FAR));
        }
        next
    }

    pub(super) fn accept(&mut self, poller: &Poller, listener: &ControlListener) {
        loop {
            self.entrance.keep_reserve(listener);
            match listener.accept() {
                Ok(Some(connection)) => self.let_in(poller, connection),
                Ok(None) => return,
                Err(error) => return self.turn_away(poller, listener, &error),
            }
        }
    }

    fn let_in(&mut self, poller: &Poller, connection: Connection) {
        let user = crate::door::check(&connection, self.user, self.facts.guests.as_ref());
        let welcome = user.and_then(|user| Ok((user, self.welcome(poller, user)?)));
        let refused = match welcome {
            Ok((user, only_asks)) => {
                self.next += 1;
                match poller.add(connection.as_fd(), self.next, Trigger::Level) {
                    Ok(()) => {
                        let mut session = Session::new(self.next, user, connection);
                        session.only_asks = only_asks;
                        self.sessions.push(session);
                        return;
                    }
                    Err(error) => {
                        self.data.refusals().count(Limit::Descriptors);
                        format!("the kernel has no room for one more connection: {error}")
                    }
                }
            }
            Err(sentence) => sentence,
        };
        say(Level::Warn, "connection", &format!("a program was turned away: {refused}"));
        let _ = connection.send_reply(UNASKED, &Reply::Error { sentence: refused, wrong_use: false }, &[]);
    }

    /// The right of a user to one more connection: a full one, or one that may only ask; if none, why.
    fn welcome(&mut self, poller: &Poller, user: u32) -> Result<bool, String> {
        let mut room = self.room(user);
        // Programs that have ended since the last turn count against no limit.
        if room.is_err() {
            self.reap(poller);
            room = self.room(user);
        }
        let Err(full) = room else { return Ok(false) };
        let is_asking = |session: &&Session| session.user == user && session.only_asks;
        let asking = self.sessions.iter().filter(is_asking).count();
        if asking < ASKING_MAX && self.sessions.len() < SESSIONS_MAX + 8 * ASKING_MAX {
            return Ok(true);
        }
        let now = rota_driver::clock::now();
        let is_idle = |session: &Session| session.asked.is_empty() && session.heard + IDLE <= now;
        let idle = self.sessions.iter().enumerate().filter(|(_, of)| is_asking(of) && is_idle(of));
        let Some(at) = idle.min_by_key(|(_, of)| of.heard).map(|(at, _)| at) else {
            self.data.refusals().count(Limit::Connections);
            return Err(full);
        };
        self.forget(poller, at);
        Ok(true)
    }

    /// The room for one more full connection of a user; if none, why.
    fn room(&self, user: u32) -> Result<(), String> {
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(format!(
                "this node already serves {SESSIONS_MAX} programs, which is its limit; end one"
            ));
        }
        let full = |session: &&Session| session.user == user && !session.only_asks;
        self.facts.quota.one_more_connection(self.sessions.iter().filter(full).count())
    }

    /// True if the request exceeds the rights of a connection beyond the limit; the program then gets an
    /// error.
    pub(super) fn is_beyond_asking(&self, at: usize, request: &Request) -> bool {
        let session = &self.sessions[at];
        let is_more = matches!(
            request,
            Request::Open { .. }
                | Request::Listen { .. }
                | Request::Invitee { .. }
                | Request::LlcOpen { .. }
                | Request::UdpOpen { .. }
                | Request::Circulate { .. }
                | Request::Circuit(
                    CircuitAsk::Listen { .. } | CircuitAsk::Accept { .. } | CircuitAsk::Open { .. }
                )
        );
        if !session.only_asks || !is_more {
            return false;
        }
        self.data.refusals().count(Limit::Connections);
        let sentence =
            self.facts.quota.one_more_connection(self.facts.quota.connections).err().unwrap_or_default();
        session.error(sentence, false);
        true
    }

    /// Refuses a connection because no descriptor is left. One descriptor is reserved to send the refusal.
    /// Without it the listener pauses: a listener that is always ready would take all of this thread's time.
    fn turn_away(&mut self, poller: &Poller, listener: &ControlListener, error: &SocketError) {
        self.data.refusals().count(Limit::Descriptors);
        say(Level::Warn, "connection", &format!("a program could not be let in: {error}"));
        self.entrance.reserve = None;
        let sentence = format!(
            "this node has no descriptor left for one more program ({error}): end one, or raise its limit \
             of open files"
        );
        let told = listener.accept().is_ok_and(|waits| {
            waits.is_none_or(|waits| {
                waits.send_reply(UNASKED, &Reply::Error { sentence, wrong_use: false }, &[]).is_ok()
            })
        });
        if self.entrance.keep_reserve(listener) && told {
            return;
        }
        let _ = poller.remove(listener.as_fd());
        self.entrance.paused = Some(rota_driver::clock::now() + PAUSE);
    }
}

/// When a connection that says nothing is closed.
fn silent_until(session: &Session) -> Instant {
    if !session.greeted || session.only_asks && session.asked.is_empty() {
        session.heard + SILENT_MAX
    } else {
        Instant::FAR
    }
}
