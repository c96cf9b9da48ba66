//! Receiving on an ordinary port of UDP through a queue that the kernel fills.

use std::ffi::{c_char, c_int};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd};

use rota::Span;
use rota::udp::{Options, Packet, Path, Queue, Receiver, UdpError};

use crate::channel::{control_name, need};
use crate::face::{Fault, Octets, Out, Status, copy_text, export, hand_over, tell, text};

impl From<UdpError> for Fault {
    fn from(error: UdpError) -> Self {
        let status = match error {
            UdpError::Node(error) => return error.into(),
            UdpError::Bind { .. } => Status::Busy,
            _ => Status::Failed,
        };
        Self::new(status, error)
    }
}

/// `rota_udp_packet`.
#[repr(C)]
pub struct Received {
    octets: usize,
    from_address: u32,
    to_address: u32,
    from_port: u16,
    bypassed: u16,
}

impl From<Packet<'_>> for Received {
    fn from(packet: Packet<'_>) -> Self {
        // As in sockaddr_in: the octets stand in the order of the network.
        let word = |address: std::net::Ipv4Addr| u32::from_ne_bytes(address.octets());
        Self {
            octets: packet.octets.len(),
            from_address: word(*packet.from.ip()),
            to_address: packet.to.map_or(0, word),
            from_port: packet.from.port().to_be(),
            bypassed: (packet.path == Path::Bypass).into(),
        }
    }
}

/// `rota_udp_queue`.
#[repr(C)]
pub struct Filler {
    own: c_int,
    why: [c_char; 256],
}

impl From<&Queue> for Filler {
    fn from(queue: &Queue) -> Self {
        let (own, why) = match queue {
            Queue::Own { full_path } => (1, full_path.as_deref().unwrap_or("")),
            Queue::Kernel { why } => (0, &**why),
        };
        Self { own, why: copy_text(why) }
    }
}

fn address(string: *const c_char, what: &str) -> Result<Option<SocketAddrV4>, Fault> {
    let Some(written) = text(string, what)? else { return Ok(None) };
    let wrong = || format!("the argument '{what}' is no address and port such as 0.0.0.0:5004: {written}");
    written.parse().map(Some).map_err(|_| Fault::new(Status::WrongUse, wrong()))
}

export! {
    /// Binds an address and asks the node for a queue.
    fn rota_udp_bind(
        control: *const c_char,
        own: *const c_char,
        peer: *const c_char,
        ring_octets: u32,
        udp: Out<'_, *mut Receiver>,
    ) {
        let udp = need(udp, "udp")?;
        let own = address(own, "address")?.ok_or_else(|| Fault::null("address"))?;
        let default = Options::default();
        let ring_octets = if ring_octets == 0 { default.ring_octets } else { ring_octets };
        let (control, peer) = (control_name(control)?, address(peer, "peer")?);
        let options = Options { control, ring_octets, peer, ..default };
        hand_over(Some(udp), Receiver::bind_with(own, &options)?, "udp")
    }

    /// Receives a packet in place.
    fn rota_udp_receive(
        udp: Option<&mut Receiver>,
        octets: Out<'_, Octets>,
        packet: Out<'_, Received>,
        timeout_ns: u64,
    ) {
        let (udp, octets) = (need(udp, "udp")?, need(octets, "octets")?);
        let found = match timeout_ns {
            0 => udp.try_recv()?.ok_or_else(Fault::idle)?,
            ns => {
                let late = || Fault::new(Status::TimedOut, "no packet came in time");
                udp.recv(Span::from_nanos(ns))?.ok_or_else(late)?
            }
        };
        octets.write(found.octets.as_ptr());
        tell(packet, found.into());
        Ok(())
    }

    /// Prepares a wait for the descriptor.
    fn rota_udp_arm(udp: Option<&mut Receiver>, waits: Out<'_, c_int>) {
        let waits_now = need(udp, "udp")?.arm()?;
        need(waits, "waits")?.write(waits_now.into());
        Ok(())
    }

    /// The filler of the queue.
    fn rota_udp_filler(udp: Option<&Receiver>, queue: Out<'_, Filler>) {
        let udp = need(udp, "udp")?;
        need(queue, "queue")?.write(udp.queue().into());
        Ok(())
    }

    /// The packets for which the queue had no room.
    fn rota_udp_discarded(udp: Option<&Receiver>, packets: Out<'_, u64>) {
        let packets = need(packets, "packets")?;
        packets.write(need(udp, "udp")?.discarded()?);
        Ok(())
    }

    /// Gives queue and port up.
    fn rota_udp_close(udp: Option<Box<Receiver>>) {
        need(udp, "udp").map(drop)
    }
}

