//! Other senders on the wire: counts frames of hosts that are no members, and reads what the
//! interface has sent in all. Meant to be asked a few times a second.
//!
//! The counting is the kernel's: frames of others pass a filter into a small queue, and what finds the queue
//! full is counted as well, so that a flood costs no more than a trickle.

use crate::device::ETHERNET_HEADER;
use crate::packet::{DeviceOpenError, RawSocket};
use crate::sys::packet_socket::{self, LinkAddress};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use std::os::fd::{AsFd, AsRawFd};

/// Frames that are kept to be looked at; the others are only counted.
const SAMPLE_OCTETS: usize = 64 << 10;
/// How many are looked at in one turn.
const SAMPLES: usize = 64;
/// All of a frame is kept: of one cut short the kernel would no longer know the length.
const KEPT: u32 = 0x4_0000;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// What was heard of others since the last question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// Frames.
    pub frames: u64,
    /// Their octets, reckoned from those that were looked at.
    pub octets: u64,
    /// The sender of the last of those; zeros for none.
    pub mac: [u8; 6],
    /// How many of those that were looked at carry this interface's own address.
    pub own: u64,
}

/// An ear for strangers on one interface.
#[derive(Debug)]
pub struct Outsiders {
    raw: RawSocket,
}

impl Outsiders {
    /// Listens on `iface`.
    ///
    /// # Errors
    /// [`DeviceOpenError`].
    pub fn open(iface: &str) -> Result<Self, DeviceOpenError> {
        let raw = RawSocket::open(iface)?;
        let fd = raw.socket.as_fd();
        packet_socket::set_packet_option(fd, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(raw.failed("PACKET_IGNORE_OUTGOING (kernel 4.20 or later)"))?;
        raw.keep_waiting(SAMPLE_OCTETS)?;
        let mut ear = Self { raw };
        ear.expect(&[]).map_err(ear.raw.failed("the receive filter"))?;
        let all = LinkAddress::new(ear.raw.index, libc::ETH_P_ALL as u16);
        packet_socket::bind(ear.raw.socket.as_fd(), &all).map_err(ear.raw.failed("bind"))?;
        Ok(ear)
    }

    /// From now on these addresses are no strangers.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn expect(&mut self, members: &[[u8; 6]]) -> Result<(), Errno> {
        packet_socket::attach_filter(self.raw.socket.as_fd(), &strangers(members))
    }

    /// What came since the last question.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn take(&mut self) -> Result<Foreign, Errno> {
        let fd = self.raw.socket.as_fd();
        let (mut looked, mut octets, mut mac, mut own) = (0, 0, [0; 6], 0);
        let mut head = [0; ETHERNET_HEADER];
        for _ in 0..SAMPLES {
            // With MSG_TRUNC the answer is the frame's own length, however little of it is read.
            match recv(fd.as_raw_fd(), &mut head, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC) {
                Ok(length) => {
                    looked += 1;
                    octets += length as u64;
                    mac.copy_from_slice(&head[6..12]);
                    own += u64::from(mac == self.raw.mac);
                }
                Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => break,
                Err(errno) => return Err(errno),
            }
        }
        let frames = u64::from(packet_socket::take_seen(fd)?);
        let octets = octets.checked_div(looked).unwrap_or(0) * frames;
        Ok(Foreign { frames, octets, mac, own })
    }
}

/// Passes frames from sources other than `members`, frames of our EtherType too, without the protocols
/// between switches (groups 01:80:c2:00:00:xx, which belong to no host's traffic).
fn strangers(members: &[[u8; 6]]) -> Vec<libc::sock_filter> {
    let step = |code: u16, k: u32, jt: u8, jf: u8| libc::sock_filter { code, jt, jf, k };
    let mut program = Vec::with_capacity(6 + 5 * members.len());
    program.push(step(LOAD_WORD, 0, 0, 0));
    program.push(step(IF_EQUAL, 0x0180_c200, 0, 1));
    program.push(step(RETURN, 0, 0, 0));
    for member in members {
        let [a, b, c, d, e, f] = *member;
        program.push(step(LOAD_WORD, 6, 0, 0));
        program.push(step(IF_EQUAL, u32::from_be_bytes([a, b, c, d]), 0, 3));
        program.push(step(LOAD_HALF, 10, 0, 0));
        program.push(step(IF_EQUAL, u32::from(u16::from_be_bytes([e, f])), 0, 1));
        program.push(step(RETURN, 0, 0, 0));
    }
    program.push(step(RETURN, KEPT, 0, 0));
    program
}

