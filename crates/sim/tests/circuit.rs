//! SHIPNET-3-4, SHIPNET-F1, SHIPNET-F2: the reliable circuit on a wire that loses, doubles and delays,
//! between two programs that die at any moment and come back, with or without what they had kept.

use rota_proto::circuit::{
    CIRCUIT_HEADER_OCTETS, CircuitHeader, CircuitVerb, Fate, Mark, Pace, Receiver, Sender, SenderOutput,
};
use rota_sim::{Engine, Select, Stamped, Stream, WireFault, Wires};
use rota_units::{Instant, Span};
use rota_wire::DEFAULT_ETHERTYPE;
use std::collections::BTreeSet;

const PACE: Pace =
    Pace { first: Span::from_micros(900), least: Span::from_micros(400), most: Span::from_millis(20) };
const WIRE: Span = Span::from_micros(50);
const SENDER: usize = 0;
const RECEIVER: usize = 1;

enum Event {
    Arrives {
        to: usize,
        packet: Vec<u8>,
    },
    Deadline,
    /// The receiver's program of this life has finished with a message.
    Done {
        life: u64,
        taken: (u64, u64),
        mark: Mark,
    },
    Dies {
        end: usize,
    },
}

impl Stamped for Event {
    fn stamp(&self) -> u64 {
        match self {
            Self::Arrives { to, packet } => 1 + *to as u64 + packet.len() as u64,
            Self::Deadline => 3,
            Self::Done { mark, .. } => mark.number,
            Self::Dies { end } => 5 + *end as u64,
        }
    }
}

/// How often the two ends die, and what they keep.
#[derive(Clone, Copy)]
struct Plan {
    messages: u64,
    loss_ppm: u32,
    life: Span,
    sender_keeps: bool,
    receiver_keeps: bool,
}

/// What two programs and an onlooker know. A message's octets are its sender's incarnation and its number.
struct World {
    plan: Plan,
    engine: Engine<Event>,
    wires: Wires,
    random: Stream,
    sender: Sender,
    receiver: Receiver,
    life: u64,
    armed: Instant,
    /// What survives the programs.
    kept: Option<Mark>,
    settled: u64,
    /// What the onlooker saw the receiver's programs do, in order.
    effects: Vec<(u64, u64)>,
    confirmed: BTreeSet<(u64, u64)>,
    in_doubt: BTreeSet<(u64, u64)>,
    deaths: [u64; 2],
    /// What came again, and what came too late, over all lives.
    old_news: [u64; 2],
}

impl World {
    fn new(seed: u64, plan: Plan) -> Self {
        let mut wires = Wires::new(DEFAULT_ETHERTYPE, Span::ZERO);
        let late = Span::from_millis(3);
        let faults = [
            WireFault::Loss { ppm: plan.loss_ppm, burst: 1 },
            WireFault::Duplicate { ppm: 100_000, copies: 2, delay: late },
            WireFault::Delay { ppm: 50_000, min: Span::ZERO, max: late },
        ];
        for (k, fault) in faults.into_iter().enumerate() {
            wires.disturb(fault, Select::all(), Instant::FAR, Stream::named(seed, &format!("fault {k}")));
        }
        let mut random = Stream::named(seed, "programs");
        let mut engine = Engine::new(Instant::ZERO);
        for end in [SENDER, RECEIVER] {
            engine.schedule(
                Instant::ZERO + Span::from_nanos(random.below(plan.life.as_nanos())),
                Event::Dies { end },
            );
        }
        let (sender, receiver) = (Sender::new(random.draw(), PACE), Receiver::new(random.draw()));
        let (effects, confirmed, in_doubt) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let (life, armed, kept, settled, deaths) = (0, Instant::FAR, None, 0, [0; 2]);
        let old_news = [0; 2];
        Self {
            plan,
            engine,
            wires,
            random,
            sender,
            receiver,
            life,
            armed,
            kept,
            settled,
            effects,
            confirmed,
            in_doubt,
            deaths,
            old_news,
        }
    }

