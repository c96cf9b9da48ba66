//! R2: in token mode only a holder sends. R8: nobody sends a unit for which the token shows no slot.

use super::{Checker, Findings, Seen, View};
use rota_proto::ModeName;
use rota_proto::rether::Rether;
use rota_wire::Kind;

/// Watches what leaves the stations.
#[derive(Debug, Default)]
pub struct RightToSend {
    /// Which hosts had a slot after the event before.
    slotted: Vec<bool>,
}

impl Checker for RightToSend {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.slotted.resize(view.stations.places(), false);
        for seen in view.seen {
            let Seen::Sent { host, kind, holding, .. } = seen else { continue };
            let Some(rether) = view.at(*host).rether() else { continue };
            match kind {
                Some(Kind::Data) => {
                    if !holding {
                        findings.add(view.now, "R2", format!("host {host} sent a fragment without a token"));
                    }
                    // The unit may leave in the event that closes its slot: it had one before then.
                    let is_slotted = has_slot(rether) || self.slotted[*host];
                    if rether.list().is_some() && !is_slotted {
                        findings.add(view.now, "R8", format!("host {host} sent a unit without a slot"));
                    }
                }
                None if rether.mode() == ModeName::Token && !holding => {
                    findings.add(
                        view.now,
                        "R2",
                        format!("host {host} sent an ordinary frame without a token"),
                    );
                }
                _ => {}
            }
        }
        for host in view.acted() {
            self.slotted[host] = view.at(host).rether().is_some_and(has_slot);
        }
    }
}

fn has_slot(rether: &Rether) -> bool {
    let (station, list) = (rether.station(), rether.list());
    list.is_some_and(|list| list.slots.as_slice().iter().any(|slot| slot.station == station))
}
