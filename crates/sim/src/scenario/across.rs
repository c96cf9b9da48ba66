//! Channels across segments in a scenario: when programs open and close them.

use super::{Scenario, ScenarioError, UNIT_MAX};
use crate::world::AcrossSpec;
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
}

/// The shortest period: no medium has a share for more units.
const PERIOD_MIN: Span = Span::from_micros(100);
/// The longest period and delay.
const TIME_MAX: Span = Span::from_millis(60_000);
/// The most channels of a scenario: each has a service of its own at every opening.
const CHANNELS_MAX: usize = 256;

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
}
