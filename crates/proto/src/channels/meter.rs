//! What a channel has carried and how late it was, for monitors: nothing here changes what the ledger does.

use super::ended::confirms;
use super::follow::{Follow, Followed};
use super::{ChannelEvent, Channels, Incoming, OneWay, Outgoing, Stated, Want, unread::less_unread};
use crate::io::{ChannelId, ReaderCounts, UnitDescriptor, UnitRef};
use crate::segment::Segment;
use rota_contract::{Granted, Tally, Unread};
use rota_units::{Instant, Span};
use rota_wire::{ChannelReport, MacAddr, Signal, Verb};

/// The shortest time between two reports to a sender; a report at the end comes in addition.
const TALLY_INTERVAL: Span = Span::from_millis(1_000);

/// The counts of one end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    /// The counts of units: at the receiver as they came, at the sender as last reported by its receiver.
    pub(super) tally: Tally,
    /// Of the units that came here: those that the program did not read.
    pub(super) unread: Unread,
    fragments: u64,
    octets: u64,
    follow: Follow,
    /// The longest delay ever, of the newest whole interval, and of the one that goes on.
    longest: Span,
    recent: Span,
    growing: Span,
    clocks: OneWay,
    one_clock: bool,
    /// The schedule of the unit that was offered last.
    due: Instant,
    /// The number after the last unit that was offered, and the earliest and the latest schedule.
    handed: u64,
    dues: Option<(Instant, Instant)>,
}

impl Meter {
    /// A fragment of the channel has come. A unit counts, and is measured, when all of it is there.
    pub(super) fn fragment(&mut self, unit: &UnitDescriptor, octets: usize, one_clock: bool, bound: Span) {
        self.fragments += 1;
        self.octets += octets as u64;
        self.one_clock = one_clock;
        let found = self.follow.fragment(unit, octets as u64);
        self.count(&found);
        if found.whole {
            self.tally.units += 1;
            self.measure(unit, bound);
        }
    }

    /// The program of the channel takes its frames itself, and counts them so.
    pub(super) fn take(&mut self, counts: &ReaderCounts, one_clock: bool) {
        let ReaderCounts { units, lost, incomplete, late, latest_by_ns, .. } = *counts;
        self.tally = Tally { units, lost, incomplete, late, latest_by_ns, unread: 0 };
        (self.fragments, self.octets, self.one_clock) = (counts.fragments, counts.octets, one_clock);
        self.follow = Follow::at(counts.next, counts.missing);
        let newest = Span::from_nanos(counts.delay_newest_ns);
        self.longest = self.longest.max(Span::from_nanos(counts.delay_max_ns));
        self.growing = self.growing.max(newest);
    }

    /// The counts so far.
    pub(super) fn tally(&self) -> Tally {
        less_unread(self.tally, self.unread)
    }

    /// A unit waits in the sender's ring.
    pub(super) fn offer(&mut self, unit: &UnitRef) {
        self.due = Instant::from_nanos(unit.schedule_ns);
        self.handed = self.handed.max(unit.number.saturating_add(1));
        let (earliest, latest) = self.dues.unwrap_or((self.due, self.due));
        self.dues = Some((earliest.min(self.due), latest.max(self.due)));
    }

    /// Units that were offered, those left out before them included.
    pub(super) fn handed(&self) -> u64 {
        self.handed
    }

    /// The earliest and the latest schedule of a unit that was offered.
    pub(super) fn dues(&self) -> Option<(Instant, Instant)> {
        self.dues
    }

    /// The schedule of the unit that was offered last.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    fn count(&mut self, found: &Followed) {
        self.tally.lost = self.tally.lost.saturating_add(found.lost.1);
        self.tally.incomplete += u64::from(found.in_part.is_some());
    }

    /// Ends the counts of a channel; `sent` is what its sender has stated, if it did.
    pub(super) fn end(&mut self, sent: Option<Stated>) -> Tally {
        let found = std::mem::take(&mut self.follow).end(sent);
        self.count(&found);
        self.tally()
    }

    fn measure(&mut self, unit: &UnitDescriptor, bound: Span) {
        let Some(arrived) = unit.arrived else { return };
        let delay = self.clocks.delay(arrived, unit.schedule_ns, self.one_clock);
        let delay = Span::from_nanos(u64::try_from(delay.max(0)).unwrap_or(u64::MAX));
        self.longest = self.longest.max(delay);
        self.growing = self.growing.max(delay);
        if bound > Span::ZERO && delay > bound {
            self.tally.late += 1;
            self.tally.latest_by_ns = self.tally.latest_by_ns.max(delay.minus(bound).as_nanos());
        }
    }
}

