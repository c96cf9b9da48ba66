//! The protocol work of a node as clients of the task scheduler (`crate::task`; TRANSPORT-R51).
//!
//! Two choices are the scheduler's: whose turn it is among the ports, and in which order the machines of a
//! port do the work for which their deadlines have come. The token is above it (TRANSPORT-R52): the timers of
//! the medium come first, and its grants say what may leave.
//!
//! Not its choices, yet: a frame that comes is handled at once, and what waits for a grant leaves in the
//! order of the eight-level queue, which is that of its levels and not of classes.

use crate::task::{Call, Class, Next, Scheduler, Terms};
use rota_units::{Instant, Span};

/// The stated cost of an output of a port, or of a machine's timers. A node that takes longer counts it
/// (`turn_longest` of its status).
const COST: Span = Span::from_micros(200);
/// Outputs of one port in a row while others may have some: a busy port delays another one by so many frames.
const OUTPUTS_A_TURN: u16 = 8;

/// The turns of the ports, so that none waits for another one's whole backlog. They are of one class, and
/// have equal weights.
#[derive(Clone, Debug)]
pub(super) struct Turns(Scheduler);

impl Turns {
    /// Of so many ports, which are named by their places.
    pub(super) fn new(ports: usize) -> Self {
        let mut scheduler = Scheduler::new(ports as u16);
        let terms = Terms { class: Class::Guaranteed, weight: OUTPUTS_A_TURN, cost: COST };
        for _ in 0..ports {
            let client = scheduler.register(terms).expect("it has room for all ports");
            scheduler.schedule(client);
        }
        Self(scheduler)
    }

    /// The port whose turn it is.
    pub(super) fn next(&mut self, now: Instant) -> usize {
        self.0.poll(now).map_or(0, |call| call.client.place())
    }

    /// It gave an output, or passes its turn.
    pub(super) fn done(&mut self, now: Instant, gave_output: bool) {
        if gave_output { self.0.done(now, 1, Next::Ready) } else { self.0.done(now, 0, Next::Pass) }
    }
}

/// A machine of a port that has timers, beside the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    Channels,
    LinkControl,
    Circuits,
    Reports,
}

impl Machine {
    pub(super) const ALL: [Self; 4] = [Self::Channels, Self::LinkControl, Self::Circuits, Self::Reports];

    /// Channels are promised, link control and circuits are reliable, and reports tell monitors.
    const fn class(self) -> Class {
        match self {
            Self::Channels => Class::Guaranteed,
            Self::LinkControl | Self::Circuits => Class::Reliable,
            Self::Reports => Class::BestEffort,
        }
    }
}

/// The work of one port's machines for which their deadlines have come.
#[derive(Clone, Debug)]
pub(super) struct Work(Scheduler);

impl Work {
    pub(super) fn new() -> Self {
        let mut scheduler = Scheduler::new(Machine::ALL.len() as u16);
        for machine in Machine::ALL {
            let terms = Terms { class: machine.class(), weight: 1, cost: COST };
            scheduler.register(terms).expect("it has room for all machines");
        }
        Self(scheduler)
    }

    /// When a machine wants to be called.
    pub(super) fn set(&mut self, machine: Machine, at: Instant) {
        if let Some(client) = self.0.client_at(machine as usize) {
            self.0.schedule_at(client, at);
        }
    }

    /// The machine whose timers come next, of those whose deadlines have come.
    pub(super) fn next(&mut self, now: Instant) -> Option<Machine> {
        let Call { client, .. } = self.0.poll(now)?;
        Some(Machine::ALL[client.place()])
    }

    /// It has done what was due.
    pub(super) fn done(&mut self, now: Instant) {
        self.0.done(now, 1, Next::Rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000);

    #[test]
    fn the_machines_of_a_port_do_what_is_due_by_class() {
        let mut work = Work::new();
        work.set(Machine::Reports, Instant::ZERO);
        work.set(Machine::LinkControl, NOW);
        work.set(Machine::Channels, NOW + Span::from_nanos(1));
        assert_eq!(work.next(NOW), Some(Machine::LinkControl));
        // Work that is due amid a task of a lower class goes before the next one.
        work.set(Machine::Channels, NOW);
        work.done(NOW);
        assert_eq!(work.next(NOW), Some(Machine::Channels));
        work.done(NOW);
        assert_eq!(work.next(NOW), Some(Machine::Reports));
        work.done(NOW);
        assert_eq!(work.next(NOW), None);
        work.set(Machine::Reports, Instant::FAR);
        assert_eq!(work.next(Instant::from_nanos(u64::MAX - 1)), None);
    }

    #[test]
    fn ports_take_turns_of_eight_outputs_and_one_without_any_passes() {
        let mut turns = Turns::new(3);
        let mut order = Vec::new();
        let mut left = [20, 0, 10];
        for _ in 0..40 {
            let port = turns.next(NOW);
            let gives = left[port] > 0;
            turns.done(NOW, gives);
            if gives {
                left[port] -= 1;
                order.push(port);
            }
        }
        let turn = |port| vec![port; usize::from(OUTPUTS_A_TURN)];
        let wanted = [turn(0), turn(2), turn(0), vec![2; 2], vec![0; 4]].concat();
        assert_eq!(order, wanted);
    }
}
