//! Settings in announcements, and the differences between two stations' settings.

use crate::door::MediumKind;
use crate::mismatch::Difference;
use crate::settings::Settings;
use rota_admission::NrtPolicy;
use rota_contract::Mismatch;
use rota_units::Span;
use rota_wire::{Announce, StatedSettings};

/// Most differences between two stations that are told at a time.
const DIFFERENCES: usize = 4;

/// The differences between two stations' settings that are told.
pub(crate) type Differences = [Option<Difference>; DIFFERENCES];

impl Settings {
    /// The values that an announcement has room for.
    pub(crate) fn stated(&self) -> StatedSettings {
        let us = |span: Span| (span.as_nanos() / 1_000).min(u64::from(u32::MAX)) as u32;
        let cost = |span: Span| span.as_nanos().min(u64::from(StatedSettings::COST_MAX)) as u32;
        let flag = |set, flag| if set { flag } else { 0 };
        let most = u32::from(StatedSettings::DEFAULT_VISITS - 1);
        let policy = match self.nrt_policy {
            None => StatedSettings::DEFAULT_VISITS,
            Some(NrtPolicy::One) => 1,
            Some(NrtPolicy::AtMost(frames)) => frames.clamp(1, most) as u16,
            Some(NrtPolicy::AsManyAsFit) => 0,
        };
        StatedSettings {
            version: Self::PROTOCOL_VERSION as u8,
            mtu: self.link.framing.mtu,
            stations: self.stations_max.min(255) as u8,
            policy,
            port_queue: self.port_queue.get().min(u64::from(u32::MAX)) as u32,
            latency_us: us(self.nrt_latency_max),
            share: self.nrt_share_percent,
            death_us: us(self.death_timeout),
            flags: flag(self.half_duplex, StatedSettings::HALF_DUPLEX)
                | flag(self.follow_stalls, StatedSettings::FOLLOW_STALLS)
                | flag(self.medium == MediumKind::Link, StatedSettings::LINK)
                | (self.partitions_of_all().count() * StatedSettings::PARTITIONS),
            per_frame_ns: cost(self.link.per_frame),
            prepare_ns: cost(self.link.prepare),
            per_visit_ns: cost(self.link.per_visit),
            hop_ns: cost(self.link.hop),
        }
    }
}

/// Collects differences; those that follow from others are left out.
struct Found {
    all: Differences,
    count: usize,
}

impl Found {
    /// Notes the two values where they differ; true if they do.
    fn differs(&mut self, what: Mismatch, ours: impl Into<u64>, theirs: impl Into<u64>) -> bool {
        let found = Difference::new(what, ours, theirs);
        let differs = found.ours != found.theirs;
        if differs && let Some(place) = self.all.get_mut(self.count) {
            *place = Some(found);
            self.count += 1;
        }
        differs
    }
}

/// Finds the settings that differ. Each announcement has the cycle and the rate; the others are known once
/// the station has stated them.
pub(crate) fn differences(ours: &Settings, said: &Announce) -> Differences {
    let mut found = Found { all: [None; DIFFERENCES], count: 0 };
    if let Some(theirs) = &said.stated {
        named(&mut found, ours, said, theirs);
    } else {
        found.differs(Mismatch::Cycle, ours.trt.as_nanos(), u64::from(said.trt_ns));
        found.differs(Mismatch::Rate, ours.link.rate.as_bps(), said.rate_bps);
        // An older build states no settings: its version is found by trying.
        let here = Settings::PROTOCOL_VERSION;
        let tried = (1..=here + 16).find(|version| ours.digest_of_version(*version) == said.settings);
        found.differs(Mismatch::Version, here, tried.unwrap_or(here));
    }
    if found.count == 0 {
        // Their names, shares or order may differ, or a setting that no announcement states.
        let parts = u64::from(ours.partitions_of_all().count());
        if parts > 0 && said.stated.is_some() {
            found.all[0] = Some(Difference::new(Mismatch::Partitions, parts, parts));
            return found.all;
        }
        found.differs(Mismatch::Other, ours.digest(), said.settings);
    }
    found.all
}

