//! The network and the times of `rota demo tenet`: pure arithmetic, so that it can be checked without a
//! network.
//!
//! The network has the shape of Figure 11: a campus, a T1 line, another campus. The load comes at `quiet` and
//! goes at `quiet + load`; in the second half of it the program of the second channel sends three times as
//! often as it agreed to.

use rota_answer::Failure;
use rota_lab::Topology;
use rota_units::{BitRate, Span};
use std::ops::Range;
use std::path::Path;

/// The network as `rota lab up` reads it, too.
const FILE: &str = include_str!("../../../../../topologies/t1.toml");

/// A T1 line as the paper rounds it.
pub const T1: BitRate = match BitRate::new(1_500_000) {
    Some(rate) => rate,
    None => BitRate::from_mbit(1),
};
/// Eight frames a second. The paper has about ten, of 580 kbit/s; then three streams would not fit.
pub const PERIOD: Span = Span::from_millis(125);
/// The delay that is asked for.
pub const DELAY: Span = Span::from_millis(400);
/// The rate of the UDP part of the load: more than the line carries, beside a TCP connection.
pub const LOAD_UDP: BitRate = BitRate::from_mbit(2);
/// How many times as often as agreed the misbehaving program sends.
pub const HURRY: u64 = 3;

/// The stations, by number from 1: five hosts and two gateways.
pub const FAITH: u8 = 1;
pub const THEOREM: u8 = 2;
pub const GRAYLING: u8 = 3;
pub const SOCK: u8 = 4;
pub const BREEZE: u8 = 5;
pub const PAOLA: u8 = 6;
pub const BLIZZARD: u8 = 7;
/// The segment on the far side.
pub const FAR: usize = 2;
/// How the destination of the channels is called.
pub const RECEIVER_NAME: &str = "paola";

/// The channels: their service at the receiver, and their station. The second one misbehaves.
pub const CHANNELS: [(u16, u8); 2] = [(1, FAITH), (2, THEOREM)];
/// The UDP video's, likewise.
pub const UDP: (u16, u8) = (3, FAITH);

/// The network.
///
/// # Errors
/// The file that this program was built with makes no sense.
pub fn topology() -> Result<Topology, Failure> {
    let parsed = crate::topology::parse(FILE, Path::new("."));
    parsed.map_err(|(line, sentence)| Failure::failed(format!("t1.toml:{line}: {sentence}")))
}

/// When what happens, from the run's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The load begins.
    pub load_from: Span,
    /// For how long it lasts, in seconds.
    pub load_seconds: u64,
}

impl Times {
    /// With so many seconds of load.
    pub fn new(load_seconds: u64) -> Self {
        let quiet = (load_seconds * 600).max(2_000);
        Self { load_from: Span::from_millis(quiet), load_seconds }
    }

    /// The load ends.
    pub fn load_to(&self) -> Span {
        self.load_from + Span::from_millis(1_000 * self.load_seconds)
    }

    /// The streams end.
    pub fn end(&self) -> Span {
        self.load_to() + self.load_from
    }

    /// The second program sends too often.
    pub fn hurry(&self) -> Range<Span> {
        self.load_from + Span::from_millis(500 * self.load_seconds)..self.load_to()
    }

    /// Before, during and after the load. In the first second the first frames are still on their way.
    pub fn parts(&self) -> [Range<Span>; 3] {
        [Span::from_millis(1_000)..self.load_from, self.load_from..self.load_to(), self.load_to()..self.end()]
    }
}

/// When a stream begins: cameras are not synchronised.
pub fn start(service: u16) -> Span {
    PERIOD.div_down(3) * u64::from(service.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_can_be_built_and_has_its_bottleneck_in_the_middle() {
        let topology = topology().expect("a sound network");
        let name = |k: u8| topology.stations[usize::from(k) - 1].name.as_str();
        let all = [FAITH, THEOREM, GRAYLING, SOCK, BREEZE, PAOLA, BLIZZARD].map(name);
        assert_eq!(all, ["faith", "theorem", "grayling", "sock", "breeze", "paola", "blizzard"]);
        let rates: Vec<u64> = topology.segments.iter().map(|segment| segment.rate.as_bps()).collect();
        assert_eq!(rates, [10_000_000, 1_500_000, 10_000_000]);
        assert_eq!(topology.stations.iter().filter(|station| station.ports.len() == 1).count(), 5);
    }

    #[test]
    fn three_streams_fit_the_line_and_the_load_does_not() {
        let video = crate::video::Video::parse(crate::demo::CLIP.to_vec()).expect("the clip");
        let peak = BitRate::carrying_up(rota_units::Octets::new(video.largest_octets() as u64), PERIOD);
        let peak = peak.expect("a rate").as_bps();
        assert!((390_000..400_000).contains(&peak), "{peak}");
        // Headers, tags and framing of packets are less than an eighth.
        assert!(3 * peak * 9 / 8 < T1.as_bps() && LOAD_UDP > T1);
    }

    #[test]
    fn the_parts_follow_each_other_and_the_second_half_of_the_load_has_the_misbehaviour() {
        for seconds in [2, 10, 60] {
            let times = Times::new(seconds);
            let [before, during, after] = times.parts();
            assert!(before.end == during.start && during.end == after.start && after.end == times.end());
            assert!(during.contains(&times.hurry().start) && times.hurry().end == during.end);
        }
    }
}
