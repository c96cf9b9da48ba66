//! The kernel's filter before our socket: only frames that are ours may wake the daemon.

use libc::sock_filter;

/// Groups that one device can listen to, beside its own address and broadcast.
pub const GROUPS_MAX: usize = 8;
/// The version that the first payload octet carries in its upper half.
pub const LINK_VERSION: u8 = 1;
/// Offset of the sender's incarnation in a frame.
pub const INCARNATION_AT: usize = 26;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_OCTET: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const WHOLE_FRAME: u32 = 0x4_0000;

const UDP_HEADER: u32 = 8;
/// The access point of IEEE 802.1D.
const SPANNING_TREE: u32 = 0x42;

/// Sources that one device can shut out at a time.
pub const SHUT_OUT_MAX: usize = 16;

/// A source whose frames are not wanted for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutOut {
    /// The Ethernet source.
    pub mac: [u8; 6],
    /// Frames of this incarnation of a station are wanted all the same.
    pub but: Option<u32>,
}

/// Stations that a closed door can know: a jump goes no further.
pub const KNOWN_MAX: usize = 254;

/// Most instructions of the filter: the tests that keep strangers out, and the tests behind them.
pub(crate) const INSTRUCTIONS_MAX: usize = KNOWN_MAX + 2 + 7 * SHUT_OUT_MAX + 10 + 4 * (GROUPS_MAX + 3) + 2;

/// Writes tests that drop frames without one of these incarnations; the program goes on behind them.
pub(crate) fn only(known: &[u32], program: &mut Vec<sock_filter>) {
    let known = &known[..known.len().min(KNOWN_MAX)];
    program.push(step(LOAD_WORD, INCARNATION_AT as u32, 0, 0));
    for (k, incarnation) in known.iter().enumerate() {
        program.push(step(IF_EQUAL, *incarnation, (known.len() - k) as u8, 0));
    }
    program.push(step(RETURN, 0, 0, 0));
}

/// Writes tests that drop frames from `sources`; the program goes on behind them.
pub(crate) fn without(sources: &[ShutOut], program: &mut Vec<sock_filter>) {
    for ShutOut { mac: [a, b, c, d, e, f], but } in sources.iter().take(SHUT_OUT_MAX) {
        let more = if but.is_some() { 2 } else { 0 };
        program.push(step(LOAD_WORD, 6, 0, 0));
        program.push(step(IF_EQUAL, u32::from_be_bytes([*a, *b, *c, *d]), 0, 3 + more));
        program.push(step(LOAD_HALF, 10, 0, 0));
        program.push(step(IF_EQUAL, u32::from(u16::from_be_bytes([*e, *f])), 0, 1 + more));
        if let Some(incarnation) = but {
            program.push(step(LOAD_WORD, INCARNATION_AT as u32, 0, 0));
            program.push(step(IF_EQUAL, *incarnation, 1, 0));
        }
        program.push(step(RETURN, 0, 0, 0));
    }
}

