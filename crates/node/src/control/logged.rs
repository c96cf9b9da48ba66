//! Log lines about channels and incidents.

use super::Control;
use crate::log::{Level, say};
use rota_driver::clock::now;
use rota_proto::{ChannelEvent, ChannelId, Stated};
use rota_shm::{ChannelTally, StationRow};
use rota_units::Span;

/// Broken channels that a status names.
const BROKEN_SHOWN: usize = 32;

impl Control<'_> {
    /// "channel 7 to n3, service 2": by its number at its sender, as at the other end.
    fn called(&self, channel: ChannelId) -> String {
        let owned = self.sessions.iter().flat_map(|session| &session.channels);
        match owned.clone().find(|owned| owned.channel == channel) {
            Some(owned) => {
                let way = if owned.sending { "to" } else { "from" };
                format!("channel {} {way} {}, service {}", owned.shared, owned.peer.name, owned.service)
            }
            None => format!("channel {}", channel.0),
        }
    }

    /// The counts that the programs of a channel see.
    fn counts(&self, channel: ChannelId) -> Option<ChannelTally> {
        let mut owned = self.sessions.iter().flat_map(|session| &session.channels);
        Some(owned.find(|owned| owned.channel == channel)?.board.as_ref()?.tally())
    }

    pub(super) fn log_channel(&self, event: &ChannelEvent) {
        match event {
            ChannelEvent::Opened { channel, contract, .. }
            | ChannelEvent::IncomingOpened { channel, contract } => {
                let text = format!(
                    "opened: {}: units of {} octets each {}, bound {}",
                    self.called(*channel),
                    contract.unit_octets_max,
                    contract.period,
                    contract.bound
                );
                say(Level::Info, "opened", &text);
            }
            ChannelEvent::Probed { channel, contract } => {
                let (octets, period) = (contract.unit_octets_max, contract.period);
                let called = self.called(*channel);
                let text = format!("probed: {called}: units of {octets} octets each {period} would fit");
                say(Level::Info, "probed", &text);
            }
            ChannelEvent::Changed { channel, contract } => {
                let octets = contract.unit_octets_max;
                let text =
                    format!("changed: {}: units of {octets} octets from now on", self.called(*channel));
                say(Level::Info, "changed", &text);
            }
            ChannelEvent::Refused { channel, refusal } | ChannelEvent::NotChanged { channel, refusal } => {
                say(Level::Warn, "refused", &format!("refused: {}: {refusal}", self.called(*channel)));
            }
            ChannelEvent::Closed { channel, cause, stated, tally, .. } => {
                let why = crate::session::board_cause(*cause);
                let counts = self.counts(*channel).unwrap_or(crate::tally::on_board(*tally));
                let broken = crate::tally::sentence(&counts);
                let is_well = why.is_clean() && broken.is_none();
                let level = if is_well { Level::Info } else { Level::Warn };
                let broken = broken.map_or(String::new(), |broken| format!(" ({broken})"));
                let units = stated.map_or(String::new(), |stated| format!(", {} units", stated.units));
                let unknown = unknown(*stated, &counts);
                let words = crate::session::why_closed(*cause);
                let text = format!("closed: {}{units}{broken}{unknown}: {words}", self.called(*channel));
                say(level, "closed", &text);
            }
            // The journal tells which setting it is.
            ChannelEvent::Refusal { why: rota_wire::Verdict::Settings, .. } => {}
            ChannelEvent::Refusal { mac, why, here } => {
                say(Level::Warn, "mismatch", &crate::status::refusal(*mac, *why, *here));
            }
            ChannelEvent::Contested { mac, astray } => {
                say(Level::Warn, "contested", &StationRow::contested_sentence(mac, "", *astray));
            }
            // The end of the channel is told next.
            ChannelEvent::NoMemory { .. } => {}
            // The journal writes these lines, for both ends.
            ChannelEvent::Told { .. }
            | ChannelEvent::Struck(_)
            | ChannelEvent::Incoming { .. }
            | ChannelEvent::ModeChanged
            | ChannelEvent::MembersChanged => {}
        }
    }

    /// A note for each channel of this station on which something went wrong, as far as a status holds them.
    pub(super) fn broken_channels(&self) -> Vec<String> {
        let owned = self.sessions.iter().flat_map(|session| &session.channels);
        shortened(owned.filter_map(|owned| {
            let broken = crate::tally::sentence(&owned.board.as_ref()?.tally())?;
            Some(format!("{}: {broken}", self.called(owned.channel)))
        }))
    }

    /// Begins an incident for an event, if one is to be kept.
    pub(super) fn begin_incident(&mut self, event: u64) {
        let begun = self.incidents.begin(now(), event);
        if let Some(about) = begun {
            let ago = Span::from_nanos(now().as_nanos().saturating_sub(about.at_ns));
            let text = format!(
                "incident: {} {}, {ago} ago; 'rota trace incident' lists them",
                about.event, about.verdict
            );
            say(Level::Warn, "incident", &text);
        }
    }
}

/// The units of an ended channel that stand in no count: the receiver's node fell silent.
fn unknown(stated: Option<Stated>, tally: &ChannelTally) -> String {
    let known = tally.units.saturating_add(tally.lost).saturating_add(tally.incomplete);
    match stated.map_or(0, |stated| stated.units.saturating_sub(known)) {
        0 => String::new(),
        n => format!(", {n} unknown, as the receiver's node has told nothing of them"),
    }
}

/// The first notes, and one that counts the others.
fn shortened(mut notes: impl Iterator<Item = String>) -> Vec<String> {
    let mut shown: Vec<String> = notes.by_ref().take(BROKEN_SHOWN).collect();
    let more = notes.count();
    if more > 0 {
        shown.push(format!("{more} more channels broke their promise; 'rota channel list' shows them"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_notes_of_32_broken_channels_and_counts_the_others() {
        let notes = |all: usize| shortened((0..all).map(|at| at.to_string()));
        assert_eq!(notes(0), Vec::<String>::new());
        assert_eq!((notes(32).len(), notes(32).last().map(String::as_str)), (32, Some("31")));
        assert_eq!(notes(220).len(), 33);
        assert!(notes(220)[32].starts_with("188 more channels"));
    }
}
