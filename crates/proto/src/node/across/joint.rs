//! Contracts that take the place of others at the hops of this node (`rcap/change.rs`; decision 038 has the
//! proof).
//!
//! Both contracts of a channel have one hop here: one share, which carries the greater of both, and one queue
//! of packets. The share grows when the new contract is asked for, within the bound that the old one has, and
//! becomes that of the contract that stays when the other one is over. A share that is large enough already
//! stays as it is meanwhile.
//!
//! The bound of the new contract is that of the old one, so that none of its packets has to wait for a longer
//! bound of those before it. Only the last hop of a link may have another one: nothing is behind.
//!
//! A share of a RETHER segment grows by a slot, at the next visit of the token. Its bound may be longer then,
//! for the new contract alone: packets of the old one leave before, in the slots that they had.

use super::super::Node;
use super::super::detail::offer_of_share;
use super::super::offers::{denied, denied_by_medium};
use crate::across::{Held, Joint};
use crate::io::Way;
use crate::rcap::{EntryId, Former, HopDenied, HopOffer, RcapTest};
use crate::rtip::table::State;
use crate::rtip::{HopError, HopShare, HopSpec};
use rota_admission::rtip::{Chance, Scheduler, Traffic};
use rota_admission::subnet::{Ask, LINK_DELAY_MAX, Offer, RTIP_OCTETS, hop_pace, link_offer, payload_max};
use rota_admission::{Admitted, Clocks, LinkModel, Refusal};
use rota_contract::ChannelId;
use rota_medium::door::MediumKind;
use rota_units::{Instant, Octets, Span};

impl Node {
    /// A contract takes the place of another one at a hop: the greater of both is reserved.
    pub(super) fn reserve_joint(&mut self, now: Instant, entry: EntryId, asked: Held, former: &Former) {
        let Some(across) = &mut self.across else { return };
        let old = across.held.get(&former.entry).copied();
        let Some(old) = old.filter(|old| !old.waits && old.joint.is_none()) else {
            return across.rcap.share_lost(now, entry);
        };
        let (delay, key, local_id) = (former.offer.offer.delay, None, None);
        let joint = Joint { former: *former, delay, key, local_id };
        let held = Held { hop: old.hop, late: Chance::NEVER, joint: Some(joint), ..asked };
        across.held.insert(entry, held);
        if let Some(reserved) = self.share_of_both(now, entry, (&old, &held), former).transpose() {
            self.answer_joint(now, entry, reserved);
        }
    }

    /// Tells RCAP if the share of a hop carries both contracts.
    fn answer_joint(&mut self, now: Instant, entry: EntryId, reserved: Result<HopOffer, HopDenied>) {
        let Some(across) = &mut self.across else { return };
        match reserved {
            Ok(offer) => across.rcap.reserved(now, entry, offer),
            Err(denied) => {
                across.held.remove(&entry);
                across.rcap.denied(now, entry, denied);
            }
        }
    }

    /// Has the share of a hop carry both contracts: the offer to the new one. None where the medium answers
    /// later ([`Self::on_enlarged_hop`]).
    fn share_of_both(
        &mut self,
        now: Instant,
        entry: EntryId,
        (old, new): (&Held, &Held),
        former: &Former,
    ) -> Result<Option<HopOffer>, HopDenied> {
        let settings = self.port_of_hop(old.hop).ok_or(denied(RcapTest::NoRoute))?.medium().settings();
        let most = payload_max(&settings.link.framing);
        if new.ask.octets > most {
            return Err(HopDenied { nearest_octets: Some(most), ..denied(RcapTest::Packet) });
        }
        let is_ring = settings.medium != MediumKind::Link;
        hop_pace(&new.ask.traffic, 1, is_ring.then_some(settings.trt))?;
        let stands = stands_at(&settings.link, former, new);
        let Ask { traffic, octets, .. } = ask_of_both(&former.traffic, old, new);
        let is_more = (traffic, octets) != (old.ask.traffic, old.ask.octets);
        let is_last = settings.medium == MediumKind::Link
            && self.across.as_ref().is_some_and(|across| across.rcap.is_last_hop(entry));
        if !is_more && !is_last {
            return Ok(Some(self.lessened_offer(entry, new, stands)));
        }
        let number = settings.partitions.number(new.partition);
        let of_both = u32::try_from(octets.get()).unwrap_or(u32::MAX);
        let share = match is_ring {
            false => HopShare::by_discipline(traffic, of_both),
            true => HopShare::of_pace(hop_pace(&traffic, 1, Some(settings.trt))?, of_both),
        };
        let (share, had) = (share.in_partition(number), stands.offer.delay);
        let wanted = if is_last { Span::ZERO } else { had };
        let line = self.line_of_hop(old.hop).map_err(|_| denied(RcapTest::NoRoute))?;
        match line.port.enlarge(now, old.hop, &share, (had, wanted)) {
            Ok(None) => Ok(None),
            Ok(Some(delay)) if is_last => {
                Ok(Some(HopOffer { offer: Offer { delay, ..stands.offer }, ..stands }))
            }
            Ok(Some(_)) => Ok(Some(stands)),
            Err(_) if !is_more => Ok(Some(stands)),
            Err((refused, nearest)) => Err(self.not_enlarged(entry, old, HopDenied::from(refused), nearest)),
        }
    }

