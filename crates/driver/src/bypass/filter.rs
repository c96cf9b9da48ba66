//! The two programs that fill a receive queue.
//!
//! The *filter* stands where packets come to an interface. It copies a packet into the queue of its socket if
//! all checks hold behind which the layers of the kernel would deliver the same octets to the same socket
//! (ENDHOST-R1 to R8); it leaves every other packet to them, unchanged. The *tail* stands before the
//! kernel's own queue of the socket and copies what came through the layers into the same queue (R10).

use super::code::{Code, Dialect, Label, Reg, helper};
use super::packet::{HEAD_OCTETS, Path, SIZES, count, head};
use rbpf::insn_builder::{Cond, MemSize};
use std::net::Ipv4Addr;

/// The facts of an interface that its filter needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlet {
    /// All addresses of this host: a packet from one of them did not come from elsewhere.
    pub own: Vec<Ipv4Addr>,
    /// The networks at this interface, one at least: packets from any other place take the full path.
    pub networks: Vec<Network>,
}

/// A network by one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address in it.
    pub address: Ipv4Addr,
    /// Bits that all its addresses share: 1 to 30.
    pub prefix: u8,
}

impl Network {
    /// The bits that tell hosts apart.
    pub(super) fn host_mask(self) -> u32 {
        u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0)
    }
}

/// The descriptors of the maps that the programs use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maps {
    /// Address and port to the peer and the number of the socket; or the names of channels to their values.
    pub(super) sockets: i32,
    /// Number to ring.
    pub(super) rings: i32,
    /// Number to counts.
    pub(super) counts: i32,
}

/// An answer of the filter: the packet goes on to the next program and then to the layers.
pub(super) const LEAVE: i32 = -1;
/// The packet goes no further.
pub(super) const TAKE: i32 = 2;

/// Offsets of the kernel's context.
pub(super) mod context {
    pub(crate) const OCTETS: i16 = 0;
    pub(crate) const KIND: i16 = 4;
    pub(crate) const HAS_VLAN: i16 = 20;
    pub(crate) const SEGMENT: i16 = 176;
}
/// Ethernet, IP and UDP headers.
pub(super) const HEADERS: i32 = 42;
const ETHERNET: i32 = 14;
/// Past the last offset in an IP packet: a fragment has one, or more fragments follow.
const FRAGMENT: i32 = 0x3fff;

// The stack, below register 10. The headers lie so that each field of IP is aligned.
const HEADERS_AT: i16 = -46;
const KEY_AT: i16 = -56;
const SLOT_AT: i16 = -60;
const REST_AT: i16 = -64;
const SUM_AT: i16 = -72;

pub(super) const CONTEXT: Reg = 6;
/// Octets of the packet, later those behind the headers.
pub(super) const LENGTH: Reg = 7;
pub(super) const COUNTS: Reg = 8;
pub(super) const RECORD: Reg = 9;
pub(super) const STACK: Reg = 10;

/// A field of the headers on the stack, by its offset in the frame.
const fn field(offset: i16) -> i16 {
    HEADERS_AT + offset
}
const SOURCE: i16 = field(26);
const DESTINATION: i16 = field(30);
const SOURCE_PORT: i16 = field(34);
const PORT: i16 = field(36);
const UDP_OCTETS: i16 = field(38);
const UDP_SUM: i16 = field(40);

/// The filter of an interface.
pub(super) fn filter(inlet: &Inlet, maps: Maps, dialect: Dialect) -> Vec<u8> {
    let mut code = Code::new(dialect);
    let leave = code.label();
    frame(&mut code, leave);
    header(&mut code, leave);
    source(&mut code, inlet, leave);
    socket(&mut code, maps, leave);
    udp_sum(&mut code);
    let full = code.label();
    code.load(MemSize::HalfWord, LENGTH, STACK, field(16));
    code.hosts_order(LENGTH, 16);
    code.and(LENGTH, 0xffff);
    // It was at least that when it was looked at first.
    code.jump_if(LENGTH, Cond::Lower, HEADERS - ETHERNET, leave);
    code.add(LENGTH, ETHERNET - HEADERS);
    reserve(&mut code, &SIZES, leave, full);
    addresses(&mut code);
    let discard = code.label();
    data(&mut code, discard);
    submit(&mut code, Path::Bypass);
    code.answer(TAKE);
    ends(&mut code, full, discard, leave);
    code.finish()
}

/// The other ends of a filter: the queue is full, a record is given back, the packet goes on to the layers.
pub(super) fn ends(code: &mut Code, full: Label, discard: Label, leave: Label) {
    code.place(full);
    code.count(COUNTS, count::QUEUE_FULL, 1);
    code.answer(TAKE);
    code.place(discard);
    code.copy(1, RECORD);
    code.set(2, 0);
    code.call(helper::RING_DISCARD);
    code.place(leave);
    code.answer(LEAVE);
}

