//! Opening a gate without a frame that overtakes another one.
//!
//! The kernel takes 4 to 20 ms to remove the rule, and the removal acts some 0.3 ms after the call: frames
//! that came to the gate in between would wait for the end of the call, and later ones go straight to the
//! card. So a helper's thread puts a rule in its place that diverts until an instant; the reader of the gate
//! learns the instant before it comes, and reads without a pause around it. The table goes after that.

use super::nft::{Nft, Rules};
use crate::clock::Sandwich;
use rota_units::{Instant, Span};
use std::sync::mpsc::{Receiver, Sender, channel};

/// From the order to the instant: longer than the kernel takes to change the rules.
const AHEAD: Span = Span::from_millis(60);

/// The work that is to be done with the table.
#[derive(Debug)]
pub(super) enum Order {
    /// Divert until an instant.
    Time(Nft, Rules),
    /// Remove it; nothing is diverted any more.
    Remove(Nft, Rules),
}

impl Order {
    /// The table's socket.
    pub(super) fn table(self) -> Nft {
        let (Self::Time(nft, _) | Self::Remove(nft, _)) = self;
        nft
    }
}

/// The work that was done.
#[derive(Debug)]
pub(super) enum Done {
    /// The table diverts until that instant; none where the kernel refused.
    Timed(Nft, Option<Instant>),
    Removed,
}

/// The reader's half.
#[derive(Debug)]
pub(super) struct Orders {
    orders: Sender<Order>,
    done: Receiver<Done>,
}

impl Orders {
    /// Gives the order back where nobody serves them.
    pub(super) fn give(&self, order: Order) -> Result<(), Order> {
        self.orders.send(order).map_err(|unsent| unsent.0)
    }

    /// The work that has been done meanwhile.
    pub(super) fn done(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// Waits for what was ordered; none where the helper is gone.
    pub(super) fn wait(&self) -> Option<Done> {
        self.done.recv().ok()
    }
}

/// The half for a thread of its own, which needs the right to configure networks.
#[derive(Debug)]
pub struct GateHelper {
    orders: Receiver<Order>,
    done: Sender<Done>,
}

/// Both halves.
pub(super) fn pair() -> (Orders, GateHelper) {
    let ((orders, ordered), (done, read)) = (channel(), channel());
    (Orders { orders, done: read }, GateHelper { orders: ordered, done })
}

impl GateHelper {
    /// Serves a gate until it is dropped.
    pub fn run(self) {
        for order in &self.orders {
            // The gate may be gone: its table went with the socket then.
            let _ = self.done.send(served(order));
        }
    }
}

fn served(order: Order) -> Done {
    match order {
        Order::Time(mut nft, rules) => {
            // The kernel compares with the wall clock. If that is set meanwhile, the rule acts earlier or
            // later; the removal comes at the instant all the same.
            let clocks = Sandwich::take();
            let timed = nft.time(&rules, clocks.real_ns.saturating_add(AHEAD.as_nanos()));
            Done::Timed(nft, timed.is_ok().then_some(clocks.before + AHEAD))
        }
        Order::Remove(mut nft, rules) => {
            // Should the kernel refuse, closing the socket removes the table all the same.
            let _ = nft.remove(&rules);
            Done::Removed
        }
    }
}
