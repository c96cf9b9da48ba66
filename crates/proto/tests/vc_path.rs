//! A circuit between two programs over a path that loses, doubles and reorders.

use crate::dice::Dice;
use rota_proto::vc::{
    End, Listener, ListenerLimits, Losses, Pace, Request, Sink, SinkEvent, Source, SourceEvent, Timer,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{CookieKey, FlowControl, Quality, Tpdu, TpduBody};
use std::collections::BTreeMap;

pub const TPDU: u16 = 100;
pub const PACE: Pace = Pace {
    first: Span::from_millis(2),
    least: Span::from_millis(1),
    most: Span::from_millis(100),
    silence: Span::from_millis(2_000),
    reorder: 3,
};

pub fn request(quality: Quality, window: u64) -> Request {
    let bucket = (quality.flow == FlowControl::Bucket).then(|| (Octets::new(4_000), BitRate::from_mbit(4)));
    Request { service: 1, number: 5, window, tpdu: TPDU, quality, bucket }
}

/// The faults that a run meets, in a thousand.
#[derive(Clone, Copy, Debug)]
pub struct Net {
    pub lost: u64,
    pub ack_lost: u64,
    pub doubled: u64,
    /// Longest extra delay, ns.
    pub jitter: u64,
    /// One way, ns.
    pub delay: u64,
    /// The time of a TPDU at the sender's port, ns.
    pub slot: u64,
}

pub const QUIET: Net = Net { lost: 0, ack_lost: 0, doubled: 0, jitter: 0, delay: 500_000, slot: 10_000 };

pub struct Path {
    pub now: Instant,
    pub net: Net,
    pub dice: Dice,
    pub source: Source,
    listener: Listener,
    pub sink: Option<Sink>,
    queue: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    order: u64,
    port_free: Instant,
    /// The receiver's program reads one time of so many; 0: never.
    pub reads: u64,
    /// What the receiver's program took: the parts of each message, or of a stream, with the gap before each.
    pub read: Vec<(u64, Vec<u8>)>,
    part: Vec<u8>,
    pub ends: (Option<End>, Option<End>),
    /// What the sink said of losses when it ended or last.
    pub losses: Losses,
    /// TPDUs of data, acknowledgements, and asks that have left.
    pub sent: [u64; 3],
    /// When each TPDU of data has left.
    pub left: Vec<(Instant, u64)>,
    /// When the sender's program could write for the first time.
    pub opened: Option<Instant>,
    /// A step goes no farther than this.
    pub until: Instant,
}

impl Path {
    pub fn new(seed: u64, net: Net, request: &Request) -> Self {
        let now = Instant::from_nanos(1_000_000);
        let limits = ListenerLimits { window: 1_024, tpdu: TPDU, half_open: 4 };
        Self {
            now,
            net,
            dice: Dice(seed),
            source: Source::open(now, request, 77, PACE).expect("a sound request"),
            listener: Listener::new(1, CookieKey::new([3; 16]), limits, PACE),
            sink: None,
            queue: BTreeMap::new(),
            order: 0,
            port_free: now,
            reads: 1,
            read: vec![],
            part: vec![],
            ends: (None, None),
            losses: Losses::default(),
            sent: [0; 3],
            left: vec![],
            opened: None,
            until: Instant::FAR,
        }
    }

    fn put(&mut self, to_sink: bool, octets: &[u8]) {
        let (tpdu, _) = Tpdu::parse(octets).expect("a sound TPDU");
        match tpdu.body {
            TpduBody::Data { sequence, .. } => {
                self.sent[0] += 1;
                self.left.push((self.now, sequence));
            }
            TpduBody::Ack { .. } => self.sent[1] += 1,
            TpduBody::Ask => self.sent[2] += 1,
            _ => {}
        }
        let lost = if to_sink { self.net.lost } else { self.net.ack_lost };
        let copies = 1 + u64::from(self.dice.below(1_000) < self.net.doubled);
        for _ in 0..copies {
            if self.dice.below(1_000) >= lost {
                let late = self.net.delay + self.dice.below(self.net.jitter + 1);
                self.order += 1;
                self.queue.insert((self.now + Span::from_nanos(late), self.order), (to_sink, octets.into()));
            }
        }
    }

    fn arrives(&mut self, to_sink: bool, octets: &[u8]) {
        let (tpdu, data) = Tpdu::parse(octets).expect("a sound TPDU");
        match &mut self.sink {
            _ if !to_sink => self.source.handle(self.now, &tpdu),
            Some(sink) if sink.circuit() == tpdu.circuit => sink.handle(self.now, &tpdu, data),
            _ => self.listener.handle(self.now, 9, &tpdu, true),
        }
    }

    /// The programs hear, and the receiver's reads.
    fn hear(&mut self) {
        if let Some(offer) = self.listener.offer() {
            self.sink = Some(Sink::new(self.now, &offer, PACE));
        }
        while let Some((_, tpdu)) = self.listener.poll(self.now) {
            let mut out = [0; 64];
            let length = tpdu.emit(0, &mut out);
            self.put(false, &out[..length]);
        }
        match self.source.event() {
            Some(SourceEvent::Opened(_)) => self.opened = Some(self.now),
            Some(SourceEvent::Ended(end)) => self.ends.0 = Some(end),
            None => {}
        }
        let Some(sink) = &mut self.sink else { return };
        if let Some(SinkEvent::Ended(end)) = sink.event() {
            self.ends.1 = Some(end);
        }
        while self.reads > 0 && self.dice.below(self.reads) == 0 {
            let gap = sink.gap();
            let Some((piece, data)) = sink.peek() else { break };
            self.part.extend(data);
            let is_stream = sink.terms().quality.stream;
            // The TPDU that is seen ahead comes next, and without a gap.
            let ahead = sink.peek_ahead(1).map(|(piece, data)| (piece, data.to_vec()));
            assert!(sink.take());
            if ahead.is_some() {
                assert_eq!(sink.peek().map(|(piece, data)| (piece, data.to_vec())), ahead);
                assert_eq!(sink.gap(), 0);
            }
            if piece.last || is_stream {
                self.read.push((gap, core::mem::take(&mut self.part)));
            }
        }
        self.losses = sink.losses();
        if let Some(SinkEvent::Ended(end)) = sink.event() {
            self.ends.1 = Some(end);
        }
    }

    /// One step; false if nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        let mut out = [0; 200];
        self.hear();
        while let Some(length) = self.sink.as_mut().and_then(|sink| sink.transmit(self.now, &mut out)) {
            self.put(false, &out[..length]);
        }
        if self.port_free <= self.now
            && let Some(length) = self.source.transmit(self.now, &mut out)
        {
            self.port_free = self.now + Span::from_nanos(self.net.slot);
            self.put(true, &out[..length]);
            self.hear();
        }
        let Some((at, _)) = self.next() else { return false };
        self.now = at.max(self.now).min(self.until);
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= self.now) {
            let (_, (to_sink, octets)) = self.queue.pop_first().expect("it is there");
            self.arrives(to_sink, &octets);
            self.hear();
        }
        self.source.handle_deadline(self.now);
        self.sink.iter_mut().for_each(|sink| sink.handle_deadline(self.now));
        self.listener.handle_deadline(self.now);
        self.hear();
        true
    }

    fn next(&mut self) -> Option<(Instant, Timer)> {
        let now = self.now;
        let frame = self.queue.first_key_value().map(|((at, _), _)| (*at, Timer::Ask));
        let port = self.source.wants(now).map(|_| (self.port_free.max(now), Timer::Ask));
        // A program that reads slowly reads on by itself.
        let unread = self.reads > 0 && self.sink.as_ref().is_some_and(|sink| sink.peek().is_some());
        let reads = unread.then(|| (now + Span::from_micros(50), Timer::Ask));
        let ends = [self.source.deadline(now), self.sink.as_ref().and_then(|sink| sink.deadline(now))];
        let all = ends.into_iter().chain([self.listener.deadline(now), frame, port, reads]);
        all.flatten().min()
    }

    /// Sends these messages, or a stream of them, closes and waits for both ends.
    pub fn send(&mut self, messages: &[Vec<u8>]) {
        let (mut at, mut written) = (0, 0);
        for step in 0.. {
            assert!(step < 4_000_000, "it never ends: {:?}", self.ends);
            while at < messages.len() && self.ends.0.is_none() {
                let done = self.source.write(&messages[at][written..], true);
                written += done.octets;
                if !done.ended || written < messages[at].len() {
                    break;
                }
                (at, written) = (at + 1, 0);
            }
            if at == messages.len() {
                self.source.close().expect("each message has its end");
            }
            if !self.step() || (self.ends.0.is_some() && self.ends.1.is_some()) {
                return;
            }
        }
    }
}

/// Messages whose octets tell their number and place.
pub fn messages(sizes: &[usize]) -> Vec<Vec<u8>> {
    let octet = |number: usize, at: usize| (number * 31 + at * 7 + (at >> 8)) as u8;
    let one = |(number, size): (usize, &usize)| (0..*size).map(|at| octet(number, at)).collect();
    sizes.iter().enumerate().map(one).collect()
}
