//! What the data thread cannot see for itself: how much the host sends past it in plain mode, and who else
//! is on the wire. A thread of its own asks the kernel a few times a second and leaves numbers behind; the
//! data thread only loads them.

use crate::log::{Level, say};
use nix::errno::Errno;
use rota_driver::outsiders::{Outsiders, interface_dropped, interface_sent};
use rota_driver::packet::interface_mtu;
use rota_driver::tunnel::Trouble;
use rota_proto::HostSigns;
use rota_shm::{CounterReader, CounterTable, Monitor, StationRow};
use rota_wire::{Load, MacAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(250);
/// As the counters say it.
const TOKEN_MODE: u64 = 3;
const NOT_KNOWN: u64 = u64::MAX;

/// The numbers. Each stands for itself, so that none needs a lock.
#[derive(Debug)]
pub(crate) struct Meter {
    sent_frames: AtomicU64,
    sent_octets: AtomicU64,
    foreign_frames: AtomicU64,
    foreign_octets: AtomicU64,
    foreign_mac: AtomicU64,
    own_address: AtomicU64,
    gate_lost: AtomicU64,
    mtu: AtomicU64,
}

impl Meter {
    pub(crate) fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self {
            sent_frames: AtomicU64::new(NOT_KNOWN),
            sent_octets: AtomicU64::new(NOT_KNOWN),
            foreign_frames: zero(),
            foreign_octets: zero(),
            foreign_mac: zero(),
            own_address: zero(),
            gate_lost: zero(),
            mtu: zero(),
        })
    }

    /// Diverted frames that the kernel dropped before the node could read them.
    pub(crate) fn gate_lost(&self) -> u64 {
        self.gate_lost.load(Ordering::Relaxed)
    }

    /// The interface's MTU, once it has been asked for.
    pub(crate) fn mtu(&self) -> Option<u16> {
        u16::try_from(self.mtu.load(Ordering::Relaxed)).ok().filter(|mtu| *mtu > 0)
    }

    /// What the machines are told of their host; the rest is the data thread's own.
    pub(crate) fn signs(&self) -> HostSigns {
        let load = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let (frames, octets) = (load(&self.sent_frames), load(&self.sent_octets));
        HostSigns {
            own_address: load(&self.own_address),
            interface: (octets != NOT_KNOWN && frames != NOT_KNOWN).then_some(Load { frames, octets }),
            foreign: Load { frames: load(&self.foreign_frames), octets: load(&self.foreign_octets) },
            foreign_mac: MacAddr::from_word(load(&self.foreign_mac)),
            ..HostSigns::default()
        }
    }
}

/// The difference from a count at the start. Only if there is one the kernel is asked: each question opens a
/// file and reads a table of all interfaces.
fn since(base: Option<(u64, u64)>, now: impl FnOnce() -> Option<(u64, u64)>) -> Option<(u64, u64)> {
    let (frames_0, octets_0) = base?;
    let (frames, octets) = now()?;
    Some((frames.saturating_sub(frames_0), octets.saturating_sub(octets_0)))
}

/// The port that is measured.
pub(crate) struct Of<'a> {
    pub(crate) port: usize,
    pub(crate) interface: &'a str,
    /// The interface of its gate.
    pub(crate) gate: Option<&'a str>,
    /// Its findings, where it is a tunnel.
    pub(crate) trouble: Option<&'a Trouble>,
}

/// Asks until the other end of `stop` is gone. Where the kernel does not answer, numbers stay unknown. Of an
/// interface that it does not know at the start (a device inside the process) it is asked nothing again.
pub(crate) fn run(
    meter: &Meter,
    of: &Of<'_>,
    mut ear: Option<Outsiders>,
    counters: &CounterTable,
    stop: &Receiver<()>,
) {
    let Of { port, interface, gate, trouble } = *of;
    let mut warns = trouble.is_some();
    let reader = counters.descriptor().try_clone_to_owned().ok().and_then(|f| CounterReader::open(f).ok());
    let base = interface_sent(interface);
    let has_mtu = interface_mtu(interface) != Err(Errno::ENODEV);
    let (mut seen, mut known, mut ruled) = (Monitor::default(), Vec::new(), false);
    while stop.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        if let Some((frames, octets)) = since(base, || interface_sent(interface)) {
            meter.sent_frames.store(frames, Ordering::Relaxed);
            meter.sent_octets.store(octets, Ordering::Relaxed);
        }
        if has_mtu && let Ok(mtu) = interface_mtu(interface) {
            meter.mtu.store(u64::from(mtu), Ordering::Relaxed);
        }
        if let Some(lost) = gate.and_then(interface_dropped) {
            meter.gate_lost.store(lost, Ordering::Relaxed);
        }
        if let Some(sentence) = trouble.filter(|_| warns).and_then(Trouble::too_long) {
            say(Level::Warn, "tunnel", &format!("{interface}: {sentence}"));
            warns = false;
        }
        let (Some(reader), Some(open)) = (&reader, &mut ear) else { continue };
        if !reader.monitor(port, &mut seen) {
            continue;
        }
        let heard = open.take().unwrap_or_default();
        meter.own_address.fetch_add(heard.own, Ordering::Relaxed);
        let rules = seen.segment.mode == TOKEN_MODE;
        let members = members(&seen);
        let changed = members != known;
        // Only whole intervals under one agreement count: in plain mode anybody may send, and who has just
        // come or gone is no stranger yet.
        if rules && ruled && !changed && heard.frames > 0 {
            meter.foreign_frames.fetch_add(heard.frames, Ordering::Relaxed);
            meter.foreign_octets.fetch_add(heard.octets, Ordering::Relaxed);
            meter.foreign_mac.store(MacAddr(heard.mac).word(), Ordering::Relaxed);
        }
        if changed && open.expect(&members).is_ok() {
            known = members;
        }
        ruled = rules;
    }
}

/// The other stations: an incoming frame with this station's address is a stranger's.
fn members(seen: &Monitor) -> Vec<[u8; 6]> {
    let is_other =
        |row: &&StationRow| row.flags & (StationRow::ALIVE | StationRow::HERE) == StationRow::ALIVE;
    let alive = seen.stations.iter().filter(is_other);
    let mut members: Vec<[u8; 6]> = alive.map(|row| MacAddr::from_word(row.mac).0).collect();
    members.sort_unstable();
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of all interfaces was read in each interval, also where nothing was there to subtract.
    #[test]
    fn without_a_count_at_the_start_the_kernel_is_not_asked() {
        assert_eq!(since(None, || panic!("asked")), None);
        assert_eq!(since(Some((3, 300)), || None), None);
        assert_eq!(since(Some((3, 300)), || Some((5, 900))), Some((2, 600)));
        assert_eq!(since(Some((3, 300)), || Some((0, 0))), Some((0, 0)), "a count that began anew");
    }
}
