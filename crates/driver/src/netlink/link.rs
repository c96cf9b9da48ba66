//! Links, addresses, neighbours and ways (rtnetlink).

use super::message::{Message, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST_ACK, u32_at};
use super::socket::{NetlinkError, Route};
use libc::{
    AF_BRIDGE, AF_INET, AF_INET6, IFA_ADDRESS, IFA_BROADCAST, IFA_LOCAL, IFF_NOARP, IFF_UP, IFLA_ADDRESS,
    IFLA_AF_SPEC, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MASTER, IFLA_MTU,
    IFLA_NET_NS_FD, IFLA_TXQLEN, NDA_DST, NDA_LLADDR, NTF_MASTER, NUD_NOARP, NUD_PERMANENT,
    RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTA_DST, RTA_GATEWAY, RTM_GETLINK, RTM_NEWADDR, RTM_NEWLINK,
    RTM_NEWNEIGH, RTM_NEWROUTE, RTN_UNICAST, RTPROT_STATIC,
};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

const VETH_INFO_PEER: u16 = 1;
const IFLA_BR_FORWARD_DELAY: u16 = 1;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const ADDR_GEN_MODE_NONE: u8 = 1;

/// The number of an interface in its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkIndex(pub u32);

/// What to change on a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Bring it up.
    pub up: bool,
    /// Neither send nor answer ARP.
    pub no_arp: bool,
    /// Put it under this bridge.
    pub master: Option<LinkIndex>,
    /// Frames its transmit queue holds.
    pub tx_queue_len: Option<u32>,
    /// Its largest payload, in octets.
    pub mtu: Option<u32>,
    /// Give it no IPv6 address of its own accord.
    pub no_ipv6_address: bool,
}

/// A pair of virtual Ethernet interfaces, joined back to back.
#[derive(Clone, Copy, Debug)]
pub struct Veth<'a> {
    /// Name of the near end, in the namespace of the `Route`.
    pub near: &'a str,
    /// Name of the far end.
    pub far: &'a str,
    /// The namespace of the far end.
    pub far_netns: BorrowedFd<'a>,
    /// The far end's address; the kernel draws one when none is given.
    pub far_mac: Option<[u8; 6]>,
    /// Largest payload of a frame, in octets.
    pub mtu: u32,
}

/// `struct ifinfomsg`.
fn ifinfo(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&change.to_ne_bytes());
    header
}

fn new_link(header: [u8; 16]) -> Message {
    Message::new(RTM_NEWLINK, NLM_F_REQUEST_ACK | NLM_F_CREATE | NLM_F_EXCL, &header)
}

impl Route {
    /// The interface called `name`.
    ///
    /// # Errors
    /// There is none (`ENODEV`).
    pub fn index_of(&mut self, name: &str) -> Result<LinkIndex, NetlinkError> {
        let ask = Message::new(RTM_GETLINK, NLM_F_REQUEST_ACK, &ifinfo(0, 0, 0)).text(IFLA_IFNAME, name);
        let what = || format!("find the interface '{name}'");
        let bodies = self.socket.ask(ask, what)?;
        let index = bodies.first().and_then(|body| u32_at(body, 4));
        index.map(LinkIndex).ok_or_else(|| NetlinkError {
            what: what(),
            errno: nix::errno::Errno::ENODEV,
            detail: None,
        })
    }

