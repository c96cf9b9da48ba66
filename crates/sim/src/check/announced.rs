//! The bounds of L6 under the stations' announced timers (decision 017).

use super::View;
use crate::check::windows::Recovery;
use rota_proto::ModeName;
use rota_units::Span;

/// The longest drain with which any station of a ring has reckoned since the last token.
#[derive(Debug, Default)]
pub(super) struct Announced {
    longest: Span,
}

impl Announced {
    /// Looks at all stations, where timers follow stalls.
    pub(super) fn look(&mut self, view: &View<'_>) {
        if view.settings.follow_stalls {
            self.longest = self.longest.max(longest(view));
        }
    }

    /// A token was believed.
    pub(super) fn forget(&mut self, view: &View<'_>) {
        if view.settings.follow_stalls {
            self.longest = longest(view);
        }
    }

    /// How long recovery may take with what was announced.
    pub(super) fn recovery(&self, view: &View<'_>) -> Recovery {
        if !view.settings.follow_stalls || self.longest >= view.settings.lease {
            return *view.recovery;
        }
        let (lease, death_timeout) = (self.longest, view.settings.death_of(self.longest));
        let settings = view.settings.clone();
        let announced = settings.with(|medium| (medium.lease, medium.death_timeout) = (lease, death_timeout));
        Recovery::new(&announced, view.stations.count())
    }
}

fn longest(view: &View<'_>) -> Span {
    let running = view.stations.iter().filter(|(_, station)| station.is_running(view.now));
    let in_force = running.filter_map(|(_, station)| {
        let rether = station.rether()?;
        let in_ring = rether.mode() == ModeName::Token;
        in_ring.then(|| rether.timers_in_force(station.clock.read(view.now)).drain)
    });
    in_force.max().unwrap_or(view.settings.lease)
}
