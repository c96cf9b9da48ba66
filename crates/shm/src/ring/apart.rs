//! Frames of one channel in a queue that the kernel fills, read by the channel's program: the data tag, the
//! order and the counts, which the node reads from the page that both write.

use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rota_units::{Instant, Span};
use rota_wire::{ChannelKey, FrameView, PayloadKind, RtipHeader, UnitHeader, parse_fragment, verify_data};

use super::rx_reader::RxCounts;
use super::rx_writer::RingFragment;
use super::{NextUnit, RxUnit};
use crate::layout::ReaderHeader;
use crate::memory::MemoryError;
use crate::raw::{KernelRing, ReadPages, WritePages};

/// Octets of a record before the frame: when it came (CLOCK_MONOTONIC, ns), its octets with both tags, and
/// the number of its unit modulo 2^32.
pub const FRAME_HEAD_OCTETS: usize = 16;
/// The numbers that a program states of its channel.
pub const STATED: usize = 12;

const SEQUENCE: usize = offset_of!(ReaderHeader, stated_sequence);
const VALUES: usize = offset_of!(ReaderHeader, stated);
/// Tries to read the numbers while the program writes them.
const TRIES: usize = 4;

/// How long a unit took, from its arrival and its sender's schedule; negative where it came before that.
pub type Delays = Box<dyn FnMut(Instant, u64) -> i128 + Send>;

/// What the node says of a queue.
pub struct ApartShape {
    /// Of the ring.
    pub ring_octets: u32,
    /// Where fragments begin in their unit: each at a multiple of this.
    pub fragment_octets: u32,
    /// The key of the channel's data tags.
    pub key: ChannelKey,
    /// By which a unit is late.
    pub bound: Span,
    /// How late units are.
    pub delays: Delays,
}

/// The queue, from the program's side.
pub struct Apart {
    ring: KernelRing,
    descriptor: OwnedFd,
    key: ChannelKey,
    fragment_octets: u32,
    numbers: Numbers,
    pages: Arc<WritePages>,
    sequence: u64,
    stated: Stated,
    /// As the page has it.
    told: Stated,
    bound: Span,
    delays: Delays,
    /// Frames whose data tag was wrong.
    unproven: u64,
}

/// The numbers of units, of which records have the lower half, and the newest frame.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    last: u64,
    newest: Option<(u64, u16)>,
    /// The sender's counter: it rises with each frame, so that a frame that is played again is seen.
    counter: u64,
    /// Units left out, and their number modulo 2^16 as the newest frame has it.
    left_out: u64,
    left_out_stated: u16,
}

impl Numbers {
    /// The number of the unit of a frame that is newer than all before. The kernel has followed the numbers
    /// of frames for which the ring had no room, too, so it states more of them than the frame does.
    fn place(&mut self, counter: u64, stated: u32, unit: &UnitHeader) -> Option<u64> {
        let step = stated.wrapping_sub(self.last as u32).cast_signed();
        let number = self.last.checked_add_signed(step.into())?;
        let place = (number, unit.fragment);
        if counter <= self.counter || self.newest.is_some_and(|newest| place <= newest) {
            return None;
        }
        (self.last, self.newest, self.counter) = (number, Some(place), counter);
        self.left_out += u64::from(unit.left_out.wrapping_sub(self.left_out_stated));
        self.left_out_stated = unit.left_out;
        Some(number)
    }
}

/// The program's counts of its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// Units that came whole.
    pub units: u64,
    /// Units of which nothing came.
    pub lost: u64,
    /// Units that came in part, and are over.
    pub incomplete: u64,
    /// Units behind their bound.
    pub late: u64,
    /// By how much the latest one.
    pub latest_by_ns: u64,
    /// Frames.
    pub fragments: u64,
    /// Octets of units.
    pub octets: u64,
    /// The number behind the newest unit of which something came.
    pub next: u64,
    /// Octets that this one lacks and may still get.
    pub missing: u64,
    /// The longest delay.
    pub delay_max_ns: u64,
    /// That of the newest unit.
    pub delay_newest_ns: u64,
    /// Units that the sending program left out, as the newest frame states.
    pub left_out: u64,
}

