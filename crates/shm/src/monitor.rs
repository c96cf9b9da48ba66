//! The view of a monitor of the whole segment of a port, behind the named counters in the same file: one row
//! of the segment, one of each station, one of each end of a channel. Each port has a block of them. One
//! writer; a reader gets all rows of one port and one moment or none (a sequence word is odd while they are
//! written), and never makes the writer wait.

use rota_contract::NodeId;
use rota_wire::{ChannelReport, Load, ReportHead};
use std::sync::Arc;

use crate::layout::INTERFACE_OCTETS;
use crate::raw::{ReadPages, WritePages};

/// Most stations in the table.
pub const STATION_ROWS: usize = 256;
/// Most ends of channels in the table.
pub const CHANNEL_ROWS: usize = 512;
/// Most stations that do not fit in the table.
pub const MISMATCH_ROWS: usize = 32;
/// Version of the rows.
const MONITOR_VERSION: u64 = 6;
/// Sequence, version and two reserved words.
const HEAD_OCTETS: usize = 32;
/// A writer that died inside its write must not hold a reader for ever.
const TRIES: usize = 1_000;

/// Values that are a fixed number of words.
trait Words: Sized {
    const COUNT: usize;
    fn put(&self, put: &mut impl FnMut(u64));
    fn take(take: &mut impl FnMut() -> u64) -> Self;
}

impl Words for u64 {
    const COUNT: usize = 1;
    fn put(&self, put: &mut impl FnMut(u64)) {
        put(*self);
    }
    fn take(take: &mut impl FnMut() -> u64) -> Self {
        take()
    }
}

impl Words for NodeId {
    const COUNT: usize = 1;
    fn put(&self, put: &mut impl FnMut(u64)) {
        put(self.0);
    }
    fn take(take: &mut impl FnMut() -> u64) -> Self {
        Self(take())
    }
}

impl<T: Words, const N: usize> Words for [T; N] {
    const COUNT: usize = N * T::COUNT;
    fn put(&self, put: &mut impl FnMut(u64)) {
        self.iter().for_each(|value| value.put(put));
    }
    fn take(take: &mut impl FnMut() -> u64) -> Self {
        std::array::from_fn(|_| T::take(take))
    }
}

macro_rules! row {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $kind,)*
        }

        impl Words for $name {
            const COUNT: usize = 0 $(+ <$kind as Words>::COUNT)*;
            fn put(&self, put: &mut impl FnMut(u64)) {
                $(self.$field.put(put);)*
            }
            fn take(take: &mut impl FnMut() -> u64) -> Self {
                Self { $($field: <$kind as Words>::take(take),)* }
            }
        }
    };
}

/// Values that are kept as their octets on the wire, the last word filled with zeros. A reader takes octets
/// of two moments for a value without counts, and throws it away with all else.
macro_rules! as_on_the_wire {
    ($name:ident) => {
        impl Words for $name {
            const COUNT: usize = Self::OCTETS.div_ceil(8);
            fn put(&self, put: &mut impl FnMut(u64)) {
                let mut octets = [0; Self::OCTETS.next_multiple_of(8)];
                self.emit(&mut octets);
                octets.as_chunks().0.iter().for_each(|word| put(u64::from_ne_bytes(*word)));
            }
            fn take(take: &mut impl FnMut() -> u64) -> Self {
                let mut octets = [0; Self::OCTETS.next_multiple_of(8)];
                octets.as_chunks_mut().0.iter_mut().for_each(|word| *word = take().to_ne_bytes());
                Self::parse(&octets[..Self::OCTETS]).unwrap_or_default()
            }
        }
    };
}

as_on_the_wire!(ReportHead);
as_on_the_wire!(ChannelReport);

impl Words for Load {
    const COUNT: usize = 2;
    fn put(&self, put: &mut impl FnMut(u64)) {
        [self.frames, self.octets].put(put);
    }
    fn take(take: &mut impl FnMut() -> u64) -> Self {
        let [frames, octets] = Words::take(take);
        Self { frames, octets }
    }
}

