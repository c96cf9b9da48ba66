//! Requests to the kernel's network configuration.

/// What the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("todo")]
pub struct NetlinkError;
