//! Users and groups inside and outside of a user namespace.

use std::fs;

/// The lines of a map: first number inside, first number outside, how many.
fn map(file: &str) -> Vec<[u32; 3]> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let numbers = |line: &str| {
        let mut words = line.split_whitespace().map(str::parse);
        Some([words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?])
    };
    text.lines().filter_map(numbers).collect()
}

fn outer(map: &[[u32; 3]], id: u32) -> Option<u32> {
    let found = map.iter().find(|[inside, _, count]| id >= *inside && id - inside < *count);
    found.map(|[inside, outside, _]| outside + (id - inside))
}

/// The number that a user of this user namespace has outside of it.
pub fn outer_uid(uid: u32) -> u32 {
    outer(&map("/proc/self/uid_map"), uid).unwrap_or(uid)
}

/// Whether the number means a user of this user namespace. The kernel shows all other users as one and the
/// same number.
pub fn uid_is_mapped(uid: u32) -> bool {
    outer(&map("/proc/self/uid_map"), uid).is_some()
}

/// Whether the number means a group of this user namespace.
pub fn gid_is_mapped(gid: u32) -> bool {
    outer(&map("/proc/self/gid_map"), gid).is_some()
}

/// The groups of this user namespace, for people.
pub fn group_map() -> String {
    let ranges = map("/proc/self/gid_map").into_iter().map(|[inside, _, count]| match count {
        1 => inside.to_string(),
        _ => format!("{inside} to {}", inside.saturating_add(count - 1)),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_their_range_only() {
        let map = [[0, 1000, 1], [1, 100_000, 10]];
        assert_eq!([0, 1, 10].map(|id| outer(&map, id)), [Some(1000), Some(100_000), Some(100_009)]);
        assert_eq!(outer(&map, 11), None);
        assert_eq!(outer(&[[0, 0, u32::MAX]], 65_534), Some(65_534));
    }

    #[test]
    fn this_process_is_known() {
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        assert!(uid_is_mapped(uid) && gid_is_mapped(gid));
        assert!(!group_map().is_empty());
    }
}