row! {
    /// The segment, as this station sees it.
    SegmentRow {
        /// When this was written, monotonic ns.
        written_ns: u64,
        /// The port's interface, UTF-8 padded with zeros, as octets of native words.
        interface: [u64; INTERFACE_OCTETS / 8],
        /// This station's number, 0 while it has none.
        station: u64,
        /// 0 joining, 1 plain Ethernet, 2 switching, 3 token, 4 paced, [`SegmentRow::LOST`].
        mode: u64,
        /// The cycle.
        trt_ns: u64,
        /// The link.
        link_bps: u64,
        /// What a frame costs on the wire beyond its octets: preamble, check sequence, gap.
        frame_overhead_octets: u64,
        /// Reserved in each cycle by all stations.
        reserved_ns: u64,
        /// What could be reserved in each cycle, ordinary traffic's share and hops left out.
        capacity_ns: u64,
        /// Slots in the token.
        slots: u64,
        /// The newest whole cycle, from beginning to beginning.
        rotation_ns: u64,
        /// The longest ever.
        rotation_longest_ns: u64,
        /// Cycles by tenths of the target; the last place holds all longer ones.
        rotation_tenths: [u64; 16],
        /// The newest idle round of the token, and how many hops it had.
        round: [u64; 2],
        /// The death timer in force, ns; its reason: 0 configured, 1 no news, 2 a station is not watched long
        /// enough, 3 a stall; the stall, ns; the station of the stall or the watch, 0 for none.
        timers: [u64; 4],
        /// Heard and proven here: token, real-time, ordinary, control, LLC.
        heard: [Load; 5],
        /// Stations that are refused a place, or refuse this one.
        refused: u64,
        /// How many station rows follow.
        stations: u64,
        /// How many channel rows follow.
        channels: u64,
        /// How many rows of stations that do not fit follow.
        mismatches: u64,
    }
}

row! {
    /// A station.
    StationRow {
        /// Its number.
        station: u64,
        /// See [`StationRow::HERE`] and the others.
        flags: u64,
        /// Its address in the low 48 bits.
        mac: u64,
        /// Its name, UTF-8 padded with zeros, as octets of native words.
        name: [u64; 4],
        /// When its report arrived, monotonic ns of the reader's host; 0 for never.
        heard_ns: u64,
        /// Reserved in each cycle.
        reserved_ns: u64,
        /// Its slots in the token.
        slots: u64,
        /// Heard of it here.
        received: Load,
        /// Its node address of link control; 0 for none.
        llc_address: u64,
        /// Its node's id.
        node_id: NodeId,
        /// Its newest report; of this station what it would report now.
        said: ReportHead,
    }
}

row! {
    /// One end of a channel, as its station told it.
    ChannelRow {
        /// Whose end.
        station: u64,
        /// When it was told, monotonic ns of the reader's host.
        told_ns: u64,
        /// What was told, the number of the other end as it is now.
        said: ChannelReport,
    }
}

row! {
    /// A station that does not fit here, and why; see [`rota_contract::Mismatch`].
    MismatchRow {
        /// Its address in the low 48 bits.
        mac: u64,
        /// Its name in the form of a station's; zeros without a proven name.
        name: [u64; 4],
        /// The mismatch: a code of [`rota_contract::Mismatch`].
        kind: u64,
        /// This station's value.
        ours: u64,
        /// Its value.
        theirs: u64,
        /// When it was last heard, monotonic ns of the reader's host.
        heard_ns: u64,
        /// Of two stations that cannot be told apart: how many further ones are like them.
        more: u64,
    }
}

impl SegmentRow {
    /// The mode of a port whose interface is gone.
    pub const LOST: u64 = 5;

    /// The name of an interface as words; a longer one is cut.
    pub fn interface_words(name: &str) -> [u64; INTERFACE_OCTETS / 8] {
        words_of(name)
    }

    /// The port's interface, fit for a terminal.
    pub fn interface(&self) -> String {
        text_of(&self.interface)
    }
}

