//! Partitions of a network: named parts of its capacity with an admission of their own (`TENET-7-2`; Ferrari,
//! Gupta 1993).
//!
//! Partition p has f_p of the port, Σ f_p ≤ 1. The part that nobody names is the *rest*: it has the channels
//! without a partition, the share of ordinary traffic, and all that goes before packets. A channel is tested
//! beside the channels of its own partition, on a port of rate f_p: each packet takes s / f_p there, and what
//! may be ahead s_0 / f_p, all rounded up. It is tested beside all channels of the port as well, as without
//! partitions.
//!
//! *Independence.* The second test follows from the first ones, so that no partition depends on another one.
//! Multiply the test of p by f_p: **for all t ≥ min d in p: Σ_{j ∈ p} N_c,j(t − d_j)·s_j + s_0 ≤ f_p·t**,
//! s_0 no shorter than any packet. Take a t and add these up over the partitions in which something is due
//! by t; in the others the sum is 0. The demand of all, and s_0 at least once, is f·t ≤ t at most. Let Σ be
//! the work of a window W before all packets. The s_0 of each partition has it once. Where something of the
//! rest is due by t, its test counts the further windows. Where nothing is, they are Σ·t/W at most, and the
//! load of the rest, below f of the rest, has them. Slots of a link's own channels are in Σ, so the rest has
//! them.
//!
//! *Relaxing.* A longer bound is in the table of the partition as well, unless its points have no room there.
//! The shorter one stays then, which counts for more: the tests refuse no less.
//!
//! *A RETHER segment.* The slots of a partition take f_p·TRT at most, rounded down. Those of the rest leave
//! room for T_NRT in it, as T_NRT is beside them alone. Adding up gives the capacity of eq. 3. Slots of other
//! partitions can make T_NRT longer, since more of the cycle is taken: how long ordinary traffic waits is a
//! test of the whole segment, and a full segment may refuse for a partition that is not.
//! The list of the token names the partition of each slot. Two neighbouring slots of one station are charged
//! as one visit within one partition only, so that no closed slot leaves its hop to another partition. The
//! test is part of `rether.rs`.

use super::link::{LINK_FLOWS_OWN, LinkPort, Windows, link_ahead};
use super::{Ask, Offer, Subnet, packet_cost, payload_max};
use crate::rtip::{Denied, Discipline, EdfTable, Flow, NodeTest, Point, Scheduler};
use crate::{SegmentParams, link_window};
use core::ops::DerefMut;
use rota_units::Span;

mod named;

pub use named::NamedPartitions;

pub use crate::partitions::{BadPartition, PARTITIONS_MAX, Partitions};

/// All partitions of a port, the rest among them.
const PARTS: usize = PARTITIONS_MAX + 1;

