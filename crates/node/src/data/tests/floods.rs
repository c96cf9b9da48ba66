//! Floods of frames that no key proves, from which the device keeps nothing out.

use super::*;
use crate::data::ease::PAUSE;
use rota_driver::device::Stamp;

/// Frames in one look: fewer than a turn takes.
const A_LOOK: u32 = 32;

/// Brings a frame that no key proves so many times.
#[derive(Default)]
struct Flood {
    left: u32,
}

impl FrameDevice for Flood {
    fn mac(&self) -> [u8; 6] {
        [2; 6]
    }

    fn mtu(&self) -> u16 {
        1_500
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let at = now();
        buffer[..60].fill(0);
        buffer[..6].fill(0xff);
        buffer[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        buffer[12..16].copy_from_slice(&[0x88, 0xb5, 0x11, 0x0d]);
        buffer[25] = 1;
        Ok(Some(ReceivedFrame { len: 60, at, stamp: Stamp::Kernel, dequeued: at, broadcast: true }))
    }

    fn transmit(&mut self, _: &[u8]) -> Result<Transmit, DeviceError> {
        Ok(Transmit::Sent)
    }

    fn backlog(&mut self) -> Backlog {
        Backlog::Empty { evidence: Evidence::NoQueue }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn link_up(&mut self) -> bool {
        true
    }
}

/// Each frame had a turn of its own, and at 89,000 a second they took 58 % of a core.
#[test]
fn strangers_behind_a_closed_door_are_taken_many_at_once() {
    let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    let (there, control) = Wiring::pair().expect("two ends");
    let (_, published, _) = counters::file().expect("memory");
    let files = Files { published, log: None, wills: Wills::default() };
    let Ok(mut data) = Data::new(&spec("n1", settings), Flood::default(), NoGate, control, files) else {
        panic!("a station")
    };
    let look = |data: &mut Data<Flood, NoGate>| {
        data.ways[0].wire.device.left = A_LOOK;
        data.node.handle_deadline(now());
        assert!(data.receive(0).is_ok() && data.drain().is_ok());
        let (began, before) = (now(), data.work.ease.pauses);
        let until = data.pause(began).unwrap_or_else(|_| panic!("a pause"));
        (data.work.ease.pauses - before, until.since(began))
    };
    for nth in 0..512 / A_LOOK - 1 {
        assert_eq!(look(&mut data).0, 0, "look {nth}: the door is open");
    }
    // The timers of a station that joins are never far away.
    let slept: Vec<_> = (0..8).map(|_| look(&mut data)).filter(|(pauses, _)| *pauses > 0).collect();
    assert!(slept.len() >= 4 && slept.iter().any(|(_, slept)| *slept >= PAUSE), "{slept:?}");
    data.ways[0].wire.heard_nothing();
    let before = data.work.ease.pauses;
    assert!(data.pause(now()).is_ok());
    assert_eq!(data.work.ease.pauses, before, "no frame of a stranger waits");
    drop(there);
}
