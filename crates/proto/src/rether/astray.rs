//! Frames for this station that go astray: a stranger that no station hears moves the switches' entry for its
//! address, for instance by frames to itself (decision 014).
//!
//! Only missing frames show it: units that were sent and did not come (`channels/strays.rs`), and tokens that
//! came only when they were sent again, to the group address. One of those is a lost frame. Three, each soon
//! after the others used the address again, are a sign, and two where one of the first tokens was lost.
//!
//! While the others use the group address, nothing shows whether the stranger goes on. So the address stays
//! contested for a minute, and for twice as long each time that the signs come back, up to ten minutes.

use super::contested::Sign;
use super::{Mode, Rether};
use crate::io::StationId;
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, StationSet, Token};

/// How long an address is contested at first, and at most.
const HOLD_MIN: Span = Span::from_millis(60_000);
const HOLD_MAX: Span = Span::from_millis(600_000);
/// So long after one hold the next sign doubles it.
const MEMORY: Span = HOLD_MAX;
/// A token that went astray counts if so few came to this station's own address since the one before.
const SOON: u16 = 32;
/// It counts twice if so few came.
const AT_ONCE: u16 = 4;
/// So much is a sign.
const STRAYS: u8 = 3;
/// A list or token is later than so many cycles only where the ring stands.
const HOLE_CYCLES: u64 = 2;

/// What this station knows of frames that did not reach it.
#[derive(Clone)]
pub(super) struct Astray {
    /// When the ring was last heard of, and the end of the newest time without a word of it.
    news: Instant,
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
    /// Tokens to this station's own address since one went astray.
    since: u16,
    strays: u8,
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
            since: u16::MAX,
            strays: 0,
        }
    }

    /// The others are told to use the group address: their next tokens come there, and none went astray.
    pub(super) fn told(&mut self) {
        self.direct = StationSet::EMPTY;
    }

    /// A token was accepted; `late`: since it was first sent, its sender had time to send it again. True when
    /// so many have come to the group address only that it is a sign.
    fn token(&mut self, from: StationId, me: MacAddr, late: bool) -> bool {
        if self.came_to == me {
            self.direct.insert(from);
            self.since = self.since.saturating_add(1);
        }
        if self.came_to != me.own_group() || !(self.afresh || self.direct.contains(from)) {
            return false;
        }
        self.direct.remove(from);
        if !late {
            // Its sender used the group address for another reason.
            return false;
        }
        self.strays = match self.since {
            since if since <= AT_ONCE => self.strays + 2,
            since if since <= SOON => self.strays + 1,
            _ => 1,
        };
        self.since = 0;
        self.strays >= STRAYS
    }

    /// The end of the hold that begins now, or goes on.
    fn begin(&mut self, now: Instant) -> Instant {
        if now >= self.until {
            let doubles = self.hold > Span::ZERO && now < self.until + MEMORY;
            self.hold = if doubles { (self.hold * 2).min(HOLD_MAX) } else { HOLD_MIN };
            self.until = now + self.hold;
        }
        self.strays = 0;
        self.until
    }
}

impl Rether {
    /// True if frames for this address go astray: a stranger uses it, and no station hears the stranger.
    pub fn is_astray(&self, mac: MacAddr) -> bool {
        self.sign_of(mac) == Some(Sign::Astray)
    }

    /// Units for this station were sent after that moment and did not come.
    pub(crate) fn units_astray(&mut self, now: Instant, since: Instant) {
        if self.ring_lived(since) {
            self.contest_astray(now);
        }
    }

    /// A sender of steady units has been silent since then: perhaps its units go astray. A frame of this
    /// station moves the switches' entries back.
    pub(crate) fn show_place(&mut self, now: Instant, since: Instant) {
        if self.ring_lived(since) && !self.leaving && self.sign_of(self.me.mac).is_none() {
            self.introduce(now);
        }
    }

    /// Whether this station has heard of its ring in every cycle since then.
    fn ring_lived(&self, since: Instant) -> bool {
        matches!(self.mode, Mode::Ring) && self.contested.astray.hole <= since
    }

    /// A newer token or list came then.
    pub(super) fn note_news(&mut self, at: Instant) {
        let astray = &mut self.contested.astray;
        if at.since(astray.news) > self.settings.trt * HOLE_CYCLES {
            astray.hole = at;
        }
        astray.news = at;
    }

    /// A newer token came then: to which address?
    pub(super) fn note_way(&mut self, now: Instant, at: Instant, from: StationId, token: &Token) {
        // A token keeps its residual time when it is sent again; the list of this cycle has the true one.
        let residual = Span::from_nanos(u64::from(token.residual_ns));
        let start = at.minus(self.settings.trt.minus(residual));
        let is_known = self.clock.known && self.clock.cycle == token.cycle && residual > Span::ZERO;
        let late = is_known && start.since(self.clock.start) >= self.settings.hop_timeout.div_down(2);
        if self.contested.astray.token(from, self.me.mac, late) {
            self.contest_astray(now);
        }
    }

    /// A token came again: its sender uses the group address from now on.
    pub(super) fn note_repeated(&mut self, from: StationId) {
        self.contested.astray.direct.remove(from);
    }

    fn contest_astray(&mut self, now: Instant) {
        let until = self.contested.astray.begin(now);
        self.contest_own_until(now, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn tokens(astray: &mut Astray, count: u16) {
        astray.came_to = ME;
        (0..count).for_each(|_| assert!(!astray.token(7, ME, false)));
    }

    fn stray(astray: &mut Astray) -> bool {
        astray.came_to = ME.own_group();
        astray.token(7, ME, true)
    }

    #[test]
    fn three_tokens_that_went_astray_soon_after_each_other_are_a_sign() {
        let mut astray = Astray::new();
        tokens(&mut astray, 1);
        astray.came_to = ME.own_group();
        assert!(!astray.token(7, ME, false), "its sender has a reason of its own");
        tokens(&mut astray, 1);
        assert!(!stray(&mut astray));
        assert!(!stray(&mut astray), "its sender uses the group address already");
        tokens(&mut astray, 32);
        assert!(!stray(&mut astray));
        tokens(&mut astray, 33);
        assert!(!stray(&mut astray), "a wire loses one in some");
        tokens(&mut astray, 5);
        assert!(!stray(&mut astray));
        tokens(&mut astray, 2);
        astray.told();
        assert!(!stray(&mut astray), "as it was told");
        tokens(&mut astray, 2);
        assert!(stray(&mut astray));
    }

    #[test]
    fn two_of_which_each_was_the_first_to_the_address_are_a_sign() {
        let mut astray = Astray::new();
        astray.afresh = true;
        assert!(!stray(&mut astray));
        astray.afresh = false;
        assert!(!stray(&mut astray), "the others use the group address");
        astray.afresh = true;
        assert!(stray(&mut astray));
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
}
