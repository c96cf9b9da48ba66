//! What a program asks of the network, and what it gets: one vocabulary for machines, nodes and programs.
//!
//! A type stands here when two rooms must mean the same by it. No code maps one of these types to a twin.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod cause;

pub use cause::CloseCause;
