//! The service disciplines of a port, by the names that settings have for them (`TENET-4.2-5` to
//! `TENET-4.2-8`): a scheduler, and how packets ahead of their time are held.
//!
//! | scheduler | holds by | order of service | test |
//! |---|---|---|---|
//! | `delay-edd` | `rate-jitter`, or `none` as in the original | earliest deadline | [`super::edf`] |
//! | `jitter-edd` | `delay-jitter`, or `rate-jitter` | earliest deadline | [`super::edf`] |
//! | `rcsp` | `rate-jitter`, or `delay-jitter` | levels | [`mod@super::rcsp`] |
//!
//! Delay-jitter goes by what the header carries, since hosts have no common clock. RCSP without a regulator
//! is refused: its test counts the packets that become eligible, and only a regulator bounds these.

use super::regulator::Regulator;
use core::fmt;
use rota_units::Span;

/// The order in which a port serves packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// Delay-EDD: the earliest deadline first, tested exactly.
    #[default]
    DelayEdd,
    /// Jitter-EDD: the same order, of packets whose distances were restored.
    JitterEdd,
    /// Rate-controlled static priority.
    Rcsp,
}

/// How a port holds packets that come ahead of their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Hold {
    /// It does not.
    None,
    /// Until they conform to their traffic again.
    #[default]
    RateJitter,
    /// Until the deadline that they had at the node before.
    DelayJitter,
}

/// The discipline of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Discipline {
    /// The order of service.
    pub scheduler: Scheduler,
    /// The regulator.
    pub hold: Hold,
}

/// Names that make no discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadDiscipline {
    /// There is no such scheduler.
    Scheduler,
    /// There is no such regulator.
    Regulator,
    /// The scheduler is not served with this regulator.
    Both(Discipline),
}

impl fmt::Display for BadDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduler => f.write_str("no such discipline; there are delay-edd, jitter-edd and rcsp"),
            Self::Regulator => f.write_str("no such regulator; there are none, rate-jitter and delay-jitter"),
            Self::Both(Discipline { scheduler, hold }) => {
                let others = match scheduler {
                    Scheduler::DelayEdd => "rate-jitter or none; delay-jitter makes it jitter-edd",
                    Scheduler::JitterEdd | Scheduler::Rcsp => "delay-jitter or rate-jitter",
                };
                write!(
                    f,
                    "{} does not go with the regulator {}; give {others}",
                    scheduler.name(),
                    hold.name()
                )
            }
        }
    }
}

impl core::error::Error for BadDiscipline {}

impl Scheduler {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::DelayEdd, Self::JitterEdd, Self::Rcsp];

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DelayEdd => "delay-edd",
            Self::JitterEdd => "jitter-edd",
            Self::Rcsp => "rcsp",
        }
    }

    /// The scheduler of that name.
    ///
    /// # Errors
    /// [`BadDiscipline::Scheduler`].
    pub fn of(name: &str) -> Result<Self, BadDiscipline> {
        Self::ALL.into_iter().find(|of| of.name() == name).ok_or(BadDiscipline::Scheduler)
    }
}

impl Hold {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::RateJitter, Self::DelayJitter];

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::RateJitter => "rate-jitter",
            Self::DelayJitter => "delay-jitter",
        }
    }

    /// The regulator of that name.
    ///
    /// # Errors
    /// [`BadDiscipline::Regulator`].
    pub fn of(name: &str) -> Result<Self, BadDiscipline> {
        Self::ALL.into_iter().find(|of| of.name() == name).ok_or(BadDiscipline::Regulator)
    }
}

impl Discipline {
    /// A discipline of these parts; of what is not named the usual one: Delay-EDD, and the regulator by which
    /// the paper names the scheduler.
    ///
    /// # Errors
    /// [`BadDiscipline::Both`].
    pub fn of(scheduler: Option<Scheduler>, hold: Option<Hold>) -> Result<Self, BadDiscipline> {
        let scheduler = scheduler.unwrap_or_default();
        let usual = if scheduler == Scheduler::JitterEdd { Hold::DelayJitter } else { Hold::RateJitter };
        let discipline = Self { scheduler, hold: hold.unwrap_or(usual) };
        let goes = match discipline.hold {
            Hold::None => scheduler == Scheduler::DelayEdd,
            Hold::RateJitter => true,
            Hold::DelayJitter => scheduler != Scheduler::DelayEdd,
        };
        if goes { Ok(discipline) } else { Err(BadDiscipline::Both(discipline)) }
    }

    /// The regulator, where the time that a packet carries is stated too small by `step` at most.
    pub const fn regulator(self, step: Span) -> Regulator {
        match self.hold {
            Hold::None => Regulator::None,
            Hold::RateJitter => Regulator::Rate,
            Hold::DelayJitter => Regulator::DelayAhead { step },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_what_does_not_go_together_is_refused() {
        assert!(Scheduler::ALL.into_iter().all(|of| Scheduler::of(of.name()) == Ok(of)));
        assert!(Hold::ALL.into_iter().all(|of| Hold::of(of.name()) == Ok(of)));
        assert_eq!(Discipline::of(None, None), Ok(Discipline::default()));
        let jitter = Discipline::of(Some(Scheduler::JitterEdd), None).unwrap();
        assert_eq!(jitter.regulator(Span::from_micros(16)).error(), Span::from_micros(16));
        let served: Vec<(&str, &str)> = Scheduler::ALL
            .into_iter()
            .flat_map(|scheduler| Hold::ALL.map(|hold| Discipline::of(Some(scheduler), Some(hold))))
            .flatten()
            .map(|of| (of.scheduler.name(), of.hold.name()))
            .collect();
        let all = [
            ("delay-edd", "none"),
            ("delay-edd", "rate-jitter"),
            ("jitter-edd", "rate-jitter"),
            ("jitter-edd", "delay-jitter"),
            ("rcsp", "rate-jitter"),
            ("rcsp", "delay-jitter"),
        ];
        assert_eq!(served, all);
        let bad = Discipline::of(Some(Scheduler::Rcsp), Some(Hold::None)).unwrap_err();
        let said = "rcsp does not go with the regulator none; give delay-jitter or rate-jitter";
        assert_eq!(bad.to_string(), said);
        assert!(Scheduler::of("edf").unwrap_err().to_string().contains("delay-edd, jitter-edd and rcsp"));
        assert!(Hold::of("delay").unwrap_err().to_string().contains("none, rate-jitter and delay-jitter"));
    }
}
