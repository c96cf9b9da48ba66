//! A point-to-point link whose sender serves its packets earliest deadline first.

use super::{Ask, Offer, Subnet, packet_cost, packet_span_up};
use crate::link::LinkModel;
use crate::rtip::{Denied, EdfTable, Flow};
use rota_units::{Octets, Span};

/// One direction of a link, with the channels that stand on it.
#[derive(Debug)]
pub struct LinkPort<'s> {
    /// The costs of sending here.
    pub link: LinkModel,
    /// The channels of this direction; its ordinary blocking holds what the card may have ahead
    /// ([`crate::link_blocking`]).
    pub table: EdfTable<'s>,
    /// The shortest time of the cable and the devices on it.
    pub cable_least: Span,
    /// The longest one.
    pub cable_most: Span,
}

impl LinkPort<'_> {
    /// The flow of `ask` with a bound of `delay` on the port, host slack apart.
    pub fn flow(&self, ask: &Ask, delay: Span) -> Flow {
        Flow { traffic: ask.traffic, service: packet_cost(&self.link, ask.octets), delay }
    }

    fn offer(&self, ask: &Ask, delay: Span) -> Offer {
        Offer {
            delay: delay + self.link.host_slack,
            // The host may be quicker than its charge: only the wire's own time is sure.
            service_least: self.wire(ask.octets_least),
            link_least: self.cable_least,
            link_most: self.cable_most,
        }
    }

    fn wire(&self, payload: Octets) -> Span {
        packet_span_up(self.link.rate, &self.link.framing, payload)
    }
}

impl Subnet for LinkPort<'_> {
    fn best(&mut self, ask: &Ask) -> Result<Offer, Denied> {
        let service = packet_cost(&self.link, ask.octets);
        let delay = self.table.best(&ask.traffic, service)?;
        Ok(self.offer(ask, delay))
    }

    fn keeping(&mut self, ask: &Ask, delay: Span) -> Result<Offer, Denied> {
        let slack = self.link.host_slack;
        let flow = self.flow(ask, delay.minus(slack));
        // A longer bound costs nothing else here: the longest one is the cheapest.
        self.table.test(&flow).map_err(|denied| Denied {
            nearest_delay: denied.nearest_delay.map(|nearest| nearest + slack),
            ..denied
        })?;
        Ok(self.offer(ask, flow.delay))
    }
}
