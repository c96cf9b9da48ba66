//! A handle: a number that is a descriptor, and what stands behind it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::EventFd;
use rota::{ControlName, Instant, Span, now};

use super::listening::{Listening, Opening, locked};
use super::no::No;
use super::open::Open;
use super::ready::{Ready, bell};

/// `ROTA_VC_RELIABLE`, `ROTA_VC_BEST_EFFORT` and `ROTA_VC_GUARANTEED`.
pub const ALL_CLASSES: u8 = 7;

/// What `rota_vc_set` sets.
#[derive(Clone, Copy)]
pub struct Settings {
    pub is_nonblocking: bool,
    pub is_simplex: bool,
    pub linger_ms: u64,
    /// 0: for ever.
    pub timeout_ms: u64,
    pub window: u32,
    pub message_max: usize,
    /// Of a listener: the classes of circuits that it takes, one bit each.
    pub takes: u8,
    /// Of a listener: what the programs hear whose circuits it does not take.
    pub reason: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let (linger_ms, timeout_ms, window, message_max) = (20_000, 0, 256, 64 << 20);
        let (is_nonblocking, is_simplex, takes, reason) = (false, false, ALL_CLASSES, 0);
        Self { is_nonblocking, is_simplex, linger_ms, timeout_ms, window, message_max, takes, reason }
    }
}

/// What a handle is by now.
pub enum Kind {
    New { service: Option<u32> },
    Listening(Box<Listening>),
    Opening(Opening),
    Open(Box<Open>),
    Failed(No),
}

pub struct State {
    pub kind: Kind,
    pub control: ControlName,
    pub settings: Settings,
    /// What the descriptors say.
    says: (bool, bool),
}

impl State {
    /// The reason of the other program, where that did not take the circuit.
    pub fn declined(&self) -> Option<u32> {
        match &self.kind {
            Kind::Open(open) => open.declined(),
            Kind::Failed(no) => no.reason,
            _ => None,
        }
    }

    /// The circuit, if it is open.
    pub fn open(&mut self) -> Result<&mut Open, No> {
        match &mut self.kind {
            Kind::Open(open) => Ok(open),
            Kind::Opening(_) => Err(No::idle()),
            Kind::Failed(no) => Err(no.clone()),
            Kind::New { .. } => {
                Err(No::fixed(Errno::ENOTCONN, "this handle has no circuit: connect it first"))
            }
            Kind::Listening(_) => {
                Err(No::fixed(Errno::ENOTCONN, "this handle listens: accept gives circuits"))
            }
        }
    }
}

/// The two directions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    In,
    Out,
}

pub struct Handle {
    input: Mutex<Ready>,
    output: Ready,
    number: RawFd,
    pub bell: Arc<EventFd>,
    state: Mutex<State>,
    is_closed: AtomicBool,
    /// A thread has a message in hand that it sends: others wait for its end.
    sends: Mutex<bool>,
    sent: Condvar,
}

/// The right to send, of one thread: it goes back when it is dropped.
pub struct Turn<'a>(&'a Handle);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *locked(&self.0.sends) = false;
        self.0.sent.notify_one();
    }
}

static TABLE: Mutex<BTreeMap<RawFd, Arc<Handle>>> = Mutex::new(BTreeMap::new());

/// The handle of that number.
pub fn find(number: i32) -> Result<Arc<Handle>, No> {
    let handle = locked(&TABLE).get(&number).cloned().ok_or_else(|| No::no_handle(number))?;
    if locked(&handle.input).is_mine() {
        return Ok(handle);
    }
    handle.abandon();
    Err(No::no_handle(number))
}

impl Handle {
    /// Makes a handle and enters it into the table: its number.
    pub fn make(control: ControlName, kind: Kind, settings: Settings) -> Result<RawFd, No> {
        let bell = Arc::new(bell()?);
        let (input, output) = (Ready::new(&bell)?, Ready::new(&bell)?);
        let state = State { kind, control, settings, says: (false, false) };
        let number = input.number();
        let (input, state, is_closed) = (Mutex::new(input), Mutex::new(state), AtomicBool::new(false));
        let (sends, sent) = (Mutex::new(false), Condvar::new());
        let handle = Arc::new(Self { input, output, number, bell, state, is_closed, sends, sent });
        handle.watch(&mut locked(&handle.state))?;
        handle.settle(&mut locked(&handle.state));
        let stale = locked(&TABLE).insert(number, handle);
        if let Some(stale) = stale {
            locked(&stale.input).let_go();
            stale.wake();
        }
        Ok(number)
    }

