//! The program that fills the receive queues of channels, and the frames that it takes.
//!
//! It stands where packets come to an interface. It takes a data frame of Rota whose headers name a channel
//! with a queue, as the node has last stated that channel, and whose header tag is right (ENDHOST-R28); it
//! leaves every other frame to the node, unchanged. The data tag is the program's affair.

use super::code::{Code, Dialect, Label, Reg, helper};
use super::filter::{CONTEXT, COUNTS, LENGTH, Maps, RECORD, STACK, TAKE, context, ends, look_up, reserve};
use super::packet::count;
use rbpf::insn_builder::{Cond, MemSize};
use rota_wire::{Generation, HeaderKey, MacAddr, PayloadKind};

/// The kernel's words before a frame in a queue: when it came (CLOCK_MONOTONIC, ns), its octets with both
/// tags, and the number of its unit modulo 2^32, of which the frame has 16 bits.
pub const FRAME_HEAD_OCTETS: usize = 16;
/// Octets that a frame takes of a ring, as [`super::SIZES`] are for packets: a frame of 1,514 octets fits the
/// fourth.
pub const FRAME_SIZES: [u32; 5] = [248, 504, 1_016, 1_544, 9_208];
/// Channels of one node that may have a queue at a time.
pub const STREAMS_MAX: u32 = 64;

/// Offsets of the head.
mod head {
    pub(super) const ARRIVED: i16 = 0;
    pub(super) const OCTETS: i16 = 8;
    pub(super) const NUMBER: i16 = 12;
}

/// The frames of one channel by their headers, as its node last knew them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The sender's address.
    pub from: MacAddr,
    /// A unit, or an RTIP packet.
    pub payload: PayloadKind,
    /// That of the unit header, or the local id of the RTIP header.
    pub label: u16,
    /// Of the key under which they come.
    pub key_epoch: u8,
    /// The sender's number.
    pub source: u16,
    /// The segment.
    pub segment: u32,
    /// Which boot of the sender.
    pub incarnation: u32,
    /// Of the token; 0 on a link.
    pub generation: Generation,
    /// The sender's counter that was last heard: frames have higher ones, each a higher one than those
    /// before.
    pub counter: u64,
    /// The number of the unit of which a frame came last; 0 before the first.
    pub number: u64,
    /// The key of header tags.
    pub key: HeaderKey,
}

/// The key of a channel: source address, label and what follows, as [`Stream::key_at`] writes it.
pub(super) const KEY_OCTETS: usize = 12;
/// Its value: the number of its queue, the words of the link header that all its frames have, the four words
/// with which the hash of their headers begins, the newest counter, and the number of the newest unit.
pub(super) const VALUE_OCTETS: usize = 72;
/// The words of the link header that are compared, by their places in a frame. Between them is the length.
const COMPARED: [i16; 10] = [14, 16, 20, 22, 24, 26, 28, 30, 32, 34];
const WORDS_AT: i16 = 4;
const HASH_AT_VALUE: i16 = 24;
const COUNTER_AT: i16 = 56;
const NUMBER_AT: i16 = 64;

impl Stream {
    /// The key at the interface of this place.
    pub(super) fn key_at(&self, place: u16) -> [u8; KEY_OCTETS] {
        let mut key = [0; KEY_OCTETS];
        key[..6].copy_from_slice(&self.from.0);
        key[6..8].copy_from_slice(&self.label.to_be_bytes());
        key[8..].copy_from_slice(&(u32::from(place) << 8 | u32::from(self.payload.code())).to_ne_bytes());
        key
    }