    /// The refusal of a share that carries both contracts, with the largest packet that would fit.
    fn not_enlarged(
        &self,
        entry: EntryId,
        old: &Held,
        denied: HopDenied,
        nearest: Option<Octets>,
    ) -> HopDenied {
        let nearest = nearest.filter(|octets| *octets > old.ask.octets);
        HopDenied { nearest_octets: nearest.filter(|_| self.is_whole(entry)), ..denied }
    }

    /// A RETHER segment has answered: the share of a hop carries both contracts, or what it did.
    pub(in super::super) fn on_enlarged_hop(
        &mut self,
        now: Instant,
        hop: ChannelId,
        answer: Result<Admitted, Refusal>,
    ) {
        let Some(across) = &self.across else { return };
        let held = |id: EntryId| across.held.get(&id).copied();
        // The request may be over: its share becomes what it was again.
        let joint = |id: EntryId| held(id).and_then(|new| Some((id, new, new.joint?.former)));
        let Some((entry, new, former)) = across.entries_of(hop).find_map(joint) else { return };
        let reserved = match (held(former.entry), answer) {
            (None, _) => None,
            (Some(old), Ok(admitted)) => self.enlarged_offer(entry, (&old, &new), &former, &admitted).map(Ok),
            (Some(old), Err(refusal)) => {
                let nearest =
                    refusal.counter_offer.map(|octets| Octets::new(octets.get().saturating_sub(RTIP_OCTETS)));
                Some(Err(self.not_enlarged(entry, &old, denied_by_medium(&refusal), nearest)))
            }
        };
        if let Some(reserved) = reserved {
            self.answer_joint(now, entry, reserved);
        } else if let Some(across) = &mut self.across {
            across.rcap.share_lost(now, entry);
        }
    }

    /// The offer of a share of a RETHER segment that carries both contracts: within the bound of both, and of
    /// the new one alone later.
    fn enlarged_offer(
        &mut self,
        entry: EntryId,
        (old, new): (&Held, &Held),
        former: &Former,
        admitted: &Admitted,
    ) -> Option<HopOffer> {
        let port = self.port_of_hop(new.hop)?;
        let stands = stands_at(&port.medium().settings().link, former, new);
        let both = offer_of_share(port, &ask_of_both(&former.traffic, old, new), admitted)?;
        let delay = stands.offer.delay.max(both.delay);
        Some(self.lessened_offer(entry, new, HopOffer { offer: Offer { delay, ..stands.offer }, ..stands }))
    }

    /// On a RETHER segment the share becomes smaller once the old contract is over, and the part of the
    /// certificate is of that one. Until then the bound is the old one, which is no shorter.
    fn lessened_offer(&mut self, entry: EntryId, new: &Held, stands: HopOffer) -> HopOffer {
        let lessened = self.share_of_hop(new).zip(self.port_of_hop(new.hop));
        let lessened = lessened.and_then(|(share, port)| port.lessened(new.hop, &share));
        let Some((admitted, slots)) = lessened else { return stands };
        let HopOffer { offer, .. } = self.offer_in_slots(entry, new.hop, &admitted, &slots);
        HopOffer { offer: Offer { delay: offer.delay.max(stands.offer.delay), ..offer }, ..stands }
    }

    /// True if each message of an entry is one packet.
    fn is_whole(&self, entry: EntryId) -> bool {
        let messages = self.across.as_ref().and_then(|across| across.rcap.messages_of(entry));
        messages.is_some_and(|(messages, packet_max)| messages.s_max <= packet_max)
    }

    /// The bound of a contract that takes the place of another one. At the last hop it is longer where the
    /// way has time; the share keeps the shorter one of both until the other one is over. Elsewhere it stays:
    /// what it would get now, a later change could not take from it.
    pub(in super::super) fn relax_joint(&mut self, now: Instant, entry: EntryId, delay: Span) {
        let Some(across) = &self.across else { return };
        let own = across.rcap.records(entry).last().map(|own| own.hop);
        let Some((held, own)) = across.held.get(&entry).copied().zip(own) else { return };
        let settings = self.port_of_hop(held.hop).map(|port| port.medium().settings());
        let Some(settings) = settings.filter(|of| of.medium == MediumKind::Link) else {
            return self.keep_across(now, entry);
        };
        let shortest = own.offer.delay;
        let delay = if across.rcap.is_last_hop(entry) {
            let by_levels = settings.discipline.scheduler == Scheduler::Rcsp;
            let had = held.joint.map_or(Span::ZERO, |joint| joint.had());
            let longer = delay.clamp(shortest, shortest.max(LINK_DELAY_MAX));
            let share = self.relax_hop(held.hop, longer.min(had));
            // The level of RCSP is the share's own.
            share.filter(|_| by_levels).unwrap_or(longer)
        } else {
            shortest
        };
        let terms = self.part_of_link(now, held.hop, Some((held.ask, delay)));
        let Some(across) = &mut self.across else { return };
        if let Some(joint) = across.held.get_mut(&entry).and_then(|held| held.joint.as_mut()) {
            joint.delay = delay;
        }
        across.rcap.relaxed(now, entry, Offer { delay, ..own.offer }, terms);
    }