    /// Makes a pair; returns its near end.
    ///
    /// # Errors
    /// No permission, or a name that is taken.
    pub fn add_veth(&mut self, veth: &Veth<'_>) -> Result<LinkIndex, NetlinkError> {
        let far_fd = veth.far_netns.as_raw_fd().cast_unsigned();
        let message = new_link(ifinfo(0, 0, 0)).text(IFLA_IFNAME, veth.near).u32(IFLA_MTU, veth.mtu).nest(
            IFLA_LINKINFO,
            |m| {
                m.text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, |m| {
                    m.nest(VETH_INFO_PEER, |m| {
                        let peer = m.raw(&ifinfo(0, 0, 0)).text(IFLA_IFNAME, veth.far);
                        let peer = peer.u32(IFLA_NET_NS_FD, far_fd).u32(IFLA_MTU, veth.mtu);
                        veth.far_mac.iter().fold(peer, |m, mac| m.attr(IFLA_ADDRESS, mac))
                    })
                })
            },
        );
        self.socket.ask(message, || format!("make the veth pair {} and {}", veth.near, veth.far))?;
        self.index_of(veth.near)
    }

    /// Makes a bridge that forwards at once and sends no multicast queries.
    ///
    /// # Errors
    /// No permission, or a name that is taken.
    pub fn add_bridge(&mut self, name: &str) -> Result<LinkIndex, NetlinkError> {
        let message = new_link(ifinfo(0, 0, 0)).text(IFLA_IFNAME, name).nest(IFLA_LINKINFO, |m| {
            m.text(IFLA_INFO_KIND, "bridge")
                .nest(IFLA_INFO_DATA, |m| m.u32(IFLA_BR_FORWARD_DELAY, 0).attr(IFLA_BR_MCAST_SNOOPING, &[0]))
        });
        self.socket.ask(message, || format!("make the bridge {name}"))?;
        self.index_of(name)
    }

    /// Makes an intermediate functional block: a place to queue what a port receives.
    ///
    /// # Errors
    /// No permission, or a kernel without ifb.
    pub fn add_ifb(&mut self, name: &str) -> Result<LinkIndex, NetlinkError> {
        let message = new_link(ifinfo(0, 0, 0))
            .text(IFLA_IFNAME, name)
            .nest(IFLA_LINKINFO, |m| m.text(IFLA_INFO_KIND, "ifb"));
        self.socket.ask(message, || format!("make the ifb {name}"))?;
        self.index_of(name)
    }

    /// Changes a link.
    ///
    /// # Errors
    /// No permission, or no such link.
    pub fn set_link(&mut self, index: LinkIndex, link: Link) -> Result<(), NetlinkError> {
        let bit = |on, bit: i32| if on { bit.cast_unsigned() } else { 0 };
        let flags = bit(link.up, IFF_UP) | bit(link.no_arp, IFF_NOARP);
        let mut message = Message::new(RTM_NEWLINK, NLM_F_REQUEST_ACK, &ifinfo(index.0, flags, flags));
        if let Some(master) = link.master {
            message = message.u32(IFLA_MASTER, master.0);
        }
        if let Some(mtu) = link.mtu {
            message = message.u32(IFLA_MTU, mtu);
        }
        if let Some(len) = link.tx_queue_len {
            message = message.u32(IFLA_TXQLEN, len);
        }
        if link.no_ipv6_address {
            message = message.nest(IFLA_AF_SPEC, |m| {
                m.nest(AF_INET6 as u16, |m| m.attr(IFLA_INET6_ADDR_GEN_MODE, &[ADDR_GEN_MODE_NONE]))
            });
        }
        self.socket.ask(message, || format!("change interface {}", index.0)).map(drop)
    }

    /// Gives a link an address and the route to its network.
    ///
    /// # Errors
    /// No permission, or an address that is there already.
    pub fn add_address(
        &mut self,
        index: LinkIndex,
        address: Ipv4Addr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut header = [AF_INET as u8, prefix, 0, 0, 0, 0, 0, 0];
        header[4..8].copy_from_slice(&index.0.to_ne_bytes());
        let host_bits = u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
        let broadcast = Ipv4Addr::from_bits(address.to_bits() | host_bits);
        let message = Message::new(RTM_NEWADDR, NLM_F_REQUEST_ACK | NLM_F_CREATE | NLM_F_EXCL, &header)
            .attr(IFA_LOCAL, &address.octets())
            .attr(IFA_ADDRESS, &address.octets())
            .attr(IFA_BROADCAST, &broadcast.octets());
        self.socket.ask(message, || format!("give interface {} the address {address}", index.0)).map(drop)
    }

    /// Adds a permanent neighbour entry for `address`, so that no frame waits for ARP.
    ///
    /// # Errors
    /// No permission, or no such link.
    pub fn add_neighbour(
        &mut self,
        index: LinkIndex,
        address: Ipv4Addr,
        mac: [u8; 6],
    ) -> Result<(), NetlinkError> {
        let message = neighbour(AF_INET, index, NUD_PERMANENT, 0)
            .attr(NDA_DST, &address.octets())
            .attr(NDA_LLADDR, &mac);
        self.socket.ask(message, || format!("set the neighbour {address}")).map(drop)
    }

    /// Adds the way to a network by a gateway that is a neighbour.
    ///
    /// # Errors
    /// No permission, or no way to the gateway itself.
    pub fn add_way(&mut self, network: Ipv4Addr, prefix: u8, by: Ipv4Addr) -> Result<(), NetlinkError> {
        // `struct rtmsg`: family, lengths of destination and source, TOS, table, protocol, scope, type.
        let mut header = [0; 12];
        header[..2].copy_from_slice(&[AF_INET as u8, prefix]);
        header[4..8].copy_from_slice(&[RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST]);
        let message = Message::new(RTM_NEWROUTE, NLM_F_REQUEST_ACK | NLM_F_CREATE | NLM_F_EXCL, &header)
            .attr(RTA_DST, &network.octets())
            .attr(RTA_GATEWAY, &by.octets());
        self.socket.ask(message, || format!("set the way to {network} by {by}")).map(drop)
    }

    /// Adds a permanent entry for `mac` to the bridge's address table. Without it, frames to a station that
    /// never sends are flooded to every port.
    ///
    /// # Errors
    /// No permission, or a link that is no bridge port.
    pub fn add_bridge_entry(&mut self, port: LinkIndex, mac: [u8; 6]) -> Result<(), NetlinkError> {
        let message = neighbour(AF_BRIDGE, port, NUD_NOARP, NTF_MASTER).attr(NDA_LLADDR, &mac);
        self.socket.ask(message, || format!("set the bridge entry of port {}", port.0)).map(drop)
    }
}

/// A request with `struct ndmsg`.
fn neighbour(family: i32, index: LinkIndex, state: u16, flags: u8) -> Message {
    let mut header = [0; 12];
    header[0] = family as u8;
    header[4..8].copy_from_slice(&index.0.to_ne_bytes());
    header[8..10].copy_from_slice(&state.to_ne_bytes());
    header[10] = flags;
    Message::new(RTM_NEWNEIGH, NLM_F_REQUEST_ACK | NLM_F_CREATE | NLM_F_REPLACE, &header)
}