    /// Takes it out of the table: no call finds it any more.
    pub fn remove(&self) {
        let removed = locked(&TABLE).remove(&self.number);
        self.wake();
        drop(removed);
    }

    /// The program has closed the descriptor by close(2): the circuit ends without it.
    fn abandon(&self) {
        let mut table = locked(&TABLE);
        if table.get(&self.number).is_some_and(|found| std::ptr::eq(&**found, self)) {
            table.remove(&self.number);
        }
        locked(&self.input).let_go();
        self.wake();
    }

    fn wake(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let _ = self.bell.write(1);
        self.sent.notify_all();
    }

    /// No call finds it any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Makes the bell silent, but for the ring that says that this handle is closed.
    fn hush(&self) {
        let _ = self.bell.read();
        if self.is_closed() {
            let _ = self.bell.write(1);
        }
    }

    pub fn descriptor(&self, side: Side) -> RawFd {
        if side == Side::In { self.number } else { self.output.number() }
    }

    /// The descriptors of the circuit itself join those of the handle.
    pub fn watch(&self, state: &mut State) -> Result<(), No> {
        let input = locked(&self.input);
        match &state.kind {
            Kind::Listening(listening) => input.watch(listening.listener.as_fd())?,
            Kind::Open(open) => {
                if let Some(receiver) = &open.receiver {
                    input.watch(receiver.as_fd())?;
                }
                if let Some(sender) = &open.sender {
                    self.output.watch(sender.as_fd())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes what threads and the node have done for it.
    fn advance(&self, state: &mut State) {
        match &mut state.kind {
            Kind::Listening(listening) => {
                self.hush();
                self.pump(listening);
            }
            Kind::Opening(opening) => {
                let Some(result) = opening.take() else { return };
                // The thread has rung before the result could be taken, and rings no more.
                self.hush();
                state.kind = result.map_or_else(Kind::Failed, |open| Kind::Open(Box::new(open)));
                if let Err(no) = self.watch(state) {
                    state.kind = Kind::Failed(no);
                }
            }
            Kind::New { .. } | Kind::Open(_) | Kind::Failed(_) => {}
        }
    }

    /// Looks what there is to do, and makes the descriptors say it.
    pub fn settle(&self, state: &mut State) -> (bool, bool) {
        self.advance(state);
        let due = match &mut state.kind {
            Kind::New { .. } | Kind::Opening(_) => (false, false),
            Kind::Failed(_) => (true, true),
            Kind::Listening(listening) => (listening.is_due(), false),
            Kind::Open(open) => {
                let input = open.receiver.as_mut().map(|end| end.is_due() || end.arm());
                let output = open.sender.as_ref().is_some_and(|end| end.is_due() || end.arm());
                (input.unwrap_or(open.is_deaf) || open.has_message(), output)
            }
        };
        locked(&self.input).say(&mut state.says.0, due.0);
        self.output.say(&mut state.says.1, due.1);
        due
    }

    /// Takes circuits from the node. Each comes on another descriptor of the listener, and keeps it.
    fn pump(&self, listening: &mut Listening) {
        loop {
            let input = locked(&self.input);
            input.forget(listening.listener.as_fd());
            let took = listening.pump(&self.bell);
            let watched = input.watch(listening.listener.as_fd());
            if !took || watched.is_err() {
                return;
            }
        }
    }

    /// What is due in either direction.
    pub fn due(&self) -> (bool, bool) {
        self.settle(&mut locked(&self.state))
    }

    /// Does something that never waits.
    pub fn now<T>(&self, mut step: impl FnMut(&mut State) -> Result<T, No>) -> Result<T, No> {
        let mut state = locked(&self.state);
        if self.is_closed() {
            return Err(No::no_handle(self.number));
        }
        self.advance(&mut state);
        let done = step(&mut state);
        self.settle(&mut state);
        done
    }

    /// Does a step again and again until it is done, the time is over, or (not `may_wait`) at once.
    pub fn until<T>(
        &self,
        side: Side,
        may_wait: bool,
        mut step: impl FnMut(&mut State) -> Result<T, No>,
    ) -> Result<T, No> {
        let patience = self.patience(may_wait);
        loop {
            match self.now(&mut step) {
                Err(no) if no.is_idle() && patience.waits => {}
                other => return other,
            }
            self.wait(side, patience.slice()?);
        }
    }

    fn patience(&self, may_wait: bool) -> Patience {
        let settings = locked(&self.state).settings;
        let waits = may_wait && !settings.is_nonblocking;
        let limit = (settings.timeout_ms > 0).then(|| Span::from_millis(settings.timeout_ms));
        Patience { waits, limit: limit.map(|limit| now() + limit) }
    }

    /// The right to send, until it is dropped: messages of several threads never mix.
    pub fn turn(&self, may_wait: bool) -> Result<Turn<'_>, No> {
        let patience = self.patience(may_wait);
        let mut sends = locked(&self.sends);
        while *sends {
            if self.is_closed() {
                return Err(No::no_handle(self.number));
            }
            if !patience.waits {
                return Err(No::idle());
            }
            let slice = Duration::from_nanos(patience.slice()?.as_nanos());
            let waited = self.sent.wait_timeout(sends, slice);
            sends = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *sends = true;
        Ok(Turn(self))
    }

    /// Waits until there may be something to do.
    pub fn wait(&self, side: Side, time: Span) {
        // SAFETY: this handle owns the descriptor, and lives during the call. (If the program has closed it
        // itself, the wait is for another file, and ends after a slice.)
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.descriptor(side)) };
        let mut polled = [PollFd::new(descriptor, PollFlags::POLLIN)];
        let time = u16::try_from((time.as_nanos() / 1_000_000).max(1)).unwrap_or(u16::MAX);
        let _ = nix::poll::poll(&mut polled, PollTimeout::from(time));
    }
}

/// How long a call may wait.
struct Patience {
    waits: bool,
    /// None: for ever.
    limit: Option<Instant>,
}

impl Patience {
    /// The next wait.
    fn slice(&self) -> Result<Span, No> {
        let left = self.limit.map(|limit| limit.since(now()));
        if left == Some(Span::ZERO) {
            return Err(No::fixed(Errno::ETIMEDOUT, "nothing came of it in the time of ROTA_VC_TIMEOUT_MS"));
        }
        Ok(left.unwrap_or(SLICE).min(SLICE))
    }
}

/// A wait is looked after so often, whatever the descriptors say.
const SLICE: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    fn make() -> Arc<Handle> {
        let number = Handle::make(ControlName::default(), Kind::New { service: None }, Settings::default());
        find(number.unwrap_or_else(|no| panic!("{}", no.sentence))).unwrap_or_else(|_| panic!("it is there"))
    }

    fn errno<T>(done: Result<T, No>) -> Option<Errno> {
        done.err().map(|no| no.errno)
    }

    #[test]
    fn the_bell_of_a_handle_is_silent_once_its_thread_has_opened() {
        for _ in 0..200 {
            let handle = make();
            let bell = Arc::clone(&handle.bell);
            let opening = Opening::by(&bell, || Err(No::fixed(Errno::ECONNREFUSED, "nobody is there")));
            drop(bell);
            locked(&handle.state).kind = Kind::Opening(opening);
            while errno(handle.now(|state| state.open().map(|_| ()))) == Some(Errno::EAGAIN) {}
            assert!(matches!(locked(&handle.state).kind, Kind::Failed(_)));
            // The thread has its own until it is over.
            while Arc::strong_count(&handle.bell) > 1 {
                std::thread::yield_now();
            }
            assert_eq!(handle.bell.read(), Err(Errno::EAGAIN), "it rang behind its result");
            handle.remove();
        }
    }

    #[test]
    fn a_handle_that_is_closed_wakes_who_waits_though_another_thread_looks() {
        let handle = make();
        handle.remove();
        handle.hush();
        assert_eq!(handle.bell.read(), Ok(1));
    }

    #[test]
    fn one_thread_has_the_turn_to_send() {
        let handle = make();
        let turn = handle.turn(true).ok();
        assert!(turn.is_some());
        assert_eq!(errno(handle.turn(false)), Some(Errno::EAGAIN));
        locked(&handle.state).settings.timeout_ms = 20;
        assert_eq!(errno(handle.turn(true)), Some(Errno::ETIMEDOUT));
        locked(&handle.state).settings.timeout_ms = 0;
        std::thread::scope(|threads| {
            let other = threads.spawn(|| handle.turn(true).map(|_| ()));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!other.is_finished(), "it went into the message of another thread");
            drop(turn);
            assert!(matches!(other.join(), Ok(Ok(()))));
        });
        let _turn = handle.turn(false).ok();
        std::thread::scope(|threads| {
            let other = threads.spawn(|| errno(handle.turn(true)));
            std::thread::sleep(Duration::from_millis(20));
            handle.remove();
            assert!(matches!(other.join(), Ok(Some(Errno::EBADF))));
        });
    }
}
