//! How much is sent again over a path that loses: the shipping SMART beside a model of go-back-N
//! (TRANSPORT-R28, TRANSPORT-R29). Time is in slots: one TPDU leaves in each, as long as the window lets it.

use super::recovery::due;
use crate::engine::Stream;
use rota_proto::vc::{Inbox, Pace, Piece, Smart};
use rota_units::{Instant, Span};
use std::collections::VecDeque;

const SLOT: Span = Span::from_micros(10);

/// The path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossyPath {
    /// TPDUs lost, of a million.
    pub loss_ppm: u32,
    /// Acknowledgements lost, of a million.
    pub ack_loss_ppm: u32,
    /// Slots in a round trip: R.
    pub slots: u64,
    /// TPDUs of the window.
    pub window: u32,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// TPDUs that were sent again.
    pub resent: u64,
    /// Slots in all.
    pub slots: u64,
}

/// What is on its way: in which slot it arrives, and what it is. All of one kind take the same time.
struct Way<T> {
    items: VecDeque<(u64, T)>,
    random: Stream,
    loss_ppm: u32,
}

impl<T> Way<T> {
    fn new(seed: u64, name: &str, loss_ppm: u32) -> Self {
        Self { items: VecDeque::new(), random: Stream::named(seed, name), loss_ppm }
    }

    fn put(&mut self, at: u64, item: T) {
        if !self.random.happens(self.loss_ppm) {
            self.items.push_back((at, item));
        }
    }

    fn arrived(&mut self, now: u64) -> Option<T> {
        due(&mut self.items, now)
    }
}

/// Carries `count` TPDUs by SMART, where a TPDU counts as lost when one has come whose number is greater by
/// `reorder`.
pub fn smart(seed: u64, path: &LossyPath, count: u64, reorder: u32) -> Taken {
    let trip = SLOT * path.slots;
    let pace = Pace { first: trip, least: trip.div_down(4), reorder, ..Pace::ETHERNET };
    let (mut smart, mut inbox) = (Smart::new(path.window, pace), Inbox::new(path.window, 1, true));
    let mut data = Way::new(seed, "data", path.loss_ppm);
    let mut acks = Way::new(seed, "acks", path.ack_loss_ppm);
    let mut slot = 0;
    while smart.cum() < count {
        slot += 1;
        let now = Instant::ZERO + SLOT * slot;
        while let Some(sequence) = data.arrived(slot) {
            inbox.accept(sequence, Piece::default(), &[0]);
            while inbox.take() {}
            acks.put(slot + path.slots - path.slots / 2, (inbox.cum(), sequence));
        }
        while let Some((cum, cause)) = acks.arrived(slot) {
            smart.acknowledge(now, cum, cause).expect("it was sent");
        }
        while smart.deadline().0 <= now {
            smart.handle_deadline(now);
        }
        let again = smart.send_again(now);
        let may_send = smart.has_room() && smart.top() < count;
        if let Some(sequence) = again.or_else(|| may_send.then(|| smart.send(now))) {
            data.put(slot + path.slots / 2, sequence);
        }
    }
    Taken { resent: smart.resent(), slots: slot }
}

/// Carries `count` TPDUs by go-back-N: the receiver takes them in sequence only, and answers each with the
/// last one that it has. An answer that says the same again sends all behind it again, once in a round trip;
/// so does a time of two round trips without news.
pub fn go_back_n(seed: u64, path: &LossyPath, count: u64) -> Taken {
    let mut data = Way::new(seed, "data", path.loss_ppm);
    let mut acks = Way::new(seed, "acks", path.ack_loss_ppm);
    let (mut taken, mut slot) = (Taken::default(), 0);
    // The sender's: all up to `cum` have arrived, `next` leaves next, `top` is the newest that has left.
    let (mut cum, mut next, mut top) = (0, 1, 0);
    let (mut heard_at, mut back_at, mut expected) = (0, 0, 1);
    while cum < count {
        slot += 1;
        while let Some(sequence) = data.arrived(slot) {
            expected += u64::from(sequence == expected);
            acks.put(slot + path.slots - path.slots / 2, expected - 1);
        }
        while let Some(ack) = acks.arrived(slot) {
            if ack > cum {
                (cum, heard_at) = (ack, slot);
                next = next.max(cum + 1);
            } else if ack == cum && cum < top && slot > back_at + path.slots {
                (next, back_at) = (cum + 1, slot);
            }
        }
        if cum < top && slot > heard_at.max(back_at) + 2 * path.slots {
            (next, back_at) = (cum + 1, slot);
        }
        if next <= count && next <= cum + u64::from(path.window) {
            taken.resent += u64::from(next <= top);
            top = top.max(next);
            data.put(slot + path.slots / 2, next);
            next += 1;
        }
    }
    Taken { slots: slot, ..taken }
}
