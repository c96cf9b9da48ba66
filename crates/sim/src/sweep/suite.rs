//! Worlds of channels across segments with the terms of the second suite: several receivers, paths in
//! reserve, bookings, partitions, groups, changes, receivers that ask, both directions, and the statistical
//! class. They are the worlds of other seeds with further channels.

use super::Campaign;
use crate::engine::Stream;
use crate::scenario::{AcrossChannel, Scenario};
use crate::world::{AcrossChange, AcrossSpec, Answer, Initiation, Manner, Suite};
use rota_admission::rtip::Scheduler;
use rota_contract::{Chances, Group, PartitionName};
use rota_units::Span;

/// The parts of a divided link, in percent.
const PARTS: [(&str, u8); 2] = [("studio", 40), ("news", 20)];

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// What a channel has beside its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tree,
    Backup,
    Booked,
    Changes,
    Group,
    Asked,
    Duplex,
    Statistical,
    Partition,
}

const KINDS: [Kind; 9] = [
    Kind::Tree,
    Kind::Backup,
    Kind::Booked,
    Kind::Changes,
    Kind::Group,
    Kind::Asked,
    Kind::Duplex,
    Kind::Statistical,
    Kind::Partition,
];

impl Campaign {
    /// The further channels of the world that this seed draws.
    pub(super) fn with_suite(self, seed: u64, mut scenario: Scenario) -> Scenario {
        let mut random = Stream::named(seed, "campaign suite");
        let duration = scenario.duration.as_nanos() / 1_000_000;
        divide(&mut random, &mut scenario);
        // The sum of all requests is denied for its load: fewer of the plain ones leave room.
        scenario.across.truncate(3);
        for _ in 0..random.between(2, 5) {
            let kind = KINDS[random.below(KINDS.len() as u64) as usize];
            let open = random.below(duration / 3);
            let mut channel = self.channel(&mut random, &scenario, false, (open, duration));
            channel.spec.octets = random.between(200, 4_000) as u32;
            channel.spec.suite.room = channel.spec.octets;
            (channel.spec.uid, channel.spec.answer) = (2, Answer::Accepts);
            kind.draw(&mut random, &mut scenario, &mut channel, (open, duration));
            scenario.across.push(channel);
        }
        // By streams of their own, so that each seed keeps the rest of its world.
        type IsMeant = fn(&Suite) -> bool;
        let changing: [(_, IsMeant); 2] = [
            ("campaign changes of two paths", |suite| suite.backup),
            ("campaign changes of several receivers", |suite| !suite.others.is_empty()),
        ];
        for (name, is_meant) in changing {
            let mut random = Stream::named(seed, name);
            for channel in scenario.across.iter_mut().filter(|channel| is_meant(&channel.spec.suite)) {
                let open = channel.open.as_nanos() / 1_000_000;
                if random.below(3) > 0 {
                    changes(&mut random, channel, (open, duration));
                }
            }
        }
        scenario
    }
}

impl Kind {
    fn draw(
        self,
        random: &mut Stream,
        scenario: &mut Scenario,
        channel: &mut AcrossChannel,
        (open, duration): (u64, u64),
    ) {
        let left = duration - open;
        let suite = &mut channel.spec.suite;
        match self {
            Self::Tree => branches(random, scenario, channel, (open, duration)),
            Self::Backup => suite.backup = true,
            Self::Booked => {
                suite.start = (random.below(4) > 0).then(|| ms(random.between(1, left / 2)));
                suite.end = (random.below(4) > 0).then(|| ms(left / 2 + random.between(1, left / 2)));
                (channel.close, channel.dies) = (None, false);
            }
            Self::Changes => changes(random, channel, (open, duration)),
            Self::Group => members(random, scenario, channel, (open, duration)),
            Self::Asked => suite.asks = Initiation::Receiver,
            Self::Duplex => suite.asks = Initiation::Duplex,
            Self::Statistical => {
                let late_ppb = [1_000_000, 10_000_000, 100_000_000][random.below(3) as usize];
                suite.chances = Chances { late_ppb, loss_ppb: late_ppb };
                let x_min = Span::from_micros(random.between(4_000, 12_000));
                let x_ave = x_min * random.between(2, 5);
                (suite.average, suite.interval) = (Some(x_ave), Some(x_ave * random.between(4, 12)));
                suite.room = 1_200;
                (channel.spec.period, channel.spec.manner) = (x_min, Manner::OnOff);
                channel.spec.octets = random.between(200, 1_200) as u32;
            }
            Self::Partition => {
                let (name, _) = PARTS[random.below(2) as usize];
                suite.partition = name.parse().ok();
            }
        }
    }
}

