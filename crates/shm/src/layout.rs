//! The octets that a node and a client agree on.
//!
//! Every field is a native-endian `u64`, so that each is read or written in one atomic access and no two
//! accesses of different width ever race on the same octets; the one exception is the futex word, which
//! the kernel wants to be 32 bits. The structs below are never placed over shared pages: they only name
//! the offsets, and the compiler checks them.

use core::mem::{align_of, offset_of, size_of};

/// First word of a node-written channel file: "RotaChan".
pub const BOARD_MAGIC: u64 = u64::from_be_bytes(*b"RotaChan");
/// First word of a counters file: "RotaCntr".
pub const COUNTERS_MAGIC: u64 = u64::from_be_bytes(*b"RotaCntr");
/// Version of all layouts in this module; the two sides must agree exactly.
pub const LAYOUT_VERSION: u64 = 11;
/// Most octets of a unit in one fragment: an MTU of 9,000 without Rota's own 64.
pub const FRAGMENT_OCTETS_MAX: u32 = 8_936;
/// Most octets of a message in one cell of a socket's receive ring: an 802.3 frame has less.
pub const MESSAGE_CELL_OCTETS: usize = 1_536;
/// Most parts of a message, each in a cell of its own: two more than the longest has at the least MTU.
pub const MESSAGE_PARTS_MAX: usize = 32;
/// Largest unit that a shared ring has slots for, in octets; channels carry at most
/// [`rota_contract::UNIT_OCTETS_MAX`].
pub const RING_UNIT_OCTETS_MAX: u32 = 16 << 20;
/// Most slots in one ring.
pub const SLOTS_MAX: u32 = 65_536;
/// Largest memory file, in octets; a request beyond it is refused.
pub const FILE_OCTETS_MAX: usize = 256 << 20;
/// Messages that a socket may have under way: each has a word on the board that tells what became of it.
pub const COMPLETIONS: usize = 64;
/// Counters on each channel's board.
pub const CHANNEL_COUNTERS: usize = 16;

/// Head of the node-written file of a channel.
#[repr(C)]
pub struct BoardHeader {
    /// [`BOARD_MAGIC`].
    pub magic: u64,
    /// [`LAYOUT_VERSION`].
    pub version: u64,
    /// Largest unit of the channel, in octets.
    pub unit_octets_max: u64,
    /// Slots in the client-written ring; 0 on a receiving channel.
    pub tx_slots: u64,
    /// Slots in the receive ring behind this header; 0 on a sending channel. Those of a socket begin with a
    /// [`MessageDescriptor`], those of a channel with an [`RxDescriptor`].
    pub rx_slots: u64,
    /// Octets of one slot of the receive ring, its head included: a multiple of 64; 0 where there are none.
    pub rx_slot_octets: u64,
    reserved_0: [u64; 2],
    /// Units that the node has taken out of the client-written ring.
    pub tx_released: u64,
    /// Units of which nothing more leaves: the last frame has left, or the contract was over before.
    pub units_sent: u64,
    /// Seqlock over the next two words.
    pub slot_sequence: u64,
    /// Count of slots that this channel has had.
    pub slot_number: u64,
    /// When the newest slot began, monotonic ns.
    pub slot_at: u64,
    reserved_1: [u64; 3],
    /// Fragments, on a socket messages, ever written into the receive ring.
    pub rx_head: u64,
    reserved_2: [u64; 7],
    /// A [`crate::ChannelState`] code.
    pub state: u64,
    /// A [`rota_contract::CloseCause`] code.
    pub cause: u64,
    /// How many units the sender had handed over or left out when it closed, plus one; 0 = not known.
    pub final_units: u64,
    /// Futex word in the first four octets; bumped whenever anything above changed.
    pub event: u64,
    /// How many of the final units waited at the end and never left.
    pub unsent: u64,
    /// 1 where nobody will say how many units there were.
    pub unstated: u64,
    /// The bound of a channel that is received here, once it has changed; before, 0.
    pub bound_ns: u64,
    reserved_3: u64,
    /// See [`crate::ChannelCounter`].
    pub counters: [u64; CHANNEL_COUNTERS],
    /// The counts of units, as the receiver's node counted them; see [`rota_contract::Tally`].
    pub tally: [u64; 6],
    /// Of a circuit: the counts of this end, those that the receiver's program has taken, and those that are
    /// lost without error control.
    pub circuit: [u64; 6],
    /// How a circuit has ended; 0 while it has not.
    pub circuit_end: u64,
    reserved_4: [u64; 3],
    /// What became of a socket's messages, by number modulo [`COMPLETIONS`].
    pub completions: [u64; COMPLETIONS],
}