impl Channels {
    /// A unit of so many octets has left, in fragments of at most `payload_max` octets. Others may wait.
    pub(crate) fn count_unit(&mut self, id: ChannelId, octets: u32, payload_max: u64) {
        if let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) {
            channel.units.sent += 1;
            let octets = u64::from(octets);
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

    /// The counts so far of a channel that is received here.
    pub(crate) fn received(&self, id: ChannelId) -> Option<Tally> {
        self.incoming.iter().find(|channel| channel.id == id).map(|channel| channel.meter.tally())
    }

    /// Reports the counts to the senders of channels on which something went wrong since the last report.
    pub(super) fn tell_tallies(&mut self, now: Instant) {
        for channel in self.incoming.iter_mut().filter(|channel| channel.has_news()) {
            if now >= channel.tell_at {
                channel.tell_at = now + TALLY_INTERVAL;
                channel.told = channel.meter.tally();
                self.wants.push(Want::Signal { to: channel.hop, signal: channel.tally_signal() });
            }
        }
    }

    /// Takes the counts that a receiver reports.
    pub(super) fn on_tally(&mut self, now: Instant, from: MacAddr, signal: &Signal) {
        let Some(channel) = self.answered(from, signal) else { return };
        if !channel.may_be(now, &signal.tally) {
            self.wants.push(Want::CountRefusedTally);
            return;
        }
        if !channel.hear(signal) {
            return;
        }
        let (channel, tally) = (channel.id, channel.tally());
        self.events.push_back(ChannelEvent::Told { channel, tally });
    }

    /// One end, as it is reported.
    pub(crate) fn report_of(&self, at: usize, segment: Segment<'_>) -> Option<ChannelReport> {
        if let Some(channel) = self.outgoing.get(at) {
            return Some(channel.end(segment));
        }
        let channel = self.incoming.get(at - self.outgoing.len())?;
        let granted = &channel.granted;
        Some(ChannelReport {
            channel: channel.remote,
            peer_station: segment.number(channel.hop),
            label: channel.label,
            sending: false,
            ..of(&channel.meter, granted, channel.meter.tally())
        })
    }
}

impl Incoming {
    /// True if its sender was not yet told of a broken unit, or that one in part is lost.
    pub(super) fn has_news(&self) -> bool {
        // Units that come whole are no news.
        let tally = Tally { units: self.told.units, ..self.meter.tally() };
        self.opened && tally != self.told
    }

    pub(super) fn tally_signal(&self) -> Signal {
        Signal { tally: self.meter.tally(), ..Signal::new(Verb::Tally, self.remote, self.label) }
    }
}

impl Outgoing {
    /// Takes the counts that its receiver reports; true if they are news.
    pub(super) fn hear(&mut self, signal: &Signal) -> bool {
        self.ending.counted |= confirms(signal);
        self.ending.confirmed |= self.ending.counted;
        // An older report, overtaken by a newer one, has smaller counts: no count of lost units falls, one of
        // units in part falls only where they are lost then, and one of late units only where they are lost
        // or in part then.
        let (said, known) = (&signal.tally, &self.meter.tally);
        let missed = |tally: &Tally| tally.lost.saturating_add(tally.incomplete);
        let is_older =
            said.broken() < known.broken() || said.lost < known.lost || missed(said) < missed(known);
        let is_news = !is_older && said != known;
        if is_news {
            self.meter.tally = signal.tally;
        }
        is_news
    }

    fn end(&self, segment: Segment<'_>) -> ChannelReport {
        ChannelReport {
            channel: self.id,
            peer_station: segment.number(self.hop),
            label: self.label,
            sending: true,
            units: self.units.sent,
            ..of(&self.meter, &self.granted, self.tally())
        }
    }
}

fn of(meter: &Meter, granted: &Granted, tally: Tally) -> ChannelReport {
    let clip = |span: Span| u32::try_from(span.as_nanos()).unwrap_or(u32::MAX);
    ChannelReport {
        one_clock: meter.one_clock,
        unit_octets_max: granted.contract.unit_octets_max,
        period_ns: clip(granted.period()),
        tht_ns: clip(granted.tht()),
        bound_ns: granted.bound().as_nanos(),
        fragments: meter.fragments,
        octets: meter.octets,
        units: tally.units,
        late: tally.late,
        lost: tally.lost,
        incomplete: tally.incomplete,
        latest_by_ns: tally.latest_by_ns,
        unread: tally.unread,
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
            left_out: 0,
        }
    }

    fn sent(number: u64, octets: usize, arrived_ns: u64) -> (UnitDescriptor, usize) {
        (UnitDescriptor { number, ..unit(1_000 * number, arrived_ns) }, octets)
    }

    fn count(fragments: &[(UnitDescriptor, usize)], final_unit: Option<u64>) -> Tally {
        let mut meter = Meter::default();
        for (unit, octets) in fragments {
            meter.fragment(unit, *octets, true, Span::from_nanos(999));
        }
        meter.end(final_unit.map(|units| Stated { units, ..Stated::default() }))
    }

    #[test]
    fn what_exceeds_the_bound_is_late_and_by_how_much_is_kept() {
        let all = [sent(0, 100, 400), sent(1, 100, 2_100), sent(2, 100, 4_000), sent(3, 100, 3_999)];
        let tally = count(&all, Some(4));
        assert_eq!((tally.units, tally.late, tally.latest_by_ns), (4, 2, 1_001));
        assert_eq!((tally.lost, tally.incomplete, tally.broken()), (0, 0, 2));
    }

    #[test]
    fn lost_units_and_damaged_ones_are_counted_once_wherever_they_are() {
        let part = |number, octets| sent(number, octets, 1_000 * number + 10);
        // 0, 1, 4, 5 and 7 are lost; 2 comes in two parts, of 3 the second one and of 6 an octet is missing.
        let all = [part(2, 40), part(2, 60), part(3, 40), part(6, 99)];
        let tally = count(&all, Some(8));
        assert_eq!((tally.units, tally.lost, tally.incomplete, tally.late), (1, 5, 2, 0));
        assert_eq!(count(&[], Some(7)).lost, 7, "nothing came at all");
        assert_eq!(count(&[], None).lost, 0, "nobody knows how many there were");
        assert_eq!(count(&all, None).lost, 4);
    }
}
