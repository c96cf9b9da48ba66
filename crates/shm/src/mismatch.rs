//! Stations that do not fit: the same words in the status, the log and the monitor.

use crate::monitor::{MismatchRow, Monitor, StationRow};

/// A mismatch between two stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Mismatch {
    /// Another key.
    Key = 1,
    /// Another segment.
    Segment,
    /// Another cycle, ns.
    Cycle,
    /// Another rate of the link, bits a second.
    Rate,
    /// Another stated number of stations.
    Stations,
    /// Another policy of non-real-time visits: frames, 0 for all.
    Policy,
    /// Another version of the protocol.
    Version,
    /// Another setting; both values are digests of all.
    Other,
    /// A frame had this station's own address as its source.
    OwnAddress,
    /// Two have one name; the other one's address stands in `ours`.
    Name,
    /// Two have one node address of link control, in `theirs`; the other one's address stands in `ours`.
    LlcAddress,
    /// It kept the token again and again, at longest for `theirs`, 0 where this station saw none of it, and
    /// is left out for `ours`, both ns.
    Hog,
    /// It sent outside its slots again and again, and is left out for `ours`, ns.
    Stray,
    /// The same of this station itself.
    HogHere,
    /// The same of this station itself.
    StrayHere,
}

impl Mismatch {
    /// All of them with their words, in the order of their codes, from 1.
    const ALL: [(Self, &'static str); 15] = [
        (Self::Key, "key"),
        (Self::Segment, "segment"),
        (Self::Cycle, "cycle"),
        (Self::Rate, "rate"),
        (Self::Stations, "stations"),
        (Self::Policy, "nrt-policy"),
        (Self::Version, "version"),
        (Self::Other, "other-setting"),
        (Self::OwnAddress, "own-address"),
        (Self::Name, "double-name"),
        (Self::LlcAddress, "double-llc-address"),
        (Self::Hog, "token-hog"),
        (Self::Stray, "outside-slot"),
        (Self::HogHere, "token-hog-here"),
        (Self::StrayHere, "outside-slot-here"),
    ];

    /// The word that programs use.
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize - 1].1
    }

    /// True if a station is left out of the token for what it did.
    pub fn is_exclusion(self) -> bool {
        matches!(self, Self::Hog | Self::Stray | Self::HogHere | Self::StrayHere)
    }

    fn from_code(code: u64) -> Option<Self> {
        let place = usize::try_from(code).ok()?.checked_sub(1)?;
        Self::ALL.get(place).map(|(kind, _)| *kind)
    }
}

fn mac(word: u64) -> String {
    let [_, _, octets @ ..] = word.to_be_bytes();
    octets.map(|octet| format!("{octet:02x}")).join(":")
}

impl MismatchRow {
    /// The mismatch; `None` for a code that this version does not know.
    pub fn kind(&self) -> Option<Mismatch> {
        Mismatch::from_code(self.kind)
    }

    /// Its address.
    pub fn mac(&self) -> String {
        mac(self.mac)
    }

    /// Its name, fit for a terminal; empty where none is known.
    pub fn name(&self) -> String {
        StationRow::name_of(&self.name)
    }

    /// One sentence with the station, the mismatch and both values.
    pub fn sentence(&self) -> String {
        let name = self.name();
        let who = if name.is_empty() { self.mac() } else { format!("{name} ({})", self.mac()) };
        let (ours, theirs) = (self.ours, self.theirs);
        let setting = |what: &str, theirs: String, ours: String| {
            format!("station {who} does not take part: its {what} is {theirs}, this station's is {ours}")
        };
        let ms = |ns: u64| rota_units::Span::from_nanos(ns).to_string();
        let frames = |frames| match frames {
            0 => "all that fit".to_owned(),
            1 => "one frame".to_owned(),
            _ => format!("at most {frames} frames"),
        };
        let rate = |bps| rota_units::BitRate::new(bps).map_or("none".into(), |rate| rate.to_string());
        match self.kind() {
            Some(Mismatch::Key) => {
                format!("station {who} has another key than this one: neither hears the other")
            }
            Some(Mismatch::Segment) => {
                format!("station {who} is of segment {theirs}, this one of segment {ours}")
            }
            Some(Mismatch::Cycle) => setting("cycle (--trt)", ms(theirs), ms(ours)),
            Some(Mismatch::Rate) => setting("rate (--rate)", rate(theirs), rate(ours)),
            Some(Mismatch::Stations) => setting("--stations", theirs.to_string(), ours.to_string()),
            Some(Mismatch::Policy) => setting("--nrt", frames(theirs), frames(ours)),
            Some(Mismatch::Version) => setting("protocol version", theirs.to_string(), ours.to_string()),
            Some(Mismatch::Other) => format!(
                "station {who} does not take part: it has this cycle and rate, but another setting differs \
                 (--port-queue, --nrt-latency, --death-timeout, the MTU, or the calibration file); digest \
                 {theirs:016x}, here {ours:016x}"
            ),
            Some(Mismatch::OwnAddress) => {
                format!("somebody else sends with this station's own address {}", self.mac())
            }
            Some(Mismatch::Name) => {
                format!("two stations are called '{name}': {} and {}; rename one", mac(ours), self.mac())
            }
            Some(Mismatch::LlcAddress) => {
                let other = mac(ours);
                format!("two stations have the node address {theirs} (--llc-address): {other} and {who}")
            }
            Some(kind) if kind.is_exclusion() => self.exclusion(kind, &who),
            _ => format!("station {who} does not fit, for a reason that this version does not know"),
        }
    }
}