/// Head of the client-written file of a sending channel.
#[repr(C)]
pub struct TxHeader {
    /// Units ever published.
    pub head: u64,
    /// How often the client has asked for one octet on its bell; see [`crate::ClientSocket`].
    pub armed: u64,
    /// A [`crate::Sleep`] code: what the client, asleep on the futex word, is to be woken for. Sockets only.
    pub asleep: u64,
    /// Units of a channel that the client has left out: they have numbers, and no slot in the ring.
    pub left_out: u64,
    reserved: [u64; 4],
}

/// The file that both ends of a receive ring write.
#[repr(C)]
pub struct ReaderHeader {
    /// Index of the next fragment that neither the client has read nor the node has overwritten. Both raise
    /// it by compare-and-exchange: the client after it has copied a fragment, the node before it overwrites
    /// one.
    pub taken: u64,
    reserved: [u64; 7],
    /// Of the counts that the program of a queue of its own states: odd while it writes them.
    pub stated_sequence: u64,
    /// They are in the order of [`crate::Stated`].
    pub stated: [u64; 12],
    /// How often the client has asked for one octet on its bell: of a circuit, or of a channel with a bell.
    pub armed: u64,
    more: [u64; 2],
}

/// Head of one slot of the client-written ring; the unit's octets follow.
#[repr(C)]
pub struct TxDescriptor {
    /// Seqlock: see [`sequence_open`] and [`sequence_shut`].
    pub sequence: u64,
    /// The unit's number, strictly increasing: the units before it, those left out included.
    pub number: u64,
    /// The unit's length in octets.
    pub octets: u64,
    /// The sender's schedule for the unit, monotonic ns.
    pub schedule_ns: u64,
    /// A packed [`crate::MessageRoute`] on a socket; 0 on a channel.
    pub route: u64,
    reserved: [u64; 3],
}

/// Head of one slot of the node-written receive ring; the fragment's octets follow.
#[repr(C)]
pub struct RxDescriptor {
    /// Seqlock: see [`sequence_open`] and [`sequence_shut`].
    pub sequence: u64,
    /// The unit's number.
    pub number: u64,
    /// The sender's schedule for the unit, ns since its incarnation.
    pub schedule_ns: u64,
    /// Kernel receive stamp, monotonic ns; meaningless unless flagged valid.
    pub arrived_ns: u64,
    /// When the node took the frame from the kernel, monotonic ns.
    pub dequeued_ns: u64,
    /// Length of the whole unit (low 32 bits), offset of this fragment (high 32).
    pub place: u64,
    /// Octets (bits 0–15), fragment index (16–31), last (32), stamp valid (33).
    pub shape: u64,
    reserved: u64,
}

/// Head of one slot of a socket's receive ring; a cell follows, which any message may have.
#[repr(C)]
pub struct MessageDescriptor {
    /// Seqlock: see [`sequence_open`] and [`sequence_shut`]. Open again once the message's cells are taken.
    pub sequence: u64,
    /// Octets of the message (low 32 bits), octets of each part of it but the last (32–47).
    pub shape: u64,
    /// A packed [`crate::MessageRoute`].
    pub route: u64,
    reserved: [u64; 5],
    /// The cell of each part: 16 bits each, the first in the lowest.
    pub cells: [u64; MESSAGE_PARTS_MAX / 4],
}

/// Head of a counters file; `count` entries follow.
#[repr(C)]
pub struct CountersHeader {
    /// [`COUNTERS_MAGIC`].
    pub magic: u64,
    /// [`LAYOUT_VERSION`].
    pub version: u64,
    /// Number of entries.
    pub count: u64,
    /// Where the rows of [`crate::monitor`] begin; 0 where there are none.
    pub monitor_at: u64,
    /// How many blocks of such rows there are: one for each port of the node.
    pub monitors: u64,
    reserved: [u64; 3],
}

