//! Channels to several receivers at this node: each packet goes on over all its hops.

use super::Node;
use super::line::Packet;
use crate::io::{ChannelId, Input, UnitRef, Way};
use crate::rtip::packets::Packets;
use crate::rtip::table::{Key, State};
use crate::rtip::{HopError, HopSpec};
use rota_units::Instant;

impl Node {
    /// A program that sends to several receivers sends over this hop, too. One that it has already leads to
    /// another local id of the next node from now on.
    pub(super) fn enter_source_beside(
        &mut self,
        hop: ChannelId,
        spec: &HopSpec,
        program: ChannelId,
    ) -> Result<(), HopError> {
        if self.hops.hop(hop).is_some_and(|hop| hop.state == State::Source) {
            self.line_of_hop(hop)?.port.set_local_id(hop, spec.local_id);
            self.hops.lead_to(hop, spec.local_id);
            return Ok(());
        }
        self.assert_drained();
        let octets = self.hops.reserved(hop)?.octets;
        let packets = Packets::of_source(spec, octets, program).beside_others(hop);
        let port = &mut self.line_of_hop(hop)?.port;
        port.enter(hop, packets);
        let units = port.units_a_cycle(hop);
        self.hops.enter_source(hop);
        self.hops.lead_to(hop, spec.local_id);
        self.hops.fans.send_on(program, hop, units);
        Ok(())
    }

    /// Packets of a branch that come by this id go on over this hop, which another branch may have entered.
    pub(super) fn enter_gateway_beside(
        &mut self,
        hop: ChannelId,
        spec: &HopSpec,
        from: Way,
        local_id: u16,
    ) -> Result<(), HopError> {
        let state = self.hops.hop(hop).map(|hop| hop.state);
        let Some(State::Gateway(key)) = state else {
            return self.enter_gateway_as(hop, spec, from, local_id);
        };
        self.line_of_hop(hop)?.port.set_local_id(hop, spec.local_id);
        self.hops.lead_to(hop, spec.local_id);
        self.hops.come_by(hop, key, (from.port, from.hop, local_id));
        self.count_arrivals();
        Ok(())
    }

    /// A unit of a program that sends to several receivers waits in its memory.
    pub(super) fn offer_to_all(&mut self, now: Instant, program: ChannelId, unit: UnitRef) {
        self.hops.fans.offered(program, unit.number);
        let mut place = 0;
        while let Some(hop) = self.hops.fans.hop(program, place) {
            let at = self.place_of(hop);
            self.lines[at].handle(now, Input::UnitReady { channel: hop, unit });
            place += 1;
        }
        self.settle_hops(now);
        self.carry_across(now);
    }

    /// How many units of such a program are to be offered ahead: as many as each of its hops takes.
    pub(super) fn units_ahead_of_all(&self, program: ChannelId) -> usize {
        let hops = (0..).map_while(|place| self.hops.fans.hop(program, place));
        hops.map(|hop| self.line_of(hop).units_ahead(hop)).min().unwrap_or(0)
    }

    /// A packet goes on over the hops that its id has beside the first one.
    #[inline]
    pub(super) fn forward_further(&mut self, now: Instant, at: usize, key: Key, packet: &Packet<'_>) {
        let mut place = 0;
        while let Some((port, hop)) = self.hops.fans.at(key, place) {
            self.pass_on(now, at, port, hop, packet);
            place += 1;
        }
    }
}
