//! Events as lines for people and as JSON.

use super::entry::{Entry, Who};
use crate::filter::MODES;
use rota::{ChannelId, TraceEvent, TraceVerdict};
use rota_units::Span;
use rota_wire::TpduBody;
use serde_json::{Value, json};
use std::fmt::Write;

/// A time of day, UTC, to the microsecond.
pub fn time_of_day(wall_ns: u64) -> String {
    let (seconds, micros) = (wall_ns / 1_000_000_000, wall_ns / 1_000 % 1_000_000);
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{micros:06}", seconds % 60)
}

/// One line.
pub fn line(entry: &Entry) -> String {
    let time = time_of_day(entry.wall(entry.record.at_ns));
    let mut line = format!("{time}  {:<15}", entry.record.event.word());
    if entry.is_of_several {
        let _ = write!(line, " {:<8}", if entry.interface.is_empty() { "-" } else { &entry.interface });
    }
    if entry.is_frame() {
        let from = entry.src.as_ref().map_or_else(|| "?".into(), Who::called);
        let to = entry.dst.as_ref().map_or_else(|| "?".into(), Who::called);
        let _ = write!(line, " {from} > {to}  {}  {} B", entry.kind().unwrap_or("?"), entry.record.length);
        if let Some(level) = entry.record.level {
            let _ = write!(line, "  priority {level}");
        }
        if let Some(about) = circuit(entry).or_else(|| channel(entry)) {
            let _ = write!(line, "  {about}");
        }
        if entry.record.verdict != TraceVerdict::None {
            let _ = write!(line, "  {}", entry.record.verdict.word());
        }
    } else {
        let _ = write!(line, " {}", what(entry));
    }
    line
}

/// The circuit of a frame, and the word of its TPDU.
fn circuit(entry: &Entry) -> Option<String> {
    let (tpdu, octets) = entry.tpdu()?;
    let name = if tpdu.circuit == 0 { "a circuit".to_owned() } else { format!("circuit {}", tpdu.circuit) };
    Some(format!("{name}: {}", said(&tpdu.body, octets)))
}

/// The word of a TPDU with so many octets of data.
fn said(body: &TpduBody, octets: u16) -> String {
    match body {
        TpduBody::Data { sequence, message, index, last } => {
            let of = if *last { ", the last of its message" } else { "" };
            format!("data {sequence}, {octets} octets, part {index} of message {message}{of}")
        }
        TpduBody::Ack { cum, cause: 0, limit } => format!("ack up to {cum}, room up to {limit}"),
        TpduBody::Ack { cum, cause, limit } => format!("ack up to {cum} for {cause}, room up to {limit}"),
        TpduBody::Open(terms) => format!("open service {}, window {}", terms.service, terms.window),
        TpduBody::Accept(terms) => format!("accept, window {} of {} octets", terms.window, terms.tpdu),
        TpduBody::Confirm(terms) => format!("confirm service {}", terms.service),
        TpduBody::Refuse { why, .. } => format!("refuse: {why}"),
        TpduBody::Reset { why } => format!("reset: {why}"),
        TpduBody::Close { tpdus, messages } => format!("close behind {tpdus} TPDUs, {messages} messages"),
        TpduBody::Closed { tpdus, messages } => format!("closed behind {tpdus} TPDUs, {messages} messages"),
        TpduBody::Ask => "ask".to_owned(),
        TpduBody::Decline { reason } => format!("decline for reason {reason}"),
    }
}

/// The channel, unit and deadline of a frame.
pub fn channel(entry: &Entry) -> Option<String> {
    let record = &entry.record;
    let packet = entry.packet().map(|packet| format!("packet {packet} of local id {}", record.label));
    if record.channel == ChannelId::NONE {
        return packet.or_else(|| (record.label != 0).then(|| format!("label {}", record.label)));
    }
    let mut about = format!("channel {}", record.channel);
    if let Some(unit) = entry.unit() {
        let _ = write!(about, " unit {unit}");
    }
    if let Some(packet) = packet {
        let _ = write!(about, ", {packet}");
    }
    if let Some(deadline) = deadline(entry) {
        let _ = write!(about, ", {deadline}");
    }
    Some(about)
}

/// How an event stands to its deadline.
pub fn deadline(entry: &Entry) -> Option<String> {
    let by = Span::from_nanos(entry.record.late_ns.unsigned_abs());
    let after = if entry.record.late_ns > 0 { "after" } else { "before" };
    (entry.record.deadline_ns != 0).then(|| format!("{by} {after} its deadline"))
}

