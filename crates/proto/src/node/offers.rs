//! The part of one hop in the set-up of a channel across segments: what its port is asked for, offers, and
//! gives back on the way back. RCAP does not know which kind of network it is.

use super::Node;
use crate::across::Held;
use crate::io::{ChannelId, Way};
use crate::port::Port;
use crate::rcap::{EntryId, HopDenied, HopOffer, LINK, RcapTest, TUNNEL, part_of};
use crate::rtip::{HopError, HopShare};
use rota_admission::rtip::{Chance, Denied, Messages, Packets, Regulator};
use rota_admission::subnet::{Ask, Offer, carried_step, hop_pace, link_offer, payload_max};
use rota_admission::{Admitted, Clocks, Refusal};
use rota_contract::PartitionName;
use rota_medium::door::{Life, MediumKind};
use rota_medium::link::PortThen;
use rota_units::{Instant, Octets, Span};

impl Node {
    /// The hop of an entry has the cheapest reservation that keeps this bound from now on.
    pub(super) fn relax_across(&mut self, now: Instant, entry: EntryId, delay: Span) {
        let held = self.across.as_ref().and_then(|across| across.held.get(&entry)).copied();
        if held.is_some_and(|held| held.joint.is_some()) {
            return self.relax_joint(now, entry, delay);
        }
        let relaxed = held.and_then(|held| {
            let bound = self.relax_hop(held.hop, delay)?;
            let HopOffer { offer, .. } = self.offer_of_link(entry, held.hop, bound)?;
            Some((offer, self.part_of_link(now, held.hop, None)))
        });
        let Some((offer, terms)) = relaxed else { return self.keep_across(now, entry) };
        if let Some(across) = &mut self.across {
            across.rcap.relaxed(now, entry, offer, terms);
        }
    }

    /// The chance of a late packet that a hop may use. Only a link without partitions has the statistical
    /// class, and only for channels that are needed at once and have no end; any other hop is guaranteed,
    /// which keeps each chance. An overload of statistical channels in one partition would depend on the
    /// channels of the others, and that of booked ones on a time (`TENET-7-2`, `TENET-7-3`). A member of a
    /// group is guaranteed.
    pub(super) fn late_of(&self, held: &Held) -> Chance {
        let port = self.way_to(held.next.node).and_then(|way| self.port_at(way.port));
        let has_class = port.is_some_and(|port| {
            let medium = port.medium();
            medium.kind() == MediumKind::Link && medium.settings().partitions.is_none()
        });
        if has_class && held.life == Life::ALWAYS && held.group.is_none() { held.late } else { Chance::NEVER }
    }

    /// The share that an entry asks of the port to its next hop. A RETHER segment has no statistical class: a
    /// share by peak rates holds with a chance of 0 (`TENET-3.1-29`).
    pub(super) fn share_of(&self, held: &Held) -> Result<(Way, HopShare), HopDenied> {
        let way = self.way_to(held.next.node).ok_or(denied(RcapTest::NoRoute))?;
        let port = self.port_at(way.port).ok_or(denied(RcapTest::NoRoute))?;
        Ok((way, share_at(port, held)?))
    }

    /// The share that an entry asks of the port of its hop: also where no way to the next node is known.
    pub(super) fn share_of_hop(&self, held: &Held) -> Option<HopShare> {
        share_at(self.port_of_hop(held.hop)?, held).ok()
    }

    /// The medium has granted the share of a hop.
    pub(super) fn on_reserved_hop(
        &mut self,
        now: Instant,
        entry: EntryId,
        hop: ChannelId,
        admitted: &Admitted,
    ) {
        // Where there is no room for it by chance the hop is guaranteed.
        let late = self.port_of_hop(hop).map(|port| port.chance_of(hop));
        if let Some((across, late)) = self.across.as_mut().zip(late) {
            across.held.entry(entry).and_modify(|held| held.late = late);
        }
        let offer = self.offer_of(entry, hop, admitted);
        if let Some(across) = &mut self.across {
            across.rcap.reserved(now, entry, offer);
        }
    }

