//! Worlds of channels across segments: up to eight hosts on two or three segments, RETHER and links, gateways
//! between them, channels that are opened and closed at random, and in every second world faults.

use super::Campaign;
use super::{DENSE, DISCIPLINES, SUITE};
use crate::engine::Stream;
use crate::faults::{Draw, Mix};
use crate::scenario::{AcrossChannel, Load, Scenario};
use crate::traffic::Shape;
use crate::world::{AcrossSpec, Answer, Manner, SegmentSpec, Sessions, Suite, Topology, WorldSpec};
use rota_admission::rtip::{Discipline, Hold, Scheduler};
use rota_proto::{MediumKind, Settings};
use rota_units::{BitRate, Octets, Span};

/// The faults of these worlds: those of frames, of processes and of ports.
const FAULTS: &[(Draw, u32)] = &[
    (Draw::Loss, 3),
    (Draw::Burst, 1),
    (Draw::TokenLoss, 2),
    (Draw::Duplicate, 2),
    (Draw::Delay, 1),
    (Draw::Crash, 5),
    (Draw::CrashLoop, 1),
    (Draw::PauseShort, 3),
    (Draw::PauseLong, 3),
    (Draw::Partition, 2),
    (Draw::OneWay, 1),
    (Draw::Flap, 1),
    (Draw::PortLoss, 2),
];

/// Hosts of a world at most.
const HOSTS_MAX: usize = 8;

impl Campaign {
    /// A world of the seeds from [`super::ACROSS`] on.
    pub(super) fn across_of(self, seed: u64) -> Scenario {
        let scenario = self.across(seed);
        match seed {
            DENSE.. => dense(seed, scenario),
            SUITE.. => self.with_suite(seed, scenario),
            _ => scenario,
        }
    }

    /// The world of channels across segments that this seed draws.
    fn across(self, seed: u64) -> Scenario {
        let mut random = Stream::named(seed, "campaign across");
        let is_later = seed >= DISCIPLINES;
        let mut world = self.net(&mut random, is_later);
        if is_later {
            discipline(seed, &mut world);
            // Any two clocks differ by as much as is assumed at most.
            world.drift_ppm *= 2;
            // As long as the daemon looks for another path.
            world.across = world.across.map(|of| Sessions { reroute: Span::from_millis(2_000), ..of });
        }
        let mut scenario = Scenario::new("across", world.stations, world.settings.clone());
        scenario.world = world;
        let ms = Span::from_millis;
        let duration = random.between(3_000, 6_000);
        (scenario.settle, scenario.duration, scenario.quiet) = (ms(3_000), ms(duration), ms(24_000));
        let races = random.below(4) == 0;
        let together = random.below(duration / 2);
        for _ in 0..random.between(2, 6) {
            let open = if races { together + random.below(5) } else { random.below(duration * 2 / 3) };
            let channel = self.channel(&mut random, &scenario, races, (open, duration));
            scenario.across.push(channel);
        }
        if random.below(2) == 0 {
            cross_traffic(&mut random, &mut scenario);
        }
        if seed % 2 == 1 {
            let (every, longest) = (ms(random.between(500, 4_000)), ms(1_000));
            scenario.mix = Some(Mix { weights: FAULTS.to_vec(), every, longest });
            let breaks_ppm = if random.below(2) == 0 { 10_000 } else { 0 };
            scenario.world.across = scenario.world.across.map(|sessions| Sessions { breaks_ppm, ..sessions });
        }
        scenario
    }

