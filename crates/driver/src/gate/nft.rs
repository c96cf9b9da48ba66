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
const NFT_META_TIME_NS: u32 = 30;
const NFT_CMP_EQ: u32 = 0;
const NFT_CMP_GTE: u32 = 5;
const NFT_BYTEORDER_HTON: u32 = 1;

const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;

const CHAIN: &str = "egress";

/// The frames that a table diverts, and where to.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) table: String,
    pub(super) iface: String,
    /// The interface that frames without a mark go to.
    pub(super) to: u32,
    /// That of frames with [`CONTROL_MARK`], where there is one.
    pub(super) control: Option<u32>,
}

/// A netlink socket that owns what it makes.
#[derive(Debug)]
pub(super) struct Nft {
    socket: Socket,
}

fn message(kind: u16) -> Message {
    // Append, or a later rule would stand before an earlier one.
    message_with(kind, NLM_F_APPEND)
}

fn message_with(kind: u16, flags: u16) -> Message {
    let kind = (NFNL_SUBSYS_NFTABLES << 8) | kind;
    Message::new(kind, NLM_F_REQUEST_ACK | NLM_F_CREATE | flags, &[NFPROTO_NETDEV, 0, 0, 0])
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

fn accept(m: Message) -> Message {
    expression(m, "immediate", |m| {
        m.be32(1, NFT_REG_VERDICT)
            .nest(2, |m| m.nest(NFTA_DATA_VERDICT, |m| m.be32(NFTA_VERDICT_CODE, NF_ACCEPT)))
    })
}

/// `meta mark == mark accept`.
fn accept_marked(table: &str, mark: u32) -> Message {
    rule(table, |m| accept(if_marked(m, mark)))
}

/// `meta time >= wall accept`, before all other rules; nanoseconds since 1970.
fn accept_from(table: &str, wall: u64) -> Message {
    let first = message_with(NFT_MSG_NEWRULE, 0).text(1, table).text(2, CHAIN);
    first.nest(4, |m| {
        let m = expression(m, "meta", |m| m.be32(1, NFT_REG_1).be32(2, NFT_META_TIME_NS));
        // Registers are compared as octets, so the highest one has to come first.
        let m = expression(m, "byteorder", |m| {
            m.be32(1, NFT_REG_1).be32(2, NFT_REG_1).be32(3, NFT_BYTEORDER_HTON).be32(4, 8).be32(5, 8)
        });
        let m = expression(m, "cmp", |m| {
            let wall = wall.to_be_bytes();
            m.be32(1, NFT_REG_1).be32(2, NFT_CMP_GTE).nest(3, |m| m.attr(NFTA_DATA_VALUE, &wall))
        });
        accept(m)
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

fn gone(rules: &Rules) -> Message {
    message(NFT_MSG_DELTABLE).text(1, &rules.table)
}

/// A table, its chain and its rules.
fn diverting(rules: &Rules) -> impl Iterator<Item = Message> {
    let Rules { table, iface, to, control } = rules;
    let new_table = message(NFT_MSG_NEWTABLE).text(1, table).be32(2, NFT_TABLE_F_OWNER);
    let chain = message(NFT_MSG_NEWCHAIN)
        .text(1, table)
        .text(3, CHAIN)
        .text(7, "filter")
        .nest(4, |m| m.be32(1, NF_NETDEV_EGRESS).be32(2, 0).text(3, iface));
    let own = accept_marked(table, ROTA_MARK);
    let control = control.map(|control| forward_marked(table, CONTROL_MARK, control));
    [new_table, chain, own].into_iter().chain(control).chain([forward_all(table, *to)])
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

    /// Sends everything that leaves through the interface without [`ROTA_MARK`] to another one instead. All
    /// or nothing.
    pub(super) fn divert(&mut self, rules: &Rules) -> Result<(), NetlinkError> {
        self.batch(diverting(rules), || format!("divert what leaves through '{}'", rules.iface))
    }

    /// The same in the place of what this socket diverts already, without a moment between the two.
    pub(super) fn divert_again(&mut self, rules: &Rules) -> Result<(), NetlinkError> {
        let batch = std::iter::once(gone(rules)).chain(diverting(rules));
        self.batch(batch, || format!("divert again what leaves through '{}'", rules.iface))
    }

    /// From that time of the kernel's clock on everything passes, in nanoseconds since 1970.
    pub(super) fn time(&mut self, rules: &Rules, wall: u64) -> Result<(), NetlinkError> {
        self.batch([accept_from(&rules.table, wall)], || format!("open the table '{}'", rules.table))
    }

    /// Undoes `divert`.
    pub(super) fn remove(&mut self, rules: &Rules) -> Result<(), NetlinkError> {
        self.batch([gone(rules)], || format!("remove the table '{}'", rules.table))
    }
}
