//! The thread of the links: one loop over all connections.

use super::connection::Connection;
use super::door::{EVENTS_MAX, LinkStage, MESSAGE_COST, Order, Shared, Told, WAITING_MAX, What};
use super::greeting::{Greeting, Side, Step, Strangers};
use super::link::Link;
use super::neighbours::Neighbour;
use super::tls::Tls;
use super::why::{DownCause, Refusal};
use super::{LinkSettings, LinksError};
use crate::log::{Level, say};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rota_contract::NodeId;
use rota_driver::clock::now;
use rota_units::{Instant, Span};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

/// Connections of others that are no links yet.
pub const PENDING_MAX: usize = 64;
/// Connections that are accepted in one turn.
const ACCEPTED_A_TURN: usize = 16;
/// After an error of accept, as without a free descriptor.
const ACCEPT_AGAIN: Span = Span::from_millis(100);
/// The pause before a neighbour is dialled again: it doubles with each failure, and is random from half on.
const PAUSE_MIN: Span = Span::from_millis(50);
const PAUSE_MAX: Span = Span::from_millis(2_000);
/// A link that was up for so long lets the pauses begin anew.
const STEADY: Span = Span::from_millis(2_000);
/// A wait that ends so late is one in which this thread did not run.
const STOOD: Span = Span::from_millis(200);

/// A neighbour, and its link.
struct Peer {
    link: Option<Link>,
    epoch: u32,
    /// When to dial; never for a neighbour that dials itself, or while there is a connection to it.
    dial_at: Instant,
    failures: u32,
}

/// The connections that have something to do after a wait.
struct Awake {
    greetings: Vec<bool>,
    /// By the places of the neighbours.
    links: Vec<bool>,
    /// Somebody knocks.
    listener: bool,
}

/// Tells the user of the links that the thread has ended. Behind the sender of events in [`LinksThread`], so
/// that it is dropped after that.
struct Farewell(Arc<Shared>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.told.write(1);
    }
}

/// The work of the thread; [`run`](Self::run) does it.
pub struct LinksThread {
    own: NodeId,
    tls: Tls,
    listener: TcpListener,
    neighbours: Vec<Neighbour>,
    peers: Vec<Peer>,
    greetings: Vec<Greeting>,
    accept_from: Instant,
    strangers: Strangers,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    /// Of this turn.
    told: bool,
    random: u64,
    events: Sender<Told>,
    _farewell: Farewell,
}

impl LinksThread {
    pub(super) fn new(
        settings: LinkSettings,
        shared: Arc<Shared>,
        orders: Receiver<Order>,
        events: Sender<Told>,
    ) -> Result<Self, LinksError> {
        let LinkSettings { node: own, key, neighbours, listener } = settings;
        listener.set_nonblocking(true)?;
        let tls = Tls::new(&key, neighbours.iter().map(|neighbour| neighbour.key))?;
        let random = getrandom::u64().map_err(|error| std::io::Error::other(error.to_string()))?;
        let at = now();
        let peer = |neighbour: &Neighbour| {
            let dial_at = if own < neighbour.node { at } else { Instant::FAR };
            Peer { link: None, epoch: 0, dial_at, failures: 0 }
        };
        let peers = neighbours.iter().map(peer).collect();
        let _farewell = Farewell(Arc::clone(&shared));
        let (greetings, accept_from) = (Vec::new(), Instant::ZERO);
        Ok(Self {
            own,
            tls,
            listener,
            neighbours,
            peers,
            greetings,
            accept_from,
            strangers: Strangers::default(),
            shared,
            orders,
            told: false,
            random,
            events,
            _farewell,
        })
    }

    /// Keeps the links until their user is gone.
    pub fn run(mut self) {
        while !self.shared.over.load(Ordering::SeqCst) {
            let due = self.due().max(now());
            let Some(Awake { greetings, links, listener }) = self.wait(due) else { return };
            let at = now();
            let stood = at.since(due);
            if stood >= STOOD {
                let links = self.peers.iter_mut().filter_map(|peer| peer.link.as_mut());
                links.for_each(|link| link.excuse(stood));
            }
            self.take_orders();
            self.serve(at, &links);
            self.greet(at, &greetings);
            if listener {
                self.accept(at);
            }
            self.dial(at);
            let pending = self.greetings.len();
            self.shared.change(|info| info.pending = pending);
            if std::mem::take(&mut self.told) {
                let _ = self.shared.told.write(1);
            }
        }
        for peer in &mut self.peers {
            peer.link.take().into_iter().for_each(|link| link.connection.end());
        }
    }

