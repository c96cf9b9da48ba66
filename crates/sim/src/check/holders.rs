//! S1, R1: at most one station holds a token whose lease has not ended.

use super::{Checker, Findings, Seen, View};

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
        for seen in view.seen {
            let Seen::Acted { host } = *seen else { continue };
            let held = self.holders.iter().position(|known| *known == host);
            match (held, view.holds(host)) {
                (None, true) => self.holders.push(host),
                (Some(at), false) => {
                    self.holders.swap_remove(at);
                }
                _ => {}
            }
        }
        if self.holders.len() < 2 {
            self.reported = None;
            return;
        }
        // Leases end by themselves while nobody acts.
        self.holders.retain(|host| view.holds(*host));
        let [first, second, ..] = self.holders[..] else { return };
        let pair = (first.min(second), first.max(second));
        if self.reported != Some(pair) {
            self.reported = Some(pair);
            findings.add(view.now, "S1", format!("hosts {} and {} both hold a token", pair.0, pair.1));
        }
    }
}