/// Frames and octets that `iface` has sent since it exists, as the kernel counts them for the calling
/// thread's network namespace. `None` when it has no such interface or does not say.
pub fn interface_sent(iface: &str) -> Option<(u64, u64)> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    sent_in(&table, iface)
}

/// Frames that `iface` was to send and dropped.
pub fn interface_dropped(iface: &str) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    dropped_in(&table, iface)
}

fn line_of<'a>(table: &'a str, iface: &str) -> Option<&'a str> {
    table.lines().find_map(|line| line.trim_start().strip_prefix(iface)?.strip_prefix(':'))
}

/// Behind octets, frames and errors of what it sent.
fn dropped_in(table: &str, iface: &str) -> Option<u64> {
    line_of(table, iface)?.split_whitespace().nth(11)?.parse().ok()
}

/// The line of `iface`: eight numbers of what it received, then octets and frames of what it sent.
fn sent_in(table: &str, iface: &str) -> Option<(u64, u64)> {
    let mut numbers = line_of(table, iface)?.split_whitespace().skip(8).map(str::parse::<u64>);
    let (octets, frames) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((frames, octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the few instructions that the program uses, as the kernel would.
    fn passes(program: &[libc::sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut value) = (0_usize, 0_u32);
        loop {
            let now = &program[at];
            at += 1;
            let k = now.k as usize;
            match now.code {
                LOAD_WORD => value = u32::from_be_bytes(frame[k..k + 4].try_into().unwrap()),
                LOAD_HALF => value = u32::from(u16::from_be_bytes(frame[k..k + 2].try_into().unwrap())),
                IF_EQUAL => at += usize::from(if value == now.k { now.jt } else { now.jf }),
                _ => return now.k != 0,
            }
        }
    }

    #[test]
    fn only_strangers_pass() {
        let member = |k| [2, 0, 0, 0, 1, k];
        let frame = |to: [u8; 6], from: [u8; 6], ethertype: u16| {
            [&to[..], &from[..], &ethertype.to_be_bytes()[..]].concat()
        };
        for count in [0, 1, 3, 200] {
            let members: Vec<[u8; 6]> = (0..count).map(member).collect();
            let program = strangers(&members);
            for member in &members {
                assert!(!passes(&program, &frame([9; 6], *member, 0x0800)));
            }
            assert!(passes(&program, &frame([9; 6], [2, 0, 0, 0, 1, 201], 0x0800)));
            assert!(passes(&program, &frame([9; 6], [2, 0, 0, 1, 1, 0], 0x0800)));
            assert!(passes(&program, &frame([9; 6], [7; 6], 0x88b5)), "a frame like ours makes no member");
            let talk = frame([1, 0x80, 0xc2, 0, 0, 0], [7; 6], 0x0027);
            assert!(!passes(&program, &talk), "between switches");
        }
    }

    #[test]
    fn the_line_of_an_interface_is_found() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n    \
                     lo:  1 2 0 0 0 0 0 0  3 4 0 0\n\
                     eth0: 10 20 0 0 0 0 0 0 30 40 0 0 0 0 0 0\n eth01: 1 1 1 1 1 1 1 1 9 9 0";
        assert_eq!(sent_in(table, "eth0"), Some((40, 30)));
        assert_eq!(sent_in(table, "lo"), Some((4, 3)));
        assert_eq!(sent_in(table, "eth1"), None);
        assert_eq!(sent_in("eth0: 1 2 3", "eth0"), None);
        assert!(interface_sent("lo").is_some(), "every host has a loopback");
    }
}