/// The same work on a port of so many percent, rounded up.
fn stretched(work: Span, percent: u8) -> Span {
    let nanos = (u128::from(work.as_nanos()) * 100).div_ceil(u128::from(percent.max(1)));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The work before the packets of a partition, as its own port has it.
struct Above {
    ahead: Span,
    window: Span,
    work: Span,
}

/// A refusal of this partition.
const fn by(number: u8, denied: Denied) -> Denied {
    Denied { partition: Some(number), ..denied }
}

/// One direction of a link in partitions.
#[derive(Clone, Debug)]
pub struct PartedPort<F, P> {
    params: SegmentParams,
    partitions: Partitions,
    whole: LinkPort<F, P>,
    /// One table for each partition; none where nothing is divided.
    parts: [Option<EdfTable<F, P>>; PARTS],
}

impl<F, P> PartedPort<F, P>
where
    F: DerefMut<Target = [Flow]>,
    P: DerefMut<Target = [Point]>,
{
    /// A port without channels. `memory` is that of [`LinkPort::new`], for the whole and each partition.
    ///
    /// # Errors
    /// [`Denied`]: the rest has no room for ordinary traffic, or the discipline has levels, which cannot be
    /// divided yet.
    pub fn new(
        params: SegmentParams,
        discipline: Discipline,
        partitions: Partitions,
        mut memory: impl FnMut() -> (F, P),
    ) -> Result<Self, Denied> {
        let (flows, points) = memory();
        let whole = LinkPort::new(params, discipline, flows, points)?;
        let mut port = Self { params, partitions, whole, parts: [const { None }; PARTS] };
        if partitions.is_none() {
            return Ok(port);
        }
        if discipline.scheduler == Scheduler::Rcsp {
            return Err(by(0, Denied::new(NodeTest::RcspLevel, Span::ZERO)));
        }
        for number in partitions.numbers() {
            let (flows, points) = memory();
            let table = port.empty(number, flows, points).map_err(|denied| by(number, denied))?;
            port.parts[usize::from(number)] = Some(table);
        }
        Ok(port)
    }

    /// Becomes like `other`, a port of the same segment, without the memory that neither uses: a trial beside
    /// what stands there, which is kept as it is.
    pub fn copy(&mut self, other: &Self) {
        assert_eq!(self.partitions, other.partitions, "of one segment");
        self.whole.copy(&other.whole);
        for (part, like) in self.parts.iter_mut().flatten().zip(other.parts.iter().flatten()) {
            part.copy(like);
        }
    }

    /// The test of a partition without channels.
    fn empty(&self, number: u8, flows: F, points: P) -> Result<EdfTable<F, P>, Denied> {
        let Above { ahead, window, work } = self.above(number);
        let mut table = EdfTable::new(ahead, flows, points);
        table.set_above(ahead, window, work)?;
        if number == 0 {
            let Windows { own, .. } = self.whole.windows();
            let service = stretched(own.service, self.partitions.percent(number));
            table.admit(&Flow { service, ..own })?;
        }
        Ok(table)
    }

    /// The work before the packets of a partition, beside the slots of the whole port.
    fn above(&self, number: u8) -> Above {
        let percent = self.partitions.percent(number);
        let largest = packet_cost(&self.params.link, payload_max(&self.params.link.framing));
        let ahead = stretched(link_ahead(&self.params, self.whole.units()).max(largest), percent);
        // Further windows count in the rest alone.
        if number != 0 {
            return Above { ahead, window: Span::ZERO, work: Span::ZERO };
        }
        let work = stretched(self.whole.windows().work, percent);
        Above { ahead, window: link_window(self.params.trt), work }
    }

    /// True if the port has partitions.
    pub const fn is_divided(&self) -> bool {
        !self.partitions.is_none()
    }

    /// Slots take so long in each window from now on, if all channels keep their bounds beside them, and
    /// those of each partition in its part.
    ///
    /// # Errors
    /// [`Denied`]; nothing has changed.
    pub fn set_units(&mut self, units: Span) -> Result<(), Denied> {
        let had = self.whole.units();
        if units == had {
            // All that stands has been tested beside them.
            return Ok(());
        }
        self.whole.set_units(units)?;
        let refused = self.partitions.numbers().find_map(|number| self.set_above(number).err());
        let Some(denied) = refused else { return Ok(()) };
        let restored = self.whole.set_units(had);
        assert!(restored.is_ok(), "they stood beside these slots");
        for number in self.partitions.numbers() {
            let restored = self.set_above(number);
            assert!(restored.is_ok(), "they stood beside these slots");
        }
        Err(denied)
    }

    fn set_above(&mut self, number: u8) -> Result<(), Denied> {
        let Above { ahead, window, work } = self.above(number);
        match self.table(number)? {
            Some(table) => table.set_above(ahead, window, work).map_err(|denied| by(number, denied)),
            None => Ok(()),
        }
    }

    /// The whole port.
    pub const fn whole(&self) -> &LinkPort<F, P> {
        &self.whole
    }

    /// The port for channels of one partition; where nothing is divided, the whole.
    pub const fn part(&mut self, number: u8) -> PortPart<'_, F, P> {
        PortPart { port: self, number }
    }

    /// A channel of a partition stands from now on, behind the others, with an offer that its part has made.
    ///
    /// # Errors
    /// [`Denied`]; nothing has changed.
    pub fn admit_offered(&mut self, number: u8, ask: &Ask, offered: &Offer) -> Result<(), Denied> {
        let delay = offered.delay.minus(self.params.link.host_slack);
        let flow = self.stretched_flow(number, ask, delay);
        if let Some(table) = self.table(number)? {
            table.admit(&flow).map_err(|denied| by(number, denied))?;
        }
        self.whole.admit_offered(ask, offered).inspect_err(|_| self.forget(number, &flow))
    }

    /// A channel of a partition stands from now on, behind the others, with the shortest bound that it can
    /// have; its offer.
    ///
    /// # Errors
    /// [`Denied`] where no bound helps.
    pub fn admit_best(&mut self, number: u8, ask: &Ask) -> Result<Offer, Denied> {
        if !self.is_divided() {
            return self.whole.admit_best(ask);
        }
        let offer = self.part(number).best(ask)?;
        self.admit_offered(number, ask, &offer)?;
        Ok(offer)
    }

    /// As [`LinkPort::relax`], of the channel at this place, which is one of this partition.
    pub fn relax(&mut self, place: usize, number: u8, ask: &Ask, delay: Span) -> Offer {
        let had = self.stretched_flow(number, ask, self.whole.channels()[place].delay);
        let offer = self.whole.relax(place, ask, delay);
        let delay = self.whole.channels()[place].delay;
        if let Some(at) = self.place_in(number, &had)
            && let Ok(Some(table)) = self.table(number)
        {
            // Without room for its points there the shorter bound stays.
            _ = table.relax(at, delay);
        }
        offer
    }

    /// Removes the channel at this place, which is one of this partition; the last one of the port takes it.
    pub fn release(&mut self, place: usize, number: u8, ask: &Ask) {
        let delay = self.whole.channels()[place].delay;
        let flow = self.stretched_flow(number, ask, delay);
        self.forget(number, &flow);
        self.whole.release(place);
    }

    fn stretched_flow(&self, number: u8, ask: &Ask, delay: Span) -> Flow {
        let cost = packet_cost(&self.params.link, ask.octets);
        let service = stretched(cost, self.partitions.percent(number));
        Flow { traffic: ask.traffic, service, delay }
    }

    /// Removes a flow of a partition.
    fn forget(&mut self, number: u8, flow: &Flow) {
        let at = self.place_in(number, flow);
        if let Ok(Some(table)) = self.table(number) {
            table.release(at.expect("each channel of the port stands in its partition"));
        }
    }

    /// The place of a flow in its partition's table: of those of its packets the one with the longest bound
    /// up to its own. Equal ones stand for each other.
    fn place_in(&mut self, number: u8, flow: &Flow) -> Option<usize> {
        // The rest begins with flows of the port, which are no channels.
        let first = if number == 0 { LINK_FLOWS_OWN } else { 0 };
        let all = self.table(number).ok().flatten()?.flows().iter().enumerate().skip(first);
        let is_like = |of: &Flow| (of.traffic, of.service) == (flow.traffic, flow.service);
        let like = all.filter(|(_, of)| is_like(of) && of.delay <= flow.delay);
        like.max_by_key(|(_, of)| of.delay).map(|(at, _)| at)
    }

    /// The test of a partition, where the port is divided.
    fn table(&mut self, number: u8) -> Result<Option<&mut EdfTable<F, P>>, Denied> {
        if self.partitions.is_none() {
            return Ok(None);
        }
        match self.parts.get_mut(usize::from(number)).and_then(Option::as_mut) {
            Some(table) => Ok(Some(table)),
            None => Err(by(number, Denied::new(NodeTest::TableFull, Span::ZERO))),
        }
    }
}