    /// True if the user has taken too little of the events, from all or from one neighbour.
    fn is_full(&self) -> bool {
        self.is_behind(|| self.shared.events.load(Ordering::SeqCst) >= EVENTS_MAX)
    }

    fn is_paused(&self, peer: usize) -> bool {
        let unread = &self.shared.loads[peer].unread;
        self.is_full() || self.is_behind(|| unread.load(Ordering::SeqCst) >= WAITING_MAX)
    }

    fn is_behind(&self, is_full: impl Fn() -> bool) -> bool {
        if !is_full() {
            return false;
        }
        // The user looks at this after it has taken something; so once more behind it.
        self.shared.throttled.store(true, Ordering::SeqCst);
        is_full()
    }

    /// When something is to be done that nobody wakes this thread for.
    fn due(&self) -> Instant {
        let greetings = self.greetings.iter().map(|greeting| greeting.until);
        let links = self.peers.iter().enumerate().filter_map(|(at, peer)| {
            let link = peer.link.as_ref()?;
            let paused = self.is_paused(at);
            // Octets that were read and not taken yet do not make the socket readable.
            Some(if link.more && !paused { Instant::ZERO } else { link.due(paused) })
        });
        let may_dial = !self.is_full();
        let dials = self.peers.iter().filter(|_| may_dial).map(|peer| peer.dial_at);
        let accept = if self.accept_from > now() { self.accept_from } else { Instant::FAR };
        greetings.chain(links).chain(dials).fold(accept, Instant::min)
    }

