//! Certificates as JSON documents: each part is a table of whole numbers by their names. `rota check` reads
//! them.

use rota_admission::certificate::{
    Certificate, ChannelTerms, FlowTerms, FrameTerms, HopTerms, NetworkTerms, NodeTerms, PacketTerms,
    PortTerms, PromiseTerms, RetherTerms, SlotsTerms,
};
use serde_json::{Map, Value};

/// The document of a certificate. The seal is text, since many readers of JSON round numbers beyond 2^53.
pub fn write(made: &Certificate<'_>) -> Value {
    let hop = |hop: &HopTerms<'_>| {
        let mut table = Map::new();
        table.insert("node".into(), numbers(NodeTerms::NAMES, hop.node.values()));
        table.insert("frame".into(), numbers(FrameTerms::NAMES, hop.frame.values()));
        match &hop.network {
            NetworkTerms::Port(port, flows) => {
                let flows = flows.iter().map(|flow| numbers(FlowTerms::NAMES, flow.values()));
                table.insert("port".into(), numbers(PortTerms::NAMES, port.values()));
                table.insert("flows".into(), flows.collect());
            }
            NetworkTerms::Rether(all) => {
                let all = all.iter().map(|share| numbers(RetherTerms::NAMES, share.values()));
                table.insert("rether".into(), all.collect());
            }
            NetworkTerms::Slots(slots) => {
                table.insert("slots".into(), numbers(SlotsTerms::NAMES, slots.values()));
            }
        }
        Value::Object(table)
    };
    serde_json::json!({
        "version": made.version,
        "channel": numbers(ChannelTerms::NAMES, made.channel.values()),
        "packets": numbers(PacketTerms::NAMES, made.packets.values()),
        "hops": made.hops.iter().map(hop).collect::<Vec<_>>(),
        "promises": made.promises.iter().map(|one| numbers(PromiseTerms::NAMES, one.values()))
            .collect::<Vec<_>>(),
        "seal": made.seal.to_string(),
    })
}

fn numbers(names: &[&str], values: impl Iterator<Item = u64>) -> Value {
    names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), Value::from(value))).collect()
}
