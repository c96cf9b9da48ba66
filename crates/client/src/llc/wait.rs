//! Sleeping until a socket has something to take, or room.

use super::Socket;
use crate::reserved::Reserved;
use crate::{now, spin};
use rota_shm::{Sleep, Waited, max_slice};
use rota_units::{Instant, Span};

impl Socket {
    /// Sleeps until something was received or sent, or until then; returns at once when there is something to
    /// take already. A program to which a reserved channel said [`LlcError::Busy`](super::LlcError::Busy) is
    /// also woken when there is room again. A node that has died ends it too. Returns whether there is
    /// something to take, or room.
    ///
    /// Where the last waits were all short it looks for up to 0.2 ms before it sleeps, and lets others run
    /// meanwhile: being woken costs more than the message (decision 012).
    pub fn wait(&mut self, until: Instant) -> bool {
        self.sleep(until, Sleep::ForNews)
    }

    /// As [`Socket::wait`], but only until a message was received: what becomes of own messages wakes nobody.
    pub fn wait_message(&mut self, until: Instant) -> bool {
        self.sleep(until, Sleep::ForMessages)
    }

    fn sleep(&mut self, until: Instant, how: Sleep) -> bool {
        let wants_room = how == Sleep::ForNews;
        let on_all =
            |reserved: &Reserved| reserved.is_listening() || wants_room && reserved.room_within().is_some();
        if self.reserved.as_deref().is_some_and(on_all) {
            return self.sleep_on_all(until, how);
        }
        if self.has_news(how) {
            return true;
        }
        let began = now();
        let mut patience = self.patience;
        let has_news =
            spin::look(&mut patience, until, || self.has_news(how)) || self.sleep_on_board(until, how);
        patience.waited(now().since(began), has_news);
        self.patience = patience;
        has_news
    }

    /// Whether there is what somebody waits for; channels apart.
    fn has_news(&mut self, how: Sleep) -> bool {
        if how == Sleep::ForNews {
            self.harvest();
        }
        self.memory.received.has_next() || how == Sleep::ForNews && !self.done.is_empty()
    }

    fn sleep_on_board(&mut self, until: Instant, how: Sleep) -> bool {
        loop {
            let seen = self.memory.board.event();
            if self.has_news(how) {
                return true;
            }
            let left = until.since(now());
            if left == Span::ZERO {
                return false;
            }
            let waited = self.memory.sleep(how, seen, left.min(max_slice()));
            if waited == Waited::TimedOut && self.session.is_gone() {
                return false;
            }
        }
    }

    /// As [`Socket::sleep`], but not on the board alone: channels have boards of their own.
    fn sleep_on_all(&mut self, until: Instant, how: Sleep) -> bool {
        loop {
            let octets = self.memory.arm_bell();
            if how == Sleep::ForNews {
                self.harvest();
            }
            let Some(reserved) = &mut self.reserved else {
                return false;
            };
            let has_message = reserved.has_next() || self.memory.received.has_next();
            if has_message || how == Sleep::ForNews && (!self.done.is_empty() || reserved.has_room_again()) {
                return true;
            }
            self.memory.bell.hush(octets);
            let left = until.since(now());
            if left == Span::ZERO || self.session.is_gone() {
                return false;
            }
            let room = reserved.room_within().filter(|_| how == Sleep::ForNews).unwrap_or(Span::MAX);
            reserved.wait(left.min(max_slice()).min(room));
        }
    }
}