/// R2: for this host, without a tag that the card has taken off, no collection of packets; the headers.
fn frame(code: &mut Code, leave: Label) {
    code.copy(CONTEXT, 1);
    for (at, good) in [(context::KIND, 0), (context::HAS_VLAN, 0), (context::SEGMENT, 0)] {
        code.load(MemSize::Word, 1, CONTEXT, at);
        code.jump_if(1, Cond::NotEquals, good, leave);
    }
    code.load(MemSize::Word, LENGTH, CONTEXT, context::OCTETS);
    code.jump_if(LENGTH, Cond::Lower, HEADERS, leave);
    code.copy(1, CONTEXT);
    code.set(2, 0);
    code.copy(3, STACK);
    code.add(3, HEADERS_AT.into());
    code.set(4, HEADERS as u32);
    code.call(helper::LOAD_OCTETS);
    code.jump_if(0, Cond::NotEquals, 0, leave);
    code.load(MemSize::HalfWord, 1, STACK, field(12));
    code.hosts_order(1, 16);
    code.jump_if(1, Cond::NotEquals, 0x0800, leave);
}

/// R3 to R7: the header of IP and the length of UDP.
fn header(code: &mut Code, leave: Label) {
    code.load(MemSize::Byte, 1, STACK, field(14));
    code.jump_if(1, Cond::NotEquals, 0x45, leave);
    code.load(MemSize::HalfWord, 1, STACK, field(16));
    code.hosts_order(1, 16);
    code.jump_if(1, Cond::Lower, HEADERS - ETHERNET, leave);
    code.load(MemSize::HalfWord, 2, STACK, UDP_OCTETS);
    code.hosts_order(2, 16);
    code.add(2, 20);
    code.jump_if_reg(1, Cond::NotEquals, 2, leave);
    code.add(1, ETHERNET);
    code.jump_if_reg(1, Cond::Greater, LENGTH, leave);
    code.load(MemSize::HalfWord, 1, STACK, field(20));
    code.hosts_order(1, 16);
    code.jump_if(1, Cond::BitAnd, FRAGMENT, leave);
    code.load(MemSize::Byte, 1, STACK, field(23));
    code.jump_if(1, Cond::NotEquals, 17, leave);
    // R6: ten additions, in the order of memory, which a sum of this kind does not mind.
    code.set(0, 0);
    for word in 0..10 {
        code.load(MemSize::HalfWord, 1, STACK, field(14 + 2 * word));
        code.add_reg(0, 1);
    }
    fold(code);
    code.jump_if(0, Cond::NotEquals, 0xffff, leave);
}

/// The sum in register 0 becomes one of 16 bits.
fn fold(code: &mut Code) {
    for _ in 0..3 {
        code.copy(1, 0);
        code.shift_right(1, 16);
        code.and(0, 0xffff);
        code.add_reg(0, 1);
    }
}

/// R5: the source is a host of a network at this interface, and not this host.
fn source(code: &mut Code, inlet: &Inlet, leave: Label) {
    code.load(MemSize::Word, 1, STACK, SOURCE);
    code.hosts_order(1, 32);
    for own in &inlet.own {
        code.set(2, own.to_bits());
        code.jump_if_reg(1, Cond::Equals, 2, leave);
    }
    let good = code.label();
    for network in &inlet.networks {
        let (mask, other) = (network.host_mask(), code.label());
        code.copy(2, 1);
        code.set(3, !mask);
        code.and_reg(2, 3);
        code.set(3, network.address.to_bits() & !mask);
        code.jump_if_reg(2, Cond::NotEquals, 3, other);
        code.copy(2, 1);
        code.set(3, mask);
        code.and_reg(2, 3);
        code.jump_if(2, Cond::Equals, 0, leave);
        code.jump_if_reg(2, Cond::NotEquals, 3, good);
        code.place(other);
    }
    code.jump(leave);
    code.place(good);
}

