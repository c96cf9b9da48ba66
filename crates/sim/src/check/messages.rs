//! P7: a message of the highest priority never waits behind more than one lower frame of its own station.
//!
//! Lower frames are those of the queue: other messages and, under the token, the host's own. An acknowledged
//! message also waits for the answer to the one before it in its direction. Those in fragments share one
//! direction to each station, whosever they are: there no more than one lower command may go before, sent as
//! often as it likes.

use super::{Checker, Findings, Seen, View};
use crate::world::{Message, level_of};
use rota_wire::host_level;
use rota_wire::llc::{Control, Fragment, LlcView, SAP_SNAP, fragment_payload};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Messages of level 7 of which no frame has left.
    messages: u64,
    /// Lower frames since one of them waits, or since the last of them left.
    lower: u64,
}

impl Waiting {
    fn one_more(&mut self) {
        if self.messages == 0 {
            self.lower = 0;
        }
        self.messages += 1;
    }

    /// A frame has left; whether it is one lower frame too many.
    fn passed_by(&mut self, level: u8, begins: bool) -> bool {
        match (self.messages, level) {
            (0, _) => return false,
            (_, 7) if begins => (self.messages, self.lower) = (self.messages - 1, 0),
            (_, 7) => {}
            _ => self.lower += 1,
        }
        let broken = self.lower > 1;
        if broken {
            self.messages = 0;
        }
        broken
    }
}

#[derive(Clone, Debug, Default)]
struct Station {
    boots: u32,
    own: Waiting,
    /// By the other station: who waits, and the newest fragment.
    directions: BTreeMap<[u8; 6], (Waiting, (u16, u8))>,
}

/// Watches the order in which messages leave.
#[derive(Debug, Default)]
pub struct HighestFirst {
    stations: Vec<Station>,
}

/// The level of an ordinary or 802.2 frame, and whether a message begins with it.
fn what(frame: &[u8], mtu: u16) -> (u8, bool) {
    let Ok(view) = LlcView::parse(frame) else { return (host_level(frame), false) };
    match view.header.control {
        Control::Ui if view.header.ssap == SAP_SNAP => {
            match Fragment::parse(view.information, fragment_payload(mtu)) {
                Ok((fragment, _)) => (fragment.level, fragment.index == 0),
                Err(_) => (0, false),
            }
        }
        Control::Ui => (level_of(view.header.ssap), true),
        // Acknowledged commands are of any level, and so are answers: none is held against us.
        _ => (7, false),
    }
}

/// An acknowledged fragment: to whom, and which.
fn acked_fragment(frame: &[u8], mtu: u16) -> Option<([u8; 6], Fragment)> {
    let view = LlcView::parse(frame).ok()?;
    let acked = matches!(view.header.control, Control::Ac { .. }) && !view.header.response;
    let read = Fragment::parse(view.information, fragment_payload(mtu));
    let (fragment, _) = read.ok().filter(|_| view.header.ssap == SAP_SNAP)?;
    acked.then_some((view.destination.0, fragment))
}

impl Station {
    /// A frame has left; whether somebody of priority 7 was passed by once too often.
    fn sent(&mut self, frame: &[u8], mtu: u16) -> bool {
        let (level, begins) = what(frame, mtu);
        if self.own.passed_by(level, begins) {
            return true;
        }
        let Some((to, of)) = acked_fragment(frame, mtu) else { return false };
        let (waiting, newest) = self.directions.entry(to).or_default();
        let again = std::mem::replace(newest, (of.message, of.index)) == (of.message, of.index);
        !again && waiting.passed_by(of.level, of.index == 0)
    }
}

impl Checker for HighestFirst {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.stations.resize(view.stations.places(), Station::default());
        let mtu = view.settings.link.framing.mtu;
        for seen in view.seen {
            match seen {
                Seen::Message(Message { from, level: 7, ack, to, cut }) => {
                    let (station, boots) = (&mut self.stations[*from], view.at(*from).boots);
                    if station.boots != boots {
                        *station = Station { boots, ..Station::default() };
                    }
                    match to.filter(|_| *ack) {
                        Some(to) if *cut => {
                            station.directions.entry(view.at(to).card.mac.0).or_default().0.one_more()
                        }
                        Some(_) => {}
                        None => station.own.one_more(),
                    }
                }
                Seen::Sent { host, frame, kind: None, .. } => {
                    let station = &mut self.stations[*host];
                    if station.boots == view.at(*host).boots && station.sent(frame, mtu) {
                        let what = format!("host {host}: a message of priority 7 waits behind lower frames");
                        findings.add(view.now, "P7", what);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames that leave while messages of level 7 wait: its level, whether a message begins with it, and
    /// whether that is one too many.
    fn leave(waiting: &mut Waiting, frames: &[(u8, bool, bool)]) {
        for (at, (level, begins, broken)) in frames.iter().enumerate() {
            assert_eq!(waiting.passed_by(*level, *begins), *broken, "{at} of {frames:?}");
        }
    }

    #[test]
    fn one_lower_frame_may_go_before_and_no_second() {
        let mut waiting = Waiting::default();
        leave(&mut waiting, &[(0, true, false), (6, true, false), (3, false, false)]);
        waiting.one_more();
        leave(&mut waiting, &[(6, true, false), (0, true, true)]);
        leave(&mut waiting, &[(0, true, false), (0, true, false)]);
        waiting.one_more();
        leave(&mut waiting, &[(0, true, false), (7, true, false), (0, true, false), (0, true, false)]);
    }

    /// A later fragment of one that has begun is no lower frame, and no turn of the next.
    #[test]
    fn each_message_that_leaves_gives_the_next_one_a_lower_frame_of_its_own() {
        let mut waiting = Waiting::default();
        waiting.one_more();
        waiting.one_more();
        leave(&mut waiting, &[(2, true, false), (7, true, false), (7, false, false), (2, true, false)]);
        leave(&mut waiting, &[(7, false, false), (2, false, true)]);
        waiting.one_more();
        leave(&mut waiting, &[(2, true, false)]);
        // Another that comes to wait changes nothing for the first.
        waiting.one_more();
        leave(&mut waiting, &[(2, true, true)]);
    }
}
