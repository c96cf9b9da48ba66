//! `rota channel show`: one channel hop by hop, and its certificate.

use super::{broken, entry};
use crate::status::connect;
use rota::{ChannelDetail, ChannelId, EndInfo, HopInfo, ReceiverInfo, Shown};
use rota_answer::{Exit, Failure, Format, outln};
use rota_study::certificate::open::{Sum, certificate, share_in_words, sum};
use rota_units::Span;
use serde_json::{Value, json};

const HOPS: &str = "hop  node          port  network  bound         buffers  sent      dropped  share";

/// Runs the command.
pub fn run(channel: ChannelId, wants_certificate: bool, format: Format) -> Result<Exit, Failure> {
    match connect()?.channel(channel)? {
        Shown::Ended(end) if wants_certificate => {
            Err(Failure::failed(format!("{} has ended, and its certificate with it", end.called)))
        }
        Shown::Ended(end) => {
            tell_end(channel, &end, format);
            Ok(Exit::Done)
        }
        Shown::Channel(detail) if wants_certificate => {
            let document = certificate(&detail)
                .map_err(|why| Failure::failed(format!("channel {channel} has no certificate: {why}")))?;
            // The document that 'rota check' reads, and nothing else.
            outln!("{document:#}");
            Ok(Exit::Done)
        }
        Shown::Channel(detail) => {
            format.tell(&json!({ "shown": shown(&detail) }), |_| tell(&detail));
            Ok(Exit::Done)
        }
    }
}

fn tell_end(channel: ChannelId, end: &EndInfo, format: Format) {
    let EndInfo { called, how, ago_ns, receivers } = end;
    let mut json = json!({ "ended": { "channel": channel, "called": called, "how": how, "ago_ns": ago_ns } });
    if !receivers.is_empty() {
        json["ended"]["receivers"] = receivers.iter().map(receiver_in_json).collect();
    }
    format.tell(&json, |_| {
        outln!("{}", end_line(end));
        receivers.iter().for_each(|receiver| outln!("{}", crate::send::receiver(receiver)));
    });
}

fn end_line(EndInfo { called, how, ago_ns, .. }: &EndInfo) -> String {
    format!("{called} ended {} s ago{how}", ago_ns / 1_000_000_000)
}

fn shown(detail: &ChannelDetail) -> Value {
    let mut shown = entry(&detail.info);
    shown["terms"] = json!(detail.terms);
    shown["hops"] = detail.hops.iter().map(hop_in_json).collect();
    let of_one = sum(detail).filter(|_| detail.receivers.is_empty());
    shown["sum"] = of_one.map_or(Value::Null, |sum| {
        json!({
            "bound_ns": sum.delay.as_nanos(),
            "jitter_ns": sum.jitter.as_nanos(),
            "host_ns": sum.host.as_nanos(),
            "packets": sum.packets.count,
            "packet_octets": sum.packets.octets.get(),
        })
    });
    shown["destination"] = json!(detail.destination);
    if !detail.receivers.is_empty() {
        shown["receivers"] = detail.receivers.iter().map(receiver_in_json).collect();
    }
    shown
}

fn receiver_in_json(receiver: &ReceiverInfo) -> Value {
    let mut json = json!(receiver);
    json["hops"] = receiver.hops.iter().map(hop_in_json).collect();
    json
}

fn hop_in_json(hop: &HopInfo) -> Value {
    let mut json = json!(hop);
    // Its numbers have their names in the certificate.
    if let Some(fields) = json.as_object_mut() {
        fields.remove("part");
    }
    json["share"] = json!(share_in_words(hop));
    json
}

