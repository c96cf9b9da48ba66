//! SMART: which TPDUs to send again (theory d.2; TRANSPORT-5.3.2-5 to 15, TRANSPORT-R18 to R29).
//!
//! Numbers only; the octets are elsewhere. Four rules:
//! 1. An acknowledgement (c, k) says that all up to c and k itself have arrived.
//! 2. *Fast:* where c is what was known before and k is beyond it, each TPDU between them that has neither
//!    arrived nor been sent again is lost, once the distance to k is that of reordering.
//! 3. *Probe:* each two round trips, if c has not risen since the last look, the head is sent again, unless
//!    it was sent less than one round trip ago. After two probes in a row without a measurement the
//!    looks are twice as far apart, after three four times.
//! 4. *Time-out:* all that has not arrived is sent again. The eighth in a row ends the circuit, or the first
//!    behind it that is a quarter of the time of silence after the last news: on a short path eight are over
//!    while a host stands still for half a second. A time-out runs from the first TPDU that has left since
//!    the last one: while none may leave, none can be answered.
//!
//! An acknowledgement that was overtaken (c below what is known) tells of its k alone.

use super::packet_pair::Trips;
use super::trip::{Pace, TRIES_MAX, Trip};
use rota_units::{Instant, Span};

/// Where a TPDU between the cumulative acknowledgement and the newest one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On its way.
    Flying,
    /// To be sent again.
    Lost,
    /// Received, out of order: the set R.
    Arrived,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    sent_at: Instant,
    place: Place,
    /// Sent again since the last time-out: the set X.
    again: bool,
    /// Ever sent again: no round trip is measured on it.
    twice: bool,
}

const EMPTY: Slot = Slot { sent_at: Instant::ZERO, place: Place::Flying, again: false, twice: false };

/// The news in an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// TPDUs that were not known to have arrived.
    pub arrived: u64,
    /// The highest TPDU that is found lost; 0: none.
    pub lost: u64,
}

/// The outcome of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing, or the head is to be sent again.
    Probe,
    /// All that has not arrived is to be sent again.
    TimeOut,
    /// The circuit is given up.
    GivenUp,
}

/// The sender's half of SMART.
#[derive(Clone, Debug)]
pub struct Smart {
    slots: Box<[Slot]>,
    reorder: u64,
    trip: Trip,
    /// All up to here have arrived.
    cum: u64,
    /// The newest that was sent.
    top: u64,
    /// Each TPDU up to here has arrived or been sent again since the last time-out: rule 2 need not look.
    scanned: u64,
    /// None below is lost.
    lost_from: u64,
    flying: u64,
    lost: u64,
    checked: u64,
    check_at: Instant,
    time_out_at: Instant,
    tries: u32,
    /// When the last TPDU came to be known as arrived, or the first one left.
    news_at: Instant,
    /// No circuit is given up so soon behind it.
    patience: Span,
    resent: u64,
}

impl Smart {
    /// Nothing has been sent. At most `window` TPDUs will be on their way.
    pub fn new(window: u32, pace: Pace) -> Self {
        Self {
            slots: vec![EMPTY; window.max(1) as usize].into(),
            reorder: u64::from(pace.reorder.max(1)),
            trip: Trip::new(pace),
            cum: 0,
            top: 0,
            scanned: 0,
            lost_from: 1,
            flying: 0,
            lost: 0,
            checked: 0,
            check_at: Instant::FAR,
            time_out_at: Instant::FAR,
            tries: 0,
            news_at: Instant::ZERO,
            patience: pace.silence.div_down(4),
            resent: 0,
        }
    }

    /// All TPDUs up to here have arrived.
    pub const fn cum(&self) -> u64 {
        self.cum
    }

    /// The newest TPDU that was sent.
    pub const fn top(&self) -> u64 {
        self.top
    }

    /// TPDUs on their way, as far as is known.
    pub const fn flying(&self) -> u64 {
        self.flying
    }

