//! A program that says how it sleeps is woken for what it waits for, and for nothing else.

use rota_shm::{ClientSocket, NodeSocket, Sleep, SocketShape, Waited, open_socket, ring_bell};
use rota_units::Span;
use std::os::fd::BorrowedFd;
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
        nix::sys::socket::recv(std::os::fd::AsRawFd::as_raw_fd(&client.bell()), &mut octet, peek).is_ok()
    };
    assert_eq!(client.arm_bell(), 0);
    ring_bell(&node.bell);
    let octets = client.arm_bell();
    assert_eq!((octets, node.messages.armed()), (1, 2));
    ring_bell(&node.bell);
    client.hush(octets);
    assert!(readable(), "the second octet came behind the count");
    let octets = client.arm_bell();
    client.hush(octets);
    assert!(!readable());
}
