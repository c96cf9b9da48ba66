//! Units that were left out because a station fell silent, and no slot came for them.

use super::{NEAR_NS, Scene, called, units};
use crate::trace::entry::Entry;
use rota::{CauseInfo, IncidentInfo, TraceEvent};

/// Frames of a ring come for so long after it was dissolved.
const LAST_WORDS_NS: u64 = 20_000_000;

/// Where units were left out: the cause that lies in another station, which was silent, so that no slot came.
pub fn silence(info: &IncidentInfo) -> Option<&CauseInfo> {
    let is_left_out = info.cause_of_program().is_some_and(|cause| cause.kind == CauseInfo::LEFT_OUT);
    let is_stall = |cause: &CauseInfo| cause.kind == "host_stall" && !cause.is_of_this_host();
    let mut causes = info.causes.iter();
    causes.find(|cause| is_left_out && (cause.kind == "station_silent" || is_stall(cause)))
}

impl Scene<'_> {
    /// A frame that no key proves any more, because its ring has just been dissolved.
    pub(super) fn is_of_dissolved_ring(&self, frame: &Entry) -> bool {
        let is_end = |entry: &Entry| {
            let is_plain = entry.fields().mode == Some("plain");
            is_plain && entry.record.at_ns.abs_diff(frame.record.at_ns) <= LAST_WORDS_NS
        };
        frame.kind() == Some("mode") || self.entries.iter().any(is_end)
    }

    /// Units became overdue while a station was silent, of which this host's own standstill is no cause.
    pub(super) fn no_slot_came(&self) -> Option<String> {
        let record = &self.about.record;
        let is_near = |entry: &&Entry| entry.record.at_ns.abs_diff(record.at_ns) <= NEAR_NS;
        let mut near = self.entries.iter().filter(is_near);
        let is_lost = |entry: &&Entry| entry.record.event == TraceEvent::Lost && entry.record.number == 0;
        let lost = near.clone().find(is_lost).map(|lost| called(lost.src.as_ref()));
        let ended = near.find(|entry| {
            let is_end = entry.record.event == TraceEvent::Closed && entry.record.extra[0] == 1;
            is_end && entry.record.channel == record.channel
        });
        // Where the ring ends with the channel, its stations are looked for anew, and none is lost.
        let name = lost.or(ended.map(|_| "another station".to_owned()))?;
        let ended = ended.map_or(String::new(), |end| format!(" The channel ended: {}.", end.words));
        let is_own = self.stall().is_some_and(|stall| stall.as_nanos() > NEAR_NS / 10);
        (!is_own).then(|| {
            format!(
                "The assumption that broke: {name} fell silent, and no slot came until the ring went on \
                 without it. The sending program left out {} that were overdue.{ended}",
                units(record)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Assumption;
    use super::super::tell;
    use super::super::tests::{MS, entry, frame, late, stall, told, who};
    use super::*;
    use rota::TraceVerdict;

    /// A late unit of a channel across segments was said to come from the last gateway.
    #[test]
    fn a_unit_comes_from_where_its_channel_begins() {
        let late = late(1, 124);
        let info = IncidentInfo { number: 1, events: 1, ..IncidentInfo::about(1, &late.record) };
        let said = |source: &str| {
            let info = IncidentInfo { source: source.into(), ..info.clone() };
            tell(&info, std::slice::from_ref(&late), 2, "n2").unwrap().text
        };
        let of_own_segment = said("");
        assert!(of_own_segment.contains("from n1 reached n2"), "{of_own_segment}");
        assert!(said("faith").contains("from faith reached n2"), "{}", said("faith"));
    }

    /// A short standstill of the receiver's node, seen by its reports only, left it there, too.
    #[test]
    fn units_left_out_while_the_other_end_stood_still_name_it() {
        let mut out = late(2, 1_000);
        (out.record.verdict, out.record.extra) = (TraceVerdict::LeftOut, [3, 0, 0]);
        let mut info = IncidentInfo { number: 1, ..IncidentInfo::about(2, &out.record) };
        let stall = |who: &str| {
            let sentence = format!("{who} stood still for 152 ms");
            CauseInfo::new("host_stall", sentence)
        };
        info.causes.push(stall("this host"));
        let said = tell(&info, std::slice::from_ref(&out), 2, "n2").unwrap();
        assert_eq!((said.assumption, silence(&info)), (Assumption::LeftOut, None));
        info.causes.push(stall("the host of n2"));
        let said = tell(&info, &[out], 2, "n2").unwrap();
        assert_eq!(said.assumption, Assumption::HostStall);
        let words = "broke: the host of n2 stood still for 152 ms, and no slot came meanwhile. Within";
        let program = "the sending program left out 3 overdue units;";
        assert!(said.text.contains(words) && said.text.contains(program), "{}", said.text);
    }

    /// The frames of a ring that ended with its channel were a foreign sender's.
    #[test]
    fn frames_of_a_ring_that_has_just_ended_accuse_nobody() {
        let mut end = entry(2, 1_000, TraceEvent::Closed);
        (end.record.channel, end.record.extra[0]) = (rota::ChannelId(7), 1);
        let mut strange = frame(1, 995, 3, 1);
        strange.record.verdict = TraceVerdict::Unauthentic;
        let mut plain = entry(3, 1_001, TraceEvent::ModeChange);
        plain.record.number = 1;
        let said = told(&[strange.clone(), end.clone(), plain], 2);
        assert_eq!(said.assumption, Assumption::StationSilent, "{}", said.text);
        assert_eq!(told(&[strange, end], 2).assumption, Assumption::ForeignSender);
    }

    /// A receiver's node that was stopped left the blame on the sending program.
    #[test]
    fn units_left_out_while_a_station_was_silent_name_it() {
        let mut out = late(2, 1_000);
        (out.record.verdict, out.record.extra) = (TraceVerdict::LeftOut, [14, 0, 0]);
        (out.record.src, out.src, out.record.late_ns) = (2, Some(who(2)), 0);
        let mut lost = entry(1, 900, TraceEvent::Lost);
        (lost.record.src, lost.src) = (3, Some(who(3)));
        let mut end = entry(3, 1_001, TraceEvent::Closed);
        (end.record.channel, end.record.extra[0], end.words) =
            (rota::ChannelId(7), 1, "the other station fell silent".into());
        let said = told(&[lost.clone(), out.clone(), end.clone()], 2);
        assert_eq!(said.assumption, Assumption::StationSilent, "{}", said.text);
        let words = "n3 fell silent, and no slot came until the ring went on without it. The sending \
                     program left out units 12 to 25 that were overdue. The channel ended: the other \
                     station fell silent.";
        assert!(said.text.contains(words), "{}", said.text);
        // Not where this host stood still itself, nor where the station said farewell, nor long before.
        let own = told(&[stall(0, 300, 990), lost.clone(), out.clone()], 2);
        assert_eq!(own.assumption, Assumption::LeftOut, "{}", own.text);
        let words = "another station fell silent, and no slot came";
        assert!(told(&[out.clone(), end], 2).text.contains(words));
        lost.record.number = 1;
        assert_eq!(told(&[lost.clone(), out.clone()], 2).assumption, Assumption::LeftOut);
        (lost.record.number, out.record.at_ns) = (0, 2_500 * MS);
        assert_eq!(told(&[lost, out], 2).assumption, Assumption::LeftOut);
    }
}
