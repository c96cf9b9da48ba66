//! Guardians: they send the will of a station whose process has ended (decision 013).

use super::{Event, World};
use crate::check::Seen;
use crate::faults::Happened;
use crate::hosts::Station;
use crate::media::Frame;
use rota_proto::{ModeName, PortId};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

/// The dying stations that leave a last will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wills {
    /// None: guardian and process are killed together.
    #[default]
    Never,
    /// All.
    Always,
    /// Three of four.
    Drawn,
}

/// A will on its way to the wire.
#[derive(Clone, Debug)]
pub(super) struct Will {
    frame: Frame,
    mac: MacAddr,
    incarnation: u32,
    /// When the process ended.
    died: Instant,
    /// When the first copy was sent.
    first: Instant,
    /// How many copies are still to be sent.
    copies: u8,
}

/// The longest time until a guardian looks at the card; the shortest is 100 µs.
const GUARDIAN: Span = Span::from_micros(2_000);
const GUARDIAN_MIN: Span = Span::from_micros(100);
/// As the guardian of the product does it.
const COPIES: u8 = 3;
const BETWEEN: Span = Span::from_micros(300);
/// From the first copy to the last.
pub(crate) const WILL_LASTS: Span = Span::from_micros(600);
const LOOK: Span = Span::from_micros(200);
/// After so long with a card that is not empty the guardian does not send the will.
const PATIENCE: Span = Span::from_millis(100);

impl World {
    /// The process of a host ends, and its guardian is told.
    pub(super) fn leave_wills(&mut self, host: usize) {
        let leaves = match self.spec.wills {
            Wills::Never => false,
            Wills::Always => true,
            Wills::Drawn => self.chance.guardians.below(4) > 0,
        };
        for port in 0..self.hosts[host].ports.len() {
            self.leave_will(host, PortId(port as u8), leaves);
        }
    }

    /// A guardian has a will for each port.
    fn leave_will(&mut self, host: usize, port: PortId, leaves: bool) {
        let mut octets = vec![0; 128];
        let medium = self.hosts[host].medium_at(port);
        let Some((medium, len)) = medium.and_then(|of| Some((of, of.write_will(&mut octets)?))) else {
            return;
        };
        if !leaves {
            return;
        }
        octets.truncate(len);
        let card = self.hosts[host].card(port);
        let (on, mac, incarnation, died) = (card.segment, card.mac, medium.incarnation(), self.engine.now());
        let will = Will { frame: octets.into(), mac, incarnation, died, first: Instant::FAR, copies: COPIES };
        let wait = GUARDIAN_MIN + Span::from_nanos(self.chance.guardians.below(GUARDIAN.as_nanos()));
        self.engine.schedule(died + wait, Event::Will { on, host, will });
    }

    /// Sends the will after all frames that the process handed over: none may follow it.
    pub(super) fn send_will(&mut self, on: usize, host: usize, mut will: Will) {
        let now = self.engine.now();
        if self.segments[on].medium.backlog(now, host).get() > 0 && will.copies == COPIES {
            if now.since(will.died) < PATIENCE {
                self.engine.schedule(now + LOOK, Event::Will { on, host, will });
            }
            return;
        }
        if will.copies == COPIES {
            will.first = now;
            self.happened.count(Happened::Willed);
        }
        self.send(on, host, will.frame.clone());
        will.copies -= 1;
        let heard = now + self.segments[on].settings.delay_max;
        self.engine.schedule(heard, Event::WillHeard { on, host, will: will.clone() });
        if will.copies > 0 {
            self.engine.schedule(now + BETWEEN, Event::Will { on, host, will });
        }
    }

    /// Notes that all running stations have heard the will, so that none waits for the dead station.
    pub(super) fn will_heard(&mut self, on: usize, host: usize, will: &Will) {
        let now = self.engine.now();
        let stations = self.hosts.iter().filter_map(|host| host.on(on));
        let mut rings =
            stations.filter(|station| station.is_running(now)).filter_map(|station| station.rether());
        let knows = rings
            .all(|link| link.mode() == ModeName::Token && link.has_heard_will(will.mac, will.incarnation));
        let is_it = |station: Station<'_>| station.node.is_none() && station.card.died == will.died;
        if knows && self.hosts[host].on(on).is_some_and(is_it) {
            self.segments[on].saw(Seen::Willed { died: will.died, first: will.first });
            self.check();
        }
    }
}
