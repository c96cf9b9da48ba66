//! A request is on its way to this node (`rcap/approach.rs`): the segment that it will need switches to token
//! mode meanwhile (`RETHER-2.5-5`).
//!
//! A ring lives for its reservations alone, so a hop of one octet keeps it: the shortest one that there is,
//! for no channel. It is given back when a request asks for its share there, in the same visit of the token
//! in which that share is decided, and before it; when each request that it is kept for has been refused; at
//! the latest when none of them can come any more.

use super::super::Node;
use crate::across::Keeper;
use crate::rcap::{EntryId, NextHop};
use crate::rtip::{HopEvent, HopShare};
use rota_admission::Pace;
use rota_contract::ModeName;
use rota_medium::door::{MediumKind, PortId};
use rota_units::Instant;
use rota_wire::RcapChannel;
use std::collections::BTreeMap;

/// Requests that a ring is kept for, at most; one more finds it kept, or waits for its switch.
const KEPT_FOR_MAX: usize = 64;

/// The hop that keeps a ring.
const KEEPER: HopShare = HopShare::of_pace(Pace::EVERY_CYCLE, 1);

impl Node {
    /// A request that will need this hop has come so far that a node before it waits for its segment.
    pub(super) fn prepare_across(&mut self, now: Instant, of: RcapChannel, next: NextHop, until: Instant) {
        let (Some(way), Some(across)) = (self.way_to(next.node), &mut self.across) else { return };
        // Its ring stands for one that came before, perhaps, which may yet be refused.
        if let Some(keeper) = across.keepers.iter_mut().find(|keeper| keeper.port == way.port) {
            if keeper.until.len() < KEPT_FOR_MAX {
                keeper.until.insert(of, until);
            }
            return;
        }
        if !self.is_switching(way.port) {
            return;
        }
        let hop = self.lines[0].channels.next_id();
        // A station that has no place yet, or no room, cannot help.
        let asked = self.reserve_hop_as(now, hop, way, &KEEPER);
        if let (Ok(()), Some(across)) = (asked, &mut self.across) {
            let until = BTreeMap::from([(of, until)]);
            across.keepers.push(Keeper { port: way.port, hop, until });
        }
    }

    /// A request that was on its way has been refused.
    pub(super) fn forgo_across(&mut self, now: Instant, of: &RcapChannel) {
        let Some(across) = &mut self.across else { return };
        across.keepers.iter_mut().for_each(|keeper| _ = keeper.until.remove(of));
        self.end_keepers(now, |keeper| keeper.until.is_empty());
    }

    /// The share of an entry is asked for: the nodes behind prepare while a segment switches for it, and what
    /// has kept the ring of its port until now is given back.
    pub(super) fn has_asked(&mut self, now: Instant, entry: EntryId, port: PortId) {
        if self.is_switching(port)
            && let Some(across) = &mut self.across
        {
            across.rcap.takes_time(now, entry);
        }
        self.end_keepers(now, |keeper| keeper.port == port);
    }

    /// Requests that can come no more.
    pub(super) fn lapse_keepers(&mut self, now: Instant) {
        let Some(across) = &mut self.across else { return };
        across.keepers.iter_mut().for_each(|keeper| keeper.until.retain(|_, until| *until > now));
        self.end_keepers(now, |keeper| keeper.until.is_empty());
    }

    fn end_keepers(&mut self, now: Instant, is_over: impl Fn(&Keeper) -> bool) {
        while let Some(across) = &mut self.across
            && let Some(at) = across.keepers.iter().position(&is_over)
        {
            let keeper = across.keepers.swap_remove(at);
            self.end_hop(now, keeper.hop);
        }
    }

    /// True for an event of a hop that keeps a ring. One that has ended by itself is forgotten.
    pub(super) fn is_of_keeper(&mut self, event: &HopEvent) -> bool {
        let Some(across) = &mut self.across else { return false };
        let (hop, is_over) = match event {
            HopEvent::Reserved { hop, .. } => (*hop, false),
            HopEvent::Refused { hop, .. } | HopEvent::Ended { hop, .. } => (*hop, true),
            HopEvent::Begun { .. } | HopEvent::Released { .. } => return false,
        };
        let Some(at) = across.keepers.iter().position(|keeper| keeper.hop == hop) else { return false };
        if is_over {
            across.keepers.swap_remove(at);
        }
        true
    }

    /// True if the port is on a RETHER segment that is not in token mode, or not yet.
    fn is_switching(&self, port: PortId) -> bool {
        self.port_at(port).is_some_and(|port| {
            let medium = port.medium();
            medium.kind() == MediumKind::Rether && medium.mode() != ModeName::Token
        })
    }
}