/// Other contracts while the channel is open.
fn changes(random: &mut Stream, channel: &mut AcrossChannel, (open, duration): (u64, u64)) {
    channel.spec.suite.room = 8_000;
    for _ in 0..random.between(1, 4) {
        let at = ms(open + random.between(100, (duration - open).max(101)));
        let octets = random.between(100, 8_000) as u32;
        let period = Span::from_micros(random.between(10_000, 60_000));
        let delay = (random.below(3) == 0).then(|| ms(random.between(60, 500)));
        channel.changes.push(AcrossChange { at, octets, period, delay });
    }
    channel.changes.sort_by_key(|change| change.at);
}

/// Further receivers, some of which come and go.
fn branches(
    random: &mut Stream,
    scenario: &Scenario,
    channel: &mut AcrossChannel,
    (open, duration): (u64, u64),
) {
    let AcrossSpec { from, to, .. } = channel.spec;
    let all = (0..scenario.world.stations).filter(|host| *host != from && *host != to);
    let mut others: Vec<usize> = all.collect();
    for last in (1..others.len()).rev() {
        others.swap(last, random.below(last as u64 + 1) as usize);
    }
    others.truncate(random.between(1, 3) as usize);
    let mut time = || ms(open + random.between(200, (duration - open).max(201)));
    let (joins, leaves) = (time(), time());
    if others.len() > 1 {
        channel.joins = others.pop().map(|host| (host, joins)).into_iter().collect();
    }
    channel.leaves.push((others[0], leaves));
    if random.below(3) == 0 {
        let again = leaves + ms(random.between(50, 1_000));
        channel.joins.push((others[0], again));
    }
    (channel.spec.suite.others, channel.by_receiver) = (others, false);
}

/// Members that take turns; in some worlds one that does not.
fn members(
    random: &mut Stream,
    scenario: &mut Scenario,
    channel: &mut AcrossChannel,
    (open, duration): (u64, u64),
) {
    let at_once = random.between(1, 2) as u8;
    let name = format!("g{}", scenario.across.len()).parse().expect("a name");
    channel.spec.suite.group = Some(Group { name, at_once });
    channel.spec.delay = Some(ms(random.between(100, 300)));
    channel.spec.manner = Manner::Greedy;
    channel.by_receiver = false;
    for _ in 0..random.between(1, 3) {
        let mut spec = channel.spec.clone();
        if random.below(2) == 0 {
            // The other way, or from somewhere else over the same link.
            let hosts = scenario.world.stations as u64;
            let from = random.below(hosts) as usize;
            let is_apart = from != spec.to && scenario.world.common(from, spec.to).is_none();
            spec.from = if is_apart { from } else { spec.from };
        }
        if random.below(5) == 0 {
            spec.manner = Manner::AtOnce;
        }
        let open = ms(open + random.below(duration / 4));
        let close = (random.below(3) == 0).then(|| open + ms(random.between(500, duration)));
        scenario.across.push(AcrossChannel { spec, open, close, ..channel.clone() });
    }
}

/// Every second world divides its links, but for those that serve levels.
fn divide(random: &mut Stream, scenario: &mut Scenario) {
    if random.below(2) == 0 {
        return;
    }
    let world = &mut scenario.world;
    let links: Vec<bool> = (0..world.segments()).map(|on| world.is_link(on)).collect();
    let all = [&mut world.settings].into_iter().chain(world.more.iter_mut().map(|more| &mut more.settings));
    for (settings, _) in all.zip(links).filter(|(_, is_link)| *is_link) {
        if settings.medium.discipline.scheduler == Scheduler::Rcsp {
            continue;
        }
        for (name, percent) in PARTS {
            let name: PartitionName = name.parse().expect("a name");
            settings.medium.partitions.add(name, percent).expect("there is room");
        }
    }
}

impl Suite {
    /// Whether it says nothing beyond what any channel has.
    pub fn is_plain(&self) -> bool {
        *self == Self { room: self.room, ..Self::default() }
    }
}