/// R5 and R7: a socket is bound to that address and port; of a connected one the peer matches. Its counts are
/// known afterwards, and its ring is in register 0.
fn socket(code: &mut Code, maps: Maps, leave: Label) {
    code.load(MemSize::Word, 1, STACK, DESTINATION);
    code.store(MemSize::Word, STACK, KEY_AT, 1);
    code.load(MemSize::HalfWord, 1, STACK, PORT);
    // The rest of the key is zero; both halves are written at once, in the order of the wire.
    code.store(MemSize::HalfWord, STACK, KEY_AT + 4, 1);
    code.store_number(MemSize::HalfWord, STACK, KEY_AT + 6, 0);
    look_up(code, maps.sockets, KEY_AT, leave);
    let any = code.label();
    code.load(MemSize::Word, 1, 0, 0);
    code.jump_if(1, Cond::Equals, 0, any);
    code.load(MemSize::Word, 2, STACK, SOURCE);
    code.jump_if_reg(1, Cond::NotEquals, 2, leave);
    code.load(MemSize::HalfWord, 1, 0, 4);
    code.load(MemSize::HalfWord, 2, STACK, SOURCE_PORT);
    code.jump_if_reg(1, Cond::NotEquals, 2, leave);
    code.place(any);
    code.load(MemSize::Word, 1, 0, 8);
    code.store(MemSize::Word, STACK, SLOT_AT, 1);
    look_up(code, maps.counts, SLOT_AT, leave);
    code.copy(COUNTS, 0);
    look_up(code, maps.rings, SLOT_AT, leave);
}

pub(super) fn look_up(code: &mut Code, map: i32, key_at: i16, missing: Label) {
    code.map(1, map);
    code.copy(2, STACK);
    code.add(2, key_at.into());
    code.call(helper::MAP_LOOKUP);
    code.jump_if(0, Cond::Equals, 0, missing);
}

/// The sum of the pseudo header and the header of UDP, to the stack.
fn udp_sum(code: &mut Code) {
    code.set(3, u16::to_be(17).into());
    // The length counts twice, as part of both.
    let words = [0, 2, 4, 6, 8, 10, 12, 12, 14];
    for word in words {
        code.load(MemSize::HalfWord, 1, STACK, SOURCE + word);
        code.add_reg(3, 1);
    }
    code.store(MemSize::DoubleWord, STACK, SUM_AT, 3);
}

/// Writes the addresses of both ends to the record.
fn addresses(code: &mut Code) {
    code.load(MemSize::Word, 1, STACK, SOURCE);
    code.store(MemSize::Word, RECORD, head::SOURCE, 1);
    code.load(MemSize::HalfWord, 1, STACK, SOURCE_PORT);
    code.store(MemSize::HalfWord, RECORD, head::PORT, 1);
    code.load(MemSize::Word, 1, STACK, DESTINATION);
    code.store(MemSize::Word, RECORD, head::TO, 1);
}

/// Takes the smallest place that the packet fits in, of the ring in register 0.
pub(super) fn reserve(code: &mut Code, sizes: &[u32], leave: Label, full: Label) {
    code.copy(1, 0);
    let reserved = code.label();
    for &octets in sizes {
        let larger = code.label();
        code.jump_if(LENGTH, Cond::Greater, (octets as usize - HEAD_OCTETS) as i32, larger);
        code.set(2, octets);
        code.set(3, 0);
        code.call(helper::RING_RESERVE);
        code.copy(RECORD, 0);
        code.jump_if(RECORD, Cond::Equals, 0, full);
        code.jump(reserved);
        code.place(larger);
    }
    code.jump(leave);
    code.place(reserved);
}

/// Copies the octets behind the headers, and verifies their sum (R8).
fn data(code: &mut Code, discard: Label) {
    let (bare, summed, good) = (code.label(), code.label(), code.label());
    code.store(MemSize::Word, RECORD, head::OCTETS, LENGTH);
    code.load(MemSize::DoubleWord, 0, STACK, SUM_AT);
    code.jump_if(LENGTH, Cond::Equals, 0, bare);
    code.copy(1, CONTEXT);
    code.set(2, HEADERS as u32);
    code.copy(3, RECORD);
    code.add(3, HEAD_OCTETS as i32);
    code.copy(4, LENGTH);
    code.call(helper::LOAD_OCTETS);
    code.jump_if(0, Cond::NotEquals, 0, discard);
    code.load(MemSize::HalfWord, 1, STACK, UDP_SUM);
    code.jump_if(1, Cond::Equals, 0, good);
    code.set(1, 0);
    code.set(2, 0);
    code.copy(3, RECORD);
    code.add(3, HEAD_OCTETS as i32);
    code.copy(4, LENGTH);
    code.and(4, 0xfffc);
    code.load(MemSize::DoubleWord, 5, STACK, SUM_AT);
    code.call(helper::CHECKSUM);
    // Kernels before 6.13 refuse more than 512 octets: the full path verifies those.
    code.jump_if(0, Cond::LowerSigned, 0, discard);
    rest(code, discard, summed);
    code.place(bare);
    // Without a sum the header's own words do not count.
    code.load(MemSize::HalfWord, 1, STACK, UDP_SUM);
    code.jump_if(1, Cond::Equals, 0, good);
    code.place(summed);
    fold(code);
    code.jump_if(0, Cond::NotEquals, 0xffff, discard);
    code.place(good);
}

