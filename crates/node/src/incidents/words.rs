//! An incident that begins, as a sentence for the log. `rota trace incident` tells the rest.

use rota_shm::control::IncidentInfo;
use rota_shm::{TraceEvent, TraceVerdict};

/// What has happened. `channel` and `station` are the names of what the incident is about.
pub(super) fn sentence(info: &IncidentInfo, channel: &str, station: &str) -> String {
    let (event, verdict) = (info.event.as_str(), info.verdict.as_str());
    if event == TraceEvent::Missed.word() {
        return missed(verdict, channel);
    }
    match event {
        _ if event == TraceEvent::Lost.word() => format!("{station} does not answer any more"),
        _ if event == TraceEvent::Closed.word() => format!("{channel} ended unexpectedly"),
        _ if event == TraceEvent::PathFailed.word() => format!("the path of {channel} failed"),
        _ if event == TraceEvent::Refused.word() => {
            format!("admission refused a request of {channel}")
        }
        _ if event == TraceEvent::BeyondContract.word() => format!("{} sent beyond its contract", info.group),
        _ if event == TraceEvent::Stall.word() => "this host stood still".into(),
        _ => format!("{event} {verdict}"),
    }
}

fn missed(verdict: &str, channel: &str) -> String {
    match verdict {
        _ if verdict == TraceVerdict::Incomplete.word() => {
            format!("a unit of {channel} came in part")
        }
        _ if verdict == TraceVerdict::Missing.word() => format!("units of {channel} never came"),
        _ if verdict == TraceVerdict::LeftOut.word() => {
            format!("a program left out units of {channel}")
        }
        _ if verdict == TraceVerdict::Unread.word() => {
            format!("a program did not read units of {channel} in time")
        }
        _ => format!("a unit of {channel} was late"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_contract::ChannelId;
    use rota_shm::TraceRecord;

    /// The log said "incident: lost , 4.2 ms ago", of no station.
    #[test]
    fn each_incident_is_a_sentence_that_names_its_station_or_channel() {
        let said = |event, verdict| {
            let record =
                TraceRecord { event, verdict, channel: ChannelId(7), src: 2, ..TraceRecord::default() };
            sentence(&IncidentInfo::about(1, &record), "channel 7 to n3, service 1", "n2")
        };
        let none = TraceVerdict::None;
        assert_eq!(said(TraceEvent::Lost, none), "n2 does not answer any more");
        assert_eq!(said(TraceEvent::Closed, none), "channel 7 to n3, service 1 ended unexpectedly");
        assert_eq!(said(TraceEvent::PathFailed, none), "the path of channel 7 to n3, service 1 failed");
        assert_eq!(
            said(TraceEvent::Refused, none),
            "admission refused a request of channel 7 to n3, service 1"
        );
        assert_eq!(said(TraceEvent::Stall, TraceVerdict::DequeueLate), "this host stood still");
        let (event, octets) = (TraceEvent::BeyondContract, b"group talk of user 0");
        let record = TraceRecord { event, octets, ..TraceRecord::default() };
        let told = sentence(&IncidentInfo::about(1, &record), "channel 0", "n1");
        assert_eq!(told, "group talk of user 0 sent beyond its contract");
        for (verdict, words) in [
            (TraceVerdict::Late, "a unit of channel 7 to n3, service 1 was late"),
            (TraceVerdict::Incomplete, "a unit of channel 7 to n3, service 1 came in part"),
            (TraceVerdict::Missing, "units of channel 7 to n3, service 1 never came"),
            (TraceVerdict::LeftOut, "a program left out units of channel 7 to n3, service 1"),
            (TraceVerdict::Unread, "a program did not read units of channel 7 to n3, service 1 in time"),
        ] {
            assert_eq!(said(TraceEvent::Missed, verdict), words);
        }
    }
}
