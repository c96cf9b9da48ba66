//! A node without a network: the node's half of shared memory and control socket on a thread, looping
//! each sent unit back to whoever listens to its service.

#![allow(dead_code)] // Each test program uses its part.

use rota_contract::{ChannelId, NodeId, Tally, Withdrawn};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rota::{
    CloseCause, Contract, ControlName, Granted, Instant, LlcInfo, LlcPeer, RefusalInfo, RetherShare,
    SocketError, Span, StatusInfo, now,
};
use rota_shm::control::{Connection, ControlListener, Reply, Request, UNASKED};
use rota_shm::layout::rx_slots_for;
use rota_shm::{
    Board, ChannelState, CounterTable, NodeSocket, NodeSource, RingFragment, RxWriter, SinkShape, SlotMark,
    SocketShape, SourceShape,
};

/// Octets of payload in one fragment, as on an Ethernet of MTU 1,500.
pub const FRAGMENT_OCTETS: usize = 1436;
/// A unit larger than this is refused, with this as the counter-offer.
pub const ROOM_OCTETS: u32 = 100_000;

/// What the fake medium does to the fragment with this unit number and index.
pub type Loss = fn(u64, u16) -> bool;

/// How the fake node behaves.
#[derive(Clone, Copy)]
pub struct Behaviour {
    pub loss: Loss,
    /// Whether units leave the senders' rings.
    pub drains: bool,
    /// Whether it says what it is when asked.
    pub tells_status: bool,
    /// Whether it has room for who wants to listen.
    pub lets_listen: bool,
    /// True if it answers programs that want to listen.
    pub hears_listeners: bool,
    /// It does nothing at all, as when it was stopped.
    pub stands_still: bool,
    /// The channel whose end it never confirms, as when the receiver's station has died.
    pub unconfirmed: ChannelId,
    /// True if a channel moves onto a tunnel while the node is asked to show it, before it answers.
    pub moves: bool,
    /// How many units it says that there were, where that is a lie.
    pub final_units: Option<u64>,
    /// Why the channels end that a program closes.
    pub cause: CloseCause,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            loss: |_, _| false,
            drains: true,
            tells_status: true,
            lets_listen: true,
            hears_listeners: true,
            stands_still: false,
            unconfirmed: ChannelId::NONE,
            moves: false,
            final_units: None,
            cause: CloseCause::Finished,
        }
    }
}

