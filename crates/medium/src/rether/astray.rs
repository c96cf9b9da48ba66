//! Frames for this station that go astray: a stranger that no station hears moves the switches' entry for its
//! address, for instance by frames to itself (decision 014).
//!
//! Only missing frames show it: units that were sent and did not come (`channels/astray.rs`), and tokens that
//! came only when they were sent again, to the group address. One of those is a lost frame. Four, each soon
//! after the others used the address again, are a sign. So are four questions of a sender, which asks while
//! it uses the group address if frames for the own address arrive (`channels/reach.rs`).
//!
//! While the others use the group address, nothing shows whether the stranger goes on. So the address stays
//! contested for a minute, and for twice as long each time that the signs come back, up to ten minutes.

use super::contested::Sign;
use super::{Rether, Stamp};
use crate::door::StationId;
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, StationSet, Token};

/// How long an address is contested at first, and at most.
const HOLD_MIN: Span = Span::from_millis(60_000);
const HOLD_MAX: Span = Span::from_millis(600_000);
/// So long after one hold the next sign doubles it.
const MEMORY: Span = HOLD_MAX;
/// A token that went astray counts if so few came to this station's own address since the one before.
const SOON: u16 = 8;
/// And if it did so within this time. The others use the group address for some seconds after each.
const SOON_TIME: Span = Span::from_millis(60_000);
/// So many are a sign.
const ASTRAY_SIGN: u8 = 4;
/// The same as `SOON` of questions, of which a sender asks several a second.
const SOON_ASKED: u16 = 4;
/// A list or token is later than so many cycles only where the ring stands.
const HOLE_CYCLES: u64 = 2;

/// Frames of one sort that came to this station's group address only.
#[derive(Clone, Copy)]
struct AstrayFrames {
    /// How many came to its own address since one went astray.
    since: u16,
    count: u8,
    /// When the newest one did.
    last: Instant,
}

impl AstrayFrames {
    const NONE: Self = Self { since: u16::MAX, count: 0, last: Instant::ZERO };

    fn came(&mut self) {
        self.since = self.since.saturating_add(1);
    }

    /// One went astray, behind at most so many that came; true when so many have that it is a sign.
    fn went(&mut self, at: Instant, soon: u16) -> bool {
        let soon = self.since <= soon && at.since(self.last) < SOON_TIME;
        self.count = if soon { self.count + 1 } else { 1 };
        (self.since, self.last) = (0, at);
        self.count >= ASTRAY_SIGN
    }
}

/// Frames that did not reach this station.
#[derive(Clone)]
pub(super) struct Astray {
    /// When the ring was last heard of, and the end of the newest time without a word of it.
    pub(super) news: Instant,
    hole: Instant,
    /// How long this station's address is contested for, and until when.
    hold: Span,
    until: Instant,
    /// The destination of the frame that is being handled.
    pub(super) came_to: MacAddr,
    /// It came to the group address after a time in which no sender had a reason to use that.
    pub(super) afresh: bool,
    /// The stations whose newest token came to this station's own address.
    direct: StationSet,
    tokens: AstrayFrames,
    /// The questions of senders whether frames arrive.
    asked: AstrayFrames,
    /// The newest token that came in time but was read too late: its repetition is no sign.
    pub(super) expired: Option<Stamp>,
}

impl Astray {
    pub(super) fn new() -> Self {
        Self {
            news: Instant::ZERO,
            hole: Instant::ZERO,
            hold: Span::ZERO,
            until: Instant::ZERO,
            came_to: MacAddr::BROADCAST,
            afresh: false,
            direct: StationSet::EMPTY,
            tokens: AstrayFrames::NONE,
            asked: AstrayFrames::NONE,
            expired: None,
        }
    }

    /// A ring forms: the tokens of an earlier one say nothing about it.
    pub(super) fn forget_tokens(&mut self) {
        self.told();
        (self.tokens, self.expired) = (AstrayFrames { last: self.tokens.last, ..AstrayFrames::NONE }, None);
    }

