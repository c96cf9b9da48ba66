//! Stations that do not fit: the same words in the status, the log and the monitor.

use crate::monitor::{MismatchRow, Monitor, StationRow};
use rota_contract::{Mismatch, NodeId};
use rota_wire::MacAddr;

/// The setting in which two stations differ, and these values of it as text.
fn setting(kind: Mismatch, values: [u64; 2]) -> Option<(&'static str, [String; 2])> {
    let number = |value: u64| value.to_string();
    let octets = |value: u64| format!("{value} octets");
    let percent = |value: u64| format!("{value} %");
    let time = |ns: u64| rota_units::Span::from_nanos(ns).to_string();
    let rate = |bps| rota_units::BitRate::new(bps).map_or("none".into(), |rate| rate.to_string());
    let frames = |frames| match frames {
        0 => "all that fit".to_owned(),
        1 => "one frame".to_owned(),
        _ if frames == u64::from(rota_wire::StatedSettings::DEFAULT_VISITS) => "the default".to_owned(),
        _ => format!("at most {frames} frames"),
    };
    let follows = |value| if value == 0 { "fixed" } else { "what the hosts' stalls allow" }.to_owned();
    let medium = |value| if value == 0 { "rether" } else { "link" }.to_owned();
    let duplex = |value| if value == 0 { "full duplex" } else { "half duplex" }.to_owned();
    Some(match kind {
        Mismatch::Cycle => ("cycle (--trt)", values.map(time)),
        Mismatch::Rate => ("rate (--rate)", values.map(rate)),
        Mismatch::Stations => ("--stations", values.map(number)),
        Mismatch::Policy => ("--nrt", values.map(frames)),
        Mismatch::Version => ("protocol version", values.map(number)),
        Mismatch::Mtu => ("MTU", values.map(number)),
        Mismatch::PortQueue => ("--port-queue", values.map(octets)),
        Mismatch::Latency => ("latency of ordinary traffic (--nrt-latency)", values.map(time)),
        Mismatch::Share => ("least share of ordinary traffic (0 % with --nrt-latency)", values.map(percent)),
        Mismatch::Death => ("death timer (--death-timeout)", values.map(time)),
        Mismatch::FollowStalls => ("death timer (fixed with --death-timeout)", values.map(follows)),
        Mismatch::HalfDuplex => ("wire", values.map(duplex)),
        Mismatch::Medium => ("medium (--medium)", values.map(medium)),
        Mismatch::HopCost => ("time of a hop (--calibration)", values.map(time)),
        Mismatch::VisitCost => ("cost of a visit (--calibration)", values.map(time)),
        Mismatch::FrameCost => ("cost of a frame (--calibration)", values.map(time)),
        Mismatch::PrepareCost => ("time to prepare a frame (--calibration)", values.map(time)),
        _ => return None,
    })
}

impl MismatchRow {
    /// The mismatch; `None` for a code that this version does not know.
    pub fn kind(&self) -> Option<Mismatch> {
        Mismatch::from_code(self.kind)
    }

    /// Its address.
    pub fn mac(&self) -> String {
        MacAddr::from_word(self.mac).to_string()
    }

    /// The address of the other one of two stations that cannot be told apart.
    fn other(&self) -> String {
        MacAddr::from_word(self.ours).to_string()
    }

    /// What it tells of doubles that are not named; nothing of a station.
    fn of_rest(&self) -> Option<String> {
        let what = match self.kind().filter(|_| self.mac == 0 && self.ours == 0)? {
            Mismatch::Name => "names",
            Mismatch::LlcAddress => "node addresses (--llc-address)",
            Mismatch::NodeId => "node ids",
            _ => return None,
        };
        Some(format!(
            "two or more stations have each of {} further {what}; those above come first",
            self.more
        ))
    }

    /// Further stations that cannot be told from these two.
    fn and_more(&self) -> String {
        if self.more == 0 { String::new() } else { format!(", and {} more", self.more) }
    }

    /// Its name, fit for a terminal; empty where none is known.
    pub fn name(&self) -> String {
        StationRow::name_of(&self.name)
    }