/// The last one to three octets, which the kernel's function does not take; goes on at `summed`.
fn rest(code: &mut Code, discard: Label, summed: Label) {
    code.copy(4, LENGTH);
    code.and(4, 3);
    code.jump_if(4, Cond::Equals, 0, summed);
    code.store(MemSize::DoubleWord, STACK, SUM_AT, 0);
    code.store_number(MemSize::Word, STACK, REST_AT, 0);
    code.copy(1, CONTEXT);
    code.copy(2, LENGTH);
    code.and(2, 0xfffc);
    code.add(2, HEADERS);
    code.copy(3, STACK);
    code.add(3, REST_AT.into());
    code.call(helper::LOAD_OCTETS);
    code.jump_if(0, Cond::NotEquals, 0, discard);
    code.load(MemSize::DoubleWord, 0, STACK, SUM_AT);
    for at in [REST_AT, REST_AT + 2] {
        code.load(MemSize::HalfWord, 1, STACK, at);
        code.add_reg(0, 1);
    }
    code.jump(summed);
}

/// Gives the packet to its reader. The kernel wakes one whose position is exactly that of this packet: a
/// reader that is awake holds a position that no packet has.
fn submit(code: &mut Code, path: Path) {
    let counted = match path {
        Path::Bypass => count::BYPASS,
        Path::Full => count::FULL_PATH,
    };
    code.store_number(MemSize::HalfWord, RECORD, head::PATH, path as i32);
    code.copy(1, RECORD);
    code.set(2, 0);
    code.call(helper::RING_SUBMIT);
    code.count(COUNTS, counted, 1);
}

/// Offsets behind the start of the IP header.
const IP_SOURCE: u32 = 12;
/// The octets of both addresses there, and of the header of UDP.
const PAIR: u32 = 8;
/// From the start of the IP header.
const NETWORK_HEADER: u32 = 1;

/// The tail of the socket `slot`: the context begins at the header of UDP, and the sum has been verified.
pub(super) fn tail(slot: u32, maps: Maps, ring: i32, dialect: Dialect) -> Vec<u8> {
    let mut code = Code::new(dialect);
    let (discard, none, full) = (code.label(), code.label(), code.label());
    code.copy(CONTEXT, 1);
    code.load(MemSize::Word, LENGTH, CONTEXT, context::OCTETS);
    code.jump_if(LENGTH, Cond::Lower, PAIR as i32, none);
    code.add(LENGTH, -(PAIR as i32));
    code.copy(1, CONTEXT);
    code.set(2, IP_SOURCE);
    code.copy(3, STACK);
    code.add(3, SOURCE.into());
    code.set(4, PAIR);
    code.set(5, NETWORK_HEADER);
    code.call(helper::LOAD_FROM_HEADER);
    code.jump_if(0, Cond::NotEquals, 0, none);
    code.copy(1, CONTEXT);
    code.set(2, 0);
    code.copy(3, STACK);
    code.add(3, SOURCE_PORT.into());
    code.set(4, PAIR);
    code.call(helper::LOAD_OCTETS);
    code.jump_if(0, Cond::NotEquals, 0, none);
    code.store_number(MemSize::Word, STACK, SLOT_AT, slot.cast_signed());
    look_up(&mut code, maps.counts, SLOT_AT, none);
    code.copy(COUNTS, 0);
    code.map(0, ring);
    reserve(&mut code, &SIZES, none, full);
    addresses(&mut code);
    code.store(MemSize::Word, RECORD, head::OCTETS, LENGTH);
    let copied = code.label();
    code.jump_if(LENGTH, Cond::Equals, 0, copied);
    code.copy(1, CONTEXT);
    code.set(2, PAIR);
    code.copy(3, RECORD);
    code.add(3, HEAD_OCTETS as i32);
    code.copy(4, LENGTH);
    code.call(helper::LOAD_OCTETS);
    code.jump_if(0, Cond::NotEquals, 0, discard);
    code.place(copied);
    submit(&mut code, Path::Full);
    code.answer(0);
    code.place(full);
    code.count(COUNTS, count::QUEUE_FULL, 1);
    code.answer(0);
    code.place(discard);
    code.copy(1, RECORD);
    code.set(2, 0);
    code.call(helper::RING_DISCARD);
    code.place(none);
    // The socket's own queue takes what this program cannot read.
    code.answer(i32::MAX);
    code.finish()
}
