//! Contested addresses: addresses of stations that a stranger uses too (decision 014).
//!
//! A switch sends a frame to the port at which it last heard the destination's address. One frame without a
//! key that carries a station's address moves that entry: frames for the station then go to another port.
//! While an address is contested, our frames go to the station's *group address* instead: its own address
//! with the group bit set. No switch learns it, each switch sends it to all ports, and only that station's
//! card takes it. A frame that is sent again, because no answer came, goes there from the first repetition.
//!
//! A stranger's frames decide no more than which of two addresses of the same station is used.

use super::astray::Astray;
use super::outbox::Pending;
use super::{Mode, Rether};
use crate::door::StationId;
use crate::event::MediumEvent;
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

/// An address is contested for so long after the last sign.
const QUIET: Span = Span::from_millis(5_000);
/// The same where a station says that frames for its address go astray. It says so again twice in this time,
/// as long as that lasts.
const TOLD: Span = Span::from_millis(25_000);
/// How often a station announces that its own address is contested.
const TELL_EVERY: Span = Span::from_millis(1_000);
/// Most addresses that are contested at a time; the quietest makes room.
const CONTESTED_MAX: usize = 256;
/// A value in the place of an answer, which no answer has: "others use my address".
const USED: u64 = u64::MAX;
/// The same: "frames reach me at my group address only".
const DOUBTED: u64 = u64::MAX - 1;
/// The same: "frames for my address go astray".
const ASTRAY: u64 = u64::MAX - 2;

/// The sign that an address is contested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// A frame to it, or an answer to it, had to be sent again.
    Repeated,
    /// Frames to it go elsewhere, again and again; no station hears who causes it.
    Astray,
    /// A frame had it as its source, and its station cannot have sent the frame.
    Forged,
}

#[derive(Clone, Debug)]
struct Rival {
    mac: MacAddr,
    sign: Sign,
    until: Instant,
    /// Until then the sign of a forged frame counts; repeated frames do not prolong this time.
    named: Instant,
    /// The same of frames that went astray.
    astray: Instant,
    /// Until then its station says that frames go astray, or may do so.
    doubted: Instant,
}

/// Which addresses are contested, this station's own among them.
///
/// A frame without a key can change only this value (S12). Its effects wait for the next poll.
#[derive(Clone)]
pub(super) struct Contested {
    rivals: Vec<Rival>,
    /// Newly contested addresses, not yet reported to the parent.
    news: Vec<(MacAddr, bool)>,
    /// This station's own address is contested, and the others are to be told.
    untold: bool,
    /// The parent's count of incoming frames with this station's own address, and whether it has grown.
    own_frames: (u64, bool),
    /// The time of the next announcement.
    tells: Instant,
    /// Until then frames at this station's group address are no further sign.
    doubted: Instant,
    pub(super) astray: Astray,
}

impl core::fmt::Debug for Contested {
    /// Writes no content: checkers compare machines before and after a forged frame.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Contested")
    }
}

impl Contested {
    pub(super) fn new() -> Self {
        let (rivals, news) = (Vec::with_capacity(CONTESTED_MAX), Vec::with_capacity(CONTESTED_MAX));
        Self {
            rivals,
            news,
            untold: false,
            own_frames: (0, false),
            tells: Instant::ZERO,
            doubted: Instant::ZERO,
            astray: Astray::new(),
        }
    }

    /// The address to which frames for this one go.
    pub(super) fn way_to(&self, mac: MacAddr) -> MacAddr {
        if self.rivals.iter().any(|rival| rival.mac == mac) { mac.own_group() } else { mac }
    }

