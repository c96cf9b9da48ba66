//! The terms of a channel beyond its units: the average of its traffic, and the delay that it bears.

use crate::statistical::{CHANCE_WHOLE, Chances};
use crate::{Group, PartitionName, Via};
use rota_units::Span;

/// The longest time for which another path is looked for: a receiver keeps its end for so long, and longer.
pub const REROUTE_MAX: Span = Span::from_millis(60_000);

/// The request of a program beyond [`crate::TrafficSpec`], whose period is X_min and whose largest unit is
/// S_max: X_ave and I of the traffic, D_max and J_max of the service (Tenet paper, Tables 2 and 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct AskedTerms {
    /// X_ave: the least average time between units; the period if none is stated.
    #[cfg_attr(feature = "serde", serde(rename = "average_ns", with = "nanos"))]
    pub average: Option<Span>,
    /// I: the time over which the average holds; X_ave if none is stated.
    #[cfg_attr(feature = "serde", serde(rename = "interval_ns", with = "nanos"))]
    pub interval: Option<Span>,
    /// D_max: the longest delay of a unit; the medium's own bound if none is stated.
    #[cfg_attr(feature = "serde", serde(rename = "delay_ns", with = "nanos"))]
    pub delay: Option<Span>,
    /// J_max: the largest difference of two delays; any if none is stated.
    #[cfg_attr(feature = "serde", serde(rename = "jitter_ns", with = "nanos"))]
    pub jitter: Option<Span>,
    /// For how long another path is looked for when that of an open channel across segments fails; the
    /// sender's node's own time if none is stated, not at all if it is zero.
    #[cfg_attr(feature = "serde", serde(rename = "reroute_ns", with = "nanos"))]
    pub reroute: Option<Span>,
    /// True if a second path is to be reserved beforehand, over other gateways.
    pub backup: bool,
    /// True if the way may lead through a network without Rota, where nothing is guaranteed.
    pub allow_withdrawn: bool,
    /// The partition that the channel counts in, on each link of its way that has one of this name. A change
    /// states none: the channel stays in it.
    pub partition: Option<PartitionName>,
    /// The group that shares the reservations of the links of its way. A change states none: the channel
    /// stays in it.
    pub group: Option<Group>,
    /// When the channel is needed first, from now on; at once if nothing is stated. A change states none, and
    /// no end.
    #[cfg_attr(feature = "serde", serde(rename = "start_ns", with = "nanos"))]
    pub start: Option<Span>,
    /// When it ends by itself, from now on; never if nothing is stated.
    #[cfg_attr(feature = "serde", serde(rename = "end_ns", with = "nanos"))]
    pub end: Option<Span>,
    /// The chances of the statistical class; none in the guaranteed one.
    pub chances: Chances,
    /// The gateways that its path is to lead through, in this order; any if none are stated. A change to none
    /// takes the condition away.
    pub via: Option<Via>,
}

/// Another contract for an open channel. Terms that it does not state stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct AskedChange {
    /// S_max: the largest unit, octets; up to the room that the channel was opened with.
    pub unit_octets_max: Option<u32>,
    /// X_min: the least time between units.
    #[cfg_attr(feature = "serde", serde(rename = "period_ns", with = "nanos"))]
    pub period: Option<Span>,
    /// X_ave, I, D_max, J_max, the chances and the gateways. The other ones are those of the opening,
    /// and none may be stated.
    pub terms: AskedTerms,
}

impl AskedChange {
    /// Another size, and nothing else.
    pub fn of_size(unit_octets_max: u32) -> Self {
        Self { unit_octets_max: Some(unit_octets_max), ..Self::default() }
    }

    /// Tests if it states only what changes.
    ///
    /// # Errors
    /// [`BadTerms::Fixed`]: the first term that an open channel keeps.
    pub fn check(&self) -> Result<(), BadTerms> {
        let AskedTerms { reroute, backup, allow_withdrawn, partition, start, end, .. } = self.terms;
        let fixed = [
            (partition.is_some(), "partition"),
            (start.is_some(), "start"),
            (end.is_some(), "end"),
            (backup, "path in reserve (backup)"),
            (reroute.is_some(), "time for which another path is looked for (reroute)"),
            (allow_withdrawn, "permission for ways without a guarantee"),
        ];
        match fixed.into_iter().find(|(is_stated, _)| *is_stated) {
            Some((_, term)) => Err(BadTerms::Fixed(term)),
            None => Ok(()),
        }
    }

    /// The new size, if nothing else is to change.
    pub fn size_alone(&self) -> Option<u32> {
        let Self { unit_octets_max, period, terms } = *self;
        unit_octets_max.filter(|_| period.is_none() && terms == AskedTerms::default())
    }
}

