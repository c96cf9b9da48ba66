//! The statistical class of this end of a link: its tests, and the sessions that stand by them
//! (`rota_admission`, `subnet/statistical.rs`, which has the proof). Its packets leave when no guaranteed one
//! waits, the one that was eligible first.

use crate::door::SessionId;
use rota_admission::LinkModel;
use rota_admission::rtip::{Chance, Denied, Flow};
use rota_admission::subnet::{
    Ask, Certain, LINK_DELAY_MAX, Offer, STATISTICAL_CELLS, STATISTICAL_MAX, StatisticalFlow,
    StatisticalPort, Subnet,
};
use rota_units::Span;

type Tests = StatisticalPort<Box<[u64]>, Box<[StatisticalFlow]>>;

/// The tests, with the sessions in the order of their channels. Their memory is taken with the first one.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistical {
    tests: Option<Tests>,
    sessions: Vec<SessionId>,
}

impl Statistical {
    /// True if none stands.
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// No bound of those that stand is longer, nor will one be that is relaxed.
    pub(super) fn horizon(&self) -> Span {
        self.tests.as_ref().map_or(LINK_DELAY_MAX, Tests::horizon)
    }

    /// All that stand keep their promise beside this.
    pub(super) fn check(&self, certain: &Certain) -> Result<(), Denied> {
        match &self.tests {
            Some(tests) if !self.is_empty() => tests.check(certain),
            _ => Ok(()),
        }
    }

    /// A session stands from now on, with the shortest bound that it can have.
    pub(super) fn admit(
        &mut self,
        link: &LinkModel,
        certain: &Certain,
        id: SessionId,
        (ask, late): (&Ask, Chance),
    ) -> Result<Offer, Denied> {
        let offer = self.tests(link, ask).admit_best(certain, ask, late)?;
        self.sessions.push(id);
        Ok(offer)
    }

    /// The shortest bound that a session can have.
    pub(super) fn best(
        &mut self,
        link: &LinkModel,
        certain: &Certain,
        (ask, late): (&Ask, Chance),
    ) -> Result<Offer, Denied> {
        self.tests(link, ask).asked(certain, late).best(ask)
    }

    fn tests(&mut self, link: &LinkModel, ask: &Ask) -> &mut Tests {
        self.tests.get_or_insert_with(|| {
            let flow = Flow { traffic: ask.traffic, service: Span::ZERO, delay: Span::ZERO };
            let none = StatisticalFlow { flow, late: Chance::NEVER };
            let cells = vec![0; STATISTICAL_CELLS].into_boxed_slice();
            StatisticalPort::new(*link, cells, vec![none; STATISTICAL_MAX].into_boxed_slice())
        })
    }

    /// Gives a session a longer bound, of `delay` at most; the one that it has now.
    pub(super) fn relax(&mut self, id: SessionId, ask: &Ask, delay: Span) -> Option<Span> {
        let place = self.sessions.iter().position(|of| *of == id)?;
        Some(self.tests.as_mut()?.relax(place, ask, delay).delay)
    }

    /// The share of a session is given back.
    pub(super) fn remove(&mut self, id: SessionId) {
        let place = self.sessions.iter().position(|of| *of == id);
        if let (Some(place), Some(tests)) = (place, &mut self.tests) {
            tests.release(place);
            self.sessions.swap_remove(place);
        }
    }

    /// All are gone.
    pub(super) fn clear(&mut self) {
        while let Some(id) = self.sessions.last() {
            self.remove(*id);
        }
    }
}
