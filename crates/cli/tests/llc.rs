//! Messages between sockets of stations: what a user sees, in network namespaces, in both modes.

mod common;

use common::Lab;
use std::time::Duration;

/// A lab whose station nK has the node address K.
fn lab(test: &str, stations: u8) -> Option<Lab> {
    let lab = Lab::without_nodes(test, stations, &[])?;
    Some(lab.with_nodes(|_, k| vec!["--llc-address".into(), k.to_string()]))
}

#[test]
fn a_datagram_crosses_from_socket_to_socket() {
    let Some(lab) = lab("llc-ui", 2) else { return };
    let receiver = lab.start(2, &["llc", "recv", "--socket", "4", "--count", "2", "--timeout", "10s"]);
    std::thread::sleep(Duration::from_millis(300));
    lab.rota(1, &["llc", "send", "--to", "4@2", "hello"]).well();
    lab.rota(1, &["llc", "send", "--to", "4@2", ""]).well();
    let heard = receiver.finish().well();
    assert_eq!(heard.out, "2@1 hello\n2@1 \n");
}