    /// True if there is nothing to expire and nothing to tell.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.rivals.is_empty() && !self.own_frames.1 && self.news.is_empty()
    }

    fn expire(&mut self, now: Instant) {
        self.rivals.retain(|rival| now < rival.until);
        for rival in self.rivals.iter_mut().filter(|rival| now >= rival.named) {
            rival.sign = if now < rival.astray { Sign::Astray } else { Sign::Repeated };
        }
    }

    fn sign_of(&self, mac: MacAddr) -> Option<Sign> {
        self.rivals.iter().find(|rival| rival.mac == mac).map(|rival| rival.sign)
    }

    /// Notes a sign that counts until then; true when it says more than was known.
    fn note(&mut self, now: Instant, mac: MacAddr, sign: Sign, until: Instant) -> bool {
        let named = if sign == Sign::Forged { until } else { now };
        let astray = if sign == Sign::Astray { until } else { now };
        if let Some(known) = self.rivals.iter_mut().find(|rival| rival.mac == mac) {
            (known.named, known.astray) = (known.named.max(named), known.astray.max(astray));
            known.until = known.until.max(until);
            let says_more = known.sign < sign;
            known.sign = known.sign.max(sign);
            return says_more;
        }
        if self.rivals.len() >= CONTESTED_MAX {
            let quietest = (0..self.rivals.len()).min_by_key(|at| self.rivals[*at].until);
            quietest.map(|at| self.rivals.swap_remove(at));
        }
        self.rivals.push(Rival { mac, sign, until, named, astray, doubted: Instant::ZERO });
        true
    }
}

impl Rether {
    /// True if a stranger uses this address: a frame carried it that its station cannot have sent.
    pub fn is_contested(&self, mac: MacAddr) -> bool {
        self.others.contested.sign_of(mac) == Some(Sign::Forged)
    }

    /// The same of a station by its number. Frames that only go astray may have a port to blame that drops
    /// some, or the station itself: they excuse nothing.
    pub(super) fn is_station_contested(&self, station: StationId) -> bool {
        self.members.get(station).is_some_and(|member| self.is_contested(member.mac))
    }

    pub(super) fn sign_of(&self, mac: MacAddr) -> Option<Sign> {
        self.others.contested.sign_of(mac)
    }