/// What happened, of an event that is no frame.
pub fn what(entry: &Entry) -> String {
    let record = &entry.record;
    let who = entry.src.as_ref().map_or_else(|| "an unknown station".into(), Who::called);
    let [a, b, c] = record.extra;
    let span = Span::from_nanos;
    let mode = |number: u64| usize::try_from(number).ok().and_then(|n| MODES.get(n)).unwrap_or(&"unknown");
    match record.event {
        TraceEvent::ModeChange => format!("from {} to {}", mode(a), mode(record.number)),
        TraceEvent::Lost if record.number == 1 => format!("{who} has left in good order"),
        TraceEvent::Lost => format!("{who} does not answer any more"),
        TraceEvent::Back => format!("{who} is there"),
        TraceEvent::Refused => {
            let offer = if c == 0 { "nothing would fit".into() } else { format!("{c} octets would fit") };
            format!(
                "channel {} by {}: {} a cycle too much ({b} bit/s); {offer}",
                record.channel,
                entry.words,
                span(a)
            )
        }
        TraceEvent::Opened | TraceEvent::Changed | TraceEvent::Rerouted => {
            let (period, bound) = (span(b), span(c).printed_up());
            format!("channel {}: units of {a} octets each {period}, bound {bound}", record.channel)
        }
        TraceEvent::Closed | TraceEvent::PathFailed => {
            format!("channel {}: {}", record.channel, entry.words)
        }
        TraceEvent::BeyondContract => {
            format!("{} sent beyond its contract: {} packets had to wait", entry.words, record.number)
        }
        TraceEvent::Missed => match record.verdict {
            // Of a channel whose program counts.
            TraceVerdict::Incomplete if b == 0 => {
                format!("channel {} unit {}: it came in part", record.channel, record.number)
            }
            TraceVerdict::Incomplete => {
                format!("channel {} unit {}: {b} octets never came", record.channel, record.number)
            }
            TraceVerdict::Missing => {
                format!("channel {}: {a} units from {} on never came", record.channel, record.number)
            }
            TraceVerdict::LeftOut => {
                format!(
                    "channel {}: its program left out {a} units from {} on",
                    record.channel, record.number
                )
            }
            TraceVerdict::Unread => {
                format!("channel {}: its program did not read {a} units in time, {c} in all", record.channel)
            }
            _ => {
                let deadline = deadline(entry).unwrap_or_default();
                format!("channel {} unit {}: {deadline}", record.channel, record.number)
            }
        },
        TraceEvent::Stall => {
            let timer = record.verdict == TraceVerdict::TimerLate;
            let how = if timer { "a timer fired that late" } else { "a frame waited that long" };
            format!("this host stood still for {}: {how}", span(b.saturating_sub(a)))
        }
        TraceEvent::PortLost => format!("the interface is gone, and its channels with it: {}", entry.words),
        TraceEvent::LinkDown => "the link went down".into(),
        TraceEvent::LinkUp => "the link is up again".into(),
        TraceEvent::Claim => "the token was missed, and this station asked to make a new one".into(),
        TraceEvent::Regenerated => "this station made a new token".into(),
        TraceEvent::LeaseEnded => "the lease of the token ended before it was passed on".into(),
        TraceEvent::CycleSkipped => "a cycle lasted longer than its period".into(),
        _ => entry.words.clone(),
    }
}

