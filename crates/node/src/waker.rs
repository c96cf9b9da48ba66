//! Programs are woken: by the data thread while that is cheap, by a thread of the normal class otherwise.
//!
//! The cost of a wake-up depends on the program that is woken, and on others of its user. A program may watch
//! a socket's bell with 150,000 epoll instances, each of which the kernel visits whenever the bell rings; a
//! futex shares the kernel's lists with those of other processes. So the data thread rings no bell, and wakes
//! sleepers within the budget of a turn ([`Wakes`]). The rest it leaves as flags, one of each kind for a
//! channel or a socket, and a thread of the node's does the work: what happens again meanwhile is done once.
//!
//! All wake-ups by that thread would be simpler, but a sleeping program would wait for two changes of threads
//! instead of one, the first of them behind whatever else runs in the normal class, also where the program
//! itself has a real-time priority.

use crate::privileges::Privileges;
use nix::sys::eventfd::{EfdFlags, EventFd};
use rota_driver::clock::{now, thread_time};
use rota_driver::poller::{Poller, Trigger};
use rota_driver::realtime::stay_off;
use rota_shm::{Board, ring_bell};
use rota_units::{Instant, Span};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Scope;

/// The time for the wake-ups of a turn on the data thread, before one that takes longer; each takes a few
/// microseconds.
const WAKES_A_TURN: Span = Span::from_micros(100);
/// Once they took longer, the other thread does all of them for this time.
const REST: Span = Span::from_millis(100);
/// A bell whose ringing takes more of a processor's time waits for all others.
const SLOW: Span = Span::from_micros(500);
/// After such a bell none of its kind is rung for so many times as long: the kernel visits its watchers with
/// interrupts off, and programs that share that processor stand still meanwhile.
const PAUSES: u64 = 99;

/// The board and the bell on which the programs of a channel or a socket sleep.
pub(crate) struct Sleeper {
    board: Board,
    bell: Option<OwnedFd>,
    wake: AtomicBool,
    ring: AtomicBool,
    /// The processor's time that the last ringing took, in nanoseconds.
    took: AtomicU64,
    waker: Arc<Shared>,
}

impl Sleeper {
    /// Wakes the sleepers of the board, by the other thread.
    fn wake_later(&self) {
        self.wake.store(true, Ordering::SeqCst);
        self.waker.rouse();
    }

    /// Rings the bell, by the other thread.
    pub(crate) fn ring(&self) {
        self.ring.store(true, Ordering::SeqCst);
        self.waker.rouse();
    }

    /// Rings the bell of a channel, if it has one and its program has asked for it since `seen`.
    pub(crate) fn ring_if_armed(&self, seen: &mut u64, armed: impl FnOnce() -> u64) {
        if self.bell.is_some() {
            let armed = armed();
            if std::mem::replace(seen, armed) != armed {
                self.ring();
            }
        }
    }

    fn is_due(&self) -> bool {
        self.wake.load(Ordering::SeqCst) || self.ring.load(Ordering::SeqCst)
    }

    /// All that is due is a bell that takes long to ring.
    fn waits_for_others(&self) -> bool {
        self.is_slow() && !self.wake.load(Ordering::SeqCst)
    }

    fn is_slow(&self) -> bool {
        self.took.load(Ordering::Relaxed) > SLOW.as_nanos()
    }

    fn wake_if_due(&self) {
        if self.wake.swap(false, Ordering::SeqCst) {
            self.board.wake();
        }
    }

    /// Returns what it took, if there was something to do.
    fn ring_if_due(&self) -> Option<Span> {
        let bell = self.bell.as_ref().filter(|_| self.ring.swap(false, Ordering::SeqCst))?;
        let begin = thread_time();
        ring_bell(bell);
        let took = thread_time().minus(begin);
        self.took.store(took.as_nanos(), Ordering::Relaxed);
        Some(took)
    }
}

/// The wake-ups that the data thread does itself.
#[derive(Debug)]
pub(crate) struct Wakes {
    left: Span,
    /// Until then it does none.
    rests: Instant,
}

impl Default for Wakes {
    fn default() -> Self {
        Self { left: WAKES_A_TURN, rests: Instant::ZERO }
    }
}

impl Wakes {
    pub(crate) fn begin_turn(&mut self, at: Instant) {
        self.left = if at < self.rests { Span::ZERO } else { WAKES_A_TURN };
    }

    /// The board has changed: wakes its sleepers.
    pub(crate) fn notify(&mut self, sleeper: &Sleeper) {
        sleeper.board.tell();
        self.wake(sleeper);
    }

