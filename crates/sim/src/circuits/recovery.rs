//! Recovery from losses, three ways over the same path (TRANSPORT-R80): the shipping machines with SMART,
//! go-back-N, and TCP's NewReno.
//!
//! A path of slots: one TPDU leaves in a slot, and its acknowledgement is back a round trip later. Data is
//! lost at random, acknowledgements are not. Each sender always has more to send, and a window of two round
//! trips. Go-back-N learns of a loss a round trip after the TPDU left, the earliest that it can. NewReno
//! (RFC 6582) has slow start, fast retransmission at the third duplicate and a time-out of four round trips;
//! its window is in thousandths of a TPDU.

use crate::engine::Stream;
use rota_proto::vc::{Listener, ListenerLimits, Pace, Request, Sink, Source};
use rota_units::{Instant, Span};
use rota_wire::{CookieKey, FlowControl, Quality, Tpdu, TpduBody};
use std::collections::{BTreeSet, VecDeque};

const SLOT: Span = Span::from_micros(100);

/// The path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// TPDUs lost, of a million.
    pub loss_ppm: u32,
    /// Slots of a round trip; even.
    pub trip: u64,
    /// Slots of the run.
    pub slots: u64,
}

/// What became of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// TPDUs that are known to have arrived in sequence.
    pub delivered: u64,
    /// TPDUs sent for a second time or more.
    pub again: u64,
}

impl Path {
    fn dice(&self, seed: u64) -> Stream {
        Stream::named(seed, "recovery")
    }

    /// The shipping machines: SMART under the window of error control alone, or with the dynamic window of
    /// flow control too.
    pub fn smart(&self, seed: u64, flow: FlowControl) -> Recovered {
        let mut random = self.dice(seed);
        let trip = SLOT * self.trip;
        let pace = Pace { first: trip, least: trip, most: trip * 100, silence: trip * 1_000, reorder: 1 };
        let quality = Quality { flow, ..Quality::RELIABLE };
        let window = 2 * self.trip;
        let request = Request { service: 1, number: 1, window, tpdu: 8, quality, bucket: None };
        let mut source = Source::open(Instant::ZERO, &request, 1, pace).expect("a sound request");
        let limits = ListenerLimits { window: window as u32, tpdu: 8, half_open: 1 };
        let mut listener = Listener::new(1, CookieKey::new([7; 16]), limits, pace);
        let mut sink: Option<Sink> = None;
        // One way takes half a round trip.
        let mut there: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
        let mut back = there.clone();
        let mut buffer = [0; 128];
        for slot in 0..self.slots {
            let now = Instant::ZERO + SLOT * slot;
            source.handle_deadline(now);
            while let Some(octets) = due(&mut back, slot) {
                let (tpdu, _) = Tpdu::parse(&octets).expect("written by a machine");
                source.handle(now, &tpdu);
            }
            while let Some(octets) = due(&mut there, slot) {
                let (tpdu, data) = Tpdu::parse(&octets).expect("written by a machine");
                match &mut sink {
                    Some(sink) => sink.handle(now, &tpdu, data),
                    None => listener.handle(now, 1, &tpdu, true),
                }
                sink = sink.or_else(|| listener.offer().map(|offer| Sink::new(now, &offer, pace)));
            }
            if let Some((_, tpdu)) = listener.poll(now) {
                let length = tpdu.emit(0, &mut buffer);
                back.push_back((slot + self.trip / 2, buffer[..length].to_vec()));
            }
            if let Some(sink) = &mut sink {
                while sink.take() {}
                while let Some(length) = sink.transmit(now, &mut buffer) {
                    back.push_back((slot + self.trip / 2, buffer[..length].to_vec()));
                }
            }
            while source.write(&[5; 8], true).ended {}
            if let Some(length) = source.transmit(now, &mut buffer) {
                let (tpdu, _) = Tpdu::parse(&buffer[..length]).expect("written by a machine");
                let is_data = matches!(tpdu.body, TpduBody::Data { .. });
                if !(is_data && random.happens(self.loss_ppm)) {
                    there.push_back((slot + self.trip / 2, buffer[..length].to_vec()));
                }
            }
        }
        Recovered { delivered: source.counts_taken().tpdus, again: source.resent() }
    }

    /// Go-back-N.
    pub fn go_back(&self, seed: u64) -> Recovered {
        let mut random = self.dice(seed);
        let mut flying: VecDeque<(u64, u64, bool)> = VecDeque::new();
        let (mut next, mut top, mut all) = (1, 0, Recovered::default());
        for slot in 0..self.slots {
            while flying.front().is_some_and(|(at, ..)| at + self.trip <= slot) {
                let Some((_, number, arrives)) = flying.pop_front() else { break };
                if arrives {
                    all.delivered = number;
                } else {
                    // All that left behind it is out of sequence, and was sent for nothing.
                    next = number;
                    flying.clear();
                }
            }
            all.again += u64::from(next <= top);
            top = top.max(next);
            flying.push_back((slot, next, !random.happens(self.loss_ppm)));
            next += 1;
        }
        all
    }

    /// TCP.
    pub fn new_reno(&self, seed: u64) -> Recovered {
        let mut tcp = NewReno::new(self.trip);
        let mut random = self.dice(seed);
        let (mut cum, mut beyond) = (0, BTreeSet::new());
        let mut acks = VecDeque::new();
        for slot in 0..self.slots {
            while let Some(ack) = due(&mut acks, slot) {
                tcp.acknowledged(slot, ack);
            }
            let Some(number) = tcp.sends(slot) else { continue };
            if random.happens(self.loss_ppm) {
                continue;
            }
            // The receiver's view half a round trip later; nothing overtakes anything.
            if number > cum {
                beyond.insert(number);
            }
            while beyond.remove(&(cum + 1)) {
                cum += 1;
            }
            acks.push_back((slot + self.trip, cum));
        }
        Recovered { delivered: tcp.una, again: tcp.again }
    }
}

