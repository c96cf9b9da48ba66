//! The death of a source: its node's process has ended, and its segment knows that.
//!
//! ```text
//!  its session ends, or its segment loses it ──► the path has failed: the destination waits for another one
//!  its will comes ─────────────────────────────► no other one comes: the destination is told
//! ```
//!
//! The two come in either order, so that a node on the way remembers for a while whom it told of the failure.
//! The word may even come on the path before, ahead of the failure of the one that follows it: the
//! destination remembers it then, and does not wait when that one fails. It remembers it for
//! [`SILENT_MAX`], in which a path without a source fails, and over changes of the contract. It is believed
//! from neighbours only that the channel's packets came from, on the newest path or on the one before; and
//! it never ends a channel whose path stands.

use super::Rcap;
use super::end::Side;
use super::io::{ChannelKey, EntryId};
use super::ledger::{Entry, key};
use super::reroute::SILENT_MAX;
use rota_contract::{CloseCause, NodeId};
use rota_units::Instant;
use rota_wire::{RcapBody, RcapChannel, RcapClose, RcapTest};

/// A path through this node that has failed, and whose source may turn out to be dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    of: RcapChannel,
    before: NodeId,
    next: NodeId,
    /// The destination waits no longer than this.
    until: Instant,
}

impl Rcap {
    /// Remembers a path on which the destination waits for another one.
    pub(super) fn remember_failed(&mut self, now: Instant, entry: &Entry, close: &RcapClose) {
        let (Some(before), Some(hop)) = (entry.before, entry.hop) else { return };
        if !entry.state.is_open() || !super::reroute::is_failure(entry, close) {
            return;
        }
        // The destination waits for the newest path alone.
        self.failed.retain(|failed| failed.until > now && key(&failed.of) != entry.key());
        if self.failed.len() < self.limits.entries {
            let until = now + entry.demand.request.reroute + SILENT_MAX;
            self.failed.push(Failed { of: entry.of, before, next: hop.node, until });
        }
    }

    /// The process of a neighbour's node has ended: the channels of which it is the source are over, those
    /// that wait for another path among them.
    pub fn neighbour_died(&mut self, now: Instant, node: NodeId) {
        let close = RcapClose { cause: CloseCause::PeerDied, node };
        let is_its = |entry: &Entry| entry.of.origin == node && entry.before == Some(node);
        let through = self.ledger.iter().filter(|(_, entry)| is_its(entry));
        let through: Vec<EntryId> = through.map(|(id, _)| id).collect();
        // The destination of a channel that is open here again hears it on that path.
        let is_open = |id: &EntryId| self.ledger.get(*id).filter(|entry| entry.state.is_open());
        let open: Vec<ChannelKey> = through.iter().filter_map(is_open).map(Entry::key).collect();
        self.failed.retain(|failed| !open.contains(&key(&failed.of)));
        for id in through {
            let end = (close.cause, node);
            self.fail(now, id, RcapTest::NeighbourLost, end, Some(Side::Before));
        }
        let is_meant = |failed: &mut Failed| failed.of.origin == node && failed.before == node;
        let failed: Vec<Failed> = self.failed.extract_if(.., is_meant).collect();
        for Failed { of, next, .. } in failed.into_iter().filter(|failed| failed.until > now) {
            self.send(next, of, RcapBody::CloseForward(close));
        }
        let kept: Vec<ChannelKey> = self.kept.keys().filter(|key| key.origin == node).copied().collect();
        kept.into_iter().for_each(|key| self.end_kept(key, close));
    }

    /// A neighbour says of a channel that is not open here any more that its source has died. True if this
    /// node has told, or waited for, another path of it.
    pub(super) fn source_died(
        &mut self,
        now: Instant,
        from: NodeId,
        of: &RcapChannel,
        close: RcapClose,
    ) -> bool {
        if close != (RcapClose { cause: CloseCause::PeerDied, node: of.origin }) {
            return false;
        }
        let is_meant = |failed: &mut Failed| failed.of == *of && failed.before == from;
        let failed = self.failed.extract_if(.., is_meant).next();
        if let Some(failed) = failed {
            if failed.until > now {
                self.send(failed.next, *of, RcapBody::CloseForward(close));
            }
            return true;
        }
        let is_kept = self.is_kept_from(&key(of), from);
        if is_kept {
            self.end_kept(key(of), close);
        }
        is_kept || self.remember_death(now, from, of)
    }

    /// The word has come on the path before: the channel of this destination has another one meanwhile.
    fn remember_death(&mut self, now: Instant, from: NodeId, of: &RcapChannel) -> bool {
        let is_meant = |entry: &&mut Entry| {
            entry.hop.is_none() && entry.former == Some(from) && of.attempt < entry.of.attempt
        };
        let mut is_known = false;
        // While its contract changes there are two.
        let ids: Vec<EntryId> = self.ledger.all_of(&key(of)).collect();
        for id in ids {
            let Some(entry) = self.ledger.get_mut(id).filter(is_meant) else { continue };
            entry.orphan_until = now + SILENT_MAX;
            is_known = true;
        }
        is_known
    }
}