    /// The same for a board that has told of its change already.
    pub(crate) fn wake(&mut self, sleeper: &Sleeper) {
        if self.left == Span::ZERO {
            return sleeper.wake_later();
        }
        let begin = now();
        sleeper.board.wake();
        self.took(begin, now());
    }

    fn took(&mut self, begin: Instant, end: Instant) {
        self.left = self.left.minus(end.since(begin));
        if self.left == Span::ZERO {
            self.rests = end + REST;
        }
    }
}

struct Shared {
    /// Nobody but the other thread can wait for it: it costs what one sleeping thread costs.
    rouse: EventFd,
    /// It sleeps, or is about to.
    sleeps: AtomicBool,
    over: AtomicBool,
    /// Of the control thread and the waking one; the data thread has no part in it.
    sleepers: Mutex<Vec<Weak<Sleeper>>>,
}

impl Shared {
    fn rouse(&self) {
        if self.sleeps.swap(false, Ordering::SeqCst) {
            let _ = self.rouse.write(1);
        }
    }
}

/// The other thread, from outside.
#[derive(Clone)]
pub(crate) struct Waker(Arc<Shared>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let (sleeps, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let sleepers = Mutex::default();
        Ok(Self(Arc::new(Shared { rouse: EventFd::from_flags(flags)?, sleeps, over, sleepers })))
    }

    /// For a channel's or a socket's memory. Its bell rings as long as this lives.
    pub(crate) fn sleeper(&self, board: Board, bell: Option<OwnedFd>) -> Arc<Sleeper> {
        let (wake, ring, took) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        let sleeper = Arc::new(Sleeper { board, bell, wake, ring, took, waker: Arc::clone(&self.0) });
        let mut all = self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&sleeper));
        sleeper
    }

    /// Starts the thread, on other CPUs than the data thread's, if it is bound to one and there are others.
    pub(crate) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        privileges: &'scope Privileges,
        apart: Option<usize>,
    ) -> io::Result<Until> {
        let until = self.until_dropped();
        std::thread::Builder::new().name("rota-waker".into()).spawn_scoped(scope, move || {
            privileges.helper_begins();
            if let Some(cpu) = apart {
                stay_off(cpu);
            }
            self.run();
        })?;
        Ok(until)
    }

    /// The thread ends once this is dropped.
    fn until_dropped(&self) -> Until {
        Until(Arc::clone(&self.0))
    }

    /// The thread. Without a poller it only waits a little between two looks.
    fn run(&self) {
        let mut poller = Poller::new(1).ok();
        let watched = poller.as_ref().map(|poller| poller.add(self.0.rouse.as_fd(), 0, Trigger::Edge));
        poller = poller.filter(|_| matches!(watched, Some(Ok(()))));
        let (mut due, mut slow_from) = (Vec::new(), Instant::ZERO);
        while !self.0.over.load(Ordering::SeqCst) {
            // A flag that is set from here on rouses.
            self.0.sleeps.store(true, Ordering::SeqCst);
            self.look(&mut due);
            if due.iter().all(|sleeper| sleeper.waits_for_others()) {
                let again = if due.is_empty() { Instant::FAR } else { slow_from };
                sleep_until(poller.as_mut(), again);
                self.look(&mut due);
            }
            self.0.sleeps.store(false, Ordering::SeqCst);
            slow_from = work(&mut due, slow_from);
        }
    }

    fn look(&self, due: &mut Vec<Arc<Sleeper>>) {
        due.clear();
        let all = self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        due.extend(all.iter().filter_map(Weak::upgrade).filter(|sleeper| sleeper.is_due()));
    }
}

