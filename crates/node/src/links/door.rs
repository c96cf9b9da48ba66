//! The door of the links: what their user and the thread say to each other, and what monitors see.

use super::frame::MESSAGE_OCTETS_MAX;
use super::identity::PublicKey;
use super::neighbours::Neighbour;
use super::run::LinksThread;
use super::why::{DownCause, Refusal};
use super::{LinkSettings, LinksError};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rota_contract::NodeId;
use rota_driver::clock::now;
use rota_units::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Octets that may wait for a neighbour, and octets from it that the user has not taken.
pub(super) const WAITING_MAX: usize = 1 << 20;
/// The cost of a message beside its octets, so that empty ones fill a queue, too.
pub(super) const MESSAGE_COST: usize = 64;
/// Events that the user has not taken; beyond them nothing is read and nobody is let in.
pub(super) const EVENTS_MAX: usize = 16_384;

/// An event of the link of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// It is up. Both ends have proved their keys.
    Up {
        /// The neighbour.
        node: NodeId,
    },
    /// It was up and is down. Messages that were on their way may have arrived or not.
    Down {
        /// The neighbour.
        node: NodeId,
        /// Why.
        cause: DownCause,
    },
    /// A message came.
    Message {
        /// The neighbour.
        node: NodeId,
        /// As it was sent.
        octets: Vec<u8>,
    },
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No line of the neighbours file has this node.
    #[error("node {0} is no neighbour of this node")]
    Unknown(NodeId),
    /// There is no link, as far as the user has been told.
    #[error("the link to node {0} is down")]
    Down(NodeId),
    /// It is longer than 65,536 octets.
    #[error("a message of {0} octets; a link carries {max} at most", max = MESSAGE_OCTETS_MAX)]
    TooLong(usize),
    /// 1 MiB waits for the neighbour already. It reads soon, or the link goes down.
    #[error("too much waits for node {0} already")]
    Full(NodeId),
}

/// A message on its way to the thread.
pub(super) struct Order {
    pub(super) peer: usize,
    pub(super) epoch: u32,
    /// None: the connection is to end.
    pub(super) message: Option<Vec<u8>>,
}

/// An event on its way to the user, with the number of the connection that it is of.
pub(super) struct Told {
    pub(super) peer: usize,
    pub(super) epoch: u32,
    pub(super) what: What,
}

pub(super) enum What {
    Up,
    Down(DownCause),
    Message(Vec<u8>),
}

/// The state of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkStage {
    /// The neighbour, whose id is smaller, is to dial.
    #[default]
    Awaited,
    /// This node dials.
    Dialling,
    /// It is up.
    Up,
}

impl LinkStage {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Awaited => "awaited",
            Self::Dialling => "dialling",
            Self::Up => "up",
        }
    }
}

/// A link, as monitors see it.
#[derive(Clone, Debug)]
pub struct LinkInfo {
    /// The neighbour, as the file has it.
    pub neighbour: Neighbour,
    /// Its state.
    pub state: LinkStage,
    /// Since when.
    pub since: Instant,
    /// Why it last went down, or last did not come up.
    pub reason: Option<String>,
    /// How often it came up.
    pub ups: u64,
    /// Messages written, and messages that came.
    pub sent: u64,
    /// See `sent`.
    pub received: u64,
}

/// All links, as monitors see them.
#[derive(Clone, Debug)]
pub struct LinksInfo {
    /// Where this node listens.
    pub listening: SocketAddr,
    /// Its public key.
    pub key: PublicKey,
    /// One for each neighbour, by their ids.
    pub links: Vec<LinkInfo>,
    /// Connections that were refused, by why.
    pub refused: BTreeMap<Refusal, u64>,
    /// Connections that are not links yet.
    pub pending: usize,
}

/// The load of a neighbour's queues.
#[derive(Default)]
pub(super) struct Load {
    /// Octets that wait for it.
    pub(super) waiting: AtomicUsize,
    /// Octets from it that the user has not taken.
    pub(super) unread: AtomicUsize,
}

pub(super) struct Shared {
    pub(super) loads: Vec<Load>,
    /// Events that the user has not taken.
    pub(super) events: AtomicUsize,
    /// The thread reads less than it could, and wants to be told when there is room again.
    pub(super) throttled: AtomicBool,
    pub(super) over: AtomicBool,
    /// Wakes the thread.
    pub(super) rouse: EventFd,
    /// Wakes the user.
    pub(super) told: EventFd,
    /// Of the thread and of monitors; the user of the links has no part in it.
    pub(super) info: Mutex<LinksInfo>,
}