impl Stated {
    fn values(&self) -> [u64; STATED] {
        let Self { units, lost, incomplete, late, latest_by_ns, fragments, octets, .. } = *self;
        let Self { next, missing, delay_max_ns, delay_newest_ns, left_out, .. } = *self;
        [
            units,
            lost,
            incomplete,
            late,
            latest_by_ns,
            fragments,
            octets,
            next,
            missing,
            delay_max_ns,
            delay_newest_ns,
            left_out,
        ]
    }

    fn of(values: [u64; STATED]) -> Self {
        let [units, lost, incomplete, late, latest_by_ns, fragments, octets, next, ..] = values;
        let [.., missing, longest, newest, left_out] = values;
        Self {
            units,
            lost,
            incomplete,
            late,
            latest_by_ns,
            fragments,
            octets,
            next,
            missing,
            delay_max_ns: longest,
            delay_newest_ns: newest,
            left_out,
        }
    }

    /// What a program has stated in this page; `None` while it writes there, or has never done so.
    pub(super) fn read(pages: &ReadPages) -> Option<Self> {
        for _ in 0..TRIES {
            let sequence = pages.load_acquire(SEQUENCE);
            if sequence == 0 {
                return None;
            }
            if sequence.is_multiple_of(2) {
                let values = std::array::from_fn(|k| pages.load(VALUES + 8 * k));
                pages.read_barrier();
                if pages.load(SEQUENCE) == sequence {
                    return Some(Self::of(values));
                }
            }
        }
        None
    }
}

impl Apart {
    pub(crate) fn open(
        descriptor: OwnedFd,
        pages: Arc<WritePages>,
        shape: ApartShape,
    ) -> Result<Self, MemoryError> {
        let ApartShape { ring_octets, fragment_octets, key, bound, delays } = shape;
        let failed = |errno| MemoryError::Kernel { what: "map a receive queue", errno };
        let ring = KernelRing::map(&descriptor, ring_octets as usize).map_err(failed)?;
        Ok(Self {
            ring,
            descriptor,
            key,
            fragment_octets,
            numbers: Numbers::default(),
            pages,
            sequence: 0,
            stated: Stated::default(),
            told: Stated::default(),
            bound,
            delays,
            unproven: 0,
        })
    }

    /// The next fragment, whose octets are put into `payload`. A frame of another channel, or an old one, is
    /// counted and passed over.
    pub(super) fn fetch(
        &mut self,
        payload: &mut [u8],
        counts: &mut RxCounts,
    ) -> Option<(RingFragment, usize)> {
        loop {
            let record = self.ring.next().ok()??;
            let read = read(record, &self.key, self.fragment_octets, &mut self.numbers, payload);
            self.ring.release();
            match read {
                Ok((fragment, octets)) => {
                    self.came(octets);
                    self.stated.left_out = self.numbers.left_out;
                    return Some((fragment, octets));
                }
                Err(Wrong::Tag) => {
                    self.unproven += 1;
                    counts.bad_fragments += 1;
                }
                Err(Wrong::Form) => counts.bad_fragments += 1,
                Err(Wrong::Old) => counts.stale_fragments += 1,
            }
        }
    }

    /// A fragment has come, also one that came by the node.
    pub(super) fn came(&mut self, octets: usize) {
        self.stated.fragments += 1;
        self.stated.octets = self.stated.octets.saturating_add(octets as u64);
    }

