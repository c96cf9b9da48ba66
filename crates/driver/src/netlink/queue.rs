//! Queues, classes and filters (the tc part of rtnetlink). The layouts are those of linux/pkt_sched.h and
//! linux/pkt_cls.h.

use super::link::LinkIndex;
use super::message::{Message, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST_ACK};
use super::socket::{NetlinkError, Route};
use libc::{RTM_NEWQDISC, RTM_NEWTCLASS, RTM_NEWTFILTER, TCA_KIND, TCA_OPTIONS};
use rota_units::{BitRate, Octets};

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
const TC_ACT_STOLEN: u32 = 4;
const TCA_EGRESS_REDIR: u32 = 1;
const TC_U32_TERMINAL: u8 = 1;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;
const INGRESS: Handle = Handle(0xffff_0000);
const LINKLAYER_ETHERNET: u8 = 1;
const ETH_P_ALL: u16 = 0x0003;
const ETH_P_IP: u16 = 0x0800;

/// Preamble (8), frame check (4) and inter-frame gap (12): on the wire, but not in the kernel's lengths.
const FRAMING: u16 = 24;
/// The shortest frame with its framing: 60 + 24 octets.
const FRAME_MIN: u16 = 84;

/// The name of a queue or class: major number in the upper half, minor in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub u32);

impl Handle {
    /// Where a queue of the whole link hangs.
    pub const ROOT: Self = Self(TC_H_ROOT);

    /// `major:minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self(((major as u32) << 16) | minor as u32)
    }
}

/// One class of an HTB queue.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// What it is guaranteed.
    pub rate: BitRate,
    /// What it may borrow up to.
    pub ceil: BitRate,
    /// Octets it may send at once after a rest.
    pub burst: Octets,
    /// 0 is served first.
    pub prio: u32,
}

/// One comparison of a u32 filter: the 32-bit word at `offset` of the IP header, masked, has this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Octets from the start of the network header; a multiple of four.
    pub offset: u32,
    /// Which bits count.
    pub mask: u32,
    /// What they must be.
    pub value: u32,
}

