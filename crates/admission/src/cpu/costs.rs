//! What circuits cost the CPU, as `rota calibrate` measures it (TRANSPORT-R57).

use rota_units::{Octets, Span};

/// Picoseconds of a nanosecond.
const PARTS: u64 = 1_000;

/// The costs of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Each message once.
    pub message: Span,
    /// Each TPDU.
    pub tpdu: Span,
    /// Each octet of a TPDU, in picoseconds.
    pub octet_ps: u64,
}

impl Costs {
    /// u: a TPDU with so many octets of data, rounded up.
    pub fn unit(&self, octets: Octets) -> Span {
        let data = u128::from(octets.get()) * u128::from(self.octet_ps);
        self.tpdu + Span::from_nanos(u64::try_from(data.div_ceil(u128::from(PARTS))).unwrap_or(u64::MAX))
    }

    /// n: the TPDUs of a message, each with so many octets of data at most. An empty message is one, too.
    pub fn units(message: Octets, tpdu: Octets) -> u64 {
        message.get().div_ceil(tpdu.get().max(1)).max(1)
    }
}
