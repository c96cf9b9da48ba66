//! P7: a message of the highest priority never waits behind more than one lower frame of its own station.
//!
//! Lower frames are those of the queue: other messages and, under the token, the host's own. Acknowledged
//! messages are left out, since they also wait for the answer to the one before them.

use super::{Checker, Findings, Seen, View};
use crate::world::{Message, level_of};
use rota_wire::host_level;
use rota_wire::llc::{Control, Fragment, LlcView, SAP_SNAP};

#[derive(Clone, Copy, Debug, Default)]
struct Station {
    boots: u32,
    /// Messages of level 7 of which no frame has left.
    waiting: u64,
    /// Lower frames since one of them waits, or since the last of them left.
    lower: u64,
}

/// Watches the order in which messages leave.
#[derive(Debug, Default)]
pub struct HighestFirst {
    stations: Vec<Station>,
}

/// The level of an ordinary or 802.2 frame, and whether a message begins with it.
fn what(frame: &[u8]) -> (u8, bool) {
    let Ok(view) = LlcView::parse(frame) else { return (host_level(frame), false) };
    match view.header.control {
        Control::Ui if view.header.ssap == SAP_SNAP => match Fragment::parse(view.information) {
            Ok((fragment, _)) => (fragment.level, fragment.index == 0),
            Err(_) => (0, false),
        },
        Control::Ui => (level_of(view.header.ssap), true),
        // Acknowledged commands are of any level, and so are answers: none is held against us.
        _ => (7, false),
    }
}

impl Checker for HighestFirst {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.stations.resize(view.hosts.len(), Station::default());
        for seen in view.seen {
            match seen {
                Seen::Message(Message { from, level: 7, ack: false }) => {
                    let (station, boots) = (&mut self.stations[*from], view.hosts[*from].boots);
                    if station.boots != boots {
                        *station = Station { boots, ..Station::default() };
                    }
                    if station.waiting == 0 {
                        station.lower = 0;
                    }
                    station.waiting += 1;
                }
                Seen::Sent { host, frame, kind: None, .. } => {
                    let station = &mut self.stations[*host];
                    if station.waiting == 0 || station.boots != view.hosts[*host].boots {
                        continue;
                    }
                    match what(frame) {
                        (7, true) => (station.waiting, station.lower) = (station.waiting - 1, 0),
                        (7, false) => {}
                        _ => station.lower += 1,
                    }
                    if station.lower > 1 {
                        let what = format!("host {host}: a message of priority 7 waits behind lower frames");
                        findings.add(view.now, "P7", what);
                        station.waiting = 0;
                    }
                }
                _ => {}
            }
        }
    }
}
