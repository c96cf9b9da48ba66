//! The source's end of a stream.

use rota_contract::{Contract, Tally, Withdrawn};
use rota_units::{Instant, Span};

use super::AHEAD_MAX;
use super::turns::Turns;
use crate::overdue::Overdue;
use crate::pacer::Pacer;
use crate::send::{CloseError, CloseReport, SendChannel, SendError};
use crate::wait::WaitError;
use crate::{ReceiverInfo, now, sleep_until};

/// A source sleeps so long at a time, so that the end of its channel ends its wait.
const LOOK: Span = Span::from_millis(100);

/// A source of stream data units on a channel.
pub struct StreamSource {
    channel: SendChannel,
    pacer: Pacer,
    period: Span,
    turns: Turns,
    /// e_(k−1) + T: the next unit leaves no earlier.
    eligible: Instant,
}

impl StreamSource {
    /// Begins a stream with at most `ahead` units of work-ahead, 1 at least, on a channel just opened;
    /// waits for its first slot. [`StreamSource::ahead`] says for how many units it has room.
    ///
    /// # Errors
    /// [`WaitError`]; the channel is freed.
    pub fn begin(mut channel: SendChannel, ahead: u16, timeout: Span) -> Result<Self, WaitError> {
        // Units wait in the ring on purpose; those that cannot be in time are left out here.
        channel.set_overdue(Overdue::Keep);
        let pacer = channel.pacer(timeout)?;
        let ahead = room_for(ahead, channel.slots(), channel.contract());
        let period = Span::from_nanos(channel.contract().period_ns.max(1));
        Ok(Self { channel, pacer, period, turns: Turns::new(ahead), eligible: Instant::ZERO })
    }

    /// Units of work-ahead for which ring and contract have room; the receiver states at least as many.
    pub fn ahead(&self) -> u16 {
        u16::try_from(self.turns.ahead()).unwrap_or(u16::MAX)
    }

    /// Waits until the window of the next unit is open; its number. Units whose time has passed are left out
    /// and have numbers, so that a unit of a medium keeps its place in time.
    ///
    /// # Errors
    /// [`SendError::Closed`] and [`SendError::NodeGone`].
    pub fn wait(&mut self) -> Result<u64, SendError> {
        loop {
            if let Some(ended) = self.channel.ended() {
                return Err(ended);
            }
            self.channel.follow(&mut self.pacer);
            self.advance(now());
            while self.turns.is_open() && self.cannot_be_in_time(now()) {
                self.leave_out();
            }
            if self.turns.is_open() {
                return Ok(self.turns.next());
            }
            sleep_until(self.pacer.due().min(now() + LOOK));
        }
    }

    /// Puts the next unit into the shared ring, where the node takes it by time; waits for its window first.
    /// Its number.
    ///
    /// # Errors
    /// [`SendError::LeftOut`]: its time has passed. It is lost, has a number, and the next unit follows.
    /// [`SendError::TooLong`], [`SendError::Closed`], [`SendError::NodeGone`].
    pub fn put(&mut self, unit: &[u8]) -> Result<u64, SendError> {
        if self.turns.is_open() {
            let number = self.turns.next();
            self.advance(now());
            if self.turns.next() > number {
                return Err(SendError::LeftOut);
            }
        } else {
            self.wait()?;
        }
        let number = self.turns.next();
        let eligible = now().max(self.eligible);
        // A full ring has no slot before the time of this unit, or `wait` would not have let it in.
        match self.channel.send_timeout(unit, eligible, self.time().since(now())) {
            Ok(_) => {
                self.eligible = eligible + self.period;
                self.turns.pass();
                Ok(number)
            }
            Err(SendError::WouldBlock | SendError::TimedOut) => {
                self.leave_out();
                Err(SendError::LeftOut)
            }
            Err(other) => Err(other),
        }
    }

    /// Drives the source by time: calls `fill` for each unit when its window opens, with its number and an
    /// empty buffer, until `fill` says that there is none. Returns how many units the stream had.
    ///
    /// # Errors
    /// Those of [`StreamSource::put`], [`SendError::LeftOut`] apart: such a unit is counted.
    pub fn run(&mut self, mut fill: impl FnMut(u64, &mut Vec<u8>) -> bool) -> Result<u64, SendError> {
        let mut unit = Vec::with_capacity(self.channel.contract().unit_octets_max as usize);
        loop {
            let number = self.wait()?;
            unit.clear();
            if !fill(number, &mut unit) {
                return Ok(number);
            }
            match self.put(&unit) {
                Ok(_) | Err(SendError::LeftOut) => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// When the window of the next unit opens, or has opened.
    pub fn opens(&self) -> Instant {
        self.pacer.due().minus(self.period * self.turns.age())
    }

    /// The time of the next unit: p_k. The program puts it before, or it is left out.
    pub fn time(&self) -> Instant {
        self.opens() + self.period * self.turns.ahead()
    }

    /// The channel, for its contract and counts.
    pub fn channel(&self) -> &SendChannel {
        &self.channel
    }

    /// As [`SendChannel::receivers_changed`].
    pub fn receivers_changed(&mut self) -> Vec<ReceiverInfo> {
        self.channel.receivers_changed()
    }

    /// As [`SendChannel::withdrawn`].
    pub fn withdrawn(&mut self) -> Option<Withdrawn> {
        self.channel.withdrawn()
    }

    /// The counts of the units so far, as the receiver's node counted them; see [`SendChannel::tally`].
    pub fn tally(&self) -> Tally {
        self.channel.tally()
    }

    /// Ends the stream when its units have left; see [`SendChannel::close`].
    ///
    /// # Errors
    /// [`CloseError`]; the channel is freed all the same.
    pub fn finish(self, drain: Span) -> Result<CloseReport, CloseError> {
        self.channel.close(drain)
    }

    /// The channel, without its stream.
    pub fn into_channel(self) -> SendChannel {
        self.channel
    }

    /// Opens the windows whose time has come, and leaves out the units whose time has passed.
    fn advance(&mut self, now: Instant) {
        let before = self.pacer.due();
        // The pacer answers with turns to send in; here its count of periods is asked.
        let _ = self.pacer.take(now);
        self.turns.open(self.pacer.due().since(before).count_down(self.period));
        let overdue = self.turns.pass_overdue();
        if overdue > 0 {
            self.channel.leave_out(overdue);
        }
    }

    /// True if units that wait before it keep the next unit from leaving by its time: the node stood still.
    fn cannot_be_in_time(&self, now: Instant) -> bool {
        self.channel.is_behind_by(now, self.time().since(now))
    }

    fn leave_out(&mut self) {
        self.channel.leave_out(1);
        self.turns.pass();
    }
}

/// Of so many units of work-ahead those that fit a ring beside the units of the channel's own delay.
fn room_for(ahead: u16, slots: u32, contract: &Contract) -> u64 {
    let delay = contract.bound_ns.div_ceil(contract.period_ns.max(1));
    let room = u64::from(slots).saturating_sub(delay.saturating_add(1));
    u64::from(ahead.min(AHEAD_MAX)).min(room).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ahead_is_what_the_ring_has_beside_the_channel_s_own_delay() {
        let contract = Contract { bound_ns: 101, period_ns: 40, ..Contract::default() };
        // Three periods of delay, and the unit that is put.
        assert_eq!([4, 6, 9, 64].map(|slots| room_for(5, slots, &contract)), [1, 2, 5, 5]);
        assert_eq!((room_for(0, 64, &contract), room_for(u16::MAX, 64, &contract)), (1, 48));
    }
}
