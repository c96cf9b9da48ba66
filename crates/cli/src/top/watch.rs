//! From looks at the counters file to pictures: rates, both ends of each channel, and what they mean.

use super::narrow::Narrow;
use super::picture::{Beyond, Channel, Fault, KINDS, Picture, Rotation, Share, Shares, Station, Warning};
use super::rates::{Figures, Meter, Rate};
use super::source::Seen;
use super::warn::{self, Habits, Noticed, Rise};
use crate::filter::MODES;
use rota::{ChannelId, ChannelRow, Instant, Monitor, Span, StationRow};
use rota_node::SHOULD_BE_ZERO;
use rota_wire::{ChannelReport, Load, MacAddr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Intervals of each history that are kept.
pub const HISTORY: usize = 240;
/// The counts of this station itself are as new as this at least.
const OWN_WINDOW: Span = Span::from_millis(500);
/// A station is silent after so many of its own intervals.
const SILENT: u64 = 4;
/// Stations that are gone and still shown.
const GONE: usize = 32;

/// Kinds, levels and what it hears of strangers.
const FLOWS: usize = KINDS.len() + 8 + 1;
const FOREIGN: usize = FLOWS - 1;

#[derive(Default)]
struct Known {
    row: StationRow,
    /// Since when it is no member any more.
    gone: Option<Instant>,
    meter: Meter<FLOWS>,
    habits: Habits,
    load: Figures,
}

#[derive(Default)]
struct KnownChannel {
    meter: Meter<1>,
    slack: VecDeque<i64>,
    units: u64,
    late: Rise,
}

/// What has been seen so far.
pub struct Watch {
    sampling: Span,
    life: u64,
    /// By their addresses: numbers change.
    stations: BTreeMap<String, Known>,
    channels: BTreeMap<ChannelId, KnownChannel>,
    load: Figures,
    kinds: [Figures; KINDS.len()],
    levels: [Figures; 8],
    history: VecDeque<u64>,
    filter: Narrow,
    faults: [Rise; SHOULD_BE_ZERO.len()],
}

impl Watch {
    /// Nothing has been seen. Rates of this station are taken over the sampling interval.
    pub fn new(sampling: Span, filter: Narrow) -> Self {
        Self {
            sampling,
            life: 0,
            stations: BTreeMap::new(),
            channels: BTreeMap::new(),
            load: Figures::default(),
            kinds: Default::default(),
            levels: Default::default(),
            history: VecDeque::new(),
            filter,
            faults: Default::default(),
        }
    }

    /// Whether every station that reports, and each channel that one of them receives, has been measured over
    /// an interval at least.
    pub fn is_settled(&self, rows: &Monitor) -> bool {
        let is_measured = |row: &StationRow| {
            let channels = rows.channels.iter().filter(|channel| channel.station == row.station);
            let mut received = channels.filter(|channel| !channel.said.sending);
            self.stations.get(&mac(row)).is_some_and(|known| known.meter.is_measured())
                && received.all(|channel| {
                    self.channels.get(&channel.said.channel).is_some_and(|known| known.meter.is_measured())
                })
        };
        let mut told = rows.stations.iter().filter(|row| tells(row) && row.flags & StationRow::ALIVE != 0);
        told.all(is_measured)
    }

    /// The picture after one look.
    pub fn picture(&mut self, now: Instant, seen: &Seen) -> Picture {
        if self.life != seen.life {
            let filter = std::mem::take(&mut self.filter);
            *self = Self { life: seen.life, ..Self::new(self.sampling, filter) };
        }
        let rows = &seen.rows;
        let segment = &rows.segment;
        let overhead = segment.frame_overhead_octets;
        let mut stations: Vec<Station> =
            rows.stations.iter().map(|row| self.station(now, row, overhead)).collect();
        // The file begins with this station, and looked at elsewhere the order would be another one.
        stations.sort_by_key(|station| station.station);
        stations.iter_mut().for_each(|station| self.filter.narrow(station));
        for station in &mut stations {
            self.weigh(station);
        }
        let mut channels = self.channels(now, rows);
        channels.retain(|channel| self.filter.passes(channel));
        self.sum(&stations);
        stations.extend(self.gone(now, rows));
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
            mode: MODES.get(segment.mode as usize).copied().unwrap_or("unknown").into(),
            trt_ns: segment.trt_ns,
            link_bps: segment.link_bps,
            load: self.load,
            load_history_bps: self.history.iter().copied().collect(),
            kinds: named(&KINDS, &self.kinds),
            levels: named(&levels, &self.levels),
            stations,
            channels,
            shares: Shares { reserved_ns: segment.reserved_ns, capacity_ns: segment.capacity_ns },
            rotation: Rotation {
                last_ns: segment.rotation_ns,
                longest_ns: segment.rotation_longest_ns,
                tenths: segment.rotation_tenths.to_vec(),
                round_ns,
                hop_ns: round_ns / hops.max(1),
            },
            should_be_zero: self.faults(now, &seen.counters),
            warnings: Vec::new(),
            filter: self.filter.text.clone(),
            interface: segment.interface(),
            beyond: Beyond::default(),
        };
        picture.warnings = self.warnings(now, rows, &picture);
        picture
    }

    fn station(&mut self, now: Instant, row: &StationRow, overhead: u64) -> Station {
        let known = self.stations.entry(mac(row)).or_default();
        (known.row, known.gone) = (*row, None);
        let here = row.flags & StationRow::HERE != 0;
        let mut counts = [Load::default(); FLOWS];
        counts[..KINDS.len()].copy_from_slice(&row.said.kinds);
        counts[KINDS.len()..FOREIGN].copy_from_slice(&row.said.levels);
        counts[FOREIGN] = row.said.foreign;
        if tells(row) {
            let window = if here { self.sampling.max(OWN_WINDOW) } else { Span::ZERO };
            known.meter.look(row.said.at_ns, counts, window, overhead);
            known.habits.look(now, row.said.stalls.into());
            known.habits.faults.look(now, row.said.faults);
        }
        if is_silent(now, row) {
            known.meter.go_silent();
        }
        let figures = &known.meter.figures;
        let mut kinds = [Figures::default(); KINDS.len()];
        kinds.copy_from_slice(&figures[..KINDS.len()]);
        let mut levels = [Figures::default(); 8];
        levels.copy_from_slice(&figures[KINDS.len()..FOREIGN]);
        Station { kinds, levels, reserved_ns: row.reserved_ns, queued: row.said.queued.into(), ..told(row) }
    }

    /// Stations that took part while this was watched and do no longer: each as it was last known, without a
    /// load. A station that comes back under another number is no longer gone.
    fn gone(&mut self, now: Instant, rows: &Monitor) -> Vec<Station> {
        // A station that looks for its segment knows of nobody, so nobody can be missed.
        let joining = rows.segment.mode == 0;
        let is_listed = |known: &Known| rows.stations.iter().any(|row| row.mac == known.row.mac);
        let mut gone = Vec::new();
        for known in self.stations.values_mut().filter(|known| !is_listed(known)) {
            if joining && known.gone.is_none() {
                continue;
            }
            let since = *known.gone.get_or_insert(now);
            known.meter.go_silent();
            gone.push((since, Station { gone: true, alive: false, ..told(&known.row) }));
        }
        gone.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        for (_, station) in gone.drain(gone.len().min(GONE)..) {
            self.stations.remove(&station.mac);
        }
        gone.into_iter().map(|(_, station)| station).collect()
    }

    /// The station's whole load, of the kinds that the filter has left.
    fn weigh(&mut self, station: &mut Station) {
        let Some(known) = self.stations.get_mut(&station.mac) else { return };
        known.load.set_now(total(station.kinds.iter().map(|kind| kind.now)));
        known.load.set_average(total(station.kinds.iter().map(|kind| kind.average)));
        station.load = known.load;
    }

    /// From now on only what passes is shown. The largest value before says nothing about it.
    pub fn set_filter(&mut self, filter: Narrow) {
        self.filter = filter;
        self.forget_maxima();
    }

    /// From now on it looks so often.
    pub fn set_sampling(&mut self, sampling: Span) {
        self.sampling = sampling;
    }

    /// Averages and maxima begin anew, and who is gone is forgotten.
    pub fn begin_anew(&mut self) {
        self.stations.retain(|_, known| known.gone.is_none());
        self.forget_maxima();
    }

    /// Averages and maxima begin anew. When faults rose is still known.
    fn forget_maxima(&mut self) {
        for known in self.stations.values_mut() {
            (known.meter, known.load) = Default::default();
        }
        for known in self.channels.values_mut() {
            known.meter = Meter::default();
            known.slack.clear();
        }
        (self.load, self.kinds, self.levels) = Default::default();
        self.history.clear();
    }

    fn sum(&mut self, stations: &[Station]) {
        let add = |figures: &mut Figures, of: &dyn Fn(&Station) -> Figures| {
            figures.set_now(total(stations.iter().map(|station| of(station).now)));
            figures.set_average(total(stations.iter().map(|station| of(station).average)));
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
    fn channels(&mut self, now: Instant, rows: &Monitor) -> Vec<Channel> {
        let name = |number: u64| {
            // A station without a number has 0, and so has an end at no station.
            let row = rows.stations.iter().find(|row| row.station == number && number != 0);
            row.map(StationRow::name).filter(|name| !name.is_empty()).unwrap_or_else(|| number.to_string())
        };
        let mut channels = BTreeMap::<ChannelId, Channel>::new();
        let here = rows.channels.iter().map(|row| row.said).filter(|said| !said.sending);
        let received: BTreeSet<ChannelId> = here.map(|said| said.channel).collect();
        for row in &rows.channels {
            let (said, sending) = (&row.said, row.said.sending);
            let channel = channels.entry(said.channel).or_default();
            let (here, peer) = (row.station, u64::from(said.peer_station));
            let (from, to) = if sending { (here, peer) } else { (peer, here) };
            channel.channel = said.channel;
            (channel.label, channel.from_station, channel.to_station) = (said.label.into(), from, to);
            (channel.from, channel.to) = (name(from), name(to));
            let stated = (said.bound_ns > 0).then_some(said.bound_ns);
            channel.bound_ns =
                if sending { stated.or(channel.bound_ns) } else { channel.bound_ns.or(stated) };
            if sending || channel.period_ns == 0 {
                channel.unit_octets_max = said.unit_octets_max.into();
                channel.period_ns = said.period_ns.into();
            }
            // The sender knows first of units that it left out. Of late and incomplete ones the receiver
            // knows first; a late unit may be lost by now, and must not count as both.
            let units = &mut channel.units;
            units.lost = units.lost.max(said.lost);
            if !sending || !received.contains(&said.channel) {
                [units.late, units.incomplete] = [said.late, said.incomplete];
            }
            units.unread = units.unread.max(said.unread);
            units.latest_by_ns = match (units.late, units.latest_by_ns.max(behind_bound(said))) {
                (0, _) => Some(0),
                (_, by) => by.filter(|by| *by > 0),
            };
            if sending {
                channel.tht_ns = (said.tht_ns > 0).then_some(said.tht_ns.into());
                channel.units.sent = said.units;
            } else {
                self.receiver(now, channel, row);
            }
        }
        self.channels.retain(|id, _| channels.contains_key(id));
        channels.into_values().collect()
    }

    /// What only the receiving end knows.
    fn receiver(&mut self, now: Instant, channel: &mut Channel, row: &ChannelRow) {
        let said = &row.said;
        let known = self.channels.entry(said.channel).or_default();
        (channel.units.received, channel.units.fragments) = (said.units, said.fragments);
        known.late.look(now, said.late.saturating_add(said.lost).saturating_add(said.incomplete));
        let bound = (said.bound_ns > 0).then_some(said.bound_ns);
        let slack = |delay: u64| bound.map(|bound| bound.cast_signed().saturating_sub_unsigned(delay));
        if said.units > 0 {
            if said.one_clock {
                channel.delay_max_ns = Some(said.delay_max_ns);
                channel.slack_ns = slack(said.delay_max_ns);
            } else {
                channel.lateness_max_ns = Some(said.delay_max_ns);
            }
        }
        let counts = [Load { frames: said.units, octets: said.octets }];
        // The node's own rows are new at every look; histories go by intervals of reports.
        if known.meter.look(row.told_ns, counts, Span::from_millis(900), 0) && said.delay_recent_ns > 0 {
            let came = known.units != said.units;
            if let Some(recent) =
                Some(said.delay_recent_ns).filter(|_| came && said.one_clock).and_then(slack)
            {
                push(&mut known.slack, recent);
            }
            known.units = said.units;
        }
        channel.load = known.meter.figures[0];
        channel.slack_history_ns = known.slack.iter().copied().collect();
    }

    fn warnings(&self, now: Instant, rows: &Monitor, picture: &Picture) -> Vec<Warning> {
        let mut warnings = warn::of_segment(rows, picture);
        for row in &rows.stations {
            let mac = mac(row);
            let shown = picture.stations.iter().find(|station| station.mac == mac);
            let Some((station, known)) = shown.zip(self.stations.get(&mac)) else { continue };
            let noticed = Noticed {
                foreign: known.meter.figures[FOREIGN].now,
                stalls: known.habits.stalls_lately(now),
                silent: is_silent(now, row),
                faults: known.habits.faults.rose(now),
            };
            warnings.extend(warn::of_station(picture, station, row, &noticed));
        }
        for station in picture.stations.iter().filter(|station| station.gone) {
            let since = self.stations.get(&station.mac).and_then(|known| known.gone);
            warnings.push(warn::of_gone(station, since.unwrap_or(now), now));
        }
        for channel in &picture.channels {
            let late = self.channels.get(&channel.channel).map(|known| known.late.rose(now));
            warnings.extend(warn::of_channel(channel, late.unwrap_or_default()));
        }
        warn::sort(&mut warnings);
        warnings
    }

    fn faults(&mut self, now: Instant, counters: &[(String, u64)]) -> Vec<Fault> {
        let value =
            |name: &str| counters.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value);
        let faults = SHOULD_BE_ZERO.iter().zip(&mut self.faults).map(|(name, rise)| {
            let value = value(name);
            rise.look(now, value);
            let (meaning, rose) = (warn::meaning(name).into(), rise.rose(now));
            Fault { name: (*name).to_owned(), value, meaning, rose }
        });
        faults.collect()
    }
}

/// What a station's row says by itself.
fn told(row: &StationRow) -> Station {
    Station {
        station: row.station,
        name: row.name(),
        mac: mac(row),
        here: row.flags & StationRow::HERE != 0,
        alive: row.flags & StationRow::ALIVE != 0,
        reports: tells(row),
        dropped: row.said.dropped,
        stalls: row.said.stalls.into(),
        stall_longest_ns: row.said.stall_longest_ns,
        faults: row.said.faults,
        received_frames: row.received.frames,
        received_octets: row.received.octets,
        ..Station::default()
    }
}

fn mac(row: &StationRow) -> String {
    MacAddr::from_word(row.mac).to_string()
}

fn tells(row: &StationRow) -> bool {
    row.flags & (StationRow::HERE | StationRow::REPORTED) != 0
}

fn is_silent(now: Instant, row: &StationRow) -> bool {
    let here = row.flags & StationRow::HERE != 0;
    let age = now.as_nanos().saturating_sub(row.heard_ns);
    !here && tells(row) && age > (u64::from(row.said.every_ms) * 1_000_000).max(100_000_000) * SILENT
}

/// By how much the latest unit of a channel's end missed its bound, as its receiver counted.
fn behind_bound(said: &ChannelReport) -> Option<u64> {
    (said.late > 0 && said.latest_by_ns > 0).then_some(said.latest_by_ns)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A station's file that shows so many members, the first of them its own.
    fn source(mode: u64, members: &[(u64, u64)]) -> Seen {
        let mut source = Seen::default();
        source.rows.segment.mode = mode;
        let row = |(at, (station, mac)): (usize, &(u64, u64))| StationRow {
            station: *station,
            mac: *mac,
            name: StationRow::name_words(&format!("n{mac}")),
            flags: StationRow::ALIVE | if at == 0 { StationRow::HERE } else { StationRow::REPORTED },
            heard_ns: 1,
            ..StationRow::default()
        };
        source.rows.stations = members.iter().enumerate().map(row).collect();
        source
    }

    fn gone(picture: &Picture) -> Vec<&str> {
        picture.stations.iter().filter(|station| station.gone).map(Station::called).collect()
    }

    #[test]
    fn a_station_that_is_no_member_any_more_stays_marked_as_gone() {
        let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
        let at = |second: u64| Instant::ZERO + Span::from_millis(second * 1_000);
        let plain = 1;
        let all = [(1, 1), (2, 2), (3, 3)];
        assert!(gone(&watch.picture(at(1), &source(plain, &all))).is_empty());
        let picture = watch.picture(at(2), &source(plain, &all[..2]));
        assert_eq!((gone(&picture), picture.members()), (vec!["n3"], 2));
        let warned = |picture: &Picture| picture.warnings.iter().find(|w| w.kind == "gone").cloned();
        assert!(warned(&picture).is_some_and(|warning| warning.lately));
        let later = watch.picture(at(80), &source(plain, &all[..2]));
        let old = warned(&later).expect("it is still gone");
        assert!(!old.lately && old.sentence.contains("since 78 s"), "{old:?}");
        // Another filter forgets nobody; the key for it does.
        watch.set_filter(Narrow::default());
        assert_eq!(gone(&watch.picture(at(81), &source(plain, &all[..2]))), ["n3"]);
        // It returns with another number, as after a restart.
        let back = watch.picture(at(82), &source(plain, &[(1, 1), (2, 2), (7, 3)]));
        assert_eq!((gone(&back), back.members()), (vec![], 3));
        assert_eq!(gone(&watch.picture(at(83), &source(plain, &all[..1]))).len(), 2);
        watch.begin_anew();
        assert!(gone(&watch.picture(at(84), &source(plain, &all[..1]))).is_empty());
    }

    /// Its return ends the first departure.
    #[test]
    fn a_station_that_leaves_twice_is_gone_since_the_second_time() {
        let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
        let (plain, all) = (1, [(1, 1), (2, 2)]);
        let mut look = |second: u64, members: usize| {
            watch.picture(Instant::ZERO + Span::from_millis(second * 1_000), &source(plain, &all[..members]))
        };
        for (second, members) in [(1, 2), (2, 1), (90, 2), (100, 1)] {
            look(second, members);
        }
        let picture = look(103, 1);
        let warning = picture.warnings.iter().find(|warning| warning.kind == "gone").expect("it is gone");
        assert!(warning.lately && warning.sentence.contains("since 3 s"), "{warning:?}");
    }

    /// It was 0 for the late units of channels between other stations.
    #[test]
    fn the_latest_unit_of_any_channel_has_its_time_behind_the_bound() {
        let look = |rows: &[ChannelRow]| {
            let mut seen = source(2, &[(1, 1), (2, 2), (3, 3)]);
            seen.rows.channels = rows.to_vec();
            let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
            watch.picture(Instant::ZERO + Span::from_millis(1_000), &seen).channels[0].units.latest_by_ns
        };
        let said = ChannelReport {
            channel: ChannelId(9),
            label: 4,
            bound_ns: 30,
            late: 2,
            ..ChannelReport::default()
        };
        let row = |station, said| ChannelRow { station, said, ..ChannelRow::default() };
        let sender = row(2, ChannelReport { peer_station: 3, sending: true, ..said });
        let told = ChannelReport { peer_station: 2, units: 5, latest_by_ns: 12, ..said };
        let receiver = row(3, told);
        assert_eq!(look(&[sender, receiver]), Some(12));
        assert_eq!(look(&[receiver, sender]), Some(12));
        assert_eq!(look(&[sender]), None, "its receiver has not told");
        assert_eq!(look(&[row(3, ChannelReport { late: 0, ..told })]), Some(0));
    }

    /// It once ended when the stations were measured, with "now" 0 for every channel that its own station
    /// receives: 8 of 8 times.
    #[test]
    fn one_picture_waits_for_the_channels_too_and_has_the_stations_in_order() {
        let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
        let look = |watch: &mut Watch, ms: u64| {
            let mut seen = source(2, &[(3, 1), (1, 2)]);
            let ns = ms * 1_000_000;
            for row in &mut seen.rows.stations {
                (row.said.at_ns, row.heard_ns) = (ns, ns);
            }
            let flow = ms / 33;
            let (units, octets) = (flow, flow * 1_000);
            let said = ChannelReport {
                channel: ChannelId(9),
                peer_station: 1,
                units,
                octets,
                ..ChannelReport::default()
            };
            seen.rows.channels = vec![ChannelRow { station: 3, told_ns: ns, said }];
            let picture = watch.picture(Instant::ZERO + Span::from_millis(ms), &seen);
            (picture, watch.is_settled(&seen.rows))
        };
        look(&mut watch, 1_000);
        let (picture, is_settled) = look(&mut watch, 1_600);
        assert!(picture.stations[1].here && picture.channels[0].load.now.rate_bps == 0 && !is_settled);
        let (picture, is_settled) = look(&mut watch, 2_000);
        assert!(picture.channels[0].load.now.rate_bps > 200_000 && is_settled);
        let numbers: Vec<u64> = picture.stations.iter().map(|station| station.station).collect();
        assert_eq!(numbers, [1, 3]);
    }

    /// Stations were known by their numbers: two that swapped them were each taken for the other one.
    #[test]
    fn a_station_that_gets_another_number_is_still_the_same_one() {
        let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
        let look = |watch: &mut Watch, second: u64, members: &[(u64, u64)]| {
            let mut seen = source(2, members);
            for row in &mut seen.rows.stations {
                (row.said.at_ns, row.heard_ns) = (second * 1_000_000_000, second * 1_000_000_000);
                // A busy one and an idle one.
                let frames = if row.mac == 2 { second * 1_000 } else { second };
                row.said.kinds[0] = Load { frames, octets: frames * 100 };
            }
            watch.picture(Instant::ZERO + Span::from_millis(second * 1_000), &seen)
        };
        look(&mut watch, 1, &[(1, 1), (2, 2), (3, 3)]);
        look(&mut watch, 2, &[(1, 1), (2, 2), (3, 3)]);
        let picture = look(&mut watch, 3, &[(1, 1), (3, 2), (2, 3)]);
        assert_eq!((gone(&picture), picture.members()), (vec![], 3));
        let rate = |name: &str| {
            let station = picture.stations.iter().find(|station| station.name == name).expect("it is there");
            (station.station, station.load.now.packets_per_second.round())
        };
        assert_eq!((rate("n2"), rate("n3")), ((3, 1_000.0), (2, 1.0)));
    }

    /// A station that has no number yet gave its name to every end of a channel that is at no station.
    #[test]
    fn nobody_has_the_number_0() {
        let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
        let mut seen = source(2, &[(1, 1), (0, 2)]);
        let said = ChannelReport { channel: ChannelId(9), sending: true, ..ChannelReport::default() };
        seen.rows.channels = vec![ChannelRow { station: 1, said, ..ChannelRow::default() }];
        let picture = watch.picture(Instant::ZERO + Span::from_millis(1_000), &seen);
        let ends = (picture.channels[0].from.as_str(), picture.channels[0].to.as_str());
        assert_eq!(ends, ("n1", "0"));
    }

    /// The picture has them by their numbers and the rows have this station first: each was warned of for
    /// what another one did.
    #[test]
    fn a_warning_names_the_station_that_it_is_about() {
        let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
        let mut seen = source(2, &[(3, 1), (1, 2), (2, 3)]);
        let second = 1_000_000_000;
        for row in &mut seen.rows.stations {
            row.heard_ns = if row.mac == 2 { second } else { second * 60 };
        }
        let picture = watch.picture(Instant::from_nanos(second * 60), &seen);
        let stalled: Vec<_> = picture.warnings.iter().filter(|warning| warning.kind == "stalled").collect();
        assert!(stalled.len() == 1 && stalled[0].sentence.contains("n2"), "{stalled:?}");
    }

    #[test]
    fn who_looks_for_its_own_segment_calls_nobody_gone() {
        let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
        let now = Instant::ZERO + Span::from_millis(1_000);
        let (joining, plain) = (0, 1);
        watch.picture(now, &source(plain, &[(1, 1), (2, 2)]));
        assert!(gone(&watch.picture(now, &source(joining, &[(0, 1)]))).is_empty());
        assert!(gone(&watch.picture(now, &source(plain, &[(1, 1), (2, 2)]))).is_empty());
    }
    /// The units of a channel whose two ends say this, in either order.
    fn units_of(ends: [ChannelReport; 2]) -> [crate::top::picture::Units; 2] {
        [ends, [ends[1], ends[0]]].map(|rows| {
            let mut watch = Watch::new(Span::from_millis(500), Narrow::default());
            let mut seen = source(1, &[(1, 1), (2, 2)]);
            seen.rows.channels = rows.map(|said| ChannelRow { said, ..ChannelRow::default() }).to_vec();
            watch.picture(Instant::ZERO + Span::from_millis(1_000), &seen).channels[0].units.clone()
        })
    }

    /// Its sender was told that it was late, and its receiver knows by now that it was not read.
    #[test]
    fn a_late_unit_that_was_not_read_counts_once() {
        let sender = ChannelReport { sending: true, late: 1, latest_by_ns: 5, ..ChannelReport::default() };
        let receiver = ChannelReport { lost: 1, unread: 1, ..ChannelReport::default() };
        for units in units_of([sender, receiver]) {
            assert_eq!((units.late, units.lost, units.unread), (0, 1, 1));
            assert_eq!(units.latest_by_ns, Some(0));
        }
    }

    /// The row of one end replaced that of the other, and its late units were not shown.
    #[test]
    fn units_that_the_sender_left_out_hide_no_late_ones_of_the_receiver() {
        let sender = ChannelReport { sending: true, lost: 3, ..ChannelReport::default() };
        let receiver = ChannelReport { incomplete: 2, late: 4, latest_by_ns: 5, ..ChannelReport::default() };
        for units in units_of([sender, receiver]) {
            assert_eq!((units.late, units.lost, units.incomplete), (4, 3, 2));
        }
    }
}
