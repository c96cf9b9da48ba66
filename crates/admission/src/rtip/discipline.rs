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
    /// The bounds of the levels, of RCSP.
    pub levels: LevelBounds,
}

/// Levels of a port.
pub const LEVELS: usize = 8;
/// The longest bound that settings state for a level.
const LEVEL_MAX: Span = Span::from_millis(10_000);

/// The bounds of the first levels of RCSP, as settings state them. Each further level has twice the bound of
/// the one above; a port for which none is stated has its own ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LevelBounds {
    stated: [Span; LEVELS],
    count: usize,
}

impl LevelBounds {
    /// Of these bounds, the first level's first.
    ///
    /// # Errors
    /// [`BadDiscipline::Levels`].
    pub fn of(stated: &[Span]) -> Result<Self, BadDiscipline> {
        let is_rising = stated.windows(2).all(|two| two[0] < two[1]);
        let is_sound = |bound: &Span| (Span::from_nanos(1)..=LEVEL_MAX).contains(bound);
        let mut all = [Span::ZERO; LEVELS];
        let fits = is_rising && !stated.is_empty() && stated.iter().all(is_sound);
        let place = all.get_mut(..stated.len()).filter(|_| fits).ok_or(BadDiscipline::Levels)?;
        place.copy_from_slice(stated);
        Ok(Self { stated: all, count: stated.len() })
    }

    /// Those that are stated.
    pub fn stated(&self) -> &[Span] {
        &self.stated[..self.count]
    }

    /// All levels of a port whose own ones are these.
    pub fn or(&self, own: [Span; LEVELS]) -> [Span; LEVELS] {
        let Some(last) = self.stated().last() else { return own };
        core::array::from_fn(|level| match level.checked_sub(self.count) {
            None => self.stated[level],
            Some(more) => *last * (2 << more),
        })
    }
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
    /// These are no bounds of levels.
    Levels,
    /// Only RCSP has levels.
    NoLevels,
}

impl fmt::Display for BadDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduler => f.write_str("no such discipline; there are delay-edd, jitter-edd and rcsp"),
            Self::Regulator => f.write_str("no such regulator; there are none, rate-jitter and delay-jitter"),
            Self::Levels => {
                write!(
                    f,
                    "state one to {LEVELS} bounds of levels, each longer than the one before, \
                     {LEVEL_MAX} at most"
                )
            }
            Self::NoLevels => f.write_str("only rcsp has levels"),
            Self::Both(Discipline { scheduler, hold, .. }) => {
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
        let levels = LevelBounds::default();
        let discipline = Self { scheduler, hold: hold.unwrap_or(usual), levels };
        let goes = match discipline.hold {
            Hold::None => scheduler == Scheduler::DelayEdd,
            Hold::RateJitter => true,
            Hold::DelayJitter => scheduler != Scheduler::DelayEdd,
        };
        if goes { Ok(discipline) } else { Err(BadDiscipline::Both(discipline)) }
    }

    /// The same with these bounds of levels.
    ///
    /// # Errors
    /// [`BadDiscipline::NoLevels`].
    pub fn with_levels(self, levels: LevelBounds) -> Result<Self, BadDiscipline> {
        match self.scheduler {
            Scheduler::Rcsp => Ok(Self { levels, ..self }),
            _ => Err(BadDiscipline::NoLevels),
        }
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
        let ms = Span::from_millis;
        let levels = LevelBounds::of(&[ms(3), ms(5)]).unwrap();
        let all = [3, 5, 10, 20, 40, 80, 160, 320].map(ms);
        assert_eq!((levels.or([ms(1); LEVELS]), LevelBounds::default().or(all)), (all, all));
        for wrong in [&[][..], &[ms(0)], &[ms(2), ms(2)], &[ms(10_001)], &[ms(1); 9]] {
            assert_eq!(LevelBounds::of(wrong), Err(BadDiscipline::Levels));
        }
        assert_eq!(jitter.with_levels(levels), Err(BadDiscipline::NoLevels));
        let rcsp = Discipline::of(Some(Scheduler::Rcsp), None).unwrap();
        assert_eq!(rcsp.with_levels(levels).map(|of| of.levels), Ok(levels));
        assert!(Hold::of("delay").unwrap_err().to_string().contains("none, rate-jitter and delay-jitter"));
    }
}