/// Text as words, padded with zeros; what does not fit is cut.
fn words_of<const N: usize>(text: &str) -> [u64; N] {
    let mut octets = text.bytes();
    std::array::from_fn(|_| u64::from_ne_bytes(std::array::from_fn(|_| octets.next().unwrap_or(0))))
}

/// The text that words hold, fit for a terminal.
fn text_of(words: &[u64]) -> String {
    let octets: Vec<u8> =
        words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|octet| *octet != 0).collect();
    let shown = String::from_utf8_lossy(&octets);
    shown.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

impl StationRow {
    /// The station whose file this is.
    pub const HERE: u64 = 1;
    /// It takes part.
    pub const ALIVE: u64 = 2;
    /// It has reported.
    pub const REPORTED: u64 = 4;
    /// It keeps the strict period.
    pub const PERIODIC: u64 = 8;
    /// A stranger uses its address.
    pub const CONTESTED: u64 = 16;
    /// Frames to its address go astray.
    pub const ASTRAY: u64 = 32;

    /// True and the sentence if frames to this station's address go astray, false and the sentence if a
    /// stranger uses it.
    pub fn contested(&self, address: impl core::fmt::Display, name: &str) -> Option<(bool, String)> {
        let astray = self.flags & Self::ASTRAY != 0;
        let is_used = astray || self.flags & Self::CONTESTED != 0;
        is_used.then(|| (astray, Self::contested_sentence(address, name, astray)))
    }

    /// A station's address is in use elsewhere, or frames to it go astray. The name may be empty.
    pub fn contested_sentence(address: impl core::fmt::Display, name: &str, astray: bool) -> String {
        let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
        if astray {
            return format!(
                "frames to the address{of} ({address}) go astray: a device that no station hears uses it, or \
                 its port of the switch drops frames; the switch's address table shows the port"
            );
        }
        format!("the address{of} ({address}) is used by a stranger")
    }

    /// A name as words; what is longer than 32 octets is cut.
    pub fn name_words(name: &str) -> [u64; 4] {
        words_of(name)
    }

    /// The name, fit for a terminal.
    pub fn name(&self) -> String {
        Self::name_of(&self.name)
    }

    /// The name that words hold, fit for a terminal.
    pub(crate) fn name_of(words: &[u64; 4]) -> String {
        text_of(words)
    }
}

/// Everything of one port and one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitor {
    /// The segment.
    pub segment: SegmentRow,
    /// Its stations.
    pub stations: Vec<StationRow>,
    /// The ends of its channels.
    pub channels: Vec<ChannelRow>,
    /// Stations that do not fit.
    pub mismatches: Vec<MismatchRow>,
}

const STATIONS_AT: usize = HEAD_OCTETS + SegmentRow::COUNT * 8;
const CHANNELS_AT: usize = STATIONS_AT + STATION_ROWS * StationRow::COUNT * 8;
const MISMATCHES_AT: usize = CHANNELS_AT + CHANNEL_ROWS * ChannelRow::COUNT * 8;
/// Octets of the block of a port.
pub const MONITOR_OCTETS: usize = MISMATCHES_AT + MISMATCH_ROWS * MismatchRow::COUNT * 8;

/// The node's hand on the rows. Not to be cloned: rows have one writing thread.
pub struct MonitorTable {
    pages: Arc<WritePages>,
    at: usize,
    sequence: u64,
}

/// The rows while they are being written; readers wait until this is dropped.
pub struct MonitorWrite<'a>(&'a mut MonitorTable);

impl MonitorTable {
    pub(crate) fn new(pages: Arc<WritePages>, at: usize) -> Self {
        pages.store(at + 8, MONITOR_VERSION);
        Self { pages, at, sequence: 0 }
    }

    /// Begins to write. Rows that are not written keep what they say.
    pub fn write(&mut self) -> MonitorWrite<'_> {
        self.sequence = self.sequence.wrapping_add(1);
        self.pages.store(self.at, self.sequence);
        self.pages.write_barrier();
        MonitorWrite(self)
    }
}

