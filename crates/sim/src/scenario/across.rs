//! Channels across segments in a scenario: when programs open and close them.

use super::{Scenario, ScenarioError, UNIT_MAX};
use crate::world::{AcrossChange, AcrossSpec, Initiation, Manner, Suite};
use rota_proto::RECEIVERS_MAX;
use rota_units::Span;

/// A channel across segments that a program opens and, when it is lost or denied, opens again.
#[derive(Clone, Debug)]
pub struct AcrossChannel {
    /// Its request.
    pub spec: AcrossSpec,
    /// When it is opened.
    pub open: Span,
    /// When it is closed; at the end of the run when `None`.
    pub close: Option<Span>,
    /// True if the receiver closes it.
    pub by_receiver: bool,
    /// True if that program dies instead.
    pub dies: bool,
    /// The contracts that it asks for while it is open, oldest first.
    pub changes: Vec<AcrossChange>,
    /// Receivers that join, and when.
    pub joins: Vec<(usize, Span)>,
    /// Receivers of several that leave, and when.
    pub leaves: Vec<(usize, Span)>,
}

/// The shortest period: no medium has a share for more units.
const PERIOD_MIN: Span = Span::from_micros(100);
/// The longest period and delay.
const TIME_MAX: Span = Span::from_millis(60_000);
/// The most channels of a scenario: each has a service of its own at every opening.
const CHANNELS_MAX: usize = 256;
/// The most changes of one.
const CHANGES_MAX: usize = 1_000;

impl Scenario {
    pub(super) fn check_across(&self) -> Result<(), ScenarioError> {
        if self.across.len() > CHANNELS_MAX {
            let sentence = format!("{} channels are too many; up to {CHANNELS_MAX}", self.across.len());
            return Err(ScenarioError { part: "across", index: 0, field: "from", sentence });
        }
        self.across.iter().enumerate().try_for_each(|(index, channel)| self.check_channel(index, channel))
    }

    fn check_channel(&self, index: usize, channel: &AcrossChannel) -> Result<(), ScenarioError> {
        let AcrossSpec { from, to, octets, period, delay, .. } = channel.spec;
        let error = |field, sentence| Err(ScenarioError { part: "across", index, field, sentence });
        self.check_stations_of("across", index, from, to)?;
        self.check_terms(index, channel)?;
        if self.world.common(from, to).is_some() {
            let sentence = "is on a segment of the sender; a [[reservation]] is a channel on one segment";
            return error("to", sentence.to_owned());
        }
        if octets == 0 || octets > UNIT_MAX {
            let sentence = format!("a unit of {octets} octets cannot be carried; 1 to {UNIT_MAX} can");
            return error("unit", sentence);
        }
        if !(PERIOD_MIN..=TIME_MAX).contains(&period) {
            return error("period", format!("{period} is no period; {PERIOD_MIN} to {TIME_MAX} is"));
        }
        match delay.filter(|delay| *delay == Span::ZERO || *delay > TIME_MAX) {
            Some(delay) => error("delay", format!("{delay} is no bound; 1ns to {TIME_MAX} is")),
            None => Ok(()),
        }
    }

    /// The terms of the second suite that cannot be together.
    fn check_terms(&self, index: usize, channel: &AcrossChannel) -> Result<(), ScenarioError> {
        let AcrossChannel { spec, changes, joins, leaves, by_receiver, .. } = channel;
        let Suite { others, backup, start, end, group, chances, average, interval, asks, .. } = &spec.suite;
        let error = |field, sentence: &str| {
            let sentence = sentence.to_owned();
            Err(ScenarioError { part: "across", index, field, sentence })
        };
        let receivers = joins.iter().chain(leaves).map(|(host, _)| *host).chain(others.iter().copied());
        for (nth, to) in receivers.enumerate() {
            self.check_stations_of("across", index, spec.from, to)?;
            if nth >= joins.len() + leaves.len()
                && (to == spec.to || others.iter().filter(|of| **of == to).count() > 1)
            {
                return error("also", "names a receiver twice");
            }
        }
        let is_tree = !others.is_empty();
        let is_booked = start.is_some() || end.is_some();
        let is_chance = !chances.is_guaranteed();
        if others.len() + joins.len() >= RECEIVERS_MAX {
            return error("also", "names too many receivers; up to 16 can receive one channel");
        }
        if !(is_tree || joins.is_empty() && leaves.is_empty()) {
            return error("joins", "receivers join and leave a channel to several; name them with 'also'");
        }
        if is_tree && (*backup || is_booked || *by_receiver) {
            return error(
                "also",
                "several receivers have no path in reserve and no booking, and each leaves",
            );
        }
        if *asks != Initiation::Sender && (is_tree || *backup) {
            return error("asks", "is the sender's where there are several receivers, or a path in reserve");
        }
        if start.zip(*end).is_some_and(|(start, end)| end <= start) || *end == Some(Span::ZERO) {
            return error("ends", "is not behind the beginning");
        }
        if group.is_some_and(|group| !group.is_sound()) {
            return error("at-once", "1 to 16 members of a group can send at a time");
        }
        if group.is_some() && (is_booked || is_chance || !changes.is_empty()) {
            return error("group", "members have no booking, no chance and no change");
        }
        let average = average.unwrap_or(spec.period);
        if average < spec.period || interval.is_some_and(|interval| interval < average) {
            return error("average", "is at least the period, and the interval at least the average");
        }
        if average > spec.period && spec.manner != Manner::OnOff {
            return error("average", "is kept by a source that is on and off; write source = \"on-off\"");
        }
        let is_bad = |change: &AcrossChange| {
            change.octets == 0
                || change.octets > UNIT_MAX
                || !(PERIOD_MIN..=TIME_MAX).contains(&change.period)
                || change.delay.is_some_and(|delay| delay == Span::ZERO || delay > TIME_MAX)
        };
        if changes.len() > CHANGES_MAX || changes.iter().any(is_bad) {
            return error("change", "asks for no contract that can be, or there are more than 1,000");
        }
        Ok(())
    }
}
