//! The ports of a node: how it comes to have several, how one is named, and how one is lost.

use super::cpu::Cpu;
use super::line::Line;
use super::messages::Messages;
use super::{HostSigns, Identity, Medium, Node, Port, ReportHead, Reports, Rether, Settings, Turns};
use crate::io::{ChannelId, FrameBuf, Output, PortId};
use crate::rtip::table::Table;
use rota_contract::CloseCause;
use rota_units::Instant;
use rota_wire::{Key, MacAddr};
use std::collections::VecDeque;

/// Ports that a node has at most.
pub const PORTS_MAX: usize = 8;

/// One port of a node that is to begin.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Times, rates and limits of its segment.
    pub settings: Settings,
    /// The secret of its segment.
    pub secret: Key,
}

/// Ports that no node can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortsError {
    /// None, or too many.
    #[error("a node has 1 to {PORTS_MAX} ports, not {0}")]
    Number(usize),
    /// Two with one address.
    #[error("two ports have the address {0}")]
    SameAddress(MacAddr),
}

impl Node {
    /// A host with these ports, numbered from 0 in this order, each of which begins to look for its segment.
    /// `identity` is the host's; its address does not matter, since each port has its own. `seed` must differ
    /// at each boot.
    ///
    /// # Errors
    /// [`PortsError`].
    pub fn with_ports(
        now: Instant,
        identity: &Identity,
        ports: &[PortSpec],
        seed: u64,
    ) -> Result<Self, PortsError> {
        if ports.is_empty() || ports.len() > PORTS_MAX {
            return Err(PortsError::Number(ports.len()));
        }
        for (at, port) in ports.iter().enumerate() {
            if ports[..at].iter().any(|other| other.mac == port.mac) {
                return Err(PortsError::SameAddress(port.mac));
            }
        }
        let lines = ports.iter().zip(0u8..).map(|(port, id)| {
            let me = Identity { mac: port.mac, ..identity.clone() };
            Line::new(now, PortId(id), me, &port.secret, port.settings.clone(), seed_of(seed, id))
        });
        Ok(Self::of_lines(lines.collect()))
    }

    pub(super) fn of_lines(lines: Vec<Line>) -> Self {
        let turns = Turns::new(lines.len());
        let messages = Messages::new(lines.len());
        let (hops, across) = (Table::new(), None);
        let (orphaned, lost_circuits) = (VecDeque::new(), VecDeque::new());
        let cpu = Cpu::default();
        Self { lines, turns, orphaned, messages, lost_circuits, hops, across, cpu, is_draining: false }
    }

    /// A port is gone, and with it its segment: all its channels end here as
    /// [`rota_contract::CloseCause::PortGone`], and what they had is dropped whole. Listeners go on
    /// listening on the other ports. Returns how many ports are left. The last port stays to be looked at:
    /// without it there is no node, and its owner is to drop that.
    pub fn lose_port(&mut self, now: Instant, port: PortId) -> usize {
        self.assert_drained();
        let Some(at) = self.place(port) else { return self.lines.len() };
        if self.lines.len() == 1 {
            self.end_hops_at(now, port, CloseCause::PortGone);
            self.leave(now);
            return 0;
        }
        let line = self.lines.remove(at);
        self.end_hops_at(now, port, CloseCause::PortGone);
        self.messages.end_with_port(line.llc);
        self.lost_circuits.extend(line.circuits.end_with_port());
        self.turns = Turns::new(self.lines.len());
        let (events, returning) = line.channels.end_with_port();
        self.orphaned.extend(events.into_iter().map(|event| (port, event)));
        // They are named in an event, and listen again when the parent says so.
        returning.into_iter().for_each(|listener| self.lines[0].channels.adopt(listener));
        self.lines.len()
    }

    /// One port leaves its segment in good order; [`Node::poll_at`] has the frames that say so.
    pub fn leave_at(&mut self, now: Instant, port: PortId) {
        self.assert_drained();
        if let Some(at) = self.place(port) {
            self.lines[at].port.leave(now);
            self.lines[at].carry_wants(now);
        }
    }

