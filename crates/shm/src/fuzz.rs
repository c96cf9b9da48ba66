//! Fuzz targets as plain functions: any octets in, no panic out.

use crate::control::{Reply, Request};

/// The parser of what a client sends.
pub fn fuzz_control_request(data: &[u8]) {
    let _ = Request::parse(data);
}

/// The parser of what a node sends.
pub fn fuzz_control_reply(data: &[u8]) {
    let _ = Reply::parse(data);
}
