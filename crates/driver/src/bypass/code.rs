//! Writes programs for the kernel's virtual machine: the instructions of `rbpf`'s builder, with labels.

use rbpf::insn_builder::{Arch, BpfCode, Cond, Endian, Instruction as _, IntoBytes as _, MemSize, Source};

/// A register: 0 has answers, 1 to 5 arguments, which a call destroys; 6 to 9 keep their values; 10 is the
/// end of the stack.
pub(super) type Reg = u8;

/// Functions of the kernel.
pub(super) mod helper {
    pub(crate) const MAP_LOOKUP: i32 = 1;
    pub(crate) const MONOTONIC_NS: i32 = 5;
    pub(crate) const LOAD_OCTETS: i32 = 26;
    pub(crate) const CHECKSUM: i32 = 28;
    pub(crate) const LOAD_FROM_HEADER: i32 = 68;
    pub(crate) const RING_RESERVE: i32 = 131;
    pub(crate) const RING_SUBMIT: i32 = 132;
    pub(crate) const RING_DISCARD: i32 = 133;
}

/// The executor of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Kernel,
    /// That of `rbpf` knows no atomic addition.
    Interpreter,
}

/// A place in the program that may be jumped to before it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label(usize);

/// A program that is being written.
pub(super) struct Code {
    code: BpfCode,
    dialect: Dialect,
    places: Vec<Option<usize>>,
    /// The instructions that jump, and where to.
    jumps: Vec<(usize, Label)>,
    atomic: Vec<usize>,
}

const SLOT: usize = 8;
/// Adds a register to a word of 64 bits in memory; the builder has no name for it.
const ATOMIC_ADD: u8 = 0xdb;

