//! What a lab is to look like, and the words its errors use.

use rota_admission::Framing;
use rota_driver::netlink::NetlinkError;
use rota_driver::netns::NsError;
use rota_units::{BitRate, Octets, Span};
use std::path::PathBuf;

pub use rota_driver::netns::Isolation;
pub use rota_driver::shape::{PriorityMatch, PrioritySpec};

/// The LAN to build: `stations` namespaces n1…nN on one switch whose ports run at `rate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabSpec {
    /// What `rota lab exec` and `rota lab down` call it.
    pub name: String,
    /// How many stations: 1 to [`LabSpec::STATIONS_MAX`].
    pub stations: u8,
    /// The wire rate of both directions of every port, framing included.
    pub rate: BitRate,
    /// How much a port holds before it drops.
    pub port_queue: Octets,
    /// A video class on every port, or one queue for all.
    pub priority: Option<PrioritySpec>,
    /// What `rota calibrate` wrote, for the nodes of all stations.
    pub calibration: Option<PathBuf>,
    /// The MTU of all stations and ports.
    pub mtu: u16,
    /// The cycle of all nodes; their default without it.
    pub trt: Option<Span>,
    /// Whether the ports have queues that keep the rate; without them frames cross at once.
    pub shaped: bool,
    /// The ports are left alone for `rota hub` to join, which keeps the rate itself.
    pub hub: bool,
}

impl LabSpec {
    /// The last octet of 10.77.0.K names the station, and 254 is the last host of a /24.
    pub const STATIONS_MAX: u8 = rota_sim::scenario::STATIONS_MAX as u8;

    /// A lab called `name` with the port queue that suits `rate`.
    pub fn new(name: impl Into<String>, stations: u8, rate: BitRate) -> Self {
        Self {
            name: name.into(),
            stations,
            rate,
            port_queue: default_port_queue(rate),
            priority: None,
            calibration: None,
            mtu: Framing::ETHERNET.mtu,
            trt: None,
            shaped: true,
            hub: false,
        }
    }
}

/// 150 kB, as cheap switches have; 1 MB from 1 Gbit/s on.
pub fn default_port_queue(rate: BitRate) -> Octets {
    if rate.as_bps() >= 1_000_000_000 { Octets::new(1_000_000) } else { Octets::new(150_000) }
}

/// Why a lab could not be built or changed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A lab needs stations.
    #[error("a lab has 1 to {max} stations, not {0}", max = LabSpec::STATIONS_MAX)]
    Stations(u8),
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
