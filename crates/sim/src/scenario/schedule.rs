//! A schedule: a ring that runs, and a list of what goes wrong with it, one line each. `models/` writes its
//! counter-examples so; `docs/scenarios.md` explains every line.
//!
//! ```text
//! stations 3
//! reserve 1 2 1000
//! lose 1 token-ack 2 1          # the first acknowledgement from 2 to 1
//! pause 3 at 5ms for 40ms while holding
//! ```
//!
//! Time and numbers of frames count from the begin of a cycle, when every channel has long been open. A
//! model's ticks are coarser than this world's nanoseconds, so the same schedule is another run here: what is
//! the same is which frame is lost, doubled or late, and who dies or stands still, when and in which state.

use super::{Load, Reservation, STATES, Scenario, ScenarioError};
use crate::faults::{Fault, Moment, Select, Timed, WireFault, ports};
use crate::traffic::Shape;
use rota_proto::Settings;
use rota_units::{BitRate, Octets, Span, parse_span};
use rota_wire::Kind;
use std::str::SplitWhitespace;

/// From the end of the settling time until the schedule begins with the next cycle: by then every channel is
/// open.
const FORMED: Span = Span::from_millis(3_000);
/// How long the ring runs behind the last line of the schedule, before all must agree.
const BEHIND: Span = Span::from_millis(1_000);

/// The longest time in a schedule.
const TIME_MAX: Span = Span::from_millis(3_600_000);

type Wrong = String;

/// Takes a schedule apart and checks it whole.
///
/// # Errors
/// The line, from 1, and a sentence that says what is wrong there and what would be right.
pub fn read(text: &str) -> Result<Scenario, (usize, String)> {
    let mut reading = Reading::new();
    for (at, line) in text.lines().enumerate() {
        let words = line.split('#').next().unwrap_or("");
        let mut line = Line { words: words.split_whitespace(), stations: reading.stations };
        reading.line(&mut line, at + 1).map_err(|sentence| (at + 1, sentence))?;
    }
    reading.scenario()
}

/// Takes any octets as a schedule. Nothing may panic, and an error names a line of the text.
pub fn fuzz_schedule(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err((line, sentence)) = read(&text) {
        assert!(line >= 1 && line <= text.lines().count().max(1), "line {line}: {sentence}");
        assert!(!sentence.is_empty());
    }
}

/// What has been read so far, and where each part stands.
struct Reading {
    stations: usize,
    times: [(&'static str, Option<Span>, usize); 5],
    reserve: Vec<(usize, usize, u32, bool, usize)>,
    load: Option<(u32, usize)>,
    faults: Vec<(Timed, usize)>,
}

/// One line's words.
struct Line<'a> {
    words: SplitWhitespace<'a>,
    stations: usize,
}

impl<'a> Line<'a> {
    fn word(&mut self, what: &str) -> Result<&'a str, Wrong> {
        self.words.next().ok_or_else(|| format!("{what} is missing"))
    }

    fn number(&mut self, what: &str) -> Result<u64, Wrong> {
        let word = self.word(what)?;
        word.parse().map_err(|_| format!("'{word}' is no number; {what} belongs there"))
    }

    fn size(&mut self) -> Result<u32, Wrong> {
        let octets = self.number("a number of octets")?;
        u32::try_from(octets).map_err(|_| format!("{octets} octets are too many"))
    }

    fn station(&mut self) -> Result<usize, Wrong> {
        let word = self.word("a station")?;
        self.as_station(word)
    }

    fn as_station(&self, word: &str) -> Result<usize, Wrong> {
        let station = word.parse::<usize>().ok().filter(|station| (1..=self.stations).contains(station));
        let stations = self.stations;
        station.map(|station| station - 1).ok_or_else(|| match stations {
            0 => "the first line is 'stations', and how many".to_owned(),
            _ => format!("'{word}' is no station; they are 1 to {stations}"),
        })
    }

    fn time(&mut self, what: &str) -> Result<Span, Wrong> {
        let span = parse_span(self.word(what)?).map_err(|error| error.to_string())?;
        let too_long = || format!("{span} is longer than any run; {TIME_MAX} is not");
        (span <= TIME_MAX).then_some(span).ok_or_else(too_long)
    }

    /// Whether this word stands there; it is taken.
    fn says(&mut self, word: &str) -> bool {
        let there = self.words.clone().next() == Some(word);
        if there {
            self.words.next();
        }
        there
    }

    /// A time behind this word, if the word stands there.
    fn after(&mut self, word: &str) -> Result<Option<Span>, Wrong> {
        if self.says(word) { self.time("a time").map(Some) } else { Ok(None) }
    }

    fn moment(&mut self) -> Result<Moment, Wrong> {
        if !self.says("while") {
            return Ok(Moment::Now);
        }
        let words: Vec<&str> = self.words.by_ref().collect();
        let name = words.join(" ");
        let state = STATES.iter().find(|state| **state == name);
        let sentence = || format!("no station is ever '{name}'; the states are {}", STATES.join(", "));
        state.map(|state| Moment::In(state)).ok_or_else(sentence)
    }