    /// Both values for programs, `ours` first: addresses as addresses, all others as numbers. None where
    /// there are none to compare: nobody can know another station's key, and none states its own.
    pub fn values(&self) -> Option<[String; 2]> {
        Some(match self.kind() {
            Some(Mismatch::Key | Mismatch::OwnAddress | Mismatch::ThirdStation) => return None,
            Some(Mismatch::Name) => [self.other(), self.mac()],
            Some(Mismatch::LlcAddress) => [self.other(), self.theirs.to_string()],
            Some(Mismatch::NodeId) => [self.other(), NodeId(self.theirs).to_string()],
            _ => [self.ours, self.theirs].map(|value| value.to_string()),
        })
    }

    /// One sentence with the station, the mismatch and both values.
    pub fn sentence(&self) -> String {
        if let Some(rest) = self.of_rest() {
            return rest;
        }
        let name = self.name();
        let who = if name.is_empty() { self.mac() } else { format!("{name} ({})", self.mac()) };
        let (ours, theirs) = (self.ours, self.theirs);
        match self.kind() {
            Some(Mismatch::Key) => {
                format!("station {who} has another key than this one: neither hears the other")
            }
            Some(Mismatch::Segment) => {
                format!("station {who} is of segment {theirs}, this one of segment {ours}")
            }
            Some(Mismatch::Link) => format!(
                "station {who} does not take part: the header of its frames has version {theirs}, this \
                 station's has version {ours}"
            ),
            Some(Mismatch::Other) => format!(
                "station {who} does not take part: a setting differs that its announcement does not state; \
                 the digest of its settings is {theirs:016x}, here {ours:016x}"
            ),
            Some(Mismatch::Partitions) if ours == theirs => format!(
                "station {who} does not take part: a setting differs that its announcement does not state, \
                 for instance the names, shares or order of its partitions (--partition)"
            ),
            Some(Mismatch::Partitions) => format!(
                "station {who} does not take part: it divides the segment into {theirs} partitions, this \
                 station into {ours}; all stations need the same names, shares and order (--partition)"
            ),
            Some(Mismatch::OwnAddress) => {
                format!("somebody else sends with this station's own address {}", self.mac())
            }
            Some(Mismatch::ThirdStation) => format!(
                "station {who} does not take part: it is a third station on a link, which has two ends; take \
                 one off, or run all with --medium rether"
            ),
            Some(Mismatch::Name) => {
                let (other, mac, more) = (self.other(), self.mac(), self.and_more());
                format!("two stations are called '{name}': {other} and {mac}{more}; rename one")
            }
            Some(Mismatch::LlcAddress) => {
                let (other, more) = (self.other(), self.and_more());
                format!(
                    "two stations have the node address {theirs} (--llc-address): {other} and {who}{more}"
                )
            }
            Some(Mismatch::NodeId) => format!(
                "two stations have the node id {}: {} and {who}{}; end one, remove its file of the \
                 node id, and start it again",
                NodeId(theirs),
                self.other(),
                self.and_more()
            ),
            Some(kind) if kind.is_exclusion() => self.exclusion(kind, &who),
            Some(kind) if kind.is_hold_off() => self.hold_off(kind, &who),
            Some(kind) if let Some((setting, [ours, theirs])) = setting(kind, [ours, theirs]) => format!(
                "station {who} does not take part: its {setting} is {theirs}, this station's is {ours}"
            ),
            _ => format!("station {who} does not fit, for a reason that this version does not know"),
        }
    }
}

impl MismatchRow {
    /// How long a station that is held off still has to wait.
    pub fn left(&self, now_ns: u64) -> Option<rota_units::Span> {
        let is_held = self.kind().is_some_and(Mismatch::is_hold_off);
        let left = self.heard_ns.saturating_add(self.ours).saturating_sub(now_ns);
        is_held.then(|| rota_units::Span::from_millis(left.div_ceil(1_000_000)))
    }

    /// [`Self::sentence`], with what is left of a wait.
    pub fn sentence_at(&self, now_ns: u64) -> String {
        match self.left(now_ns) {
            Some(left) => format!("{}; {left} of it are left", self.sentence()),
            None => self.sentence(),
        }
    }

