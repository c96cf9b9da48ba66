//! The hosts of a world as one segment has them.

use crate::hosts::{Host, Station};

/// The stations of a segment. A host keeps its number; one without a port on the segment is none of them.
#[derive(Clone, Copy, Debug)]
pub struct Stations<'a> {
    hosts: &'a [Host],
    segment: usize,
    count: usize,
}

impl<'a> Stations<'a> {
    /// Those of `hosts` that have a port on the segment: `count` of them.
    pub fn new(hosts: &'a [Host], segment: usize, count: usize) -> Self {
        Self { hosts, segment, count }
    }

    /// Which segment.
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Places for what is known of each host by its number.
    pub fn places(&self) -> usize {
        self.hosts.len()
    }

    /// A host that is on the segment.
    ///
    /// # Panics
    /// It is not.
    pub fn at(&self, host: usize) -> Station<'a> {
        self.hosts[host].on(self.segment).expect("only stations of the segment are seen on it")
    }

    /// All, each with its host's number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Station<'a>)> + Clone + use<'a> {
        let segment = self.segment;
        self.hosts.iter().enumerate().filter_map(move |(at, host)| Some((at, host.on(segment)?)))
    }
}