/// A running fake node; stops when dropped, as if killed: without a word to anybody.
pub struct FakeNode {
    pub name: ControlName,
    stop: Arc<AtomicBool>,
    hurry: Arc<Mutex<Behaviour>>,
    /// How often somebody wanted to listen.
    listens: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

/// A station that is there and never answers.
pub const SILENT: &str = "n8";
/// A channel that ends once its receiving program has taken it.
pub const NEVER_OPENED: ChannelId = ChannelId(77);
/// A channel of which no change is ever decided.
pub const UNDECIDED: ChannelId = ChannelId(88);

static COUNT: AtomicU32 = AtomicU32::new(0);

impl FakeNode {
    pub fn start(behaviour: Behaviour) -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = ControlName::named(&format!("test-{}-{count}", std::process::id())).unwrap();
        let listener = ControlListener::bind(&name).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let hurry = Arc::new(Mutex::new(behaviour));
        let (stopped, behaviour, listens) = (stop.clone(), hurry.clone(), Arc::default());
        let listened = Arc::clone(&listens);
        let thread = std::thread::spawn(move || {
            let mut world = World::new(listener, listened);
            while !stopped.load(Ordering::Relaxed) {
                // A turn holds the lock: none goes on as before once `behave` has returned.
                let now = behaviour.lock().unwrap();
                if !now.stands_still {
                    world.turn(*now);
                }
                drop(now);
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        Self { name, stop, hurry, listens, thread: Some(thread) }
    }

    /// How often somebody wanted to listen.
    pub fn listens(&self) -> u32 {
        self.listens.load(Ordering::Relaxed)
    }

    /// From its return on, the node behaves so.
    pub fn behave(&self, behaviour: Behaviour) {
        *self.hurry.lock().unwrap() = behaviour;
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        // A second panic would abort the program of tests, and hide the first one's words.
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

struct Client {
    connection: Connection,
    // Of its newest request.
    number: u64,
    // Service and buffers.
    listens: Option<(u16, u16)>,
    // Keeps the files of its socket.
    socket: Option<NodeSocket>,
}

struct Flow {
    id: ChannelId,
    contract: Granted,
    source: NodeSource,
    live: bool,
    closing: bool,
    // Index of the client that opened it, and of the one that took it.
    owner: usize,
    taker: usize,
    // Of owner and taker: whether its contract has changed, and it has not been told.
    untold: [bool; 2],
    sink: Option<(RxWriter, Board)>,
    sent: u64,
}

struct World {
    listener: ControlListener,
    clients: Vec<Option<Client>>,
    flows: Vec<Flow>,
    counters: CounterTable,
    listens: Arc<AtomicU32>,
    next_channel: ChannelId,
    cycle: u64,
}

impl Client {
    fn reply(&self, reply: &Reply, files: &[BorrowedFd<'_>]) -> Result<(), SocketError> {
        self.connection.send_reply(self.number, reply, files)
    }

    fn news(&self, reply: &Reply, files: &[BorrowedFd<'_>]) {
        self.connection.send_reply(UNASKED, reply, files).expect("news are read");
    }

    fn take_the_dead(&self) {
        self.reply(&Reply::Done, &[]).unwrap();
        let cause = CloseCause::SenderDied.sentence().into();
        self.news(&Reply::Closed { channel: NEVER_OPENED, cause, final_units: None }, &[]);
    }
}

impl World {
    fn new(listener: ControlListener, listens: Arc<AtomicU32>) -> Self {
        let counters = CounterTable::create(&["turns", "hops"]).unwrap();
        let (clients, flows) = (Vec::new(), Vec::new());
        Self { listener, clients, flows, counters, listens, next_channel: ChannelId(1), cycle: 0 }
    }

    fn turn(&mut self, behaviour: Behaviour) {
        self.counters.add(0, 1);
        self.cycle += 1;
        while let Some(connection) = self.listener.accept().unwrap() {
            self.clients.push(Some(Client { connection, number: UNASKED, listens: None, socket: None }));
        }
        for index in 0..self.clients.len() {
            self.serve(index, behaviour);
        }
        self.tell_changes();
        let at = now();
        for flow in &mut self.flows {
            flow.source.board.set_slot(SlotMark { number: self.cycle, at });
            flow.source.board.notify();
            if flow.live && behaviour.drains {
                carry(flow, behaviour.loss);
            }
        }
        self.finish_closing(behaviour);
    }

    fn serve(&mut self, index: usize, behaviour: Behaviour) {
        loop {
            let Some(client) = &mut self.clients[index] else { return };
            let (request, _) = client.connection.try_request_with();
            if let Ok(Some((number, _))) = &request {
                client.number = *number;
            }
            match request.map(|request| request.map(|(_, request)| request)) {
                Ok(Some(Request::Status)) if !behaviour.tells_status => {}
                Ok(Some(Request::Listen { .. })) if !behaviour.hears_listeners => {}
                Ok(Some(Request::Listen { .. })) if !behaviour.lets_listen => {
                    self.listens.fetch_add(1, Ordering::Relaxed);
                    let full = Reply::Error { sentence: "no room".into(), wrong_use: false };
                    let _ = client.reply(&full, &[]);
                }
                Ok(Some(request)) => {
                    if let Request::Show { channel } = request
                        && behaviour.moves
                    {
                        self.move_onto_tunnel(channel);
                    }
                    self.answer(index, request);
                }
                Ok(None) => return,
                Err(_) => {
                    self.clients[index] = None;
                    self.flows
                        .retain(|flow| flow.owner != index || end(flow, CloseCause::SenderDied, flow.sent));
                }
            }
        }
    }

    fn answer(&mut self, index: usize, request: Request) {
        let counters = self.counters.clone();
        let client = self.clients[index].as_ref().unwrap();
        let reply = match request {
            Request::Hello { version } => {
                Reply::Welcome { version, pid: std::process::id(), station: Some(1), name: "n1".into() }
            }
            Request::Open { .. } => return self.open(index, request),
            Request::Mapped { channel } => {
                let flow = self.flows.iter_mut().find(|flow| flow.id == channel).unwrap();
                flow.source.mapped().unwrap();
                flow.live = true;
                flow.source.board.set_state(ChannelState::Open, None);
                Reply::Done
            }
            Request::Listen { service, buffers, .. } => {
                self.listens.fetch_add(1, Ordering::Relaxed);
                let listening = Reply::Listening { service };
                client.reply(&listening, &[]).unwrap();
                self.clients[index].as_mut().unwrap().listens = Some((service, buffers));
                return;
            }
            Request::Close { channel } => {
                let owned = |flow: &&mut Flow| flow.id == channel && flow.owner == index;
                if let Some(flow) = self.flows.iter_mut().find(owned) {
                    flow.closing = true;
                }
                return;
            }
            Request::Status => Reply::Status(Box::new(StatusInfo {
                pid: std::process::id(),
                name: "n1".into(),
                llc: LlcInfo { peers: twins().collect(), ..LlcInfo::default() },
                ..StatusInfo::default()
            })),
            Request::List { .. } => Reply::Channels { channels: Vec::new(), next: None },
            Request::Answer { channel: NEVER_OPENED, .. } => return client.take_the_dead(),
            Request::Answer { channel, .. } => {
                Reply::NotThere { sentence: format!("a fake node asks about no channel, {channel} neither") }
            }
            Request::Invitee { .. } | Request::Join { .. } | Request::Leave { .. } | Request::Bell { .. } => {
                Reply::NotThere { sentence: "a fake node has no receivers and no bells".into() }
            }
            Request::Circuit(_) => Reply::NotThere { sentence: "a fake node has no circuits".into() },
            Request::Show { channel } => {
                Reply::NotThere { sentence: format!("a fake node shows no channel, {channel} neither") }
            }
            Request::Counters => {
                let _ = client.reply(&Reply::Counters, &[counters.descriptor()]);
                return;
            }
            Request::LlcAddress => Reply::LlcAddress { node: 1 },
            Request::LlcOpen { .. } => return self.open_socket(index),
            Request::LlcMapped | Request::LlcClose | Request::LlcCancel => Reply::Done,
            Request::Circulate { .. } | Request::UdpClose => Reply::Done,
            Request::UdpOpen { .. } => Reply::UdpUnavailable { sentence: "this node is a fake".into() },
            Request::UdpDiscarded => Reply::UdpDiscarded { packets: 0 },
            Request::Trace | Request::Incidents | Request::Incident { .. } => {
                Reply::Error { sentence: "a fake node keeps no events".into(), wrong_use: false }
            }
            Request::Modify { channel: UNDECIDED, .. } => return,
            Request::Modify { channel, change } => {
                let unit_octets_max = change.unit_octets_max.unwrap_or(0);
                let reply = self.modify(channel, unit_octets_max);
                let _ = self.clients[index].as_ref().unwrap().reply(&reply, &[]);
                return;
            }
        };
        let _ = client.reply(&reply, &[]);
    }

    fn open(&mut self, index: usize, request: Request) {
        let Request::Open { to, service, traffic, buffers, before, .. } = request else { unreachable!() };
        let (unit_octets_max, period_ns) = (traffic.unit_octets_max, traffic.period.as_nanos());
        if to == SILENT {
            return;
        }
        let client = self.clients[index].as_ref().unwrap();
        let refuse = |reply: Reply| client.reply(&reply, &[]).unwrap();
        // Its own name, or one of the twins by what tells them apart.
        let own = LlcPeer { name: "n1".into(), mac: "02:00:00:00:00:01".into(), ..LlcPeer::default() };
        let Some(from) = twins().find(|twin| twin.mac == to).or((to == "n1").then_some(own)) else {
            return refuse(Reply::NoSuchStation { sentence: format!("no station `{to}`; there is n1") });
        };
        if unit_octets_max > ROOM_OCTETS {
            return refuse(Reply::Refused(RefusalInfo {
                test: "cycle".into(),
                sentence: "the cycle is full".into(),
                counter_offer_octets: ROOM_OCTETS,
                ..RefusalInfo::default()
            }));
        }
        let heard = |client: &Client| client.listens.filter(|(heard, _)| *heard == service);
        let mut clients = self.clients.iter().enumerate();
        let found = clients.find_map(|(at, client)| Some((at, heard(client.as_ref()?)?.1)));
        let Some((taker, units)) = found else {
            return refuse(Reply::NoListener { sentence: format!("nobody listens to {service} on n1") });
        };
        let promise =
            Contract { unit_octets_max, period_ns, bound_ns: 2 * period_ns, extra_ppm: 0, buffers: 2 };
        let (cycle_ns, reserved_units, reserved_cycles) = (period_ns, 1, 1);
        let share = RetherShare { tht_ns: 1, cycle_ns, reserved_units, reserved_cycles, slot_offset_ns: 0 };
        let contract = Granted { contract: promise, rether: Some(share), ..Granted::default() };
        let source = NodeSource::create(SourceShape { buffers, unit_octets_max }).unwrap();
        let slots = rx_slots_for(units, unit_octets_max, FRAGMENT_OCTETS as u32);
        let shape = SinkShape { slots, fragment_octets: FRAGMENT_OCTETS as u32, unit_octets_max };
        let sink = rota_shm::NodeSink::create(shape).unwrap();
        let id = self.next_channel;
        self.next_channel.0 += 1;
        let accepted = Reply::Accepted {
            channel: id,
            from_node_id: NodeId(u64::from(from.node)),
            from_mac: from.mac,
            from_name: from.name,
            from_node: from.node,
            before,
            contract,
            queue: None,
            no_queue: None,
        };
        let listener = self.clients[taker].as_ref().unwrap();
        listener.news(&accepted, &sink.descriptors());
        let opened = Reply::Opened { channel: id, label: 1, contract };
        client.reply(&opened, &source.descriptors()).unwrap();
        let (sink, (live, closing, sent)) = (Some(sink.into_parts()), (false, false, 0));
        let untold = [false; 2];
        self.flows.push(Flow {
            id,
            contract,
            source,
            live,
            closing,
            owner: index,
            taker,
            untold,
            sink,
            sent,
        });
        // A listener takes one channel.
        self.clients[taker].as_mut().unwrap().listens = None;
    }

    /// The program that has the channel is told, and must not mind how often.
    fn modify(&mut self, channel: ChannelId, unit_octets_max: u32) -> Reply {
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.id == channel) else {
            return Reply::Error { sentence: format!("no channel {channel} here"), wrong_use: true };
        };
        flow.contract.contract.unit_octets_max = unit_octets_max;
        let contract = flow.contract;
        self.tell_changed(channel);
        Reply::Modified { channel, contract }
    }

    fn move_onto_tunnel(&mut self, channel: ChannelId) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.id == channel) {
            flow.contract.withdrawn = Some(Withdrawn::default());
            self.tell_changed(channel);
        }
    }

    fn tell_changed(&mut self, channel: ChannelId) {
        for flow in self.flows.iter_mut().filter(|flow| flow.id == channel) {
            flow.untold = [true; 2];
        }
        self.tell_changes();
    }

    /// As a node does: a program that has no room for such news hears of the last change once it reads.
    fn tell_changes(&mut self) {
        for flow in &mut self.flows {
            let changed = Reply::Changed { channel: flow.id, contract: flow.contract };
            for (client, untold) in [flow.owner, flow.taker].into_iter().zip(&mut flow.untold) {
                let told = |client: &Client| client.connection.send_reply(UNASKED, &changed, &[]);
                let is_stuck = |client| matches!(told(client), Err(SocketError::Stuck));
                *untold = *untold && self.clients[client].as_ref().is_some_and(is_stuck);
            }
        }
    }

    fn open_socket(&mut self, index: usize) {
        let shape = SocketShape { messages: 64, message_octets_max: 16_384, rx_slots: 64 };
        let memory = NodeSocket::create(shape).unwrap();
        let client = self.clients[index].as_mut().unwrap();
        let reply = Reply::LlcOpened { node: 1, cpu: None };
        client.reply(&reply, &memory.descriptors()).unwrap();
        client.socket = Some(memory);
    }

    fn finish_closing(&mut self, behaviour: Behaviour) {
        let clients = &self.clients;
        self.flows.retain_mut(|flow| {
            if !flow.closing || flow.id == behaviour.unconfirmed || flow.source.ring.waiting() != Ok(0) {
                return true;
            }
            let cause = behaviour.cause;
            let (written, left_out) = flow.source.ring.stated();
            let units = flow.sent;
            flow.source.board.set_tally(&Tally { units, ..Tally::default() });
            end(flow, cause, behaviour.final_units.unwrap_or(written + left_out));
            let reply = Reply::Closed {
                channel: flow.id,
                cause: cause.sentence().into(),
                final_units: Some(flow.sent),
            };
            if let Some(client) = &clients[flow.owner] {
                let _ = client.reply(&reply, &[]);
            }
            false
        });
    }
}

/// Two stations that somebody gave one name: their node addresses are 5 and 6.
fn twins() -> impl Iterator<Item = LlcPeer> {
    (2..=3).map(|station| LlcPeer {
        node: station as u8 + 3,
        station,
        name: "twin".into(),
        mac: format!("02:00:00:00:00:0{station}"),
    })
}

/// Ends a flow at both ends; false, so that it can stand in a `retain`.
fn end(flow: &Flow, cause: CloseCause, units: u64) -> bool {
    // Beyond the segment nobody states units.
    let sent = (cause.is_clean() && cause != CloseCause::TakenOut).then_some(units);
    flow.source.board.set_state(ChannelState::Closed(cause), sent);
    if let Some((_, board)) = &flow.sink {
        board.set_state(ChannelState::Closed(cause), sent);
    }
    false
}

/// Moves every waiting unit from the sender's ring into the receiver's.
fn carry(flow: &mut Flow, loss: Loss) {
    let Flow { source, sink, sent, contract, .. } = flow;
    let Some((ring, board)) = sink else { return };
    while let Some(unit) = source.ring.show().unwrap() {
        assert!(unit.octets <= contract.contract.unit_octets_max);
        let fragments = (unit.octets as usize).div_ceil(FRAGMENT_OCTETS).max(1);
        for fragment in 0..fragments {
            let offset = fragment * FRAGMENT_OCTETS;
            let octets = (unit.octets as usize - offset).min(FRAGMENT_OCTETS);
            let mut payload = vec![0; octets];
            assert!(source.ring.copy(&unit, offset as u32, &mut payload));
            if loss(unit.number, fragment as u16) {
                continue;
            }
            let descriptor = RingFragment {
                number: unit.number,
                fragment: fragment as u16,
                last: fragment + 1 == fragments,
                unit_octets: unit.octets,
                offset: offset as u32,
                schedule_ns: unit.schedule.as_nanos(),
                arrived_at: Some(now()),
                dequeued_at: now(),
                late: false,
            };
            assert!(ring.push(&descriptor, &payload));
        }
        board.notify();
        source.ring.release(&unit);
        *sent += 1;
        source.board.set_units_sent(*sent);
        source.board.notify();
    }
}

/// A span in milliseconds, to keep tests short.
pub fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Octets that differ from unit to unit.
pub fn unit_octets(number: u64, octets: usize) -> Vec<u8> {
    (0..octets).map(|at| (number as usize * 31 + at * 7) as u8).collect()
}

/// A schedule that is easy to recognise.
pub fn schedule(number: u64) -> Instant {
    Instant::from_nanos(1_000 + number)
}
