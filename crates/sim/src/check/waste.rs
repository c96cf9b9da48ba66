//! R9: where nothing goes wrong nobody claims a token, and none is sent again and again: its acknowledgement
//! may wait behind what a long hold sends, but not for ever. No fault excuses a station that makes a token
//! before it has asked the others.

use super::{Checker, Findings, Seen, View};
use crate::faults::is_token_for;
use crate::hosts::Station;
use rota_proto::ModeName;
use rota_wire::{FrameView, Generation, Kind};

/// How often a token is sent at most: behind the second time its successor has had fifteen milliseconds.
const TIMES: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    boots: u32,
    claims: u64,
    /// The newest generation that it had seen before the present event.
    newest: Generation,
    token: (Generation, u64),
    times: u32,
    /// The tokens that it has made, and true if a claim has left since the last one.
    made: u64,
    has_asked: bool,
}

/// Watches tokens sent again and claims of each station.
#[derive(Debug, Default)]
pub struct Waste {
    last: Vec<Last>,
}

impl Checker for Waste {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.last.resize(view.stations.places(), Last::default());
        for seen in view.seen {
            match seen {
                Seen::Sent { host, frame, kind: Some(Kind::Token), .. } => {
                    let ether_type = view.settings.ether_type;
                    // A station that has gone back to plain mode meanwhile tells so behind all that its queue
                    // held.
                    let to =
                        view.stations.iter().filter(|(_, to)| is_token_for(frame, to.card.mac, ether_type));
                    let rings = to.map(|(_, to)| to.mode()).any(|mode| mode == Some(ModeName::Token));
                    if let Ok(frame) = FrameView::parse(frame, ether_type)
                        && rings
                    {
                        let token = (frame.header().generation, frame.header().seq);
                        self.token(view, *host, token, findings);
                    }
                }
                Seen::Sent { host, kind: Some(Kind::Claim), .. } => self.last[*host].has_asked = true,
                Seen::Acted { host } => {
                    // The next one reads what this one learns of its boot.
                    self.made(view, *host, findings);
                    self.claim(view, *host, findings);
                }
                _ => {}
            }
        }
    }
}

impl Waste {
    fn token(&mut self, view: &View<'_>, host: usize, token: (Generation, u64), findings: &mut Findings) {
        let last = &mut self.last[host];
        let again = last.token == token;
        (last.token, last.times) = (token, if again { last.times + 1 } else { 1 });
        if last.times > TIMES && !view.windows.cover(view.now) {
            let what = format!("host {host} sent one token {} times, and nothing had gone wrong", last.times);
            findings.add(view.now, "R9", what);
        }
    }

    /// Each living member of its ring might hold the token that it has not heard of.
    fn made(&mut self, view: &View<'_>, host: usize, findings: &mut Findings) {
        let Some(rether) = view.at(host).rether() else { return };
        let (boots, made) = (view.at(host).boots, rether.counters().tokens_regenerated);
        let last = &mut self.last[host];
        let more = made > last.made && boots == last.boots;
        let has_asked = if more { std::mem::take(&mut last.has_asked) } else { last.has_asked };
        last.made = made;
        if !more || has_asked {
            return;
        }
        let might_hold = |(at, other): &(usize, Station<'_>)| {
            let is_member = |mac| {
                let member = rether.member_at(mac).filter(|member| member.station != 0);
                member.is_some_and(|member| !rether.has_heard_will(mac, member.incarnation))
            };
            *at != host
                && other.is_running(view.now)
                && other.mode() == Some(ModeName::Token)
                && is_member(other.card.mac)
        };
        if let Some((other, _)) = view.stations.iter().find(might_hold) {
            findings.add(view.now, "R9", format!("host {host} made a token and never asked host {other}"));
        }
    }

    fn claim(&mut self, view: &View<'_>, host: usize, findings: &mut Findings) {
        let Some(rether) = view.at(host).rether() else { return };
        let (boots, claims) = (view.at(host).boots, rether.counters().claims);
        let last = &mut self.last[host];
        let (more, newest) = (claims > last.claims && boots == last.boots, last.newest);
        (last.boots, last.claims, last.newest) = (boots, claims, rether.newest());
        // A station that comes back from a ring of a newer generation believes no token of this one: only a
        // claim makes a generation that is new to both, whatever the other's mode is by now (seed 346679 of
        // the proven timers). The claimant itself knows the generation that it claims, and is no stranger.
        let stranger = |(at, other): (usize, Station<'_>)| {
            at != host && other.rether().is_some_and(|rether| rether.newest() > newest)
        };
        if more && !view.windows.cover(view.now) && !view.stations.iter().any(stranger) {
            findings.add(view.now, "R9", format!("host {host} claimed, and nothing had gone wrong"));
        }
    }
}