impl MonitorWrite<'_> {
    /// The segment; says how many of the other rows count.
    pub fn segment(&mut self, row: &SegmentRow) {
        self.put(HEAD_OCTETS, row);
    }

    /// A station's row; one beyond the table is left out.
    pub fn station(&mut self, index: usize, row: &StationRow) {
        if index < STATION_ROWS {
            self.put(STATIONS_AT + index * StationRow::COUNT * 8, row);
        }
    }

    /// A channel's row; one beyond the table is left out.
    pub fn channel(&mut self, index: usize, row: &ChannelRow) {
        if index < CHANNEL_ROWS {
            self.put(CHANNELS_AT + index * ChannelRow::COUNT * 8, row);
        }
    }

    /// A station that does not fit; one beyond the table is left out.
    pub fn mismatch(&mut self, index: usize, row: &MismatchRow) {
        if index < MISMATCH_ROWS {
            self.put(MISMATCHES_AT + index * MismatchRow::COUNT * 8, row);
        }
    }

    fn put(&mut self, at: usize, row: &impl Words) {
        let mut at = self.0.at + at;
        row.put(&mut |word| {
            self.0.pages.store(at, word);
            at += 8;
        });
    }
}

impl Drop for MonitorWrite<'_> {
    fn drop(&mut self) {
        let table = &mut *self.0;
        table.sequence = table.sequence.wrapping_add(1);
        table.pages.store_release(table.at, table.sequence);
    }
}

/// All rows of one moment into `into`, whose room is used again. False when the file has none (or its writer
/// died while writing): nothing in `into` is then worth anything.
pub(crate) fn read(pages: &ReadPages, at: usize, into: &mut Monitor) -> bool {
    if pages.load(at + 8) != MONITOR_VERSION {
        return false;
    }
    for _ in 0..TRIES {
        let before = pages.load_acquire(at);
        if before != 0 && before.is_multiple_of(2) {
            copy(pages, at, into);
            pages.read_barrier();
            if pages.load(at) == before {
                return true;
            }
        }
        std::thread::yield_now();
    }
    false
}

fn copy(pages: &ReadPages, at: usize, into: &mut Monitor) {
    into.segment = row_at(pages, at + HEAD_OCTETS);
    // A row that is read while it is written may say anything: it is thrown away, but must not be followed.
    let rows = |said: u64, most: usize| usize::try_from(said).unwrap_or(most).min(most);
    let (stations, channels) = (into.segment.stations, into.segment.channels);
    into.mismatches.clear();
    into.mismatches.extend(
        (0..rows(into.segment.mismatches, MISMATCH_ROWS))
            .map(|index| row_at::<MismatchRow>(pages, at + MISMATCHES_AT + index * MismatchRow::COUNT * 8)),
    );
    into.stations.clear();
    into.stations.extend(
        (0..rows(stations, STATION_ROWS))
            .map(|index| row_at::<StationRow>(pages, at + STATIONS_AT + index * StationRow::COUNT * 8)),
    );
    into.channels.clear();
    into.channels.extend(
        (0..rows(channels, CHANNEL_ROWS))
            .map(|index| row_at::<ChannelRow>(pages, at + CHANNELS_AT + index * ChannelRow::COUNT * 8)),
    );
}