    /// True while some TPDU is to be sent again.
    pub const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// True if all that was sent has arrived.
    pub const fn is_idle(&self) -> bool {
        self.cum == self.top
    }

    /// True if the window has room for a new TPDU.
    pub const fn has_room(&self) -> bool {
        self.top - self.cum < self.slots.len() as u64
    }

    /// True if the window has room for this TPDU, behind those that were sent.
    pub const fn has_room_for(&self, sequence: u64) -> bool {
        sequence - self.cum <= self.slots.len() as u64
    }

    /// How often a TPDU was sent again.
    pub const fn resent(&self) -> u64 {
        self.resent
    }

    /// The round trip, and the time-out of data as it is now.
    pub fn waits(&self) -> (Span, Span) {
        (self.trip.smooth(), self.trip.time_out())
    }

    /// The round trip as a controller of rates needs it.
    pub const fn trips(&self) -> Trips {
        Trips { smooth: self.trip.smooth(), shortest: self.trip.shortest() }
    }

    pub(super) const fn trip(&self) -> &Trip {
        &self.trip
    }

    /// The handshake took so long.
    pub fn guess(&mut self, took: Span) {
        self.trip.guess(took);
    }

    const fn at(&self, sequence: u64) -> usize {
        (sequence % self.slots.len() as u64) as usize
    }

    /// The next new TPDU leaves; its number. Panics where the window has no room.
    pub fn send(&mut self, now: Instant) -> u64 {
        assert!(self.has_room(), "the window is full");
        if self.is_idle() {
            self.begin_waits(now);
        }
        self.waits_again(now);
        self.top += 1;
        let at = self.at(self.top);
        self.slots[at] = Slot { sent_at: now, ..EMPTY };
        self.flying += 1;
        self.top
    }

