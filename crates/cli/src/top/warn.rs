//! Warnings of `rota top`.

use super::picture::{Channel, Picture, Rose, Station, Units, Warning};
use super::rates::Rate;
use rota::{Instant, Monitor, Span, StationRow, Tally};
use std::collections::VecDeque;

/// A stranger that is heard less often is only counted: a host that has just booted asks for an address.
const STRANGER_PACKETS: f64 = 10.0;
/// A stranger that takes more of the link than this, in percent, babbles.
const BABBLE_PERCENT: f64 = 1.0;
/// What the token and the talk of a sound station never take, in percent.
const TALK_PERCENT: f64 = 25.0;
/// Slack below this part of the bound, in percent, is little.
const LITTLE_SLACK_PERCENT: u64 = 5;
/// Stalls count for so long.
const LATELY: Span = Span::from_millis(10_000);
/// A fault or a departure is news for so long.
const NEWS: Span = Span::from_millis(60_000);
/// A host that stood still for less harms nobody.
const STALL_LONG_NS: u64 = 5_000_000;

/// A count that should stand still.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rise {
    known: Option<u64>,
    rose: Option<Instant>,
}

impl Rise {
    /// Notes the present value.
    pub fn look(&mut self, now: Instant, value: u64) {
        if self.known.is_some_and(|known| known < value) {
            self.rose = Some(now);
        }
        self.known = Some(value);
    }

    /// When it rose.
    pub fn rose(&self, now: Instant) -> Rose {
        match (self.known, self.rose) {
            (None | Some(0), _) => Rose::Never,
            (Some(_), None) => Rose::Before,
            (Some(_), Some(at)) if is_news(now, at) => Rose::Lately,
            (Some(_), Some(_)) => Rose::Earlier,
        }
    }
}

/// True if an event at `at` is news now.
pub fn is_news(now: Instant, at: Instant) -> bool {
    now.since(at) <= NEWS
}

/// State of a station beside its counts.
#[derive(Default)]
pub struct Habits {
    stalls: VecDeque<(Instant, u64)>,
    /// The sum of its counters that should be zero.
    pub faults: Rise,
}

impl Habits {
    /// How often its host has stood still by now.
    pub fn look(&mut self, now: Instant, stalls: u64) {
        if self.stalls.back().is_none_or(|(_, known)| *known != stalls) {
            self.stalls.push_back((now, stalls));
        }
        while self.stalls.get(1).is_some_and(|(at, _)| now.since(*at) > LATELY) {
            self.stalls.pop_front();
        }
    }

    /// How often it stood still in the last ten seconds.
    pub fn stalls_lately(&self, now: Instant) -> u64 {
        let Some((_, last)) = self.stalls.back() else { return 0 };
        let before = self.stalls.iter().rev().find(|(at, _)| now.since(*at) > LATELY);
        let first = before.or(self.stalls.front()).map_or(*last, |(_, stalls)| *stalls);
        last.saturating_sub(first)
    }
}

fn warning(kind: &'static str, sentence: String) -> Warning {
    Warning { kind: kind.into(), sentence, lately: true }
}

/// A warning of a count, which says so when it is an old one.
fn counted(kind: &'static str, sentence: &str, rose: Rose) -> Warning {
    let when = match rose {
        Rose::Before => " (all before this was watched)",
        Rose::Earlier => " (none in the last minute)",
        Rose::Never | Rose::Lately => "",
    };
    Warning { kind: kind.into(), sentence: format!("{sentence}{when}"), lately: rose == Rose::Lately }
}

/// Sorts warnings: those of now before those of the past, each in the order of [`KINDS`].
pub fn sort(warnings: &mut [Warning]) {
    let place = |kind: &str| KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    warnings.sort_by_key(|warning| (!warning.lately, place(&warning.kind)));
}