/// Terms that contradict each other or the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTerms {
    /// X_ave is shorter than X_min.
    #[error(
        "the average time between units (Xave, {average}) is shorter than the least one (Xmin, {least}); it \
         must be {least} or longer"
    )]
    AverageBelowLeast {
        /// X_ave.
        average: Span,
        /// X_min.
        least: Span,
    },
    /// I is shorter than X_ave.
    #[error(
        "the interval of the average (I, {interval}) is shorter than the average time between units (Xave, \
         {average}); it must be {average} or longer"
    )]
    IntervalBelowAverage {
        /// I.
        interval: Span,
        /// X_ave.
        average: Span,
    },
    /// D_max is zero.
    #[error("a delay of 0 cannot be kept; state the longest that is borne")]
    DelayZero,
    /// J_max is zero.
    #[error("a jitter of 0 cannot be kept; state the largest that is borne, or none for any jitter")]
    JitterZero,
    /// Another path is looked for longer than a receiver keeps its end.
    #[error("another path is looked for {REROUTE_MAX} at most, not {0}; with 0 the channel ends at once")]
    RerouteLong(Span),
    /// It ends before it starts.
    #[error("an end after {end} is no later than the start, after {start}")]
    EndBeforeStart {
        /// The start.
        start: Span,
        /// The end.
        end: Span,
    },
    /// The time is too far away.
    #[error("a channel is booked for {most} ahead at most, not for {asked}", most = AskedTerms::AHEAD_MAX)]
    FarAhead {
        /// Asked for.
        asked: Span,
    },
    /// A change states a term that it does not change.
    #[error("an open channel keeps its {0}: leave it out of the change, or open another channel")]
    Fixed(&'static str),
    /// No member of the group could send, or too many.
    #[error("of a group 1 to {most} members send at once, not {0}", most = Group::AT_ONCE_MAX)]
    AtOnce(u8),
    /// A member of a group with a start, an end or chances.
    #[error("a member of a group has no start, no end and no probabilities yet; leave them out")]
    GroupAlone,
    /// A probability of 0, or one of loss without one of time.
    #[error("probabilities are above 0, and that of no loss goes with that of timely delivery")]
    Chances,
}

impl AskedTerms {
    /// How far ahead a channel may start or end: clocks that nobody sets are wrong by 15 minutes then.
    pub const AHEAD_MAX: Span = Span::from_millis(50 * 24 * 3_600_000);

    /// X_ave of units that come `period` apart or more.
    pub fn average_of(&self, period: Span) -> Span {
        self.average.unwrap_or(period)
    }

    /// I of the same.
    pub fn interval_of(&self, period: Span) -> Span {
        self.interval.unwrap_or(self.average_of(period))
    }

    /// Tests if the terms can be, for units that come `period` apart or more.
    ///
    /// # Errors
    /// [`BadTerms`]: the first contradiction.
    pub fn check(&self, period: Span) -> Result<(), BadTerms> {
        let (average, interval) = (self.average_of(period), self.interval_of(period));
        if average < period {
            return Err(BadTerms::AverageBelowLeast { average, least: period });
        }
        if interval < average {
            return Err(BadTerms::IntervalBelowAverage { interval, average });
        }
        if let Some(time) = self.reroute.filter(|time| *time > REROUTE_MAX) {
            return Err(BadTerms::RerouteLong(time));
        }
        let (start, end) = (self.start.unwrap_or(Span::ZERO), self.end.unwrap_or(Span::MAX));
        if end <= start {
            return Err(BadTerms::EndBeforeStart { start, end });
        }
        if let Some(asked) = self.start.into_iter().chain(self.end).find(|at| *at > Self::AHEAD_MAX) {
            return Err(BadTerms::FarAhead { asked });
        }
        let Chances { late_ppb, loss_ppb } = self.chances;
        if late_ppb >= CHANCE_WHOLE || loss_ppb >= CHANCE_WHOLE || late_ppb == 0 && loss_ppb > 0 {
            return Err(BadTerms::Chances);
        }
        if let Some(group) = self.group {
            if !group.is_sound() {
                return Err(BadTerms::AtOnce(group.at_once));
            }
            if self.start.is_some() || self.end.is_some() || !self.chances.is_guaranteed() {
                return Err(BadTerms::GroupAlone);
            }
        }
        match (self.delay, self.jitter) {
            (Some(Span::ZERO), _) => Err(BadTerms::DelayZero),
            (_, Some(Span::ZERO)) => Err(BadTerms::JitterZero),
            _ => Ok(()),
        }
    }
}

