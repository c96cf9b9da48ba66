//! The counters of a node: one file, named numbers, one writer; whoever watches maps it read-only and
//! needs the node for nothing more. [`crate::layout::CountersHeader`] and [`crate::layout::CounterEntry`] are
//! its octets.

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::layout::{
    COUNTER_NAME_OCTETS, COUNTERS_MAGIC, CounterEntry, CountersHeader, LAYOUT_VERSION, PORTS_MAX,
};
use crate::memfd::{self, FINAL_SEALS};
use crate::memory::MemoryError;
use crate::monitor::{self, MONITOR_OCTETS, Monitor, MonitorTable};
use crate::raw::{ReadPages, WritePages};

/// Most counters in one file.
const COUNTERS_MAX: usize = 4096;

/// A node's counters. Clones write the same file; any thread may add.
#[derive(Clone)]
pub struct CounterTable {
    pages: Arc<WritePages>,
    file: Arc<OwnedFd>,
    count: usize,
}

impl CounterTable {
    /// Makes a file with one counter for each name, all zero. A counter's id is its place in `names`. A
    /// name longer than 56 octets is cut.
    ///
    /// # Errors
    /// [`MemoryError`] when the kernel refuses or there are more than 4,096 names.
    pub fn create(names: &[&str]) -> Result<Self, MemoryError> {
        Self::with_room(names, 0)
    }

    /// The same with the rows of so many ports behind the counters, eight at most.
    ///
    /// # Errors
    /// As [`CounterTable::create`].
    pub fn with_monitors(
        names: &[impl AsRef<str>],
        ports: usize,
    ) -> Result<(Self, Vec<MonitorTable>), MemoryError> {
        let ports = ports.min(PORTS_MAX);
        let table = Self::with_room(names, ports * MONITOR_OCTETS)?;
        let at = entry(names.len());
        let monitor = |port| MonitorTable::new(Arc::clone(&table.pages), at + port * MONITOR_OCTETS);
        let monitors = (0..ports).map(monitor).collect();
        table.pages.store(offset_of!(CountersHeader, monitors), ports as u64);
        table.pages.store_release(offset_of!(CountersHeader, monitor_at), at as u64);
        Ok((table, monitors))
    }

    fn with_room(names: &[impl AsRef<str>], more: usize) -> Result<Self, MemoryError> {
        let kernel = |what| move |errno| MemoryError::Kernel { what, errno };
        if names.is_empty() || names.len() > COUNTERS_MAX {
            let slots = u32::try_from(names.len()).unwrap_or(u32::MAX);
            return Err(MemoryError::Shape { slots, unit_octets_max: 0 });
        }
        let octets = entry(names.len()) + more;
        let file = memfd::create("rota-counters", octets).map_err(kernel("make a memory file"))?;
        let pages = WritePages::map(&file, octets).map_err(kernel("map a memory file"))?;
        memfd::seal(&file, FINAL_SEALS).map_err(kernel("seal a memory file"))?;
        pages.read().prefault();
        for (id, name) in names.iter().enumerate() {
            let name = name.as_ref().as_bytes();
            let shown = &name[..name.len().min(COUNTER_NAME_OCTETS)];
            pages.copy_in(entry(id) + offset_of!(CounterEntry, name), shown);
        }
        pages.store(offset_of!(CountersHeader, version), LAYOUT_VERSION);
        pages.store(offset_of!(CountersHeader, count), names.len() as u64);
        pages.store_release(offset_of!(CountersHeader, magic), COUNTERS_MAGIC);
        Ok(Self { pages: Arc::new(pages), file: Arc::new(file), count: names.len() })
    }

    /// Adds to a counter.
    pub fn add(&self, id: usize, amount: u64) {
        self.pages.add(self.value(id), amount);
    }

    /// Sets a counter that is a level rather than a count.
    pub fn set(&self, id: usize, value: u64) {
        self.pages.store(self.value(id), value);
    }

    /// Raises a counter that keeps the largest value seen.
    pub fn raise(&self, id: usize, value: u64) {
        self.pages.raise(self.value(id), value);
    }

    /// The counter's value.
    pub fn get(&self, id: usize) -> u64 {
        self.pages.read().load(self.value(id))
    }

    /// The file to hand to a reader, closed for every writer but us.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn value(&self, id: usize) -> usize {
        assert!(id < self.count, "counter {id} of {}", self.count);
        entry(id)
    }
}

/// A reader of some node's counters.
pub struct CounterReader {
    pages: ReadPages,
    names: Vec<String>,
    /// Where the rows of the first port are; those of the others follow.
    monitor: usize,
    ports: usize,
}

