//! Things that stand at an interface beside the layers: where one does, the full path alone is right
//! (ENDHOST-R9).

use super::filter::{Inlet, Network};
use crate::inventory::Inventory;
use crate::netlink::{
    Message, NLM_F_REQUEST_ACK, NLM_F_REQUEST_DUMP, NetlinkError, Socket, attributes, u32_at,
};
use crate::sys;
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use std::net::Ipv4Addr;

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const IFLA_MASTER: u16 = 10;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const ARPHRD_ETHER: u16 = 1;
const XFRM_MSG_GETSPDINFO: u16 = 0x25;
const XFRMA_SPD_INFO: u16 = 1;
/// Tables of nf_tables of these families see packets of IPv4: inet, ip, netdev.
const FAMILIES: [&str; 3] = ["1", "2", "5"];
/// Addresses of this host, and networks at one interface, that a filter compares with.
const OWN_MAX: usize = 16;
const NETWORKS_MAX: usize = 8;

/// Why an interface has no bypass at present.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// No socket asks for it.
    #[error("no program asks for it")]
    Unused,
    /// A table of nf_tables.
    #[error("the packet filter has the table '{0}'")]
    Table(String),
    /// A table of the older packet filter.
    #[error("the packet filter (iptables) has the table '{0}'")]
    OldTable(String),
    /// IPsec.
    #[error("IPsec has policies for what comes in")]
    Ipsec,
    /// Another program or filter at the interface.
    #[error("another program stands where packets come in (tc)")]
    OtherProgram,
    /// A port of a bridge, of a bond, or of another routing domain.
    #[error("the interface is part of another one")]
    Enslaved,
    /// No Ethernet.
    #[error("the interface is no Ethernet interface")]
    NotEthernet,
    /// No usable address.
    #[error("the interface has no network of its own (an IPv4 address with a prefix of up to 30 bits)")]
    NoNetwork,
    /// More than a filter compares with.
    #[error("this host has more than {OWN_MAX} addresses, or the interface more than {NETWORKS_MAX}")]
    ManyAddresses,
    /// The kernel's refusal.
    #[error("the kernel refuses: {0}")]
    Kernel(String),
}

impl From<NetlinkError> for Unfit {
    fn from(error: NetlinkError) -> Self {
        Self::Kernel(error.to_string())
    }
}

/// An address of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    interface: u32,
    address: Ipv4Addr,
    prefix: u8,
}

impl Address {
    fn parse(body: &[u8]) -> Option<Self> {
        let (prefix, interface) = (*body.get(1)?, u32_at(body, 4)?);
        let of = |kind: u16| {
            let (_, value) = attributes(body.get(8..)?).find(|(known, _)| *known == kind)?;
            Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?))
        };
        let local = of(IFA_LOCAL).or(of(IFA_ADDRESS))?;
        // The network of a point-to-point link is the other end's address alone.
        let is_network = of(IFA_ADDRESS).is_none_or(|network| network == local);
        Some(Self { interface, address: local, prefix: if is_network { prefix } else { 32 } })
    }

    fn network(self) -> Option<Network> {
        (1..=30).contains(&self.prefix).then_some(Network { address: self.address, prefix: self.prefix })
    }
}

fn do_overlap(one: Network, other: Network) -> bool {
    let hosts = one.host_mask().max(other.host_mask());
    (one.address.to_bits() ^ other.address.to_bits()) & !hosts == 0
}

/// The surroundings of all interfaces at one moment.
#[derive(Debug)]
pub(super) struct Surroundings {
    addresses: Vec<Address>,
    /// Interface, kind of hardware, and whether it is part of another one.
    links: Vec<(u32, u16, bool)>,
    inventory: Inventory,
    old_table: Option<String>,
    has_ipsec: bool,
}

impl Surroundings {
    /// Of the calling thread's network namespace.
    pub(super) fn look() -> Result<Self, Unfit> {
        let mut route = Socket::open(SockProtocol::NetlinkRoute)?;
        let mut list = |kind, header: &[u8]| {
            route.list(Message::new(kind, NLM_F_REQUEST_DUMP, header), || "list addresses".to_owned())
        };
        let addresses = list(RTM_GETADDR, &[libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, 0])?;
        let links = list(RTM_GETLINK, &[0; 16])?;
        let link = |body: &Vec<u8>| {
            let kind = u16::from_ne_bytes([*body.get(2)?, *body.get(3)?]);
            let is_part = attributes(body.get(16..)?).any(|(kind, _)| kind == IFLA_MASTER);
            Some((u32_at(body, 4)?, kind, is_part))
        };
        let old = std::fs::read_to_string("/proc/thread-self/net/ip_tables_names").unwrap_or_default();
        Ok(Self {
            addresses: addresses.iter().filter_map(|body| Address::parse(body)).collect(),
            links: links.iter().filter_map(link).collect(),
            inventory: Inventory::take()?,
            old_table: old.lines().next().map(str::to_owned),
            has_ipsec: has_ipsec()?,
        })
    }

    /// All addresses of this host.
    pub(super) fn own(&self) -> Vec<Ipv4Addr> {
        self.addresses.iter().map(|of| of.address).collect()
    }