/// One named counter: a zero-padded name and its value.
#[repr(C)]
pub struct CounterEntry {
    /// The value.
    pub value: u64,
    /// UTF-8, padded with zeros.
    pub name: [u8; COUNTER_NAME_OCTETS],
}

/// Head of a trace file; a [`TracePort`] with [`TRACE_STATIONS`] of [`TraceStation`] follows for each port,
/// then the slots.
#[repr(C)]
pub struct TraceHeader {
    /// [`TRACE_MAGIC`].
    pub magic: u64,
    /// [`LAYOUT_VERSION`].
    pub version: u64,
    /// Slots behind the stations: a power of two.
    pub slots: u64,
    /// How many events were asked for: readers show no more.
    pub wanted: u64,
    /// Index of the oldest event that was ever in this file.
    pub first: u64,
    /// Index after the newest event.
    pub head: u64,
    /// Ports of the node.
    pub ports: u64,
    /// EtherType of the segment's frames.
    pub ether_type: u64,
    reserved: [u64; 8],
}

/// A port of the node; its stations follow.
#[repr(C)]
pub struct TracePort {
    /// This station's own number there; 0 while it has none.
    pub station: u64,
    /// Its interface: UTF-8, padded with zeros.
    pub interface: [u8; INTERFACE_OCTETS],
}

/// What is known of the station with this number.
#[repr(C)]
pub struct TraceStation {
    /// Its address in the lower 48 bits; all zero where no such station was ever seen.
    pub mac: u64,
    /// UTF-8, padded with zeros.
    pub name: [u8; 32],
}

/// One slot of a trace file.
#[repr(C)]
pub struct TraceSlot {
    /// Seqlock: see [`sequence_open`] and [`sequence_shut`].
    pub sequence: u64,
    /// When it happened, monotonic ns; of a received frame the kernel's stamp, where there is one.
    pub at_ns: u64,
    /// When the node noted it, monotonic ns.
    pub noted_ns: u64,
    /// Event (bits 0–7), frame kind (8–15), verdict (16–23), level + 1 (24–31), octets kept (32–47), frame
    /// octets (48–63).
    pub shape: u64,
    /// Source (bits 0–15), destination (16–31), label (32–47), port + 1 (48–55).
    pub parties: u64,
    /// The channel's id, its sender's at both ends; 0 for none.
    pub channel: u64,
    /// The unit's number, or what the event says.
    pub number: u64,
    /// When the unit had to be there, monotonic ns; 0 where nothing was promised.
    pub deadline_ns: u64,
    /// How much later than the deadline it was, ns, two's complement.
    pub late_ns: u64,
    /// What the event says.
    pub extra: [u64; 3],
    /// The first octets of the frame, or a word about the event.
    pub octets: [u8; TRACE_SNAP_OCTETS],
}

/// First word of a trace file: "RotaTrce".
pub const TRACE_MAGIC: u64 = u64::from_be_bytes(*b"RotaTrce");
/// Octets of a frame that a slot keeps.
pub const TRACE_SNAP_OCTETS: usize = 160;
/// Stations in the table of a trace file, by their number.
pub const TRACE_STATIONS: usize = 256;
/// Most slots of a trace file.
pub const TRACE_SLOTS_MAX: u32 = 65_536;
/// Octets of a port in a trace file, its stations included.
pub const TRACE_PORT_OCTETS: usize = size_of::<TracePort>() + TRACE_STATIONS * size_of::<TraceStation>();
/// Most ports of a node.
pub const PORTS_MAX: usize = 8;
/// Longest name of an interface, in octets.
pub const INTERFACE_OCTETS: usize = 16;
/// Longest name of a counter, in octets.
pub const COUNTER_NAME_OCTETS: usize = 56;
/// Octets before the first receive slot.
pub const BOARD_OCTETS: usize = size_of::<BoardHeader>();
/// Octets of the file that both ends of a receive ring write.
pub const READER_OCTETS: usize = size_of::<ReaderHeader>();
/// Octets before the first slot of the client-written ring.
pub const TX_HEADER_OCTETS: usize = size_of::<TxHeader>();