fn row_at<R: Words>(pages: &ReadPages, mut at: usize) -> R {
    R::take(&mut || {
        let word = pages.load(at);
        at += 8;
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{CounterReader, CounterTable};

    fn both() -> (MonitorTable, CounterReader) {
        let (mut monitors, reader) = ports(1);
        (monitors.remove(0), reader)
    }

    fn ports(ports: usize) -> (Vec<MonitorTable>, CounterReader) {
        let (table, monitors) = CounterTable::with_monitors(&["hops", "turns"], ports).unwrap();
        let reader = CounterReader::open(table.descriptor().try_clone_to_owned().unwrap()).unwrap();
        (monitors, reader)
    }

    fn station(number: u64) -> StationRow {
        let mut row = StationRow { station: number, flags: StationRow::ALIVE, ..StationRow::default() };
        row.name = StationRow::name_words(&format!("n{number}"));
        row.said.levels[7] = Load { frames: number, octets: 60 * number };
        row
    }

    #[test]
    fn a_reader_sees_the_rows_that_were_written() {
        let (mut table, reader) = both();
        let mut seen = Monitor::default();
        assert!(!reader.monitor(0, &mut seen), "nothing has been written yet");
        let mut write = table.write();
        let said = ChannelReport {
            peer_station: 9,
            delay_recent_ns: 7,
            one_clock: true,
            ..ChannelReport::default()
        };
        write.segment(&SegmentRow {
            stations: 2,
            channels: 1,
            mode: 3,
            mismatches: 2,
            ..SegmentRow::default()
        });
        write.station(0, &station(4));
        write.station(1, &station(9));
        write.channel(0, &ChannelRow { station: 4, told_ns: 1, said });
        write.station(STATION_ROWS, &station(1));
        let other = |mac| MismatchRow { mac, kind: 3, ours: 1, theirs: 2, ..MismatchRow::default() };
        (0..=MISMATCH_ROWS).for_each(|at| write.mismatch(at, &other(at as u64)));
        drop(write);
        assert!(reader.monitor(0, &mut seen));
        assert_eq!(seen.stations, [station(4), station(9)]);
        assert_eq!(seen.stations[1].name(), "n9");
        assert_eq!((seen.channels[0].said, seen.segment.mode), (said, 3));
        assert_eq!(seen.mismatches, [0, 1].map(other));
        assert_eq!(reader.iter().count(), 2, "the named counters are what they were");
    }

    #[test]
    fn each_port_has_rows_of_its_own() {
        let (mut tables, reader) = ports(2);
        let row = |interface, mode| SegmentRow {
            interface: SegmentRow::interface_words(interface),
            mode,
            ..SegmentRow::default()
        };
        tables[0].write().segment(&row("eth0", 1));
        let mut seen = Monitor::default();
        assert!(reader.monitor(0, &mut seen) && !reader.monitor(1, &mut seen), "only one is written");
        tables[1].write().segment(&row("an-interface-of-17", SegmentRow::LOST));
        assert!(reader.monitor(1, &mut seen));
        assert_eq!((seen.segment.interface().as_str(), seen.segment.mode), ("an-interface-of-", 5));
        assert!(reader.monitor(0, &mut seen));
        assert_eq!((seen.segment.interface().as_str(), seen.segment.mode), ("eth0", 1));
        assert!(reader.ports() == 2 && !reader.monitor(2, &mut seen));
    }

    #[test]
    fn rows_of_two_moments_are_never_mixed() {
        let (mut table, reader) = both();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let writer = std::thread::spawn(move || {
            for moment in 1.. {
                let mut write = table.write();
                write.segment(&SegmentRow { stations: 8, written_ns: moment, ..SegmentRow::default() });
                (0..8).for_each(|at| write.station(at, &station(moment)));
                drop(write);
                if ended.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
        let (mut seen, mut moments) = (Monitor::default(), std::collections::BTreeSet::new());
        for _ in 0..2_000 {
            if reader.monitor(0, &mut seen) {
                let moment = seen.segment.written_ns;
                assert!(seen.stations.iter().all(|row| *row == station(moment)), "{moment}");
                moments.insert(moment);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap();
        assert!(!moments.is_empty());
    }

    #[test]
    fn a_writer_that_died_while_writing_holds_no_reader() {
        let (mut table, reader) = both();
        let write = table.write();
        let _held = std::mem::ManuallyDrop::new(write);
        assert!(!reader.monitor(0, &mut Monitor::default()));
    }

    #[test]
    fn counts_of_rows_that_lie_are_not_followed() {
        let (mut table, reader) = both();
        let row = SegmentRow { stations: u64::MAX, channels: u64::MAX, ..SegmentRow::default() };
        table.write().segment(&row);
        let mut seen = Monitor::default();
        assert!(reader.monitor(0, &mut seen));
        assert_eq!((seen.stations.len(), seen.channels.len()), (STATION_ROWS, CHANNEL_ROWS));
    }
}
