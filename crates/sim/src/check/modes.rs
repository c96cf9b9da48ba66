//! R7: two stations with one mode epoch are in one mode.

use super::{Checker, Findings, View};
use rota_proto::ModeName;

/// How many stations are in token mode and in plain mode with one epoch.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    token: u32,
    plain: u32,
}

/// Watches modes and their epochs.
#[derive(Debug, Default)]
pub struct OneMode {
    hosts: Vec<Option<(u32, bool)>>,
    /// By epoch, the newest last; epochs rise slowly, so few are kept.
    counts: Vec<(u32, Count)>,
}

impl OneMode {
    fn count(&mut self, epoch: u32) -> &mut Count {
        let at = match self.counts.binary_search_by_key(&epoch, |(known, _)| *known) {
            Ok(at) => at,
            Err(at) => {
                self.counts.insert(at, (epoch, Count::default()));
                at
            }
        };
        &mut self.counts[at].1
    }
}

impl Checker for OneMode {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.hosts.resize(view.stations.places(), None);
        for host in view.acted() {
            let state = view.at(host).rether().and_then(|link| match link.mode() {
                ModeName::Token => Some((link.mode_epoch(), true)),
                ModeName::Plain => Some((link.mode_epoch(), false)),
                ModeName::Joining | ModeName::Switching | ModeName::Paced => None,
            });
            if self.hosts[host] == state {
                continue;
            }
            if let Some((epoch, token)) = std::mem::replace(&mut self.hosts[host], state) {
                let count = self.count(epoch);
                *(if token { &mut count.token } else { &mut count.plain }) -= 1;
            }
            let Some((epoch, token)) = state else { continue };
            let count = self.count(epoch);
            *(if token { &mut count.token } else { &mut count.plain }) += 1;
            let split = count.token > 0 && count.plain > 0;
            if split && !view.windows.cover(view.now) {
                let what =
                    format!("epoch {epoch} is token mode at some and plain at others, host {host} last");
                findings.add(view.now, "R7", what);
            }
            self.counts.retain(|(_, count)| count.token + count.plain > 0);
        }
    }
}
