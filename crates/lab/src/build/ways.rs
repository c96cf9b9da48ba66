//! The ways of ordinary packets over the gateways of a lab: their kernels forward, as those of routers do.

use super::PREFIX;
use crate::topology::{Topology, address};
use rota_driver::netlink::Route;
use rota_driver::netns::{Host, NsError};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Tells station `k` the way to each segment that it has no port on, and lets a gateway forward.
pub fn lay(host: &Host, k: u8, topology: &Topology) -> Result<(), NsError> {
    let ports = &topology.stations[usize::from(k) - 1].ports;
    let others = (0..topology.segments.len()).filter(|segment| !ports.contains(segment));
    let ways: Vec<(usize, Ipv4Addr)> =
        others.filter_map(|segment| Some((segment, gateway(topology, k, segment)?))).collect();
    let is_gateway = ports.len() > 1;
    host.run(|| -> Result<(), NsError> {
        if is_gateway {
            // Where this cannot be set nothing is forwarded, which shows: the lab is one of namespaces.
            let _ = std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        }
        let mut route = Route::here()?;
        for (segment, by) in ways {
            route.add_way(address(segment, 0), PREFIX, by)?;
        }
        Ok(())
    })?
}

/// The gateway on one of the segments of station `k` that begins a shortest way to `segment`.
fn gateway(topology: &Topology, k: u8, segment: usize) -> Option<Ipv4Addr> {
    let own = &topology.stations[usize::from(k) - 1].ports;
    let mut seen: BTreeSet<usize> = own.iter().copied().collect();
    let mut next: VecDeque<(usize, Option<Ipv4Addr>)> = own.iter().map(|at| (*at, None)).collect();
    while let Some((at, first)) = next.pop_front() {
        if at == segment {
            return first;
        }
        for (station, _) in topology.on(at).filter(|(station, _)| *station != k) {
            for behind in &topology.stations[usize::from(station) - 1].ports {
                if seen.insert(*behind) {
                    next.push_back((*behind, first.or(Some(address(at, station)))));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Segment, Station};
    use rota_units::BitRate;

    #[test]
    fn a_way_begins_at_the_nearest_gateway() {
        let segments = ["a", "b", "c"].map(|name| Segment::new(name, BitRate::from_mbit(10))).to_vec();
        let station = |name: &str, ports: &[usize]| Station { name: name.to_owned(), ports: ports.to_vec() };
        let stations = vec![
            station("n1", &[0]),
            station("left", &[0, 1]),
            station("right", &[1, 2]),
            station("n2", &[2]),
            station("alone", &[2]),
        ];
        let topology = Topology { segments, stations };
        assert_eq!(gateway(&topology, 1, 2), Some(address(0, 2)), "two gateways away: the first one");
        assert_eq!(gateway(&topology, 1, 1), Some(address(0, 2)));
        assert_eq!(gateway(&topology, 2, 2), Some(address(1, 3)));
        assert_eq!(gateway(&topology, 4, 0), Some(address(2, 3)));
        assert_eq!(gateway(&topology, 1, 0), None, "its own");
    }
}
