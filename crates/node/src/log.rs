//! The node's log: one line of text for each event, on standard error, with time and level.
//!
//! The log must not delay the node. Lines go through a queue to a thread of their own. Only that thread may
//! block: on a pipe without a reader, or on a slow disk. A line that finds the queue full is dropped and
//! counted. A line that cannot be written, because its reader is gone or the disk is full, is dropped and
//! counted too. Lines of one cause are limited: an adversary who causes many of them fills no disk.
//!
//! The data thread writes no line. The control thread and the thread that measures do.

use rota_driver::clock::now;
use rota_units::{Instant, Span};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
pub use tracing::level_filters::LevelFilter;

/// Lines that may wait for the writing thread.
const LINES_WAITING: usize = 1_024;
/// Most lines of one cause that are written within [`WINDOW`]; further ones are counted.
const LINES_OF_ONE_CAUSE: u64 = 20;
const WINDOW: Span = Span::from_millis(10_000);
/// How long the end of a node waits for its last lines.
const FLUSH: Duration = Duration::from_millis(300);

static DROPPED: AtomicU64 = AtomicU64::new(0);
static LIMITS: Mutex<Limits> = Mutex::new(Limits(BTreeMap::new()));

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Lines that were dropped since the process began, because the queue was full or a write failed.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Writes a line. `cause` names its kind: lines of one kind are limited.
pub(crate) fn say(level: Level, cause: &'static str, text: &str) {
    let verdict = LIMITS.lock().unwrap_or_else(PoisonError::into_inner).look(now(), cause);
    let Verdict::Write { left_out } = verdict else { return };
    if left_out > 0 {
        write_left_out(cause, left_out);
    }
    write_line(level, text);
}

/// Says how many lines were left out of bursts that are over.
pub(crate) fn tell_left_out() {
    let told = LIMITS.lock().unwrap_or_else(PoisonError::into_inner).over(now());
    told.into_iter().for_each(|(cause, left_out)| write_left_out(cause, left_out));
}

fn write_left_out(cause: &str, left_out: u64) {
    write_line(Level::Warn, &format!("{left_out} more lines of the kind '{cause}' were left out"));
}

fn write_line(level: Level, text: &str) {
    let text = clean(text);
    match level {
        Level::Error => tracing::error!("{text}"),
        Level::Warn => tracing::warn!("{text}"),
        Level::Info => tracing::info!("{text}"),
        Level::Debug => tracing::debug!("{text}"),
    }
}

/// A warning as a line of this log, for a process that has no log of its own.
pub fn warning(text: &str) -> String {
    let line = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&line);
    let one = tracing_subscriber::fmt().with_target(false).with_ansi(false);
    let one = one.with_writer(move || Kept(Arc::clone(&into))).finish();
    tracing::subscriber::with_default(one, || write_line(Level::Warn, text));
    let line = line.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&line).into_owned()
}

