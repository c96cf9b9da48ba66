//! From looks at the counters file to pictures: rates, both ends of each channel, and what they mean.

use super::narrow::Narrow;
use super::picture::{Channel, Fault, KINDS, Picture, Rotation, Share, Station};
use super::rates::{Figures, Meter, Rate};
use super::source::Source;
use super::warn::{self, Habits};
use rota::{ChannelRow, Flow, Instant, Monitor, Span, StationRow};
use std::collections::{BTreeMap, VecDeque};

/// Intervals of each history that are kept.
pub const HISTORY: usize = 240;
/// What this station counts of itself is as new as this at least.
const OWN_WINDOW: Span = Span::from_millis(500);
/// A station is silent after so many of its own intervals.
const SILENT: u64 = 4;

/// Kinds, levels and what it hears of strangers.
const FLOWS: usize = KINDS.len() + 8 + 1;
const FOREIGN: usize = FLOWS - 1;

#[derive(Default)]
struct Known {
    meter: Meter<FLOWS>,
    habits: Habits,
    load: Figures,
}

#[derive(Default)]
struct KnownChannel {
    meter: Meter<1>,
    slack: VecDeque<Option<i64>>,
    units: u64,
}

/// What has been seen so far.
pub struct Watch {
    sampling: Span,
    life: u64,
    stations: BTreeMap<u64, Known>,
    channels: BTreeMap<u64, KnownChannel>,
    load: Figures,
    kinds: [Figures; KINDS.len()],
    levels: [Figures; 8],
    history: VecDeque<u64>,
    filter: Narrow,
}

impl Watch {
    /// Nothing has been seen. Rates of this station are taken over the sampling interval.
    pub fn new(sampling: Span) -> Self {
        Self {
            sampling,
            life: 0,
            stations: BTreeMap::new(),
            channels: BTreeMap::new(),
            load: Figures::default(),
            kinds: Default::default(),
            levels: Default::default(),
            history: VecDeque::new(),
            filter: Narrow::default(),
        }
    }

    /// Whether every station that reports has been measured over an interval at least.
    pub fn is_settled(&self, rows: &Monitor) -> bool {
        let mut told = rows.stations.iter().filter(|row| tells(row) && row.flags & StationRow::ALIVE != 0);
        told.all(|row| self.stations.get(&row.station).is_some_and(|known| known.meter.is_measured()))
    }

    /// The picture after one look.
    pub fn picture(&mut self, now: Instant, source: &Source) -> Picture {
        if self.life != source.nodes_found {
            self.life = source.nodes_found;
            self.forget_maxima();
        }
        let rows = &source.rows;
        let segment = &rows.segment;
        let overhead = segment.frame_overhead_octets;
        let mut stations: Vec<Station> =
            rows.stations.iter().map(|row| self.station(now, row, overhead)).collect();
        stations.iter_mut().for_each(|station| self.filter.narrow(station));
        for station in &mut stations {
            self.weigh(station);
        }
        self.stations.retain(|number, _| rows.stations.iter().any(|row| row.station == *number));
        let mut channels = self.channels(rows);
        channels.retain(|channel| self.filter.passes(channel));
        self.sum(&stations);
        let named = |names: &[&str], figures: &[Figures]| {
            let pairs = names.iter().zip(figures);
            pairs.map(|(name, load)| Share { name: (*name).to_owned(), load: *load }).collect::<Vec<_>>()
        };
        let levels = ["0", "1", "2", "3", "4", "5", "6", "7"];
        let [round_ns, hops] = segment.round;
        let mut picture = Picture {
            node: true,
            at_ns: segment.written_ns,
            station: segment.station,
            name: stations.iter().find(|s| s.here).map(|s| s.name.clone()).unwrap_or_default(),
            mode: mode(segment.mode).into(),
            trt_ns: segment.trt_ns,
            link_bps: segment.link_bps,
            load: self.load,
            load_history_bps: self.history.iter().copied().collect(),
            kinds: named(&KINDS, &self.kinds),
            levels: named(&levels, &self.levels),
            stations,
            channels,
            reserved_ns: segment.reserved_ns,
            capacity_ns: segment.capacity_ns,
            rotation: Rotation {
                last_ns: segment.rotation_ns,
                longest_ns: segment.rotation_longest_ns,
                tenths: segment.rotation_tenths.to_vec(),
                round_ns,
                hop_ns: round_ns / hops.max(1),
            },
            should_be_zero: faults(&source.counters),
            warnings: Vec::new(),
            filter: self.filter.text.clone(),
        };
        picture.warnings = self.warnings(now, rows, &picture);
        picture
    }