impl Shared {
    pub(super) fn rouse(&self) {
        let _ = self.rouse.write(1);
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut LinksInfo)) {
        change(&mut self.info.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The links of a node, for their one user. Dropping them ends the thread.
pub struct Links {
    nodes: Vec<NodeId>,
    /// Of each neighbour the number of the connection whose beginning the user was told of.
    seen: Vec<Option<u32>>,
    orders: Sender<Order>,
    events: Receiver<Told>,
    shared: Arc<Shared>,
}

/// For monitors.
#[derive(Clone)]
pub struct LinksView(Arc<Shared>);

impl LinksView {
    /// As it is now.
    pub fn info(&self) -> LinksInfo {
        self.0.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Links {
    /// The links, and the thread's work, which somebody is to run.
    ///
    /// # Errors
    /// The kernel has no descriptors, or the key cannot be used.
    pub fn new(settings: LinkSettings) -> Result<(Self, LinksThread), LinksError> {
        let LinkSettings { node, key, mut neighbours, listener } = settings;
        neighbours.sort_by_key(|neighbour| neighbour.node);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let eventfd = || EventFd::from_flags(flags).map_err(std::io::Error::from);
        let state = |of: &Neighbour| if of.node < node { LinkStage::Awaited } else { LinkStage::Dialling };
        let at = now();
        let link = |of: &Neighbour| LinkInfo {
            neighbour: of.clone(),
            state: state(of),
            since: at,
            reason: None,
            ups: 0,
            sent: 0,
            received: 0,
        };
        let info = LinksInfo {
            listening: listener.local_addr()?,
            key: key.public(),
            links: neighbours.iter().map(link).collect(),
            refused: BTreeMap::new(),
            pending: 0,
        };
        let shared = Arc::new(Shared {
            loads: neighbours.iter().map(|_| Load::default()).collect(),
            events: AtomicUsize::new(0),
            throttled: AtomicBool::new(false),
            over: AtomicBool::new(false),
            rouse: eventfd()?,
            told: eventfd()?,
            info: Mutex::new(info),
        });
        let ((orders, ordered), (tell, events)) = (channel(), channel());
        let nodes: Vec<NodeId> = neighbours.iter().map(|neighbour| neighbour.node).collect();
        let seen = vec![None; nodes.len()];
        let settings = LinkSettings { node, key, neighbours, listener };
        let thread = LinksThread::new(settings, Arc::clone(&shared), ordered, tell)?;
        Ok((Self { nodes, seen, orders, events, shared }, thread))
    }

    /// Readable whenever there are new events; to be watched edge-triggered, and never read.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.shared.told.as_fd()
    }

    /// The links, for monitors.
    pub fn view(&self) -> LinksView {
        LinksView(Arc::clone(&self.shared))
    }

    /// The next event; `None` until the next wake-up.
    pub fn event(&mut self) -> Option<LinkEvent> {
        loop {
            let told = match self.events.try_recv() {
                Ok(told) => told,
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => return self.stopped(),
            };
            if let Some(event) = self.taken(told) {
                return Some(event);
            }
        }
    }

    fn taken(&mut self, Told { peer, epoch, what }: Told) -> Option<LinkEvent> {
        self.shared.events.fetch_sub(1, Ordering::SeqCst);
        let node = self.nodes[peer];
        let event = match what {
            What::Up => {
                self.seen[peer] = Some(epoch);
                Some(LinkEvent::Up { node })
            }
            What::Down(cause) => {
                self.seen[peer] = None;
                Some(LinkEvent::Down { node, cause })
            }
            What::Message(octets) => {
                let cost = octets.len() + MESSAGE_COST;
                self.shared.loads[peer].unread.fetch_sub(cost, Ordering::SeqCst);
                let is_heard = self.seen[peer] == Some(epoch);
                is_heard.then_some(LinkEvent::Message { node, octets })
            }
        };
        // Not for each event: the thread would wake to read one message.
        let unread = self.shared.loads[peer].unread.load(Ordering::SeqCst);
        let has_room = unread < WAITING_MAX / 2 && self.shared.events.load(Ordering::SeqCst) < EVENTS_MAX / 2;
        if has_room && self.shared.throttled.swap(false, Ordering::SeqCst) {
            self.shared.rouse();
        }
        event
    }

    /// The thread has ended before its user, by a panic: no link is up any more.
    fn stopped(&mut self) -> Option<LinkEvent> {
        let peer = self.seen.iter().position(Option::is_some)?;
        self.seen[peer] = None;
        Some(LinkEvent::Down { node: self.nodes[peer], cause: DownCause::Stopped })
    }

    /// Sends a message on the connection whose `Up` the last events told of. Of one that has ended meanwhile
    /// the message goes nowhere, and its `Down` is on the way. A user that waits for room takes events
    /// meanwhile: two that only send would wait for each other.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send(&self, to: NodeId, message: Vec<u8>) -> Result<(), SendError> {
        let peer = self.nodes.binary_search(&to).map_err(|_| SendError::Unknown(to))?;
        let epoch = self.seen[peer].ok_or(SendError::Down(to))?;
        if message.len() > MESSAGE_OCTETS_MAX {
            return Err(SendError::TooLong(message.len()));
        }
        let (cost, waiting) = (message.len() + MESSAGE_COST, &self.shared.loads[peer].waiting);
        if waiting.fetch_add(cost, Ordering::SeqCst) + cost > WAITING_MAX {
            waiting.fetch_sub(cost, Ordering::SeqCst);
            return Err(SendError::Full(to));
        }
        if self.orders.send(Order { peer, epoch, message: Some(message) }).is_err() {
            waiting.fetch_sub(cost, Ordering::SeqCst);
            return Err(SendError::Down(to));
        }
        self.shared.rouse();
        Ok(())
    }
}

impl Links {
    /// Ends the connection whose `Up` the last events told of, behind what was sent on it; `Down` follows.
    /// Messages that it brings until then are dropped. False if it has ended already.
    pub fn end(&mut self, node: NodeId) -> bool {
        let Ok(peer) = self.nodes.binary_search(&node) else { return false };
        let Some(epoch) = self.seen[peer].take() else { return false };
        if self.orders.send(Order { peer, epoch, message: None }).is_ok() {
            self.shared.rouse();
        }
        true
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.rouse();
    }
}
