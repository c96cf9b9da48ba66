//! The statistical class at a port that sends packets one by one: Ferrari and Verma's test below everything
//! that is guaranteed (`TENET-3.1-22`, `TENET-3.1-24`, `TENET-3.1-25`).
//!
//! *Order.* Packets of this class leave when no announcement, slot or guaranteed packet waits, the one that
//! was eligible first; ordinary frames go behind them. **So a guaranteed channel does not see them:** of all
//! that goes behind it, at most B is ahead of anything at the card (`crate::link_blocking`), and B counts
//! one full frame, which a packet of this class never exceeds. No test of guaranteed channels names them.
//!
//! *Bound.* Let a packet of this class be eligible at a, and 0 the last instant before at which nothing of
//! its class or above waited. While no overflow set is active, slots, announcements and guaranteed packets
//! bring A + C + ρ·t of work in [0, t): A is s_0 with the slots of a window, C the sum of s·B·p/I with p the
//! pause behind a burst, and ρ their load, s·B/I each: N_c(t) ≤ (t + p)·B/I. A channel of this class is
//! active for X_min from each packet on, so that it brings one packet more by a than fit its active time. At
//! each moment the active ones have Σ s/X_min ≤ 1 − ρ: all bring S + (1 − ρ)·a at most, S = Σ s of all
//! channels. The packet has left at τ ≤ A + C + ρ·τ + S + (1 − ρ)·a, hence **τ − a ≤ (A + C + S) / (1 −
//! ρ)**. Each channel's bound is at least that, also of those that stand when another one is admitted:
//! relaxing leaves room for them.
//!
//! *Chance.* P_do is that of [`OverflowTable`], beside ρ and the share of ordinary traffic, which is thereby
//! kept while no overflow set is active. A packet comes while its own channel is active, and of such times an
//! overload takes P_do/p at most. So **P_do ≤ (1 − z)·p for every statistical channel of the port**, z for
//! each packet at this hop. A source that pauses more than it states changes nothing: only the others count.
//!
//! *Coming and going.* Of a guaranteed channel that has ended at e the tests go on counting the burst and
//! the load until **the port is idle, or until e + p + H** where that is sooner, and not at all where it has
//! brought nothing since the port was idle; H is no shorter than any bound of this class, nor than
//! [`super::LINK_DELAY_MAX`]. Slots with the load s that end, the last one opened at o, count as a channel
//! with e + p = o + W and a burst of s: they keep their place among all slots until then. *Idle* is a moment
//! at which no slot is open and neither an announcement nor a packet of a channel waits, of this class
//! neither: one at which no guaranteed packet waits is not enough, since what has waited of this class behind
//! the burst of the one that left waits on for that of the next one.
//!
//! 1. No moment in (0, τ] is idle. So all that ended before an idle moment, and all that has brought nothing
//!    since one, have no packet in [0, τ] and are in no sum. Take the others, which bring some.
//! 2. Let ρ(t) and C(t) count each of them until e + p. One that is not counted any more has brought
//!    s·B/I·(e + p − b) since its begin b, or since 0, at most, which is what ρ has counted of it. Of slots:
//!    each has a window behind its opening for which it was counted, and no two share one. So all bring A +
//!    C(t) + ∫ρ over [0, t), and those of this class S + ∫(1 − ρ) over [0, a) at most. Hence τ − a ≤ A +
//!    C(τ) + S + ∫ρ over [a, τ).
//! 3. Let the packet be there at a + D still, D its bound, and v the newest test up to then: every begin is
//!    one, that of a booking too, which is tested ahead. One that counts at a moment u of [a, a + D] in step
//!    2 stands at u, or u < e + p. Either way e + p + H > u + D ≥ a + D ≥ v: the test at v has counted it,
//!    since none begins behind v. So D ≥ A + C + S + ρ·D with what v has counted, which is no less than
//!    step 2 has at a + D: the packet has left by then.
//!
//! A channel of this class is asked for beside all that counts; of what is planned, ends are known, and each
//! that lies within p + H before a begin counts at that begin.
//!
//! *Assumed, not proven:* that sources are independent; that packets behind an overload state, which find
//! what it has left waiting, are no more than those within it that are in time all the same; and that no
//! channel of this class takes the place of another one while the port is busy, which would bring a packet of
//! both and let both be active. `verify` has the measured rates.
//!
//! *Bookings.* The tests grow with each term of [`Certain`]. So what holds beside the largest of each, now
//! and at all starts that are booked, holds at every time ([`Certain::or_more`]).

use super::LINK_DELAY_MAX;
use super::link::link_offer;
use super::{Ask, Offer, Subnet, packet_cost};
use crate::link::LinkModel;
use crate::rtip::load::{WHOLE, beyond, load_up, share_up};
use crate::rtip::{Chance, Denied, Flow, NodeTest, OverflowTable, activity_down};
use core::ops::DerefMut;
use rota_units::Span;

