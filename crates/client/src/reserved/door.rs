//! Who waits for the channels that others reserve to a socket.
//!
//! Taking a channel needs answers of the node, and a program that asks for a message must not wait for them:
//! so a thread does that, and lays each channel where the socket finds it. From then on the socket reads the
//! channel's ring itself. Units come on boards of their own, one for each channel, and nobody can sleep on
//! several: so each channel has a thread too, which rings the socket's bell when its board has changed.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rota_shm::control::ControlName;
use rota_shm::{BoardView, ChannelState};
use rota_units::{Instant, Span};

use crate::llc::LlcError;
use crate::node::Node;
use crate::now;
use crate::receive::{AcceptError, Listener, RecvChannel};
use crate::session::Session;

/// A listener takes one channel. So many stand ready, for stations that reserve at the same time.
const AHEAD: usize = 4;
/// Messages of a channel that may wait for the program, as far as the node keeps units.
const BUFFERS: u16 = 64;
/// A thread whose channel was closed under it has seen so after this at the latest.
const LOOK_UP: Span = Span::from_millis(200);
/// How soon a node that gave no more listeners is asked again,
const REFILL_AGAIN: Span = Span::from_millis(200);
/// and how soon at the latest: each time that it gives none doubles the pause.
const REFILL_AGAIN_MAX: Span = Span::from_millis(2_000);
/// What the end of the door's own pipe is called,
const LEAVE: u64 = 0;
/// and the socket's connection to its node.
const NODE: u64 = 1;

/// The bell of one socket's channels.
pub(super) struct Bell {
    rings: UnixStream,
    hears: UnixStream,
    /// It has been rung since it was heard: once more would tell nothing new.
    rung: AtomicBool,
    /// The socket is closed.
    is_over: AtomicBool,
}

impl Bell {
    pub(super) fn new() -> std::io::Result<Self> {
        let (rings, hears) = UnixStream::pair()?;
        for end in [&rings, &hears] {
            end.set_nonblocking(true)?;
        }
        Ok(Self { rings, hears, rung: AtomicBool::new(false), is_over: AtomicBool::new(false) })
    }

    pub(super) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // It does not block, and where it is full there is something to hear already.
            let _ = (&self.rings).write(&[1]);
        }
    }

    /// Takes what is on the bell. A later ring is heard again.
    pub(super) fn hear(&self) {
        let mut away = [0; 64];
        while (&self.hears).read(&mut away).is_ok_and(|octets| octets > 0) {}
        self.rung.swap(false, Ordering::AcqRel);
    }

    /// Nobody needs to ring any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hears.as_fd()
    }
}

/// Where channels lie until the socket takes them.
#[derive(Default)]
struct Doorstep {
    is_empty_no_more: AtomicBool,
    all: Mutex<Vec<RecvChannel>>,
}

/// The thread that takes channels.
pub(super) struct Door {
    doorstep: Arc<Doorstep>,
    /// The thread ends when this one does; its own end of the pipe is the last thing that it drops.
    leave: UnixStream,
    thread: JoinHandle<()>,
}

impl Door {
    /// Has as many listeners ready as the node gives, one at least, and a thread behind them. `node` is the
    /// socket's connection to its node, which is only asked whether it stands.
    pub(super) fn open(
        control: &ControlName,
        service: u16,
        bell: &Arc<Bell>,
        node: BorrowedFd<'_>,
    ) -> Result<Self, LlcError> {
        let (leave, left) = UnixStream::pair().map_err(LlcError::System)?;
        let all = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system)?;
        watch(&all, left.as_fd(), LEAVE)?;
        // No event is asked for, and the connection's end comes unasked.
        all.add(node, EpollEvent::new(EpollFlags::empty(), NODE)).map_err(system)?;
        let doorstep = Arc::new(Doorstep::default());
        let (control, bell) = (control.clone(), bell.clone());
        let mut keeper = Keeper {
            control,
            service,
            bell,
            doorstep: doorstep.clone(),
            all,
            ends: Vec::new(),
            next: NODE,
            due: Instant::ZERO,
            pause: REFILL_AGAIN,
            left,
        };
        let first = keeper.refill();
        if keeper.ends.is_empty() {
            first?;
        }
        let thread = Builder::new().name(format!("rota-door-{service:x}"));
        let thread = thread.spawn(move || keeper.keep()).map_err(LlcError::System)?;
        Ok(Self { doorstep, leave, thread })
    }

    /// The channels that have come since; no lock is taken when there are none.
    pub(super) fn take(&self) -> Vec<RecvChannel> {
        if !self.doorstep.is_empty_no_more.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.doorstep.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells the thread to end, and waits for nothing.
    pub(super) fn leave(&self) {
        let _ = self.leave.shutdown(Shutdown::Write);
    }

    /// Waits until then for the thread's end. Its listeners end with it, so that the next one who opens the
    /// socket has its service alone. One that waits for an answer of a silent node ends later, by itself.
    pub(super) fn close(self, until: Instant) {
        self.leave();
        if is_ended(&self.leave, until.since(now())) {
            let _ = self.thread.join();
        }
    }
}

