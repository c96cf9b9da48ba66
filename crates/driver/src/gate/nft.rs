//! Tables, chains and rules of nf_tables in the few forms that the gate needs, written as netlink attributes.
//!
//! The table has an *owner*: the kernel removes it with our netlink socket, also after a kill -9.

use super::{CONTROL_MARK, ROTA_MARK};
use crate::netlink::{Message, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST_ACK, NetlinkError, Socket};
use nix::sys::socket::SockProtocol;

const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_NEWRULE: u16 = 6;
const NFPROTO_NETDEV: u8 = 5;
const NFT_TABLE_F_OWNER: u32 = 0x2;
const NF_NETDEV_EGRESS: u32 = 1;
const NF_ACCEPT: u32 = 1;
const NFT_REG_VERDICT: u32 = 0;
const NFT_REG_1: u32 = 1;
const NFT_META_MARK: u32 = 3;
const NFT_CMP_EQ: u32 = 0;

const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;

const CHAIN: &str = "egress";

/// A netlink socket that owns what it makes.
#[derive(Debug)]
pub(super) struct Nft {
    socket: Socket,
}

fn message(kind: u16) -> Message {
    let kind = (NFNL_SUBSYS_NFTABLES << 8) | kind;
    // Append, or a later rule would stand before an earlier one.
    let flags = NLM_F_REQUEST_ACK | NLM_F_CREATE | NLM_F_APPEND;
    Message::new(kind, flags, &[NFPROTO_NETDEV, 0, 0, 0])
}

/// `struct nfgenmsg` of a batch's first and last message names the subsystem in network order.
fn bracket(kind: u16) -> Message {
    let [high, low] = NFNL_SUBSYS_NFTABLES.to_be_bytes();
    Message::new(kind, 1, &[0, 0, high, low])
}

/// One expression of a rule.
fn expression(rule: Message, name: &str, data: impl FnOnce(Message) -> Message) -> Message {
    rule.nest(NFTA_LIST_ELEM, |m| m.text(NFTA_EXPR_NAME, name).nest(NFTA_EXPR_DATA, data))
}

fn rule(table: &str, expressions: impl FnOnce(Message) -> Message) -> Message {
    message(NFT_MSG_NEWRULE).text(1, table).text(2, CHAIN).nest(4, expressions)
}

/// `meta mark == mark`.
fn if_marked(m: Message, mark: u32) -> Message {
    let m = expression(m, "meta", |m| m.be32(1, NFT_REG_1).be32(2, NFT_META_MARK));
    // The mark is compared as it lies in memory, hence in the machine's order.
    expression(m, "cmp", |m| {
        m.be32(1, NFT_REG_1).be32(2, NFT_CMP_EQ).nest(3, |m| m.u32(NFTA_DATA_VALUE, mark))
    })
}

/// `meta mark == mark accept`.
fn accept_marked(table: &str, mark: u32) -> Message {
    rule(table, |m| {
        expression(if_marked(m, mark), "immediate", |m| {
            m.be32(1, NFT_REG_VERDICT)
                .nest(2, |m| m.nest(NFTA_DATA_VERDICT, |m| m.be32(NFTA_VERDICT_CODE, NF_ACCEPT)))
        })
    })
}

/// `fwd to` the interface with this index.
fn forward(m: Message, to: u32) -> Message {
    let m = expression(m, "immediate", |m| m.be32(1, NFT_REG_1).nest(2, |m| m.u32(NFTA_DATA_VALUE, to)));
    expression(m, "fwd", |m| m.be32(1, NFT_REG_1))
}

fn forward_all(table: &str, to: u32) -> Message {
    rule(table, |m| forward(m, to))
}

/// `meta mark == mark fwd to` the interface with this index.
fn forward_marked(table: &str, mark: u32, to: u32) -> Message {
    rule(table, |m| forward(if_marked(m, mark), to))
}

impl Nft {
    /// Of the calling thread's network namespace.
    pub(super) fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open(SockProtocol::NetlinkNetFilter)? })
    }

    fn batch(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
        what: impl Fn() -> String,
    ) -> Result<(), NetlinkError> {
        let inner = messages.into_iter().map(|m| (m, true));
        let first = std::iter::once((bracket(NFNL_MSG_BATCH_BEGIN), false));
        let last = std::iter::once((bracket(NFNL_MSG_BATCH_END), false));
        self.socket.ask_all(first.chain(inner).chain(last), what).map(drop)
    }

    /// Sends everything that leaves through `iface` without [`ROTA_MARK`] to interface `to` instead, and
    /// what has [`CONTROL_MARK`] to `control`, where there is one. All or nothing.
    pub(super) fn divert(
        &mut self,
        table: &str,
        iface: &str,
        (to, control): (u32, Option<u32>),
    ) -> Result<(), NetlinkError> {
        let new_table = message(NFT_MSG_NEWTABLE).text(1, table).be32(2, NFT_TABLE_F_OWNER);
        let chain = message(NFT_MSG_NEWCHAIN)
            .text(1, table)
            .text(3, CHAIN)
            .text(7, "filter")
            .nest(4, |m| m.be32(1, NF_NETDEV_EGRESS).be32(2, 0).text(3, iface));
        let own = accept_marked(table, ROTA_MARK);
        let control = control.map(|control| forward_marked(table, CONTROL_MARK, control));
        let batch = [new_table, chain, own].into_iter().chain(control).chain([forward_all(table, to)]);
        self.batch(batch, || format!("divert what leaves through '{iface}'"))
    }

    /// Undoes `divert`.
    pub(super) fn remove(&mut self, table: &str) -> Result<(), NetlinkError> {
        let gone = message(NFT_MSG_DELTABLE).text(1, table);
        self.batch([gone], || format!("remove the table '{table}'"))
    }
}
