//! The filter of `rota trace`, asked of loads instead of events: what a station sends of one kind, or at one
//! priority, passes when a frame of it would.

use super::picture::{Channel, Circuit, Station};
use crate::filter::{Fields, Filter, FilterError, OF_LOADS, Party};

/// The word by which a filter knows each kind of load, in the order of the rows.
const WORDS: &[&str] = OF_LOADS.kinds;
const ORDINARY: usize = 2;

/// A filter, and as it was typed.
#[derive(Clone, Debug, Default)]
pub struct Narrow {
    /// As it was typed.
    pub text: String,
    filter: Filter,
}

impl Narrow {
    /// Reads a filter.
    ///
    /// # Errors
    /// Where it goes wrong.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { text: text.trim().to_owned(), filter: Filter::parse(text, &OF_LOADS)? })
    }

    /// Leaves of a station's loads only what passes.
    pub fn narrow(&self, station: &mut Station) {
        if self.filter.is_empty() {
            return;
        }
        let who = Party {
            station: u16::try_from(station.station).unwrap_or(0),
            name: &station.name,
            mac: address(&station.mac),
        };
        let of = |kind: usize, priority: Option<u8>| Fields {
            src: Some(who),
            kind: Some(WORDS[kind]),
            priority,
            ..Fields::default()
        };
        let whole: Vec<bool> = (0..WORDS.len()).map(|kind| self.filter.matches(&of(kind, None))).collect();
        let levels: Vec<bool> = (0..8).map(|level| self.filter.matches(&of(ORDINARY, Some(level)))).collect();
        for (level, passes) in station.levels.iter_mut().zip(&levels) {
            if !passes {
                *level = Default::default();
            }
        }
        for (kind, passes) in whole.iter().enumerate() {
            if !passes {
                station.kinds[kind] = Default::default();
            }
        }
        // A filter may ask for priorities, which ordinary traffic as a whole does not have.
        if !whole[ORDINARY] || levels.contains(&false) {
            station.kinds[ORDINARY] = Default::default();
            for level in station.levels {
                station.kinds[ORDINARY] += level;
            }
        }
    }

    /// Whether a channel is shown.
    pub fn passes(&self, channel: &Channel) -> bool {
        let party =
            |station: u64, name| Party { station: u16::try_from(station).unwrap_or(0), name, mac: None };
        self.filter.matches(&Fields {
            src: Some(party(channel.from_station, channel.from.as_str())),
            dst: Some(party(channel.to_station, channel.to.as_str())),
            kind: Some(WORDS[1]),
            channel: Some(channel.channel),
            label: u16::try_from(channel.label).ok(),
            ..Fields::default()
        })
    }

    /// True if a circuit of this station is shown. Its TPDUs are ordinary frames.
    pub fn passes_circuit(&self, here: &str, circuit: &Circuit) -> bool {
        let party = |name| Some(Party { station: 0, name, mac: address(name) });
        let (from, to) = circuit.ends(here);
        let (src, dst) = (party(from), party(to));
        self.filter.matches(&Fields { src, dst, kind: Some(WORDS[ORDINARY]), ..Fields::default() })
    }
}

fn address(text: &str) -> Option<[u8; 6]> {
    text.parse::<rota_wire::MacAddr>().ok().map(|mac| mac.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::rates::{Figures, Rate};

    fn station() -> Station {
        let load =
            |bits| Figures { now: Rate { packets_per_second: 1.0, rate_bps: bits }, ..Figures::default() };
        let mut station = Station { station: 3, name: "n3".into(), ..Station::default() };
        station.kinds = [1, 10, 1_000, 100, 0].map(load);
        station.levels[0] = load(300);
        station.levels[6] = load(200);
        station
    }

    fn left(filter: &str) -> [u64; 5] {
        let mut station = station();
        Narrow::parse(filter).unwrap().narrow(&mut station);
        station.kinds.map(|kind| kind.now.rate_bps)
    }

    #[test]
    fn loads_pass_as_their_frames_would() {
        assert_eq!(left(""), [1, 10, 1_000, 100, 0]);
        assert_eq!(left("src n3 and kind token"), [1, 0, 0, 0, 0]);
        assert_eq!(left("src n4"), [0; 5]);
        assert_eq!(left("not kind ordinary"), [1, 10, 0, 100, 0]);
        assert_eq!(left("priority >= 6"), [0, 0, 200, 0, 0], "only ordinary frames have a priority");
    }

    #[test]
    fn what_no_load_has_is_refused_and_does_not_look_like_a_quiet_wire() {
        for (text, column, wanted) in [
            ("src n3 and sap 4", 12, "nothing here has that field"),
            ("length > 5", 1, "nothing here has that field; expected a field (src, dst, host, kind"),
            ("kind announce", 6, "expected one of: token, data, ordinary, signal, llc"),
            ("late", 1, "or a word such as token"),
        ] {
            let error = Narrow::parse(text).expect_err(text);
            assert_eq!(error.column, column, "{error}");
            assert!(error.wanted.contains(wanted), "{error}");
        }
        assert_eq!(left("station 3 and prio >= 6"), [0, 0, 200, 0, 0], "second names are names");
    }

    #[test]
    fn circuits_pass_by_their_ends_and_as_ordinary_frames() {
        let circuit = Circuit { sends: true, peer: "n2".into(), ..Circuit::default() };
        let passes = |text: &str| Narrow::parse(text).unwrap().passes_circuit("n1", &circuit);
        assert!(passes("") && passes("src n1") && passes("host n2") && passes("kind ordinary"));
        assert!(!passes("src n2") && !passes("kind token") && !passes("channel 7"));
    }

    #[test]
    fn channels_pass_by_their_ends() {
        let channel = Channel {
            from: "n1".into(),
            to: "n5".into(),
            from_station: 2,
            to_station: 5,
            label: 7,
            ..Channel::default()
        };
        let passes = |text: &str| Narrow::parse(text).unwrap().passes(&channel);
        assert!(passes("src n1 and dst n5") && passes("host n5") && passes("label 7") && passes("host 2"));
        assert!(!passes("src n5") && !passes("kind token") && !passes("label 8"));
    }
}
