//! One end of a calibration: a device as a node opens it, and frames that cost what a node's frames cost.

use crate::clock;
use rota_admission::Framing;
use rota_answer::Failure;
use rota_driver::device::{DeviceError, FrameDevice, Transmit};
use rota_driver::packet::{PacketDevice, PacketOptions};
use rota_driver::poller::{Poller, Trigger};
use rota_units::{BitRate, Instant, Span};
use rota_wire::{
    FrameView, Generation, Key, Kind, LINK_HEADER_OCTETS, LinkHeader, MacAddr, PayloadKind, TAG_OCTETS,
    UNIT_HEADER_OCTETS, UnitHeader, emit_frame, verify,
};

/// The second EtherType for local experiments: no node listens to it.
const ETHERTYPE: u16 = 0x88b6;
/// Not a secret: it only makes each tag cost what a tag costs.
const SECRET: [u8; 32] = *b"rota calibrate: nobody's secret.";
/// Octets of a frame beside the MTU, and some to spare.
const BEYOND_MTU: usize = 64;
/// Where a body begins: behind the Ethernet header and ours.
const BODY: usize = 14 + LINK_HEADER_OCTETS;
const BROADCAST: MacAddr = MacAddr([0xff; 6]);
/// How often and how long a device is asked whether its queue has emptied.
const BACKLOG_PAUSE: Span = Span::from_micros(200);
const BACKLOG_TRIES: u32 = 500;

/// A device, what it is waited for with, and room for one frame.
pub struct Station {
    device: PacketDevice,
    poller: Poller,
    key: Key,
    seq: u64,
    unit: Vec<u8>,
    buffer: Box<[u8]>,
    heard: Box<[u8]>,
}

/// An authentic frame that came.
#[derive(Clone, Copy, Debug)]
pub struct ProvenFrame {
    /// What it is.
    pub kind: Kind,
    /// From whom.
    pub from: MacAddr,
    /// Its number.
    pub seq: u64,
    /// Octets of its body.
    pub body: usize,
    /// What taking it from the device and checking it took.
    pub cost: Span,
}

fn device_failed(error: DeviceError) -> Failure {
    Failure::failed(error)
}