    fn end(&mut self) -> Result<(), Wrong> {
        self.words.next().map_or(Ok(()), |word| Err(format!("'{word}' does not belong there")))
    }
}

impl Reading {
    fn new() -> Self {
        let times = ["cycle", "hop", "death", "lease", "delay"].map(|name| (name, None, 1));
        Self { stations: 0, times, reserve: Vec::new(), load: None, faults: Vec::new() }
    }

    fn line(&mut self, line: &mut Line<'_>, at: usize) -> Result<(), Wrong> {
        let Some(name) = line.words.next() else { return Ok(()) };
        match name {
            "stations" if self.stations == 0 => {
                self.stations = line.number("how many stations").map(|number| number.min(1_000) as usize)?;
            }
            "stations" => return Err("the stations are said once".to_owned()),
            "cycle" | "hop" | "death" | "lease" | "delay" => {
                let time = line.time("a time")?;
                let known = self.times.iter_mut().find(|(known, ..)| *known == name);
                known.into_iter().for_each(|known| (known.1, known.2) = (Some(time), at));
            }
            "reserve" => {
                let (from, to, unit) = (line.station()?, line.station()?, line.size()?);
                self.reserve.push((from, to, unit, line.says("strict"), at));
            }
            "load" => self.load = Some((line.size()?, at)),
            _ => {
                let timed = fault(name, line)?;
                self.faults.push((timed, at));
            }
        }
        line.end()
    }

    fn settings(&self) -> Result<Settings, (usize, String)> {
        let [cycle, hop, death, lease, delay] = self.times;
        let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        let trt = cycle.1.unwrap_or(settings.trt);
        let settings = settings.with_cycle(trt).map_err(|error| (cycle.2, format!("cycle: {error}")))?;
        let delay_max = delay.1.unwrap_or(settings.delay_max);
        if delay_max > trt {
            return Err((delay.2, format!("delay: {delay_max} is longer than the cycle of {trt}")));
        }
        let settings = settings.with_delay(delay_max);
        Ok(settings.with(|medium| {
            medium.hop_timeout = hop.1.unwrap_or(medium.hop_timeout);
            medium.death_timeout = death.1.unwrap_or(medium.death_timeout);
            medium.lease = lease.1.unwrap_or(medium.lease);
        }))
    }

    fn scenario(self) -> Result<Scenario, (usize, String)> {
        let settings = self.settings()?;
        let trt = settings.trt;
        let mut scenario = Scenario::new("schedule", self.stations, settings);
        let mut end = FORMED;
        for (timed, _) in &self.faults {
            end = end.max(FORMED + timed.at + timed.lasts);
        }
        scenario.duration = end + BEHIND;
        for (from, to, unit, periodic, _) in &self.reserve {
            scenario.reservations.push(Reservation {
                from: *from,
                to: *to,
                unit: *unit,
                period: trt,
                periodic: *periodic,
                must_admit: true,
                open: Span::ZERO,
                close: None,
                shape: Shape::Periodic { period: trt, octets: *unit },
                changes: Vec::new(),
            });
        }
        for from in 0..self.load.map_or(0, |_| self.stations.min(super::STATIONS_MAX)) {
            let octets = self.load.map_or(0, |(octets, _)| octets);
            let shape = Shape::Greedy { octets, backlog: 1 };
            let to = (from + 1) % self.stations;
            scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape, messages: None });
        }
        let behind = scenario.duration.minus(FORMED);
        scenario.in_step = Some(FORMED);
        scenario.faults = self.faults.iter().map(|(timed, _)| placed(timed, behind)).collect();
        scenario.check().map_err(|error| (self.place(&error), error.sentence))?;
        Ok(scenario)
    }

    /// The line of a part that is wrong.
    fn place(&self, error: &ScenarioError) -> usize {
        let of_time = |field: &str| self.times.iter().find(|(name, ..)| *name == field).map(|time| time.2);
        let line = match (error.part, error.field) {
            ("reservation", _) => self.reserve.get(error.index).map(|reserve| reserve.4),
            ("traffic", _) => self.load.map(|(_, at)| at),
            ("fault", _) => self.faults.get(error.index).map(|(_, at)| *at),
            ("timers", field) => of_time(field),
            (_, "trt") => of_time("cycle"),
            _ => None,
        };
        line.unwrap_or(1)
    }
}

/// A fault that waits for its frames waits to the end.
fn placed(timed: &Timed, end: Span) -> Timed {
    let waits = matches!(timed.fault, Fault::Wire { .. });
    Timed { lasts: if waits { end } else { timed.lasts }, ..timed.clone() }
}

