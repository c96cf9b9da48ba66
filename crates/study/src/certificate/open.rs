//! The certificate of an open channel, once the independent checker has accepted it.

use super::document::Document;
pub use rota::certificate::{Sum, share_in_words, sum};
use rota::certificate::{of_way, read_port};
use rota::{ChannelDetail, HopInfo, TermsInfo};
use rota_admission::LinkModel;
use rota_admission::certificate::{PortPart, Standing};
use rota_admission::subnet::packet_span_up;
use serde_json::Value;

/// The certificate as a document, once the independent checker has accepted it.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn certificate(detail: &ChannelDetail) -> Result<Value, String> {
    checked(rota::certificate::document(detail)?)
}

fn checked(document: Value) -> Result<Value, String> {
    let read = Document::read(&document.to_string())?;
    read.check().map_err(|fault| format!("no checker would accept it: {fault}"))?;
    Ok(document)
}

/// Takes any octets as a node's part of a link. A part that is read can be written, and reads back as the
/// same; a certificate is made of it that the checker accepts, or there is a reason why not.
pub fn fuzz_link_part(data: &[u8]) {
    let Ok(terms) = rota_wire::RcapTerms::parse(data) else { return };
    let numbers: Vec<u64> = terms.numbers().collect();
    let Some((part, mut flows)) = read_port(&numbers) else { return };
    let Some(link) = part.frame.link() else { return };
    if let Err(why) = certify_part(numbers, &link, &flows[part.own]) {
        assert!(!why.is_empty(), "a reason has words");
    }
    let again = PortPart::of(&link, part.load, &mut flows, part.own);
    let mut numbers = Vec::new();
    again.write(&flows, &mut |number| numbers.push(number));
    assert_eq!(read_port(&numbers), Some((again, flows)), "what was written reads back");
}

/// The certificate of a channel of this link alone, whose flow is this one.
fn certify_part(part: Vec<u64>, link: &LinkModel, own: &Standing) -> Result<Value, String> {
    let Standing { ask, delay, life } = own;
    let (traffic, octets) = (ask.traffic, ask.octets.get());
    // Flows have their bound on the port: the node's own slack comes on top.
    let bound_ns = delay.as_nanos().saturating_add(link.host_slack.as_nanos());
    let terms = TermsInfo {
        x_min_ns: traffic.x_min().as_nanos(),
        x_ave_ns: traffic.interval().as_nanos() / traffic.burst().max(1),
        interval_ns: traffic.interval().as_nanos(),
        s_max_octets: octets,
        delay_max_ns: bound_ns.saturating_mul(2).saturating_add(1_000_000_000),
        packet_max_octets: octets,
        packet_least_octets: octets,
        begins_ns: life.from.as_nanos(),
        // Half of its life, so that what is sent has time behind it.
        ends_ns: life.until.map_or(0, |until| until.as_nanos() / 2),
        ..TermsInfo::default()
    };
    let hop = HopInfo {
        medium: "link".into(),
        regulator: "rate".into(),
        bound_ns,
        service_least_ns: packet_span_up(link.rate, &link.framing, ask.octets_least).as_nanos(),
        buffers: u64::MAX,
        part,
        ..HopInfo::default()
    };
    checked(of_way(&terms, &[hop])?)
}

#[cfg(test)]
mod tests;