const _: () = {
    assert!(BOARD_OCTETS == 1024 && align_of::<BoardHeader>() == 8);
    assert!(offset_of!(BoardHeader, tx_released) == 64);
    assert!(offset_of!(BoardHeader, rx_head) == 128);
    assert!(offset_of!(BoardHeader, state) == 192);
    assert!(offset_of!(BoardHeader, event) == 216);
    assert!(offset_of!(BoardHeader, counters) == 256);
    assert!(offset_of!(BoardHeader, completions) == 512);
    assert!(size_of::<ReaderHeader>() == 192 && offset_of!(BoardHeader, tally) == 384);
    assert!(size_of::<TxHeader>() == 64 && size_of::<TxDescriptor>() == 64);
    assert!(size_of::<RxDescriptor>() == 64 && offset_of!(RxDescriptor, shape) == 48);
    assert!(size_of::<CountersHeader>() == 64 && size_of::<CounterEntry>() == 64);
    assert!(size_of::<TraceHeader>() == 128 && size_of::<TraceStation>() == 40);
    assert!(size_of::<TracePort>() == 24);
    assert!(size_of::<TraceSlot>() == 256 && offset_of!(TraceSlot, octets) == 96);
    assert!(size_of::<MessageDescriptor>() == 128 && offset_of!(MessageDescriptor, cells) == 64);
    assert!(rx_slot_octets(1_436) == 1_536);
    // A slot's octets have 16 bits in its head.
    assert!(rx_slot_octets(FRAGMENT_OCTETS_MAX) == 9_024 && FRAGMENT_OCTETS_MAX <= u16::MAX as u32);
};

/// The sequence of a slot while entry `index` is being written into it: odd.
pub const fn sequence_open(index: u64) -> u64 {
    index.wrapping_mul(2).wrapping_add(1)
}

/// The sequence of a slot once entry `index` stands in it: even, never 0.
pub const fn sequence_shut(index: u64) -> u64 {
    index.wrapping_mul(2).wrapping_add(2)
}

/// Octets of one slot of a client-written ring whose units are at most `unit_octets_max` long.
pub const fn tx_slot_octets(unit_octets_max: u32) -> usize {
    size_of::<TxDescriptor>() + (unit_octets_max as usize).next_multiple_of(64)
}

/// Octets of a client-written file; `None` when it would exceed [`FILE_OCTETS_MAX`].
pub fn tx_file_octets(slots: u32, unit_octets_max: u32) -> Option<usize> {
    let slots = usize::try_from(slots).ok()?;
    let octets = TX_HEADER_OCTETS.checked_add(slots.checked_mul(tx_slot_octets(unit_octets_max))?)?;
    (octets <= FILE_OCTETS_MAX).then_some(octets)
}

/// Octets of one slot of a receive ring whose fragments are at most `fragment_octets` long.
pub const fn rx_slot_octets(fragment_octets: u32) -> usize {
    size_of::<RxDescriptor>() + (fragment_octets as usize).next_multiple_of(64)
}

/// Octets of a node-written file; `None` when it would exceed [`FILE_OCTETS_MAX`].
pub fn board_file_octets(ring: RxRing) -> Option<usize> {
    let slots = usize::try_from(ring.slots).ok()?;
    let octets = BOARD_OCTETS.checked_add(slots.checked_mul(ring.slot_octets)?)?;
    (octets <= FILE_OCTETS_MAX).then_some(octets)
}

/// How large a receive ring is. Both ends have it in memory of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxRing {
    slots: u32,
    slot_octets: usize,
}

impl RxRing {
    /// That of a sending channel.
    pub const NONE: Self = Self { slots: 0, slot_octets: 0 };

    /// So many slots for fragments of at most `fragment_octets`; `None` if no ring can be like that.
    pub fn new(slots: u32, fragment_octets: u32) -> Option<Self> {
        let is_sound =
            (1..=SLOTS_MAX).contains(&slots) && (1..=FRAGMENT_OCTETS_MAX).contains(&fragment_octets);
        is_sound.then(|| Self { slots, slot_octets: rx_slot_octets(fragment_octets) })
    }

    /// That of a socket, with so many slots.
    pub fn messages(slots: u32) -> Option<Self> {
        let slot_octets = size_of::<MessageDescriptor>() + MESSAGE_CELL_OCTETS;
        (1..=SLOTS_MAX).contains(&slots).then_some(Self { slots, slot_octets })
    }

