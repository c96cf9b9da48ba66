//! Packet-pair (theory d.3; TRANSPORT-R30 to R32): the rate of a sender behind a server that serves circuits
//! in turn.
//!
//! TPDUs leave in pairs, back to back. Behind such a server the two of a pair leave it one turn apart, so the
//! spacing of their acknowledgements tells this circuit's share μ. The estimate of μ and the TPDUs on their
//! way set the rate. Rates are in millionths of a TPDU in a second, and each step is one fraction that is
//! rounded once: the estimate to the nearest, the rate down, the time of a pair up.
//!
//! **Discovery.** Behind one queue the spacing tells the whole capacity and not the share. So a sender that
//! has enough to send watches what arrives: behind turns it is the estimate, behind one queue it is less.
//! Where less than three quarters of the estimate arrives in three looks in a row, the estimate does not fit,
//! and the circuit takes the window instead. A look lasts a round trip and 16 arrivals at least, so that an
//! estimate that has fallen because others came has time to follow. A look at a sender that had too little
//! to send, and no queue on the path either, says nothing. Where the acknowledgements of pairs come at one
//! instant time after time, no pair can be measured, and the circuit takes the window, too.
//!
//! Departures from the theory: α falls back to a tenth at an error within a fifth or of the other sign, of
//! which it says nothing; a pair measures only if both TPDUs are new, since the acknowledgement of one that
//! was sent twice may belong to either; and the rate counts TPDUs, so it is exact where they have one size.
//! The shortest round trip is that of the whole life of a circuit: on a path that has become longer for good
//! the rate stays below the share.

use rota_units::{Instant, Span};

/// Of a rate: one TPDU in a second.
const TPDU: u64 = 1_000_000;
/// Of a rate times nanoseconds: one TPDU.
const PARTS: u64 = TPDU * 1_000_000_000;
/// TPDUs that are to wait at the bottleneck: B*.
const QUEUE: u64 = 4;
/// The inverse of the gain g of the controller.
const GAIN_INVERSE: u64 = 2;
/// α in tenths: at first, and at most.
const ALPHA: (u64, u64) = (1, 5);
/// Large errors of one sign that double α.
const LARGE_MAX: u32 = 3;
/// Arrivals that a look needs.
const LOOK: u64 = 16;
/// Looks in a row that do not fit.
const UNFIT_MAX: u32 = 3;
/// Pairs in a row whose acknowledgements came at one instant.
const BLIND_MAX: u32 = 16;

/// The round trip as a controller needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// T: as it is now.
    pub smooth: Span,
    /// The shortest that was seen: that of a path without queues.
    pub shortest: Span,
}

/// The estimate μ̂ of a circuit's share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Estimate {
    /// In millionths of a TPDU in a second; 0: there is none yet.
    rate: u64,
    /// α in tenths.
    alpha: u64,
    /// Large errors in a row of one sign, and whether they are above.
    large: (u32, bool),
}

impl Estimate {
    fn sample(&mut self, gap: Span) {
        let sample = rounded(u128::from(PARTS), u128::from(gap.as_nanos().max(1)));
        if self.rate == 0 {
            *self = Self { rate: sample.max(1), alpha: ALPHA.0, large: (0, false) };
            return;
        }
        let (is_above, error) = (sample > self.rate, sample.abs_diff(self.rate));
        if u128::from(error) * 5 <= u128::from(self.rate) {
            (self.alpha, self.large) = (ALPHA.0, (0, is_above));
        } else {
            if self.large.1 != is_above {
                (self.alpha, self.large) = (ALPHA.0, (0, is_above));
            }
            self.large.0 += 1;
            if self.large.0 == LARGE_MAX {
                (self.alpha, self.large.0) = ((self.alpha * 2).min(ALPHA.1), 0);
            }
        }
        let (old, new) = (u128::from(self.rate), u128::from(sample));
        let alpha = u128::from(self.alpha);
        self.rate = rounded((10 - alpha) * old + alpha * new, 10).max(1);
    }
}

fn rounded(dividend: u128, divisor: u128) -> u64 {
    u64::try_from((dividend + divisor / 2) / divisor).unwrap_or(u64::MAX)
}

/// What has left and arrived since the last look.
#[derive(Clone, Copy, Debug)]
struct Look {
    since: Instant,
    sent: u64,
    arrived: u64,
    /// A queue was on the path when it began.
    queued: bool,
}

/// The sender's half of packet-pair.
#[derive(Clone, Debug)]
pub struct PacketPair {
    estimate: Estimate,
    /// When the last pair was due.
    pair_at: Instant,
    /// One of it has left, and the other one may go at once.
    half: bool,
    /// The TPDU that makes a pair to be measured of it, if it leaves next; 0: none.
    second: u64,
    /// Which TPDUs of a window are the second ones of such pairs, by their sequence.
    seconds: Box<[u64]>,
    /// The last acknowledgement: of which TPDU, and when.
    last: (u64, Instant),
    samples: u64,
    /// Pairs since the last sample whose acknowledgements came at one instant.
    blind: u32,
    look: Look,
    /// In the last look the sender had enough to send.
    was_busy: bool,
    unfit: u32,
}

impl PacketPair {
    /// Nothing has been sent. At most `window` TPDUs will be on their way.
    pub fn new(now: Instant, window: u32) -> Self {
        Self {
            estimate: Estimate::default(),
            pair_at: Instant::ZERO,
            half: false,
            second: 0,
            seconds: vec![0; window.max(1).div_ceil(64) as usize].into(),
            last: (0, Instant::ZERO),
            samples: 0,
            blind: 0,
            look: Look { since: now, sent: 0, arrived: 0, queued: false },
            was_busy: false,
            unfit: 0,
        }
    }