/// Spans as numbers of nanoseconds, or null.
#[cfg(feature = "serde")]
mod nanos {
    use rota_units::Span;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the form that serde calls")]
    pub(super) fn serialize<S: Serializer>(span: &Option<Span>, into: S) -> Result<S::Ok, S::Error> {
        span.map(Span::as_nanos).serialize(into)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Span>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Span::from_nanos))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    fn ms(n: u64) -> Option<Span> {
        Some(Span::from_millis(n))
    }

    #[test]
    fn terms_that_contradict_each_other_are_named_with_what_would_be_right() {
        let period = Span::from_millis(20);
        let said = |terms: AskedTerms| terms.check(period).map_err(|bad| bad.to_string());
        let none = AskedTerms::default();
        assert_eq!(said(none), Ok(()));
        assert_eq!((none.average_of(period), none.interval_of(period)), (period, period));
        let average = said(AskedTerms { average: ms(10), ..none }).unwrap_err();
        assert!(average.contains("10 ms") && average.ends_with("it must be 20 ms or longer"), "{average}");
        let interval = said(AskedTerms { average: ms(40), interval: ms(30), ..none }).unwrap_err();
        assert!(interval.contains("30 ms") && interval.ends_with("40 ms or longer"), "{interval}");
        // Without an average the interval must hold one unit.
        assert!(said(AskedTerms { interval: ms(19), ..none }).is_err());
        assert!(said(AskedTerms { delay: Some(Span::ZERO), ..none }).is_err());
        assert!(said(AskedTerms { jitter: Some(Span::ZERO), ..none }).is_err());
        let long = said(AskedTerms { reroute: ms(60_001), ..none }).unwrap_err();
        assert_eq!(
            long,
            "another path is looked for 60 s at most, not 60.001 s; with 0 the channel ends at once"
        );
        assert!(said(AskedTerms { reroute: ms(60_000), ..none }).is_ok());
        let late = said(AskedTerms { start: ms(30), end: ms(30), ..none }).unwrap_err();
        assert!(late.contains("no later than the start"), "{late}");
        assert!(said(AskedTerms { end: Some(Span::ZERO), ..none }).is_err());
        assert_eq!(said(AskedTerms { start: ms(30), end: ms(31), ..none }), Ok(()));
        let far = said(AskedTerms { start: Some(Span::from_millis(1 << 40)), ..none }).unwrap_err();
        assert!(far.contains("ahead at most"), "{far}");
        let beyond =
            |at| said(AskedTerms { end: Some(AskedTerms::AHEAD_MAX + Span::from_nanos(at)), ..none });
        assert_eq!((beyond(0), beyond(1).is_err()), (Ok(()), true), "an end as a start");
        let chances = |late_ppb, loss_ppb| AskedTerms { chances: Chances { late_ppb, loss_ppb }, ..none };
        assert_eq!(said(chances(1, 0)), Ok(()));
        assert_eq!(said(chances(999_999_999, 999_999_999)), Ok(()));
        assert!(said(chances(1_000_000_000, 0)).is_err() && said(chances(0, 1)).is_err());
        let change =
            |terms| AskedChange { terms, ..AskedChange::default() }.check().map_err(|bad| bad.to_string());
        assert_eq!(
            change(AskedTerms {
                delay: ms(9),
                average: ms(3),
                chances: Chances { late_ppb: 1, loss_ppb: 0 },
                ..none
            }),
            Ok(())
        );
        let partition = "studio".parse().ok();
        for (terms, named) in [
            (AskedTerms { partition, ..none }, "its partition"),
            (AskedTerms { start: ms(0), ..none }, "its start"),
            (AskedTerms { end: ms(9), ..none }, "its end"),
            (AskedTerms { backup: true, ..none }, "reserve"),
            (AskedTerms { reroute: ms(0), ..none }, "reroute"),
            (AskedTerms { allow_withdrawn: true, ..none }, "permission"),
        ] {
            assert!(change(terms).unwrap_err().contains(named), "{named}");
        }
        let member = |at_once| Some(Group { name: "talk".parse().unwrap(), at_once });
        assert_eq!(said(AskedTerms { group: member(2), ..none }), Ok(()));
        let many = said(AskedTerms { group: member(17), ..none }).unwrap_err();
        assert_eq!(many, "of a group 1 to 16 members send at once, not 17");
        let booked = AskedTerms { group: member(2), end: ms(31), ..none };
        assert!(said(booked).unwrap_err().contains("leave them out"));
        let all = AskedTerms { average: ms(20), interval: ms(20), delay: ms(1), jitter: ms(1), ..none };
        assert_eq!(said(all), Ok(()));
    }
}
