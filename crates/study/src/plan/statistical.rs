//! The statistical class in a plan (`TENET-3.1-22`): the tests of nodes, by the same engine
//! (`rota_admission`, `subnet/statistical.rs`, which has the proof).
//!
//! Only a link without partitions has the class, and only for channels that are needed from the beginning and
//! have no end; every other hop is guaranteed, which keeps each chance. A link is tested beside the most that
//! goes before its statistical channels at any time of the plan, as nodes test it beside all that is booked.
//! Nothing that has left the plan counts: its last packet left the port long before.

use super::engine::Plan;
use super::ledger::{Life, Seat};
use super::ports::{DeniedAt, Want, too_long};
use super::route::Step;
use rota::Chances;
use rota_admission::rtip::{Chance, Denied, Flow, NodeTest, Packets, Traffic};
use rota_admission::subnet::{
    Ask, Certain, Offer, STATISTICAL_CELLS, STATISTICAL_MAX, StatisticalFlow, StatisticalPort, Subnet,
};
use rota_units::Span;

type Tests = StatisticalPort<Vec<u64>, Vec<StatisticalFlow>>;

/// The chance that a message bears. A packet is lost where a late one has its buffer: without a chance of
/// loss there is none of delay either.
pub(super) fn borne(chances: Chances) -> Chance {
    Chance::of_ppb(chances.late_ppb.min(chances.loss_ppb))
}

/// The chance that a message bears, which is divided among the hops of a way.
pub(super) struct Borne {
    whole: Chance,
    /// Packets of a message.
    count: u64,
    /// The chances of the hops so far.
    used: Vec<Chance>,
}

impl Borne {
    pub(super) fn new(chances: Chances, packets: &Packets) -> Self {
        Self { whole: borne(chances), count: packets.count, used: Vec::new() }
    }

    /// The part that the next of so many hops may use for each packet.
    fn at_hop(&self, hops: usize) -> Chance {
        let used = Chance::of_message(self.used.iter().copied(), self.count);
        self.whole.at_hop(used, hops as u64, self.count)
    }
}

/// A channel that does not stand yet, and goes before those of the class.
#[derive(Clone, Copy)]
pub(super) enum Further<'a> {
    /// Its packets, with so many reservations.
    Packets(&'a Ask, usize),
    /// Slots of the link, which take so long in each window.
    Slots(Span),
}

