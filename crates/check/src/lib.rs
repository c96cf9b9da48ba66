//! The independent checker of certificates: a promise, computed again from what it assumes (`TENET-R16`).
//!
//! It shares no code with the tests that accept channels. A certificate is a conditional statement: *if* the
//! free numbers describe the network and its channels, *then* the promise holds. [`check`] computes every
//! derived number again and compares it by equality. The *seal* is the sum of all numbers, number i times an
//! odd constant to the power i. Odd numbers have inverses modulo 2⁶⁴, so no single number can change
//! without it: it guards against accidents, and the arithmetic against intent. Times are nanoseconds, sizes
//! octets, rates bits a second. A reader finds the fields of each part by name in `FIELDS`; it is not here.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod path;
mod port;
mod rether;
mod slots;
mod terms;

pub use path::check;
pub use terms::{
    Certificate, Channel, Flow, Frame, Hop, HopTerms, Kind, Network, Packets, Port, Promise, Rether, Slots,
    VERSION,
};

/// Why a certificate proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The format is another one.
    Version,
    /// A number is outside of what can be.
    Range(&'static str),
    /// A derived number, as it is stated, is not what follows from the others.
    Differs(&'static str, u64, u128),
    /// A test fails.
    Fails(&'static str),
    /// Some number was changed after the certificate was made.
    Seal,
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Version => write!(f, "unknown version; this checker knows version {VERSION}"),
            Self::Range(field) => write!(f, "{field} is out of range"),
            Self::Differs(field, is, be) => write!(f, "{field} is {is}, but the other numbers give {be}"),
            Self::Fails(test) => write!(f, "the test {test} fails"),
            Self::Seal => write!(f, "the seal does not match: some number was changed"),
        }
    }
}

impl core::error::Error for Fault {}

/// A test, and the fault where it fails.
fn holds(is_so: bool, fault: Fault) -> Result<(), Fault> {
    if is_so { Ok(()) } else { Err(fault) }
}

/// Compares a derived number.
fn same(field: &'static str, stated: u64, computed: u128) -> Result<(), Fault> {
    holds(u128::from(stated) == computed, Fault::Differs(field, stated, computed))
}
