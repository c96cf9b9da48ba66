//! All tests of this crate from outside in one program.

mod corpus;
mod frames;
mod page;
mod refused;
mod round_trip;
mod samples;
mod tpdu;