    /// The same without faults, where all channels are busy from the beginning to the end: for counting
    /// packets.
    pub fn busy_across(self, seed: u64) -> Scenario {
        let mut scenario = self.across(seed / 2 * 2);
        let mut random = Stream::named(seed, "campaign busy");
        scenario.duration = Span::from_millis(60_000);
        if let Some(sessions) = &mut scenario.world.across {
            sessions.quota = None;
        }
        while scenario.across.len() < 8 {
            let channel = self.channel(&mut random, &scenario, false, (0, 1_000));
            scenario.across.push(channel);
        }
        for channel in &mut scenario.across {
            channel.open = Span::from_millis(random.below(2_000));
            (channel.close, channel.by_receiver, channel.dies) = (None, false, false);
            (channel.spec.answer, channel.spec.delay) = (Answer::Accepts, None);
            channel.spec.octets = random.between(1_000, 14_000) as u32;
            channel.spec.period = Span::from_micros(random.between(6_000, 30_000));
            if seed >= DISCIPLINES && random.below(4) > 0 {
                // A short one leaves less to relax, so that packets need what they are promised.
                channel.spec.delay = Some(Span::from_millis(random.between(60, 250)));
            }
        }
        scenario
    }

    /// Segments in a row or around one gateway, and the ports of all hosts, in any order. Two gateways lead
    /// from one segment with a token to the next, with `twice` always.
    fn net(self, random: &mut Stream, twice: bool) -> WorldSpec {
        let count = random.between(2, 3) as usize;
        let mut segments: Vec<SegmentSpec> = (0..count).map(|_| self.segment(random)).collect();
        let is_link =
            |at: usize, segments: &[SegmentSpec]| matches!(segments[at].topology, Topology::Link { .. });
        let mut ports: Vec<Vec<usize>> = Vec::new();
        if random.below(4) == 0 {
            ports.push((0..count).collect());
            (0..count).for_each(|on| ports.push(vec![on]));
        } else {
            for on in 1..count {
                ports.push(vec![on - 1, on]);
                let both = !is_link(on - 1, &segments) && !is_link(on, &segments);
                if both && (random.below(3) == 0 || twice) {
                    ports.push(vec![on, on - 1]);
                }
            }
            ports.push(vec![0]);
            ports.push(vec![count - 1]);
        }
        while ports.len() < HOSTS_MAX && random.below(3) > 0 {
            let on = random.below(count as u64) as usize;
            if !is_link(on, &segments) {
                ports.push(vec![on]);
            }
        }
        for last in (1..ports.len()).rev() {
            ports.swap(last, random.below(last as u64 + 1) as usize);
        }
        let more = segments.split_off(1);
        let first = segments.remove(0);
        let quota = (random.below(3) == 0).then(|| random.between(1, 3) as u32);
        let delay_max = Span::from_micros([400, 4_000, 40_000, 200_000][random.below(4) as usize]);
        WorldSpec {
            topology: first.topology,
            card_queue: first.card_queue,
            more,
            drift_ppm: if random.below(2) == 0 { 50 } else { 0 },
            across: Some(Sessions { delay_max, quota, breaks_ppm: 0, reroute: Span::ZERO }),
            strangers: 1,
            ports: ports.clone(),
            ..WorldSpec::with(ports.len(), first.settings)
        }
    }

