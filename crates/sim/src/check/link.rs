//! The rules of a link, which has no token: each end sends by its own admission.
//!
//! R2, R8: no unit leaves without a share, and no ordinary frame while the gate is being shut. R3: the shares
//! of an end fit its window. S5, S9, L4, L5: in time after the last fault both ends have met, a request has
//! its answer, shares are those of the channels that are open, and both ends agree which ones are over.

use super::ledger::check_queue;
use super::{Checker, Findings, Seen, Stations, View};
use crate::hosts::Station;
use crate::world::{Flow, FlowState};
use rota_admission::link_capacity;
use rota_proto::{Medium, ModeName};
use rota_units::{Instant, Span};
use rota_wire::Kind;

/// A request to a station that does not answer is repeated 25 times, every 200 ms.
const REQUEST: Span = Span::from_millis(26 * 200);

/// So long a receiver waits for a channel that never opened.
const UNOPENED: Span = Span::from_millis(30_000);

/// Watches the two ends.
#[derive(Debug, Default)]
pub struct LinkEnds {
    /// Which hosts had a share after the event before.
    shared: Vec<bool>,
    /// Since when the ends do not agree.
    since: Option<Instant>,
    told: bool,
    next: Instant,
}

impl Checker for LinkEnds {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.shared.resize(view.stations.places(), false);
        for seen in view.seen {
            let Seen::Sent { host, kind, .. } = seen else { continue };
            let Some(medium) = view.at(*host).medium() else { continue };
            match kind {
                Some(Kind::Data) if shares(medium) == 0 && !self.shared[*host] => {
                    findings.add(view.now, "R8", format!("host {host} sent a unit without a share"));
                }
                None if medium.mode() == ModeName::Switching => {
                    let what = format!("host {host} sent an ordinary frame while its gate was being shut");
                    findings.add(view.now, "R2", what);
                }
                _ => {}
            }
        }
        for host in view.acted() {
            self.acted(view, host, findings);
        }
        self.ends_agree(view, findings);
    }
}

impl LinkEnds {
    fn acted(&mut self, view: &View<'_>, host: usize, findings: &mut Findings) {
        let station = view.at(host);
        let Some(port) = station.port() else {
            self.shared[host] = false;
            return;
        };
        check_queue(view, host, port, findings);
        let medium = port.medium();
        self.shared[host] = shares(medium) > 0;
        let loads = medium.window_load();
        let capacity = link_capacity(&view.settings.params(2));
        if loads > capacity {
            findings.add(view.now, "R3", format!("host {host} has {loads} of shares, and {capacity} fit"));
        }
        // One that stands still has not done yet what its node wants.
        if medium.mode() == ModeName::Paced && !station.card.gated && station.is_running(view.now) {
            findings.add(view.now, "R2", format!("host {host} has shares, and its gate is open"));
        }
    }

    fn ends_agree(&mut self, view: &View<'_>, findings: &mut Findings) {
        if view.now < self.next {
            return;
        }
        self.next = view.now + view.settings.trt.div_down(2);
        let wrong = match agree(view.flows, view.stations, view.now) {
            Err(wrong) if !view.windows.cover(view.now) => wrong,
            _ => return self.since = None,
        };
        let since = *self.since.get_or_insert(view.now);
        let (took, bound) = (view.now.since(since), view.recovery.settled(2, true) + REQUEST);
        if took > bound && !self.told {
            self.told = true;
            let what = format!("{}, {took} after everything was over; bound {bound}", wrong.1);
            findings.add(view.now, wrong.0, what);
        }
    }
}

fn shares(medium: &Medium) -> usize {
    medium.reservations().count()
}

/// True if the receiver of a flow has its channel.
fn is_received(receiver: &Station<'_>, flow: usize) -> bool {
    let mut ends = receiver.incoming().filter(|(_, of)| *of == flow);
    ends.any(|(channel, _)| receiver.node.as_ref().is_some_and(|node| node.received(channel).is_some()))
}

/// Checks that the two ends of a link agree.
///
/// # Errors
/// The rule, and what does not agree.
pub(super) fn agree(
    flows: &[Flow],
    stations: Stations<'_>,
    now: Instant,
) -> Result<(), (&'static str, String)> {
    let takes_part = |station: &Station<'_>| station.card.settings.is_none() && station.is_running(now);
    let all_there = stations.iter().all(|(_, station)| takes_part(&station));
    let own = || flows.iter().enumerate().filter(|(_, flow)| flow.on == stations.segment());
    // Both ends keep their gate shut for a channel in either direction.
    let has_share = |(_, station): (usize, Station<'_>)| station.medium().is_some_and(|of| shares(of) > 0);
    let is_shared = stations.iter().any(has_share);
    let receives =
        |at: usize| own().any(|(index, flow)| flow.to == at && is_received(&stations.at(at), index));
    for (at, station) in stations.iter().filter(|(_, station)| takes_part(station)) {
        let Some(medium) = station.medium() else { continue };
        let mode = medium.mode();
        if all_there && mode == ModeName::Joining {
            return Err(("L4", format!("host {at} has not met the other end")));
        }
        let of = |state| own().filter(move |(_, flow)| flow.from == at && flow.state == state).count();
        let (open, asked, shares) = (of(FlowState::Open), of(FlowState::Asked), shares(medium));
        let hops = station.card.hops as usize;
        if !(open..=open + asked + hops).contains(&shares) {
            return Err(("S5", format!("host {at} has {shares} shares and {open} open channels")));
        }
        if asked > 0 || mode == ModeName::Switching {
            return Err(("S9", format!("host {at} waits, {mode:?}, with {asked} requests")));
        }
        // The gate of the host opens behind the frames that wait.
        let is_shut = mode == ModeName::Paced || station.card.gated;
        if !is_shared && is_shut && !receives(at) {
            return Err(("L5", format!("host {at} keeps its gate shut without a channel")));
        }
    }
    own().filter(|_| all_there).try_for_each(|(index, flow)| {
        let receives = is_received(&stations.at(flow.to), index);
        let waits = receives && flow.label.is_none() && now.since(flow.since) < UNOPENED + REQUEST;
        if waits || receives == (flow.state == FlowState::Open) {
            return Ok(());
        }
        let word = if receives { "still" } else { "no longer" };
        Err(("S5", format!("host {} {word} receives flow {index}, which is {:?}", flow.to, flow.state)))
    })
}
