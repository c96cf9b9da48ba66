//! Ways through a topology: the fewest hops first, and no segment twice.

use rota_lab::Topology;
use std::collections::VecDeque;

/// One hop: a station sends into a segment, to the next station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sending station, by its place in the topology.
    pub station: usize,
    /// The segment.
    pub segment: usize,
    /// The receiving station.
    pub next: usize,
}

/// Most hops of a route: a bound of eight cycles is already longer than a conversation allows.
pub const HOPS_MAX: usize = 8;
/// Most routes that are looked at.
const ROUTES_MAX: usize = 16;
/// Most beginnings of routes that are kept: a mesh of many gateways has more than anybody can wait for.
const BEGINNINGS_MAX: usize = 20_000;

/// Routes from the first station to the second, the shortest first; of equal length those through stations
/// and ports that the topology names first.
pub fn routes(topology: &Topology, [from, to]: [usize; 2]) -> Vec<Vec<Step>> {
    let (mut found, mut begun) = (Vec::new(), VecDeque::from([Vec::<Step>::new()]));
    let mut seen = 0;
    while let Some(steps) = begun.pop_front() {
        let at = steps.last().map_or(from, |step| step.next);
        if at == to {
            found.push(steps);
            if found.len() == ROUTES_MAX {
                break;
            }
            continue;
        }
        if steps.len() == HOPS_MAX {
            continue;
        }
        for step in next_steps(topology, at) {
            let is_new = step.next != from
                && steps.iter().all(|before| before.segment != step.segment && before.next != step.next);
            if is_new && seen < BEGINNINGS_MAX {
                seen += 1;
                begun.push_back(steps.iter().copied().chain([step]).collect());
            }
        }
    }
    found
}

fn next_steps(topology: &Topology, station: usize) -> impl Iterator<Item = Step> + '_ {
    topology.stations[station].ports.iter().flat_map(move |&segment| {
        let on =
            topology.stations.iter().enumerate().filter(move |(_, other)| other.ports.contains(&segment));
        on.filter(move |(next, _)| *next != station).map(move |(next, _)| Step { station, segment, next })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_lab::{Segment, Station};
    use rota_units::BitRate;

    fn topology(segments: usize, stations: &[&[usize]]) -> Topology {
        let segment = |at| Segment::new(format!("s{at}"), BitRate::from_mbit(100));
        let station =
            |(at, ports): (usize, &&[usize])| Station { name: format!("n{at}"), ports: ports.to_vec() };
        Topology {
            segments: (0..segments).map(segment).collect(),
            stations: stations.iter().enumerate().map(station).collect(),
        }
    }

    fn brief(topology: &Topology, ends: [usize; 2]) -> Vec<Vec<(usize, usize)>> {
        let steps = |route: Vec<Step>| route.iter().map(|step| (step.segment, step.next)).collect();
        routes(topology, ends).into_iter().map(steps).collect()
    }

    #[test]
    fn the_shortest_route_is_the_first_and_others_follow() {
        // 0 - s0 - 1 - s1 - 2, and 0 - s2 - 3 - s3 - 4 - s1.
        let net = topology(4, &[&[0, 2], &[0, 1], &[1], &[2, 3], &[3, 1]]);
        let all = brief(&net, [0, 2]);
        assert_eq!(all[0], [(0, 1), (1, 2)]);
        assert_eq!(all[1], [(2, 3), (3, 4), (1, 2)]);
        assert_eq!(all.len(), 2, "no segment and no station twice: {all:?}");
    }

    #[test]
    fn stations_that_share_no_way_have_no_route_and_loops_end() {
        let net = topology(3, &[&[0, 1], &[1, 2], &[2, 0], &[]]);
        assert!(brief(&net, [0, 3]).is_empty());
        assert_eq!(brief(&net, [0, 1]), [vec![(1, 1)], vec![(0, 2), (2, 1)]]);
    }

    #[test]
    fn a_mesh_of_gateways_is_looked_at_in_a_moment() {
        let ports: Vec<usize> = (0..8).collect();
        let net = topology(8, &vec![&ports[..]; 20]);
        let all = routes(&net, [0, 19]);
        assert_eq!((all.len(), all[0].len()), (ROUTES_MAX, 1));
    }
}