    /// The others are told to use the group address: their next tokens come there, and none went astray.
    pub(super) fn told(&mut self) {
        self.direct = StationSet::EMPTY;
    }

    /// A token was accepted; `late`: since it was first sent, its sender had time to send it again. True when
    /// so many have come to the group address only that it is a sign.
    fn token(&mut self, at: Instant, from: StationId, me: MacAddr, late: bool) -> bool {
        if self.came_to == me {
            self.direct.insert(from);
            self.tokens.came();
        }
        if self.came_to != me.own_group() || !(self.afresh || self.direct.contains(from)) {
            return false;
        }
        self.direct.remove(from);
        if !late {
            // Its sender used the group address for another reason.
            return false;
        }
        self.tokens.went(at, SOON)
    }

    /// The end of the hold that begins now, or goes on.
    fn begin(&mut self, now: Instant) -> Instant {
        if now >= self.until {
            let doubles = self.hold > Span::ZERO && now < self.until + MEMORY;
            self.hold = if doubles { (self.hold * 2).min(HOLD_MAX) } else { HOLD_MIN };
            self.until = now + self.hold;
        }
        (self.tokens.count, self.asked.count) = (0, 0);
        self.until
    }
}

impl Rether {
    /// True if frames for this address go astray: a stranger uses it, and no station hears the stranger.
    pub fn is_astray(&self, mac: MacAddr) -> bool {
        self.sign_of(mac) == Some(Sign::Astray)
    }

    /// A sender of steady units has been silent since then: perhaps its units go astray. A frame of this
    /// station moves the switches' entries back.
    pub fn show_place(&mut self, now: Instant, since: Instant) {
        if self.ring_lived_since() <= since && !self.tells.leaving && self.sign_of(self.own.me.mac).is_none()
        {
            self.introduce(now);
        }
    }

    /// This station has heard of its ring in every cycle since then.
    pub fn ring_lived_since(&self) -> Instant {
        if self.mode.is_ring() { self.others.contested.astray.hole } else { Instant::FAR }
    }

    /// A newer token or list came then.
    pub(super) fn note_news(&mut self, at: Instant) {
        let astray = &mut self.others.contested.astray;
        if at.since(astray.news) > self.settings.trt * HOLE_CYCLES {
            astray.hole = at;
        }
        astray.news = at;
    }

    /// A newer token came then: to which address?
    pub(super) fn note_way(
        &mut self,
        now: Instant,
        at: Instant,
        from: StationId,
        stamp: Stamp,
        token: &Token,
    ) {
        if self.others.contested.astray.expired == Some(stamp) {
            self.note_repeated(from);
            return;
        }
        // A token keeps its residual time when it is sent again; the list of this cycle has the true one.
        let residual = Span::from_nanos(u64::from(token.residual_ns));
        let start = at.minus(self.settings.trt.minus(residual));
        let clock = self.mode.clock();
        let is_known = clock.known && clock.cycle == token.cycle && residual > Span::ZERO;
        let late = is_known && start.since(clock.start) >= self.settings.hop_timeout.div_down(2);
        if self.others.contested.astray.token(at, from, self.own.me.mac, late) {
            self.contest_astray(now);
        }
    }

    /// A token came again: its sender uses the group address from now on.
    pub(super) fn note_repeated(&mut self, from: StationId) {
        self.others.contested.astray.direct.remove(from);
    }

    /// A token came in time and was read too late.
    pub(super) fn note_expired(&mut self, from: StationId, stamp: Stamp) {
        self.note_repeated(from);
        self.others.contested.astray.expired = Some(stamp);
    }

    /// A sender's question came to this station's own address.
    pub fn note_asked(&mut self) {
        self.others.contested.astray.asked.came();
    }

    /// A sender's question came to this station's group address only.
    pub fn note_asked_again(&mut self, now: Instant) {
        if self.others.contested.astray.asked.went(now, SOON_ASKED) {
            self.contest_astray(now);
        }
    }