/// One event as JSON; times are on the monotonic clock of its host.
pub fn json(entry: &Entry) -> Value {
    let record = &entry.record;
    let who = |who: &Option<Who>| who.as_ref().map(Who::called);
    let mut json = json!({
        "index": entry.index,
        "at_ns": record.at_ns,
        "wall_ns": entry.wall(record.at_ns),
        "event": record.event.word(),
        "src": who(&entry.src),
        "dst": who(&entry.dst),
        "interface": (!entry.interface.is_empty()).then_some(&entry.interface),
    });
    let fields = entry.fields();
    let mut put = |key: &str, value: Option<Value>| {
        if let (Some(value), Some(json)) = (value, json.as_object_mut()) {
            json.insert(key.into(), value);
        }
    };
    put("kind", fields.kind.map(Value::from));
    put("verdict", fields.verdict.map(Value::from));
    put("mode", fields.mode.map(Value::from));
    put("priority", fields.priority.map(Value::from));
    put("channel", fields.channel.map(|channel| Value::from(channel.0)));
    put("circuit", fields.circuit.map(Value::from));
    put("tpdu", entry.tpdu().map(|(tpdu, octets)| said(&tpdu.body, octets).into()));
    let is_end = record.event == TraceEvent::Closed;
    put("unit", entry.unit().map(Value::from));
    put("units", record.number.checked_sub(1).filter(|_| is_end).map(Value::from));
    put("label", fields.label.map(Value::from));
    put("packet", entry.packet().map(Value::from));
    put("length_octets", fields.length.map(Value::from));
    put("deadline_ns", (record.deadline_ns != 0).then(|| record.deadline_ns.into()));
    put("late_ns", (record.deadline_ns != 0).then(|| record.late_ns.into()));
    put("noted_ns", (record.noted_ns != record.at_ns).then(|| record.noted_ns.into()));
    put("what", (!entry.is_frame()).then(|| what(entry).into()));
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota::TraceRecord;

    #[test]
    fn a_packet_across_segments_is_named_by_its_local_id_and_number() {
        let mut octets = vec![0; 60];
        octets[17] = rota_wire::PayloadKind::Rtip.code();
        octets[48..50].copy_from_slice(&4_711u16.to_be_bytes());
        let kind = rota_wire::Kind::Data.code();
        let record = TraceRecord { kind, length: 60, label: 7, number: 4_711, ..TraceRecord::default() };
        let entry = Entry { record, octets, ..Entry::default() };
        assert_eq!(channel(&entry).as_deref(), Some("packet 4711 of local id 7"));
        assert_eq!((&json(&entry)["label"], &json(&entry)["packet"]), (&json!(7), &json!(4_711)));
        let mut named = entry.clone();
        named.record.channel = ChannelId(33);
        assert_eq!(channel(&named).as_deref(), Some("channel 33, packet 4711 of local id 7"));
        assert_eq!((&json(&named)["channel"], &json(&named)["unit"]), (&json!(33), &Value::Null));
        // Its destination knows the unit.
        (named.record.number, named.record.deadline_ns, named.record.late_ns) = (4, 9, -2_000_000);
        let at_its_end = "channel 33 unit 4, packet 4711 of local id 7, 2 ms before its deadline";
        assert_eq!(channel(&named).as_deref(), Some(at_its_end));
        assert_eq!((&json(&named)["packet"], &json(&named)["unit"]), (&json!(4_711), &json!(4)));
        let unit = Entry { octets: vec![0; 60], ..entry };
        assert_eq!(channel(&unit).as_deref(), Some("label 7"));
        assert_eq!(json(&unit)["packet"], Value::Null);
    }

    #[test]
    fn a_tpdu_is_told_by_its_circuit_also_where_its_end_is_cut_off() {
        let data = TpduBody::Data { sequence: 17, message: 3, index: 2, last: true };
        let tpdu = rota_wire::Tpdu { to: 1, circuit: u64::MAX, body: data };
        let mut octets = vec![0; 160];
        let head = rota_wire::ETHERNET_HEADER_OCTETS + rota_wire::LINK_HEADER_OCTETS;
        tpdu.emit(1_424, &mut octets[head..]);
        let kind = rota_wire::Kind::Circuit.code();
        let record = TraceRecord { kind, length: 1_500, ..TraceRecord::default() };
        let entry = Entry { record, octets, ..Entry::default() };
        let said = "data 17, 1424 octets, part 2 of message 3, the last of its message";
        assert_eq!(circuit(&entry), Some(format!("circuit {}: {said}", u64::MAX)));
        assert!(line(&entry).ends_with(said), "{}", line(&entry));
        let told = json(&entry);
        assert_eq!((&told["circuit"], &told["tpdu"]), (&json!(u64::MAX), &json!(said)));
        let passes = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            crate::filter::Filter::from_words(&words).expect(text).matches(&entry.fields())
        };
        assert!(passes("circuit 18446744073709551615") && passes("circuit") && passes("kind circuit"));
        assert!(!passes("circuit = 5") && !passes("not circuit") && passes("not circuit 5"));
    }

    /// It named a unit that no channel of so many units has.
    #[test]
    fn the_end_of_a_channel_states_its_units_and_names_none() {
        let end = |number| {
            let record = TraceRecord {
                event: TraceEvent::Closed,
                channel: ChannelId(7),
                number,
                ..TraceRecord::default()
            };
            let (octets, words) = (Vec::new(), "it is over".into());
            json(&Entry { index: 1, record, octets, words, ..Entry::default() })
        };
        assert_eq!((&end(92)["units"], &end(92)["unit"]), (&json!(91), &Value::Null));
        assert_eq!((&end(0)["units"], &end(0)["unit"]), (&Value::Null, &Value::Null));
    }
}
