//! Circuits as clients of the task scheduler: the shipping machines, whose next TPDU it chooses.

use rota_proto::task::{Class, ClientId, Next, Scheduler, Terms};
use rota_proto::vc::{Listener, ListenerLimits, Pace, Request, Sink, Source};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{CookieKey, FlowControl, Quality, TPDU_HEADER_OCTETS, Tpdu};

const TPDU: usize = 1_000;
/// The port carries one TPDU in this time, and that is its cost.
const SLOT: Span = Span::from_micros(10);

/// An open circuit, both its ends.
struct Circuit {
    source: Source,
    sink: Sink,
    client: ClientId,
    calls: u64,
}

struct Port {
    scheduler: Scheduler,
    circuits: Vec<Circuit>,
    now: Instant,
    out: Vec<u8>,
}

impl Port {
    fn new() -> Self {
        let (scheduler, now) = (Scheduler::new(8), Instant::from_nanos(1_000_000));
        Self { scheduler, circuits: vec![], now, out: vec![0; TPDU + TPDU_HEADER_OCTETS] }
    }

    /// Opens a circuit with work without end. Only a rate holds one back, if it has one.
    fn open(&mut self, class: Class, weight: u16, rate: Option<BitRate>) {
        let (number, pace) = (self.circuits.len() as u32, Pace::ETHERNET);
        let flow = if rate.is_some() { FlowControl::Bucket } else { FlowControl::Open };
        let bucket = rate.map(|rate| (Octets::new(2_500), rate));
        let quality = Quality { flow, ..Quality::RELIABLE };
        let request = Request { service: 1, number, window: 32, tpdu: TPDU as u16, quality, bucket };
        let mut source = Source::open(self.now, &request, 9, pace).expect("a sound request");
        let limits = ListenerLimits { window: 32, tpdu: TPDU as u16, half_open: 4 };
        let mut listener = Listener::new(1, CookieKey::new([1; 16]), limits, pace);
        let offer = loop {
            let length = source.transmit(self.now, &mut self.out).expect("a step");
            let (step, _) = Tpdu::parse(&self.out[..length]).expect("a sound TPDU");
            listener.handle(self.now, 1, &step, true);
            if let Some(offer) = listener.offer() {
                break offer;
            }
            source.handle(self.now, &listener.poll(self.now).expect("an answer").1);
        };
        let mut sink = Sink::new(self.now, &offer, pace);
        while let Some(length) = sink.transmit(self.now, &mut self.out) {
            source.handle(self.now, &Tpdu::parse(&self.out[..length]).expect("a sound TPDU").0);
        }
        let client = self.scheduler.register(Terms { class, weight, cost: SLOT }).expect("room");
        self.circuits.push(Circuit { source, sink, client, calls: 0 });
        self.writes(number as usize);
        self.scheduler.schedule(client);
    }

    /// The program of a circuit hands over what fits.
    fn writes(&mut self, at: usize) {
        while self.circuits[at].source.write(&[7; TPDU], true).ended {}
    }

    /// So many TPDUs leave, or as much time passes.
    fn run(&mut self, slots: usize) {
        for _ in 0..slots {
            if let Some(call) = self.scheduler.poll(self.now) {
                let at = self.circuits.iter().position(|circuit| circuit.client == call.client);
                let at = at.expect("a circuit");
                self.circuits[at].calls += 1;
                let (units, next) = self.leaves(at);
                self.scheduler.done(self.now, units, next);
            }
            self.now += SLOT;
        }
    }

    /// The task of a circuit: one TPDU at most, and what the circuit wants next.
    fn leaves(&mut self, at: usize) -> (u16, Next) {
        let (now, Circuit { source, sink, .. }) = (self.now, &mut self.circuits[at]);
        source.handle_deadline(now);
        let length = source.transmit(now, &mut self.out);
        if let Some(length) = length {
            let (tpdu, data) = Tpdu::parse(&self.out[..length]).expect("a sound TPDU");
            sink.handle(now, &tpdu, data);
            while sink.take() {}
            let _ = sink.event();
            while let Some(length) = sink.transmit(now, &mut self.out) {
                source.handle(now, &Tpdu::parse(&self.out[..length]).expect("a sound TPDU").0);
            }
            let _ = source.event();
        }
        self.writes(at);
        let source = &mut self.circuits[at].source;
        let next = match source.deadline(now) {
            _ if source.wants(now).is_some() => Next::Ready,
            Some((at, _)) => Next::At(at),
            None => Next::Rest,
        };
        (u16::from(length.is_some()), next)
    }

    fn calls(&self) -> Vec<u64> {
        self.circuits.iter().map(|circuit| circuit.calls).collect()
    }

    /// Nearly all calls carry data; the other TPDUs are the machines' own.
    fn carries_data(&self) -> bool {
        let carries = |circuit: &Circuit| circuit.sink.counts().tpdus * 10 >= circuit.calls * 9;
        self.circuits.iter().all(carries)
    }
}

#[test]
fn circuits_share_a_port_by_class_and_weight() {
    let mut port = Port::new();
    port.open(Class::Guaranteed, 3, None);
    port.open(Class::Guaranteed, 1, None);
    port.open(Class::Reliable, 1, None);
    port.open(Class::BestEffort, 1, None);
    port.run(4_000);
    assert_eq!(port.calls(), [3_000, 1_000, 0, 0], "the classes below wait");
    assert!(port.carries_data());
}

/// A guaranteed circuit sleeps until its bucket has enough, by a deadline and no tick; the others share what
/// it leaves.
#[test]
fn what_guaranteed_circuits_leave_is_shared_evenly() {
    let mut port = Port::new();
    // 1,032 octets once in 30 us, of the slots one in three.
    port.open(Class::Guaranteed, 2, BitRate::new(1_032 * 8 * 1_000_000 / 30));
    port.open(Class::Reliable, 1, None);
    port.open(Class::Reliable, 1, None);
    port.run(9_000);
    let calls = port.calls();
    println!("{calls:?}");
    assert!((2_800..=3_200).contains(&calls[0]), "{calls:?}");
    assert!(calls[1].abs_diff(calls[2]) <= 1 && calls.iter().sum::<u64>() == 9_000, "{calls:?}");
    assert!(port.carries_data());
}