/// The port, in the order of the network, 0 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_udp_port(udp: Option<&Receiver>) -> u16 {
    udp.map_or(0, |udp| udp.address().port().to_be())
}

/// What becomes readable, -1 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_udp_fd(udp: Option<&Receiver>) -> c_int {
    udp.map_or(-1, |udp| udp.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::guard;
    use std::mem::MaybeUninit;
    use std::net::UdpSocket;

    const NOBODY: &std::ffi::CStr = c"rota-c-test-no-node";

    fn bound(address: &std::ffi::CStr) -> Result<Box<Receiver>, c_int> {
        let mut udp = MaybeUninit::uninit();
        match rota_udp_bind(NOBODY.as_ptr(), address.as_ptr(), std::ptr::null(), 0, Some(&mut udp)) {
            // SAFETY: the call has written a handle that it has made by `hand_over`, and nobody else has it.
            0 => Ok(unsafe { Box::from_raw(udp.assume_init()) }),
            status => Err(status),
        }
    }

    /// Without a node the kernel's own queue serves, and says so.
    #[test]
    fn a_packet_lies_in_place_with_its_addresses_as_c_has_them() {
        let mut udp = bound(c"127.0.0.1:0").expect("a free port");
        let mut filler = MaybeUninit::uninit();
        assert_eq!(rota_udp_filler(Some(&udp), Some(&mut filler)), 0);
        // SAFETY: the call has written it.
        let filler = unsafe { filler.assume_init() };
        assert!(filler.own == 0 && filler.why[0] != 0);
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = u16::from_be(rota_udp_port(Some(&udp)));
        let (mut octets, mut packet) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let mut receive = |udp: &mut Receiver, timeout_ns| {
            rota_udp_receive(Some(udp), Some(&mut octets), Some(&mut packet), timeout_ns)
        };
        assert_eq!(receive(&mut udp, 0), Status::WouldBlock as c_int);
        assert_eq!(receive(&mut udp, 1_000), Status::TimedOut as c_int);
        sender.send_to(b"four", ("127.0.0.1", port)).expect("sent");
        assert_eq!(receive(&mut udp, 5_000_000_000), 0);
        // SAFETY: the call has written both, and the octets lie there until the next call.
        let (told, octets) = unsafe {
            let told = packet.assume_init();
            (std::slice::from_raw_parts(octets.assume_init(), told.octets).to_vec(), told)
        };
        assert_eq!((&told[..], octets.from_address.to_ne_bytes()), (&b"four"[..], [127, 0, 0, 1]));
        let from = sender.local_addr().expect("bound").port();
        assert_eq!((u16::from_be(octets.from_port), octets.bypassed), (from, 0));
        let mut none = MaybeUninit::uninit();
        assert_eq!(rota_udp_discarded(Some(&udp), Some(&mut none)), 0);
        assert_eq!(rota_udp_close(Some(udp)), 0);
    }

    #[test]
    fn what_is_no_address_or_taken_has_its_status() {
        assert_eq!(bound(c"5004").err(), Some(Status::WrongUse as c_int));
        assert_eq!(bound(c"[::1]:5004").err(), Some(Status::WrongUse as c_int));
        let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let taken = std::ffi::CString::new(other.local_addr().expect("bound").to_string()).expect("text");
        assert_eq!(bound(&taken).err(), Some(Status::Busy as c_int));
        assert_eq!(rota_udp_close(None), Status::WrongUse as c_int);
        assert_eq!((rota_udp_port(None), rota_udp_fd(None)), (0, -1));
        assert_eq!(guard(|| Ok(())), 0);
    }
}
