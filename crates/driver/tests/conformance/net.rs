//! The few netlink requests that the test's own network needs.

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::os::fd::{AsRawFd, OwnedFd};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWQDISC: u16 = 36;
/// Request, acknowledge.
const CHANGE: u16 = 0x1 | 0x4;
/// And create, exclusively.
const CREATE: u16 = CHANGE | 0x400 | 0x200;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFF_UP: u32 = 1;

pub struct Netlink {
    socket: OwnedFd,
}

fn attribute(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut octets = ((body.len() + 4) as u16).to_ne_bytes().to_vec();
    octets.extend_from_slice(&kind.to_ne_bytes());
    octets.extend_from_slice(body);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

fn name(name: &str) -> Vec<u8> {
    attribute(IFLA_IFNAME, format!("{name}\0").as_bytes())
}

/// struct ifinfomsg.
fn link(index: u32, flags: u32, change: u32) -> Vec<u8> {
    [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), change.to_ne_bytes()].concat()
}

fn index(name: &str) -> Result<u32, Errno> {
    if_nametoindex(name)
}

impl Netlink {
    pub fn open() -> Result<Self, Errno> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        Ok(Self { socket })
    }

    fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> Result<(), Errno> {
        let mut message = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(body);
        let fd = self.socket.as_raw_fd();
        sendto(fd, &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = [0; 4_096];
        let len = recv(fd, &mut answer, MsgFlags::empty())?;
        let error = answer[..len].get(16..20).ok_or(Errno::EBADMSG)?;
        match i32::from_ne_bytes(error.try_into().map_err(|_| Errno::EBADMSG)?) {
            0 => Ok(()),
            error => Err(Errno::from_raw(-error)),
        }
    }

    pub fn add_bridge(&mut self, bridge: &str) -> Result<(), Errno> {
        let info = attribute(IFLA_LINKINFO, &attribute(1, b"bridge"));
        self.request(RTM_NEWLINK, CREATE, &[link(0, 0, 0), name(bridge), info].concat())
    }

    pub fn add_veth(&mut self, near: &str, mac: [u8; 6], far: &str) -> Result<(), Errno> {
        let peer = attribute(1, &[link(0, 0, 0), name(far)].concat());
        let info = attribute(IFLA_LINKINFO, &[attribute(1, b"veth"), attribute(2, &peer)].concat());
        let body = [link(0, 0, 0), name(near), attribute(IFLA_ADDRESS, &mac), info].concat();
        self.request(RTM_NEWLINK, CREATE, &body)
    }

    pub fn set_master(&mut self, port: &str, bridge: &str) -> Result<(), Errno> {
        let master = attribute(IFLA_MASTER, &index(bridge)?.to_ne_bytes());
        self.request(RTM_NEWLINK, CHANGE, &[link(index(port)?, 0, 0), master].concat())
    }

    pub fn set_up(&mut self, iface: &str, up: bool) -> Result<(), Errno> {
        let flags = if up { IFF_UP } else { 0 };
        self.request(RTM_NEWLINK, CHANGE, &link(index(iface)?, flags, IFF_UP))
    }

    pub fn remove(&mut self, iface: &str) -> Result<(), Errno> {
        self.request(RTM_DELLINK, CHANGE, &link(index(iface)?, 0, 0))
    }

    /// Gives an interface a plain queue of frames as its queueing discipline.
    pub fn add_pfifo(&mut self, iface: &str) -> Result<(), Errno> {
        let mut body = vec![0; 20];
        body[4..8].copy_from_slice(&index(iface)?.to_ne_bytes());
        body[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        body.extend(attribute(1, b"pfifo\0"));
        self.request(RTM_NEWQDISC, CREATE, &body)
    }
}