/// A line that is kept in memory.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line that others' words cannot break: names come from the wire.
fn clean(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// The number of lines recently written, for each cause.
struct Limits(BTreeMap<&'static str, Window>);

struct Window {
    from: Instant,
    written: u64,
    left_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// With how many that were left out before it.
    Write {
        left_out: u64,
    },
    LeaveOut,
}

impl Limits {
    fn look(&mut self, now: Instant, cause: &'static str) -> Verdict {
        let fresh = Window { from: now, written: 0, left_out: 0 };
        let window = self.0.entry(cause).or_insert(fresh);
        let mut left_out = 0;
        if now.since(window.from) >= WINDOW {
            left_out = window.left_out;
            *window = Window { from: now, written: 0, left_out: 0 };
        }
        if window.written == LINES_OF_ONE_CAUSE {
            window.left_out += 1;
            return Verdict::LeaveOut;
        }
        window.written += 1;
        Verdict::Write { left_out }
    }

    /// The numbers of lines left out in windows that have ended; each number is returned once.
    fn over(&mut self, now: Instant) -> Vec<(&'static str, u64)> {
        let windows = self.0.iter_mut().filter(|(_, window)| now.since(window.from) >= WINDOW);
        let ended = windows.filter(|(_, window)| window.left_out > 0).map(|(cause, window)| (*cause, window));
        ended.map(|(cause, window)| (cause, std::mem::take(&mut window.left_out))).collect()
    }
}

/// The log of this process; when dropped it waits a moment for its last lines, never for ever.
#[derive(Debug)]
pub struct Log {
    waiting: Arc<AtomicU64>,
}

impl Log {
    /// Begins to write lines of this level and graver ones to standard error. A panic of any thread becomes
    /// a line too: the hook of the standard library would block on a pipe that is not read.
    ///
    /// # Errors
    /// Standard error is closed, or no thread can be started.
    pub fn start(level: LevelFilter) -> io::Result<Self> {
        // A duplicate: other writers to standard error must not wait for a lock that this thread holds.
        let out = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let (lines, waiting) = writer(out)?;
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_target(false)
            .with_ansi(false)
            .with_writer(move || lines.clone())
            .finish();
        // The second log of a process, as in a test with two nodes, is the first one.
        if tracing::subscriber::set_global_default(subscriber).is_ok() {
            std::panic::set_hook(Box::new(|panic| {
                say(Level::Error, "panic", &format!("a thread broke down: {panic}"));
            }));
        }
        Ok(Self { waiting })
    }

    /// Logs the start, and warnings for the operator.
    pub fn started<'a>(&self, text: &str, warnings: impl Iterator<Item = &'a str>) {
        say(Level::Info, "started", text);
        for warning in warnings {
            say(Level::Warn, "started", warning);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let until = now() + Span::from_nanos(FLUSH.as_nanos() as u64);
        while self.waiting.load(Ordering::Acquire) > 0 && now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Puts lines into the queue; never blocks.
#[derive(Clone)]
struct Lines {
    queue: SyncSender<Vec<u8>>,
    waiting: Arc<AtomicU64>,
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        if self.queue.try_send(line.to_vec()).is_err() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread that writes, and the door to it.
fn writer(out: impl Write + Send + 'static) -> io::Result<(Lines, Arc<AtomicU64>)> {
    let (queue, lines) = sync_channel(LINES_WAITING);
    let waiting = Arc::new(AtomicU64::new(0));
    let written = Arc::clone(&waiting);
    std::thread::Builder::new().name("rota-log".into()).spawn(move || {
        // This thread starts before the others: a signal that it took would end the node without a farewell.
        let _ = nix::sys::signal::SigSet::all().thread_block();
        // The thread only writes to open files.
        let _ = rota_driver::confine::keep_capabilities(&[]);
        write_all(out, &lines, &written);
    })?;
    Ok((Lines { queue, waiting: Arc::clone(&waiting) }, waiting))
}

fn write_all(mut out: impl Write, lines: &Receiver<Vec<u8>>, waiting: &AtomicU64) {
    while let Ok(line) = lines.recv() {
        // A reader that is gone may be replaced, and a full disk may get room again: the thread goes on.
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn lines_of_one_cause_are_limited_and_those_of_another_are_not() {
        let mut limits = Limits(BTreeMap::new());
        let written = |limits: &mut Limits, ms, cause, lines: u64| {
            (0..lines).filter(|_| limits.look(at(ms), cause) != Verdict::LeaveOut).count() as u64
        };
        assert_eq!(written(&mut limits, 1, "refused", 100_000), LINES_OF_ONE_CAUSE);
        assert_eq!(written(&mut limits, 2, "joined", 3), 3);
        assert_eq!(written(&mut limits, 9_999, "refused", 1), 0);
        let left_out = 100_000 - LINES_OF_ONE_CAUSE + 1;
        assert_eq!(limits.look(at(10_001), "refused"), Verdict::Write { left_out });
        assert_eq!(limits.look(at(10_001), "refused"), Verdict::Write { left_out: 0 });
        // The number of lines left out is also reported once if no further line follows.
        assert_eq!(written(&mut limits, 10_002, "refused", 50), LINES_OF_ONE_CAUSE - 2);
        assert_eq!(limits.over(at(20_000)), []);
        assert_eq!(limits.over(at(20_001)), [("refused", 50 + 2 - LINES_OF_ONE_CAUSE)]);
        assert_eq!(limits.over(at(30_001)), []);
    }

    #[test]
    fn a_name_from_the_wire_cannot_break_a_line() {
        assert_eq!(clean("n1\u{1b}[2J\nforged"), "n1?[2J?forged");
    }

    #[test]
    fn a_warning_without_a_log_is_a_line_of_it() {
        let line = warning("guardian 7: node 5 has died");
        assert!(line.ends_with("Z  WARN guardian 7: node 5 has died\n"), "{line}");
        assert!(line.starts_with("20"), "with its time: {line}");
    }

    /// A reader that reads nothing.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// One whose other end is gone.
    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_never_waits_for_its_reader_and_each_lost_one_is_counted() {
        let (release, stuck) = std::sync::mpsc::channel();
        let before = dropped();
        let (mut lines, waiting) = writer(Stuck(stuck)).unwrap();
        let all = LINES_WAITING as u64 + 500;
        (0..all).for_each(|_| lines.write_all(b"line\n").unwrap());
        // One is being written, so that one more may have found room.
        assert!((499..=500).contains(&(dropped() - before)), "{}", dropped() - before);
        drop(release);
        let (mut lines, gone) = writer(Gone).unwrap();
        lines.write_all(b"line\n").unwrap();
        let until = now() + Span::from_millis(10_000);
        let busy = |waiting: &AtomicU64| waiting.load(Ordering::Acquire) > 0;
        while (busy(&waiting) || busy(&gone)) && now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!((500..=501).contains(&(dropped() - before)), "{}", dropped() - before);
        lines.write_all(b"the thread still takes lines\n").unwrap();
    }
}