    /// Waits; `None` if the kernel does not let it.
    fn wait(&self, due: Instant) -> Option<Awake> {
        let at = now();
        let accepting = at >= self.accept_from && !self.is_full();
        let flags = |reads: bool, writes: bool| {
            let read = if reads { PollFlags::POLLIN } else { PollFlags::empty() };
            read | if writes { PollFlags::POLLOUT } else { PollFlags::empty() }
        };
        let mut fds = vec![PollFd::new(self.shared.rouse.as_fd(), PollFlags::POLLIN)];
        fds.push(PollFd::new(self.listener.as_fd(), flags(accepting, false)));
        for Greeting { connection, reaching, .. } in &self.greetings {
            fds.push(PollFd::new(connection.fd(), flags(!reaching, *reaching || connection.wants_write())));
        }
        let mut linked = Vec::new();
        for (peer, of) in self.peers.iter().enumerate() {
            let Some(Link { connection, .. }) = &of.link else { continue };
            let flags = flags(!self.is_paused(peer), connection.wants_write());
            // A hangup is told without being asked for, and nobody would read it.
            if !flags.is_empty() {
                linked.push(peer);
                fds.push(PollFd::new(connection.fd(), flags));
            }
        }
        let left = due.since(at).as_nanos().div_ceil(1_000_000);
        let timeout = match due {
            Instant::FAR => PollTimeout::NONE,
            _ => PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
        };
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => {
                say(Level::Error, "links", &format!("the links end: {}", errno.desc()));
                return None;
            }
        }
        let any = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
        if any(&fds[0]) {
            let _ = self.shared.rouse.read();
        }
        let (greetings, ready) = fds[2..].split_at(self.greetings.len());
        let mut links = vec![false; self.peers.len()];
        linked.iter().zip(ready).for_each(|(peer, fd)| links[*peer] = any(fd));
        let greetings = greetings.iter().map(any).collect();
        Some(Awake { greetings, links, listener: accepting && any(&fds[1]) })
    }

    fn take_orders(&mut self) {
        while let Ok(Order { peer, epoch, message }) = self.orders.try_recv() {
            let Some(message) = message else {
                if self.peers[peer].link.as_ref().is_some_and(|link| link.epoch == epoch) {
                    self.down(peer, DownCause::Ended, now());
                }
                continue;
            };
            let cost = message.len() + MESSAGE_COST;
            match &mut self.peers[peer].link {
                Some(link) if link.epoch == epoch => link.send(message, cost),
                _ => _ = self.shared.loads[peer].waiting.fetch_sub(cost, Ordering::SeqCst),
            }
        }
    }

    // ---- connections that are no links yet ------------------------------------------------------------

    fn accept(&mut self, at: Instant) {
        for _ in 0..ACCEPTED_A_TURN {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    let is_over = error.kind() == std::io::ErrorKind::WouldBlock;
                    if !is_over {
                        self.accept_from = at + ACCEPT_AGAIN;
                        say(Level::Warn, "links", &format!("no neighbour can be let in: {error}"));
                    }
                    return;
                }
            };
            if !self.has_room(from, at) {
                self.refuse(Side::Accepted { from }, Refusal::Crowded, "");
                continue;
            }
            let tls = self.tls.accepted().map_err(std::io::Error::other);
            match tls.and_then(|tls| Connection::accepted(stream, tls)) {
                Ok(connection) => {
                    self.greetings.push(Greeting::new(connection, Side::Accepted { from }, at));
                }
                Err(error) => {
                    self.refuse(Side::Accepted { from }, Refusal::Unreachable, &error.to_string());
                }
            }
        }
    }

    /// True if one more may begin. From the address of a neighbour it may always, in the place of the
    /// oldest one from elsewhere: strangers must not keep neighbours out.
    fn has_room(&mut self, from: SocketAddr, at: Instant) -> bool {
        let pins = |from: SocketAddr| {
            self.neighbours.iter().any(|neighbour| neighbour.address.ip() == from.ip().to_canonical())
        };
        if !pins(from) && !self.strangers.may_come(at) {
            return false;
        }
        let is_accepted = |greeting: &Greeting| matches!(greeting.side, Side::Accepted { .. });
        if self.greetings.iter().filter(|greeting| is_accepted(greeting)).count() < PENDING_MAX {
            return true;
        }
        let strange = |side: Side| matches!(side, Side::Accepted { from } if !pins(from));
        let oldest = self.greetings.iter().position(|greeting| strange(greeting.side));
        let Some(oldest) = oldest.filter(|_| pins(from)) else { return false };
        let gone = self.greetings.remove(oldest);
        self.refuse(gone.side, Refusal::Crowded, "");
        true
    }

    fn dial(&mut self, at: Instant) {
        if self.is_full() {
            return;
        }
        for peer in 0..self.peers.len() {
            if at < self.peers[peer].dial_at {
                continue;
            }
            self.peers[peer].dial_at = Instant::FAR;
            let Neighbour { address, key, .. } = self.neighbours[peer];
            let tls = self.tls.dialled(address.ip(), key).map_err(std::io::Error::other);
            match tls.and_then(|tls| Connection::dialled(address, tls)) {
                Ok(connection) => self.greetings.push(Greeting::new(connection, Side::Dialled { peer }, at)),
                Err(error) => {
                    self.refuse(Side::Dialled { peer }, Refusal::Unreachable, &error.to_string());
                }
            }
        }
    }

    fn greet(&mut self, at: Instant, ready: &[bool]) {
        let mut kept = Vec::with_capacity(self.greetings.len());
        let greetings = std::mem::take(&mut self.greetings);
        for (mut greeting, ready) in greetings.into_iter().zip(ready) {
            let step = if *ready { greeting.turn(self.own, &self.neighbours) } else { Step::Waits };
            match step {
                Step::Waits if at < greeting.until => kept.push(greeting),
                Step::Waits if greeting.reaching => {
                    self.refuse(greeting.side, Refusal::Unreachable, "nothing answers there");
                }
                Step::Waits => self.refuse(greeting.side, Refusal::Deadline, ""),
                Step::Known(peer) => self.up(peer, greeting.connection, at),
                Step::Refused(refusal, detail) => {
                    greeting.connection.end();
                    self.refuse(greeting.side, refusal, &detail);
                }
            }
        }
        self.greetings = kept;
    }

    /// Counts a refusal and says why; dials again later where this node did.
    fn refuse(&mut self, side: Side, refusal: Refusal, detail: &str) {
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        let reason = format!("{refusal}{detail}");
        self.shared.change(|info| *info.refused.entry(refusal).or_default() += 1);
        match side {
            Side::Accepted { from } => {
                let text = format!("link: a connection from {from} was refused: {reason}");
                say(Level::Warn, "link-refused", &text);
            }
            Side::Dialled { peer } => {
                self.dial_later(peer);
                let mut is_new = false;
                self.shared.change(|info| {
                    let known = &mut info.links[peer].reason;
                    is_new = known.as_ref() != Some(&reason);
                    *known = Some(reason.clone());
                });
                // A neighbour that is away is said once.
                if is_new {
                    say(Level::Warn, "link", &format!("link: none to {}: {reason}", self.called(peer)));
                }
            }
        }
    }

    fn dial_later(&mut self, peer: usize) {
        let Peer { failures, .. } = self.peers[peer];
        let longest = PAUSE_MAX.min(PAUSE_MIN * (1 << failures.min(10)));
        let half = longest.as_nanos() / 2;
        let pause = Span::from_nanos(half + self.draw() % (half + 1));
        let this = &mut self.peers[peer];
        (this.dial_at, this.failures) = (now() + pause, failures.saturating_add(1));
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    // ---- links ----------------------------------------------------------------------------------------

    fn up(&mut self, peer: usize, connection: Connection, at: Instant) {
        self.down(peer, DownCause::Replaced, at);
        let this = &mut self.peers[peer];
        this.epoch = this.epoch.wrapping_add(1);
        this.dial_at = Instant::FAR;
        let epoch = this.epoch;
        this.link = Some(Link::new(connection, epoch, at));
        self.shared.change(|info| {
            let link = &mut info.links[peer];
            (link.state, link.since, link.ups) = (LinkStage::Up, at, link.ups + 1);
        });
        say(Level::Info, "link", &format!("link: up to {}", self.called(peer)));
        self.tell(peer, epoch, What::Up);
    }

    /// Ends the link of a neighbour, if there is one.
    fn down(&mut self, peer: usize, cause: DownCause, at: Instant) {
        let Some(link) = self.peers[peer].link.take() else { return };
        self.shared.loads[peer].waiting.fetch_sub(link.waiting(), Ordering::SeqCst);
        let (epoch, since) = (link.epoch, link.since);
        link.connection.end();
        let dials = self.own < self.neighbours[peer].node;
        if at.since(since) >= STEADY {
            self.peers[peer].failures = 0;
        }
        if dials {
            self.dial_later(peer);
        }
        self.shared.change(|info| {
            let link = &mut info.links[peer];
            link.state = if dials { LinkStage::Dialling } else { LinkStage::Awaited };
            (link.since, link.reason) = (at, Some(cause.to_string()));
        });
        say(Level::Warn, "link", &format!("link: down to {}: {cause}", self.called(peer)));
        self.tell(peer, epoch, What::Down(cause));
    }

    fn tell(&mut self, peer: usize, epoch: u32, what: What) {
        self.shared.events.fetch_add(1, Ordering::SeqCst);
        let _ = self.events.send(Told { peer, epoch, what });
        self.told = true;
    }

    fn serve(&mut self, at: Instant, ready: &[bool]) {
        for (peer, ready) in ready.iter().enumerate() {
            let Some(mut link) = self.peers[peer].link.take() else { continue };
            let outcome = self.turn(peer, &mut link, *ready, at);
            self.peers[peer].link = Some(link);
            if let Err(cause) = outcome {
                self.down(peer, cause, at);
            }
        }
    }

    fn turn(&mut self, peer: usize, link: &mut Link, ready: bool, at: Instant) -> Result<(), DownCause> {
        let mut received = 0;
        let mut read = Ok(());
        if self.is_paused(peer) {
            // The words of the far end meanwhile are not known.
            link.more = true;
        } else if ready || link.more {
            let epoch = link.epoch;
            read = link.read(at, |message| {
                let cost = message.len() + MESSAGE_COST;
                self.shared.loads[peer].unread.fetch_add(cost, Ordering::SeqCst);
                received += 1;
                self.tell(peer, epoch, What::Message(message));
                !self.is_paused(peer)
            });
        }
        let (cost, sent) =
            read.and_then(|()| link.write(at)).inspect_err(|_| self.count(peer, 0, received))?;
        self.shared.loads[peer].waiting.fetch_sub(cost, Ordering::SeqCst);
        self.count(peer, sent, received);
        link.check(at)
    }

    fn count(&self, peer: usize, sent: u64, received: u64) {
        if sent + received > 0 {
            self.shared.change(|info| {
                info.links[peer].sent += sent;
                info.links[peer].received += received;
            });
        }
    }

    /// A neighbour, for people.
    fn called(&self, peer: usize) -> String {
        let Neighbour { node, address, name, .. } = &self.neighbours[peer];
        let name = name.as_ref().map_or(String::new(), |name| format!("{name}, "));
        format!("{name}node {node} at {address}")
    }
}
