//! How many files this process may open.

use crate::links::PENDING_MAX;
use crate::{NodeError, system};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// Its own sockets, queues and files are some thirty; the rest is for programs, which need four at most for a
/// channel. With fewer a node would start and serve no program.
const NEEDED: u64 = 64;
/// The listener of the links and their two events.
const OF_LINKS: u64 = 3;
/// As many as the programs of a node at its limits may take.
const WANTED: u64 = 65_536;

/// Takes as many descriptors as the hard limit allows. To be called first.
///
/// # Errors
/// [`NodeError::Descriptors`] when they are too few.
pub fn ask_for_descriptors() -> Result<(), NodeError> {
    let known = getrlimit(Resource::RLIMIT_NOFILE).map_err(io::Error::from);
    let (soft, hard) = known.map_err(system("the limit of open files is not known"))?;
    let wanted = hard.min(WANTED);
    let raised = soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok();
    enough(if raised { wanted } else { soft })
}

/// True if there are enough for a node with so many neighbours, too.
///
/// # Errors
/// [`NodeError::Descriptors`] when they are too few.
pub fn descriptors_for_neighbours(neighbours: usize) -> Result<(), NodeError> {
    let known = getrlimit(Resource::RLIMIT_NOFILE).map_err(io::Error::from);
    let (limit, _) = known.map_err(system("the limit of open files is not known"))?;
    // A link that is replaced has two connections for a moment.
    beyond(limit, NEEDED + (2 * neighbours + PENDING_MAX) as u64 + OF_LINKS)
}

fn enough(limit: u64) -> Result<(), NodeError> {
    beyond(limit, NEEDED)
}

fn beyond(limit: u64, needed: u64) -> Result<(), NodeError> {
    if limit < needed { Err(NodeError::Descriptors { limit, needed }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_descriptors_are_said_with_both_numbers() {
        let sentence = enough(20).expect_err("too few").to_string();
        assert!(sentence.contains("20 files") && sentence.contains("needs 64"), "{sentence}");
        assert!(enough(64).is_ok() && ask_for_descriptors().is_ok());
        assert!(descriptors_for_neighbours(4).is_ok());
        let many = descriptors_for_neighbours(1 << 40).expect_err("nobody has so many").to_string();
        assert!(many.contains("raise the limit"), "{many}");
    }
}