/// Whether the other end of a pipe is closed, or is in time.
fn is_ended(pipe: &UnixStream, timeout: Span) -> bool {
    let millis = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
    let mut watched = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    poll(&mut watched, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)).is_ok_and(|ready| ready > 0)
}

/// A connection that waits for a channel, or that had one come.
enum End {
    Waits(Listener),
    /// Nobody reads it but the door, which throws away what the node tells there: the board says as much.
    Came(Weak<Session>),
}

/// What the door's thread has.
struct Keeper {
    control: ControlName,
    service: u16,
    bell: Arc<Bell>,
    doorstep: Arc<Doorstep>,
    all: Epoll,
    ends: Vec<(u64, End)>,
    next: u64,
    /// Missing listeners are not asked for before this,
    due: Instant,
    /// and so long after it where there are still none.
    pause: Span,
    /// Readable when the socket closes. The last of all, so that whoever sees its end knows of the others'.
    left: UnixStream,
}

impl Keeper {
    fn keep(mut self) {
        while !is_ended(&self.left, Span::ZERO) {
            let mut wait = EpollTimeout::NONE;
            if self.waiting() < AHEAD {
                let left = self.due.since(now());
                if left == Span::ZERO {
                    // A channel that could not be had is asked for again, but not in a hurry.
                    let _ = self.refill();
                    continue;
                }
                wait = EpollTimeout::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(wait);
            }
            let mut events = [EpollEvent::empty(); 8];
            // A signal cuts it short, and then nothing is ready.
            let count = self.all.wait(&mut events, wait).unwrap_or(0);
            for event in &events[..count] {
                match event.data() {
                    // A socket does not outlive its node. Were its door to listen at the next one, it would
                    // take the channels of whoever opens the socket there.
                    LEAVE | NODE => return,
                    name => self.hear(name),
                }
            }
        }
    }

    fn waiting(&self) -> usize {
        self.ends.iter().filter(|(_, end)| matches!(end, End::Waits(_))).count()
    }

    fn refill(&mut self) -> Result<(), LlcError> {
        let filled = self.fill();
        match filled {
            Ok(()) => self.pause = REFILL_AGAIN,
            Err(_) => {
                self.due = now() + self.pause;
                self.pause = (self.pause + self.pause).min(REFILL_AGAIN_MAX);
            }
        }
        filled
    }

    fn fill(&mut self) -> Result<(), LlcError> {
        self.ends.retain(|(_, end)| !matches!(end, End::Came(session) if session.strong_count() == 0));
        // Each may take as long as a node may that answers late; a socket that was closed meanwhile is first.
        while self.waiting() < AHEAD && !is_ended(&self.left, Span::ZERO) {
            let listener = Node::connect(&self.control)?.listen(self.service, None, BUFFERS)?;
            self.next += 1;
            watch(&self.all, listener.as_fd(), self.next)?;
            self.ends.push((self.next, End::Waits(listener)));
        }
        Ok(())
    }

    fn hear(&mut self, name: u64) {
        let Some(at) = self.ends.iter().position(|(of, _)| *of == name) else { return };
        match &mut self.ends[at].1 {
            End::Waits(listener) => match listener.accept(Span::ZERO) {
                Ok(channel) => {
                    self.ends[at].1 = End::Came(channel.session());
                    self.lay_down(channel);
                }
                Err(AcceptError::TimedOut { .. }) => {}
                // A channel whose memory cannot be used: its sender hears of it when the connection ends.
                // Of the node's end the socket tells.
                Err(_) => drop(self.ends.swap_remove(at)),
            },
            End::Came(session) => {
                let is_over = session.upgrade().is_none_or(|session| !session.discard());
                if is_over {
                    // It lives on with its channel; but what is readable for ever must not be watched.
                    if let End::Came(session) = self.ends.swap_remove(at).1
                        && let Some(session) = session.upgrade()
                    {
                        let _ = self.all.delete(session.as_fd());
                    }
                }
            }
        }
    }

    fn lay_down(&mut self, channel: RecvChannel) {
        self.doorstep.all.lock().unwrap_or_else(PoisonError::into_inner).push(channel);
        self.doorstep.is_empty_no_more.store(true, Ordering::Release);
        self.bell.ring();
    }
}

/// Rings when the board has changed, until the channel or the socket ends.
pub(super) fn ring_for(board: &BoardView, bell: &Bell) {
    let mut seen = board.event();
    bell.ring();
    while !bell.is_over.load(Ordering::Relaxed) {
        if matches!(board.state(), ChannelState::Closed(_)) {
            return bell.ring();
        }
        board.wait(seen, LOOK_UP);
        // Taken before it rings: what comes after it rings again.
        let now = board.event();
        if now != seen {
            seen = now;
            bell.ring();
        }
    }
}

pub(super) fn system(error: nix::errno::Errno) -> LlcError {
    LlcError::System(error.into())
}

pub(super) fn watch(all: &Epoll, what: BorrowedFd<'_>, mark: u64) -> Result<(), LlcError> {
    all.add(what, EpollEvent::new(EpollFlags::EPOLLIN, mark)).map_err(system)
}
