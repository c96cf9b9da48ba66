//! L1: while something is reserved the token comes round again. R9: nobody is declared dead who answers.

use super::{Checker, Findings, Seen, View};
use rota_proto::ModeName;
use rota_units::{Instant, Span};

/// Watches the token's way.
#[derive(Debug, Default)]
pub struct Visits {
    last: Option<Instant>,
    declared_dead: Vec<(u32, u64)>,
    /// The longest time without a believed token outside all windows.
    pub worst_silence: Span,
}

impl Checker for Visits {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.declared_dead.resize(view.stations.places(), (0, 0));
        for seen in view.seen {
            match seen {
                Seen::Took { accepted: true, .. } => self.visit(view, findings),
                Seen::Acted { host } => {
                    let Some(rether) = view.at(*host).rether() else { continue };
                    let dead = rether.counters().stations_declared_dead;
                    let boots = view.at(*host).boots;
                    let known = std::mem::replace(&mut self.declared_dead[*host], (boots, dead));
                    if known.0 == boots && dead > known.1 && !view.windows.cover(view.now) {
                        living_dead(view, *host, findings);
                    }
                    if rether.mode() != ModeName::Token {
                        self.last = None;
                    }
                }
                _ => {}
            }
        }
    }
}

impl Visits {
    fn visit(&mut self, view: &View<'_>, findings: &mut Findings) {
        let Some(last) = self.last.replace(view.now) else { return };
        let silence = view.now.since(last);
        if silence <= self.worst_silence || view.windows.excuse(last, view.now, usize::MAX, usize::MAX) {
            return;
        }
        self.worst_silence = silence;
        // A drowsy ring rests at its master and goes round when its lease says so, or once in 32 cycles.
        let bound = view.settings.trt * 33;
        if silence > bound {
            findings.add(view.now, "L1", format!("no token was believed for {silence}"));
        }
    }
}

/// A station that answers is not declared dead. A number that a restarted station has given up may be.
fn living_dead(view: &View<'_>, host: usize, findings: &mut Findings) {
    let Some(judge) = view.at(host).rether() else { return };
    for (other, alive) in view.stations.iter().filter(|(_, alive)| alive.is_running(view.now)) {
        let Some(rether) = alive.rether() else { continue };
        let station = rether.station();
        if rether.mode() == ModeName::Token && station != 0 && judge.is_dead(station) {
            let what = format!("host {host} declared host {other} dead, which answers");
            findings.add(view.now, "R9", what);
        }
    }
}
