//! The ends of hops: what a hop gives back, and when its port has said so.

use super::{Arrival, Hop, Key, Release, State, Table, Way};
use crate::io::{ChannelId, PortId};
use crate::rtip::door::HopEvent;
use rota_contract::CloseCause;
use rota_wire::MacAddr;

impl Table {
    /// The parent ends a hop or an incoming channel. Its share is to be given back, if it has one.
    pub(crate) fn end(&mut self, id: ChannelId) -> Option<Release> {
        if self.sinks.contains_key(&id) {
            self.park(id);
            self.sinks.remove(&id);
            self.tell(HopEvent::Released { hop: id });
            return None;
        }
        self.begin_ending(id, false)
    }

    pub(super) fn destinations(&self, id: ChannelId) -> impl Iterator<Item = Key> + use<'_> {
        let is_it = move |arrival: &Arrival| arrival.hop == id && matches!(arrival.way, Way::Program);
        self.arrivals.iter().filter(move |(_, arrival)| is_it(arrival)).map(|(key, _)| *key)
    }

    pub(super) fn begin_ending(&mut self, id: ChannelId, told: bool) -> Option<Release> {
        let hop = *self.hop(id).filter(|hop| !matches!(hop.state, State::Ending { .. }))?;
        self.leave_state(&hop);
        self.set(id, State::Ending { told });
        Some(Release { port: hop.port, hop: id })
    }

    /// Forgets a hop, and the local id that led to it.
    pub(super) fn remove(&mut self, id: ChannelId) -> Option<State> {
        let at = self.hops.iter().position(|hop| hop.id == id)?;
        let hop = self.hops.swap_remove(at);
        self.leave_state(&hop);
        Some(hop.state)
    }

    /// No packet goes on over a hop any more.
    pub(super) fn leave_state(&mut self, hop: &Hop) {
        match hop.state {
            State::Gateway(key) => self.part_all(key, hop.id),
            State::Source => self.fans.drop_source_hop(hop.id),
            _ => {}
        }
    }

    /// Packets of no id go on over this hop, those of a contract that was about to take the place of the one
    /// that stands among them.
    fn part_all(&mut self, key: Key, hop: ChannelId) {
        self.part(key, hop);
        while let Some(key) = self.arrivals.iter().find(|(_, of)| of.goes_over(hop)).map(|(key, _)| *key) {
            self.part(key, hop);
        }
    }

    /// One hop or incoming channel that has lost the station next to it, or its port; it ends with this
    /// cause. Its share is to be given back, if it has one. Asked until there is no more.
    pub(crate) fn end_next(
        &mut self,
        cause: CloseCause,
        is_cut: impl Fn(PortId, MacAddr) -> bool,
    ) -> Option<Option<Release>> {
        let cut = self.arrivals.iter().find(|((port, from, _), _)| is_cut(*port, *from));
        if let Some((key, arrival)) = cut.map(|(key, arrival)| (*key, arrival)) {
            let id = arrival.hop;
            if matches!(arrival.way, Way::Program) {
                self.leave(id, key);
                if !self.keeps_cut && self.destinations(id).next().is_none() {
                    self.sinks.remove(&id);
                }
                self.tell(HopEvent::Ended { hop: id, label: Some(key.2), cause });
                return Some(None);
            }
            self.tell(HopEvent::Ended { hop: id, label: None, cause });
            return Some(self.begin_ending(id, true));
        }
        let is_live = |hop: &Hop| !matches!(hop.state, State::Ending { .. });
        let id = self.hops.iter().find(|hop| is_live(hop) && is_cut(hop.port, hop.to))?.id;
        self.tell(HopEvent::Ended { hop: id, label: None, cause });
        Some(self.begin_ending(id, true))
    }

    /// Hops that end have no share to wait for any more: their port is gone. Those whose parent waits for
    /// that are told.
    pub(crate) fn forget_ending(&mut self, port: PortId) {
        let is_ending = |hop: &Hop| hop.port == port && matches!(hop.state, State::Ending { .. });
        while let Some(id) = self.hops.iter().find(|hop| is_ending(hop)).map(|hop| hop.id) {
            self.on_released(id);
        }
    }
}