fn sleep_until(poller: Option<&mut Poller>, again: Instant) {
    if poller.is_none_or(|poller| poller.wait(again).is_err()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Does what is due, the quick bells first, and no slow one before `slow_from`. Returns from when on the next
/// slow one may ring.
fn work(due: &mut Vec<Arc<Sleeper>>, mut slow_from: Instant) -> Instant {
    due.sort_by_key(|sleeper| sleeper.took.load(Ordering::Relaxed));
    for sleeper in due.drain(..) {
        sleeper.wake_if_due();
        if (!sleeper.is_slow() || now() >= slow_from)
            && let Some(took) = sleeper.ring_if_due()
            && took > SLOW
        {
            slow_from = now() + took * PAUSES;
        }
    }
    slow_from
}

/// See [`Waker::until_dropped`].
pub(crate) struct Until(Arc<Shared>);

impl Drop for Until {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
        let _ = self.0.rouse.write(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_shm::{ClientSocket, NodeSocket, SocketShape, open_socket};
    use std::os::fd::BorrowedFd;

    /// A socket, and its program's side.
    fn socket(waker: &Waker) -> (Arc<Sleeper>, ClientSocket) {
        let shape = SocketShape { messages: 4, message_octets_max: 100, rx_slots: 16 };
        let node = NodeSocket::create(shape).expect("memory");
        let files = node.descriptors().iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<_, _>>();
        let client = open_socket(files.expect("copies")).expect("the client's side");
        (waker.sleeper(node.board, Some(node.bell)), client)
    }

    /// Octets on the bell.
    fn rung(client: &ClientSocket) -> usize {
        client.arm_bell()
    }

    fn step(waker: &Waker, slow_from: Instant) -> Instant {
        let mut due = Vec::new();
        waker.look(&mut due);
        work(&mut due, slow_from)
    }

    fn waker() -> Waker {
        Waker::new().expect("an eventfd")
    }

    /// A bell that 150,000 epoll instances watched cost the data thread each of them.
    #[test]
    fn the_data_thread_rings_no_bell_and_the_waker_rings_it_once() {
        let waker = waker();
        let (sleeper, client) = socket(&waker);
        (0..5).for_each(|_| sleeper.ring());
        assert_eq!(rung(&client), 0, "the turn that rings it calls no kernel");
        step(&waker, Instant::ZERO);
        step(&waker, Instant::ZERO);
        assert_eq!(rung(&client), 1, "once for all of them");
    }

    #[test]
    fn a_slow_bell_waits_for_the_others_and_takes_a_hundredth_of_a_processor() {
        let waker = waker();
        let ([slow, slower, quick], clients): ([_; 3], [_; 3]) = {
            let [a, b, c] = [(); 3].map(|()| socket(&waker));
            ([a.0, b.0, c.0], [a.1, b.1, c.1])
        };
        let set = |sleeper: &Sleeper, ms: u64| sleeper.took.store(ms * 1_000_000, Ordering::Relaxed);
        set(&slow, 10);
        set(&slower, 20);
        [&slow, &slower, &quick].into_iter().for_each(|sleeper| sleeper.ring());
        let later = now() + Span::from_millis(60_000);
        assert_eq!(step(&waker, later), later);
        assert_eq!(clients.each_ref().map(rung), [0, 0, 1]);
        step(&waker, Instant::ZERO);
        assert_eq!(clients.each_ref().map(rung), [1, 1, 1], "neither was slow this time");
        assert!(!slow.is_slow() && !slower.is_slow());
    }

    #[test]
    fn the_wakes_of_a_turn_take_their_time_and_no_more() {
        let (waker, at) = (waker(), now());
        let (sleeper, _client) = socket(&waker);
        let mut wakes = Wakes::default();
        wakes.took(at, at + Span::from_micros(99));
        wakes.wake(&sleeper);
        assert!(!sleeper.is_due(), "there was time left");
        wakes.begin_turn(at);
        // One wake behind a list of other processes' waiters.
        wakes.took(at, at + Span::from_micros(300));
        wakes.notify(&sleeper);
        assert!(sleeper.is_due(), "the other thread does it");
        step(&waker, Instant::ZERO);
        assert!(!sleeper.is_due());
        wakes.begin_turn(at + Span::from_millis(99));
        wakes.wake(&sleeper);
        assert!(sleeper.is_due(), "and those of the turns after it");
        wakes.begin_turn(at + Span::from_millis(101));
        assert_eq!(wakes.left, WAKES_A_TURN);
    }

    /// Everything at once: 2,000 rings and wakes, each of which is answered.
    #[test]
    fn no_ring_and_no_wake_is_lost_between_the_threads() {
        let waker = waker();
        let (sleeper, client) = socket(&waker);
        let mut spent = Wakes { left: Span::ZERO, rests: Instant::FAR };
        std::thread::scope(|scope| {
            let awake = waker.until_dropped();
            scope.spawn(|| waker.run());
            for _ in 0..2_000 {
                let seen = client.board.event();
                spent.notify(&sleeper);
                assert_ne!(client.board.event(), seen);
                sleeper.ring();
                let until = now() + Span::from_millis(20_000);
                while rung(&client) == 0 || sleeper.is_due() {
                    assert!(now() < until, "a bell that nobody rings");
                    std::hint::spin_loop();
                }
                client.bell.hush(rung(&client));
            }
            drop(awake);
        });
    }

    #[test]
    fn memory_that_is_let_go_is_the_wakers_no_more() {
        let waker = waker();
        let (first, _) = socket(&waker);
        let gone = Arc::downgrade(&first);
        drop(first);
        let (_second, _) = socket(&waker);
        assert_eq!(gone.strong_count(), 0);
        assert_eq!(waker.0.sleepers.lock().expect("whole").len(), 1);
    }
}
