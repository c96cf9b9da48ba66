//! The ports of a host: one card on each of its segments. A host with its port on a segment is a station
//! there.

use super::Host;
use crate::media::Frame;
use rota_proto::rether::Rether;
use rota_proto::{Medium, ModeName, Port, PortId, Settings};
use rota_units::Instant;
use rota_wire::MacAddr;
use std::collections::BTreeMap;

/// A card of a host.
#[derive(Debug)]
pub struct HostPort {
    /// The segment that it is on, from 0.
    pub segment: usize,
    /// Its address.
    pub mac: MacAddr,
    /// Its own settings, where they are not those of its segment: a mistake.
    pub settings: Option<Settings>,
    /// When the last process behind it ended, or the port itself.
    pub died: Instant,
    /// True if the interface has disappeared. The next process finds it again.
    pub is_gone: bool,
    /// Until when ordinary frames that its gate let pass are in its card.
    pub(crate) ordinary_until: Instant,
    /// True if its gate diverts ordinary frames.
    pub(crate) gated: bool,
    /// Ordinary frames that the node keeps, by their tags.
    pub(crate) host_frames: BTreeMap<u32, Frame>,
    /// Ordinary frames that the process was told to drop.
    pub(crate) dropped: u64,
    /// Shares that its process has asked for beside those of flows, since it began.
    pub(crate) hops: u64,
}

impl HostPort {
    pub(crate) fn new(segment: usize, mac: MacAddr) -> Self {
        Self {
            segment,
            mac,
            settings: None,
            died: Instant::ZERO,
            is_gone: false,
            ordinary_until: Instant::ZERO,
            gated: false,
            host_frames: BTreeMap::new(),
            dropped: 0,
            hops: 0,
        }
    }

    /// True if the card takes a frame: for its own address, its own group address, or everybody.
    pub fn picks(&self, frame: &[u8]) -> bool {
        let own = [self.mac, self.mac.own_group(), MacAddr::BROADCAST];
        frame.first_chunk::<6>().is_some_and(|mac| own.contains(&MacAddr(*mac)))
    }

    /// The gate ends with its process, and with it the frames that the process kept.
    pub(crate) fn lose_gate(&mut self) {
        (self.gated, self.dropped, self.hops) = (false, 0, 0);
        self.host_frames.clear();
    }
}

impl Host {
    /// The address of its first card.
    pub fn mac(&self) -> MacAddr {
        self.ports[0].mac
    }

    /// The number of its port on a segment, if it has one.
    pub fn port_on(&self, segment: usize) -> Option<PortId> {
        let at = self.ports.iter().position(|port| port.segment == segment)?;
        u8::try_from(at).ok().map(PortId)
    }

    /// The host as a station of a segment, if it has a port there.
    pub fn on(&self, segment: usize) -> Option<Station<'_>> {
        let id = self.port_on(segment)?;
        Some(Station { host: self, card: &self.ports[usize::from(id.0)], id })
    }

    pub(crate) fn card(&self, port: PortId) -> &HostPort {
        &self.ports[usize::from(port.0)]
    }

    pub(crate) fn card_mut(&mut self, port: PortId) -> &mut HostPort {
        &mut self.ports[usize::from(port.0)]
    }

    /// The medium that its node runs on a port.
    pub(crate) fn medium_at(&self, port: PortId) -> Option<&Medium> {
        Some(self.node.as_ref()?.port_at(port)?.medium())
    }

    /// The same where it is RETHER.
    pub(crate) fn rether_at(&self, port: PortId) -> Option<&Rether> {
        self.medium_at(port)?.rether()
    }
}

/// A host as a station of one segment. All else that a host is stays to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Station<'a> {
    host: &'a Host,
    /// Its card on the segment.
    pub card: &'a HostPort,
    id: PortId,
}

impl std::ops::Deref for Station<'_> {
    type Target = Host;

    fn deref(&self) -> &Host {
        self.host
    }
}

impl<'a> Station<'a> {
    /// The number of its port.
    pub fn id(&self) -> PortId {
        self.id
    }

    /// The node's port on the segment, unless the process is dead or the interface gone.
    pub fn port(&self) -> Option<&'a Port> {
        self.host.node.as_ref()?.port_at(self.id)
    }

    /// The medium of that port.
    pub fn medium(&self) -> Option<&'a Medium> {
        self.host.medium_at(self.id)
    }

    /// The same where it is RETHER.
    pub fn rether(&self) -> Option<&'a Rether> {
        self.host.rether_at(self.id)
    }

    /// Its mode on the segment.
    pub fn mode(&self) -> Option<ModeName> {
        self.rether().map(Rether::mode)
    }

    /// True if its process can run at `now` and has the interface.
    pub fn is_running(&self, now: Instant) -> bool {
        !self.card.is_gone && self.host.is_running(now)
    }

    /// True if it holds a token whose lease has not ended, by its own clock.
    pub fn holds(&self, now: Instant) -> bool {
        self.rether().is_some_and(|link| link.holds_token(self.host.clock.read(now)))
    }
}