    /// A unit leaves for the program: it is counted as the node counts those that come by it. The bound is
    /// that of a contract that has changed, or 0.
    pub(super) fn count(&mut self, next: &NextUnit, changed: Span) {
        if changed > Span::ZERO {
            self.bound = changed;
        }
        let (unit, stated) = (&next.unit, &mut self.stated);
        stated.lost = stated.lost.saturating_add(next.lost_before);
        stated.next = unit.number.saturating_add(1);
        stated.missing = 0;
        if unit.missing_octets > 0 {
            stated.incomplete += 1;
            return;
        }
        stated.units += 1;
        let Some(arrived) = unit.arrived_at else { return };
        let delay = (self.delays)(arrived, unit.schedule_ns).max(0);
        let delay = u64::try_from(delay).unwrap_or(u64::MAX);
        stated.delay_newest_ns = delay;
        stated.delay_max_ns = stated.delay_max_ns.max(delay);
        let over = delay.saturating_sub(self.bound.as_nanos());
        if self.bound > Span::ZERO && over > 0 {
            stated.late += 1;
            stated.latest_by_ns = stated.latest_by_ns.max(over);
        }
    }

    /// Tells the node how far this has come; the unit that is being put together is the newest.
    pub(super) fn tell(&mut self, begun: Option<RxUnit>) {
        if let Some(unit) = begun {
            self.stated.next = unit.number.saturating_add(1);
            self.stated.missing = unit.missing_octets.into();
        }
        if self.sequence > 0 && self.told == self.stated {
            return;
        }
        self.told = self.stated;
        let pages = &self.pages;
        pages.store(SEQUENCE, self.sequence + 1);
        pages.write_barrier();
        for (k, value) in self.stated.values().into_iter().enumerate() {
            pages.store(VALUES + 8 * k, value);
        }
        self.sequence += 2;
        pages.store_release(SEQUENCE, self.sequence);
    }

    pub(super) fn has_next(&self) -> bool {
        self.ring.waiting() > 0
    }

    pub(super) fn stated(&self) -> Stated {
        self.stated
    }

    pub(super) fn unproven(&self) -> u64 {
        self.unproven
    }

    /// Sleeps until a frame waits, for `timeout` at most. The kernel wakes nobody else.
    pub(super) fn sleep(&mut self, timeout: Span) {
        if !matches!(self.ring.fall_asleep(), Ok(false)) {
            return;
        }
        // Whole milliseconds, rounded up, so that a short timeout is not a busy loop.
        let millis = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
        let mut wanted = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        let _: Result<_, Errno> =
            poll(&mut wanted, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
        self.ring.wake_up();
    }
}

/// Why a record is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// The data tag.
    Tag,
    /// It is no frame, or holds no fragment.
    Form,
    /// It is not newer than all before.
    Old,
}