    /// The lowest TPDU that is to be sent again.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        self.lost_from = self.lost_from.max(self.cum + 1);
        while self.slots[self.at(self.lost_from)].place != Place::Lost {
            self.lost_from += 1;
        }
        Some(self.lost_from)
    }

    /// That one leaves again.
    pub fn send_again(&mut self, now: Instant) -> Option<u64> {
        let sequence = self.next_lost()?;
        let at = self.at(sequence);
        let slot = &mut self.slots[at];
        (slot.place, slot.sent_at, slot.twice) = (Place::Flying, now, true);
        self.flying += 1;
        self.lost -= 1;
        self.resent += 1;
        self.waits_again(now);
        Some(sequence)
    }

    /// Something leaves: behind a time-out the next one runs from here.
    fn waits_again(&mut self, now: Instant) {
        if self.time_out_at == Instant::FAR {
            self.time_out_at = now + self.trip.time_out();
        }
    }

    /// Without error control what is lost is not sent again: it counts as over.
    pub fn write_off(&mut self) {
        while let Some(sequence) = self.next_lost() {
            let at = self.at(sequence);
            self.slots[at].place = Place::Arrived;
            self.lost -= 1;
        }
        while self.cum < self.top && self.slots[self.at(self.cum + 1)].place == Place::Arrived {
            self.cum += 1;
        }
        if self.is_idle() {
            (self.check_at, self.time_out_at) = (Instant::FAR, Instant::FAR);
        }
    }

    /// Nobody answers what was sent: all of it counts as over.
    pub fn write_off_all(&mut self) {
        for sequence in self.cum + 1..=self.top {
            self.lose(sequence);
        }
        self.write_off();
    }

    /// An acknowledgement (c, k) came; `None` if it speaks of what was never sent (TRANSPORT-R73).
    pub fn acknowledge(&mut self, now: Instant, cum: u64, cause: u64) -> Option<Learned> {
        if cum > self.top || cause > self.top {
            return None;
        }
        let (before, mut learned) = (self.cum, Learned::default());
        if cause > before {
            self.measure_on(now, cause);
        }
        while self.cum < cum {
            self.advance(&mut learned);
        }
        if cause > self.cum {
            learned.arrived += u64::from(self.arrives(cause));
            // Only where acknowledgements overtake can the head have arrived without a higher c.
            while self.cum < self.top && self.slots[self.at(self.cum + 1)].place == Place::Arrived {
                self.advance(&mut learned);
            }
        }
        if self.cum > before {
            (self.tries, self.news_at) = (0, now);
            self.time_out_at = now + self.trip.time_out();
            if self.is_idle() {
                (self.check_at, self.time_out_at) = (Instant::FAR, Instant::FAR);
            }
        }
        if cum == before && cause > cum {
            learned.lost = self.find_lost(cause);
        }
        Some(learned)
    }

    /// Rule 2.
    fn find_lost(&mut self, cause: u64) -> u64 {
        let (first, end, mut highest) =
            (self.scanned.max(self.cum) + 1, cause.saturating_sub(self.reorder), 0);
        for sequence in first..=end {
            let at = self.at(sequence);
            let slot = self.slots[at];
            if slot.place != Place::Arrived && !slot.again {
                self.lose(sequence);
                self.slots[at].again = true;
                highest = sequence;
            }
        }
        self.scanned = self.scanned.max(end);
        highest
    }

    /// It is to be sent again; whether that is news.
    fn lose(&mut self, sequence: u64) {
        let at = self.at(sequence);
        if self.slots[at].place == Place::Flying {
            self.slots[at].place = Place::Lost;
            self.flying -= 1;
            self.lost += 1;
            self.lost_from = self.lost_from.min(sequence);
        }
    }

    /// The head has arrived.
    fn advance(&mut self, learned: &mut Learned) {
        let head = self.cum + 1;
        learned.arrived += u64::from(self.arrives(head));
        self.cum = head;
    }

    /// It has arrived; whether that is news.
    fn arrives(&mut self, sequence: u64) -> bool {
        let at = self.at(sequence);
        match self.slots[at].place {
            Place::Flying => self.flying -= 1,
            Place::Lost => self.lost -= 1,
            Place::Arrived => return false,
        }
        self.slots[at].place = Place::Arrived;
        true
    }

    fn measure_on(&mut self, now: Instant, cause: u64) {
        let slot = self.slots[self.at(cause)];
        if slot.place == Place::Flying && !slot.twice {
            self.trip.measure(now.since(slot.sent_at));
        }
    }

    fn begin_waits(&mut self, now: Instant) {
        (self.checked, self.check_at) = (self.cum, now + self.trip.look());
        self.time_out_at = now + self.trip.time_out();
        if self.tries == 0 {
            self.news_at = now;
        }
    }

    /// Rules 3 and 4; `None` if nothing is due. The time-out goes first, and both may be due.
    pub fn handle_deadline(&mut self, now: Instant) -> Option<Expiry> {
        if self.time_out_at <= now {
            self.tries += 1;
            if self.tries >= TRIES_MAX && now.since(self.news_at) >= self.patience {
                (self.check_at, self.time_out_at) = (Instant::FAR, Instant::FAR);
                return Some(Expiry::GivenUp);
            }
            self.trip.is_late();
            for sequence in self.cum + 1..=self.top {
                self.lose(sequence);
                let at = self.at(sequence);
                self.slots[at].again = false;
            }
            self.scanned = self.cum;
            self.time_out_at = Instant::FAR;
            return Some(Expiry::TimeOut);
        }
        if self.check_at > now {
            return None;
        }
        let at = self.at(self.cum + 1);
        if self.cum == self.checked && now.since(self.slots[at].sent_at) >= self.trip.smooth() {
            self.lose(self.cum + 1);
            self.slots[at].again = true;
            self.trip.is_probed();
        }
        (self.checked, self.check_at) = (self.cum, now + self.trip.look());
        Some(Expiry::Probe)
    }

    /// When to call [`Smart::handle_deadline`]; `true` if that is the time-out.
    pub fn deadline(&self) -> (Instant, bool) {
        if self.time_out_at <= self.check_at { (self.time_out_at, true) } else { (self.check_at, false) }
    }
}