    /// A ring as a board states it; `None` if no ring can be like that.
    pub(crate) fn stated(slots: u64, slot_octets: u64) -> Option<Self> {
        let (slots, slot_octets) = (u32::try_from(slots).ok()?, usize::try_from(slot_octets).ok()?);
        let sizes = rx_slot_octets(1)..=rx_slot_octets(FRAGMENT_OCTETS_MAX);
        let is_sound = (1..=SLOTS_MAX).contains(&slots)
            && sizes.contains(&slot_octets)
            && slot_octets.is_multiple_of(64);
        let ring = Self { slots, slot_octets };
        (is_sound || ring == Self::NONE).then_some(ring)
    }

    /// Fragments that it holds.
    pub fn slots(self) -> u32 {
        self.slots
    }

    /// Octets of one slot.
    pub fn slot_octets(self) -> usize {
        self.slot_octets
    }

    /// Octets of a fragment that one slot holds.
    pub fn room(self) -> usize {
        self.slot_octets.saturating_sub(size_of::<RxDescriptor>())
    }

    /// The beginning of the slot of fragment `index` in the file.
    pub(crate) fn place(self, index: u64) -> usize {
        BOARD_OCTETS + (index % u64::from(self.slots)) as usize * self.slot_octets
    }
}

/// Receive slots that hold `units` whole units of the largest size, cut into `fragment_octets`.
pub fn rx_slots_for(units: u16, unit_octets_max: u32, fragment_octets: u32) -> u32 {
    let fragments = unit_octets_max.div_ceil(fragment_octets.max(1)).max(1);
    u32::from(units.max(1)).saturating_mul(fragments).clamp(2, SLOTS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beyond_the_limit_is_refused() {
        assert_eq!(tx_file_octets(2, 100), Some(64 + 2 * (64 + 128)));
        assert_eq!(tx_file_octets(SLOTS_MAX, RING_UNIT_OCTETS_MAX), None);
        assert_eq!(board_file_octets(RxRing::new(SLOTS_MAX, FRAGMENT_OCTETS_MAX).unwrap()), None);
        assert_eq!(board_file_octets(RxRing::NONE), Some(1024));
        for (slots, octets) in [(0, 1), (SLOTS_MAX + 1, 1), (1, 0), (1, FRAGMENT_OCTETS_MAX + 1)] {
            assert_eq!(RxRing::new(slots, octets), None, "{slots} of {octets}");
        }
    }

    /// The unit of an MTU of 9,000 had slots of 2,048 octets.
    #[test]
    fn a_slot_has_the_size_of_the_ports_fragments() {
        let file = |slots, fragment| board_file_octets(RxRing::new(slots, fragment).unwrap()).unwrap();
        assert_eq!(file(20, 1_436), 1_024 + 20 * 1_536, "less than the 2,112 that it was");
        assert_eq!(file(20, 512), 1_024 + 20 * 576);
        assert_eq!(file(4, 8_936), 1_024 + 4 * 9_024);
        assert_eq!(RxRing::new(4, 8_936).unwrap().room(), 8_960);
    }

    #[test]
    fn what_a_board_says_of_its_ring_is_checked() {
        let is_sound = |slots, octets| RxRing::stated(slots, octets).is_some();
        assert!(is_sound(0, 0) && is_sound(1, 128) && is_sound(u64::from(SLOTS_MAX), 9_024));
        for (slots, octets) in [
            (0, 2_112),
            (1, 0),
            (1, 64),
            (1, 129),
            (1, 9_088),
            (1, u64::MAX),
            (u64::from(SLOTS_MAX) + 1, 2_112),
            (1 << 32, 2_112),
        ] {
            assert!(!is_sound(slots, octets), "{slots} of {octets}");
        }
    }

    #[test]
    fn receive_slots_hold_whole_units() {
        assert_eq!(rx_slots_for(4, 6_250, 1_436), 20);
        assert_eq!(rx_slots_for(1, 10, 1_436), 2);
        assert_eq!(rx_slots_for(u16::MAX, RING_UNIT_OCTETS_MAX, 1), SLOTS_MAX);
    }
}