/// All kinds of warnings, the gravest first.
const KINDS: [&str; 20] = [
    "no-node",
    "port-lost",
    "foreign-babbling",
    "contested",
    "late",
    "excluded",
    "dead",
    "stalled",
    "babbling",
    "overbooked",
    "gone",
    "fault",
    "remote-fault",
    "foreign",
    "stalls",
    "little-slack",
    "mismatch",
    "refused",
    "joining",
    "no-report",
];

/// An interface of the node that is gone.
pub fn of_lost_port(interface: &str) -> Warning {
    warning("port-lost", format!("the interface {interface} of this node is gone, and its channels with it"))
}

/// The segment as a whole.
pub fn of_segment(rows: &Monitor, picture: &Picture) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if picture.mode == "joining" {
        warnings.push(warning("joining", "this station still looks for its segment".into()));
    }
    if rows.segment.refused > 0 {
        let sentence = format!(
            "{} station{} not in this ring; 'rota status' says which and why",
            rows.segment.refused,
            if rows.segment.refused == 1 { "" } else { "s" }
        );
        warnings.push(warning("refused", sentence));
    }
    for row in rows.all_mismatches() {
        let is_out = row.kind().is_some_and(|kind| kind.is_exclusion() || kind.is_hold_off());
        let sentence = row.sentence_at(rows.segment.written_ns);
        warnings.push(warning(if is_out { "excluded" } else { "mismatch" }, sentence));
    }
    for fault in picture.faults() {
        let sentence = format!("{} is {}: {}", fault.name, fault.value, fault.meaning);
        warnings.push(counted("fault", &sentence, fault.rose));
    }
    if picture.shares.reserved_ns > picture.shares.capacity_ns {
        warnings.push(warning("overbooked", "more is reserved than a cycle can keep".into()));
    }
    warnings
}

/// Observations of a station.
pub struct Noticed {
    /// The rate of strangers' frames that it hears.
    pub foreign: Rate,
    /// How often its host stood still in the last ten seconds.
    pub stalls: u64,
    /// It has not reported for a while.
    pub silent: bool,
    /// When its counters that should be zero rose.
    pub faults: Rose,
}

/// The warnings about one station.
pub fn of_station(picture: &Picture, station: &Station, row: &StationRow, noticed: &Noticed) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let Noticed { foreign, stalls, silent, faults } = *noticed;
    let name = station.called();
    if foreign.packets_per_second >= STRANGER_PACKETS {
        let percent = picture.percent(foreign.rate_bps);
        let babbles = percent >= BABBLE_PERCENT;
        let sentence = format!(
            "a host outside the agreement, {}, {} {:.0} frames a second ({percent:.1} % of the link), heard \
             by {name}: no bound holds against it",
            row.said.foreign_mac,
            if babbles { "babbles:" } else { "sends" },
            foreign.packets_per_second,
        );
        warnings.push(warning(if babbles { "foreign-babbling" } else { "foreign" }, sentence));
    }
    if let Some((_, sentence)) = row.contested(&station.mac, &station.name) {
        warnings.push(warning("contested", sentence));
    }
    if !station.alive {
        let sentence = format!("{name} is dead to the ring: the token skips it");
        warnings.push(warning("dead", sentence));
    } else if silent {
        let sentence = format!("{name} is stalled or cut off: it has not reported for a while");
        warnings.push(warning("stalled", sentence));
    } else if !station.reports && picture.mode != "joining" {
        let sentence = format!("{name} does not report: what it sends is not shown here");
        warnings.push(warning("no-report", sentence));
    }
    if stalls > 0 && station.stall_longest_ns >= STALL_LONG_NS {
        let longest = Span::from_nanos(station.stall_longest_ns);
        let plural = if stalls == 1 { "" } else { "s" };
        let sentence =
            format!("{name}: {stalls} host stall{plural} in the last 10 s (longest ever: {longest})");
        warnings.push(warning("stalls", sentence));
    }
    let talk = station.kinds[0].now.rate_bps.saturating_add(station.kinds[3].now.rate_bps);
    if picture.percent(talk) > TALK_PERCENT {
        let sentence = format!(
            "{name} babbles: {:.0} % of the link are its token and control frames",
            picture.percent(talk)
        );
        warnings.push(warning("babbling", sentence));
    }
    if station.faults > 0 && !station.here {
        let what = if station.faults == 1 { "1 fault".into() } else { format!("{} faults", station.faults) };
        let sentence = format!("{name} counts {what}; 'rota top' there shows which");
        warnings.push(counted("remote-fault", &sentence, faults));
    }
    warnings
}