    /// A contract that takes the place of another one is open here.
    pub(super) fn install_joint(
        &mut self,
        entry: EntryId,
        (spec, octets): (&HopSpec, u32),
        from: Option<(u16, Option<Way>)>,
    ) -> Result<(), HopError> {
        let across = self.across.as_ref();
        let held = across.and_then(|across| across.held.get(&entry)).copied();
        let Some((hop, joint)) = held.and_then(|held| Some((held.hop, held.joint?))) else {
            return Err(HopError::NoHop(ChannelId::NONE));
        };
        if across.is_none_or(|across| !across.held.contains_key(&joint.former.entry)) {
            return Err(HopError::NoHop(hop));
        }
        let (key, both) = match from {
            None => (None, joint.former.traffic),
            Some((_, None)) => return Err(HopError::NoHop(hop)),
            Some((label, Some(way))) => {
                self.may_come_in(spec, way)?;
                (Some((way.port, way.hop, label)), Clocks::APART.held(&joint.former.traffic))
            }
        };
        let label_in = key.map(|(.., label)| label);
        if !self.line_of_hop(hop)?.port.join_contract(hop, (spec, octets, both), label_in) {
            return Err(HopError::NoHop(hop));
        }
        if let Some(key) = key {
            self.hops.join_gateway(hop, key, octets);
            self.count_arrivals();
        }
        let across = self.across.as_mut().and_then(|across| across.held.get_mut(&entry));
        if let Some(joint) = across.and_then(|held| held.joint.as_mut()) {
            (joint.key, joint.local_id) = (key, Some(spec.local_id));
        }
        Ok(())
    }

    /// One of several entries of a hop is over. Of two contracts the other one has the share now.
    pub(super) fn leave_joint(&mut self, now: Instant, entry: EntryId, held: &Held) {
        let Some(across) = &self.across else { return };
        let Some(other) = across.entry_of(held.hop) else { return };
        let Some(stays) = across.held.get(&other).copied() else { return };
        match (held.joint, stays.joint) {
            (Some(joint), _) => {
                if let Some(key) = joint.key {
                    self.hops.part_gateway(held.hop, key);
                }
                self.part_joint(now, other, (&stays, joint.had()));
            }
            (None, Some(joint)) if joint.former.entry == entry => {
                if let Some(State::Gateway(key)) = self.hops.hop(held.hop).map(|hop| hop.state) {
                    self.hops.part_gateway(held.hop, key);
                }
                // Without a local id it is not open here, and finds that its place is gone.
                if let Some(local_id) = joint.local_id {
                    self.hops.lead_to(held.hop, local_id);
                    self.settle_joint(now, other, (&stays, joint.delay));
                }
            }
            (None, _) => {}
        }
        self.count_arrivals();
    }

    fn part_joint(&mut self, now: Instant, other: EntryId, (stays, had): (&Held, Span)) {
        let share = self.share_of_hop(stays).map(|share| (share, had));
        let line = self.line_of_hop(stays.hop);
        let is_parted = line.is_ok_and(|line| line.port.part_contract(now, stays.hop, share));
        if !is_parted && let Some(across) = &mut self.across {
            across.rcap.share_lost(now, other);
        }
    }

    fn settle_joint(&mut self, now: Instant, other: EntryId, (stays, delay): (&Held, Span)) {
        let share = self.share_of_hop(stays).map(|share| (share, delay));
        if let Ok(line) = self.line_of_hop(stays.hop) {
            line.port.settle_contract(now, stays.hop, share);
        }
        if let Some(held) = self.across.as_mut().and_then(|across| across.held.get_mut(&other)) {
            held.joint = None;
        }
    }
}

/// The offer of a hop to the old contract, with the shortest packet of the new one.
fn stands_at(link: &LinkModel, former: &Former, new: &Held) -> HopOffer {
    let service_least = link_offer(link, new.ask.octets_least, Span::ZERO).service_least;
    HopOffer { offer: Offer { service_least, ..former.offer.offer }, ..former.offer }
}

/// The packets of both contracts, as a port counts them.
fn ask_of_both(traffic: &Traffic, old: &Held, new: &Held) -> Ask {
    let octets = old.ask.octets.max(new.ask.octets);
    Ask { traffic: Clocks::APART.counted(traffic), octets, octets_least: new.ask.octets_least }
}