    fn segment(self, random: &mut Stream) -> SegmentSpec {
        if random.below(3) == 0 {
            let rates = if self == Self::Product { [10, 10, 100] } else { [10, 100, 1_000] };
            let rate = BitRate::from_mbit(rates[random.below(3) as usize]);
            let mut settings = Settings::ethernet(rate, Octets::new(150_000));
            if self == Self::Proven {
                settings = settings.proven();
            }
            settings.medium.medium = MediumKind::Link;
            let topology = Topology::Link { delay: Span::from_nanos(random.below(100_000)) };
            return SegmentSpec { card_queue: settings.port_queue, settings, topology };
        }
        let settings = match self {
            Self::Product if random.below(2) == 0 => {
                Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000))
            }
            _ => self.settings(random, 1_500),
        };
        SegmentSpec { card_queue: settings.port_queue, settings, topology: Topology::Switch }
    }

    pub(super) fn channel(
        self,
        random: &mut Stream,
        scenario: &Scenario,
        races: bool,
        (open, duration): (u64, u64),
    ) -> AcrossChannel {
        let world = &scenario.world;
        let apart = |from: usize, to: usize| from != to && world.common(from, to).is_none();
        let all = (0..world.stations).flat_map(|from| (0..world.stations).map(move |to| (from, to)));
        let pairs: Vec<(usize, usize)> = all.filter(|(from, to)| apart(*from, *to)).collect();
        let (from, to) = pairs[random.below(pairs.len() as u64) as usize];
        let ms = Span::from_millis;
        let period = Span::from_micros(random.between(5_000, 60_000));
        let octets = if races { random.between(4_000, 16_000) } else { random.between(1, 3_500) } as u32;
        let delay = match random.below(3) {
            0 => None,
            1 => Some(ms(random.between(20, 200))),
            _ => Some(ms(random.between(200, 500))),
        };
        let manner =
            [Manner::Greedy, Manner::Greedy, Manner::Greedy, Manner::Random, Manner::Random, Manner::Hasty]
                [random.below(6) as usize];
        let answer = match random.below(10) {
            0 => Answer::Declines,
            1 => Answer::Silent,
            _ => Answer::Accepts,
        };
        let uid = random.below(2) as u32;
        let close = (random.below(3) > 0).then(|| ms(open + random.between(1, duration)));
        let (by_receiver, dies) = (random.below(4) == 0, random.below(6) == 0);
        let suite = Suite::default();
        let spec = AcrossSpec { from, to, octets, period, delay, uid, manner, answer, suite };
        let (changes, joins, leaves) = (Vec::new(), Vec::new(), Vec::new());
        AcrossChannel { spec, open: ms(open), close, by_receiver, dies, changes, joins, leaves }
    }
}

/// Half of the channels have messages of many packets, and others units of one packet at short times.
fn dense(seed: u64, mut scenario: Scenario) -> Scenario {
    let mut random = Stream::named(seed, "campaign dense");
    for AcrossChannel { spec, .. } in &mut scenario.across {
        let (octets, period) = match random.below(4) {
            0 | 1 => (random.between(45_000, 300_000), random.between(20_000, 60_000)),
            2 => (random.between(1, 300), random.between(250, 900)),
            _ => continue,
        };
        (spec.octets, spec.period) = (octets as u32, Span::from_micros(period));
    }
    scenario
}

/// The pairs of scheduler and regulator that a link's end may have.
pub fn disciplines() -> impl Iterator<Item = Discipline> {
    let pairs = |scheduler| Hold::ALL.map(|hold| Discipline::of(Some(scheduler), Some(hold)));
    Scheduler::ALL.into_iter().flat_map(pairs).flatten()
}

/// All links of a world have one discipline, so that what comes of it is known.
fn discipline(seed: u64, world: &mut WorldSpec) {
    let at = Stream::named(seed, "campaign disciplines").below(disciplines().count() as u64);
    let drawn = disciplines().nth(at as usize).unwrap_or_default();
    world.settings.medium.discipline = drawn;
    world.more.iter_mut().for_each(|segment| segment.settings.medium.discipline = drawn);
}

/// Ordinary traffic between stations of each segment.
fn cross_traffic(random: &mut Stream, scenario: &mut Scenario) {
    for on in 0..scenario.world.segments() {
        let hosts: Vec<usize> = scenario.world.hosts_on(on).collect();
        for pair in hosts
            .windows(2)
            .filter(|_| random.below(2) == 0)
            .map(|pair| (pair[0], pair[1]))
            .collect::<Vec<_>>()
        {
            // The first segment that two hosts share carries it; a link that it fills drops announcements.
            let mean = Span::from_micros(3_000 + random.below(9_000));
            let shape = Shape::Poisson { mean, octets: random.between(60, 1_514) as u32 };
            let (from, to) = if random.below(2) == 0 { pair } else { (pair.1, pair.0) };
            scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape, messages: None });
        }
    }
}
