//! The checker of "at most one holder": it intersects the intervals that all stations logged.

use std::path::Path;

/// An interval in which a station held the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub station: u8,
    pub generation: u32,
    pub accepted_ns: u64,
    pub passed_ns: u64,
}

/// The holds that station `station` logged. A station that was killed leaves no line for its last hold, and
/// may leave half a line.
pub fn read(path: &Path, station: u8) -> Vec<Hold> {
    let log = std::fs::read_to_string(path).unwrap();
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let parse = |line: &str| {
        let mut fields = line.split(' ').map(|field| field.parse::<u64>().unwrap());
        let mut next = || fields.next().unwrap();
        let generation = u32::try_from(next()).unwrap();
        Hold { station, generation, accepted_ns: next(), passed_ns: next() }
    };
    whole.lines().map(parse).collect()
}

/// The first two holds, if any, in which two stations held the token at the same time.
pub fn overlap(mut holds: Vec<Hold>) -> Option<(Hold, Hold)> {
    holds.sort_by_key(|hold| (hold.accepted_ns, hold.passed_ns));
    let mut longest: Option<Hold> = None;
    for hold in holds {
        if let Some(earlier) = longest
            && hold.accepted_ns < earlier.passed_ns
        {
            return Some((earlier, hold));
        }
        if longest.is_none_or(|earlier| hold.passed_ns >= earlier.passed_ns) {
            longest = Some(hold);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(station: u8, accepted_ns: u64, passed_ns: u64) -> Hold {
        Hold { station, generation: 1, accepted_ns, passed_ns }
    }

    #[test]
    fn the_checker_sees_overlaps_and_only_these() {
        assert_eq!(overlap(vec![hold(2, 10, 20), hold(1, 0, 10), hold(3, 20, 20), hold(1, 20, 25)]), None);
        assert!(overlap(vec![hold(1, 0, 10), hold(2, 9, 12)]).is_some());
        // The second hides inside the first, the third after both.
        assert!(overlap(vec![hold(1, 0, 100), hold(2, 100, 110), hold(3, 50, 60)]).is_some());
    }
}