/// A station that is no member any more, since some time.
pub fn of_gone(station: &Station, since: Instant, now: Instant) -> Warning {
    let seconds = now.since(since).as_nanos() / 1_000_000_000;
    let sentence =
        format!("{} is gone since {seconds} s: it has left, died or lost its link", station.called());
    Warning { kind: "gone".into(), sentence, lately: is_news(now, since) }
}

/// One channel.
pub fn of_channel(channel: &Channel, late: Rose) -> Option<Warning> {
    let who = format!("channel {} from {} to {}", channel.label, channel.from, channel.to);
    let Units { received: units, late: behind, lost, incomplete, latest_by_ns, unread, .. } = channel.units;
    let latest_by_ns = latest_by_ns.unwrap_or(0);
    let tally = Tally { units, late: behind, lost, incomplete, latest_by_ns, unread };
    if let Some(broken) = tally.words_of_broken("the bound") {
        let all = units.saturating_add(lost).saturating_add(incomplete);
        return Some(counted("late", &format!("{who}: of {all} units {broken}"), late));
    }
    let (slack, bound) = (u64::try_from(channel.slack_ns?).unwrap_or(0), channel.bound_ns?);
    (u128::from(slack) * 100 < u128::from(bound) * u128::from(LITTLE_SLACK_PERCENT)).then(|| {
        let left = Span::from_nanos(slack);
        warning("little-slack", format!("{who}: only {left} were left of the bound at the latest unit"))
    })
}

/// The meaning of a counter that should be zero and is not.
pub fn meaning(name: &str) -> &'static str {
    match name {
        "frames_unproven" => "a station sends Rota's frames with another key",
        "fragments_policed" => "a station sent real-time data without the right to",
        "tallies_refused" => "a report stated counts that a channel of this station cannot have",
        "tokens_expired" => "tokens came too late to be used: this host stood still",
        "leases_expired" => "this station lost the token because it was held for too long",
        "cycles_skipped" => "cycles lasted longer than their period, so that some were left out",
        "wills_own" => "a proven last will said that this station is dead, although its node runs",
        "jumps_refused" => "tokens or claims came with an impossible generation and were refused",
        "tokens_unsound" => "proven tokens came that contradict the settings of the segment",
        "strikes" => "a live station did not take the token up, or lost it",
        "hogs" => "this station left out one that kept the token, or sent outside its slots, again and again",
        "units_dropped" => "units of a channel were given up",
        "transmit_no_room" => "the card's queue was full, so that frames were lost here",
        "receive_drops" => "the kernel dropped frames because this node did not fetch them in time",
        "receive_too_long" => "a station sends frames longer than this interface's MTU allows",
        "host_dropped_too_long" => "this host sends frames longer than the interface's MTU allows",
        "host_dropped_no_room" => "the card's queue was full, so that ordinary frames were lost here",
        "host_dropped_gate" => "the node stood still while this host sent: the kernel dropped frames",
        _ => "it should be zero",
    }
}

#[cfg(test)]
mod tests {
    use super::super::picture::KINDS as KINDS_OF_TRAFFIC;
    use super::*;

    #[test]
    fn every_counter_that_should_be_zero_has_a_meaning() {
        for name in rota_node::SHOULD_BE_ZERO {
            assert_ne!(meaning(name), meaning("another"), "{name}");
        }
    }