    fn hold_off(&self, kind: Mismatch, who: &str) -> String {
        let (wait, silences) = (rota_units::Span::from_nanos(self.ours), self.theirs);
        match kind {
            Mismatch::HeldOff => {
                format!("station {who} is held off for {wait}: it fell silent {silences} times")
            }
            _ => format!("this station {who} is held off for about {wait}: it fell silent {silences} times"),
        }
    }

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

/// Most names, node addresses and node ids that are told of at a time: an answer has room for so many.
/// One row more says how many further ones there are, which wait until one is mended.
const DOUBLES: usize = 32;

impl Monitor {
    /// Stations that do not fit, and those that cannot be told from another one: one row for each name, node
    /// address and node id, with the first two stations that have it and the number of the others.
    pub fn all_mismatches(&self) -> Vec<MismatchRow> {
        let lives = |row: &&StationRow| row.flags & (StationRow::ALIVE | StationRow::HERE) != 0;
        let lives: Vec<&StationRow> = self.stations.iter().filter(lives).collect();
        let doubles = |kind: Mismatch, is_double: fn(&StationRow, &StationRow) -> bool| {
            let found = lives.iter().enumerate().filter_map(|(at, row)| {
                let like = |others: &[&StationRow]| others.iter().filter(|of| is_double(row, of)).count();
                let before = lives.iter().take(at).find(|before| is_double(row, before))?;
                let more = like(&lives[at + 1..]) as u64;
                let theirs = if kind == Mismatch::NodeId { row.node_id.0 } else { row.llc_address };
                let (mac, name, ours, heard_ns) = (row.mac, row.name, before.mac, row.heard_ns);
                let told = MismatchRow { mac, name, kind: kind.code(), ours, theirs, heard_ns, more };
                (like(&lives[..at]) == 1).then_some(told)
            });
            let mut found: Vec<_> = found.collect();
            let further = found.len().saturating_sub(DOUBLES) as u64;
            found.truncate(DOUBLES);
            let rest = MismatchRow { kind: kind.code(), more: further, ..MismatchRow::default() };
            found.into_iter().chain((further > 0).then_some(rest)).collect::<Vec<_>>()
        };
        let names = doubles(Mismatch::Name, |row, before| row.name == before.name && row.name != [0; 4]);
        let addresses = doubles(Mismatch::LlcAddress, |row, before| {
            row.llc_address == before.llc_address && row.llc_address != 0
        });
        let ids =
            doubles(Mismatch::NodeId, |row, before| row.node_id == before.node_id && row.node_id.is_known());
        [self.mismatches.clone(), names, addresses, ids].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn every_kind_has_a_sentence_of_its_own() {
        assert_eq!(
            [Mismatch::Policy, Mismatch::HogHere].map(Mismatch::word),
            ["nrt-policy", "token-hog-here"]
        );
        let sentence = |kind: &Mismatch| {
            let kind = *kind;
            let name = StationRow::name_words("n2");
            MismatchRow {
                mac: 0x0200_0000_0002,
                name,
                kind: kind.code(),
                ours: 1,
                theirs: 2,
                ..MismatchRow::default()
            }
            .sentence()
        };
        let sentences: Vec<String> = Mismatch::VARIANTS.iter().map(sentence).collect();
        let distinct: std::collections::BTreeSet<_> = sentences.iter().collect();
        assert_eq!(distinct.len(), sentences.len());
        assert!(sentences.iter().all(|said| said.contains("02:00:00:00:00:02")), "{sentences:?}");
        let cycle = MismatchRow { kind: 3, ours: 33_333_333, theirs: 50_000_000, ..MismatchRow::default() };
        assert!(cycle.sentence().contains("is 50 ms, this station's is 33.333 ms"), "{}", cycle.sentence());
        let mtu =
            MismatchRow { kind: Mismatch::Mtu.code(), ours: 1_500, theirs: 9_000, ..MismatchRow::default() };
        assert!(mtu.sentence().ends_with("its MTU is 9000, this station's is 1500"), "{}", mtu.sentence());
        let policy = MismatchRow { kind: Mismatch::Policy.code(), ours: 1, theirs: 3, ..mtu };
        let said = policy.sentence();
        assert!(said.contains("--nrt") && said.contains("is at most 3 frames"), "{said}");
        assert!(said.ends_with("is one frame"), "{said}");
        let stations = MismatchRow { kind: Mismatch::Stations.code(), ..policy };
        assert!(
            stations.sentence().contains("--stations is 3, this station's is 1"),
            "{}",
            stations.sentence()
        );
        let link = MismatchRow { kind: Mismatch::Link.code(), ours: 1, theirs: 2, ..mtu };
        assert!(link.sentence().ends_with("has version 2, this station's has version 1"));
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
        let mut stations = vec![row(1, "n1", 7, here), row(2, "n2", 7, alive)];
        stations[1].heard_ns = 5;
        let both = stations.clone();
        let found = Monitor { stations, ..Monitor::default() }.all_mismatches();
        assert_eq!(found.iter().map(|row| (row.theirs, row.heard_ns)).collect::<Vec<_>>(), [(7, 5)]);
        assert_eq!(found[0].name(), "n2");
        for node_id in [NodeId::UNKNOWN, NodeId(0xa5)] {
            let stations = both.iter().map(|row| StationRow { node_id, llc_address: 0, ..*row }).collect();
            let found = Monitor { stations, ..Monitor::default() }.all_mismatches();
            assert_eq!(found.len(), usize::from(node_id.is_known()), "0 for a station whose id is not known");
            for row in found {
                assert_eq!(row.kind(), Some(Mismatch::NodeId));
                assert_eq!(row.values().unwrap(), ["00:00:00:00:00:01", "00000000000000a5"]);
                assert!(row.sentence().contains("id 00000000000000a5: 00:00:00:00:00:01 and n2 (00:00:00"));
            }
        }
        // The address of the other station was a decimal number.
        assert_eq!(found[0].values().unwrap(), ["00:00:00:00:00:01", "7"]);
        let name = MismatchRow { kind: Mismatch::Name.code(), ..found[0] };
        assert_eq!(name.values().unwrap(), ["00:00:00:00:00:01", "00:00:00:00:00:02"]);
        let mtu = MismatchRow { kind: Mismatch::Mtu.code(), ours: 1_500, theirs: 9_000, ..found[0] };
        assert_eq!(mtu.values().unwrap(), ["1500", "9000"]);
        // It stated 0 and 0.
        let key = MismatchRow { kind: Mismatch::Key.code(), ..mtu };
        assert_eq!(key.values(), None);
    }

    /// 255 clones of one image were 32,385 pairs of each kind. `rota status` failed, because its answer was
    /// longer than a message of the control socket. Then sixteen of a kind were told, and another name that
    /// two stations have was hidden behind them.
    #[test]
    fn a_segment_of_clones_is_told_in_few_lines() {
        let clone = |mac| StationRow {
            mac,
            name: StationRow::name_words("clone"),
            node_id: NodeId(7),
            llc_address: 9,
            flags: StationRow::ALIVE,
            ..StationRow::default()
        };
        let mut stations: Vec<StationRow> = (1..=100).map(clone).collect();
        let (name, node_id, llc_address) = (StationRow::name_words("twin"), NodeId(8), 10);
        stations.extend([101, 102].map(|mac| StationRow { name, node_id, llc_address, ..clone(mac) }));
        let found = Monitor { stations, ..Monitor::default() }.all_mismatches();
        let rows: Vec<_> = found.iter().map(|row| (row.ours, row.mac, row.more)).collect();
        assert_eq!(rows, [(1, 2, 98), (101, 102, 0)].repeat(3), "one for each name, address and id");
        for row in [&found[0], &found[2], &found[4]] {
            assert!(row.sentence().contains("00:00:02") && row.sentence().contains(", and 98 more"));
        }
        assert!(!found[1].sentence().contains("more"));
        let pair = |mac: u64| StationRow { node_id: NodeId(mac / 2 + 1), llc_address: 0, ..clone(mac) };
        let all = Monitor { stations: (0..254).map(pair).collect(), ..Monitor::default() };
        let found = all.all_mismatches();
        assert_eq!(found.len(), 1 + DOUBLES + 1, "an answer has room for no more");
        // The further ones were hidden.
        let said = found.last().expect("a row").sentence();
        assert_eq!(said, "two or more stations have each of 95 further node ids; those above come first");
    }
}
