//! The one door to the kernel: frame devices, the egress gate, network namespaces, netlink.

pub mod gate;
pub mod inventory;
pub mod netlink;
pub mod netns;
pub mod shape;
pub mod sys;
