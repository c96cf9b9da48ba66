//! Stations that cannot take part in this segment because of a mismatch: another key, another segment's
//! number, other settings, or this station's own address. This part does not change the protocol's actions.
//! It records the station, the mismatch and both values for the operator, and forgets mended mismatches.

use super::settings::Settings;
use rota_admission::NrtPolicy;
use rota_units::{BitRate, Instant, Span};
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Foul, MacAddr, Verdict};

/// Most mismatches that are kept; further ones wait until one is forgotten.
const ROOM: usize = 16;
/// A mismatch is forgotten after so long without a frame: stations announce themselves once a second.
const FORGOTTEN: Span = Span::from_millis(10_000);
/// An unproven mismatch is reported if it comes again after this time: a single frame may be an accident.
const AGAIN: Span = Span::from_millis(500);
/// The shortest time between two searches for a difference.
const TRIAL_EVERY: Span = Span::from_millis(100);
/// Most numbers of frames that are tried for an NRT policy.
const POLICY_MAX: u32 = 64;

/// A setting that all stations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The cycle, ns.
    Cycle,
    /// The link's rate, bits a second.
    Rate,
    /// N.
    Stations,
    /// The policy of non-real-time visits: frames, 0 for all.
    Policy,
    /// The protocol's version.
    Version,
    /// A setting that this station cannot identify; both values are digests of all settings.
    Other,
}

/// A mismatch between two stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Its frames are proven by another key.
    Key,
    /// It is of another segment.
    Segment {
        /// This station's.
        ours: u32,
        /// Its.
        theirs: u32,
    },
    /// A setting differs.
    Setting {
        /// Which.
        what: Setting,
        /// This station's.
        ours: u64,
        /// Its.
        theirs: u64,
    },
    /// A frame had this station's own address as its source.
    OwnAddress,
    /// It is left out of the token for what it did.
    Excluded {
        /// What.
        why: Foul,
        /// True if this station is the one.
        here: bool,
        /// For how long.
        wait: Span,
        /// The longest that it kept the token, as far as this station has seen.
        held: Span,
    },
}

/// A station and its mismatch.
#[derive(Clone, Copy, Debug)]
pub struct Mismatched<'a> {
    /// Its address.
    pub mac: MacAddr,
    /// Its name, if it sent a proven one.
    pub name: &'a str,
    /// What.
    pub what: Mismatch,
    /// When it was last heard.
    pub heard: Instant,
}

/// The differences between two settings, one at a time.
type Difference = [Option<Mismatch>; 3];

#[derive(Clone, Copy, Debug)]
struct Known {
    mac: MacAddr,
    /// Its announcement, if that is proven.
    said: Option<Announce>,
    what: Difference,
    since: Instant,
    heard: Instant,
}

/// The known mismatches. They are for reports only and do not change the protocol's actions.
#[derive(Clone)]
pub(super) struct Mismatches {
    known: Vec<Known>,
    next_trial: Instant,
}

impl core::fmt::Debug for Mismatches {
    /// Writes no content: checkers compare machines before and after a forged frame (S12).
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Mismatches")
    }
}

impl Mismatches {
    pub(super) fn new() -> Self {
        Self { known: Vec::with_capacity(ROOM), next_trial: Instant::ZERO }
    }

    /// A frame came that nothing proves, or with another segment's number, or with our own address.
    pub(super) fn unproven(&mut self, now: Instant, mac: MacAddr, what: Mismatch) {
        self.note(now, mac, None, [Some(what), None, None]);
    }

    /// A station of this segment has announced other settings.
    pub(super) fn disagrees(&mut self, now: Instant, mac: MacAddr, said: &Announce, ours: &Settings) {
        let same = self.known.iter_mut().find(|known| {
            known.mac == mac && known.said.is_some_and(|before| before.settings == said.settings)
        });
        if let Some(same) = same {
            same.heard = now;
            return;
        }
        if now < self.next_trial {
            return;
        }
        self.next_trial = now + TRIAL_EVERY;
        self.known.retain(|known| known.mac != mac);
        self.note(now, mac, Some(*said), difference(ours, said));
    }

    /// This station agrees with us: its mismatches are mended.
    pub(super) fn agrees(&mut self, mac: MacAddr) {
        self.known.retain(|known| known.mac != mac);
    }