/// One line that says what goes wrong.
fn fault(name: &str, line: &mut Line<'_>) -> Result<Timed, Wrong> {
    let (mut at, mut lasts) = (Span::ZERO, Span::ZERO);
    let fault = match name {
        "lose" | "late" | "twice" => on_wire(name, line)?,
        "crash" | "pause" => {
            let host = line.station()?;
            at = line.after("at")?.ok_or("'at' and a time are missing")?;
            let span = line.after("for")?;
            let moment = line.moment()?;
            if name == "crash" {
                Fault::Crash { host, moment, down: span }
            } else {
                lasts = span.ok_or("'for' and a time are missing: how long it stands still")?;
                Fault::Pause { host, moment }
            }
        }
        "split" => {
            let mut part = vec![line.station()?];
            while let Some(word) = line.words.clone().next().filter(|word| *word != "at") {
                part.push(line.as_station(word)?);
                line.words.next();
            }
            at = line.after("at")?.ok_or("'at' and a time are missing")?;
            lasts = line.after("for")?.ok_or("'for' and a time are missing: when the parts meet")?;
            Fault::Partition { part }
        }
        _ => {
            return Err(format!(
                "'{name}' begins no line; stations, cycle, hop, death, lease, delay, reserve, load, lose, \
                 late, twice, crash, pause and split do"
            ));
        }
    };
    Ok(Timed { at, lasts, segment: 0, fault })
}

/// The k-th frame of a kind from one station to another.
fn on_wire(name: &str, line: &mut Line<'_>) -> Result<Fault, Wrong> {
    let first = line.number("which of the frames, from 1,")?;
    let kind = Kind::from_word(line.word("a kind of frames")?)?;
    let (from, to) = (line.station()?, line.station()?);
    let count = 1;
    let fault = match name {
        "lose" => WireFault::Nth { first, count },
        "late" => WireFault::NthLate { first, count, late: line.time("how much later it comes")? },
        _ => WireFault::NthTwice { first, count, late: line.time("how much later its second copy comes")? },
    };
    Ok(Fault::Wire { fault, select: Select { from: ports([from]), to: ports([to]), kinds: vec![kind] } })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "stations 3\ncycle 24ms\nhop 15ms # timers\ndeath 45ms\nlease 40ms\ndelay 2ms\n\n\
                         reserve 1 2 1000\nload 1226\nlose 1 token-ack 2 1\nlate 2 token 1 2 3ms\n\
                         twice 1 list 1 3 30ms\ncrash 3 at 5ms for 40ms while holding\n\
                         pause 2 at 1ms for 2ms\n\
                         split 2 3 at 1ms for 9ms\n";

    #[test]
    fn every_line_is_read() {
        let scenario = read(SOUND).expect("a sound schedule");
        assert_eq!((scenario.world.stations, scenario.reservations.len()), (3, 1));
        assert_eq!(scenario.world.settings.hop_timeout, Span::from_millis(15));
        assert_eq!((scenario.traffic.len(), scenario.faults.len()), (3, 6));
        let down = Span::from_millis(40);
        let crash = &scenario.faults[3];
        let moment = Moment::In("holding");
        assert!(matches!(crash.fault, Fault::Crash { host: 2, moment: m, down: Some(d) }
            if m == moment && d == down));
        assert_eq!((crash.at, scenario.in_step), (Span::from_millis(5), Some(FORMED)));
        assert!(matches!(&scenario.faults[5].fault, Fault::Partition { part } if *part == [1, 2]));
    }

    #[test]
    fn every_wrong_line_is_named() {
        for (line, words) in [
            (2, "stations 3\ncrash 1 at 18446744073s"),
            (1, "stations 3 4"),
            (1, "stations 1"),
            (1, "reserve 1 2 1000"),
            (2, "stations 3\nstations 3"),
            (2, "stations 3\nlose 1 token 1 4"),
            (2, "stations 3\nlose x token 1 2"),
            (2, "stations 3\nlose 1 tokens 1 2"),
            (2, "stations 3\nlate 1 token 1 2"),
            (2, "stations 3\npause 1 at 5"),
            (2, "stations 3\npause 1 at 5ms"),
            (2, "stations 3\npause 1 at 5ms for 1ms while asleep"),
            (2, "stations 3\nsplit 2 at 5ms"),
            (2, "stations 3\nexplode"),
            (2, "stations 3\nhop 0ms"),
            (2, "stations 3\ncycle 1us"),
            (3, "stations 3\n\nreserve 1 2 1000000"),
            (2, "stations 3\nreserve 1 1 100"),
            (2, "stations 3\ncrash 1 at 99999999s"),
        ] {
            let error = read(words).expect_err(words);
            assert_eq!(error.0, line, "{words}: {}", error.1);
        }
    }

    #[test]
    fn the_corpus_of_schedules_replays() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/schedule");
        let mut files = 0;
        for entry in std::fs::read_dir(folder).expect("the corpus is part of the repository") {
            let data = std::fs::read(entry.expect("readable").path()).expect("readable");
            (0..=data.len()).for_each(|cut| fuzz_schedule(&data[..cut]));
            files += 1;
        }
        assert!(files >= 3);
    }

    #[test]
    fn any_octets_are_read_or_refused() {
        fuzz_schedule(b"");
        fuzz_schedule(&[0xff, b'\n', 0]);
        for cut in 0..SOUND.len() {
            fuzz_schedule(&SOUND.as_bytes()[..cut]);
        }
    }
}