/// `struct tcmsg`.
fn tc(kind: u16, flags: u16, link: LinkIndex, handle: Handle, parent: Handle, info: u32) -> Message {
    let mut header = [0; 20];
    header[4..8].copy_from_slice(&link.0.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.0.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.0.to_ne_bytes());
    header[16..20].copy_from_slice(&info.to_ne_bytes());
    Message::new(kind, NLM_F_REQUEST_ACK | flags, &header)
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

/// `struct tc_ratespec`: charges what a frame really takes on an Ethernet.
fn rate_spec(rate: BitRate) -> Vec<u8> {
    let octets_per_s = u32::try_from(rate.as_bps() / 8).unwrap_or(u32::MAX);
    let mut spec = vec![0, LINKLAYER_ETHERNET];
    spec.extend(FRAMING.to_ne_bytes());
    spec.extend([0, 0]);
    spec.extend(FRAME_MIN.to_ne_bytes());
    spec.extend(octets_per_s.to_ne_bytes());
    spec
}

/// Rates that `struct tc_ratespec` cannot hold go into an attribute of their own.
fn rate64(message: Message, kind: u16, rate: BitRate) -> Message {
    let octets_per_s = rate.as_bps() / 8;
    if octets_per_s > u64::from(u32::MAX - 1) {
        message.attr(kind, &octets_per_s.to_ne_bytes())
    } else {
        message
    }
}

/// The time `octets` take at `rate`, in the scheduler's ticks of 64 ns.
fn ticks(octets: Octets, rate: BitRate) -> u32 {
    u32::try_from(rate.span_of_up(octets).as_nanos() >> 6).unwrap_or(u32::MAX)
}

fn octets32(octets: Octets) -> u32 {
    u32::try_from(octets.get()).unwrap_or(u32::MAX)
}

impl Route {
    /// Puts a token bucket in the place of a link's queue.
    ///
    /// # Errors
    /// No permission, no such link, or a kernel without TBF.
    pub fn set_tbf(
        &mut self,
        link: LinkIndex,
        handle: Handle,
        rate: BitRate,
        burst: Octets,
        limit: Octets,
    ) -> Result<(), NetlinkError> {
        let mut parms = rate_spec(rate);
        parms.extend([0; 12]);
        parms.extend(words(&[octets32(limit), ticks(burst, rate), 0]));
        let message = tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, link, handle, Handle::ROOT, 0)
            .text(TCA_KIND, "tbf")
            .nest(TCA_OPTIONS, |m| {
                let m = m.attr(TCA_TBF_PARMS, &parms).u32(TCA_TBF_BURST, octets32(burst));
                rate64(m, TCA_TBF_RATE64, rate)
            });
        self.socket.ask(message, || format!("shape interface {} with TBF to {rate}", link.0)).map(drop)
    }

    /// Puts an HTB queue in the place of a link's queue; frames of no class go to `default`.
    ///
    /// # Errors
    /// No permission, no such link, or a kernel without HTB.
    pub fn set_htb(&mut self, link: LinkIndex, handle: Handle, default: u16) -> Result<(), NetlinkError> {
        // Version 3, rate-to-quantum 10, default class, no debugging, no counter.
        let globals = words(&[3, 10, u32::from(default), 0, 0]);
        let message = tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, link, handle, Handle::ROOT, 0)
            .text(TCA_KIND, "htb")
            .nest(TCA_OPTIONS, |m| m.attr(TCA_HTB_INIT, &globals));
        self.socket.ask(message, || format!("put an HTB queue on interface {}", link.0)).map(drop)
    }

    /// Adds a class under `parent`.
    ///
    /// # Errors
    /// No permission, or no such parent.
    pub fn add_htb_class(
        &mut self,
        link: LinkIndex,
        parent: Handle,
        name: Handle,
        class: Class,
    ) -> Result<(), NetlinkError> {
        let mut parms = rate_spec(class.rate);
        parms.extend(rate_spec(class.ceil));
        let quantum = 1_600; // One full frame a turn.
        parms.extend(words(&[
            ticks(class.burst, class.rate),
            ticks(class.burst, class.ceil),
            quantum,
            0,
            class.prio,
        ]));
        let message = tc(RTM_NEWTCLASS, NLM_F_CREATE | NLM_F_EXCL, link, name, parent, 0)
            .text(TCA_KIND, "htb")
            .nest(TCA_OPTIONS, |m| {
                let m = m.attr(TCA_HTB_PARMS, &parms);
                rate64(rate64(m, TCA_HTB_RATE64, class.rate), TCA_HTB_CEIL64, class.ceil)
            });
        self.socket.ask(message, || format!("add an HTB class of {} to interface {}", class.rate, link.0))?;
        Ok(())
    }

    /// Lets a class hold `limit` octets.
    ///
    /// # Errors
    /// No permission, or no such class.
    pub fn set_class_fifo(
        &mut self,
        link: LinkIndex,
        class: Handle,
        limit: Octets,
    ) -> Result<(), NetlinkError> {
        let message = tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link, Handle(0), class, 0)
            .text(TCA_KIND, "bfifo")
            .attr(TCA_OPTIONS, &octets32(limit).to_ne_bytes());
        self.socket.ask(message, || format!("give a class of interface {} its queue", link.0)).map(drop)
    }

    /// Sends IPv4 packets for which all of `rule` holds to `class` of the queue `parent`.
    ///
    /// # Errors
    /// No permission, or no such queue.
    pub fn add_class_filter(
        &mut self,
        link: LinkIndex,
        parent: Handle,
        rule: &[Word],
        class: Handle,
    ) -> Result<(), NetlinkError> {
        let message = filter(link, parent, ETH_P_IP)
            .nest(TCA_OPTIONS, |m| m.attr(TCA_U32_SEL, &selector(rule)).u32(TCA_U32_CLASSID, class.0));
        self.socket.ask(message, || format!("add a filter to interface {}", link.0)).map(drop)
    }

    /// Sends everything that `link` receives through the queue of `ifb`, and back into `link` after it.
    ///
    /// # Errors
    /// No permission, or a kernel without u32 or mirred.
    pub fn redirect_ingress(&mut self, link: LinkIndex, ifb: LinkIndex) -> Result<(), NetlinkError> {
        let queue = tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, link, INGRESS, Handle(TC_H_INGRESS), 0)
            .text(TCA_KIND, "ingress");
        self.socket.ask(queue, || format!("hook into what interface {} receives", link.0))?;
        let everything = selector(&[Word { offset: 0, mask: 0, value: 0 }]);
        // tc_mirred: index, capabilities, action, two reference counts, what to do, where to.
        let mirred = words(&[0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, ifb.0]);
        let message = filter(link, INGRESS, ETH_P_ALL).nest(TCA_OPTIONS, |m| {
            m.attr(TCA_U32_SEL, &everything).nest(TCA_U32_ACT, |m| {
                m.nest(1, |m| {
                    m.text(TCA_ACT_KIND, "mirred")
                        .nest(TCA_ACT_OPTIONS, |m| m.attr(TCA_MIRRED_PARMS, &mirred))
                })
            })
        });
        self.socket.ask(message, || format!("redirect what interface {} receives", link.0)).map(drop)
    }
}

/// A u32 filter of priority 1 for one EtherType.
fn filter(link: LinkIndex, parent: Handle, ethertype: u16) -> Message {
    let info = (1 << 16) | u32::from(ethertype.to_be());
    let flags = NLM_F_CREATE | NLM_F_EXCL | NLM_F_APPEND;
    tc(RTM_NEWTFILTER, flags, link, Handle(0), parent, info).text(TCA_KIND, "u32")
}

/// `struct tc_u32_sel` with its keys.
fn selector(rule: &[Word]) -> Vec<u8> {
    let mut octets = vec![TC_U32_TERMINAL, 0, u8::try_from(rule.len()).expect("a rule has a few words"), 0];
    octets.extend([0; 12]);
    for word in rule {
        octets.extend(word.mask.to_be_bytes());
        octets.extend(word.value.to_be_bytes());
        octets.extend(words(&[word.offset, 0]));
    }
    octets
}
