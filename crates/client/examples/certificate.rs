//! A channel by way of gateways that the source names, and the certificate of its promise:
//! `certificate n4 7 C.json gw2`. Then `rota check C.json` examines each number by code of its own.
//! Without a gateway the network chooses the way.

use rota::{AskedTerms, ControlName, Node, OpenRequest, Span};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [to, service, file, gateways @ ..] = words.as_slice() else {
        return Err("usage: certificate STATION SERVICE FILE [GATEWAYS]".into());
    };
    let via = gateways.first().map(|names| names.parse()).transpose()?;
    let terms = AskedTerms { via, delay: Some(Span::from_millis(400)), ..AskedTerms::default() };
    let request = OpenRequest::new(to, service.parse()?, 5_000, Span::from_millis(40));
    let channel = Node::connect(&ControlName::default())?.open(&OpenRequest { terms, ..request })?;
    std::fs::write(file, channel.certificate()?)?;
    println!("each message within {} ns", channel.contract().bound_ns);
    channel.close(Span::from_millis(500))?;
    Ok(())
}