    /// The next thing to do for one port alone, which is about to be lost.
    pub fn poll_at(&mut self, now: Instant, port: PortId, frame: &mut FrameBuf<'_>) -> Option<Output> {
        let at = self.place(port)?;
        self.lines[at].poll(now, frame)
    }

    // ---- places ---------------------------------------------------------------------------------------

    pub(super) fn place(&self, port: PortId) -> Option<usize> {
        self.lines.iter().position(|line| line.port.id() == port)
    }

    /// The place of a channel's line. A channel that is not known is none of any line, also not of the first.
    pub(super) fn place_of(&self, channel: ChannelId) -> usize {
        if self.lines.len() == 1 {
            return 0;
        }
        let has = |line: &Line| line.channels.has(channel) || line.hops.has(channel);
        self.lines.iter().position(has).unwrap_or(0)
    }

    pub(super) fn line_of(&self, channel: ChannelId) -> &Line {
        &self.lines[self.place_of(channel)]
    }

    pub(super) fn line_mut(&mut self, channel: ChannelId) -> &mut Line {
        self.assert_drained();
        let at = self.place_of(channel);
        &mut self.lines[at]
    }

    // ---- to look at -----------------------------------------------------------------------------------

    /// The medium of the first port: all there is to look at where a node has one.
    pub fn medium(&self) -> &Medium {
        self.port().medium()
    }

    /// The token machine of the first port, for simulators and tests of RETHER.
    ///
    /// # Panics
    /// The medium of the first port is another one.
    pub fn rether(&self) -> &Rether {
        self.medium().rether().expect("the first port's medium is RETHER")
    }

    /// The first port, to look at: the units and the ordinary frames that wait for the medium.
    pub fn port(&self) -> &Port {
        &self.lines[0].port
    }

    /// A port, to look at; none where it is gone.
    pub fn port_at(&self, port: PortId) -> Option<&Port> {
        Some(&self.lines[self.place(port)?].port)
    }

    /// The ports that are there.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.lines.iter().map(|line| &line.port)
    }

    /// The port over which a channel goes.
    pub fn port_of(&self, channel: ChannelId) -> Option<PortId> {
        let line = self.line_of(channel);
        line.channels.has(channel).then(|| line.port.id())
    }

    // ---- one port of several --------------------------------------------------------------------------

    /// When a port, or one of its machines, wants to be called.
    pub fn deadline_at(&self, port: PortId) -> Instant {
        self.place(port).map_or(Instant::FAR, |at| self.lines[at].timer().at)
    }

    /// As [`Node::handle_deadline`], for one port: frames of another one may have to be read before its
    /// timers are judged.
    pub fn handle_deadline_at(&mut self, now: Instant, port: PortId) {
        self.assert_drained();
        if let Some(at) = self.place(port) {
            self.lines[at].handle_deadline(now);
        }
    }

    /// Tells the parent's knowledge of its host and of a port, for reports and monitors.
    pub fn tell_host(&mut self, port: PortId, signs: HostSigns) {
        self.assert_drained();
        if let Some(at) = self.place(port) {
            self.lines[at].tell_host(signs);
        }
    }

    /// The report that this station would make now on a port; none where it is gone.
    pub fn own_report(&self, now: Instant, port: PortId) -> Option<ReportHead> {
        Some(self.lines[self.place(port)?].own_report(now))
    }

    /// The reports of other stations on a port; none where it is gone.
    pub fn reports(&self, port: PortId) -> Option<&Reports> {
        Some(&self.lines[self.place(port)?].reports)
    }
}

/// A stream of numbers for each port: the first has the node's own. Far enough apart for the ids of channels,
/// which count from there (`channels.rs`).
fn seed_of(seed: u64, port: u8) -> u64 {
    seed.wrapping_add(u64::from(port).wrapping_mul(0x9e37_79b9_1000_0000))
}