fn tell(detail: &ChannelDetail) {
    let ChannelDetail { info, terms, hops, destination, receivers } = detail;
    let way = if info.sending { "to" } else { "from" };
    let broken = broken(&info.tally);
    outln!(
        "channel {} {way} {}, service {}: {}{broken}",
        info.channel,
        info.peer_name,
        info.service,
        info.state
    );
    let span = Span::from_nanos;
    let bound = info.contract.bound().printed_up();
    let Some(terms) = terms else {
        let octets = info.contract.contract.unit_octets_max;
        let but = info.contract.but();
        return outln!("units of {octets} octets within {bound}{but}; its sender's station shows the hops");
    };
    let jitter = match terms.jitter_max_ns {
        0 => String::new(),
        most => format!(", jitter of {} is borne", span(most)),
    };
    outln!(
        "units of {} octets, {} apart or more, {} on average over {}; within {bound} ({} is borne{jitter}){}",
        terms.s_max_octets,
        span(terms.x_min_ns),
        span(terms.x_ave_ns),
        span(terms.interval_ns),
        span(terms.delay_max_ns),
        info.contract.but()
    );
    if terms.starts_in_ns > 0 {
        outln!("booked: it begins in {}", span(terms.starts_in_ns));
    }
    if let Some(ends) = terms.ends_in_ns {
        outln!("it ends by itself in {}", span(ends));
    }
    if let Some(partition) = terms.partition {
        outln!("partition {partition}");
    }
    if let Some(group) = terms.group {
        outln!("group {}: {} of its members at once", group.name, group.at_once);
    }
    if !receivers.is_empty() {
        return tell_receivers(receivers);
    }
    outln!("{HOPS}");
    for (n, hop) in hops.iter().enumerate() {
        tell_hop(n + 1, hop);
    }
    if let Some(sum) = sum(detail) {
        tell_sum(&sum);
    }
    if let Some(to) = destination {
        outln!("at {}: {} units came whole, {} in part or not at all", to.node, to.units, to.broken);
    }
}

fn tell_receivers(receivers: &[ReceiverInfo]) {
    for receiver in receivers {
        outln!("{}", crate::send::receiver(receiver));
        if receiver.state == "in" {
            outln!("{HOPS}");
            receiver.hops.iter().enumerate().for_each(|(n, hop)| tell_hop(n + 1, hop));
        }
    }
}

fn tell_hop(n: usize, hop: &HopInfo) {
    outln!("{}", hop_line(n, hop));
}

fn hop_line(n: usize, hop: &HopInfo) -> String {
    let node = if hop.node.is_empty() { hop.node_id.to_string() } else { hop.node.clone() };
    let HopInfo { port, medium, buffers, sent, dropped, .. } = hop;
    let bound = Span::from_nanos(hop.bound_ns).printed_up().to_string();
    let (place, share) = (format!("{n:<3}  {node:<12}  {port:<4}  {medium:<7}"), share_in_words(hop));
    let part = match hop.partition_percent {
        0 => String::new(),
        percent => format!("; its partition has {percent} %"),
    };
    let beyond = match hop.held {
        0 => String::new(),
        held => format!("; {held} packets held because the group was beyond its contract"),
    };
    format!("{place}  {bound:<12}  {buffers:<7}  {sent:<8}  {dropped:<7}  {share}{part}{beyond}")
}

fn tell_sum(sum: &Sum) {
    let Sum { packets, host, delay, jitter } = sum;
    let of = match packets.count {
        1 => String::new(),
        many => format!("; {many} packets of at most {} octets a unit", packets.octets.get()),
    };
    let (delay, jitter) = (delay.printed_up(), jitter.printed_up());
    outln!("sum: {delay}, of it {host} at the sending host; jitter {jitter}{of}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each number stands below the word of its column.
    #[test]
    fn a_hop_has_its_numbers_below_the_words_of_its_columns() {
        let hop = HopInfo {
            node: "gw1".into(),
            port: 2,
            medium: "link".into(),
            bound_ns: 1_234_567,
            buffers: 41,
            sent: 9_876,
            dropped: 13,
            held: 7,
            partition_percent: 60,
            ..HopInfo::default()
        };
        let line = hop_line(3, &hop);
        let below = |word: &str| line[HOPS.find(word).expect("a column")..].split("  ").next();
        let words = ["hop", "node", "port", "network", "bound", "buffers", "sent", "dropped"];
        let bound = Span::from_nanos(1_234_567).printed_up().to_string();
        let numbers = ["3", "gw1", "2", "link", &bound, "41", "9876", "13"];
        assert_eq!(words.map(below), numbers.map(Some), "{line}");
        let behind = "; its partition has 60 %; 7 packets held because the group was beyond its contract";
        assert!(line.ends_with(behind), "{line}");
    }

    #[test]
    fn the_end_of_a_channel_is_told_in_whole_seconds() {
        let (called, how) = ("channel 5 to n4".into(), ": 3 of 9 units lost".into());
        let end = EndInfo { called, how, ago_ns: 61_999_999_999, receivers: Vec::new() };
        assert_eq!(end_line(&end), "channel 5 to n4 ended 61 s ago: 3 of 9 units lost");
    }
}
