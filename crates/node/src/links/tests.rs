//! Links between ends in one process, over loopback.

use super::*;
use rota_driver::clock::now;
use rota_driver::poller::{Poller, Trigger};
use rota_units::{Instant, Span};
use std::thread::JoinHandle;

mod strangers;

/// A test that waits so long has failed.
const SOON: Span = Span::from_millis(20_000);

/// A node that is to have links.
pub(super) struct Plan {
    pub(super) node: NodeId,
    pub(super) key: NodeKey,
    pub(super) listener: TcpListener,
}

impl Plan {
    pub(super) fn new(node: u64) -> Self {
        let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
        Self { node: NodeId(node), key: NodeKey::drawn().expect("a key"), listener }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("an address")
    }

    /// As others have it in their files.
    pub(super) fn pin(&self) -> Neighbour {
        Neighbour { node: self.node, address: self.address(), key: self.key.public(), name: None }
    }

    pub(super) fn start(&self, neighbours: &[Neighbour]) -> End {
        let listener = self.listener.try_clone().expect("a descriptor");
        let (node, key, neighbours) = (self.node, self.key.clone(), neighbours.to_vec());
        let (links, thread) = Links::new(LinkSettings { node, key, neighbours, listener }).expect("links");
        let thread = std::thread::spawn(|| thread.run());
        let poller = Poller::new(1).expect("a poller");
        poller.add(links.wait_fd(), 0, Trigger::Edge).expect("it can be watched");
        End { links: Some(links), thread: Some(thread), poller }
    }
}

/// One that runs.
pub(super) struct End {
    links: Option<Links>,
    thread: Option<JoinHandle<()>>,
    poller: Poller,
}

impl End {
    pub(super) fn links(&mut self) -> &mut Links {
        self.links.as_mut().expect("it runs")
    }

    /// The next event, if one comes before.
    pub(super) fn event_by(&mut self, until: Instant) -> Option<LinkEvent> {
        loop {
            if let Some(event) = self.links().event() {
                return Some(event);
            }
            if now() >= until {
                return None;
            }
            let _ = self.poller.wait(until).expect("it waits").count();
        }
    }

    pub(super) fn event(&mut self) -> LinkEvent {
        self.event_by(now() + SOON).expect("an event in time")
    }

    pub(super) fn up(&mut self, node: NodeId) {
        assert_eq!(self.event(), LinkEvent::Up { node });
    }

    pub(super) fn down(&mut self, node: NodeId) -> DownCause {
        match self.event() {
            LinkEvent::Down { node: of, cause } if of == node => cause,
            other => panic!("{other:?} instead of its end"),
        }
    }

    pub(super) fn message(&mut self) -> (NodeId, Vec<u8>) {
        match self.event() {
            LinkEvent::Message { node, octets } => (node, octets),
            other => panic!("{other:?} instead of a message"),
        }
    }

