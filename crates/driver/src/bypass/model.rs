//! The kernel's layers as a plain function of a packet.
//!
//! It is written from the specifications (RFC 791, 768, 1122) and the behaviour of Linux, layer by layer, and
//! shares no code with the filter, which is compared with it.

use super::filter::Inlet;
use super::interpret::Context;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A socket of UDP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Socket {
    pub(crate) bound: SocketAddrV4,
    pub(crate) peer: Option<SocketAddrV4>,
}

/// A packet as a program gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery<'a> {
    /// The socket, by its place.
    pub(crate) socket: usize,
    pub(crate) from: SocketAddrV4,
    pub(crate) to: Ipv4Addr,
    pub(crate) octets: &'a [u8],
    /// Nothing about the packet is rare: the bypass may take it.
    pub(crate) is_plain: bool,
}

fn word(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn address(octets: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3])
}

/// The sum of RFC 1071 over several pieces, each but the last of an even length; all bits set where it is
/// right.
pub(super) fn sum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for piece in pieces {
        for pair in piece.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    sum as u16
}

/// The sum of a datagram with the pseudo header of its packet.
pub(super) fn udp_sum(ip: &[u8], datagram: &[u8]) -> u16 {
    let octets = (datagram.len() as u16).to_be_bytes();
    sum(&[&ip[12..20], &[0, 17], &octets, datagram])
}

/// The layers' delivery of one packet, by itself: a fragment yields nothing until its others are there.
pub(crate) fn stack<'a>(
    frame: &'a [u8],
    context: Context,
    inlet: &Inlet,
    sockets: &[Socket],
) -> Option<Delivery<'a>> {
    // Another host's, a VLAN's, or several packets in one, which are taken apart first.
    if context.kind == 3 || context.has_vlan || context.segment != 0 || frame.len() < 14 {
        return None;
    }
    if word(frame, 12) != 0x0800 {
        return None;
    }
    let (ip, is_usual) = network(&frame[14..], inlet)?;
    let header = usize::from(ip[0] & 0xf) * 4;
    let (source, destination) = (address(ip, 12), address(ip, 16));
    let datagram = &ip[header..];
    if datagram.len() < 8 {
        return None;
    }
    let octets = usize::from(word(datagram, 4));
    if octets < 8 || octets > datagram.len() {
        return None;
    }
    let is_whole = octets == datagram.len();
    let datagram = &datagram[..octets];
    if word(datagram, 6) != 0 && udp_sum(ip, datagram) != 0xffff {
        return None;
    }
    let from = SocketAddrV4::new(source, word(datagram, 0));
    let to = SocketAddrV4::new(destination, word(datagram, 2));
    let socket = look_up(sockets, from, to)?;
    let is_plain = is_usual && is_whole && context.kind == 0;
    Some(Delivery { socket, from, to: destination, octets: &datagram[8..], is_plain })
}

/// The layer of IP: a packet that is whole, sound and for this host; true if it has no options and comes from
/// a host of a network here.
fn network<'a>(packet: &'a [u8], inlet: &Inlet) -> Option<(&'a [u8], bool)> {
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return None;
    }
    let header = usize::from(packet[0] & 0xf) * 4;
    let total = usize::from(word(packet, 2));
    if header < 20 || header > packet.len() || total < header || total > packet.len() {
        return None;
    }
    if sum(&[&packet[..header]]) != 0xffff {
        return None;
    }
    let (source, destination) = (address(packet, 12), address(packet, 16));
    let is_martian = source.is_multicast()
        || source.is_broadcast()
        || source.is_loopback()
        || source.octets()[0] == 0
        || inlet.own.contains(&source);
    if is_martian || !inlet.own.contains(&destination) {
        return None;
    }
    let more_or_later = word(packet, 6) & 0x3fff != 0;
    if more_or_later || packet[9] != 17 {
        return None;
    }
    let is_neighbour = inlet.networks.iter().any(|network| {
        let hosts = u32::MAX >> network.prefix;
        let first = network.address.to_bits() & !hosts;
        (first + 1..first + hosts).contains(&source.to_bits())
    });
    Some((&packet[..total], header == 20 && is_neighbour))
}

/// A connected socket gets its peer's packets alone.
fn look_up(sockets: &[Socket], from: SocketAddrV4, to: SocketAddrV4) -> Option<usize> {
    sockets.iter().position(|socket| socket.bound == to && socket.peer.is_none_or(|peer| peer == from))
}