    /// Units for this station were sent while the ring lived and did not come, or tokens came only again.
    pub fn contest_astray(&mut self, now: Instant) {
        let until = self.others.contested.astray.begin(now);
        self.contest_own_until(now, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn tokens(astray: &mut Astray, count: u16) {
        astray.came_to = ME;
        (0..count).for_each(|_| assert!(!astray.token(Instant::ZERO, 7, ME, false)));
    }

    fn astray_at(astray: &mut Astray, seconds: u64) -> bool {
        astray.came_to = ME.own_group();
        astray.token(Instant::ZERO + Span::from_millis(seconds * 1_000), 7, ME, true)
    }

    fn one_astray(astray: &mut Astray) -> bool {
        astray_at(astray, 0)
    }

    #[test]
    fn four_tokens_that_went_astray_soon_after_each_other_are_a_sign() {
        let mut astray = Astray::new();
        tokens(&mut astray, 1);
        astray.came_to = ME.own_group();
        assert!(!astray.token(Instant::ZERO, 7, ME, false), "its sender has a reason of its own");
        tokens(&mut astray, 1);
        assert!(!one_astray(&mut astray));
        assert!(!one_astray(&mut astray), "its sender uses the group address already");
        (0..2).for_each(|_| {
            tokens(&mut astray, 8);
            assert!(!one_astray(&mut astray));
        });
        tokens(&mut astray, 9);
        assert!(!one_astray(&mut astray), "a wire loses one in some");
        (0..2).for_each(|_| {
            tokens(&mut astray, 5);
            assert!(!one_astray(&mut astray));
        });
        tokens(&mut astray, 2);
        astray.told();
        assert!(!one_astray(&mut astray), "as it was told");
        tokens(&mut astray, 2);
        assert!(one_astray(&mut astray));
    }

    #[test]
    fn four_of_which_each_was_the_first_to_the_address_are_a_sign() {
        let mut astray = Astray::new();
        for last in [false, false, false, true] {
            astray.afresh = true;
            assert_eq!(one_astray(&mut astray), last);
            astray.afresh = false;
            assert!(!one_astray(&mut astray), "the others use the group address");
        }
    }

    #[test]
    fn tokens_of_long_ago_or_of_another_ring_are_no_sign() {
        let mut astray = Astray::new();
        for minutes in 0..9 {
            tokens(&mut astray, 1);
            assert!(!astray_at(&mut astray, minutes * 60));
        }
        for _ in 0..9 {
            tokens(&mut astray, 1);
            assert!(!astray_at(&mut astray, 600));
            tokens(&mut astray, 1);
            astray.forget_tokens();
            assert!(!astray_at(&mut astray, 600), "the new ring has sent none");
        }
    }

    #[test]
    fn the_hold_doubles_when_the_signs_come_back() {
        let mut astray = Astray::new();
        let mut now = Instant::ZERO + Span::from_millis(1);
        for seconds in [60, 120, 240, 480, 600, 600] {
            let until = astray.begin(now);
            assert_eq!(until.since(now), Span::from_millis(seconds * 1_000));
            assert_eq!(astray.begin(now + HOLD_MIN.div_down(2)), until, "within it nothing changes");
            now = until + Span::from_millis(1);
        }
        assert_eq!(astray.begin(now + MEMORY + HOLD_MAX).since(now + MEMORY + HOLD_MAX), HOLD_MIN);
    }

    #[test]
    fn behind_a_sign_the_count_begins_anew() {
        let mut astray = Astray::new();
        astray.afresh = true;
        let signs = [(); ASTRAY_SIGN as usize].map(|()| one_astray(&mut astray));
        assert_eq!(signs, [false, false, false, true]);
        astray.begin(Instant::ZERO);
        assert!(!one_astray(&mut astray), "one is a lost frame");
    }
}