    pub(super) fn value(&self, slot: u32) -> [u8; VALUE_OCTETS] {
        let mut value = [0; VALUE_OCTETS];
        value[..4].copy_from_slice(&slot.to_ne_bytes());
        // Version 1, the two tags of data; data.
        value[4..8].copy_from_slice(&[0x12, 13, self.key_epoch, self.payload.code()]);
        value[8..10].copy_from_slice(&self.source.to_be_bytes());
        value[10..14].copy_from_slice(&self.segment.to_be_bytes());
        value[14..18].copy_from_slice(&self.incarnation.to_be_bytes());
        value[18..22].copy_from_slice(&self.generation.counter.to_be_bytes());
        value[22..24].copy_from_slice(&self.generation.station.to_be_bytes());
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| self.key.octets()[at + k]));
        let (low, high) = (word(0), word(8));
        // What SipHash begins with (the paper's section 2.1).
        let begin = [
            low ^ 0x736f_6d65_7073_6575,
            high ^ 0x646f_7261_6e64_6f6d,
            low ^ 0x6c79_6765_6e65_7261,
            high ^ 0x7465_6462_7974_6573,
        ];
        let words = begin.into_iter().chain([self.counter, self.number]);
        for (place, word) in value[HASH_AT_VALUE as usize..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        value
    }
}

// The stack, below register 10: the first octets of the frame, and with each word of eight octets in its
// place.
const FRAME_AT: i16 = -80;
const SUM_AT: i16 = -88;
const TAG_AT: i16 = -96;
const SLOT_AT: i16 = -100;
const KEY_AT: i16 = -112;
const UNIT_AT: i16 = -120;
/// The channel's value, until the counts take this register.
const VALUE: Reg = COUNTS;

/// Up to the end of the unit header, without an RTIP header.
const UNIT_HEADERS: i16 = 62;
const RTIP: i16 = 16;
/// The number of the unit, from the end of the headers.
const NUMBER: i16 = -18;
/// Before the body.
const BODY: i16 = 42;
const TAGS: i16 = 16;
const HALF: u32 = 8;

const fn field(offset: i16) -> i16 {
    FRAME_AT + offset
}

/// The filter of channels at the interface of this place.
pub(super) fn channel_filter(ether_type: u16, place: u16, maps: Maps, dialect: Dialect) -> Vec<u8> {
    let mut code = Code::new(dialect);
    let (leave, full, discard, rtip) = (code.label(), code.label(), code.label(), code.label());
    frame(&mut code, ether_type, leave);
    code.load(MemSize::Byte, 1, STACK, field(17));
    code.jump_if(1, Cond::Equals, PayloadKind::Rtip.code().into(), rtip);
    code.jump_if(1, Cond::NotEquals, PayloadKind::Unit.code().into(), leave);
    let common = Common { place, maps, leave, full, discard };
    common.of(&mut code, UNIT_HEADERS, BODY);
    code.place(rtip);
    code.jump_if(LENGTH, Cond::Lower, (UNIT_HEADERS + RTIP + TAGS).into(), leave);
    load(&mut code, UNIT_HEADERS as u32, field(UNIT_HEADERS), RTIP as u32, leave);
    common.of(&mut code, UNIT_HEADERS + RTIP, BODY + 2);
    ends(&mut code, full, discard, leave);
    code.finish()
}

/// Octets of the packet, to the stack.
fn load(code: &mut Code, from: u32, to: i16, octets: u32, leave: Label) {
    code.copy(1, CONTEXT);
    code.set(2, from);
    code.copy(3, STACK);
    code.add(3, to.into());
    code.set(4, octets);
    code.call(helper::LOAD_OCTETS);
    code.jump_if(0, Cond::NotEquals, 0, leave);
}

/// For this host's own address, without a tag that the card has taken off, no collection; of the segment's
/// EtherType, and long enough for its headers.
fn frame(code: &mut Code, ether_type: u16, leave: Label) {
    code.copy(CONTEXT, 1);
    for at in [context::KIND, context::HAS_VLAN, context::SEGMENT] {
        code.load(MemSize::Word, 1, CONTEXT, at);
        code.jump_if(1, Cond::NotEquals, 0, leave);
    }
    code.load(MemSize::Word, LENGTH, CONTEXT, context::OCTETS);
    code.jump_if(LENGTH, Cond::Lower, (UNIT_HEADERS + TAGS).into(), leave);
    load(code, 0, field(0), UNIT_HEADERS as u32, leave);
    code.load(MemSize::HalfWord, 1, STACK, field(12));
    code.hosts_order(1, 16);
    code.jump_if(1, Cond::NotEquals, ether_type.into(), leave);
}