    /// Sends, and waits where the queue is full.
    pub(super) fn send(&mut self, to: NodeId, message: &[u8]) {
        let until = now() + SOON;
        loop {
            match self.links().send(to, message.to_vec()) {
                Ok(()) => return,
                Err(SendError::Full(_)) if now() < until => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(super) fn info(&mut self) -> LinksInfo {
        self.links().view().info()
    }

    /// Waits until so many connections were refused for that reason.
    pub(super) fn refused(&mut self, why: Refusal, times: u64) {
        let until = now() + SOON;
        loop {
            let refused = self.info().refused;
            if refused.get(&why) == Some(&times) {
                return;
            }
            assert!(now() < until, "{why:?}: {refused:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        drop(self.links.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()),
            "the thread broke down"
        );
    }
}

/// Two neighbours whose link is up: the one that dials first.
pub(super) fn pair() -> ((Plan, End), (Plan, End)) {
    let (one, other) = (Plan::new(1), Plan::new(2));
    let (mut first, mut second) = (one.start(&[other.pin()]), other.start(&[one.pin()]));
    first.up(other.node);
    second.up(one.node);
    ((one, first), (other, second))
}

#[test]
fn two_nodes_talk_both_ways_in_order() {
    let ((one, mut first), (other, mut second)) = pair();
    for length in [0, 1, 1_000, MESSAGE_OCTETS_MAX] {
        first.send(other.node, &vec![length as u8; length]);
        second.send(one.node, &vec![!length as u8; length]);
    }
    for length in [0, 1, 1_000, MESSAGE_OCTETS_MAX] {
        assert_eq!(second.message(), (one.node, vec![length as u8; length]));
        assert_eq!(first.message(), (other.node, vec![!length as u8; length]));
    }
    let links = first.links();
    assert_eq!(links.send(NodeId(9), vec![]), Err(SendError::Unknown(NodeId(9))));
    let long = vec![0; MESSAGE_OCTETS_MAX + 1];
    assert_eq!(links.send(other.node, long), Err(SendError::TooLong(MESSAGE_OCTETS_MAX + 1)));
    let counted = |info: &LinksInfo| [info.links[0].ups, info.links[0].sent, info.links[0].received];
    // The thread publishes its counts behind the messages themselves.
    let until = now() + SOON;
    while counted(&first.info()) != [1, 4, 4] && now() < until {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let info = first.info();
    assert_eq!((info.links[0].state, counted(&info)), (LinkStage::Up, [1, 4, 4]));
    assert_eq!((info.pending, info.refused.len(), info.key), (0, 0, one.key.public()));
    drop(second);
    assert_eq!(first.down(other.node), DownCause::Closed);
    assert_eq!(first.links().send(other.node, vec![]), Err(SendError::Down(other.node)));
    assert_eq!(first.info().links[0].state, LinkStage::Dialling);
}

#[test]
fn three_nodes_send_a_hundred_thousand_messages() {
    const EACH: u32 = 17_000;
    let plans = [Plan::new(3), Plan::new(1), Plan::new(2)];
    let pins = |of: usize| -> Vec<Neighbour> {
        plans.iter().enumerate().filter(|(at, _)| *at != of).map(|(_, plan)| plan.pin()).collect()
    };
    let work = |at: usize| {
        let mut end = plans[at].start(&pins(at));
        let others: Vec<NodeId> = pins(at).iter().map(|pin| pin.node).collect();
        let (mut up, mut sent, mut next) = (0, [0_u32; 2], [0_u32; 2]);
        let until = now() + SOON + SOON;
        while sent != [EACH; 2] || next != [EACH; 2] {
            for (to, sent) in others.iter().zip(&mut sent).filter(|_| up == 2) {
                // Where there is no room it takes what has come first, as the others do.
                let message = |number: u32| number.to_be_bytes().to_vec();
                while *sent < EACH && end.links().send(*to, message(*sent)).is_ok() {
                    *sent += 1;
                }
            }
            match end.event_by(now() + Span::from_millis(1)) {
                Some(LinkEvent::Up { .. }) => up += 1,
                Some(LinkEvent::Message { node, octets }) => {
                    let next = &mut next[others.iter().position(|of| *of == node).expect("known")];
                    assert_eq!(octets, next.to_be_bytes(), "in order");
                    *next += 1;
                }
                Some(LinkEvent::Down { cause, .. }) => panic!("{cause}"),
                None => assert!(now() < until, "{sent:?} {next:?}"),
            }
        }
        end
    };
    // The ends live until all are done.
    let ends = std::thread::scope(|scope| {
        let all = [0, 1, 2].map(|at| scope.spawn(move || work(at)));
        all.map(|one| one.join().expect("it is done"))
    });
    for mut end in ends {
        let info = end.info();
        let received: u64 = info.links.iter().map(|link| link.received).sum();
        assert_eq!(received, 2 * u64::from(EACH), "six directions of 17,000 are 102,000");
    }
}

#[test]
fn an_end_that_starts_again_is_met_again() {
    let ((one, mut first), (other, second)) = pair();
    drop(second);
    assert_eq!(first.down(other.node), DownCause::Closed);
    let mut second = other.start(&[one.pin()]);
    first.up(other.node);
    second.up(one.node);
    // The one that dials, too.
    drop(first);
    assert_eq!(second.down(one.node), DownCause::Closed);
    let mut first = one.start(&[other.pin()]);
    first.up(other.node);
    second.up(one.node);
    first.send(other.node, b"again");
    assert_eq!(second.message(), (one.node, b"again".to_vec()));
}

#[test]
fn a_connection_that_its_user_ends_carries_what_was_sent_before() {
    let ((one, mut first), (other, mut second)) = pair();
    first.send(other.node, b"last words");
    first.links().end(other.node);
    assert_eq!(first.down(other.node), DownCause::Ended);
    assert_eq!(second.message(), (one.node, b"last words".to_vec()));
    assert_eq!(second.down(one.node), DownCause::Closed);
    first.up(other.node);
    second.up(one.node);
}

#[test]
fn a_message_for_a_connection_that_has_ended_does_not_go_on_the_next_one() {
    let ((one, mut first), (other, second)) = pair();
    drop(second);
    let mut second = other.start(&[one.pin()]);
    second.up(one.node);
    // It has not taken the events yet: for it the first connection is up.
    let until = now() + SOON;
    while first.info().links[0].ups < 2 {
        assert!(now() < until, "no second connection");
        std::thread::yield_now();
    }
    first.links().send(other.node, b"old".to_vec()).expect("as far as it knows");
    assert_eq!(first.down(other.node), DownCause::Closed);
    first.up(other.node);
    first.send(other.node, b"new");
    assert_eq!(second.message(), (one.node, b"new".to_vec()));
}

#[test]
fn a_user_that_takes_nothing_fills_a_bounded_queue_and_the_link_ends() {
    let ((_one, mut first), (other, mut second)) = pair();
    let began = now();
    let mut sent = 0_u64;
    // The second one's user sleeps: its thread stops reading, and the first one's queue fills.
    let cause = loop {
        match first.links().send(other.node, vec![7; 60_000]) {
            Ok(()) => sent += 1,
            Err(SendError::Full(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
        if let Some(event) = first.links().event() {
            let LinkEvent::Down { cause, .. } = event else { panic!("{event:?}") };
            break cause;
        }
    };
    assert_eq!(cause, DownCause::NotReading);
    assert!(now().since(began) < Span::from_millis(6_000), "in {} ns", now().since(began).as_nanos());
    // Two queues of a MiB, two sockets' buffers and TLS.
    assert!((30..60).contains(&sent), "{sent} messages of 60,000 octets");
    let mut came = 0;
    while let Some(LinkEvent::Message { octets, .. }) = second.links().event() {
        assert_eq!(octets, vec![7; 60_000]);
        came += 1;
    }
    // The messages that its thread had read, and those that it read while the user took these.
    assert!((15..=sent).contains(&came), "{came} of {sent}");
}

#[test]
fn a_node_that_shows_another_key_is_no_neighbour() {
    let (one, other) = (Plan::new(1), Plan::new(2));
    let false_pin = Neighbour { key: NodeKey::drawn().expect("a key").public(), ..other.pin() };
    let mut first = one.start(&[false_pin]);
    let mut second = other.start(&[one.pin()]);
    let until = now() + SOON;
    while first.info().refused.get(&Refusal::NotPinned).is_none_or(|times| *times < 2) {
        assert!(now() < until, "{:?}", first.info());
        std::thread::yield_now();
    }
    let reason = first.info().links[0].reason.clone().expect("a reason");
    assert!(reason.starts_with("its key is not the one in the neighbours file"), "{reason}");
    assert!(second.info().refused.get(&Refusal::Refused).is_some_and(|times| *times >= 1));
    assert_eq!((first.links().event(), second.links().event()), (None, None));
}

#[test]
fn a_node_whose_key_the_other_does_not_pin_learns_so() {
    let (one, other, third) = (Plan::new(1), Plan::new(2), Plan::new(3));
    let mut first = one.start(&[other.pin()]);
    let mut second = other.start(&[third.pin()]);
    let until = now() + SOON;
    while second.info().refused.get(&Refusal::NotPinned).is_none_or(|times| *times < 2) {
        assert!(now() < until, "{:?}", second.info());
        std::thread::yield_now();
    }
    let reason = first.info().links[0].reason.clone().expect("a reason");
    assert!(reason.starts_with("it refuses this node") || reason.contains("closed"), "{reason}");
    assert_eq!((first.links().event(), second.links().event()), (None, None));
    // The third one is let in meanwhile, by its own key: it waits to be dialled.
    let mut last = third.start(&[other.pin()]);
    last.up(other.node);
    second.up(third.node);
}
