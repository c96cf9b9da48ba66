//! The log lines of stations that have gone: each names its station.
//!
//! The counters of wills and of dead stations grow at once. In token mode the rows of the stations follow up
//! to 200 ms later, and only they tell which station has gone.

use super::{Line, Look};
use crate::log::Level;
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

/// An idle node in plain mode writes the rows of the stations about once a second.
const PATIENCE: Span = Span::from_millis(2_000);

/// A last will was heard.
const WILLS: (&str, &str) = ("wills", "a process has died, as its last will says: the node of");
/// This station has left another one out of the ring.
const DEAD: (&str, &str) = ("stations_declared_dead", "this station has declared dead:");

/// Stations that were counted by one counter, and that no line has told.
#[derive(Debug)]
pub(super) struct GoneTold {
    /// The counter.
    counter: &'static str,
    /// The sentence, without its end, which names the stations.
    words: &'static str,
    untold: u64,
    since: Instant,
    /// The deaths that another line tells: that line's counter, how much it has grown, and when.
    told_by: Option<(&'static str, u64, Instant)>,
    /// Stations that have gone since the oldest of these was counted.
    gone: Vec<String>,
}

impl GoneTold {
    /// The lines about wills and about dead stations. A death that a will told is told once.
    pub(super) fn both() -> [Self; 2] {
        [Self::by(WILLS), Self::by(DEAD).but(WILLS.0)]
    }

    fn by((counter, words): (&'static str, &'static str)) -> Self {
        Self { counter, words, untold: 0, since: Instant::ZERO, told_by: None, gone: Vec::new() }
    }

    /// The same without the stations that the line of that counter names.
    fn but(self, counter: &'static str) -> Self {
        Self { told_by: Some((counter, 0, Instant::ZERO)), ..self }
    }

    /// How many of so many more the other line does not tell.
    fn told_here(&mut self, now: Instant, last: &Look, look: &Look, more: u64) -> u64 {
        let Some((counter, open, at)) = &mut self.told_by else { return more };
        let grown = look.grown(last, counter);
        if grown > 0 || now.since(*at) > PATIENCE {
            (*open, *at) = (grown, now);
        }
        let there = more.min(*open);
        *open -= there;
        more - there
    }

    /// The line about them, once it is known which stations have gone.
    pub(super) fn line(&mut self, now: Instant, last: &Look, look: &Look) -> Option<Line> {
        let more = look.grown(last, self.counter);
        let more = self.told_here(now, last, look, more);
        if more > 0 && self.untold == 0 {
            self.since = now;
        }
        self.untold += more;
        if self.untold == 0 {
            return None;
        }
        self.gone.extend(gone(last, look));
        if self.gone.is_empty() && now.since(self.since) < PATIENCE {
            return None;
        }
        let (untold, gone) = (std::mem::take(&mut self.untold), std::mem::take(&mut self.gone));
        let who = match gone.len() as u64 {
            0 => "a station".into(),
            known if known <= untold => gone.join(" and "),
            // Some of them fell silent or left.
            _ => format!("one of {}", gone.join(" and ")),
        };
        let text = format!("{} {who}", self.words);
        Some(Line { level: Level::Warn, cause: self.counter, text })
    }
}

/// Stations that took part in the reading before, and do not any more.
fn gone<'a>(last: &'a Look, look: &'a Look) -> impl Iterator<Item = String> + 'a {
    let lived = last.stations.iter().filter(|(_, (_, _, alive))| *alive);
    let gone = lived.filter(|(address, _)| look.stations.get(address).is_none_or(|(_, _, alive)| !alive));
    gone.map(|(address, (number, name, _))| {
        let name = if name.is_empty() { "?" } else { name };
        format!("{name} (number {number}, {})", MacAddr::from_word(*address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(wills: u64, stations: &[(u64, bool)]) -> Look {
        let row = |(number, alive): &(u64, bool)| (*number, (*number, format!("n{number}"), *alive));
        let stations = stations.iter().map(row).collect();
        Look { stations, counters: [("wills".to_owned(), wills)].into(), ..Look::default() }
    }

    /// It named no station.
    #[test]
    fn the_line_of_a_will_names_its_station_also_when_its_row_comes_later() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut told = GoneTold::by(WILLS);
        let all = look(0, &[(1, true), (2, true), (3, true)]);
        assert_eq!(told.line(at(0), &all, &all), None);
        let counted = look(1, &[(1, true), (2, true), (3, true)]);
        assert_eq!(told.line(at(250), &all, &counted), None, "its row does not say so yet");
        let dead = look(1, &[(1, true), (2, false), (3, true)]);
        let line = told.line(at(1_000), &counted, &dead).expect("it is known");
        let words = "a process has died, as its last will says: the node of n2 (number 2, 00:00:00:00:00:02)";
        assert_eq!(line.text, words);
        assert_eq!(told.line(at(1_250), &dead, &dead), None, "once");
        let both = look(2, &[(3, true)]);
        let line = told.line(at(1_500), &counted, &both).expect("it is known at once");
        assert!(line.text.contains("one of n1 (") && line.text.contains(" and n2 ("), "{}", line.text);
        let unknown = look(3, &[(3, true)]);
        assert_eq!(told.line(at(2_000), &both, &unknown), None);
        let line = told.line(at(4_000), &unknown, &unknown).expect("it is told after all");
        assert!(line.text.ends_with("the node of a station"), "{}", line.text);
    }

    /// One death by will had a line for the will and one more for the station.
    #[test]
    fn a_death_that_a_will_told_is_told_once() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let counted = |wills: u64, dead: u64, lives: bool| {
            let mut look = look(wills, &[(1, true), (2, lives)]);
            look.counters.insert("stations_declared_dead".into(), dead);
            look
        };
        let [_, mut told] = GoneTold::both();
        let (before, willed) = (counted(0, 0, true), counted(1, 1, false));
        assert_eq!(told.line(at(0), &before, &willed), None);
        assert_eq!(told.line(at(5_000), &willed, &willed), None, "nor later");
        let line = told.line(at(9_000), &before, &counted(0, 1, false)).expect("no will has told this one");
        assert!(line.text.contains("declared dead: n2"), "{}", line.text);
    }
}