/// Statistical channels of a port at most: the table is written anew when one leaves.
pub const STATISTICAL_MAX: usize = 128;
/// Cells of a port's table: one part is a thousandth of the port.
pub const STATISTICAL_CELLS: usize = 1_001;

/// All that goes before packets of the statistical class, and the share of ordinary traffic.
#[derive(Clone, Copy, Debug)]
pub struct Certain {
    /// A + C.
    pub(super) ahead: Span,
    /// ρ, in units of 2⁻⁶⁴.
    pub(super) load: u128,
    /// The share of ordinary traffic.
    pub(super) ordinary: u128,
}

impl Certain {
    /// Of one guaranteed channel: s·B·p/I, the work of a burst that comes at once, and its load.
    pub(super) fn of_flow(flow: &Flow) -> Self {
        let work = u128::from(flow.service.as_nanos()) * u128::from(flow.traffic.burst());
        let work = work * u128::from(flow.traffic.pause());
        let interval = u128::from(flow.traffic.interval().as_nanos());
        let ahead = Span::from_nanos(u64::try_from(work.div_ceil(interval)).unwrap_or(u64::MAX));
        Self { ahead, load: load_up(flow), ordinary: 0 }
    }

    /// The same of a channel with these packets.
    #[must_use]
    pub fn of(link: &LinkModel, ask: &Ask) -> Self {
        let service = packet_cost(link, ask.octets);
        Self::of_flow(&Flow { traffic: ask.traffic, service, delay: Span::ZERO })
    }

    /// Of slots that take so long in each window.
    #[must_use]
    pub fn of_slots(units: Span, window: Span) -> Self {
        let load = share_up(units.as_nanos().into(), window.as_nanos().into());
        Self { ahead: units, load, ordinary: 0 }
    }

    /// Both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (ahead, load) = (self.ahead + other.ahead, self.load.saturating_add(other.load));
        Self { ahead, load, ordinary: self.ordinary.saturating_add(other.ordinary) }
    }

    /// No less than either of two: what holds beside it holds beside both.
    #[must_use]
    pub fn or_more(&self, other: &Self) -> Self {
        Self {
            ahead: self.ahead.max(other.ahead),
            load: self.load.max(other.load),
            ordinary: self.ordinary.max(other.ordinary),
        }
    }

    /// (A + C + S) / (1 − ρ), rounded up.
    fn bound(&self, services: Span) -> Result<Span, Denied> {
        let Some(rest) = WHOLE.checked_sub(self.load).filter(|rest| *rest > 0) else {
            let excess = beyond(self.load).unwrap_or(Span::from_nanos(1));
            return Err(Denied::new(NodeTest::Load, excess));
        };
        let work = u128::from((self.ahead + services).as_nanos()) << 64;
        Ok(Span::from_nanos(u64::try_from(work.div_ceil(rest)).unwrap_or(u64::MAX)))
    }
}

/// A channel of the statistical class at a port.
#[derive(Clone, Copy, Debug)]
pub struct StatisticalFlow {
    /// Its packets, and its bound on the port, host slack apart.
    pub flow: Flow,
    /// 1 − z: the chance of a late packet that it allows here.
    pub late: Chance,
}

impl StatisticalFlow {
    /// The P_do that it allows.
    fn allows(&self) -> Chance {
        self.late.times_down(activity_down(&self.flow.traffic))
    }
}

/// The statistical channels of one port. `C` and `S` are its memory.
#[derive(Clone, Debug)]
pub struct StatisticalPort<C, S> {
    link: LinkModel,
    table: OverflowTable<C>,
    channels: S,
    standing: usize,
}