    /// The medium has refused the share of a hop.
    pub(super) fn on_refused_hop(&mut self, now: Instant, hop: ChannelId, refusal: &Refusal) {
        let found = self.across.as_mut().and_then(|across| {
            let entry = across.entry_of(hop)?;
            Some((entry, across.held.remove(&entry)?))
        });
        let Some((entry, held)) = found else { return };
        let denied = self.in_messages(now, entry, &held, denied_by_medium(refusal));
        if let Some(across) = &mut self.across {
            across.rcap.denied(now, entry, denied);
        }
    }

    /// A refusal in the words of the program, which states messages: the largest S_max with which this hop
    /// would accept the channel now, and where none is small enough the shortest X_min. Both are looked for
    /// as a plan does, where messages of this channel alone may help. Where others have booked what comes
    /// later it has the nearest end, and such messages only where that would be over at once.
    pub(super) fn in_messages(
        &mut self,
        now: Instant,
        entry: EntryId,
        held: &Held,
        denied: HopDenied,
    ) -> HopDenied {
        let across = self.across.as_ref();
        let Some((messages, packet_max)) = across.and_then(|across| across.rcap.messages_of(entry)) else {
            return denied;
        };
        let is_alone = held.group.is_none() && held.life == Life::ALWAYS;
        let may_help = match denied.test {
            RcapTest::CyclePackets | RcapTest::Unsupported => denied.count.is_some(),
            RcapTest::Load | RcapTest::EdfExact | RcapTest::RcspLevel | RcapTest::RetherShare => true,
            RcapTest::DeddSum | RcapTest::Overflow | RcapTest::Undecided => true,
            _ => false,
        };
        let has_end =
            |until| across.is_some_and(|across| across.rcap.nearest_end(now, entry, until) > Span::ZERO);
        if !may_help || !is_alone || denied.free_until.is_some_and(has_end) {
            return denied;
        }
        // Bookings take long: all of them are looked at for the nearest messages alone, and before that the
        // first one that is in the way.
        let mut then = denied.free_until.and_then(|at| self.port_then(now, held, at));
        let fits = |packets: &Packets| match (&mut then, Self::of_packets(held, packets)) {
            (Some(then), held) => self.share_of(&held).is_ok_and(|(_, share)| then.fits(&share.of_port())),
            (None, held) => self.would_fit(now, &held, false),
        };
        let (smaller, slower) = messages.nearest(packet_max, fits);
        let smaller = smaller.map(|s_max| Messages { s_max, ..messages });
        let found = smaller.or(slower.map(|x_min| messages.slower(x_min)));
        let packets = found.and_then(|found| found.packets(packet_max).ok());
        let held = packets.map(|packets| Self::of_packets(held, &packets));
        if !held.is_some_and(|held| self.would_fit(now, &held, true)) {
            return denied;
        }
        let nearest_octets = smaller.map(|messages| messages.s_max);
        HopDenied { nearest_octets, nearest_x_min: slower, ..denied }
    }

    /// The hop with these packets in the place of those that were asked for.
    fn of_packets(held: &Held, packets: &Packets) -> Held {
        let Packets { traffic, octets, .. } = *packets;
        let octets_least = held.ask.octets_least.min(octets);
        let ask = Ask { traffic: Clocks::APART.counted(&traffic), octets, octets_least };
        Held { ask, ..*held }
    }

    /// True if the port of a hop has room for its packets. `thorough` as the medium has it.
    fn would_fit(&mut self, now: Instant, held: &Held, thorough: bool) -> bool {
        let Ok((way, share)) = self.share_of(held) else { return false };
        let at = self.place(way.port);
        at.is_some_and(|at| self.lines[at].port.medium_mut().would_fit(now, &share.of_port(), thorough))
    }

    /// The port of a hop as it will be at a moment.
    fn port_then(&mut self, now: Instant, held: &Held, at: Instant) -> Option<PortThen> {
        let line = self.way_to(held.next.node).and_then(|way| self.place(way.port))?;
        self.lines[line].port.medium_mut().port_then(now, at)
    }