    fn note(&mut self, now: Instant, mac: MacAddr, said: Option<Announce>, what: Difference) {
        self.known.retain(|known| now.since(known.heard) < FORGOTTEN);
        let same = self.known.iter_mut().find(|known| known.mac == mac && known.what == what);
        if let Some(same) = same {
            same.heard = now;
        } else if self.known.len() < ROOM {
            self.known.push(Known { mac, said, what, since: now, heard: now });
        }
    }

    /// The current mismatches.
    pub(super) fn all(&self, now: Instant) -> impl Iterator<Item = Mismatched<'_>> {
        let shown = move |known: &&Known| {
            let again = known.said.is_some() || known.heard.since(known.since) >= AGAIN;
            again && now.since(known.heard) < FORGOTTEN
        };
        self.known.iter().filter(shown).flat_map(|known| {
            let name = known.said.as_ref().map_or("", Announce::name);
            let one = move |what| Mismatched { mac: known.mac, name, what, heard: known.heard };
            known.what.into_iter().flatten().map(one)
        })
    }
}

/// Finds the settings that differ. Each announcement states cycle and rate. Another setting that differs
/// alone is found by trying its values until the digest is the same.
fn difference(ours: &Settings, said: &Announce) -> Difference {
    let setting = |what, ours, theirs| Some(Mismatch::Setting { what, ours, theirs });
    let (our_trt, trt) = (ours.trt.as_nanos(), u64::from(said.trt_ns));
    let (our_rate, rate) = (ours.link.rate.as_bps(), said.rate_bps);
    let cycle = (our_trt != trt).then(|| setting(Setting::Cycle, our_trt, trt)).flatten();
    let link = (our_rate != rate).then(|| setting(Setting::Rate, our_rate, rate)).flatten();
    let mut theirs = ours.clone();
    if let Some(rate) = BitRate::new(rate) {
        theirs.link.rate = rate;
    }
    if cycle.is_some()
        && let Ok(changed) = theirs.clone().with_cycle(Span::from_nanos(trt))
    {
        theirs = changed;
    }
    let more = if theirs.digest() == said.settings {
        None
    } else {
        // Another link rate changes derived times: further differences cannot be told from these.
        let other = || setting(Setting::Other, ours.digest(), said.settings).filter(|_| link.is_none());
        tried(&theirs, said.settings).or_else(other)
    };
    [cycle, link, more]
}

fn tried(settings: &Settings, digest: u64) -> Option<Mismatch> {
    let mut tried = settings.clone();
    for stations in 1..=super::members::STATIONS_MAX {
        tried.stations_max = stations;
        if tried.digest() == digest {
            let (ours, theirs) = (u64::from(settings.stations_max), u64::from(stations));
            return Some(Mismatch::Setting { what: Setting::Stations, ours, theirs });
        }
    }
    tried.stations_max = settings.stations_max;
    let some = (1..=POLICY_MAX).map(NrtPolicy::AtMost);
    for policy in [NrtPolicy::One, NrtPolicy::AsManyAsFit].into_iter().chain(some) {
        tried.nrt_policy = policy;
        if tried.digest() == digest {
            let (ours, theirs) = (frames(settings.nrt_policy), frames(policy));
            return Some(Mismatch::Setting { what: Setting::Policy, ours, theirs });
        }
    }
    let ours = Settings::PROTOCOL_VERSION;
    let version = (1..=ours + 16).find(|version| settings.digest_of_version(*version) == digest)?;
    Some(Mismatch::Setting { what: Setting::Version, ours, theirs: version })
}

fn frames(policy: NrtPolicy) -> u64 {
    match policy {
        NrtPolicy::One => 1,
        NrtPolicy::AtMost(frames) => u64::from(frames),
        NrtPolicy::AsManyAsFit => 0,
    }
}