impl CounterReader {
    /// Maps a counters file.
    ///
    /// # Errors
    /// [`MemoryError::NotOurs`] when it is none, [`MemoryError::Kernel`] when mapping fails.
    pub fn open(file: OwnedFd) -> Result<Self, MemoryError> {
        let kernel = |what| move |errno| MemoryError::Kernel { what, errno };
        let wanted = "a counters file";
        let octets = memfd::fixed_octets(&file).map_err(kernel("look at the counters file"))?;
        let largest = entry(COUNTERS_MAX) + PORTS_MAX * MONITOR_OCTETS;
        if !(size_of::<CountersHeader>()..=largest).contains(&octets) {
            return Err(MemoryError::NotOurs { found: "a file of another size", wanted });
        }
        let pages = ReadPages::map(&file, octets).map_err(kernel("map the counters file"))?;
        let magic = pages.load_acquire(offset_of!(CountersHeader, magic));
        if magic != COUNTERS_MAGIC || pages.load(offset_of!(CountersHeader, version)) != LAYOUT_VERSION {
            return Err(MemoryError::NotOurs { found: "another file or version", wanted });
        }
        let count = usize::try_from(pages.load(offset_of!(CountersHeader, count))).unwrap_or(usize::MAX);
        if count > COUNTERS_MAX || entry(count) > octets {
            return Err(MemoryError::NotOurs { found: "more counters than fit", wanted });
        }
        let names = (0..count).map(|id| name_at(&pages, id)).collect();
        let monitor = usize::try_from(pages.load(offset_of!(CountersHeader, monitor_at))).unwrap_or(0);
        let ports = usize::try_from(pages.load(offset_of!(CountersHeader, monitors))).unwrap_or(usize::MAX);
        let ports = if monitor == 0 { 0 } else { ports };
        let fits =
            ports <= PORTS_MAX && monitor == entry(count) && monitor + ports * MONITOR_OCTETS <= octets;
        if monitor != 0 && !fits {
            return Err(MemoryError::NotOurs { found: "rows that do not fit", wanted });
        }
        Ok(Self { pages, names, monitor, ports })
    }

    /// All counters, in the node's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.names.iter().enumerate().map(|(id, name)| (name.as_str(), self.pages.load(entry(id))))
    }

    /// Ports of the node, each with rows of its own; those that are gone are among them.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// All rows of a port, of one moment, into `into`, whose room is used again. False when there are none,
    /// none were written yet, or the node ended while it wrote them; `into` then holds nothing of worth.
    pub fn monitor(&self, port: usize, into: &mut Monitor) -> bool {
        port < self.ports && monitor::read(&self.pages, self.monitor + port * MONITOR_OCTETS, into)
    }

    /// The counter of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|&(known, _)| known == name).map(|(_, value)| value)
    }
}

fn entry(id: usize) -> usize {
    size_of::<CountersHeader>() + id * size_of::<CounterEntry>()
}

fn name_at(pages: &ReadPages, id: usize) -> String {
    let mut name = [0; COUNTER_NAME_OCTETS];
    pages.copy_out(entry(id) + offset_of!(CounterEntry, name), &mut name);
    let length = name.iter().position(|&octet| octet == 0).unwrap_or(name.len());
    // Names go to terminals: nothing there may move the cursor.
    let shown = String::from_utf8_lossy(&name[..length]);
    shown.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_names_and_values() {
        let long = "x".repeat(80);
        let table = CounterTable::create(&["hops", "turn_longest_ns", &long]).unwrap();
        let reader = CounterReader::open(table.descriptor().try_clone_to_owned().unwrap()).unwrap();
        table.add(0, 3);
        table.add(0, 4);
        table.raise(1, 9);
        table.raise(1, 5);
        table.set(2, 1);
        assert_eq!(reader.get("hops"), Some(7));
        assert_eq!(reader.get("turn_longest_ns"), Some(9));
        assert_eq!(reader.iter().count(), 3);
        assert_eq!(reader.iter().last(), Some((&long[..56], 1)));
        assert_eq!(reader.get("nothing"), None);
    }

    #[test]
    fn another_file_is_refused() {
        let file = memfd::create("other", 4096).unwrap();
        let refused = CounterReader::open(file.try_clone().unwrap());
        assert!(matches!(refused, Err(MemoryError::Kernel { .. })), "an unsealed file is not mapped");
        memfd::seal(&file, memfd::SIZE_SEALS).unwrap();
        assert!(matches!(CounterReader::open(file), Err(MemoryError::NotOurs { .. })));
        let vast = memfd::create("vast", 1 << 40).unwrap();
        memfd::seal(&vast, memfd::SIZE_SEALS).unwrap();
        assert!(matches!(CounterReader::open(vast), Err(MemoryError::NotOurs { .. })), "nor brought in");
        let (pipe, _other) = nix::unistd::pipe().unwrap();
        assert!(CounterReader::open(pipe).is_err());
    }

    #[test]
    fn nobody_else_can_write_the_counters() {
        let table = CounterTable::create(&["hops"]).unwrap();
        let file = table.descriptor().try_clone_to_owned().unwrap();
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let opened = std::fs::File::options().write(true).open(again).unwrap();
        assert!(nix::unistd::write(&opened, b"x").is_err(), "neither by writing");
        assert!(WritePages::map(&opened, 64).is_err(), "nor by mapping");
    }
}
