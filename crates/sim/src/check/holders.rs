//! S1, R1: at most one station of a connected part holds a token whose lease has not ended.

use super::{Checker, Findings, View};
use rota_proto::ModeName;

/// Watches who holds a token.
#[derive(Debug, Default)]
pub struct OneHolder {
    /// Hosts that held one when they last acted.
    holders: Vec<usize>,
    /// The pair last reported, so that one overlap is one violation.
    reported: Option<(usize, usize)>,
}

impl Checker for OneHolder {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        for host in view.acted() {
            let held = self.holders.iter().position(|known| *known == host);
            match (held, view.holds(host)) {
                (None, true) => self.holders.push(host),
                (Some(at), false) => {
                    self.holders.swap_remove(at);
                }
                _ => {}
            }
        }
        if view.settings.follow_stalls {
            self.holders.iter().for_each(|host| reckons_with_less(view, *host, findings));
        }
        if self.holders.len() < 2 {
            self.reported = None;
            return;
        }
        // Leases end by themselves while nobody acts.
        self.holders.retain(|host| view.holds(*host));
        for (at, first) in self.holders.iter().enumerate() {
            for second in &self.holders[at + 1..] {
                let pair = (*first.min(second), *first.max(second));
                let apart = view.now <= view.windows.merging_until || !connected(view, pair.0, pair.1);
                if self.reported != Some(pair) && !apart {
                    self.reported = Some(pair);
                    let what = format!("hosts {} and {} both hold a token", pair.0, pair.1);
                    findings.add(view.now, "S1", what);
                }
            }
        }
    }
}

/// No claim in the same ring reckons with a shorter hold than any token has (decision 017).
fn reckons_with_less(view: &View<'_>, holder: usize, findings: &mut Findings) {
    let Some(rether) = view.at(holder).rether() else { return };
    let Some(hold) = rether.holding() else { return };
    for (at, host) in view.stations.iter().filter(|(at, _)| *at != holder) {
        let Some(other) = host.rether() else { continue };
        let same = other.mode() == ModeName::Token
            && other.mode_epoch() == rether.mode_epoch()
            && other.newest() <= rether.newest()
            && other.shares_key(rether);
        let drain = other.timers_in_force(host.clock.read(view.now)).drain;
        if same && drain < hold && view.now > view.windows.merging_until {
            let what = format!("host {holder} may hold a token for {hold}, host {at} reckons with {drain}");
            findings.add(view.now, "S1", what);
        }
    }
}

/// Whether frames can go both ways between two hosts, over others if need be.
fn connected(view: &View<'_>, from: usize, to: usize) -> bool {
    if view.wires.are_sound() {
        return true;
    }
    let mut reached = vec![true; view.stations.places()];
    view.stations.iter().for_each(|(host, _)| reached[host] = false);
    let mut edge = vec![from];
    reached[from] = true;
    while let Some(host) = edge.pop() {
        for (next, reached) in reached.iter_mut().enumerate() {
            if !*reached && !view.wires.is_cut(host, next) && !view.wires.is_cut(next, host) {
                *reached = true;
                edge.push(next);
            }
        }
    }
    reached[to]
}