    /// The offer of a hop over a link that has this bound now, host slack included; `None` on another medium.
    pub(super) fn offer_of_link(&self, entry: EntryId, hop: ChannelId, bound: Span) -> Option<HopOffer> {
        let medium = self.port_of_hop(hop)?.medium();
        if medium.kind() != MediumKind::Link {
            return None;
        }
        let settings = medium.settings();
        let held = self.across.as_ref().and_then(|across| across.held.get(&entry));
        let least = held.map_or(Octets::new(1), |held| held.ask.octets_least);
        let offer = Offer { delay: bound, ..link_offer(&settings.link, least, Span::ZERO) };
        let (late, step) = (held.map_or(Chance::NEVER, |held| held.late), self.step_before(entry));
        // A packet that was late before goes on at once.
        let regulator = match late > Chance::NEVER {
            true => Regulator::DelayAhead { step },
            false => match (settings.discipline.regulator(step), held.and_then(|held| held.group)) {
                // The regulator of a group lets packets go in the order in which they become eligible.
                (Regulator::None, Some(_)) => Regulator::Rate,
                (regulator, _) => regulator,
            },
        };
        let percent = percent_of(settings, held.and_then(|held| held.partition));
        let medium = kind_of(settings);
        let host_slack = settings.link.host_slack;
        Some(HopOffer { offer, regulator, host_slack, late, medium, percent })
    }

    /// By how much too small the node before an entry may state the time that its packets are ahead.
    fn step_before(&self, entry: EntryId) -> Span {
        let before = self.across.as_ref().and_then(|across| across.rcap.before(entry));
        let way = before.and_then(|node| self.way_to(node));
        let port: Option<&Port> = way.and_then(|way| self.port_at(way.port));
        let transit = |port: &Port| {
            let medium = port.medium();
            let is_link = medium.kind() == MediumKind::Link;
            carried_step((!is_link).then(|| medium.settings().params(medium.stations()).transit()))
        };
        port.map_or(Span::ZERO, transit)
    }
}

/// The share that an entry asks of a port.
fn share_at(port: &Port, held: &Held) -> Result<HopShare, HopDenied> {
    let Held { ref ask, partition, group, life, late, is_late_before, .. } = *held;
    let settings = port.medium().settings();
    let most = payload_max(&settings.link.framing);
    if ask.octets > most {
        return Err(HopDenied { nearest_octets: Some(most), ..denied(RcapTest::Packet) });
    }
    let octets = u32::try_from(ask.octets.get()).unwrap_or(u32::MAX);
    let is_link = port.medium().kind() == MediumKind::Link;
    let at_once = group.map_or(1, |group| group.at_once.into());
    let pace = hop_pace(&ask.traffic, at_once, (!is_link).then_some(settings.trt))?;
    let number = settings.partitions.number(partition);
    if is_link {
        let share = HopShare::by_discipline(ask.traffic, octets).in_partition(number);
        let share = share.with_chance(late).behind_chance(is_late_before);
        return Ok(share.during(life).in_group(group));
    }
    let share = HopShare::of_pace(pace, octets);
    let share = group.map_or(share, |group| share.with_group(ask.traffic, group));
    Ok(share.in_partition(number))
}

/// The percent of a port's network that a channel's partition has; 0 in the rest.
pub(super) fn percent_of(settings: &rota_medium::Settings, partition: Option<PartitionName>) -> u8 {
    match settings.partitions.number(partition) {
        0 => 0,
        number => settings.partitions.shares().percent(number),
    }
}

/// The code of a port's network in records.
pub(super) fn kind_of(settings: &rota_medium::Settings) -> u8 {
    match settings.medium {
        MediumKind::Rether => 1,
        MediumKind::Link if settings.withdrawn => TUNNEL,
        MediumKind::Link => LINK,
    }
}

/// A refusal without numbers.
pub(super) fn denied(test: RcapTest) -> HopDenied {
    HopDenied::new(test, Span::ZERO)
}

/// The refusal of a hop that was not even asked for.
pub(super) fn denied_by(error: &HopError) -> HopDenied {
    denied(match error {
        HopError::TooMany(_) => RcapTest::TableFull,
        HopError::PacketSize { .. } => RcapTest::Packet,
        HopError::Buffers { .. } => RcapTest::PortBuffer,
        HopError::NoPort(_) | HopError::NotJoined(_) | HopError::NoStation(_) => RcapTest::NoRoute,
        _ => RcapTest::Unsupported,
    })
}

/// The refusal of a medium. It names packets, which the program of a channel across segments does not state.
pub(super) fn denied_by_medium(refusal: &Refusal) -> HopDenied {
    let denied = HopDenied::from(Denied::new(refusal.test.of_hop(), refusal.margin));
    HopDenied { part: part_of(refusal.partition), free_until: refusal.free_until, ..denied }
}