    fn transmit(&mut self, from: usize, header: CircuitHeader) {
        let mut packet = vec![0; CIRCUIT_HEADER_OCTETS];
        header.emit(&mut packet);
        if header.verb == CircuitVerb::Data {
            packet.extend(header.sender.to_be_bytes());
            packet.extend(header.number.to_be_bytes());
        }
        let (mut strikes, mut passed) = (Vec::new(), Vec::new());
        self.wires.pass(self.engine.now(), from, 1 - from, packet.into(), &mut strikes, &mut passed);
        for copy in passed {
            let event = Event::Arrives { to: 1 - from, packet: copy.frame.to_vec() };
            self.engine.schedule(self.engine.now() + WIRE + copy.late, event);
        }
    }

    /// Offers the next message and does what the sender wants.
    fn drain_sender(&mut self) {
        loop {
            if self.settled < self.plan.messages {
                self.sender.offer();
            }
            let Some(output) = self.sender.poll(self.engine.now()) else { break };
            match output {
                SenderOutput::Transmit(header) => self.transmit(SENDER, header),
                SenderOutput::Settled(fate) => self.on_fate(fate),
            }
        }
        if let Some(at) = self.sender.deadline().filter(|&at| at != self.armed) {
            self.armed = at;
            self.engine.schedule(at, Event::Deadline);
        }
    }

    fn on_fate(&mut self, fate: Fate) {
        let sender = self.sender.mark().sender;
        self.settled += 1;
        let is_new = match fate {
            Fate::Delivered { number } => self.confirmed.insert((sender, number)),
            Fate::InDoubt { number } => self.in_doubt.insert((sender, number)),
            Fate::Disagreed { .. } => panic!("both ends kept their marks: {fate:?}"),
        };
        assert!(is_new, "settled twice: {fate:?}");
    }

    fn arrives(&mut self, to: usize, packet: &[u8]) {
        let (header, message) = CircuitHeader::parse(packet).expect("nothing is damaged here");
        if to == SENDER {
            self.sender.handle(self.engine.now(), &header);
            return self.drain_sender();
        }
        if let Some(taken) = self.receiver.handle(&header) {
            let octets = |part: &[u8]| u64::from_be_bytes(part.try_into().unwrap());
            let told = (octets(&message[..8]), octets(&message[8..]));
            assert_eq!(told, (header.sender, taken.number), "the message is the one its header names");
            let work = Span::from_nanos(self.random.below(200_000));
            let done = Event::Done { life: self.life, taken: told, mark: taken.mark };
            self.engine.schedule(self.engine.now() + work, done);
        }
        self.answer();
    }

    fn answer(&mut self) {
        while let Some(answer) = self.receiver.poll() {
            self.transmit(RECEIVER, answer);
        }
    }

    fn dies(&mut self, end: usize) {
        self.deaths[end] += 1;
        let again = Span::from_nanos(self.random.below(2 * self.plan.life.as_nanos()));
        self.engine.schedule(self.engine.now() + again, Event::Dies { end });
        if end == SENDER {
            self.old_news[SENDER] += self.sender.stale();
            // A message that the dead program had on its way is nobody's any more, unless the next one takes
            // it up.
            let (fresh, serial) = (self.random.draw(), self.random.draw() as u32);
            self.sender = if self.plan.sender_keeps {
                Sender::resume(self.sender.mark(), PACE, serial)
            } else {
                self.in_doubt.insert((self.sender.mark().sender, self.sender.mark().number));
                Sender::new(fresh, PACE)
            };
            return self.drain_sender();
        }
        self.life += 1;
        self.old_news[RECEIVER] += self.receiver.doubles();
        let seed = self.random.draw();
        let kept = self.kept.filter(|_| self.plan.receiver_keeps);
        self.receiver = kept.map_or_else(|| Receiver::new(seed), |mark| Receiver::resume(seed, mark));
    }

    fn run(mut self) -> Self {
        self.drain_sender();
        while self.settled < self.plan.messages {
            match self.engine.next(Instant::FAR).expect("a sender that waits has a deadline") {
                Event::Arrives { to, packet } => self.arrives(to, &packet),
                Event::Deadline => {
                    self.sender.handle_deadline(self.engine.now());
                    self.drain_sender();
                }
                Event::Done { life, taken, mark } if life == self.life => {
                    // The effect and the mark are kept in one step; some programs die right behind it.
                    self.effects.push(taken);
                    self.kept = Some(mark);
                    if self.random.happens(500) {
                        self.dies(RECEIVER);
                    } else {
                        self.receiver.confirm();
                        self.answer();
                    }
                }
                Event::Done { .. } => {}
                Event::Dies { end } => self.dies(end),
            }
        }
        self
    }
}

