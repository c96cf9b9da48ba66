//! Stations that cannot take part in this segment because of a mismatch: another key, another segment's
//! number, other settings, or this station's own address. This part does not change the protocol's actions.
//! It records the station, the mismatch and both values for the operator, and forgets mended mismatches.

use crate::settings::Settings;
use crate::stated::{Differences, differences};
use rota_contract::Mismatch;
use rota_units::{Instant, Span};
use rota_wire::{Announce, MacAddr};

/// Most mismatches that are kept; further ones wait until one is forgotten.
const ROOM: usize = 16;
/// A mismatch is forgotten after so long without a frame: stations announce themselves once a second.
const FORGOTTEN: Span = Span::from_millis(10_000);
/// An unproven mismatch is reported if it comes again after this time: a single frame may be an accident.
const AGAIN: Span = Span::from_millis(500);
/// The shortest time between two searches for a difference, unless settings are stated for the first time.
const TRIAL_EVERY: Span = Span::from_millis(100);
/// A setting that cannot be identified is reported after this time: stations state their settings by then.
const UNNAMED: Span = Span::from_millis(3_000);

/// A mismatch, and both values as [`Mismatch`] says them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What.
    pub what: Mismatch,
    /// This station's value; 0 where there is none.
    pub ours: u64,
    /// The other station's.
    pub theirs: u64,
}

impl Difference {
    pub(crate) fn new(what: Mismatch, ours: impl Into<u64>, theirs: impl Into<u64>) -> Self {
        Self { what, ours: ours.into(), theirs: theirs.into() }
    }
}

/// A station and its mismatch.
#[derive(Clone, Copy, Debug)]
pub struct Mismatched<'a> {
    /// Its address.
    pub mac: MacAddr,
    /// Its name, if it sent a proven one.
    pub name: &'a str,
    /// What, and both values.
    pub difference: Difference,
    /// When it was last heard.
    pub heard: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    mac: MacAddr,
    /// Its announcement, if that is proven.
    said: Option<Announce>,
    what: Differences,
    since: Instant,
    heard: Instant,
}

/// The known mismatches. They are for reports only and do not change the protocol's actions.
#[derive(Clone)]
pub(crate) struct Mismatches {
    known: Vec<Known>,
    next_trial: Instant,
    /// The next announcement states this station's settings, if a station with other ones is heard.
    states_next: bool,
}

impl core::fmt::Debug for Mismatches {
    /// Writes no content: checkers compare machines before and after a forged frame (S12).
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Mismatches")
    }
}

impl Mismatches {
    pub(crate) fn new() -> Self {
        Self { known: Vec::with_capacity(ROOM), next_trial: Instant::ZERO, states_next: true }
    }

    /// A frame came that nothing proves, or with another segment's number, or with our own address.
    pub(crate) fn unproven(&mut self, now: Instant, mac: MacAddr, what: Difference) {
        let mut all = Differences::default();
        all[0] = Some(what);
        self.note(now, mac, None, all);
    }

    /// A station of this segment has announced other settings.
    pub(crate) fn disagrees(&mut self, now: Instant, mac: MacAddr, said: &Announce, ours: &Settings) {
        let same = self.known.iter_mut().find(|known| {
            known.mac == mac && known.said.is_some_and(|before| before.settings == said.settings)
        });
        if let Some(same) = same {
            same.heard = now;
            if let Some(before) = same.said {
                let mut kept = said.named_as(&before);
                kept.stated = said.stated.or(before.stated);
                same.said = Some(kept);
                if kept.stated != before.stated {
                    same.what = differences(ours, said);
                }
            }
            return;
        }
        if now < self.next_trial {
            return;
        }
        self.next_trial = now + TRIAL_EVERY;
        self.known.retain(|known| known.mac != mac);
        self.note(now, mac, Some(*said), differences(ours, said));
    }

    /// A station that has the key and the settings is one too many here.
    pub(crate) fn third(&mut self, now: Instant, mac: MacAddr, said: &Announce) {
        let mut all = Differences::default();
        all[0] = Some(Difference::new(Mismatch::ThirdStation, 0_u64, 0_u64));
        self.note(now, mac, Some(*said), all);
    }

    /// This station agrees with us: its mismatches are mended.
    pub(crate) fn agrees(&mut self, mac: MacAddr) {
        self.known.retain(|known| known.mac != mac);
    }

    fn note(&mut self, now: Instant, mac: MacAddr, said: Option<Announce>, what: Differences) {
        self.known.retain(|known| now.since(known.heard) < FORGOTTEN);
        let same = self.known.iter_mut().find(|known| known.mac == mac && known.what == what);
        if let Some(same) = same {
            same.heard = now;
            return;
        }
        // A station that has the key goes before sources that any station can invent.
        if self.known.len() == ROOM && said.is_some() {
            let invented = self.known.iter().position(|known| known.said.is_none());
            invented.map(|at| self.known.swap_remove(at));
        }
        if self.known.len() < ROOM {
            self.known.push(Known { mac, said, what, since: now, heard: now });
        }
    }