    fn station(&mut self, now: Instant, row: &StationRow, overhead: u64) -> Station {
        let known = self.stations.entry(row.station).or_default();
        let here = row.flags & StationRow::HERE != 0;
        let mut counts = [Flow::default(); FLOWS];
        counts[..KINDS.len()].copy_from_slice(&row.kinds);
        counts[KINDS.len()..FOREIGN].copy_from_slice(&row.levels);
        counts[FOREIGN] = row.foreign;
        if tells(row) {
            let window = if here { self.sampling.max(OWN_WINDOW) } else { Span::ZERO };
            known.meter.look(row.at_ns, counts, window, overhead);
            known.habits.look(now, row.stalls);
        }
        if is_silent(now, row) {
            known.meter.go_silent();
        }
        let figures = &known.meter.figures;
        let mut kinds = [Figures::default(); KINDS.len()];
        kinds.copy_from_slice(&figures[..KINDS.len()]);
        let mut levels = [Figures::default(); 8];
        levels.copy_from_slice(&figures[KINDS.len()..FOREIGN]);
        Station {
            station: row.station,
            name: row.name(),
            mac: mac(row.mac),
            here,
            alive: row.flags & StationRow::ALIVE != 0,
            reports: tells(row),
            load: Figures::default(),
            kinds,
            levels,
            reserved_ns: row.reserved_ns,
            queued: row.queued,
            dropped: row.dropped,
            stalls: row.stalls,
            stall_longest_ns: row.stall_longest_ns,
            faults: row.faults,
            received_frames: row.received.frames,
            received_octets: row.received.octets,
        }
    }

    /// The station's whole load, of the kinds that the filter has left.
    fn weigh(&mut self, station: &mut Station) {
        let Some(known) = self.stations.get_mut(&station.station) else { return };
        known.load.set_now(total(station.kinds.iter().map(|kind| kind.now)));
        known.load.average = total(station.kinds.iter().map(|kind| kind.average));
        station.load = known.load;
    }

    /// From now on only what passes is shown. What was largest before says nothing about it.
    pub fn set_filter(&mut self, filter: Narrow) {
        self.filter = filter;
        self.forget_maxima();
    }

    /// From now on it looks so often.
    pub fn set_sampling(&mut self, sampling: Span) {
        self.sampling = sampling;
    }

    /// Averages and maxima begin anew.
    pub fn forget_maxima(&mut self) {
        let filter = std::mem::take(&mut self.filter);
        *self = Self { life: self.life, filter, ..Self::new(self.sampling) };
    }

    fn sum(&mut self, stations: &[Station]) {
        let add = |figures: &mut Figures, of: &dyn Fn(&Station) -> Figures| {
            figures.set_now(total(stations.iter().map(|station| of(station).now)));
            figures.average = total(stations.iter().map(|station| of(station).average));
        };
        add(&mut self.load, &|station| station.load);
        for (at, kind) in self.kinds.iter_mut().enumerate() {
            add(kind, &|station| station.kinds[at]);
        }
        for (at, level) in self.levels.iter_mut().enumerate() {
            add(level, &|station| station.levels[at]);
        }
        push(&mut self.history, self.load.now.rate_bps);
    }

    /// Both ends of each channel as one.
    fn channels(&mut self, rows: &Monitor) -> Vec<Channel> {
        let name = |number: u64| {
            let row = rows.stations.iter().find(|row| row.station == number);
            row.map(StationRow::name).filter(|name| !name.is_empty()).unwrap_or_else(|| number.to_string())
        };
        let mut channels = BTreeMap::<u64, Channel>::new();
        for row in &rows.channels {
            let channel = channels.entry(row.channel).or_default();
            let sending = row.flags & ChannelRow::SENDING != 0;
            let (from, to) = if sending { (row.station, row.peer) } else { (row.peer, row.station) };
            channel.channel = row.channel;
            (channel.label, channel.from_station, channel.to_station) = (row.label, from, to);
            (channel.from, channel.to) = (name(from), name(to));
            let stated = (row.bound_ns > 0).then_some(row.bound_ns);
            channel.bound_ns =
                if sending { stated.or(channel.bound_ns) } else { channel.bound_ns.or(stated) };
            if sending || channel.period_ns == 0 {
                (channel.unit_octets_max, channel.period_ns) = (row.unit_octets_max, row.period_ns);
            }
            if sending {
                channel.tht_ns = (row.tht_ns > 0).then_some(row.tht_ns);
                channel.units_sent = row.units;
            } else {
                self.receiver(channel, row);
            }
        }
        self.channels.retain(|id, _| channels.contains_key(id));
        channels.into_values().collect()
    }