/// Nothing doubled, and nothing of one incarnation out of its order.
fn once_and_in_order(effects: &[(u64, u64)]) {
    let mut ended = BTreeSet::new();
    for pair in effects.windows(2) {
        let ((before, was), (sender, number)) = (pair[0], pair[1]);
        if before == sender {
            assert!(number > was, "{number} came after {was}");
        } else {
            ended.insert(before);
            assert!(!ended.contains(&sender), "a dead sender spoke again");
        }
    }
}

#[test]
fn a_million_messages_at_30_percent_loss_with_restarts_arrive_once_and_in_order() {
    let life = Span::from_millis(1_000);
    let plan =
        Plan { messages: 1_000_000, loss_ppm: 300_000, life, sender_keeps: true, receiver_keeps: true };
    let world = World::new(1988, plan).run();
    let sender = world.sender.mark().sender;
    let wanted: Vec<(u64, u64)> = (0..plan.messages).map(|number| (sender, number)).collect();
    assert!(world.effects == wanted, "0 lost, 0 doubled, 0 reordered; {} came", world.effects.len());
    assert!(world.in_doubt.is_empty() && world.confirmed.len() as u64 == plan.messages);
    assert!(world.deaths.iter().all(|&deaths| deaths > 500), "restarts were tried: {:?}", world.deaths);
    assert!(world.old_news.iter().all(|&old| old > 10_000), "old news was ignored: {:?}", world.old_news);
}

#[test]
fn ends_that_forget_lose_nothing_silently_and_double_nothing() {
    let life = Span::from_millis(50);
    for (seed, (sender_keeps, receiver_keeps)) in
        (1u64..).zip([(false, false), (true, false), (false, true), (false, false)])
    {
        let plan = Plan { messages: 40_000, loss_ppm: 300_000, life, sender_keeps, receiver_keeps };
        let world = World::new(seed, plan).run();
        once_and_in_order(&world.effects);
        let effects: BTreeSet<(u64, u64)> = world.effects.iter().copied().collect();
        assert!(world.confirmed.is_subset(&effects), "what is called delivered was delivered");
        let silent =
            |effect: &&(u64, u64)| !world.confirmed.contains(effect) && !world.in_doubt.contains(effect);
        let unaccounted: Vec<_> = effects.iter().filter(silent).collect();
        // The message of the very end may have been taken, and its acknowledgement be on the way.
        assert!(unaccounted.len() <= 1, "{unaccounted:?}");
        assert!(world.deaths.iter().all(|&deaths| deaths > 100), "{:?}", world.deaths);
        assert!(!world.in_doubt.is_empty(), "a doubt was met, so that this test has tested it");
    }
}

#[test]
fn a_sender_with_an_old_mark_is_told_so() {
    let mut receiver = Receiver::resume(7, Mark { sender: 1, number: 5 });
    let mut sender = Sender::resume(Mark { sender: 1, number: 3 }, PACE, 9);
    assert_eq!(sender.offer(), Some(3));
    let Some(SenderOutput::Transmit(open)) = sender.poll(Instant::ZERO) else { panic!("it asks first") };
    receiver.handle(&open);
    sender.handle(Instant::ZERO, &receiver.poll().expect("a welcome"));
    let settled = sender.poll(Instant::ZERO);
    assert_eq!(settled, Some(SenderOutput::Settled(Fate::Disagreed { number: 3, taken: 5 })));
}

/// The timer of a message that is done with would send one that nobody has offered.
#[test]
fn a_sender_without_a_message_has_no_deadline_and_sends_nothing() {
    let (mut sender, mut receiver) = (Sender::new(1, PACE), Receiver::new(7));
    assert_eq!(sender.offer(), Some(0));
    let settled = loop {
        match sender.poll(Instant::ZERO).expect("no frame is lost") {
            SenderOutput::Settled(fate) => break fate,
            SenderOutput::Transmit(header) => {
                if receiver.handle(&header).is_some() {
                    receiver.confirm();
                }
                sender.handle(Instant::ZERO, &receiver.poll().expect("an answer"));
            }
        }
    };
    assert_eq!((settled, sender.deadline()), (Fate::Delivered { number: 0 }, None));
    let later = Instant::ZERO + PACE.most;
    sender.handle_deadline(later);
    assert_eq!(sender.poll(later), None);
}