    /// μ̂ in millionths of a TPDU in a second; `None` before the first pair.
    pub fn estimate(&self) -> Option<u64> {
        (self.estimate.rate > 0).then_some(self.estimate.rate)
    }

    /// Pairs that were measured.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// λ in millionths of a TPDU in a second, with so many TPDUs on their way. Before the first pair was
    /// measured it is one pair in a round trip.
    pub fn rate(&self, flying: u64, trips: Trips) -> u64 {
        let trip = i128::from(trips.smooth.as_nanos().max(1));
        if self.estimate.rate == 0 {
            return u64::try_from(i128::from(2 * PARTS) / trip).unwrap_or(u64::MAX).max(1);
        }
        // B* − n̂ times PARTS.
        let missing = i128::from(QUEUE) * i128::from(PARTS) - self.queue(flying, trips);
        let correction = missing.div_euclid(trip * i128::from(GAIN_INVERSE));
        let rate = (i128::from(self.estimate.rate) + correction).max(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// n̂ times [`PARTS`]: TPDUs on their way that the path without its queues does not hold.
    fn queue(&self, flying: u64, trips: Trips) -> i128 {
        let held = i128::from(self.estimate.rate) * i128::from(trips.shortest.as_nanos());
        i128::from(flying) * i128::from(PARTS) - held
    }

    /// The time of a pair at the present rate; `None` while the rate is 0.
    fn period(&self, flying: u64, trips: Trips) -> Option<Span> {
        let rate = self.rate(flying, trips);
        (rate > 0).then(|| Span::from_nanos((2 * PARTS).div_ceil(rate)))
    }

    /// When the next TPDU may leave; [`Instant::FAR`] until something arrives.
    pub fn earliest(&self, now: Instant, flying: u64, trips: Trips) -> Instant {
        match self.period(flying, trips) {
            _ if self.half => now,
            Some(period) => self.pair_at + period,
            None => Instant::FAR,
        }
    }

    /// A TPDU leaves; `flying` is without it. `is_new`: it was never sent before. `more`: the one behind it
    /// is ready and new, too, so that both make a pair to be measured.
    pub fn left(&mut self, now: Instant, sequence: u64, is_new: bool, more: bool, flying: u64, trips: Trips) {
        self.look.sent += 1;
        if is_new {
            let is_second = self.half && sequence == self.second;
            self.mark(sequence, is_second);
        } else {
            // An acknowledgement of it may belong to either sending.
            self.mark(sequence, false);
            self.mark(sequence + 1, false);
        }
        let period = self.period(flying, trips).unwrap_or(trips.smooth);
        let due = self.pair_at + period;
        if self.half && now < due {
            (self.half, self.second) = (false, 0);
            return;
        }
        // A grant that comes late makes up for it, up to one pair.
        self.pair_at = if now < due + period { due } else { now };
        (self.half, self.second) = (true, if is_new && more { sequence + 1 } else { 0 });
    }

    const fn place(&self, sequence: u64) -> (usize, u64) {
        let at = sequence % (self.seconds.len() as u64 * 64);
        (at as usize / 64, 1 << (at % 64))
    }

    fn mark(&mut self, sequence: u64, is_second: bool) {
        let (word, bit) = self.place(sequence);
        if is_second {
            self.seconds[word] |= bit;
        } else {
            self.seconds[word] &= !bit;
        }
    }

    /// An acknowledgement of TPDU `cause` came, and so many TPDUs are known to have arrived by it. False if
    /// the estimate does not fit what arrives.
    pub fn on_ack(&mut self, now: Instant, cause: u64, arrived: u64, flying: u64, trips: Trips) -> bool {
        if cause > 0 {
            self.measure(now, cause);
        }
        self.look.arrived += arrived;
        let enough = self.look.arrived >= LOOK && now.since(self.look.since) >= trips.smooth;
        self.blind < BLIND_MAX && (!enough || self.fits(now, flying, trips))
    }

    fn measure(&mut self, now: Instant, cause: u64) {
        let (before, at) = core::mem::replace(&mut self.last, (cause, now));
        let (word, bit) = self.place(cause);
        if self.seconds[word] & bit == 0 || before + 1 != cause {
            return;
        }
        self.seconds[word] &= !bit;
        // Acknowledgements that come at one instant were kept back on their way, and measure nothing.
        if at == now {
            self.blind += 1;
            return;
        }
        self.estimate.sample(now.since(at));
        (self.samples, self.blind) = (self.samples + 1, 0);
    }

    /// Nothing has arrived for a time-out. False if the estimate does not fit what arrives.
    pub fn on_time_out(&mut self, now: Instant, flying: u64, trips: Trips) -> bool {
        self.fits(now, flying, trips)
    }

    /// Ends a look.
    fn fits(&mut self, now: Instant, flying: u64, trips: Trips) -> bool {
        let queued =
            self.estimate.rate > 0 && self.queue(flying, trips) >= 2 * i128::from(QUEUE) * i128::from(PARTS);
        let begins = Look { since: now, sent: 0, arrived: 0, queued };
        let ended = core::mem::replace(&mut self.look, begins);
        let share = u128::from(self.estimate.rate) * u128::from(now.since(ended.since).as_nanos());
        let is_most = |count: u64| u128::from(count) * 4 * u128::from(PARTS) >= share * 3;
        let is_busy = is_most(ended.sent);
        let counts = (is_busy && self.was_busy) || (ended.queued && queued);
        self.was_busy = is_busy;
        if is_most(ended.arrived) {
            self.unfit = 0;
        } else if counts {
            self.unfit += 1;
        }
        self.unfit < UNFIT_MAX
    }
}
