//! The ports of a node as the data thread serves them: each has a device, a gate and a will of its own, and
//! the machines, the rings and the turn are one.

use super::host::HostWay;
use super::waits::{DOORBELL, Waits};
use super::wire::Wire;
use super::{Data, Stopped};
use crate::commands::Note;
use crate::counters::PortView;
use crate::gate::Egress;
use crate::guardian::Wills;
use crate::meter::Meter;
use rota_driver::clock::now;
use rota_driver::device::{DeviceError, FrameDevice, Transmit};
use rota_driver::guardian::WILL_OCTETS_MAX;
use rota_proto::Medium;
use rota_proto::{FrameBuf, Node, Output, Port, PortId, Settings};
use std::sync::Arc;

/// Outputs of a port that is about to be lost, its farewell among them.
const FAREWELL_OUTPUTS: usize = 16;

/// One port that a node is to begin with.
pub(crate) struct Plug<D, G> {
    pub(crate) interface: String,
    pub(crate) settings: Settings,
    pub(crate) device: D,
    pub(crate) gate: G,
    pub(crate) wills: Wills,
    pub(crate) meter: Arc<Meter>,
}

/// One port: the frames that come and go, and the host's own.
pub(super) struct Way<D, G> {
    pub(super) port: PortId,
    pub(super) interface: String,
    pub(super) wire: Wire<D>,
    pub(super) host: HostWay<G>,
    pub(super) wills: Wills,
    pub(super) meter: Arc<Meter>,
}

/// A port that is gone. Its sockets and its tap are closed when the node ends: the kernel takes tens of
/// milliseconds for that, and units of the other ports would be late meanwhile.
pub(super) struct LostPort<D, G> {
    pub(super) note: String,
    _device: D,
    _gate: G,
}

impl<D: FrameDevice, G: Egress> Way<D, G> {
    pub(super) fn new(plug: Plug<D, G>, port: &Port, waits: &Waits) -> Result<Self, Stopped> {
        let Plug { interface, settings, device, gate, wills, meter } = plug;
        waits.add_device(&device, port.id())?;
        let host = HostWay::new(gate, port, &settings, device.mtu());
        Ok(Self { port: port.id(), interface, wire: Wire::new(device), host, wills, meter })
    }
}

impl<D, G> Way<D, G> {
    /// The sources of the values of this port's counters; none where the port is gone.
    pub(super) fn view<'a>(&'a self, node: &'a Node) -> Option<PortView<'a>> {
        let (port, llc) = (node.port_at(self.port)?, node.llc_at(self.port)?);
        let host = self.host_frames();
        Some(PortView { medium: port.medium(), port, llc, wire: &self.wire.counts, host })
    }
}

/// The medium of a port that is there.
pub(super) fn medium(node: &Node, port: PortId) -> &Medium {
    node.port_at(port).unwrap_or_else(|| node.port()).medium()
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// The place of a port's way; none where the port is gone.
    pub(super) fn way(&self, port: PortId) -> Option<usize> {
        self.ways.iter().position(|way| way.port == port)
    }

    /// A port whose device still sends tells the others that it goes: in a ring by its will, as the guardian
    /// of a dead node does, behind all frames that this station has sent; elsewhere by its farewell.
    fn tell_others(&mut self, lost: &mut Way<D, G>) {
        let at = now();
        let mut will = [0; WILL_OCTETS_MAX];
        if let Some(octets) = medium(&self.node, lost.port).write_will(&mut will) {
            if matches!(lost.wire.device.transmit(&will[..octets]), Ok(Transmit::Sent)) {
                lost.wills.withdraw();
            }
            return;
        }
        self.node.leave_at(at, lost.port);
        for _ in 0..FAREWELL_OUTPUTS {
            let mut frame = FrameBuf { bytes: &mut self.frame, payloads: &mut self.rings };
            match self.node.poll_at(at, lost.port, &mut frame) {
                Some(Output::Transmit { len, .. }) => {
                    let _ = lost.wire.device.transmit(&self.frame[..usize::from(len)]);
                }
                Some(_) => {}
                None => break,
            }
        }
    }

    /// An error of the device or of the gate of one port among several ends that port and nothing else.
    /// Any other one is returned.
    pub(super) fn survive(&mut self, error: Stopped) -> Result<(), Stopped> {
        let (port, why) = match &error {
            Stopped::Device(port, why @ DeviceError::Gone) => (*port, why.to_string()),
            Stopped::Gate(port, why) => (*port, why.to_string()),
            _ => return Err(error),
        };
        let place = self.way(port).filter(|_| self.ways.len() > 1);
        let Some(place) = place else { return Err(error) };
        let mut lost = self.ways.remove(place);
        self.waits.remove_device(&lost.wire.device);
        let _ = lost.host.gate.pass();
        self.node.break_off();
        if matches!(error, Stopped::Gate(..)) {
            self.tell_others(&mut lost);
        }
        self.told.tracer.port_lost(port, now(), &why);
        let left = self.node.lose_port(now(), port);
        self.told.published.lose(now(), port);
        self.rings.sockets.lose_port(port);
        let note = format!(
            "interface {} is lost ({why}): its channels have ended; {left} of this node's interfaces {} left",
            lost.interface,
            if left == 1 { "is" } else { "are" }
        );
        // Both stay open until the node ends. A control descriptor with a frame would wake each wait.
        for fd in [lost.host.gate.wait_fd(), lost.host.gate.control_fd()].into_iter().flatten() {
            self.waits.remove(fd);
        }
        let Way { wire, host, .. } = lost;
        self.lost.push(LostPort { note: note.clone(), _device: wire.device, _gate: host.gate });
        self.control.say(Note::PortLost { note });
        // The turn was broken off: what its wait had told is looked at now, because it is not told again.
        self.work.has_commands = true;
        let bells: Vec<u64> = self.waits.doorbells().collect();
        debug_assert!(bells.iter().all(|bell| *bell >= DOORBELL));
        let went_on = self.drain().and_then(|_| self.look_at_rings(now(), &bells));
        // Another interface may be gone too. Each time one way less is left.
        went_on.or_else(|error| self.survive(error))
    }
}