impl Station {
    /// Opens `iface` as a node would.
    pub fn open(iface: &str, rate: Option<BitRate>) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(error);
        let mut options = PacketOptions::new(iface, ETHERTYPE, 0);
        options.rate = rate;
        let device = PacketDevice::open_with(&options).map_err(|error| failed(&error))?;
        let poller = Poller::new(4).map_err(|error| failed(&error))?;
        if let Some(fd) = device.wait_fd() {
            poller.add(fd, 0, Trigger::Level).map_err(|error| failed(&error))?;
        }
        let octets = usize::from(device.mtu()) + BEYOND_MTU;
        let room = || vec![0; octets].into_boxed_slice();
        let (key, unit) = (Key::new(SECRET), vec![0x5a; octets]);
        Ok(Self { device, poller, key, seq: 0, unit, buffer: room(), heard: room() })
    }

    /// How this end's port frames what it carries.
    pub fn framing(&self) -> Framing {
        Framing::ethernet(self.device.mtu().min(Framing::MTU_MAX))
    }

    /// This end's address.
    pub fn mac(&self) -> MacAddr {
        MacAddr(self.device.mac())
    }

    fn header(&mut self, kind: Kind, seq: u64) -> LinkHeader {
        let payload = if kind == Kind::Data { PayloadKind::Unit } else { PayloadKind::None };
        let generation = Generation::default();
        LinkHeader { kind, key_epoch: 0, payload, source: 1, segment: 1, incarnation: 1, generation, seq }
    }

    fn send(&mut self, to: MacAddr, kind: Kind, seq: u64, body: usize) -> Result<bool, Failure> {
        let (header, me) = (self.header(kind, seq), self.mac());
        let len = emit_frame(&mut self.buffer[..], to, me, ETHERTYPE, &header, body, &self.key);
        let sent = self.device.transmit(&self.buffer[..len]).map_err(device_failed)?;
        Ok(sent == Transmit::Sent)
    }

    /// Builds, tags and hands over one fragment with `octets` of a unit, as a slot does. `false`: no room.
    pub fn send_fragment(&mut self, to: MacAddr, octets: usize) -> Result<bool, Failure> {
        self.seq += 1;
        let header = UnitHeader {
            label: 1,
            number: self.seq as u16,
            fragment: 0,
            last: false,
            left_out: 0,
            unit_octets: octets as u32,
            schedule_ns: 0,
        };
        header.emit(&mut self.buffer[BODY..BODY + UNIT_HEADER_OCTETS]);
        let start = BODY + UNIT_HEADER_OCTETS;
        self.buffer[start..start + octets].copy_from_slice(&self.unit[..octets]);
        self.send(to, Kind::Data, self.seq, UNIT_HEADER_OCTETS + octets)
    }

    /// Builds, tags and hands over a frame with this TPDU, as a node does, and checks its tag, as the node at
    /// the other end does. `false`: no room.
    pub fn send_tpdu(&mut self, to: MacAddr, tpdu: &[u8]) -> Result<bool, Failure> {
        self.seq += 1;
        self.buffer[BODY..BODY + tpdu.len()].copy_from_slice(tpdu);
        let sent = self.send(to, Kind::Data, self.seq, tpdu.len())?;
        let frame = &self.buffer[..BODY + tpdu.len() + TAG_OCTETS];
        let is_proven = FrameView::parse(frame, ETHERTYPE).is_ok_and(|view| verify(&view, &self.key));
        if is_proven { Ok(sent) } else { Err(Failure::failed("a frame of this host's own fails its tag")) }
    }

    /// Sends a control frame with `body` octets; returns its number.
    pub fn send_control(&mut self, to: MacAddr, kind: Kind, body: usize) -> Result<u64, Failure> {
        self.seq += 1;
        self.send(to, kind, self.seq, body)?;
        Ok(self.seq)
    }

    /// Sends a frame back to where it came from, as long as it was.
    pub fn answer(&mut self, heard: &ProvenFrame) -> Result<(), Failure> {
        self.send(heard.from, heard.kind, heard.seq, heard.body).map(drop)
    }

    /// The next authentic frame, until `deadline`.
    pub fn hear(&mut self, deadline: Instant) -> Result<Option<ProvenFrame>, Failure> {
        loop {
            let begin = clock::now();
            match self.device.receive(&mut self.heard[..]) {
                Ok(Some(received)) => {
                    let frame = &self.heard[..received.len];
                    let Ok(view) = FrameView::parse(frame, ETHERTYPE) else { continue };
                    if !verify(&view, &self.key) || view.source_mac() == MacAddr(self.device.mac()) {
                        continue;
                    }
                    let (header, from, body) = (view.header(), view.source_mac(), view.body().len());
                    let (kind, seq) = (header.kind, header.seq);
                    return Ok(Some(ProvenFrame { kind, from, seq, body, cost: clock::now().since(begin) }));
                }
                Ok(None) if clock::now() >= deadline => return Ok(None),
                Ok(None) => drop(self.poller.wait(deadline).map_err(Failure::failed)?),
                Err(DeviceError::Truncated { .. }) => {}
                Err(error) => return Err(device_failed(error)),
            }
        }
    }

    /// Waits as a node waits for its next deadline, and returns when it woke. Frames that come are dropped.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Instant, Failure> {
        loop {
            let woken = self.poller.wait(deadline).map_err(Failure::failed)?.count();
            let now = clock::now();
            if now >= deadline {
                return Ok(now);
            }
            if woken > 0 {
                let _ = self.device.receive(&mut self.heard[..]).map_err(device_failed)?;
            }
        }
    }

    /// Waits until what was handed over has left, as far as the device can say, and not before `from`.
    pub fn wait_drained(&mut self, from: Instant) -> Result<(), Failure> {
        self.wait_until(from)?;
        for _ in 0..BACKLOG_TRIES {
            if matches!(self.device.backlog(), rota_driver::device::Backlog::Empty { .. }) {
                break;
            }
            let later = clock::now() + BACKLOG_PAUSE;
            self.wait_until(later)?;
        }
        Ok(())
    }

    /// Looks for a station that answers: `peer`, or anybody.
    pub fn find(&mut self, peer: Option<MacAddr>) -> Result<Option<MacAddr>, Failure> {
        for _ in 0..3 {
            let seq = self.send_control(peer.unwrap_or(BROADCAST), Kind::Announce, 0)?;
            let deadline = clock::now() + Span::from_millis(200);
            while let Some(heard) = self.hear(deadline)? {
                if heard.kind == Kind::Announce && heard.seq == seq {
                    return Ok(Some(heard.from));
                }
            }
        }
        Ok(None)
    }
}