impl MismatchRow {
    fn exclusion(&self, kind: Mismatch, who: &str) -> String {
        let [wait, held] = [self.ours, self.theirs].map(rota_units::Span::from_nanos);
        let kept = if self.theirs > 0 { format!(", for up to {held}") } else { String::new() };
        let kept = format!("kept the token beyond its slots again and again{kept}");
        let sent = "sent outside its slots again and again";
        match kind {
            Mismatch::Hog => format!("station {who} {kept}: the ring leaves it out for {wait}"),
            Mismatch::Stray => format!("station {who} {sent}: the ring leaves it out for {wait}"),
            Mismatch::HogHere => {
                format!(
                    "this station {who} {kept}: the others leave it out for {wait}, then it may come back"
                )
            }
            _ => format!(
                "this station {who} {sent}: the others leave it out for {wait}, then it may come back"
            ),
        }
    }
}

impl Monitor {
    /// Stations that do not fit, and those of which two cannot be told apart.
    pub fn all_mismatches(&self) -> Vec<MismatchRow> {
        let lives = |row: &&StationRow| row.flags & (StationRow::ALIVE | StationRow::HERE) != 0;
        let mut all = self.mismatches.clone();
        for (at, row) in self.stations.iter().filter(lives).enumerate() {
            for before in self.stations.iter().filter(lives).take(at) {
                let found = MismatchRow {
                    mac: row.mac,
                    name: row.name,
                    ours: before.mac,
                    theirs: row.llc_address,
                    heard_ns: row.heard_ns,
                    ..MismatchRow::default()
                };
                if row.name == before.name && row.name != [0; 4] {
                    all.push(MismatchRow { kind: Mismatch::Name as u64, ..found });
                }
                if row.llc_address == before.llc_address && row.llc_address != 0 {
                    all.push(MismatchRow { kind: Mismatch::LlcAddress as u64, ..found });
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_code_a_word_and_a_sentence_of_its_own() {
        let sentences = Mismatch::ALL.map(|(kind, word)| {
            assert_eq!((Mismatch::from_code(kind as u64), kind.word()), (Some(kind), word));
            let name = StationRow::name_words("n2");
            MismatchRow { mac: 0x0200_0000_0002, name, kind: kind as u64, ours: 1, theirs: 2, heard_ns: 0 }
                .sentence()
        });
        let distinct: std::collections::BTreeSet<_> = sentences.iter().collect();
        assert_eq!(distinct.len(), sentences.len());
        assert!(sentences.iter().all(|said| said.contains("02:00:00:00:00:02")), "{sentences:?}");
        let cycle = MismatchRow { kind: 3, ours: 33_333_333, theirs: 50_000_000, ..MismatchRow::default() };
        assert!(cycle.sentence().contains("is 50 ms, this station's is 33.333 ms"), "{}", cycle.sentence());
        assert!(MismatchRow { kind: 99, ..MismatchRow::default() }.sentence().contains("does not know"));
    }

    #[test]
    fn two_stations_of_one_name_or_address_are_found_while_both_live() {
        let row = |mac, name: &str, llc_address, flags| StationRow {
            mac,
            name: StationRow::name_words(name),
            llc_address,
            flags,
            ..StationRow::default()
        };
        let (here, alive) = (StationRow::HERE, StationRow::ALIVE);
        let stations =
            vec![row(1, "n1", 1, here), row(2, "n1", 2, alive), row(3, "n3", 2, alive), row(4, "n1", 1, 0)];
        let found = Monitor { stations, ..Monitor::default() }.all_mismatches();
        let found: Vec<_> = found.iter().map(|row| (row.mac, row.ours, row.kind().unwrap())).collect();
        assert_eq!(found, [(2, 1, Mismatch::Name), (3, 2, Mismatch::LlcAddress)]);
    }
}
