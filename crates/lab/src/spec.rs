//! What a lab is to look like, and the words its errors use.

use crate::topology::{Segment, Topology, TopologyError};
use rota_driver::netlink::NetlinkError;
use rota_driver::netns::NsError;
use rota_units::BitRate;
use std::path::PathBuf;

pub use rota_driver::netns::Isolation;
pub use rota_driver::shape::{PriorityMatch, PrioritySpec};

/// The lab to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabSpec {
    /// What `rota lab exec` and `rota lab down` call it.
    pub name: String,
    /// Its segments and stations.
    pub topology: Topology,
    /// A video class on every port, or one queue for all.
    pub priority: Option<PrioritySpec>,
    /// What `rota calibrate` wrote, for the nodes of all stations.
    pub calibration: Option<PathBuf>,
    /// Whether the ports have queues that keep the rate; without them frames cross at once.
    pub shaped: bool,
    /// True if the kernels of gateways forward ordinary packets, and stations know the ways by them.
    pub routed: bool,
}

impl LabSpec {
    /// A lab called `name` with stations n1…nN on one switch.
    pub fn new(name: impl Into<String>, stations: u8, rate: BitRate) -> Self {
        Self::of(name, Topology::of_one(Segment::new("lan", rate), stations))
    }

    /// A lab called `name`.
    pub fn of(name: impl Into<String>, topology: Topology) -> Self {
        Self { name: name.into(), topology, priority: None, calibration: None, shaped: true, routed: false }
    }

    /// The number of stations.
    pub fn stations(&self) -> u8 {
        self.topology.stations.len() as u8
    }
}

/// Why a lab could not be built or changed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The topology makes no sense.
    #[error("{0}")]
    Topology(#[from] TopologyError),
    /// The priority rule makes no sense.
    #[error("{0}")]
    Priority(#[from] rota_driver::shape::ShapeError),
    /// Namespaces could not be made or entered.
    #[error("{0}")]
    Namespace(#[from] NsError),
    /// The kernel refused a link, an address or a queue.
    #[error("{0}")]
    Netlink(#[from] NetlinkError),
}
