//! What a channel has carried and how late it was, for monitors: nothing here changes what the ledger does.

use super::{Channels, Outgoing};
use crate::io::{ChannelId, UnitDescriptor};
use crate::rether::Rether;
use rota_units::Span;
use rota_wire::ChannelReport;

/// The counts of one end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    pub(super) units: u64,
    fragments: u64,
    octets: u64,
    late: u64,
    /// The longest delay ever, of the newest whole interval, and of the one that goes on.
    longest: Span,
    recent: Span,
    growing: Span,
    /// Arrival less schedule of the quickest unit, where the clocks differ: lateness counts from there.
    quickest: Option<i128>,
    one_clock: bool,
    /// The unit that waits in the sender's ring.
    offered: u32,
}

impl Meter {
    /// A fragment of the channel has come. A unit counts, and is measured, by its last one.
    pub(super) fn fragment(&mut self, unit: &UnitDescriptor, octets: usize, one_clock: bool, bound: Span) {
        self.fragments += 1;
        self.octets += octets as u64;
        if unit.last {
            self.units += 1;
            self.one_clock = one_clock;
            self.measure(unit, bound);
        }
    }

    fn measure(&mut self, unit: &UnitDescriptor, bound: Span) {
        let Some(arrived) = unit.arrived else { return };
        let apart = i128::from(arrived.as_nanos()) - i128::from(unit.schedule_ns);
        let from = if self.one_clock {
            0
        } else {
            let quickest = self.quickest.map_or(apart, |quickest| quickest.min(apart));
            *self.quickest.insert(quickest)
        };
        let delay = Span::from_nanos(u64::try_from((apart - from).max(0)).unwrap_or(u64::MAX));
        self.longest = self.longest.max(delay);
        self.growing = self.growing.max(delay);
        self.late += u64::from(bound > Span::ZERO && delay > bound);
    }
}

impl Channels {
    /// A unit waits in the ring of a channel.
    pub(crate) fn note_offer(&mut self, id: ChannelId, octets: u32) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.meter.offered = octets;
        }
    }

    /// The offered unit has left, in fragments of so many octets.
    pub(crate) fn count_unit(&mut self, id: ChannelId, payload_max: u64) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.units += 1;
            let octets = u64::from(std::mem::take(&mut channel.meter.offered));
            channel.meter.octets += octets;
            channel.meter.fragments += octets.div_ceil(payload_max.max(1)).max(1);
        }
    }

    /// The next interval of a report begins.
    pub(crate) fn next_interval(&mut self) {
        for channel in &mut self.incoming {
            channel.meter.recent = std::mem::take(&mut channel.meter.growing);
        }
    }

    /// How many channels end here.
    pub(crate) fn ends(&self) -> usize {
        self.outgoing.len() + self.incoming.len()
    }

    /// One end, as it is reported.
    pub(crate) fn report_of(&self, at: usize, link: &Rether) -> Option<ChannelReport> {
        if let Some(channel) = self.outgoing.get(at) {
            return Some(channel.end(link));
        }
        let channel = self.incoming.get(at - self.outgoing.len())?;
        let contract = &channel.contract;
        Some(ChannelReport {
            channel: channel.remote,
            peer: link.number(channel.peer),
            label: channel.label,
            sending: false,
            units: channel.meter.units,
            ..of(&channel.meter, contract)
        })
    }
}

impl Outgoing {
    fn end(&self, link: &Rether) -> ChannelReport {
        ChannelReport {
            channel: self.id.0,
            peer: link.number(self.peer),
            label: self.label,
            sending: true,
            units: self.units,
            ..of(&self.meter, &self.contract)
        }
    }
}

fn of(meter: &Meter, contract: &super::Contract) -> ChannelReport {
    let clip = |span: Span| u32::try_from(span.as_nanos()).unwrap_or(u32::MAX);
    ChannelReport {
        one_clock: meter.one_clock,
        unit_octets_max: contract.unit_octets_max,
        period_ns: clip(contract.period),
        tht_ns: clip(contract.tht),
        bound_ns: contract.bound.as_nanos(),
        fragments: meter.fragments,
        octets: meter.octets,
        late: meter.late,
        delay_max_ns: meter.longest.as_nanos(),
        delay_recent_ns: meter.recent.as_nanos(),
        ..ChannelReport::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::Instant;

    fn unit(schedule_ns: u64, arrived_ns: u64) -> UnitDescriptor {
        UnitDescriptor {
            number: 0,
            unit_octets: 100,
            fragment: 0,
            fragment_offset: 0,
            last: true,
            schedule_ns,
            arrived: Some(Instant::from_nanos(arrived_ns)),
        }
    }

    #[test]
    fn with_one_clock_a_delay_is_a_delay_and_what_exceeds_the_bound_is_late() {
        let mut meter = Meter { one_clock: true, ..Meter::default() };
        for (schedule, arrived) in [(1_000, 1_400), (2_000, 3_000), (3_000, 3_001)] {
            meter.measure(&unit(schedule, arrived), Span::from_nanos(999));
        }
        assert_eq!((meter.longest, meter.late), (Span::from_nanos(1_000), 1));
    }

    #[test]
    fn with_two_clocks_lateness_counts_from_the_quickest_unit() {
        let mut meter = Meter::default();
        // The sender's clock is far ahead: every unit seems to arrive before it left.
        for (schedule, arrived) in [(1_000_000, 1_400), (1_001_000, 2_200), (1_002_000, 3_900)] {
            meter.measure(&unit(schedule, arrived), Span::from_nanos(10_000));
        }
        assert_eq!((meter.longest, meter.late), (Span::from_nanos(700), 0));
    }
}