impl Plan<'_> {
    /// A channel's place at a step, behind which there are so many hops with it, with the chance of a late
    /// packet that the hop uses, and the best offer there. Where there is no room for it by chance the hop is
    /// guaranteed, which keeps every chance, if there is room for that and no hop before is by chance.
    pub(super) fn ask_first(
        &self,
        step: &Step,
        seat: &Seat,
        ask: &Ask,
        borne: &mut Borne,
        hops: usize,
    ) -> Result<(Seat, Offer), DeniedAt> {
        let late = self.chance_at(step, seat, borne, hops);
        let mut seat = Seat { late, ..seat.clone() };
        let mut asked = self.ask(step, &seat, ask, Want::Best);
        // Behind a hop that may be late by chance its regulator would hold all packets of a burst.
        let is_late_before = borne.used.iter().any(|used| *used > Chance::NEVER);
        if late > Chance::NEVER && asked.is_err() && !is_late_before {
            let sure = Seat { late: Chance::NEVER, ..seat.clone() };
            if let Ok(offered) = self.ask(step, &sure, ask, Want::Best) {
                (seat, asked) = (sure, Ok(offered));
            }
        }
        let (offer, _) = asked?;
        borne.used.push(seat.late);
        Ok((seat, offer))
    }

    /// The chance of a late packet that a hop may use.
    fn chance_at(&self, step: &Step, seat: &Seat, borne: &Borne, hops: usize) -> Chance {
        let is_divided = !self.partitions[step.segment].shares.is_none();
        let has_class =
            !self.is_ring(step) && !is_divided && seat.life == Life::WHOLE && seat.group.is_none();
        if has_class { borne.at_hop(hops) } else { Chance::NEVER }
    }

    /// The statistical channels of a port, before the channel `own`.
    fn tests(&self, step: &Step, own: usize) -> Result<Tests, Denied> {
        let traffic = Traffic::periodic(Span::from_millis(1)).expect("a sound period");
        let flow = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        let none = StatisticalFlow { flow, late: Chance::NEVER };
        let memory = (vec![0; STATISTICAL_CELLS], vec![none; STATISTICAL_MAX]);
        let mut tests = Tests::new(self.params[step.segment].link, memory.0, memory.1);
        for entry in self.ledger.statistical(step, own) {
            tests.admit_offered(&entry.ask, entry.seat.late, entry.delay)?;
        }
        Ok(tests)
    }

    /// The most that goes before the statistical channels of a port at any time, with a further guaranteed
    /// channel. A channel that has ended counts for as long as the proof asks for, where no
    /// bound of the class is longer than `horizon`.
    fn certain(
        &self,
        step: &Step,
        seat: &Seat,
        further: Option<Further<'_>>,
        horizon: Span,
    ) -> Result<Certain, DeniedAt> {
        let link = &self.params[step.segment].link;
        let whole = Seat { life: Life::WHOLE, ..seat.clone() };
        let mut moments = self.ledger.moments(step.segment, &whole);
        moments.extend([Some(seat.life.start), seat.life.end].into_iter().flatten());
        let mut most: Option<Certain> = None;
        for at in moments {
            let certain = self.on_cable(step, at, seat, |port| {
                if let Some(Further::Slots(slots)) = further {
                    port.set_units(self.units(step, seat) + slots)?;
                }
                Ok(port.whole().certain())
            });
            let mut then = certain.map_err(|why| (why, at))?;
            let counts = |life: Life, ask: &Ask| {
                life.end.is_some_and(|end| {
                    let pause = Span::from_nanos(ask.traffic.pause());
                    at >= end && at.minus(end + pause) < horizon
                })
            };
            for entry in self.ledger.guaranteed(step, seat.channel) {
                if counts(entry.seat.life, &entry.ask) {
                    then = then.and(&Certain::of(link, &entry.ask));
                }
            }
            if let Some(Further::Packets(ask, lanes)) = further
                && (seat.life.has(at) || counts(seat.life, ask))
            {
                then = (0..lanes).fold(then, |sum, _| sum.and(&Certain::of(link, ask)));
            }
            most = Some(most.map_or(then, |most| most.or_more(&then)));
        }
        Ok(most.expect("a plan has a beginning"))
    }

    /// The bound of a statistical channel at a port.
    pub(super) fn ask_statistical(
        &self,
        step: &Step,
        seat: &Seat,
        ask: &Ask,
        want: Want,
    ) -> Result<Offer, DeniedAt> {
        let start = |why: Denied| (why, seat.life.start);
        let mut tests = self.tests(step, seat.channel).map_err(start)?;
        let horizon = tests.horizon();
        let mut certain = self.certain(step, seat, None, horizon)?;
        // A bound that is longer than all others has to hold beside what the others need not count.
        if tests.asked(&certain, seat.late).best(ask).map_err(start)?.delay > horizon {
            certain = self.certain(step, seat, None, Span::MAX)?;
        }
        let place = tests.channels().len();
        let offer = tests.admit_best(&certain, ask, seat.late).map_err(start)?;
        match want {
            Want::Best => Ok(offer),
            Want::Keeping(most) if offer.delay > most => {
                Err(start(too_long(NodeTest::DeddSum, offer.delay, most)))
            }
            Want::Keeping(most) => Ok(tests.relax(place, ask, most)),
        }
    }

    /// Tests if the statistical channels of a port keep their promise beside what stands there, and a further
    /// guaranteed channel.
    pub(super) fn statistical_holds(
        &self,
        step: &Step,
        seat: &Seat,
        further: Further<'_>,
    ) -> Result<(), DeniedAt> {
        if self.ledger.statistical(step, seat.channel).next().is_none() {
            return Ok(());
        }
        let start = |why: Denied| (why, seat.life.start);
        let tests = self.tests(step, seat.channel).map_err(start)?;
        let certain = self.certain(step, seat, Some(further), tests.horizon())?;
        tests.check(&certain).map_err(start)
    }
}
