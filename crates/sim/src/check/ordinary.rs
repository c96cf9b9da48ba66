//! L2: in token mode a station that has ordinary frames to send is served within the stated latency.

use super::{Checker, Findings, View};
use rota_proto::ModeName;
use rota_units::Instant;

/// Since when each station waits, and what it had sent by then.
#[derive(Debug, Default)]
pub struct Ordinary {
    waits: Vec<Option<(Instant, u64)>>,
}

impl Checker for Ordinary {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.waits.resize(view.hosts.len(), None);
        for host in view.acted() {
            let node = view.hosts[host].node.as_ref();
            let link = node.map(|node| node.link());
            let link = link.filter(|link| link.mode() == ModeName::Token && link.queued_frames() > 0);
            let Some(sent) = link.map(|link| link.counters().host_frames_sent) else {
                self.waits[host] = None;
                continue;
            };
            let (since, known) = *self.waits[host].get_or_insert((view.now, sent));
            let waited = view.now.since(since);
            // The latency counts from visit to visit; one cycle more until a drowsy ring has been woken.
            let bound = view.settings.nrt_latency_max + view.settings.trt * 2;
            let excused = view.windows.excuse(since, view.now, usize::MAX, usize::MAX);
            if waited > bound && !excused {
                let what = format!("host {host} has waited {waited} with ordinary frames to send");
                findings.add(view.now, "L2", what);
            }
            if sent != known || waited > bound {
                self.waits[host] = Some((view.now, sent));
            }
        }
    }
}