/// Reads a record: the fragment that it holds, and how many octets of `payload` that fills.
fn read(
    record: &[u8],
    key: &ChannelKey,
    fragment_octets: u32,
    numbers: &mut Numbers,
    payload: &mut [u8],
) -> Result<(RingFragment, usize), Wrong> {
    let (head, rest) = record.split_first_chunk::<FRAME_HEAD_OCTETS>().ok_or(Wrong::Form)?;
    let [a, b, c, d, e, f, g, h, o0, o1, o2, o3, n0, n1, n2, n3] = *head;
    let arrived = Instant::from_nanos(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    let octets = u32::from_ne_bytes([o0, o1, o2, o3]) as usize;
    let frame = rest.get(..octets).ok_or(Wrong::Form)?;
    let ether_type = frame.get(12..14).ok_or(Wrong::Form)?;
    let ether_type = u16::from_be_bytes([ether_type[0], ether_type[1]]);
    let view = FrameView::parse(frame, ether_type).map_err(|_| Wrong::Form)?;
    if !verify_data(&view, key) {
        return Err(Wrong::Tag);
    }
    // Under the channel's key its frames have one of the two forms.
    let is_packet = view.header().payload == PayloadKind::Rtip;
    let parsed = match is_packet {
        true => RtipHeader::parse(view.body()).and_then(|(_, packet)| parse_fragment(packet)),
        false => UnitHeader::parse(view.body()),
    };
    let (unit, fragment) = parsed.map_err(|_| Wrong::Form)?;
    if is_packet && fragment.len() > fragment_octets as usize {
        return Err(Wrong::Form);
    }
    let place = payload.get_mut(..fragment.len()).ok_or(Wrong::Form)?;
    let offset = u32::from(unit.fragment).checked_mul(fragment_octets).ok_or(Wrong::Form)?;
    let stated = u32::from_ne_bytes([n0, n1, n2, n3]);
    if stated as u16 != unit.number {
        return Err(Wrong::Form);
    }
    let number = numbers.place(view.header().seq, stated, &unit).ok_or(Wrong::Old)?;
    place.copy_from_slice(fragment);
    let descriptor = RingFragment {
        number,
        fragment: unit.fragment,
        last: unit.last,
        unit_octets: unit.unit_octets,
        offset,
        schedule_ns: unit.schedule_ns,
        arrived_at: Some(arrived),
        dequeued_at: arrived,
        late: false,
    };
    Ok((descriptor, fragment.len()))
}

/// Any octets as a record of a queue: for a fuzzer.
pub(crate) fn fuzz_record(data: &[u8]) {
    let (key, mut room) = (ChannelKey::new([7; 32]), [0; 2_048]);
    if let Ok((fragment, octets)) = read(data, &key, 1_436, &mut Numbers::default(), &mut room) {
        assert!(octets <= room.len() && u64::from(fragment.unit_octets) >= octets as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RxWriter;
    use super::*;
    use crate::board::Board;
    use crate::memory::{ClientSink, NodeSink, SinkShape, open_sink_with};
    use crate::raw::Waited;
    use rota_wire::{
        ChannelName, DEFAULT_ETHERTYPE, Generation, Key, Kind, LinkHeader, MacAddr, PayloadKind, emit_frame,
    };

    const NAME: ChannelName = ChannelName { incarnation: 9, payload: PayloadKind::Unit, label: 5 };

    /// The record of a frame as the kernel writes it.
    fn record(counter: u64, unit: UnitHeader, data: &[u8], key: &Key) -> Vec<u8> {
        let mut frame = vec![0; 200];
        UnitHeader { label: NAME.label, unit_octets: 4, ..unit }.emit(&mut frame[42..]);
        frame[62..62 + data.len()].copy_from_slice(data);
        let header = LinkHeader {
            kind: Kind::Data,
            key_epoch: 0,
            payload: NAME.payload,
            source: 2,
            segment: 1,
            incarnation: NAME.incarnation,
            generation: Generation::default(),
            seq: counter,
        };
        let (to, from) = (MacAddr([2; 6]), MacAddr([4; 6]));
        let octets = emit_frame(&mut frame, to, from, DEFAULT_ETHERTYPE, &header, 20 + data.len(), key);
        let mut record = 77_u64.to_ne_bytes().to_vec();
        record.extend((octets as u32).to_ne_bytes());
        record.extend(u32::from(unit.number).to_ne_bytes());
        record.extend(&frame[..octets]);
        record
    }

    fn unit(number: u16, fragment: u16) -> UnitHeader {
        UnitHeader { number, fragment, last: fragment == 1, schedule_ns: 3, ..UnitHeader::default() }
    }

    #[test]
    fn what_lies_or_comes_again_is_no_fragment() {
        let key = Key::new([1; 32]);
        let own = key.channel_key(NAME);
        let (mut numbers, mut room) = (Numbers::default(), [0; 100]);
        let mut take = |record: &[u8]| read(record, &own, 2, &mut numbers, &mut room);
        let first = record(10, unit(0xffff, 0), b"ab", &key);
        let mut early = record(16, unit(0xffff, 0), b"ab", &key);
        early[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        let mut wrong = first.clone();
        *wrong.last_mut().unwrap() ^= 1;
        assert_eq!(take(&wrong), Err(Wrong::Tag));
        assert_eq!(take(&record(10, unit(0, 0), b"ab", &Key::new([2; 32]))), Err(Wrong::Tag), "another ring");
        assert_eq!(take(&record(11, unit(0, 0), b"abcde", &key)), Err(Wrong::Form), "more than the unit");
        for cut in [0, 15, 16, 40, first.len() - 1] {
            assert!(take(&first[..cut]).is_err(), "{cut}");
        }
        let (fragment, octets) = take(&record(12, unit(0, 0), b"ab", &key)).unwrap();
        assert_eq!((fragment.number, fragment.offset, octets), (0, 0, 2));
        assert_eq!(fragment.arrived_at, Some(Instant::from_nanos(77)));
        assert_eq!(take(&record(12, unit(0, 1), b"cd", &key)), Err(Wrong::Old), "played again");
        assert_eq!(take(&record(13, unit(0, 0), b"ab", &key)), Err(Wrong::Old), "it was there");
        let (fragment, _) = take(&record(14, unit(0, 1), b"cd", &key)).unwrap();
        assert_eq!((fragment.offset, fragment.last), (2, true));
        assert_eq!(take(&early), Err(Wrong::Old), "before the first");
    }

    /// A packet of a channel across segments that lies: its own header, a label in that of the unit, or more
    /// octets than its channel's packets have.
    #[test]
    fn a_packet_of_a_channel_across_segments_is_read_and_one_that_lies_is_none() {
        let name = ChannelName { payload: PayloadKind::Rtip, ..NAME };
        let key = Key::new([1; 32]);
        let own = key.channel_key(name);
        let packet = |counter, label, data: &[u8], wrong: Option<usize>| {
            let mut frame = vec![0; 200];
            let at = 42 + RtipHeader::new(name.label, 4, 7).emit(&mut frame[42..], 20 + data.len()).unwrap();
            UnitHeader { label, unit_octets: 4, ..unit(7, 1) }.emit(&mut frame[at..]);
            frame[at + 20..][..data.len()].copy_from_slice(data);
            if let Some(wrong) = wrong {
                frame[wrong] ^= 1;
            }
            let header = LinkHeader {
                kind: Kind::Data,
                key_epoch: 0,
                payload: name.payload,
                source: 2,
                segment: 1,
                incarnation: name.incarnation,
                generation: Generation::default(),
                seq: counter,
            };
            let (to, from) = (MacAddr([2; 6]), MacAddr([4; 6]));
            let body = 36 + data.len();
            let octets = emit_frame(&mut frame, to, from, DEFAULT_ETHERTYPE, &header, body, &key);
            let head = [&77_u64.to_ne_bytes()[..], &(octets as u32).to_ne_bytes(), &7_u32.to_ne_bytes()];
            [&head.concat(), &frame[..octets]].concat()
        };
        let (mut numbers, mut room) = (Numbers::default(), [0; 100]);
        let mut take = |record: &[u8]| read(record, &own, 2, &mut numbers, &mut room);
        assert_eq!(take(&packet(1, 9, b"cd", None)), Err(Wrong::Form), "a label");
        assert_eq!(take(&packet(1, 0, b"cd", Some(42))), Err(Wrong::Form), "no RTIP");
        assert_eq!(take(&packet(1, 0, b"cd", Some(48))), Err(Wrong::Form), "its checksum");
        assert_eq!(take(&packet(1, 0, b"cde", None)), Err(Wrong::Form), "too long");
        let (fragment, octets) = take(&packet(1, 0, b"cd", None)).unwrap();
        assert_eq!((fragment.number, fragment.offset, octets), (7, 2, 2));
        assert_eq!(take(&packet(1, 0, b"cd", None)), Err(Wrong::Old), "played again");
    }

    /// The node's side, the program's, and the ring, which the test writes in the kernel's place.
    struct Bench {
        node: RxWriter,
        board: Board,
        program: ClientSink,
        ring: WritePages,
        page: usize,
        written: u64,
    }

    impl Bench {
        const KEY: [u8; 32] = [1; 32];
        const RING: usize = 64 << 10;

        fn new(bound: Span) -> Self {
            let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).unwrap().unwrap() as usize;
            let file = crate::memfd::create("rota-test", 2 * page + 2 * Self::RING).unwrap();
            let ring = WritePages::map(&file, 2 * page + 2 * Self::RING).unwrap();
            let node = NodeSink::create(SinkShape { slots: 8, fragment_octets: 100, unit_octets_max: 100 });
            let node = node.unwrap();
            let own = node.descriptors().into_iter().map(|file| file.try_clone_to_owned().unwrap());
            let shape = ApartShape {
                ring_octets: Self::RING as u32,
                fragment_octets: 2,
                key: Key::new(Self::KEY).channel_key(NAME),
                bound,
                delays: Box::new(|came, due| i128::from(came.as_nanos()) - i128::from(due)),
            };
            let program = open_sink_with(own.chain([file]).collect(), Some(shape)).unwrap();
            let (node, board) = node.into_parts();
            Self { node, board, program, ring, page, written: 0 }
        }

        /// A whole unit comes by the kernel.
        fn comes(&mut self, number: u16) {
            let unit = UnitHeader { last: true, ..unit(number, 0) };
            let record = record(u64::from(number) + 1, unit, b"four", &Key::new(Self::KEY));
            let at = 2 * self.page + self.written as usize;
            self.ring.store(at, record.len() as u64);
            self.ring.copy_in(at + 8, &record);
            self.written += (record.len() as u64 + 8).next_multiple_of(8);
            self.ring.store_release(self.page, self.written);
        }

        /// The number of the next unit that is there, and what the node knows then.
        fn reads(&mut self) -> (Option<u64>, Stated) {
            let next = self.program.ring.next_unit(&mut Vec::new()).map(|next| next.unit.number);
            (next, self.node.stated().unwrap())
        }
    }

    /// The node's own count of frames fell back then.
    #[test]
    fn frames_that_come_by_the_node_again_count_as_those_before() {
        let mut bench = Bench::new(Span::ZERO);
        bench.comes(0);
        let (number, stated) = bench.reads();
        assert_eq!((number, stated.units, stated.fragments, stated.octets), (Some(0), 1, 1, 4));
        let by_node = RingFragment { number: 1, last: true, unit_octets: 4, ..RingFragment::default() };
        assert!(bench.node.push(&by_node, b"four"));
        let (number, stated) = bench.reads();
        assert_eq!((number, stated.units, stated.fragments, stated.octets), (Some(1), 2, 2, 8));
        assert_eq!(bench.reads().0, None);
    }

    /// The newer ones went first where the kernel's came between two looks.
    #[test]
    fn frames_of_the_kernel_come_before_what_the_node_writes_behind_them() {
        let mut bench = Bench::new(Span::ZERO);
        let by_node = RingFragment { number: 1, last: true, unit_octets: 4, ..RingFragment::default() };
        assert!(bench.node.push(&by_node, b"four"));
        bench.comes(0);
        assert_eq!([bench.reads().0, bench.reads().0, bench.reads().0], [Some(0), Some(1), None]);
        assert_eq!(bench.program.ring.counts().stale_fragments, 0);
    }

    /// It slept where the kernel wakes it, for which nobody had a reason any more: each unit was up to 10
    /// ms late.
    #[test]
    fn a_program_whose_frames_come_by_the_node_sleeps_where_the_node_wakes_it() {
        let mut bench = Bench::new(Span::ZERO);
        bench.comes(0);
        assert_eq!((bench.reads().0, bench.program.ring.is_by_node()), (Some(0), false));
        let seen = bench.program.board.event();
        assert_eq!(bench.program.wait(seen, Span::from_millis(5)), Waited::Look, "where the kernel wakes it");
        let by_node = |number| RingFragment { number, last: true, unit_octets: 4, ..RingFragment::default() };
        assert!(bench.node.push(&by_node(1), b"four"));
        assert_eq!((bench.reads().0, bench.program.ring.is_by_node()), (Some(1), true));
        // The file in the kernel's place is always ready: only a sleep on the board lasts.
        let seen = bench.program.board.event();
        assert_eq!(bench.program.wait(seen, Span::from_millis(5)), Waited::TimedOut);
        let seen = bench.program.board.event();
        bench.board.notify();
        assert_eq!(bench.program.wait(seen, Span::from_millis(5)), Waited::Look);
        bench.comes(2);
        assert_eq!((bench.reads().0, bench.program.ring.is_by_node()), (Some(2), false));
    }

    /// The program went on counting by the bound of the beginning, and the node's other channels did not.
    #[test]
    fn a_unit_is_late_by_the_bound_that_stands_now() {
        let late = |bench: &mut Bench, number| {
            bench.comes(number);
            let (read, stated) = bench.reads();
            assert_eq!(read, Some(number.into()));
            (stated.late, stated.latest_by_ns)
        };
        // Each takes 74 ns.
        let mut bench = Bench::new(Span::from_nanos(50));
        assert_eq!(late(&mut bench, 0), (1, 24));
        bench.board.set_bound(Span::from_nanos(100));
        assert_eq!(late(&mut bench, 1), (1, 24));
        bench.board.set_bound(Span::from_nanos(40));
        assert_eq!(late(&mut bench, 2), (2, 34));
    }

    /// The frames of the next 2^15 units were taken for old ones, and no unit of them counted as lost; beyond
    /// 2^16 units all numbers were too small until the end.
    #[test]
    fn a_program_that_stood_still_for_long_reads_on() {
        let mut numbers = Numbers::default();
        let mut place =
            |counter, number: u32, fragment| numbers.place(counter, number, &unit(number as u16, fragment));
        assert_eq!(place(100, 0, 0), Some(0));
        assert_eq!(place(40_100, 40_000, 0), Some(40_000));
        assert_eq!(place(40_101, 40_001, 0), Some(40_001));
        assert_eq!(place(40_102, 40_000, 0), None, "an old one");
        assert_eq!(place(340_101, 340_001, 0), Some(340_001), "more than 2^16 units had no room");
        assert_eq!(place(340_101, 340_001, 1), None, "played again");
        assert_eq!(place(340_102, 340_001, 1), Some(340_001));
        assert_eq!(place(u64::MAX, u32::MAX, 0), None, "before the first");
        let mut numbers = Numbers { last: 0xffff_fffe, ..Numbers::default() };
        assert_eq!(numbers.place(1, 3, &unit(3, 0)), Some(0x1_0000_0003));
    }

    /// A number of another unit than that of the frame is none that the kernel has made.
    #[test]
    fn a_record_that_numbers_another_unit_is_no_frame() {
        let key = Key::new([1; 32]);
        let mut wrong = record(10, unit(7, 0), b"ab", &key);
        wrong[12] ^= 1;
        let (mut numbers, mut room) = (Numbers::default(), [0; 100]);
        let found = read(&wrong, &key.channel_key(NAME), 2, &mut numbers, &mut room);
        assert_eq!(found, Err(Wrong::Form));
    }

    #[test]
    fn a_program_states_its_counts_and_half_of_them_are_none() {
        let file = crate::memfd::create("rota-test", crate::layout::READER_OCTETS).unwrap();
        let pages = WritePages::map(&file, crate::layout::READER_OCTETS).unwrap();
        assert_eq!(Stated::read(pages.read()), None);
        let some = Stated { units: 3, delay_newest_ns: 9, ..Stated::default() };
        for (k, value) in some.values().into_iter().enumerate() {
            pages.store(VALUES + 8 * k, value);
        }
        pages.store(SEQUENCE, 1);
        assert_eq!(Stated::read(pages.read()), None, "it is being written");
        pages.store(SEQUENCE, 2);
        assert_eq!(Stated::read(pages.read()), Some(some));
    }
}
