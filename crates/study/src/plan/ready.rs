//! The ports of cables with the channels that stand on them, made once for all trials of a search: an offer
//! is looked for by a hundred of them and more, and the tests of a port have megabytes of memory.
//!
//! A port is known by its channels and their bounds, in the order in which they were admitted. So what is
//! kept stays right while the plan changes, and serves its clones, too. A trial runs on a copy, of what
//! stands there alone, and finds what it would find at a port that was made for it.

use super::ports::{NO_OFFER, Port};
use rota_admission::rtip::Denied;
use rota_admission::subnet::{Ask, Offer};
use rota_units::Span;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Tables that are kept, of two megabytes each: one of a port, and one of each of its partitions.
const TABLES_MAX: usize = 64;

/// A port by what stands on it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Standing {
    /// The cable.
    pub(super) segment: usize,
    /// How long the slots of the cable's own channels take in a window.
    pub(super) units: Span,
    /// The partition, the packets and the bound of each channel.
    pub(super) channels: Vec<(u8, Ask, Span)>,
}

impl Standing {
    /// True if more channels make `whole` of it.
    fn begins(&self, whole: &Self) -> bool {
        (self.segment, self.units) == (whole.segment, whole.units)
            && whole.channels.starts_with(&self.channels)
    }
}

#[derive(Clone)]
struct Made {
    standing: Standing,
    port: Port,
    tables: usize,
}

#[derive(Default)]
struct Kept {
    /// The one that was asked last is the first.
    made: Vec<Made>,
    /// For trials, by the segment.
    trials: BTreeMap<usize, Port>,
}

/// The ports of a plan and of its clones.
#[derive(Clone, Default)]
pub(super) struct Ready(Rc<RefCell<Kept>>);

impl Ready {
    /// Asks a port on which this stands. `empty` makes one without channels, and says how many tables it has.
    pub(super) fn ask<R>(
        &self,
        standing: Standing,
        empty: impl FnOnce() -> Result<(Port, usize), Denied>,
        ask: impl FnOnce(&mut Port) -> Result<R, Denied>,
    ) -> Result<R, Denied> {
        let mut kept = self.0.borrow_mut();
        let Kept { made, trials } = &mut *kept;
        let segment = standing.segment;
        let found = find(made, standing, empty)?;
        made.insert(0, found);
        let mut tables = 0;
        made.retain(|one| {
            tables += one.tables;
            tables <= TABLES_MAX
        });
        let port = &made[0].port;
        let trial = trials.entry(segment).or_insert_with(|| port.clone());
        trial.copy(port);
        ask(trial)
    }
}

/// Takes the port from those that are kept, or makes it of the one that lacks the fewest channels.
fn find(
    made: &mut Vec<Made>,
    standing: Standing,
    empty: impl FnOnce() -> Result<(Port, usize), Denied>,
) -> Result<Made, Denied> {
    if let Some(at) = made.iter().position(|one| one.standing == standing) {
        return Ok(made.remove(at));
    }
    let begun = made.iter().filter(|one| one.standing.begins(&standing));
    let mut found = match begun.max_by_key(|one| one.standing.channels.len()) {
        Some(one) => one.clone(),
        None => {
            let (mut port, tables) = empty()?;
            port.set_units(standing.units)?;
            Made { standing: Standing { channels: Vec::new(), ..standing }, port, tables }
        }
    };
    for channel in &standing.channels[found.standing.channels.len()..] {
        let (part, ask, delay) = *channel;
        found.port.admit_offered(part, &ask, &Offer { delay, ..NO_OFFER })?;
        found.standing.channels.push(*channel);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_admission::SegmentParams;
    use rota_admission::rtip::{Discipline, Flow, Point, Traffic};
    use rota_admission::subnet::{Partitions, Subnet};
    use rota_sim::Stream;
    use rota_units::{BitRate, Octets};

    fn empty(mbit: u64) -> Result<(Port, usize), Denied> {
        let traffic = Traffic::periodic(Span::from_millis(1)).expect("a sound period");
        let none = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        let memory = || (vec![none; 40], vec![Point::default(); 2_000]);
        let params = SegmentParams::new(BitRate::from_mbit(mbit), 2);
        Ok((Port::new(params, Discipline::default(), Partitions::default(), memory)?, 16))
    }

    /// Of two cables, with more ports than are kept, with channels that come and go.
    #[test]
    fn a_port_that_is_kept_answers_as_one_that_is_made_for_the_question() {
        let (mut random, ready) = (Stream::named(1, "ports of plans"), Ready::default());
        let mut channels = [Vec::new(), Vec::new()];
        let mut accepted = 0;
        for _ in 0..300 {
            let (segment, number) = (random.below(2) as usize, random.below(40));
            let traffic = Traffic::periodic(Span::from_micros(random.between(900, 40_000))).expect("sound");
            let octets = Octets::new(random.between(1, 1_400));
            let ask = Ask { traffic, octets, octets_least: Octets::new(1) };
            let (all, mbit) = (&mut channels[segment], 10 * (1 + segment as u64));
            let made = || {
                let (mut port, _) = empty(mbit)?;
                for (part, ask, delay) in &*all {
                    let offer = Offer { delay: *delay, ..NO_OFFER };
                    port.admit_offered(*part, ask, &offer)?;
                }
                port.part(0).best(&ask)
            };
            let made = made();
            let standing = Standing { segment, units: Span::ZERO, channels: all.clone() };
            let kept = ready.ask(standing, || empty(mbit), |port| port.part(0).best(&ask));
            assert_eq!(kept, made);
            match made {
                Ok(offer) if number > 8 => {
                    accepted += 1;
                    all.push((0, ask, offer.delay + Span::from_micros(random.below(20_000))));
                }
                _ => all.truncate(number as usize),
            }
        }
        assert!(accepted > 50, "{accepted}");
    }
}