/// What both forms of data have in common.
#[derive(Clone, Copy)]
struct Common {
    place: u16,
    maps: Maps,
    leave: Label,
    full: Label,
    discard: Label,
}

impl Common {
    /// A frame with headers of so many octets, and its label or local id there.
    fn of(&self, code: &mut Code, headers: i16, label: i16) {
        let Self { maps, leave, .. } = *self;
        self.channel(code, label);
        // The length of the frame, which is the packet's or less.
        code.load(MemSize::HalfWord, 1, STACK, field(18));
        code.hosts_order(1, 16);
        code.and(1, 0xffff);
        code.jump_if(1, Cond::Lower, (headers - BODY).into(), leave);
        code.add(1, (BODY + TAGS).into());
        code.jump_if_reg(1, Cond::Greater, LENGTH, leave);
        code.copy(LENGTH, 1);
        header_tag(code, headers, leave);
        rises(code, leave);
        follow(code, headers);
        code.load(MemSize::Word, 1, VALUE, 0);
        code.store(MemSize::Word, STACK, SLOT_AT, 1);
        look_up(code, maps.counts, SLOT_AT, leave);
        code.copy(COUNTS, 0);
        look_up(code, maps.rings, SLOT_AT, leave);
        reserve(code, &FRAME_SIZES, leave, self.full);
        self.put(code);
    }

    /// The channel of the frame: its value is known afterwards, and the words of the link header fit it.
    fn channel(&self, code: &mut Code, label: i16) {
        for (to, from) in [(0, 6), (2, 8), (4, 10), (6, label)] {
            code.load(MemSize::HalfWord, 1, STACK, field(from));
            code.store(MemSize::HalfWord, STACK, KEY_AT + to, 1);
        }
        code.load(MemSize::Byte, 1, STACK, field(17));
        code.add(1, i32::from(self.place) << 8);
        code.store(MemSize::Word, STACK, KEY_AT + 8, 1);
        look_up(code, self.maps.sockets, KEY_AT, self.leave);
        code.copy(VALUE, 0);
        for (place, at) in COMPARED.into_iter().enumerate() {
            code.load(MemSize::HalfWord, 1, STACK, field(at));
            code.load(MemSize::HalfWord, 2, VALUE, WORDS_AT + 2 * place as i16);
            code.jump_if_reg(1, Cond::NotEquals, 2, self.leave);
        }
    }

    /// Copies the frame into the record, and gives it to its reader.
    fn put(&self, code: &mut Code) {
        code.call(helper::MONOTONIC_NS);
        code.store(MemSize::DoubleWord, RECORD, head::ARRIVED, 0);
        code.store(MemSize::Word, RECORD, head::OCTETS, LENGTH);
        code.load(MemSize::DoubleWord, 1, STACK, UNIT_AT);
        code.store(MemSize::Word, RECORD, head::NUMBER, 1);
        code.copy(1, CONTEXT);
        code.set(2, 0);
        code.copy(3, RECORD);
        code.add(3, FRAME_HEAD_OCTETS as i32);
        code.copy(4, LENGTH);
        code.call(helper::LOAD_OCTETS);
        code.jump_if(0, Cond::NotEquals, 0, self.discard);
        code.copy(1, RECORD);
        code.set(2, 0);
        code.call(helper::RING_SUBMIT);
        code.count(COUNTS, count::BYPASS, 1);
        code.answer(TAKE);
    }
}

/// The state of SipHash, and a register for half of a rotation.
const V: [Reg; 4] = [1, 2, 3, 4];
const SPARE: Reg = 5;
const WORD: Reg = 0;