    /// The facts for the filter of an interface; or why it may have none. `ours` of the programs there are
    /// the bypass's own.
    pub(super) fn inlet(&self, interface: u32, ours: u32) -> Result<Inlet, Unfit> {
        let of_ours = |name: &str| name.strip_prefix("rota-").is_some_and(|rest| rest.parse::<u32>().is_ok());
        let foreign = self.inventory.tables.iter().filter_map(|table| table.split_once(": "));
        let mut foreign =
            foreign.filter(|(family, name)| FAMILIES.contains(family) && !(*family == "5" && of_ours(name)));
        if let Some((_, name)) = foreign.next() {
            return Err(Unfit::Table(name.to_owned()));
        }
        if let Some(name) = &self.old_table {
            return Err(Unfit::OldTable(name.clone()));
        }
        if self.has_ipsec {
            return Err(Unfit::Ipsec);
        }
        let hooks = [format!("{interface}: clsact"), format!("{interface}: ingress")];
        let programs = sys::bpf::hooked(interface, sys::bpf::Hook::Ingress);
        let programs = programs.map_err(|errno| Unfit::Kernel(errno.desc().to_owned()))?;
        if programs > ours || self.inventory.queues.iter().any(|queue| hooks.contains(queue)) {
            return Err(Unfit::OtherProgram);
        }
        match self.links.iter().find(|link| link.0 == interface) {
            Some((_, _, true)) => return Err(Unfit::Enslaved),
            Some((_, ARPHRD_ETHER, false)) => {}
            _ => return Err(Unfit::NotEthernet),
        }
        self.networks(interface)
    }

    fn networks(&self, interface: u32) -> Result<Inlet, Unfit> {
        let (here, elsewhere): (Vec<Address>, Vec<Address>) =
            self.addresses.iter().partition(|of| of.interface == interface);
        let is_elsewhere = |network: &Network| {
            let mut others = elsewhere.iter().filter_map(|of| of.network());
            others.any(|other| do_overlap(other, *network))
        };
        // The way back to such a source may lead through another interface, and the kernel may then drop it.
        let networks: Vec<Network> =
            here.iter().filter_map(|of| of.network()).filter(|network| !is_elsewhere(network)).collect();
        if networks.is_empty() {
            return Err(Unfit::NoNetwork);
        }
        if networks.len() > NETWORKS_MAX || self.addresses.len() > OWN_MAX {
            return Err(Unfit::ManyAddresses);
        }
        Ok(Inlet { own: self.own(), networks })
    }
}

/// True if IPsec has policies for what comes in.
fn has_ipsec() -> Result<bool, Unfit> {
    let fd = match sys::udp::ipsec() {
        Ok(fd) => fd,
        // Without this family of questions there is nobody who could have set a policy.
        Err(Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT) => return Ok(false),
        Err(errno) => return Err(Unfit::Kernel(errno.desc().to_owned())),
    };
    let ask = Message::new(XFRM_MSG_GETSPDINFO, NLM_F_REQUEST_ACK, &[0; 4]);
    let bodies = Socket::of(fd).ask(ask, || "count the policies of IPsec".to_owned())?;
    let incoming = bodies.iter().filter_map(|body| {
        let (_, value) = attributes(body.get(4..)?).find(|(kind, _)| *kind == XFRMA_SPD_INFO)?;
        u32_at(value, 0)
    });
    Ok(incoming.sum::<u32>() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        let of = |interface, address: [u8; 4], prefix| Address { interface, address: address.into(), prefix };
        Surroundings {
            addresses: vec![
                of(1, [127, 0, 0, 1], 8),
                of(7, [10, 1, 0, 1], 24),
                of(7, [10, 2, 0, 1], 32),
                of(8, [10, 3, 0, 1], 16),
                of(9, [10, 3, 7, 1], 24),
            ],
            links: vec![(1, 772, false), (7, 1, false), (8, 1, false), (9, 1, false), (10, 1, true)],
            inventory: Inventory {
                links: Vec::new(),
                queues: Vec::new(),
                tables: vec!["5: rota-7".into(), "10: six".into()],
            },
            old_table: None,
            has_ipsec: false,
        }
    }

    #[test]
    fn a_filter_knows_the_networks_of_its_interface_that_lie_nowhere_else() {
        let inlet = surroundings().networks(7).unwrap();
        assert_eq!(inlet.own.len(), 5);
        assert_eq!(inlet.networks, [Network { address: Ipv4Addr::new(10, 1, 0, 1), prefix: 24 }]);
        // One network lies in the other one: the way back may be the other interface's.
        assert_eq!(surroundings().networks(8), Err(Unfit::NoNetwork));
        assert_eq!(surroundings().networks(9), Err(Unfit::NoNetwork));
    }

    #[test]
    fn a_packet_filter_ipsec_and_a_larger_interface_keep_the_full_path() {
        let with = |change: fn(&mut Surroundings)| {
            let mut all = surroundings();
            change(&mut all);
            all.inlet(7, u32::MAX).unwrap_err()
        };
        assert_eq!(with(|all| all.inventory.tables.push("2: mine".into())), Unfit::Table("mine".into()));
        assert_eq!(with(|all| all.inventory.tables.push("5: rota-x".into())), Unfit::Table("rota-x".into()));
        assert_eq!(with(|all| all.old_table = Some("filter".into())), Unfit::OldTable("filter".into()));
        assert_eq!(with(|all| all.has_ipsec = true), Unfit::Ipsec);
    }

    #[test]
    fn an_entry_that_is_cut_is_no_address() {
        let mut body = vec![2, 24, 0, 0, 7, 0, 0, 0, 8, 0, 2, 0, 10, 1, 0, 1];
        let whole = Address::parse(&body).unwrap();
        assert_eq!(whole, Address { interface: 7, address: Ipv4Addr::new(10, 1, 0, 1), prefix: 24 });
        while body.pop().is_some() {
            assert_eq!(Address::parse(&body), None);
        }
    }
}
