//! S2, R6: what a station believes only rises: token stamps, generations, mode epochs. Each switch that a
//! station begins has an epoch of its own.

use super::{Checker, Findings, Seen, View};
use rota_wire::{FrameView, Generation};

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// Boots, and the incarnation: a station whose counters end begins anew without a boot.
    life: (u32, u32),
    token: (Generation, u64),
    generation: u32,
    /// The newest generation, and the newest that any of its frames has named.
    newest: Generation,
    named: Generation,
    mode_epoch: u32,
    /// The switches that it has begun.
    switches: u64,
}

/// Watches what each station has seen in its present boot.
#[derive(Debug, Default)]
pub struct Rising {
    last: Vec<Last>,
}

impl Rising {
    fn of(&mut self, view: &View<'_>, host: usize) -> &mut Last {
        self.last.resize(view.stations.places(), Last::default());
        let last = &mut self.last[host];
        let rether = view.at(host).rether();
        let life = (view.at(host).boots, rether.map_or(0, |rether| rether.incarnation()));
        if last.life != life {
            let switches = rether.map_or(0, |rether| rether.counters().switches);
            *last = Last { life, switches, ..Last::default() };
        }
        last
    }
}

impl Checker for Rising {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        for seen in view.seen {
            match seen {
                Seen::Took { host, frame, accepted: true } => {
                    let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { continue };
                    let token = super::stamp(&frame);
                    let last = self.of(view, *host);
                    if token <= last.token {
                        let what = format!("host {host} believed {token:?} after {:?}", last.token);
                        findings.add(view.now, "S2", what);
                    }
                    last.token = token;
                }
                Seen::Sent { host, frame, kind: Some(_), .. } => {
                    let Ok(frame) = FrameView::parse(frame, view.settings.ether_type) else { continue };
                    let last = self.of(view, *host);
                    last.named = last.named.max(frame.header().generation);
                }
                Seen::Acted { host } => {
                    let Some(rether) = view.at(*host).rether() else { continue };
                    let (generation, epoch) = (rether.generation(), rether.mode_epoch());
                    let last = self.of(view, *host);
                    // A claim that never left may be taken back: nobody else has heard of its generation.
                    let own = rether.station() == last.newest.station && last.newest > last.named;
                    let taken_back = own && rether.newest() >= last.named.max(last.token.0);
                    if generation < last.generation && generation != 0 && !taken_back {
                        let what = format!("host {host}: generation {generation} after {}", last.generation);
                        findings.add(view.now, "S2", what);
                    }
                    // Epochs wrap: what counts is which way is shorter.
                    if (epoch.wrapping_sub(last.mode_epoch) as i32) < 0 {
                        let what = format!("host {host}: mode epoch {epoch} after {}", last.mode_epoch);
                        findings.add(view.now, "R6", what);
                    }
                    // Frames of the mode before would be those of the new one.
                    let switches = rether.counters().switches;
                    if switches > last.switches && epoch == last.mode_epoch {
                        let what = format!("host {host} begins a switch under epoch {epoch}, which is over");
                        findings.add(view.now, "R6", what);
                    }
                    last.switches = switches;
                    (last.generation, last.mode_epoch) = (generation, epoch);
                    last.newest = rether.newest();
                }
                _ => {}
            }
        }
    }
}