const fn step(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Writes a program that passes frames of `ethertype` which are addressed to one of `addresses` (at most own,
/// broadcast and [`GROUPS_MAX`] groups; more would not fit a jump). Of another version only broadcasts pass,
/// by which the node learns of such stations.
pub(crate) fn ours(ethertype: u16, addresses: &[[u8; 6]], program: &mut Vec<sock_filter>) {
    // The jumps to "drop" and "pass" are counted from the end, so the end's layout comes first:
    // … per address: load high, compare, load low, compare → pass | drop | pass.
    let tests = 4 * addresses.len() as u8;
    program.push(step(LOAD_HALF, 12, 0, 0));
    program.push(step(IF_EQUAL, u32::from(ethertype), 0, 7 + tests));
    program.push(step(LOAD_OCTET, 14, 0, 0));
    program.push(step(AND, 0xf0, 0, 0));
    program.push(step(IF_EQUAL, u32::from(LINK_VERSION) << 4, 4, 0));
    program.push(step(LOAD_WORD, 0, 0, 0));
    program.push(step(IF_EQUAL, 0xffff_ffff, 0, 2 + tests));
    program.push(step(LOAD_HALF, 4, 0, 0));
    program.push(step(IF_EQUAL, 0xffff, 1 + tests, tests));
    push_addresses(program, addresses);
}

/// Tests the destination, and the end of a program: drop, then pass.
fn push_addresses(program: &mut Vec<sock_filter>, addresses: &[[u8; 6]]) {
    for (k, address) in addresses.iter().enumerate() {
        let left = 4 * (addresses.len() - k - 1) as u8;
        let [a, b, c, d, e, f] = *address;
        program.push(step(LOAD_WORD, 0, 0, 0));
        program.push(step(IF_EQUAL, u32::from_be_bytes([a, b, c, d]), 0, 2));
        program.push(step(LOAD_HALF, 4, 0, 0));
        program.push(step(IF_EQUAL, u32::from(u16::from_be_bytes([e, f])), left + 1, 0));
    }
    program.push(step(RETURN, 0, 0, 0));
    program.push(step(RETURN, WHOLE_FRAME, 0, 0));
}

/// Writes a program for a socket of UDP, whose payload is a frame: those from `sources` do not pass, and with
/// `known` only those with one of these incarnations do.
pub(crate) fn in_datagrams(sources: &[ShutOut], known: Option<&[u32]>, program: &mut Vec<sock_filter>) {
    if let Some(known) = known {
        only(known, program);
    }
    without(sources, program);
    program.push(step(RETURN, WHOLE_FRAME, 0, 0));
    // The kernel shows such a program the UDP header first.
    let loads = |code: u16| [LOAD_WORD, LOAD_HALF, LOAD_OCTET].contains(&code);
    program.iter_mut().filter(|step| loads(step.code)).for_each(|step| step.k += UDP_HEADER);
}

/// A program that passes IEEE 802.2 frames addressed to one of `addresses`, except those of the spanning
/// tree, which bridges send all the time and no station here reads.
pub(crate) fn llc(addresses: &[[u8; 6]]) -> Vec<sock_filter> {
    let mut program = Vec::with_capacity(4 + 4 * addresses.len());
    let tests = 4 * addresses.len() as u8;
    program.push(step(LOAD_OCTET, 14, 0, 0));
    program.push(step(IF_EQUAL, SPANNING_TREE, tests, 0));
    push_addresses(&mut program, addresses);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the few instructions that the program uses, as the kernel would.
    fn passes(program: &[sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut value) = (0_usize, 0_u32);
        loop {
            let now = &program[at];
            at += 1;
            let k = now.k as usize;
            let load =
                |n: usize| frame.get(k..k + n).map(|part| part.iter().fold(0, |v, o| v << 8 | u32::from(*o)));
            let loaded = match now.code {
                LOAD_WORD => load(4),
                LOAD_HALF => load(2),
                LOAD_OCTET => load(1),
                AND => Some(value & now.k),
                IF_EQUAL => {
                    at += usize::from(if value == now.k { now.jt } else { now.jf });
                    Some(value)
                }
                _ => return now.k != 0,
            };
            let Some(loaded) = loaded else { return false };
            value = loaded;
        }
    }

    fn written(write: impl FnOnce(&mut Vec<sock_filter>)) -> Vec<sock_filter> {
        let mut program = Vec::new();
        write(&mut program);
        program
    }

    fn frame(to: [u8; 6], ethertype: u16, first: u8) -> Vec<u8> {
        let mut frame = to.to_vec();
        frame.extend_from_slice(&[2, 0, 0, 0, 0, 9]);
        frame.extend_from_slice(&ethertype.to_be_bytes());
        frame.push(first);
        frame
    }

    #[test]
    fn only_our_frames_for_us_pass() {
        let own = [2, 0, 0, 0, 0, 1];
        let addresses: Vec<[u8; 6]> =
            [own, [0xff; 6]].into_iter().chain((0..GROUPS_MAX as u8).map(|k| [3, 0, 0, 0, 0, k])).collect();
        for count in 1..=addresses.len() {
            let program = written(|program| ours(0x88b5, &addresses[..count], program));
            for (k, address) in addresses.iter().enumerate() {
                assert_eq!(passes(&program, &frame(*address, 0x88b5, 0x1f)), k < count);
            }
            assert!(!passes(&program, &frame([2, 0, 0, 0, 0, 2], 0x88b5, 0x10)));
            assert!(!passes(&program, &frame([2, 0, 0, 9, 0, 1], 0x88b5, 0x10)));
            assert!(!passes(&program, &frame(own, 0x0800, 0x10)));
            assert!(!passes(&program, &frame(own, 0x88b5, 0x20)));
            assert!(!passes(&program, &frame([0xff, 0xff, 0xff, 0xff, 0xff, 1], 0x88b5, 0x20)));
            assert!(!passes(&program, &frame([1, 0xff, 0xff, 0xff, 0xff, 0xff], 0x88b5, 0x20)));
            assert!(passes(&program, &frame([0xff; 6], 0x88b5, 0x20)), "another version is named");
            assert!(!passes(&program, &frame(own, 0x88b5, 0x10)[..14]));
        }
    }

    #[test]
    fn who_is_shut_out_is_not_heard_and_a_station_of_that_address_is() {
        let own = [2, 0, 0, 0, 0, 1];
        let all = |program: &mut Vec<sock_filter>| ours(0x88b5, &[own, [0xff; 6]], program);
        let from = |mac: [u8; 6], incarnation: u32| {
            let mut frame = frame(own, 0x88b5, 0x11);
            frame.resize(60, 0);
            frame[6..12].copy_from_slice(&mac);
            frame[26..30].copy_from_slice(&incarnation.to_be_bytes());
            frame
        };
        let (babbler, member, other) = ([6, 0, 0, 0, 0, 1], [6, 0, 0, 0, 0, 2], [6, 0, 0, 0, 1, 1]);
        let sources = [ShutOut { mac: babbler, but: None }, ShutOut { mac: member, but: Some(77) }];
        for count in 0..=2 {
            let program = written(|program| {
                without(&sources[..count], program);
                all(program);
            });
            assert_eq!(passes(&program, &from(babbler, 77)), count < 1);
            assert_eq!(passes(&program, &from(member, 76)), count < 2);
            assert!(passes(&program, &from(member, 77)) && passes(&program, &from(other, 77)));
        }
    }

    #[test]
    fn behind_a_closed_door_only_stations_are_heard() {
        let own = [2, 0, 0, 0, 0, 1];
        let all = |program: &mut Vec<sock_filter>| ours(0x88b5, &[own, [0xff; 6]], program);
        let known: Vec<u32> = (1..=300).map(|k| k * 0x0001_0101).collect();
        for count in [0, 1, 2, 253, 254, 300] {
            let program = written(|program| {
                only(&known[..count], program);
                all(program);
            });
            for (k, incarnation) in known.iter().enumerate() {
                let mut frame = frame(own, 0x88b5, 0x11);
                frame.resize(60, 0);
                frame[26..30].copy_from_slice(&incarnation.to_be_bytes());
                assert_eq!(passes(&program, &frame), k < count.min(KNOWN_MAX), "{k} of {count}");
                frame[12] = 8;
                assert!(!passes(&program, &frame));
            }
        }
    }

    #[test]
    fn in_datagrams_a_source_is_shut_out_behind_the_udp_header() {
        let (stranger, peer) = ([2, 0, 0, 0, 0, 7], [2, 0, 0, 0, 0, 8]);
        let datagram = |mac: [u8; 6], incarnation: u32| {
            let mut datagram = vec![0xee; 8];
            datagram.extend_from_slice(&frame([2, 0, 0, 0, 0, 1], 0x88b5, 0x11));
            datagram.resize(68, 0);
            datagram[14..20].copy_from_slice(&mac);
            datagram[34..38].copy_from_slice(&incarnation.to_be_bytes());
            datagram
        };
        let sources = [ShutOut { mac: stranger, but: None }];
        for known in [None, Some(&[77][..])] {
            let program = written(|program| in_datagrams(&sources, known, program));
            assert!(passes(&program, &datagram(peer, 77)));
            assert_eq!(passes(&program, &datagram(peer, 76)), known.is_none());
            assert!(!passes(&program, &datagram(stranger, 77)));
        }
    }

    #[test]
    fn of_802_2_frames_the_spanning_tree_stays_outside() {
        let own = [2, 0, 0, 0, 0, 1];
        let program = llc(&[own, [0xff; 6]]);
        assert!(passes(&program, &frame(own, 3, 4)) && passes(&program, &frame([0xff; 6], 3, 4)));
        assert!(!passes(&program, &frame(own, 3, 0x42)) && !passes(&program, &frame([0xff; 6], 3, 0x42)));
        assert!(!passes(&program, &frame([2, 0, 0, 0, 0, 2], 3, 4)));
    }
}
