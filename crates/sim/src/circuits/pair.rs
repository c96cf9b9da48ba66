//! Both ends of a circuit in one place, with nothing between them: what their machines do for a message, for
//! those who measure what it costs a CPU.

use rota_proto::vc::{Listener, ListenerLimits, Pace, Request, Sink, Source};
use rota_units::{Instant, Span};
use rota_wire::{CookieKey, Quality, TPDU_HEADER_OCTETS, Tpdu};

const SERVICE: u32 = 1;
const PEER: u64 = 1;
/// Between two TPDUs, in the time of the machines.
const STEP: Span = Span::from_micros(1);
/// More than any message of a window takes.
const STEPS_MAX: usize = 1 << 20;

/// A reliable circuit that is open, and both its ends.
pub struct Pair {
    source: Source,
    sink: Sink,
    now: Instant,
    frame: Vec<u8>,
    taken: u64,
}

impl Pair {
    /// A circuit with this window, whose TPDUs have so many octets of data at most.
    ///
    /// # Panics
    /// No circuit has such a window or such TPDUs.
    pub fn open(window: u32, tpdu: u16, pace: Pace) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let (quality, number) = (Quality::RELIABLE, 1);
        let request =
            Request { service: SERVICE, number, window: window.into(), tpdu, quality, bucket: None };
        let mut source = Source::open(now, &request, 1, pace).expect("a sound window and size");
        let limits = ListenerLimits { window, tpdu, half_open: 1 };
        let mut listener = Listener::new(SERVICE, CookieKey::new([7; 16]), limits, pace);
        let mut frame = vec![0; TPDU_HEADER_OCTETS + usize::from(tpdu)];
        let offer = loop {
            let octets = source.transmit(now, &mut frame).expect("a step of the handshake");
            let (step, _) = Tpdu::parse(&frame[..octets]).expect("a machine wrote it");
            listener.handle(now, PEER, &step, true);
            if let Some(offer) = listener.offer() {
                break offer;
            }
            while let Some((_, answer)) = listener.poll(now) {
                source.handle(now, &answer);
            }
        };
        Self { source, sink: Sink::new(now, &offer, pace), now, frame, taken: 0 }
    }

    /// The sender's program hands a message over, and the receiver's takes it; `leaves` gets each TPDU and
    /// each acknowledgement as it would go into a frame. Returns the TPDUs of the message.
    pub fn message(&mut self, octets: &[u8], mut leaves: impl FnMut(&[u8])) -> u64 {
        let before = self.source.counts().tpdus;
        let (mut at, mut ended) = (0, false);
        let wanted = self.taken + 1;
        for _ in 0..STEPS_MAX {
            if !ended {
                let written = self.source.write(&octets[at..], true);
                (at, ended) = (at + written.octets, written.ended);
            }
            self.now += STEP;
            let went = self.data(&mut leaves) | self.answers(&mut leaves);
            if ended && self.taken == wanted && !went {
                return self.source.counts().tpdus - before;
            }
            if !went {
                self.waits();
            }
        }
        unreachable!("a message that never comes, and nothing is lost")
    }

    /// The next TPDU of the sender, if there is one.
    fn data(&mut self, leaves: &mut impl FnMut(&[u8])) -> bool {
        let Some(octets) = self.source.transmit(self.now, &mut self.frame) else { return false };
        leaves(&self.frame[..octets]);
        let (tpdu, data) = Tpdu::parse(&self.frame[..octets]).expect("a machine wrote it");
        self.sink.handle(self.now, &tpdu, data);
        let _ = self.sink.event();
        while let Some((piece, _)) = self.sink.peek() {
            self.taken += u64::from(piece.last);
            self.sink.take();
        }
        true
    }

    /// All that the receiver says.
    fn answers(&mut self, leaves: &mut impl FnMut(&[u8])) -> bool {
        let mut went = false;
        while let Some(octets) = self.sink.transmit(self.now, &mut self.frame) {
            leaves(&self.frame[..octets]);
            let (tpdu, _) = Tpdu::parse(&self.frame[..octets]).expect("a machine wrote it");
            self.source.handle(self.now, &tpdu);
            let _ = self.source.event();
            went = true;
        }
        went
    }

    fn waits(&mut self) {
        let deadlines = [self.source.deadline(self.now), self.sink.deadline(self.now)];
        if let Some((at, _)) = deadlines.into_iter().flatten().min() {
            self.now = self.now.max(at);
        }
        self.source.handle_deadline(self.now);
        self.sink.handle_deadline(self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_wire::TpduBody;

    #[test]
    fn a_message_takes_its_tpdus_and_their_acknowledgements() {
        let mut pair = Pair::open(32, 1_000, super::super::PACE);
        for (octets, tpdus) in [(1, 1), (1_000, 1), (1_001, 2), (16_000, 16), (100_000, 100), (1, 1)] {
            let (mut data, mut others) = (0, 0);
            let count = pair.message(&vec![5; octets], |frame| {
                let (tpdu, _) = Tpdu::parse(frame).expect("a machine wrote it");
                let is_data = matches!(tpdu.body, TpduBody::Data { .. });
                (data, others) = (data + u64::from(is_data), others + u64::from(!is_data));
            });
            assert!(count == tpdus && data >= tpdus, "{octets} octets: {count}, {data}");
            assert!((1..=tpdus * 2 + 4).contains(&others), "{octets} octets: {others} other TPDUs");
        }
    }
}
