//! What there is in a network namespace, to compare with what there was: whoever makes links, queues or
//! packet-filter tables must leave none behind.

use crate::netlink::{Message, NLM_F_REQUEST_DUMP, NetlinkError, Socket, attributes, u32_at};
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

const RTM_GETLINK: u16 = 18;
const RTM_GETQDISC: u16 = 38;
const NFT_MSG_GETTABLE: u16 = (10 << 8) | 1;
const IFLA_IFNAME: u16 = 3;
const TCA_KIND: u16 = 1;
const NFTA_TABLE_NAME: u16 = 1;

/// Links, queues and packet-filter tables of one network namespace, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Names of interfaces.
    pub links: Vec<String>,
    /// "interface number: kind" of each queue.
    pub queues: Vec<String>,
    /// "protocol family: name" of each nf_tables table; empty where the kernel has no nf_tables.
    pub tables: Vec<String>,
}

impl Inventory {
    /// Of the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel gave no list.
    pub fn take() -> Result<Self, NetlinkError> {
        let mut route = Socket::open(SockProtocol::NetlinkRoute)?;
        let mut list = |kind, header: &[u8], what: &str| {
            route.list(Message::new(kind, NLM_F_REQUEST_DUMP, header), || format!("list the {what}"))
        };
        let links = list(RTM_GETLINK, &[0; 16], "interfaces")?;
        let links = links.iter().map(|body| text(body, 16, IFLA_IFNAME)).collect();
        let queues = list(RTM_GETQDISC, &[0; 20], "queues")?;
        let queues = queues
            .iter()
            .map(|body| format!("{}: {}", u32_at(body, 4).unwrap_or_default(), text(body, 20, TCA_KIND)));
        Ok(Self { links, queues: queues.collect(), tables: tables()? })
    }
}

fn tables() -> Result<Vec<String>, NetlinkError> {
    let mut filter = match Socket::open(SockProtocol::NetlinkNetFilter) {
        Err(error) if error.errno == Errno::EPROTONOSUPPORT => return Ok(Vec::new()),
        other => other?,
    };
    let message = Message::new(NFT_MSG_GETTABLE, NLM_F_REQUEST_DUMP, &[0; 4]);
    match filter.list(message, || "list the packet-filter tables".to_owned()) {
        Ok(bodies) => {
            let name = |body: &Vec<u8>| format!("{}: {}", body[0], text(body, 4, NFTA_TABLE_NAME));
            Ok(bodies.iter().filter(|body| !body.is_empty()).map(name).collect())
        }
        // A kernel without nf_tables has no such subsystem; who may not list may not make one either.
        Err(error) if matches!(error.errno, Errno::EOPNOTSUPP | Errno::EINVAL | Errno::EPERM) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The text attribute `kind` of a message whose family header has `skip` octets.
fn text(body: &[u8], skip: usize, kind: u16) -> String {
    let found = attributes(body.get(skip..).unwrap_or(&[])).find(|(k, _)| *k == kind);
    let octets = found.map_or(&[][..], |(_, value)| value.strip_suffix(&[0]).unwrap_or(value));
    String::from_utf8_lossy(octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there() {
        assert!(Inventory::take().unwrap().links.contains(&"lo".to_owned()));
    }

    #[test]
    fn cut_entries_have_no_name() {
        for len in 0..24 {
            assert_eq!(text(&vec![0; len], 16, 3), "");
        }
    }
}
