//! R2: in token mode only a holder sends. R8: nobody sends a unit for which the token shows no slot.

use super::{Checker, Findings, Seen, View};
use rota_proto::ModeName;
use rota_wire::{FrameView, Kind};

/// Watches what leaves the stations.
#[derive(Debug, Default)]
pub struct RightToSend;

impl Checker for RightToSend {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        for seen in view.seen {
            let Seen::Sent { host, frame, holding } = seen else { continue };
            let Some(node) = &view.hosts[*host].node else { continue };
            let kind = FrameView::parse(frame, view.settings.ether_type).ok().map(|view| view.header().kind);
            match kind {
                Some(Kind::Data) => {
                    if !holding {
                        findings.add(view.now, "R2", format!("host {host} sent a fragment without a token"));
                    }
                    let station = node.link().station();
                    let list = node.link().list();
                    let slots = list.map_or(&[][..], |list| list.slots.as_slice());
                    // The unit may leave in the hold that closes its slot, but then a list was seen before.
                    if list.is_some() && !slots.iter().any(|slot| slot.station == station) {
                        findings.add(view.now, "R8", format!("host {host} sent a unit without a slot"));
                    }
                }
                None if node.link().mode() == ModeName::Token && !holding => {
                    findings.add(
                        view.now,
                        "R2",
                        format!("host {host} sent an ordinary frame without a token"),
                    );
                }
                _ => {}
            }
        }
    }
}
