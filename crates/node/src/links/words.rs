//! The links in `rota status --json`.

use super::door::{LinkInfo, LinksInfo, LinksView};
use super::why::Refusal;
use rota_driver::clock::now;
use rota_units::Instant;
use serde_json::{Map, Value, json};

impl LinksView {
    pub(crate) fn json(&self) -> Value {
        json_of(&self.info(), now())
    }
}

fn json_of(info: &LinksInfo, at: Instant) -> Value {
    let of = |refusal: &Refusal| info.refused.get(refusal).copied().unwrap_or(0);
    let refused: Map<String, Value> =
        Refusal::ALL.iter().map(|refusal| (refusal.word().to_owned(), json!(of(refusal)))).collect();
    let neighbours: Vec<Value> = info.links.iter().map(|link| link_json(link, at)).collect();
    json!({
        "listening": info.listening.to_string(),
        "key": info.key.to_string(),
        "pending": info.pending,
        "refused": refused,
        "neighbours": neighbours,
    })
}

fn link_json(link: &LinkInfo, at: Instant) -> Value {
    let LinkInfo { neighbour, state, since, reason, ups, sent, received } = link;
    json!({
        "node_id": neighbour.node.to_string(),
        "name": neighbour.name,
        "address": neighbour.address.to_string(),
        "key": neighbour.key.to_string(),
        "state": state.word(),
        "since_ns": at.since(*since).as_nanos(),
        "reason": reason,
        "ups": ups,
        "messages_sent": sent,
        "messages_received": received,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::Plan;
    use super::*;
    use rota_units::Span;

    #[test]
    fn each_link_has_its_state_and_its_reason() {
        let (one, other) = (Plan::new(1), Plan::new(2));
        let mut end = one.start(&[other.pin()]);
        let mut info = end.info();
        info.links[0].reason = Some("gone".into());
        info.refused.insert(Refusal::NoKey, 7);
        let json = json_of(&info, info.links[0].since + Span::from_millis(1_234));
        assert_eq!((&json["refused"]["no_key"], &json["refused"]["deadline"]), (&json!(7), &json!(0)));
        assert_eq!(json["refused"].as_object().map(Map::len), Some(Refusal::ALL.len()));
        let link = &json["neighbours"][0];
        assert_eq!((&link["since_ns"], &link["reason"]), (&json!(1_234_000_000), &json!("gone")));
        assert_eq!((&link["node_id"], &link["name"]), (&json!("0000000000000002"), &Value::Null));
        assert!(["dialling", "up"].contains(&link["state"].as_str().expect("a word")), "{json}");
    }
}