/// A port, for channels of one partition.
#[derive(Debug)]
pub struct PortPart<'p, F, P> {
    port: &'p mut PartedPort<F, P>,
    number: u8,
}

impl<F, P> PortPart<'_, F, P>
where
    F: DerefMut<Target = [Flow]>,
    P: DerefMut<Target = [Point]>,
{
    /// The shortest bound that the partition allows, host slack included.
    fn own(&mut self, ask: &Ask) -> Result<Span, Denied> {
        let number = self.number;
        let flow = self.port.stretched_flow(number, ask, Span::ZERO);
        let slack = self.port.params.link.host_slack;
        match self.port.table(number)? {
            Some(table) => {
                let best = table.best(&flow.traffic, flow.service).map_err(|denied| by(number, denied))?;
                Ok(best + slack)
            }
            None => Ok(Span::ZERO),
        }
    }
}

impl<F, P> Subnet for PortPart<'_, F, P>
where
    F: DerefMut<Target = [Flow]>,
    P: DerefMut<Target = [Point]>,
{
    fn best(&mut self, ask: &Ask) -> Result<Offer, Denied> {
        let own = self.own(ask)?;
        let offer = self.port.whole.best(ask)?;
        Ok(Offer { delay: offer.delay.max(own), ..offer })
    }

    fn keeping(&mut self, ask: &Ask, delay: Span) -> Result<Offer, Denied> {
        let own = self.own(ask)?;
        if own > delay {
            let short = Denied::new(NodeTest::EdfExact, own.minus(delay));
            return Err(by(self.number, Denied { nearest_delay: Some(own), ..short }));
        }
        let offer = self.port.whole.keeping(ask, delay)?;
        Ok(Offer { delay: offer.delay.max(own), ..offer })
    }
}

#[cfg(test)]
mod tests;
