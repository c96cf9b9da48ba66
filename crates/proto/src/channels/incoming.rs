//! A channel whose receiver is here.

use super::Listener;
use super::apart::Apart;
use super::astray::AstrayUnits;
use super::doubt::Doubt;
use super::meter::Meter;
use crate::io::ChannelId;
use rota_contract::{Granted, NodeId, Tally};
use rota_units::Instant;
use rota_wire::MacAddr;

#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) id: ChannelId,
    /// The node at the other end; [`NodeId::UNKNOWN`] where its announcement has not been heard.
    pub(super) peer: NodeId,
    /// The station of the segment that its frames come from, and that its signals go to.
    pub(super) hop: MacAddr,
    pub(super) remote: ChannelId,
    pub(super) label: u16,
    pub(super) last_number: u64,
    /// The newest fragment: what does not exceed it is a double or a replay.
    pub(super) newest: Option<(u64, u16)>,
    pub(super) granted: Granted,
    /// The parent is ready for its units: the sender may be told.
    pub(super) accepted: bool,
    pub(super) opened: bool,
    /// The listener, which listens again if the channel never opens.
    pub(super) taker: Listener,
    pub(super) since: Instant,
    pub(super) meter: Meter,
    pub(super) astray: AstrayUnits,
    /// The newest question of its sender that came.
    pub(super) reached: u64,
    /// Set while it is not certain that its sender still has it.
    pub(super) doubt: Option<Doubt>,
    /// The counts that were reported to its sender, and the earliest time of the next report.
    pub(super) told: Tally,
    pub(super) tell_at: Instant,
    /// Its program takes its frames itself.
    pub(super) apart: Option<Apart>,
}
