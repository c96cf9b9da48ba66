//! Units over a reserved channel of the library `rota`.

use super::{Refusal, UnitSink, UnitSource};
use crate::exit::Failure;
use rota_units::Span;

/// What a sender asks for.
#[derive(Clone, Debug)]
pub struct ChannelRequest {
    /// The receiving station.
    pub to: String,
    /// The service that listens there.
    pub service: u16,
    /// The largest unit.
    pub unit_octets: u64,
    /// The time from one unit to the next.
    pub period: Span,
}

/// Why there is no channel.
#[derive(Debug)]
pub enum OpenError {
    /// Admission said no.
    Refused(Refusal),
    /// Something else went wrong.
    Failed(Failure),
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Opens a channel through this station's node.
pub fn open(_request: &ChannelRequest) -> Result<Box<dyn UnitSink>, OpenError> {
    // TODO: joined to the crate `rota` once it stands.
    Err(OpenError::Failed(Failure::failed("channels are not built yet; use --over udp")))
}

/// Listens for a channel through this station's node.
pub fn listen(_service: u16) -> Result<Box<dyn UnitSource>, Failure> {
    // TODO: joined to the crate `rota` once it stands.
    Err(Failure::failed("channels are not built yet; use --over udp"))
}