fn named(found: &mut Found, settings: &Settings, said: &Announce, theirs: &StatedSettings) {
    let ours = &settings.stated();
    let flag = |stated: &StatedSettings, flag| u64::from(stated.flags & flag != 0);
    found.differs(Mismatch::Version, ours.version, theirs.version);
    let of = StatedSettings::LINK;
    found.differs(Mismatch::Medium, flag(ours, of), flag(theirs, of));
    let mtu = found.differs(Mismatch::Mtu, ours.mtu, theirs.mtu);
    let rate = found.differs(Mismatch::Rate, settings.link.rate.as_bps(), said.rate_bps);
    let cycle = found.differs(Mismatch::Cycle, settings.trt.as_nanos(), u64::from(said.trt_ns));
    found.differs(Mismatch::Stations, ours.stations, theirs.stations);
    found.differs(Mismatch::PortQueue, ours.port_queue, theirs.port_queue);
    let ns = |us: u32| u64::from(us) * 1_000;
    // A long cycle brings another latency and another death timer along.
    let latency = !cycle && found.differs(Mismatch::Latency, ns(ours.latency_us), ns(theirs.latency_us));
    // A stated latency brings another share along.
    let _ = latency || found.differs(Mismatch::Share, ours.share, theirs.share);
    let of = StatedSettings::FOLLOW_STALLS;
    let follows = found.differs(Mismatch::FollowStalls, flag(ours, of), flag(theirs, of));
    if !cycle && !follows {
        found.differs(Mismatch::Death, ns(ours.death_us), ns(theirs.death_us));
    }
    let of = StatedSettings::HALF_DUPLEX;
    found.differs(Mismatch::HalfDuplex, flag(ours, of), flag(theirs, of));
    let [here, there] = [ours, theirs].map(|of| of.flags / StatedSettings::PARTITIONS);
    found.differs(Mismatch::Partitions, here, there);
    found.differs(Mismatch::Policy, ours.policy, theirs.policy);
    // Another rate or MTU brings other costs along.
    if !mtu && !rate {
        found.differs(Mismatch::HopCost, ours.hop_ns, theirs.hop_ns);
        found.differs(Mismatch::VisitCost, ours.per_visit_ns, theirs.per_visit_ns);
        found.differs(Mismatch::FrameCost, ours.per_frame_ns, theirs.per_frame_ns);
        found.differs(Mismatch::PrepareCost, ours.prepare_ns, theirs.prepare_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mismatch::{self, tests::settings};
    use rota_admission::LinkModel;
    use rota_units::{BitRate, Octets};

    fn said(settings: &Settings) -> Announce {
        let mut said = mismatch::tests::said(settings);
        said.stated = Some(settings.stated());
        said
    }

    fn between(ours: &Settings, said: &Announce) -> Vec<(Mismatch, u64, u64)> {
        let all = differences(ours, said).into_iter().flatten();
        all.map(|found| (found.what, found.ours, found.theirs)).collect()
    }

    fn of(theirs: &Settings) -> Vec<(Mismatch, u64, u64)> {
        between(&settings(), &said(theirs))
    }

    #[test]
    fn each_setting_that_differs_is_named_with_both_values() {
        let ms = Span::from_millis;
        let base = settings;
        let trt = base().trt.as_nanos();
        assert_eq!(of(&base().with_cycle(ms(50)).unwrap()), [(Mismatch::Cycle, trt, 50_000_000)]);
        let long = base().with_cycle(ms(400)).unwrap();
        assert_eq!(of(&long), [(Mismatch::Cycle, trt, 400_000_000)], "its timers follow from it");
        let large = Settings::ethernet_of(BitRate::from_mbit(100), Octets::new(150_000), 9_000);
        assert_eq!(of(&large), [(Mismatch::Mtu, 1_500, 9_000)], "its costs follow from it");
        let slow = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        assert_eq!(of(&slow)[0], (Mismatch::Rate, 100_000_000, 10_000_000));
        assert_eq!(of(&base().with(|of| of.stations_max = 20)), [(Mismatch::Stations, 14, 20)]);
        let all = base().with(|of| of.nrt_policy = Some(NrtPolicy::AsManyAsFit));
        let default = u64::from(StatedSettings::DEFAULT_VISITS);
        assert_eq!(of(&all), [(Mismatch::Policy, default, 0)]);
        let same_today = base().with(|of| of.nrt_policy = Some(base().policy(14)));
        assert_eq!(of(&same_today), [(Mismatch::Policy, default, 28)], "the default follows the stations");
        let both = base().with(|of| (of.nrt_policy, of.stations_max) = (Some(NrtPolicy::One), 20));
        assert_eq!(of(&both), [(Mismatch::Stations, 14, 20), (Mismatch::Policy, default, 1)]);
        let buffers = base().with(|of| of.port_queue = Octets::new(99_000));
        assert_eq!(of(&buffers), [(Mismatch::PortQueue, 150_000, 99_000)]);
        let prompt = base().with_nrt_latency(ms(100));
        assert_eq!(of(&prompt), [(Mismatch::Latency, 500_000_000, 100_000_000)]);
        assert_eq!(of(&base().with_nrt_latency(ms(500))), [(Mismatch::Share, 5, 0)]);
        let dead = base().with_death_timeout(ms(300)).unwrap();
        assert_eq!(of(&dead), [(Mismatch::Death, 500_000_000, 300_000_000)]);
        assert_eq!(of(&base().with(|of| of.follow_stalls = true)), [(Mismatch::FollowStalls, 0, 1)]);
        assert_eq!(of(&base().with(|of| of.half_duplex = true)), [(Mismatch::HalfDuplex, 0, 1)]);
        let cable = base().with(|of| of.medium = MediumKind::Link);
        assert_eq!(of(&cable), [(Mismatch::Medium, 0, 1)]);
        assert_eq!(between(&cable, &said(&base())), [(Mismatch::Medium, 1, 0)]);
        let prepare = LinkModel { prepare: Span::from_micros(7), ..base().link };
        let measured = base().with_link(prepare);
        assert_eq!(of(&measured), [(Mismatch::PrepareCost, base().link.prepare.as_nanos(), 7_000)]);
        let stated = base().stated();
        let hop = LinkModel { hop: base().link.hop + Span::from_nanos(1), ..base().link };
        let hop_ns = u64::from(stated.hop_ns);
        assert!(of(&base().with_link(hop)).contains(&(Mismatch::HopCost, hop_ns, hop_ns + 1)));
        let visit = LinkModel { per_visit: Span::from_nanos(1), ..base().link };
        let visit_ns = u64::from(stated.per_visit_ns);
        assert!(of(&base().with_link(visit)).contains(&(Mismatch::VisitCost, visit_ns, 1)));
        let frame = LinkModel { per_frame: Span::from_nanos(1), ..base().link };
        let frame_ns = u64::from(stated.per_frame_ns);
        assert!(of(&base().with_link(frame)).contains(&(Mismatch::FrameCost, frame_ns, 1)));
    }

    /// Numbers of partitions mean the same at all stations of a ring.
    #[test]
    fn a_segment_that_is_divided_in_another_way_is_told() {
        let divided = |parts: &[(&str, u8)]| {
            let mut settings = settings();
            for (name, percent) in parts {
                settings.partitions.add(name.parse().expect("a name"), *percent).expect("room");
            }
            settings
        };
        let between = |ours: &Settings, theirs: &Settings| between(ours, &said(theirs)).first().copied();
        let one = divided(&[("studio", 40)]);
        assert_eq!(between(&one, &divided(&[])), Some((Mismatch::Partitions, 1, 0)));
        assert_eq!(between(&divided(&[]), &one), Some((Mismatch::Partitions, 0, 1)));
        assert_eq!(between(&one, &divided(&[("studio", 30)])), Some((Mismatch::Partitions, 1, 1)));
        let two = [("studio", 40), ("office", 20)];
        let turned = [two[1], two[0]];
        assert_ne!(divided(&two).digest(), divided(&turned).digest(), "their order gives them their numbers");
        assert_eq!(divided(&two).digest(), divided(&two).digest());
        // Each end of a link has its own.
        let link = |parts: &[(&str, u8)]| Settings { medium: MediumKind::Link, ..divided(parts) };
        assert_eq!(link(&two).digest(), link(&[]).digest());
    }

    #[test]
    fn several_are_told_at_a_time_and_a_setting_without_room_is_told_by_its_digest() {
        let two = settings().with_cycle(Span::from_millis(50)).unwrap().with(|of| of.stations_max = 20);
        let kinds: Vec<_> = of(&two).iter().map(|(what, ..)| *what).collect();
        assert_eq!(kinds, [Mismatch::Cycle, Mismatch::Stations]);
        let tries = settings().with(|of| of.claim_tries = 9);
        assert_eq!(of(&tries), [(Mismatch::Other, settings().digest(), tries.digest())]);
    }

    /// A build before version 6 states no settings.
    #[test]
    fn a_build_of_another_version_is_named_with_and_without_stated_settings() {
        let here = Settings::PROTOCOL_VERSION;
        let mut older = said(&settings());
        (older.settings, older.stated) = (settings().digest_of_version(here - 1), None);
        assert_eq!(between(&settings(), &older), [(Mismatch::Version, here, here - 1)]);
        let version = here as u8 + 1;
        older.stated = Some(StatedSettings { version, ..settings().stated() });
        assert_eq!(between(&settings(), &older), [(Mismatch::Version, here, here + 1)]);
        (older.settings, older.stated) = (4711, None);
        assert_eq!(between(&settings(), &older), [(Mismatch::Other, settings().digest(), 4711)]);
    }
}