impl<C, S> StatisticalPort<C, S>
where
    C: DerefMut<Target = [u64]>,
    S: DerefMut<Target = [StatisticalFlow]>,
{
    /// A port without statistical channels. `cells` should be [`STATISTICAL_CELLS`], and `channels`
    /// [`STATISTICAL_MAX`]; their old values are overwritten.
    pub fn new(link: LinkModel, cells: C, channels: S) -> Self {
        Self { link, table: OverflowTable::new(cells), channels, standing: 0 }
    }

    /// The channels, in the order of their places.
    pub fn channels(&self) -> &[StatisticalFlow] {
        &self.channels[..self.standing]
    }

    /// H of the proof: no bound of those that stand is longer, nor will one be that is relaxed.
    pub fn horizon(&self) -> Span {
        self.channels().iter().map(|channel| channel.flow.delay).fold(LINK_DELAY_MAX, Span::max)
    }

    /// The least bound of the port, with one channel more.
    fn least(&self, certain: &Certain, further: Option<&Flow>) -> Result<Span, Denied> {
        let all = self.channels().iter().map(|channel| &channel.flow).chain(further);
        certain.bound(all.map(|flow| flow.service).sum())
    }

    /// Tests all channels, and one more, beside what goes before them: the least bound of the port.
    fn test(&self, certain: &Certain, further: Option<&StatisticalFlow>) -> Result<Span, Denied> {
        let least = self.least(certain, further.map(|of| &of.flow))?;
        if let Some(shortest) = self.channels().iter().map(|channel| channel.flow.delay).min()
            && shortest < least
        {
            return Err(Denied::new(NodeTest::DeddSum, least.minus(shortest)));
        }
        let taken = certain.load.saturating_add(certain.ordinary);
        let overflow = match further {
            Some(of) => self.table.with_beside(&of.flow, taken),
            None => self.table.beside(taken),
        };
        let allowed = self.channels().iter().chain(further).map(StatisticalFlow::allows).min();
        match allowed.is_some_and(|allowed| overflow > allowed) {
            true => Err(Denied::new(NodeTest::Overflow, Span::ZERO)),
            false => Ok(least),
        }
    }

    /// Tests if all channels keep their promise beside this.
    ///
    /// # Errors
    /// [`Denied`]: an overload is too likely, or a bound too short.
    pub fn check(&self, certain: &Certain) -> Result<(), Denied> {
        self.test(certain, None).map(|_| ())
    }

    /// The same port as a network that is asked for a channel which allows so much.
    pub const fn asked<'p>(&'p self, certain: &'p Certain, late: Chance) -> StatisticalAsk<'p, C, S> {
        StatisticalAsk { port: self, certain, late }
    }

    /// A channel stands from now on, behind the others, with the shortest bound that it can have; its offer.
    ///
    /// # Errors
    /// [`Denied`] where no bound helps.
    pub fn admit_best(&mut self, certain: &Certain, ask: &Ask, late: Chance) -> Result<Offer, Denied> {
        let offer = self.asked(certain, late).best(ask)?;
        self.admit_offered(ask, late, offer.delay)?;
        Ok(offer)
    }

    /// A channel stands from now on, behind the others, with a bound that a test has offered, host slack
    /// included.
    ///
    /// # Errors
    /// [`NodeTest::TableFull`].
    pub fn admit_offered(&mut self, ask: &Ask, late: Chance, offered: Span) -> Result<(), Denied> {
        if self.standing >= self.channels.len() {
            return Err(Denied::new(NodeTest::TableFull, Span::ZERO));
        }
        let flow = Flow { delay: offered.minus(self.link.host_slack), ..self.flow(ask) };
        self.channels[self.standing] = StatisticalFlow { flow, late };
        self.standing += 1;
        self.enter(self.standing - 1);
        Ok(())
    }

    /// Gives the channel at this place an offer of `delay`, and what it had where that is longer.
    pub fn relax(&mut self, place: usize, ask: &Ask, delay: Span) -> Offer {
        let of = &mut self.channels[place].flow;
        of.delay = of.delay.max(delay.minus(self.link.host_slack).min(super::LINK_DELAY_MAX));
        link_offer(&self.link, ask.octets_least, of.delay)
    }

    /// Removes the channel at this place; the last one takes it.
    pub fn release(&mut self, place: usize) {
        self.standing -= 1;
        self.channels[place] = self.channels[self.standing];
        // A sum that was rounded up cannot be taken out of the table again.
        self.table.clear();
        (0..self.standing).for_each(|place| self.enter(place));
    }

    fn enter(&mut self, place: usize) {
        let entered = self.table.admit(&self.channels[place].flow, Some(Chance::ONE));
        debug_assert!(entered.is_ok(), "a channel that allows everything is never refused");
    }

    fn flow(&self, ask: &Ask) -> Flow {
        Flow { traffic: ask.traffic, service: packet_cost(&self.link, ask.octets), delay: Span::ZERO }
    }
}

/// A port that is asked for one statistical channel.
#[derive(Debug)]
pub struct StatisticalAsk<'p, C, S> {
    port: &'p StatisticalPort<C, S>,
    certain: &'p Certain,
    late: Chance,
}

impl<C, S> Subnet for StatisticalAsk<'_, C, S>
where
    C: DerefMut<Target = [u64]>,
    S: DerefMut<Target = [StatisticalFlow]>,
{
    fn best(&mut self, ask: &Ask) -> Result<Offer, Denied> {
        let Self { port, certain, late } = *self;
        if port.standing >= port.channels.len() {
            return Err(Denied::new(NodeTest::TableFull, Span::ZERO));
        }
        let least = port.test(certain, Some(&StatisticalFlow { flow: port.flow(ask), late }))?;
        Ok(link_offer(&port.link, ask.octets_least, least))
    }

    /// A longer bound costs nothing, and leaves room for others.
    fn keeping(&mut self, ask: &Ask, delay: Span) -> Result<Offer, Denied> {
        let best = self.best(ask)?;
        if best.delay > delay {
            let short = Denied::new(NodeTest::DeddSum, best.delay.minus(delay));
            return Err(Denied { nearest_delay: Some(best.delay), ..short });
        }
        Ok(Offer { delay: delay.min(best.delay.max(super::LINK_DELAY_MAX)), ..best })
    }
}

#[cfg(test)]
mod tests;