    /// The current mismatches.
    pub(crate) fn all(&self, now: Instant) -> impl Iterator<Item = Mismatched<'_>> {
        let shown = move |known: &&Known| {
            let again = known.said.is_some() || known.heard.since(known.since) >= AGAIN;
            again && now.since(known.heard) < FORGOTTEN
        };
        self.known.iter().filter(shown).flat_map(|known| {
            let name = known.said.as_ref().map_or("", Announce::name);
            let one = move |difference| Mismatched { mac: known.mac, name, difference, heard: known.heard };
            let early = known.heard.since(known.since) < UNNAMED;
            let told = move |found: &Difference| !early || found.what != Mismatch::Other;
            known.what.into_iter().flatten().filter(told).map(one)
        })
    }

    /// True if the next announcement is to state this station's settings: each second one does while a
    /// station with other settings is heard.
    pub(crate) fn states(&mut self, now: Instant) -> bool {
        let other = |known: &Known| known.said.is_some() && now.since(known.heard) < FORGOTTEN;
        let states = self.states_next && self.known.iter().any(other);
        self.states_next = !states;
        states
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rota_contract::NodeId;
    use rota_units::{BitRate, Octets};
    use rota_wire::bodies::StationState;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    pub(crate) fn settings() -> Settings {
        Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000))
    }

    /// An announcement of a station with these settings, which states none.
    pub(crate) fn said(settings: &Settings) -> Announce {
        let trt_ns = u32::try_from(settings.trt.as_nanos()).unwrap();
        let mut said = Announce::new(NodeId(1), 2, 3, StationState::Plain, "n9");
        (said.trt_ns, said.rate_bps) = (trt_ns, settings.link.rate.as_bps());
        said.settings = settings.digest();
        said
    }

    fn key() -> Difference {
        Difference::new(Mismatch::Key, 0_u64, 0_u64)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// The MTU, buffers, latency, timers and costs were told as "another setting".
    #[test]
    fn a_setting_is_named_when_its_station_has_stated_it() {
        let mut all = Mismatches::new();
        assert!(!all.states(at(0)), "no other station is heard");
        let large = Settings::ethernet_of(BitRate::from_mbit(100), Octets::new(150_000), 9_000);
        let mut heard = said(&large);
        all.disagrees(at(0), MAC, &heard, &settings());
        assert_eq!(all.all(at(1)).count(), 0, "its settings come within seconds");
        assert!(all.states(at(1)) && !all.states(at(2)) && all.states(at(3)), "each second announcement");
        let mut stated = Announce::new(NodeId(1), 2, 3, StationState::Plain, "");
        (stated.settings, stated.stated) = (heard.settings, Some(large.stated()));
        (stated.trt_ns, stated.rate_bps) = (heard.trt_ns, heard.rate_bps);
        all.disagrees(at(50), MAC, &stated, &settings());
        heard.answers = 1;
        all.disagrees(at(60), MAC, &heard, &settings());
        let found: Vec<_> = all.all(at(61)).map(|one| (one.name.to_owned(), one.difference)).collect();
        let mtu = Difference { what: Mismatch::Mtu, ours: 1_500, theirs: 9_000 };
        assert_eq!(found, [("n9".to_owned(), mtu)]);
        assert!(!all.states(at(20_000)), "it is not heard any more");
    }

    #[test]
    fn a_setting_that_stays_unknown_is_told_by_its_digest() {
        let mut all = Mismatches::new();
        let tries = settings().with(|of| of.claim_tries = 9);
        for ms in [0, 1_000, 2_000, 3_000] {
            all.disagrees(at(ms), MAC, &said(&tries), &settings());
            assert_eq!(all.all(at(ms)).count(), usize::from(ms == 3_000), "{ms} ms");
        }
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
    fn a_mismatch_is_told_for_as_long_as_its_station_is_heard() {
        let mut all = Mismatches::new();
        let longer = settings().with_cycle(Span::from_millis(50)).unwrap();
        for second in 0..40 {
            all.disagrees(at(second * 1_000), MAC, &said(&longer), &settings());
            all.unproven(at(second * 1_000), MacAddr([6; 6]), key());
        }
        let told: Vec<_> = all.all(at(39_001)).map(|one| (one.mac, one.heard)).collect();
        assert_eq!(told, [(MAC, at(39_000)), (MacAddr([6; 6]), at(39_000))]);
    }

    #[test]
    fn what_nobody_proves_is_told_once_it_comes_again_and_never_fills_the_table() {
        let mut all = Mismatches::new();
        all.unproven(at(0), MAC, key());
        assert_eq!(all.all(at(1)).count(), 0, "one frame is nothing");
        all.unproven(at(1_000), MAC, key());
        assert_eq!(all.all(at(1_001)).map(|one| one.difference).collect::<Vec<_>>(), [key()]);
        for invented in 0..10_000u32 {
            let [_, b, c, d] = invented.to_be_bytes();
            all.unproven(at(1_100), MacAddr([6, 6, 6, b, c, d]), key());
        }
        all.unproven(at(2_000), MAC, key());
        assert_eq!(all.all(at(2_001)).count(), 1);
        assert!(all.known.len() <= ROOM);
        let longer = settings().with_cycle(Span::from_millis(50)).unwrap();
        all.disagrees(at(2_000), MacAddr([2; 6]), &said(&longer), &settings());
        assert!(all.all(at(2_001)).any(|one| one.name == "n9"), "a station with the key finds room");
    }
}
