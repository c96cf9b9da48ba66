//! All tests of this crate from outside in one program.

mod paper;
mod planted;
mod ring;
mod schedules;
