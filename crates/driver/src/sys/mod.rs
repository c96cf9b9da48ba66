//! The only unsafe code of this crate: thin, checked wrappers around system calls that no safe crate offers.

pub(crate) mod interface;
pub(crate) mod packet_socket;
pub(crate) mod schedule;
pub(crate) mod wait;
