//! The only place of this crate with `unsafe`: each file wraps one kernel interface that has no safe wrapper.

pub(crate) mod bpf;
mod door;
mod ethtool;
mod fds;
pub(crate) mod interface;
pub(crate) mod interpreted;
mod packet_bind;
pub(crate) mod packet_ring;
pub(crate) mod packet_socket;
pub(crate) mod pidfd;
pub(crate) mod privileges;
pub(crate) mod schedule;
pub mod sockopt;
mod tun;
pub(crate) mod udp;
pub(crate) mod wait;

pub use door::enter_on_exec;
pub(crate) use ethtool::set_offload;
pub use fds::receive_with_fds;
pub use packet_bind::bind_packet;
pub(crate) use tun::open_tap;
