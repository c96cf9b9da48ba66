//! Three stations on one segment, on whatever carries it.

use rota_driver::clock;
use rota_driver::device::{FrameDevice, ReceivedFrame};
use rota_driver::in_process::{InProcessDevice, Segment, SegmentSpec};
use rota_driver::packet::{PacketDevice, PacketOptions};
use rota_driver::poller::{Poller, Trigger};
use rota_units::{BitRate, Octets, Span};

use crate::net::Netlink;

pub const ETHERTYPE: u16 = 0x88b5;
pub const MTU: usize = 1_500;
pub const STATIONS: usize = 3;
/// Far longer than any stall of a virtual machine.
pub const PATIENCE: Span = Span::from_millis(10_000);

pub trait Rig {
    fn name(&self) -> &str;
    fn device(&mut self, station: usize) -> &mut dyn FrameDevice;
    /// Unplugs or plugs a station's own interface.
    fn set_link(&mut self, station: usize, up: bool);
    /// Sends a frame of any EtherType from station 0; false where the device cannot.
    fn send_any(&mut self, frame: &[u8]) -> bool;
}

pub fn mac(station: usize) -> [u8; 6] {
    [0x02, 0x52, 0x4f, 0x54, 0x41, station as u8 + 1]
}

pub struct InProcessRig {
    name: &'static str,
    devices: Vec<InProcessDevice>,
}

impl InProcessRig {
    pub fn new(name: &'static str, rate: Option<BitRate>) -> Self {
        let segment = Segment::new(SegmentSpec { rate, port_queue: Octets::new(1_000_000) });
        let devices = (0..STATIONS).map(|k| segment.port(mac(k), MTU as u16).unwrap()).collect();
        Self { name, devices }
    }
}

impl Rig for InProcessRig {
    fn name(&self) -> &str {
        self.name
    }
    fn device(&mut self, station: usize) -> &mut dyn FrameDevice {
        &mut self.devices[station]
    }
    fn set_link(&mut self, station: usize, up: bool) {
        self.devices[station].set_link(up);
    }
    fn send_any(&mut self, _frame: &[u8]) -> bool {
        false
    }
}

/// Stations `e0` to `e2` on a bridge, all in the network namespace that this process made for itself.
pub struct PacketRig {
    pub netlink: Netlink,
    pub devices: Vec<PacketDevice>,
}

impl PacketRig {
    pub fn new(mut netlink: Netlink) -> Self {
        netlink.add_bridge("bridge").unwrap();
        netlink.set_up("bridge", true).unwrap();
        for k in 0..STATIONS {
            let (near, far) = (format!("e{k}"), format!("p{k}"));
            netlink.add_veth(&near, mac(k), &far).unwrap();
            netlink.set_master(&far, "bridge").unwrap();
            netlink.set_up(&far, true).unwrap();
            netlink.set_up(&near, true).unwrap();
        }
        let devices = (0..STATIONS).map(|k| {
            let options = PacketOptions::new(&format!("e{k}"), ETHERTYPE, 0x52);
            PacketDevice::open_with(&options).unwrap()
        });
        let devices = devices.collect();
        let mut rig = Self { netlink, devices };
        rig.await_forwarding();
        rig
    }

    /// The bridge passes nothing until its ports have been brought up by the kernel's worker.
    pub fn await_forwarding(&mut self) {
        for station in 1..STATIONS {
            await_path(self, 0, station);
            await_path(self, station, 0);
        }
        drain(self);
    }
}

impl Rig for PacketRig {
    fn name(&self) -> &str {
        "AF_PACKET"
    }
    fn device(&mut self, station: usize) -> &mut dyn FrameDevice {
        &mut self.devices[station]
    }
    fn set_link(&mut self, station: usize, up: bool) {
        self.netlink.set_up(&format!("e{station}"), up).unwrap();
    }
    fn send_any(&mut self, frame: &[u8]) -> bool {
        self.devices[0].send_any(frame).unwrap();
        true
    }
}

/// A frame of ours with a number in it and octets that depend on the number.
pub fn frame(from: usize, to: [u8; 6], len: usize, number: u32) -> Vec<u8> {
    let mut frame = Vec::with_capacity(len);
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&mac(from));
    frame.extend_from_slice(&ETHERTYPE.to_be_bytes());
    frame.push(0x10);
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend((frame.len()..len).map(|k| (k as u32).wrapping_mul(31).wrapping_add(number) as u8));
    frame
}

pub fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[15..19].try_into().unwrap())
}

/// The next frame of a station, or `None` if none comes within `wait`.
pub fn next_within(rig: &mut dyn Rig, station: usize, wait: Span) -> Option<(ReceivedFrame, Vec<u8>)> {
    let device = rig.device(station);
    let mut poller = Poller::new(1).unwrap();
    poller.add(device.wait_fd().unwrap(), 0, Trigger::Level).unwrap();
    let limit = clock::now() + wait;
    let mut buf = vec![0; MTU + 14];
    loop {
        if let Some(received) = device.receive(&mut buf).unwrap() {
            buf.truncate(received.len);
            return Some((received, buf));
        }
        if clock::now() >= limit {
            return None;
        }
        let _ = poller.wait(limit).unwrap();
    }
}

pub fn next(rig: &mut dyn Rig, station: usize) -> (ReceivedFrame, Vec<u8>) {
    next_within(rig, station, PATIENCE).expect("a frame comes in time")
}

/// Sends until a frame gets through; earlier ones may be lost while links come up.
pub fn await_path(rig: &mut dyn Rig, from: usize, to: usize) {
    let limit = clock::now() + PATIENCE;
    while clock::now() < limit {
        let _ = rig.device(from).transmit(&frame(from, mac(to), 60, u32::MAX));
        if next_within(rig, to, Span::from_millis(10)).is_some() {
            return;
        }
    }
    panic!("no frame got from station {from} to station {to}");
}

/// Takes everything that is left over: a marker from each station ends each queue.
pub fn drain(rig: &mut dyn Rig) {
    for station in 0..STATIONS {
        let from = (station + 1) % STATIONS;
        rig.device(from).transmit(&frame(from, mac(station), 60, 0xd4a1)).unwrap();
        while number(&next(rig, station).1) != 0xd4a1 {}
        let mut buf = vec![0; MTU + 14];
        while rig.device(station).receive(&mut buf).unwrap().is_some() {}
    }
}
