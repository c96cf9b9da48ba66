//! A program that says how it sleeps is woken for what it waits for, and for nothing else.

use rota_shm::{ClientSocket, NodeSocket, Sleep, SocketShape, Waited, open_socket, ring_bell};
use rota_units::Span;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

const LONG: Span = Span::from_millis(2_000);

fn pair() -> (NodeSocket, ClientSocket) {
    let shape = SocketShape { messages: 4, message_octets_max: 100, rx_slots: 16 };
    let mut node = NodeSocket::create(shape).unwrap();
    let files = node.descriptors().iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<_, _>>();
    let client = open_socket(files.unwrap()).unwrap();
    node.mapped().unwrap();
    (node, client)
}

/// What the node does at the end of a turn with news; whether it called the kernel.
fn tell(node: &NodeSocket, came: bool) -> bool {
    node.board.tell();
    let wakes = node.messages.asleep().is_woken(came);
    if wakes {
        node.board.wake();
    }
    wakes
}

#[test]
fn nobody_sleeps_through_news() {
    let (node, client) = pair();
    let (news, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            for number in 1..=20_000 {
                loop {
                    let seen = client.board.event();
                    if news.load(Ordering::Acquire) >= number {
                        break;
                    }
                    assert_eq!(client.sleep(Sleep::ForNews, seen, LONG), Waited::Look, "news {number}");
                }
                taken.store(number, Ordering::Release);
            }
        });
        for number in 1..=20_000 {
            news.store(number, Ordering::Release);
            tell(&node, false);
            while taken.load(Ordering::Acquire) < number {
                // Sometimes before the other is asleep, sometimes after.
                if number % 2 == 0 {
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
                let over = sleeper.is_finished();
                let took = taken.load(Ordering::Acquire) >= number;
                assert!(took || !over, "the sleeper slept through news {number}");
            }
        }
    });
}

#[test]
fn who_waits_for_messages_is_not_woken_by_what_became_of_its_own() {
    let (node, client) = pair();
    assert!(!tell(&node, true), "nobody sleeps");
    std::thread::scope(|scope| {
        let asleep = |how| {
            while node.messages.asleep() != how {
                std::thread::yield_now();
            }
            // From the word to the sleep itself.
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        let sleeper = scope.spawn(|| client.sleep(Sleep::ForMessages, client.board.event(), LONG));
        asleep(Sleep::ForMessages);
        assert!(!tell(&node, false));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!sleeper.is_finished());
        assert!(tell(&node, true));
        assert_eq!(sleeper.join().unwrap(), Waited::Look);
        let sleeper = scope.spawn(|| client.sleep(Sleep::ForNews, client.board.event(), LONG));
        asleep(Sleep::ForNews);
        assert!(tell(&node, false));
        assert_eq!(sleeper.join().unwrap(), Waited::Look);
        assert_eq!(node.messages.asleep(), Sleep::Awake);
    });
}

/// A program that asked for an outcome used to take the sign of a message that had come meanwhile.
#[test]
fn what_rings_after_the_bell_was_counted_stays_to_be_polled() {
    let (node, client) = pair();
    let readable = || {
        let mut octet = [0];
        let peek = nix::sys::socket::MsgFlags::MSG_DONTWAIT | nix::sys::socket::MsgFlags::MSG_PEEK;
        nix::sys::socket::recv(client.bell.as_fd().as_raw_fd(), &mut octet, peek).is_ok()
    };
    assert_eq!(client.arm_bell(), 0);
    ring_bell(&node.bell);
    let octets = client.arm_bell();
    assert_eq!((octets, node.messages.armed()), (1, 2));
    ring_bell(&node.bell);
    client.bell.hush(octets);
    assert!(readable(), "the second octet came behind the count");
    let octets = client.arm_bell();
    client.bell.hush(octets);
    assert!(!readable());
}

/// The kernel says that this thread of ours sleeps.
fn sleeps(thread: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S'))
}

/// A program that slept with 10,000 threads had the node wake them all, for 32 ms of one turn.
#[test]
fn a_program_that_sleeps_with_many_threads_has_two_of_them_woken() {
    const THREADS: usize = 24;
    let (node, client) = pair();
    let threads = [const { AtomicU64::new(0) }; THREADS];
    let (woken, mut most) = (AtomicU64::new(0), 0);
    let seen = client.board.event();
    std::thread::scope(|scope| {
        for thread in &threads {
            scope.spawn(|| {
                thread.store(nix::unistd::gettid().as_raw().unsigned_abs().into(), Ordering::SeqCst);
                client.board.wait(seen, Span::from_millis(60_000));
                woken.fetch_add(1, Ordering::SeqCst);
            });
        }
        let all_sleep = || threads.iter().map(|thread| thread.load(Ordering::SeqCst)).all(sleeps);
        while !all_sleep() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        while woken.load(Ordering::SeqCst) < THREADS as u64 {
            let before = woken.load(Ordering::SeqCst);
            node.board.notify();
            std::thread::sleep(std::time::Duration::from_millis(20));
            most = most.max(woken.load(Ordering::SeqCst) - before);
        }
    });
    // Of two that one call wakes, one may count after the next look.
    assert!((1..=3).contains(&most), "{most} in a turn");
}
