//! The packets of a new contract that come to the destination before the last ones of the contract before.
//!
//! Each contract has shares of its own on the way, so that the first packets of the new one may be the
//! quicker ones. They wait here, in their order, until the units before them have come or can come no more:
//! until the bound of the old contract has passed since the first of them came. The room for them is taken
//! when the destination enters the new contract (`rcap/change.rs` says how much).
//!
//! The first packet states the unit with which the new contract begins, and how many units its program had
//! left out. So the destination knows whether all units before have come.

use super::table::Key;
use rota_units::{Instant, Span};
use rota_wire::{UNIT_HEADER_OCTETS, UnitHeader, parse_fragment};
use std::collections::VecDeque;

/// Packets that wait for those before them.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    /// Where the packets of the new contract come from.
    pub(crate) key: Key,
    /// The promise of the new contract to each unit.
    pub(crate) bound: Span,
    /// The old contract's.
    former: Span,
    /// When the last packet of the old contract has come; never before the first one of the new contract.
    pub(crate) until: Instant,
    /// The first packet has gone to its program.
    pub(crate) is_begun: bool,
    /// Nothing is waited for any more: what is here goes to the program.
    pub(crate) is_over: bool,
    octets: Box<[u8]>,
    stride: usize,
    next: usize,
    waiting: VecDeque<(usize, usize)>,
}

impl Hold {
    /// Takes room for so many packets of so many octets.
    pub(crate) fn new(key: Key, (former, bound): (Span, Span), packets: usize, octets: u32) -> Self {
        let stride = UNIT_HEADER_OCTETS + octets as usize;
        Self {
            key,
            bound,
            former,
            until: Instant::FAR,
            is_begun: false,
            is_over: false,
            octets: vec![0; stride * packets].into_boxed_slice(),
            stride,
            next: 0,
            waiting: VecDeque::with_capacity(packets),
        }
    }

    /// A packet has come. False where there is no room: it came closer than its contract allows.
    pub(crate) fn keep(&mut self, now: Instant, packet: &[u8]) -> bool {
        let places = self.octets.len() / self.stride;
        if self.waiting.len() >= places || packet.len() > self.stride {
            return false;
        }
        let place = self.next;
        self.next = (place + 1) % places;
        self.octets[place * self.stride..][..packet.len()].copy_from_slice(packet);
        self.waiting.push_back((place, packet.len()));
        self.until = self.until.min(now + self.former);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The first packet that waits.
    pub(crate) fn first(&self) -> Option<(UnitHeader, &[u8])> {
        let (place, len) = *self.waiting.front()?;
        parse_fragment(&self.octets[place * self.stride..][..len]).ok()
    }

    pub(crate) fn drop_first(&mut self) {
        self.waiting.pop_front();
    }

    /// Until units of this schedule are due by the old bound: the first ones may wait for its last packets.
    pub(crate) fn eased(&self, schedule_ns: u64) -> (Span, u64) {
        let longer = self.former.minus(self.bound).as_nanos();
        (self.former, schedule_ns.saturating_add(longer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_medium::door::PortId;
    use rota_wire::MacAddr;

    /// A unit of the new contract that waits for the last ones of the former one is not late for that.
    #[test]
    fn a_held_unit_is_due_by_the_longer_one_of_both_bounds() {
        let (ms, key) = (Span::from_millis, (PortId(0), MacAddr([2; 6]), 1));
        let hold = |former, bound| Hold::new(key, (ms(former), ms(bound)), 4, 100);
        assert_eq!(hold(50, 20).eased(1_000), (ms(50), 1_000 + ms(30).as_nanos()));
        assert_eq!(hold(20, 50).eased(1_000), (ms(20), 1_000));
        assert_eq!(hold(50, 20).eased(u64::MAX), (ms(50), u64::MAX));
    }
}
