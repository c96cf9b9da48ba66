//! A netlink socket. It belongs to the network namespace in which it was opened: one thread
//! can therefore configure many namespaces without moving between them.

use super::message::{HEADER, Message, attributes, replies, u32_at};
use crate::sys;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::os::fd::{AsRawFd, OwnedFd};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOL_NETLINK: i32 = 270;
const NETLINK_CAP_ACK: i32 = 10;
const NETLINK_EXT_ACK: i32 = 11;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// What the kernel refused, and why.
#[derive(Debug, thiserror::Error)]
#[error(
    "the kernel refused to {what}: {}{}",
    .errno.desc(),
    .detail.as_ref().map(|d| format!(" ({d})")).unwrap_or_default()
)]
pub struct NetlinkError {
    /// What was asked for, as a verb phrase.
    pub what: String,
    /// The kernel's error number.
    pub errno: Errno,
    /// The kernel's own words, where it gave some.
    pub detail: Option<String>,
}

/// A socket of one netlink family.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open(family: SockProtocol) -> Result<Self, NetlinkError> {
        let fail = |errno| NetlinkError { what: "open a netlink socket".into(), errno, detail: None };
        let fd =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, family).map_err(fail)?;
        // Words instead of bare numbers; kernels without them answer numbers.
        let _ = sys::sockopt::set_int(&fd, SOL_NETLINK, NETLINK_EXT_ACK, 1);
        let _ = sys::sockopt::set_int(&fd, SOL_NETLINK, NETLINK_CAP_ACK, 1);
        Ok(Self { fd, sequence: 0 })
    }

    /// A socket that was opened elsewhere.
    pub(crate) fn of(fd: OwnedFd) -> Self {
        Self { fd, sequence: 0 }
    }

    /// Sends one request that asks for an acknowledgement, and waits for it. Returns the bodies of the
    /// messages that came before the acknowledgement.
    pub(crate) fn ask(
        &mut self,
        message: Message,
        what: impl Fn() -> String,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        self.ask_all([(message, true)], what)
    }

    /// Sends several requests as one datagram (the netfilter batch) and waits for the acknowledgement of
    /// each that asked for one (the `bool`).
    pub(crate) fn ask_all(
        &mut self,
        messages: impl IntoIterator<Item = (Message, bool)>,
        what: impl Fn() -> String,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let fail = |errno| NetlinkError { what: what(), errno, detail: None };
        let first = self.sequence.wrapping_add(1);
        let mut waiting = 0usize;
        let mut octets = Vec::new();
        for (message, wants_ack) in messages {
            self.sequence = self.sequence.wrapping_add(1);
            waiting += usize::from(wants_ack);
            octets.extend(message.finish(self.sequence));
        }
        sendto(self.fd.as_raw_fd(), &octets, &NetlinkAddr::new(0, 0), MsgFlags::empty()).map_err(fail)?;
        let mut bodies = Vec::new();
        let mut refusal = None;
        let mut buf = vec![0u8; 32 * 1024];
        while waiting > 0 {
            let len = match recv(self.fd.as_raw_fd(), &mut buf, MsgFlags::empty()) {
                Ok(len) => len,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(fail(errno)),
            };
            for reply in replies(&buf[..len]) {
                if reply.sequence.wrapping_sub(first) > self.sequence.wrapping_sub(first) {
                    continue; // An answer to an earlier request that failed half way.
                }
                if reply.kind != NLMSG_ERROR {
                    bodies.push(reply.body.to_vec());
                    continue;
                }
                waiting -= 1;
                let code = u32_at(reply.body, 0).map_or(0, u32::cast_signed);
                if code != 0 && refusal.is_none() {
                    let errno = Errno::from_raw(code.wrapping_neg());
                    refusal = Some(NetlinkError { what: what(), errno, detail: detail(reply.body) });
                    // A netfilter batch is undone whole and acknowledges nothing after its first error.
                    waiting = 0;
                }
            }
        }
        refusal.map_or(Ok(bodies), Err)
    }
}

impl Socket {
    /// Asks for a list, with a message that carries `NLM_F_DUMP`; returns the bodies of its entries.
    pub(crate) fn list(
        &mut self,
        message: Message,
        what: impl Fn() -> String,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let fail = |errno| NetlinkError { what: what(), errno, detail: None };
        self.sequence = self.sequence.wrapping_add(1);
        let octets = message.finish(self.sequence);
        sendto(self.fd.as_raw_fd(), &octets, &NetlinkAddr::new(0, 0), MsgFlags::empty()).map_err(fail)?;
        let mut bodies = Vec::new();
        let mut buf = vec![0u8; 64 * 1024];
        loop {
            let len = recv(self.fd.as_raw_fd(), &mut buf, MsgFlags::empty()).map_err(fail)?;
            for reply in replies(&buf[..len]).filter(|reply| reply.sequence == self.sequence) {
                match reply.kind {
                    NLMSG_DONE => return Ok(bodies),
                    NLMSG_ERROR => {
                        let code = u32_at(reply.body, 0).map_or(0, u32::cast_signed);
                        return Err(fail(Errno::from_raw(code.wrapping_neg())));
                    }
                    _ => bodies.push(reply.body.to_vec()),
                }
            }
        }
    }
}

/// The kernel's own words in an error body: i32 code, the header of our request, then attributes.
fn detail(body: &[u8]) -> Option<String> {
    let (_, text) = attributes(body.get(4 + HEADER..)?).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG)?;
    Some(String::from_utf8_lossy(text.strip_suffix(&[0]).unwrap_or(text)).into_owned())
}

/// Links, addresses, neighbours and queues of one network namespace.
#[derive(Debug)]
pub struct Route {
    pub(super) socket: Socket,
}

impl Route {
    /// Of the calling thread's network namespace, also after the thread has left it.
    ///
    /// # Errors
    /// The kernel gave no netlink socket.
    pub fn here() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open(SockProtocol::NetlinkRoute)? })
    }
}
