//! The checks of `cargo xtask tidy`, one file per group of rules.

pub mod arrows;
pub mod dependencies;
pub mod docs;
pub mod fuzz;
pub mod hygiene;
pub mod lengths;
pub mod programs;
pub mod purity;
pub mod requirements;
pub mod safety;
pub mod siblings;
pub mod structures;

use crate::tree::{Report, Tree};

/// A group of rules.
pub type Check = fn(&Tree, &mut Report);

/// Every check that needs nothing but the tree, with the name that the output shows.
pub const ALL: &[(&str, Check)] = &[
    ("arrows", arrows::check),
    ("lengths", lengths::check),
    ("structures", structures::check),
    ("siblings", siblings::check),
    ("safety", safety::check),
    ("purity", purity::check),
    ("programs", programs::check),
    ("requirements", requirements::check),
    ("hygiene", hygiene::check),
    ("fuzz", fuzz::check),
    ("dependencies", dependencies::check),
    ("docs", docs::check),
    ("mutations", crate::mutations::check),
];