    #[test]
    fn stalls_are_forgotten_after_ten_seconds() {
        let mut habits = Habits::default();
        let at = |second: u64| Instant::ZERO + Span::from_millis(second * 1_000);
        for (second, stalls) in [(1, 4), (2, 4), (3, 6), (5, 7)] {
            habits.look(at(second), stalls);
        }
        assert_eq!(habits.stalls_lately(at(6)), 3);
        assert_eq!(habits.stalls_lately(at(14)), 1, "6 were known ten seconds ago");
        assert_eq!(habits.stalls_lately(at(20)), 0);
    }

    /// The count of before the stalls stays known as long as they are news.
    #[test]
    fn a_stall_after_a_long_calm_is_news_for_ten_seconds() {
        let mut habits = Habits::default();
        for second in 1..=30 {
            let at = Instant::ZERO + Span::from_millis(second * 1_000);
            habits.look(at, if second < 8 { 4 } else { 6 });
            let lately = if (8..=18).contains(&second) { 2 } else { 0 };
            assert_eq!(habits.stalls_lately(at), lately, "second {second}");
        }
    }

    #[test]
    fn a_late_channel_is_worse_than_one_with_little_slack() {
        let channel = Channel {
            slack_ns: Some(1_000_000),
            bound_ns: Some(40_000_000),
            from: "n1".into(),
            to: "n5".into(),
            ..Channel::default()
        };
        assert_eq!(of_channel(&channel, Rose::Never).unwrap().kind, "little-slack");
        let units = Units { late: 1, received: 9, latest_by_ns: Some(2_000_000), ..Units::default() };
        let late = Channel { units, ..channel.clone() };
        let late = of_channel(&late, Rose::Lately).unwrap();
        assert_eq!(late.kind, "late");
        assert!(late.sentence.ends_with(": of 9 units 1 behind the bound, by at most 2 ms"), "{late:?}");
        assert_eq!(of_channel(&Channel { slack_ns: Some(9_000_000), ..channel }, Rose::Never), None);
    }

    /// Data is no babble, however much of it there is.
    #[test]
    fn a_station_babbles_with_token_and_control_frames_only() {
        let picture = Picture { mode: "token".into(), link_bps: 10_000_000, ..Picture::default() };
        let quiet = Noticed { foreign: Rate::default(), stalls: 0, silent: false, faults: Rose::Never };
        let babbles = |of: &[&str]| {
            let mut station = Station { alive: true, reports: true, ..Station::default() };
            for (kind, figures) in KINDS_OF_TRAFFIC.iter().zip(&mut station.kinds) {
                figures.now.rate_bps = if of.contains(kind) { 2_000_000 } else { 0 };
            }
            let warnings = of_station(&picture, &station, &StationRow::default(), &quiet);
            warnings.iter().any(|warning| warning.kind == "babbling")
        };
        assert!(babbles(&["token", "control"]));
        assert!(!babbles(&["token", "real-time", "ordinary", "llc"]) && !babbles(&["control"]));
    }

    #[test]
    fn an_old_fault_hides_no_new_trouble() {
        let at = |second: u64| Instant::ZERO + Span::from_millis(second * 1_000);
        let mut rise = Rise::default();
        assert_eq!(rise.rose(at(1)), Rose::Never);
        rise.look(at(1), 7);
        assert_eq!(rise.rose(at(2)), Rose::Before, "it rose before the first look");
        let before = counted("fault", "strikes is 7", rise.rose(at(2)));
        rise.look(at(3), 8);
        assert_eq!((rise.rose(at(63)), rise.rose(at(64))), (Rose::Lately, Rose::Earlier));
        let earlier = counted("late", "3 units were late", rise.rose(at(70)));
        let now = counted("little-slack", "only 1 us was left", Rose::Lately);
        let mut all = [before, earlier, warning("no-report", String::new()), now];
        sort(&mut all);
        let kinds: Vec<&str> = all.iter().map(|warning| &*warning.kind).collect();
        assert_eq!(kinds, ["little-slack", "no-report", "late", "fault"]);
        assert!(all[2].sentence.ends_with("(none in the last minute)"), "{}", all[2].sentence);
        assert!(all[3].sentence.ends_with("(all before this was watched)"), "{}", all[3].sentence);
    }
}
