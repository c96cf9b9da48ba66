//! Keys and neighbours files for the nodes of a lab: a gateway and each other station of its segments are
//! neighbours, as channels across segments need it, and so are the two ends of a tunnel. Two stations of one
//! segment reach each other without.

use crate::build::Lab;
use crate::topology::{Medium, Topology, address};
use rota_rundir::{Lock, NEIGHBOURS};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where nodes of a lab await their neighbours.
pub const PORT: u16 = 7247;
/// Keeps the files of a station from the nodes that clear out what dead ones have left.
const LOCK: &str = "lab";

/// The neighbours files of a lab, as long as it lives.
#[derive(Default)]
pub(crate) struct NeighbourFiles {
    files: BTreeMap<u8, (PathBuf, Lock)>,
}

/// The answer of `rota key show --json`.
#[derive(Clone, Debug, Deserialize)]
struct Known {
    node_id: String,
    key: String,
}

impl NeighbourFiles {
    /// Lets `program` make an id and a key in each station that has neighbours, and writes their files.
    ///
    /// # Errors
    /// One sentence.
    pub(crate) fn make(lab: &Lab, program: &Path) -> Result<Self, String> {
        let topology = &lab.spec().topology;
        let pairs = pairs(topology);
        let (mut files, mut known) = (BTreeMap::new(), BTreeMap::new());
        for station in pairs.keys() {
            let name = &topology.stations[usize::from(*station) - 1].name;
            let failed = |why: String| format!("no key can be made for {name}: {why}");
            let locked =
                lab.host(*station).run(|| Lock::here(LOCK)).map_err(|error| failed(error.to_string()))?;
            let lock = locked.map_err(|error| failed(error.to_string()))?;
            known.insert(*station, show(lab, *station, program).map_err(failed)?);
            files.insert(*station, (lock.path().with_file_name(NEIGHBOURS), lock));
        }
        for (station, neighbours) in &pairs {
            let path = &files[station].0;
            let written = write(path, &text(topology, neighbours, &known));
            written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        Ok(Self { files })
    }

    /// The words that a station's node is told of it.
    pub(crate) fn words(&self, station: u8) -> Vec<String> {
        let file = self.files.get(&station).map(|(path, _)| path.display().to_string());
        file.map_or(Vec::new(), |file| vec!["--neighbours".to_owned(), file])
    }
}

fn show(lab: &Lab, station: u8, program: &Path) -> Result<Known, String> {
    let output = lab.command(station, program).args(["key", "show", "--json"]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}

/// The neighbours of each station that has any, and their addresses on the first segment that both are on.
fn pairs(topology: &Topology) -> BTreeMap<u8, BTreeMap<u8, Ipv4Addr>> {
    let mut pairs: BTreeMap<u8, BTreeMap<u8, Ipv4Addr>> = BTreeMap::new();
    let is_gateway = |station: u8| topology.stations[usize::from(station) - 1].ports.len() > 1;
    for segment in 0..topology.segments.len() {
        for (one, _) in topology.on(segment) {
            for (other, _) in topology.on(segment).filter(|(other, _)| *other != one) {
                let is_tunnel = topology.segments[segment].medium == Medium::Ip;
                if is_gateway(one) || is_gateway(other) || is_tunnel {
                    pairs.entry(one).or_default().entry(other).or_insert(address(segment, other));
                }
            }
        }
    }
    pairs
}

fn text(topology: &Topology, neighbours: &BTreeMap<u8, Ipv4Addr>, known: &BTreeMap<u8, Known>) -> String {
    let mut text = String::from("# Written by the lab.\n");
    for (station, address) in neighbours {
        let (Known { node_id, key }, name) =
            (&known[station], &topology.stations[usize::from(*station) - 1].name);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n[[neighbour]]\nname = \"{name}\"\nnode = \"{node_id}\"\naddress = \"{address}:{PORT}\"\n\
             key = \"{key}\"\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Segment, Station};
    use rota_units::BitRate;

    fn topology() -> Topology {
        let segments = ["left", "right"].map(|name| Segment::new(name, BitRate::from_mbit(100)));
        let station = |name: &str, ports: &[usize]| Station { name: name.to_owned(), ports: ports.to_vec() };
        let stations = vec![
            station("n1", &[0]),
            station("n2", &[0]),
            station("gateway", &[0, 1]),
            station("n3", &[1]),
            station("second", &[1, 0]),
        ];
        Topology { segments: segments.to_vec(), stations }
    }

    #[test]
    fn gateways_and_the_stations_of_their_segments_are_neighbours() {
        let pairs = pairs(&topology());
        let of = |station: u8| pairs[&station].keys().copied().collect::<Vec<u8>>();
        assert_eq!(
            [of(1), of(2), of(3), of(4), of(5)],
            [vec![3, 5], vec![3, 5], vec![1, 2, 4, 5], vec![3, 5], vec![1, 2, 3, 4]]
        );
        assert_eq!(pairs[&3][&4], address(1, 4));
        assert_eq!((pairs[&3][&5], pairs[&5][&3]), (address(0, 5), address(0, 3)), "one segment for both");
        assert!(super::pairs(&Topology::of_one(Segment::new("lan", BitRate::from_mbit(10)), 3)).is_empty());
    }

    #[test]
    fn a_file_names_each_neighbour() {
        let known = |station: u8| Known { node_id: format!("{station:016x}"), key: "ab".repeat(32) };
        let known: BTreeMap<u8, Known> = (1..=5).map(|station| (station, known(station))).collect();
        let text = text(&topology(), &pairs(&topology())[&1], &known);
        assert_eq!(text.matches("[[neighbour]]").count(), 2, "{text}");
        let second =
            "name = \"second\"\nnode = \"0000000000000005\"\naddress = \"10.77.0.5:7247\"\nkey = \"abab";
        assert!(text.contains(second), "{text}");
    }
}
