//! The programs of the bypass, run in user space: what the kernel's functions do, over memory of ours.
//!
//! The interpreter hands its functions bare addresses, of its stack and of the values and records here.

use crate::bypass::interpret::{Context, Kernel, Outcome};
use rbpf::EbpfVmMbuff;
use std::cell::RefCell;

const RECORD_OCTETS: usize = 65_536;
/// A record has what was there before; a program that forgets to write a field is seen by that.
const REMAINS: u8 = 0xa5;
const FAILED: u64 = (-14_i64).cast_unsigned();

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

struct State {
    kernel: Kernel,
    /// The values of the map of sockets, in its order.
    sockets: Box<[Box<[u8]>]>,
    counts: Box<[[u8; 24]]>,
    record: Box<[u8]>,
    /// The ring and the octets of a place that was reserved and neither given nor taken back.
    open: Option<(u32, usize)>,
    outcome: Outcome,
}

fn with<T>(call: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(|state| call(state.as_mut().expect("a program runs")))
}

/// Runs a program.
///
/// # Errors
/// One sentence: the program did what no program may do.
pub(crate) fn run(program: &[u8], context: &Context, kernel: Kernel) -> Result<Outcome, String> {
    let words = context.words();
    let mut octets = [0_u8; 192];
    for (at, value) in words {
        octets[at as usize..at as usize + 4].copy_from_slice(&value.to_ne_bytes());
    }
    let sockets: Box<[Box<[u8]>]> =
        kernel.sockets.iter().map(|(_, value)| value.clone().into_boxed_slice()).collect();
    let counts = vec![[0; 24]; kernel.slots].into_boxed_slice();
    let record = vec![REMAINS; RECORD_OCTETS].into_boxed_slice();
    let mut vm = EbpfVmMbuff::new(Some(program)).map_err(sentence)?;
    let range = |start: *const u8, octets: usize| start as u64..start as u64 + octets as u64;
    for value in &sockets {
        vm.register_allowed_memory(range(value.as_ptr(), value.len()));
    }
    vm.register_allowed_memory(range(counts.as_ptr().cast(), 24 * counts.len()));
    vm.register_allowed_memory(range(record.as_ptr(), record.len()));
    for (number, helper) in [
        (1, look_up as rbpf::Helper),
        (5, monotonic_ns),
        (26, load_octets),
        (28, checksum),
        (68, load_from_header),
        (131, reserve),
        (132, submit),
        (133, discard),
    ] {
        vm.register_helper(number, helper).map_err(sentence)?;
    }
    let outcome = Outcome::default();
    STATE.set(Some(State { kernel, sockets, counts, record, open: None, outcome }));
    let answer = vm.execute_program(&[], &octets).map_err(sentence);
    let state = STATE.take().expect("it was set above");
    let answer = answer? as u32;
    if state.open.is_some() {
        return Err("a record was neither submitted nor discarded".into());
    }
    let counts = state.counts.into_vec();
    let values = state.sockets.iter().map(|value| value.to_vec()).collect();
    Ok(Outcome { answer: answer.cast_signed(), counts, values, ..state.outcome })
}

fn sentence(error: rbpf::lib::Error) -> String {
    format!("{error:?}")
}

/// Reads what an address of the program points to.
fn read(address: u64, octets: usize) -> Vec<u8> {
    // SAFETY: the address is of the interpreter's stack or of memory of the state, which live past the call;
    // the programs here read no more octets than their own key or record has.
    unsafe { std::slice::from_raw_parts(address as *const u8, octets) }.to_vec()
}

/// Writes to where an address of the program points.
fn write(address: u64, octets: &[u8]) {
    // SAFETY: as for reading; no reference to that memory exists while a function of the kernel runs.
    unsafe { std::ptr::copy(octets.as_ptr(), address as *mut u8, octets.len()) }
}

fn look_up(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
    let slot = |state: &State| {
        let slot = u32::from_ne_bytes(read(key, 4).try_into().unwrap_or_default()) as usize;
        Some(slot).filter(|slot| *slot < state.kernel.slots)
    };
    with(|state| match map as i32 {
        Kernel::SOCKETS => {
            let octets = state.kernel.sockets.first().map_or(0, |(key, _)| key.len());
            let key = read(key, octets);
            let at = state.kernel.sockets.iter().position(|(known, _)| known[..] == key[..]);
            at.map_or(0, |at| state.sockets[at].as_mut_ptr() as u64)
        }
        Kernel::COUNTS => slot(state).map_or(0, |slot| state.counts[slot].as_mut_ptr() as u64),
        // Nothing reads a ring: its number and one stand for it.
        Kernel::RINGS => slot(state).map_or(0, |slot| slot as u64 + 1),
        _ => 0,
    })
}

fn monotonic_ns(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    with(|state| state.kernel.monotonic_ns)
}

fn copy_from_packet(state: &State, from: usize, to: u64, octets: u64) -> u64 {
    let end = from.checked_add(octets as usize);
    match end.and_then(|end| state.kernel.packet.get(from..end)) {
        Some(part) if octets > 0 => {
            write(to, part);
            0
        }
        _ => FAILED,
    }
}

fn load_octets(_: u64, offset: u64, to: u64, octets: u64, _: u64) -> u64 {
    with(|state| copy_from_packet(state, state.kernel.data_at + offset as usize, to, octets))
}

fn load_from_header(_: u64, offset: u64, to: u64, octets: u64, _: u64) -> u64 {
    with(|state| copy_from_packet(state, state.kernel.network_at + offset as usize, to, octets))
}

fn checksum(_: u64, _: u64, of: u64, octets: u64, seed: u64) -> u64 {
    if !octets.is_multiple_of(4) {
        return (-22_i64).cast_unsigned();
    }
    let words = read(of, octets as usize);
    let words = words.chunks_exact(2).map(|word| u64::from(u16::from_ne_bytes([word[0], word[1]])));
    let mut sum = words.sum::<u64>() + (seed & 0xffff_ffff);
    while sum >> 32 != 0 {
        sum = (sum & 0xffff_ffff) + (sum >> 32);
    }
    sum
}

fn reserve(ring: u64, octets: u64, _: u64, _: u64, _: u64) -> u64 {
    with(|state| {
        if state.kernel.is_full {
            return 0;
        }
        state.open = Some((ring as u32 - 1, octets as usize));
        state.record.as_mut_ptr() as u64
    })
}

fn submit(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    with(|state| {
        if let Some((ring, octets)) = state.open.take() {
            state.outcome.records.push((ring, state.record[..octets].to_vec()));
        }
        0
    })
}

fn discard(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    with(|state| {
        state.open = None;
        0
    })
}
