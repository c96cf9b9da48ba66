//! The rules of a world of RCAP machines: at any time, of each call, and when all is over.

use super::{KEEP_ALIVE, Outcome, World, ms, place, taken};
use rota_proto::rcap::{ChannelKey, EntryId, RcapLimits};
use rota_units::Instant;
use std::collections::BTreeSet;

impl World {
    /// A call has one outcome, in time; an open channel one end.
    pub(super) fn settle(&mut self, key: ChannelKey, outcome: Outcome, from: &[Outcome]) {
        let (now, patience) = (self.now, self.limits.patience);
        let called = self.calls.get_mut(&key).expect("a channel that was asked for");
        assert!(from.contains(&called.outcome), "{:?} becomes {outcome:?}", called.outcome);
        called.outcome = outcome;
        if called.until.is_none() {
            called.until = Some(now);
            let hung = self.stations[called.at].has_hung;
            assert!(hung || now.since(called.since) <= patience, "{called:?} at {now:?}");
        }
    }

    /// Checks the rules that hold at any time.
    pub(super) fn check(&self) {
        for shares in self.shares.values() {
            assert!(taken(shares) <= self.capacity, "granted more than there is");
        }
        for station in &self.stations {
            let Some(machine) = &station.machine else { continue };
            machine.audit();
            let open: BTreeSet<EntryId> =
                machine.entries().filter(|(_, _, is_open, _)| *is_open).map(|(id, ..)| id).collect();
            assert!(station.installed.keys().all(|id| open.contains(id)), "RTIP has what the ledger has not");
            // Branches of one tree may have one label.
            let of = |is_branch| {
                let installed = station.installed.values().filter(move |at| at.is_branch == is_branch);
                installed.filter_map(|at| at.label_in)
            };
            let labels: BTreeSet<u16> = of(false).collect();
            assert_eq!(labels.len(), of(false).count(), "two channels with one label");
            assert!(of(true).all(|label| !labels.contains(&label)), "a tree and a channel with one label");
        }
    }

    /// Labels lead from the source of each open channel to its destination, all nodes agreeing.
    pub fn check_paths(&self) -> usize {
        let mut whole = 0;
        for (key, called) in self.calls.iter().filter(|(_, called)| called.outcome == Outcome::Opened) {
            let (mut at, mut label) = (called.at, None);
            loop {
                let station = &self.stations[at].installed;
                let hop = station.values().rfind(|hop| hop.of == *key).expect("installed all along");
                assert_eq!(hop.label_in, label, "each node has the label of the one before");
                let Some((next, out)) = hop.way else { break };
                (at, label) = (place(next.node), Some(out));
            }
            whole += 1;
        }
        whole
    }

    /// The two ends of each open channel have one contract, and nothing of another one is left.
    pub fn check_contracts(&self) {
        for (key, called) in self.calls.iter().filter(|(_, called)| called.outcome == Outcome::Opened) {
            if self.reroutes.ends.get(key) != Some(&false) {
                continue;
            }
            let of = |sending| self.reroutes.changes.contracts.get(&(*key, sending));
            assert_eq!(of(true), of(false), "{key:?} {called:?}");
        }
    }

    /// All programs close, all leases end; then nothing is left anywhere.
    pub fn assert_empty_at_the_end(&mut self) {
        self.run_for(ms(20_000));
        self.check_contracts();
        for (key, called) in self.calls.clone() {
            self.close(key, called.at);
        }
        self.run_for(RcapLimits::LEASE_MAX + KEEP_ALIVE);
        for (at, station) in self.stations.iter().enumerate() {
            let Some(machine) = &station.machine else { continue };
            machine.audit();
            assert_eq!(machine.entries().collect::<Vec<_>>(), [], "node {at}");
            assert_eq!((machine.buffer_octets(), machine.deadline()), (0, Instant::FAR), "node {at}");
            assert!(station.installed.is_empty(), "node {at}");
        }
        assert!(self.shares.values().all(Vec::is_empty), "{:?}", self.shares);
        for (key, called) in &self.calls {
            let waits = matches!(called.outcome, Outcome::Waits | Outcome::Opened | Outcome::Broken);
            assert!(!waits, "{key:?} {called:?}");
        }
        assert!(self.reroutes.ends.is_empty(), "{:?}", self.reroutes.ends);
        for (key, wish) in &self.wishes {
            assert!(wish.met.is_some(), "{key:?} {wish:?}");
        }
    }
}