/// Leaves a frame whose header tag is wrong: SipHash-2-4 over the headers on the stack.
fn header_tag(code: &mut Code, headers: i16, leave: Label) {
    // The last word is filled up with zeros and the length.
    code.store_number(MemSize::Byte, STACK, field(headers), 0);
    code.store_number(MemSize::Byte, STACK, field(headers + 1), headers.into());
    for (reg, at) in V.into_iter().zip([0, 8, 16, 24]) {
        code.load(MemSize::DoubleWord, reg, VALUE, HASH_AT_VALUE + at);
    }
    for word in 0..(headers + 2) / 8 {
        code.load(MemSize::DoubleWord, WORD, STACK, field(8 * word));
        code.little_endian(WORD);
        code.xor_reg(V[3], WORD);
        round(code);
        round(code);
        code.xor_reg(V[0], WORD);
    }
    code.xor(V[2], 0xff);
    (0..4).for_each(|_| round(code));
    for reg in [V[1], V[2], V[3]] {
        code.xor_reg(V[0], reg);
    }
    code.little_endian(V[0]);
    code.store(MemSize::DoubleWord, STACK, SUM_AT, V[0]);
    code.copy(1, CONTEXT);
    code.copy(2, LENGTH);
    code.add(2, -i32::from(TAGS));
    code.copy(3, STACK);
    code.add(3, TAG_AT.into());
    code.set(4, HALF);
    code.call(helper::LOAD_OCTETS);
    code.jump_if(0, Cond::NotEquals, 0, leave);
    code.load(MemSize::DoubleWord, 1, STACK, SUM_AT);
    code.load(MemSize::DoubleWord, 2, STACK, TAG_AT);
    code.jump_if_reg(1, Cond::NotEquals, 2, leave);
}

/// A frame that is played again goes to the node, which counts it: it would fill the ring otherwise. Where a
/// card gives frames of one sender to several processors, one that is overtaken goes to the node, too.
fn rises(code: &mut Code, leave: Label) {
    code.set(1, 0);
    for at in [36, 38, 40] {
        code.shift_left(1, 16);
        code.load(MemSize::HalfWord, 2, STACK, field(at));
        code.hosts_order(2, 16);
        code.or_reg(1, 2);
    }
    code.load(MemSize::DoubleWord, 2, VALUE, COUNTER_AT);
    code.jump_if_reg(1, Cond::LowerEquals, 2, leave);
    code.store(MemSize::DoubleWord, VALUE, COUNTER_AT, 1);
    // How far it rises is in register 1 afterwards.
    code.sub_reg(1, 2);
}

/// The whole number of the frame's unit. It is followed here, where each frame is seen, also one for which
/// the ring has no room: a program that stood still for more than 2^16 units could not tell.
fn follow(code: &mut Code, headers: i16) {
    let (ahead, known) = (code.label(), code.label());
    code.load(MemSize::HalfWord, 2, STACK, field(headers + NUMBER));
    code.hosts_order(2, 16);
    code.load(MemSize::DoubleWord, 3, VALUE, NUMBER_AT);
    code.sub_reg(2, 3);
    code.and(2, 0xffff);
    code.add_reg(3, 2);
    code.jump_if(2, Cond::Lower, 0x8000, ahead);
    // It is this far ahead if so many frames were sent meanwhile, and an older one otherwise.
    code.jump_if_reg(2, Cond::LowerEquals, 1, ahead);
    code.add(3, -0x1_0000);
    code.jump(known);
    code.place(ahead);
    code.store(MemSize::DoubleWord, VALUE, NUMBER_AT, 3);
    code.place(known);
    code.store(MemSize::DoubleWord, STACK, UNIT_AT, 3);
}

/// One round of SipHash.
fn round(code: &mut Code) {
    let [a, b, c, d] = V;
    let mut half = |(to, from): (Reg, Reg), bits: i32, turned: bool| {
        code.add_reg(to, from);
        rotate(code, from, bits);
        code.xor_reg(from, to);
        if turned {
            rotate(code, to, 32);
        }
    };
    half((a, b), 13, true);
    half((c, d), 16, false);
    half((a, d), 21, false);
    half((c, b), 17, true);
}

fn rotate(code: &mut Code, reg: Reg, bits: i32) {
    code.copy(SPARE, reg);
    code.shift_left(reg, bits);
    code.shift_right(SPARE, 64 - bits);
    code.or_reg(reg, SPARE);
}
