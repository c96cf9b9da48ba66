//! All tests of this crate from outside in one program.

mod cycle;
mod paper_points;
mod spec_table;
mod tandem;