impl super::Rether {
    /// Stations that do not fit here, why, and both values.
    pub fn mismatches(&self, now: Instant) -> impl Iterator<Item = Mismatched<'_>> {
        let excluded = self.excluded(now).map(|excluded| {
            let super::Excluded { mac, why, here, held, wait, .. } = *excluded;
            let name = self.members.by_mac(mac).map_or("", |member| member.announce.name());
            let name = if here { &self.me.name } else { name };
            let heard = excluded.until.minus(wait);
            Mismatched { mac, name, what: Mismatch::Excluded { why, here, wait, held }, heard }
        });
        excluded.chain(self.mismatches.all(now))
    }

    /// A station of this segment has announced itself: whether it takes part.
    pub(super) fn agrees_with(&mut self, now: Instant, mac: MacAddr, said: &Announce) -> bool {
        if !self.agrees(now, mac, said.settings) {
            self.mismatches.disagrees(now, mac, said, &self.settings);
            return false;
        }
        self.mismatches.agrees(mac);
        let rules = matches!(self.mode, super::Mode::Ring);
        // A refusal by the ring ends when the refused station is in it.
        let is_over = |refused: &super::Refused| {
            let settings = refused.mac == mac && refused.why == Verdict::Settings;
            let taken_in = refused.mac == mac && said.state == StationState::Ring && rules;
            settings || (taken_in && !refused.here) || (refused.here && rules)
        };
        self.changes.refused.retain(|refused| !is_over(refused));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::Octets;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    fn settings() -> Settings {
        Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000))
    }

    fn said(settings: &Settings) -> Announce {
        let trt_ns = u32::try_from(settings.trt.as_nanos()).unwrap();
        let mut said = Announce::new(1, 2, 3, StationState::Plain, "n9");
        (said.trt_ns, said.rate_bps) = (trt_ns, settings.link.rate.as_bps());
        said.settings = settings.digest();
        said
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn what(theirs: &Settings) -> Vec<Mismatch> {
        difference(&settings(), &said(theirs)).into_iter().flatten().collect()
    }

    #[test]
    fn the_setting_that_differs_is_named_with_both_values() {
        let one = |what, ours, theirs| vec![Mismatch::Setting { what, ours, theirs }];
        let longer = settings().with_cycle(Span::from_millis(50)).unwrap();
        assert_eq!(what(&longer), one(Setting::Cycle, settings().trt.as_nanos(), 50_000_000));
        let more = Settings { stations_max: 20, ..settings() };
        assert_eq!(what(&more), one(Setting::Stations, u64::from(settings().stations_max), 20));
        let all = Settings { nrt_policy: NrtPolicy::AsManyAsFit, ..settings() };
        let Some(Mismatch::Setting { what: Setting::Policy, theirs: 0, .. }) = what(&all).first().copied()
        else {
            panic!("{:?}", what(&all))
        };
        let slow = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        assert_eq!(what(&slow)[0], one(Setting::Rate, 100_000_000, 10_000_000)[0]);
        let buffers = Settings { port_queue: Octets::new(99_000), ..settings() };
        assert_eq!(what(&buffers), one(Setting::Other, settings().digest(), buffers.digest()));
        let mut newer = said(&settings());
        newer.settings = settings().digest_of_version(Settings::PROTOCOL_VERSION + 1);
        let found = difference(&settings(), &newer);
        let ours = Settings::PROTOCOL_VERSION;
        assert_eq!(found[2], one(Setting::Version, ours, ours + 1).first().copied());
    }

    /// The note stood although the station had rejoined and a channel to it was open.
    #[test]
    fn what_is_mended_or_not_heard_any_more_is_gone() {
        let mut all = Mismatches::new();
        let longer = settings().with_cycle(Span::from_millis(50)).unwrap();
        all.disagrees(at(0), MAC, &said(&longer), &settings());
        assert_eq!(all.all(at(1)).map(|one| one.name.to_owned()).collect::<Vec<_>>(), ["n9"]);
        all.agrees(MAC);
        assert_eq!(all.all(at(2)).count(), 0);
        all.disagrees(at(1_000), MAC, &said(&longer), &settings());
        assert_eq!((all.all(at(10_999)).count(), all.all(at(11_000)).count()), (1, 0));
    }

    #[test]
    fn what_nobody_proves_is_told_once_it_comes_again_and_never_fills_the_table() {
        let mut all = Mismatches::new();
        all.unproven(at(0), MAC, Mismatch::Key);
        assert_eq!(all.all(at(1)).count(), 0, "one frame is nothing");
        all.unproven(at(1_000), MAC, Mismatch::Key);
        assert_eq!(all.all(at(1_001)).map(|one| one.what).collect::<Vec<_>>(), [Mismatch::Key]);
        for invented in 0..10_000u32 {
            let [_, b, c, d] = invented.to_be_bytes();
            all.unproven(at(1_100), MacAddr([6, 6, 6, b, c, d]), Mismatch::Key);
        }
        all.unproven(at(2_000), MAC, Mismatch::Key);
        assert_eq!(all.all(at(2_001)).count(), 1);
        assert!(all.known.len() <= ROOM);
    }
}