    /// The addresses of stations of this segment that strangers use.
    pub fn contested(&self) -> impl Iterator<Item = MacAddr> + '_ {
        self.others.contested.rivals.iter().filter(|rival| rival.sign > Sign::Repeated).map(|rival| rival.mac)
    }

    /// True if a frame for this address is for this station.
    pub(super) fn is_for_us(&self, to: MacAddr) -> bool {
        to == self.own.me.mac || to == MacAddr::BROADCAST || to == self.own.me.mac.own_group()
    }

    /// A frame without a valid tag, or one that was heard before, came from this address. If it is a
    /// station's address, a stranger uses it, unless this station may lack the key of the frame's tag.
    pub(super) fn on_unproven(&mut self, now: Instant, from: MacAddr, sign: Sign) {
        if from == self.own.me.mac {
            self.contest_own(now, sign);
        } else if self.members.by_mac(from).is_some() {
            self.contest(now, from, sign);
        }
    }

    /// Sends frames for this address to its group address for a while.
    pub fn contest(&mut self, now: Instant, mac: MacAddr, sign: Sign) {
        let until = now + if sign == Sign::Astray { TOLD } else { QUIET };
        self.contest_until(now, mac, sign, until);
    }

    fn contest_until(&mut self, now: Instant, mac: MacAddr, sign: Sign, until: Instant) {
        if self.others.contested.note(now, mac, sign, until) && sign != Sign::Repeated {
            self.counters.addresses_contested += 1;
            if self.others.contested.news.len() < CONTESTED_MAX {
                self.others.contested.news.push((mac, sign == Sign::Astray));
            }
        }
    }

    /// The same of a station by its number.
    pub(super) fn contest_station(&mut self, now: Instant, station: StationId, sign: Sign) {
        if let Some(mac) = self.members.get(station).map(|member| member.mac) {
            self.contest(now, mac, sign);
        }
    }

    /// Others use this station's own address, or it is reached at its group address only. Its next proven
    /// frame moves the switches' entries back and tells all other stations.
    pub(super) fn contest_own(&mut self, now: Instant, sign: Sign) {
        self.contest(now, self.own.me.mac, sign);
        self.others.contested.untold = true;
    }

    /// A unit for this station did not come: the others use its group address for a while, in which its
    /// sender finds out if frames for the own address go astray.
    pub fn doubt_own(&mut self, now: Instant) {
        self.counters.addresses_doubted += u64::from(self.sign_of(self.own.me.mac).is_none());
        // A frame that comes to the group address now is no further sign.
        self.others.contested.doubted = self.others.contested.doubted.max(now + QUIET * 3);
        self.contest_own(now, Sign::Repeated);
    }

    /// True if a station has said that frames for this address, its own, go astray or may do so.
    pub fn is_doubted(&self, now: Instant, mac: MacAddr) -> bool {
        self.others.contested.rivals.iter().any(|rival| rival.mac == mac && now < rival.doubted)
    }

    /// The doubt goes on.
    pub fn doubt(&mut self, now: Instant, mac: MacAddr) {
        self.contest(now, mac, Sign::Repeated);
        if let Some(rival) = self.others.contested.rivals.iter_mut().find(|rival| rival.mac == mac) {
            rival.doubted = rival.until;
        }
    }

    /// Frames for this station's own address go astray; it says so until then.
    pub(super) fn contest_own_until(&mut self, now: Instant, until: Instant) {
        self.contest_until(now, self.own.me.mac, Sign::Astray, until);
        self.others.contested.untold = true;
    }

    /// Notes the parent's count of incoming frames of any kind with this station's own address.
    pub fn note_own_address(&mut self, frames: u64) {
        let (before, rose) = self.others.contested.own_frames;
        self.others.contested.own_frames = (frames, rose || frames > before);
    }

    /// A proven frame came to this station's group address. The others use that address until the contest is
    /// over for them: only a frame after that time is another sign.
    pub(super) fn on_group_address(&mut self, now: Instant) {
        if now >= self.others.contested.doubted {
            let again = if self.is_astray(self.own.me.mac) { QUIET * 2 } else { QUIET * 3 };
            (self.others.contested.doubted, self.others.contested.astray.afresh) = (now + again, true);
            self.contest_own(now, Sign::Repeated);
        }
    }

    /// Reports newly contested addresses, before any frame leaves.
    #[inline]
    pub(super) fn report_contested(&mut self, now: Instant) {
        // Each look for something to send asks, and no address is contested nearly always.
        if !self.others.contested.is_quiet() {
            self.report_signs(now);
        }
    }

    fn report_signs(&mut self, now: Instant) {
        self.others.contested.expire(now);
        if core::mem::take(&mut self.others.contested.own_frames.1) {
            self.contest_own(now, Sign::Forged);
        }
        while let Some((mac, astray)) = self.others.contested.news.pop() {
            self.event(MediumEvent::Contested { mac, astray });
        }
    }

    /// When the others are to hear that this station's address is contested.
    pub(super) fn contested_deadline(&self) -> Instant {
        if self.others.contested.untold { self.others.contested.tells } else { Instant::FAR }
    }

    /// Tells them, once a second at most and in token mode under the token. It is the one thing that a frame
    /// without a key can bring a station to send.
    pub(super) fn tell_contested(&mut self, now: Instant) {
        if now < self.contested_deadline() {
            return;
        }
        (self.others.contested.untold, self.others.contested.tells) = (false, now + TELL_EVERY);
        self.others.contested.astray.told();
        match self.mode {
            _ if self.tells.leaving => {}
            Mode::Ring(_) => self.introduce(now),
            Mode::Plain => self.out.outbox.push_back(Pending::Announce),
            _ => {}
        }
    }

    /// The sign in an announcement's answer field, which is free outside of joining.
    pub(super) fn own_sign(&self) -> Option<u64> {
        match self.others.contested.sign_of(self.own.me.mac)? {
            _ if matches!(self.mode, Mode::Joining(_)) => None,
            Sign::Forged => Some(USED),
            Sign::Astray => Some(ASTRAY),
            Sign::Repeated => Some(DOUBTED),
        }
    }

    /// A station says of itself that others use its address.
    pub(super) fn hear_sign(&mut self, now: Instant, mac: MacAddr, answers: u64) {
        match answers {
            USED => return self.contest(now, mac, Sign::Forged),
            ASTRAY => self.contest(now, mac, Sign::Astray),
            DOUBTED => {}
            _ => return,
        }
        self.doubt(now, mac);
        self.event(MediumEvent::Doubted { mac });
    }
}