impl Code {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { code: BpfCode::new(), dialect, places: Vec::new(), jumps: Vec::new(), atomic: Vec::new() }
    }

    fn next(&self) -> usize {
        (&self.code).into_bytes().len() / SLOT
    }

    pub(super) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The label is here.
    pub(super) fn place(&mut self, label: Label) {
        assert!(self.places[label.0].is_none(), "a label has one place");
        self.places[label.0] = Some(self.next());
    }

    pub(super) fn copy(&mut self, to: Reg, from: Reg) {
        self.code.mov(Source::Reg, Arch::X64).set_dst(to).set_src(from).push();
    }

    /// A number of 32 bits without a sign; the upper half is zero.
    pub(super) fn set(&mut self, to: Reg, value: u32) {
        self.code.mov(Source::Imm, Arch::X32).set_dst(to).set_imm(value.cast_signed()).push();
    }

    pub(super) fn add(&mut self, to: Reg, value: i32) {
        self.code.add(Source::Imm, Arch::X64).set_dst(to).set_imm(value).push();
    }

    pub(super) fn add_reg(&mut self, to: Reg, from: Reg) {
        self.code.add(Source::Reg, Arch::X64).set_dst(to).set_src(from).push();
    }

    pub(super) fn sub_reg(&mut self, to: Reg, from: Reg) {
        self.code.sub(Source::Reg, Arch::X64).set_dst(to).set_src(from).push();
    }

    /// The value must be positive as a number with a sign: the kernel extends its sign.
    pub(super) fn and(&mut self, to: Reg, value: i32) {
        assert!(value >= 0);
        self.code.bit_and(Source::Imm, Arch::X64).set_dst(to).set_imm(value).push();
    }

    pub(super) fn and_reg(&mut self, to: Reg, from: Reg) {
        self.code.bit_and(Source::Reg, Arch::X64).set_dst(to).set_src(from).push();
    }

    pub(super) fn or_reg(&mut self, to: Reg, from: Reg) {
        self.code.bit_or(Source::Reg, Arch::X64).set_dst(to).set_src(from).push();
    }

    pub(super) fn xor(&mut self, to: Reg, value: i32) {
        assert!(value >= 0);
        self.code.bit_xor(Source::Imm, Arch::X64).set_dst(to).set_imm(value).push();
    }

    pub(super) fn xor_reg(&mut self, to: Reg, from: Reg) {
        self.code.bit_xor(Source::Reg, Arch::X64).set_dst(to).set_src(from).push();
    }

    pub(super) fn shift_left(&mut self, to: Reg, bits: i32) {
        self.code.left_shift(Source::Imm, Arch::X64).set_dst(to).set_imm(bits).push();
    }

    pub(super) fn shift_right(&mut self, to: Reg, bits: i32) {
        self.code.right_shift(Source::Imm, Arch::X64).set_dst(to).set_imm(bits).push();
    }

    /// From the order of the network to that of the host.
    pub(super) fn hosts_order(&mut self, reg: Reg, bits: i32) {
        self.code.swap_bytes(Endian::Big).set_dst(reg).set_imm(bits).push();
    }

    /// From or to the order in which the first octet is the lowest.
    pub(super) fn little_endian(&mut self, reg: Reg) {
        self.code.swap_bytes(Endian::Little).set_dst(reg).set_imm(64).push();
    }

    pub(super) fn load(&mut self, size: MemSize, to: Reg, from: Reg, at: i16) {
        self.code.load_x(size).set_dst(to).set_src(from).set_off(at).push();
    }

    pub(super) fn store(&mut self, size: MemSize, to: Reg, at: i16, from: Reg) {
        self.code.store_x(size).set_dst(to).set_src(from).set_off(at).push();
    }

    pub(super) fn store_number(&mut self, size: MemSize, to: Reg, at: i16, value: i32) {
        self.code.store(size).set_dst(to).set_off(at).set_imm(value).push();
    }

    /// Adds 1 to a word of 64 bits in memory; destroys the register `by`.
    pub(super) fn count(&mut self, at: Reg, offset: i16, by: Reg) {
        match self.dialect {
            Dialect::Kernel => {
                self.set(by, 1);
                self.atomic.push(self.next());
                self.store(MemSize::DoubleWord, at, offset, by);
            }
            Dialect::Interpreter => {
                self.load(MemSize::DoubleWord, by, at, offset);
                self.add(by, 1);
                self.store(MemSize::DoubleWord, at, offset, by);
            }
        }
    }

    /// A map, by its descriptor.
    pub(super) fn map(&mut self, to: Reg, map: i32) {
        const OF_A_MAP: Reg = 1;
        self.code.load(MemSize::DoubleWord).set_dst(to).set_src(OF_A_MAP).set_imm(map).push();
        // The upper half of the number, in an instruction of its own whose code is zero.
        self.code.load(MemSize::Word).push();
    }

    pub(super) fn call(&mut self, helper: i32) {
        self.code.call().set_imm(helper).push();
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.jumps.push((self.next(), to));
        self.code.jump_unconditional().push();
    }

    pub(super) fn jump_if(&mut self, reg: Reg, cond: Cond, value: i32, to: Label) {
        self.jumps.push((self.next(), to));
        self.code.jump_conditional(cond, Source::Imm).set_dst(reg).set_imm(value).push();
    }

    pub(super) fn jump_if_reg(&mut self, reg: Reg, cond: Cond, other: Reg, to: Label) {
        self.jumps.push((self.next(), to));
        self.code.jump_conditional(cond, Source::Reg).set_dst(reg).set_src(other).push();
    }

    /// Ends with this answer.
    pub(super) fn answer(&mut self, value: i32) {
        self.code.mov(Source::Imm, Arch::X64).set_dst(0).set_imm(value).push();
        self.code.exit().push();
    }

    /// The octets of the program.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut octets = (&self.code).into_bytes().to_vec();
        for (from, label) in self.jumps {
            let to = self.places[label.0].expect("each label has a place");
            let distance = i16::try_from(to.cast_signed() - from.cast_signed() - 1).expect("a short program");
            octets[from * SLOT + 2..from * SLOT + 4].copy_from_slice(&distance.to_le_bytes());
        }
        for at in self.atomic {
            octets[at * SLOT] = ATOMIC_ADD;
        }
        octets
    }
}
