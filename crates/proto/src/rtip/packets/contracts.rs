//! Two contracts of one hop: packets of the one that takes the place of the other wait behind those of that
//! one, in one queue (decision 038), until one of both is over.

use super::{Origin, Packets, Ring, units_within};
use crate::io::UnitRef;
use crate::rtip::door::HopSpec;
use rota_admission::rtip::Traffic;

/// The contract that takes the place of the one that stands.
#[derive(Clone, Debug)]
pub(super) struct Next {
    /// The local id by which its packets come in; none at a source.
    pub(super) label_in: Option<u16>,
    /// The next node's local id for them.
    pub(super) local_id: u16,
    pub(super) octets: usize,
    /// At a gateway.
    pub(super) ring: Option<Ring>,
}

impl Packets {
    /// Another contract takes the place of this one: the units of a source that are handed over from now on
    /// go by it, and at a gateway the packets that come by the local id. `both` is the traffic of all
    /// together.
    pub(crate) fn join_contract(
        &mut self,
        spec: &HopSpec,
        octets: u32,
        both: Traffic,
        label_in: Option<u16>,
    ) {
        self.pacer.join(spec.traffic, spec.delay, both);
        let ring = label_in.map(|_| Ring::new(spec.buffers, octets));
        self.waiting.reserve(ring.as_ref().map_or(0, |ring| ring.places));
        let (local_id, octets) = (spec.local_id, octets as usize);
        self.next = Some(Box::new(Next { label_in, local_id, octets, ring }));
        let Origin::Source(source) = &mut self.origin else { return };
        source.ahead = source.ahead.max(units_within(spec));
        source.former = source.units.len();
        let room = source.ahead;
        self.take_room(room);
    }

    /// True while the packets of two contracts wait here.
    pub(crate) const fn has_two_contracts(&self) -> bool {
        self.next.is_some()
    }

    /// True if the first packet is one of the contract before, whose time is over.
    pub(crate) fn is_first_former(&self) -> bool {
        self.next.is_some() && self.waiting.front().is_some_and(|packet| !packet.is_of_next)
    }

    /// The rest of a unit that has begun to leave by the contract before, whose time is over: its packets
    /// have another size than those to come, and nobody can use it.
    pub(crate) fn give_up_rest(&mut self) -> Option<UnitRef> {
        let Origin::Source(source) = &mut self.origin else { return None };
        let is_rest = self.next.is_some() && !source.is_of_next && source.index > 0;
        let (unit, _) = *source.units.front().filter(|_| is_rest)?;
        source.pop_unit();
        source.plan_ends();
        Some(unit)
    }

    /// The contract before is over, and nothing of it waits.
    pub(crate) fn settle_contract(&mut self) {
        let Some(next) = self.next.take() else { return };
        let Next { local_id, octets, ring, .. } = *next;
        self.pacer.settle();
        (self.local_id, self.octets) = (local_id, octets);
        self.waiting.iter_mut().for_each(|packet| packet.is_of_next = false);
        match (&mut self.origin, ring) {
            (Origin::Gateway(own), Some(ring)) => *own = ring,
            (Origin::Source(source), _) => {
                // A packet that was planned for a unit of the contract before leaves by this one.
                (source.is_of_next, source.former, source.octets) = (false, 0, octets);
            }
            (Origin::Gateway(_), None) => {}
        }
    }

    /// The other contract is over, and this one goes on. False where packets of that one wait: they have no
    /// place any more.
    pub(crate) fn part_contract(&mut self) -> bool {
        if self.waiting.iter().any(|packet| packet.is_of_next) {
            return false;
        }
        if let Origin::Source(source) = &mut self.origin {
            if source.is_of_next && source.index > 0 {
                return false;
            }
            source.is_of_next = false;
            if source.index == 0 {
                source.octets = self.octets;
            }
        }
        self.next = None;
        self.pacer.part();
        true
    }
}
