//! The file of intervals in which this station held the token. A thread of its own writes it, so that the
//! data thread never waits for a disk. A line that finds its queue or the disk full is dropped and counted;
//! the file goes on as soon as there is room.

use rota_units::Instant;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Lines that may wait.
const WAITING: usize = 65_536;

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Lines that were dropped since the process began.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

type Hold = (u32, Instant, Instant);

/// The data thread's end.
pub(crate) struct HoldLog(SyncSender<Hold>);

impl HoldLog {
    /// Makes the file, if one is wanted.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        let file = File::create(path)?;
        let (sender, receiver) = sync_channel(WAITING);
        std::thread::Builder::new().name("rota-hold-log".into()).spawn(move || {
            // The thread only writes to open files.
            let _ = rota_driver::confine::keep_capabilities(&[]);
            write_all(file, &receiver);
        })?;
        Ok(Some(Self(sender)))
    }

    /// Neither waits nor fails.
    pub(crate) fn note(&self, generation: u32, accepted: Instant, passed: Instant) {
        if self.0.try_send((generation, accepted, passed)).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_all(mut file: impl Write, holds: &Receiver<Hold>) {
    let mut torn = false;
    while let Ok((generation, accepted, passed)) = holds.recv() {
        // Behind half a line that the full disk took, a new line begins.
        let begin = if torn { "\n" } else { "" };
        let line = format!("{begin}{generation} {} {}\n", accepted.as_nanos(), passed.as_nanos());
        // Written at once: the log is read after the process was killed.
        torn = file.write_all(line.as_bytes()).is_err();
        if torn {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A disk that is full for a while.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            let (kept, full) = &mut *self.0.lock().unwrap();
            if *full > 0 {
                *full -= 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            kept.extend_from_slice(octets);
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_loses_counted_lines_and_then_the_log_goes_on() {
        let disk = Disk::default();
        disk.0.lock().unwrap().1 = 2;
        let (sender, receiver) = sync_channel(10);
        let at = Instant::from_nanos;
        (1..=3).for_each(|generation| sender.send((generation, at(5), at(6))).unwrap());
        drop(sender);
        let before = dropped();
        write_all(disk.clone(), &receiver);
        assert_eq!(dropped() - before, 2);
        assert_eq!(disk.0.lock().unwrap().0, b"\n3 5 6\n");
    }
}