    /// What only the receiving end knows.
    fn receiver(&mut self, channel: &mut Channel, row: &ChannelRow) {
        let known = self.channels.entry(row.channel).or_default();
        let one_clock = row.flags & ChannelRow::ONE_CLOCK != 0;
        (channel.units_received, channel.fragments_received) = (row.units, row.fragments);
        channel.late = row.late;
        let bound = (row.bound_ns > 0).then_some(row.bound_ns);
        let slack = |delay: u64| bound.map(|bound| bound.cast_signed().saturating_sub_unsigned(delay));
        if row.units > 0 {
            if one_clock {
                channel.delay_max_ns = Some(row.delay_max_ns);
                channel.slack_ns = slack(row.delay_max_ns);
            } else {
                channel.lateness_max_ns = Some(row.delay_max_ns);
            }
        }
        let counts = [Flow { frames: row.units, octets: row.octets }];
        // The node's own rows are new at every look; histories go by intervals of reports.
        if known.meter.look(row.told_ns, counts, Span::from_millis(900), 0) && row.delay_recent_ns > 0 {
            let came = known.units != row.units;
            let recent = Some(row.delay_recent_ns).filter(|_| came && one_clock).and_then(slack);
            if recent.is_some() {
                push(&mut known.slack, recent);
            }
            known.units = row.units;
        }
        channel.load = known.meter.figures[0];
        channel.slack_history_ns = known.slack.iter().copied().collect();
    }

    fn warnings(&self, now: Instant, rows: &Monitor, picture: &Picture) -> Vec<super::picture::Warning> {
        let mut warnings = warn::of_segment(rows, picture);
        for (row, station) in rows.stations.iter().zip(&picture.stations) {
            let Some(known) = self.stations.get(&row.station) else { continue };
            let foreign = known.meter.figures[FOREIGN].now;
            warnings.extend(warn::of_station(
                picture,
                station,
                row,
                foreign,
                known.habits.stalls_lately(now),
                is_silent(now, row),
            ));
        }
        warnings.extend(picture.channels.iter().filter_map(warn::of_channel));
        warnings
    }
}

fn tells(row: &StationRow) -> bool {
    row.flags & (StationRow::HERE | StationRow::REPORTED) != 0
}

fn is_silent(now: Instant, row: &StationRow) -> bool {
    let here = row.flags & StationRow::HERE != 0;
    let age = now.as_nanos().saturating_sub(row.heard_ns);
    !here && tells(row) && age > row.every_ns.max(100_000_000) * SILENT
}

fn total(rates: impl Iterator<Item = Rate>) -> Rate {
    rates.fold(Rate::default(), |mut sum, rate| {
        sum += rate;
        sum
    })
}

fn push<T>(history: &mut VecDeque<T>, value: T) {
    if history.len() == HISTORY {
        history.pop_front();
    }
    history.push_back(value);
}

fn faults(counters: &[(String, u64)]) -> Vec<Fault> {
    let value = |name: &str| counters.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value);
    rota_node::SHOULD_BE_ZERO
        .iter()
        .map(|name| Fault {
            name: (*name).to_owned(),
            value: value(name),
            meaning: warn::meaning(name).into(),
        })
        .collect()
}

fn mode(code: u64) -> &'static str {
    ["joining", "plain", "switching", "token"].get(code as usize).copied().unwrap_or("unknown")
}

pub(super) fn mac(word: u64) -> String {
    let [_, _, octets @ ..] = word.to_be_bytes();
    octets.map(|octet| format!("{octet:02x}")).join(":")
}