/// The next of those that have been on their way for long enough.
pub(super) fn due<T>(queue: &mut VecDeque<(u64, T)>, slot: u64) -> Option<T> {
    let is_due = queue.front().is_some_and(|(at, _)| *at <= slot);
    if is_due { queue.pop_front().map(|(_, what)| what) } else { None }
}

/// The sender of NewReno.
#[derive(Debug)]
struct NewReno {
    trip: u64,
    /// All up to here are acknowledged.
    una: u64,
    next: u64,
    top: u64,
    /// Thousandths of a TPDU.
    window: u64,
    threshold: u64,
    duplicates: u32,
    /// Recovery lasts until this one is acknowledged.
    recover: Option<u64>,
    resend: Option<u64>,
    expires: u64,
    doublings: u32,
    again: u64,
}

impl NewReno {
    const fn new(trip: u64) -> Self {
        Self {
            trip,
            una: 0,
            next: 1,
            top: 0,
            window: 2_000,
            threshold: u64::MAX,
            duplicates: 0,
            recover: None,
            resend: None,
            expires: u64::MAX,
            doublings: 0,
            again: 0,
        }
    }

    const fn flight(&self) -> u64 {
        self.next - 1 - self.una
    }

    fn arm(&mut self, slot: u64) {
        self.expires = slot + ((4 * self.trip) << self.doublings.min(6));
    }

    fn halve(&mut self) {
        self.threshold = (self.flight() * 500).max(2_000);
    }

    fn acknowledged(&mut self, slot: u64, cum: u64) {
        if cum > self.una {
            let news = cum - self.una;
            self.una = cum;
            self.next = self.next.max(cum + 1);
            (self.duplicates, self.doublings) = (0, 0);
            self.arm(slot);
            match self.recover {
                Some(recover) if cum < recover => {
                    self.resend = Some(cum + 1);
                    self.window = self.window.saturating_sub(news * 1_000).max(1_000) + 1_000;
                }
                Some(_) => (self.recover, self.window) = (None, self.threshold),
                None if self.window < self.threshold => self.window += news * 1_000,
                None => self.window += news * 1_000_000 / self.window,
            }
        } else if self.flight() > 0 {
            self.duplicates += 1;
            if self.recover.is_some() {
                self.window += 1_000;
            } else if self.duplicates == 3 {
                self.halve();
                self.window = self.threshold + 3_000;
                (self.recover, self.resend) = (Some(self.next - 1), Some(self.una + 1));
            }
        }
    }

    fn sends(&mut self, slot: u64) -> Option<u64> {
        if slot >= self.expires && self.flight() > 0 {
            self.halve();
            (self.window, self.next) = (1_000, self.una + 1);
            (self.recover, self.resend, self.duplicates) = (None, None, 0);
            self.doublings += 1;
            self.arm(slot);
        }
        let number = self.resend.take().or_else(|| {
            let most = (self.window / 1_000).min(2 * self.trip);
            (self.flight() < most).then(|| {
                self.next += 1;
                self.next - 1
            })
        })?;
        if self.expires == u64::MAX {
            self.arm(slot);
        }
        self.again += u64::from(number <= self.top);
        self.top = self.top.max(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { loss_ppm: 0, trip: 32, slots: 60_000 };

    /// TRANSPORT-R29, TRANSPORT-R80: resends for each TPDU against p/(1 - p) and R·p/(1 - p), and the rate of
    /// go-back-N against (1 - p)/(1 - p + p·R).
    #[test]
    fn smart_sends_the_least_again_and_go_back_n_a_round_trip_for_each_loss() {
        for ppm in [10_000, 50_000] {
            let path = Path { loss_ppm: ppm, ..PATH };
            let p = f64::from(ppm) / 1e6;
            let share = |all: Recovered| all.again as f64 / all.delivered as f64;
            let smart = share(path.smart(1, FlowControl::Open));
            assert!(smart < 1.15 * p / (1.0 - p), "SMART at {p}: {smart}");
            let back = path.go_back(1);
            let theory = 32.0 * p / (1.0 - p);
            assert!((share(back) / theory - 1.0).abs() < 0.1, "at {p}: {} and {theory}", share(back));
            let rate = back.delivered as f64 / path.slots as f64;
            let theory = (1.0 - p) / (1.0 - p + 32.0 * p);
            assert!((rate / theory - 1.0).abs() < 0.1, "at {p}: {rate} and {theory}");
        }
    }

    #[test]
    fn without_loss_all_fill_the_path_and_over_loss_smart_carries_more_than_tcp_and_go_back_n() {
        let all = |ppm| {
            let path = Path { loss_ppm: ppm, ..PATH };
            [path.smart(2, FlowControl::Open), path.go_back(2), path.new_reno(2)]
        };
        for quick in all(0) {
            assert_eq!(quick.again, 0);
            assert!(quick.delivered > 59_000, "{quick:?}");
        }
        let [smart, back, tcp] = all(10_000).map(|all| all.delivered);
        assert!(smart > 55_000 && smart > back + 10_000 && smart > tcp + 10_000, "{smart} {back} {tcp}");
    }
}
