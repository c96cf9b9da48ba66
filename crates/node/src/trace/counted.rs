//! Channels whose programs take their frames themselves: their counts say what was not there as promised.

use super::judge::Missed;
use super::{TraceEvent, TraceRecord, Tracer};
use rota_contract::Tally;
use rota_proto::{ChannelId, StationId};
use rota_shm::{Stated, TraceVerdict};
use rota_units::Instant;

/// The counts of a channel's program since the last look.
pub(crate) struct Counted<'a> {
    pub(crate) channel: ChannelId,
    /// Its sender.
    pub(crate) src: StationId,
    /// The counts as the node had them, and has them now.
    pub(crate) before: Tally,
    pub(crate) after: Tally,
    /// The program's own word.
    pub(crate) stated: &'a Stated,
}

impl Tracer {
    /// The program of a channel has counted more. The numbers of units are those that the newest unit
    /// suggests, and times are those of the look: the frames have passed the node by.
    pub(crate) fn counted(&mut self, at: Instant, counted: &Counted<'_>) {
        let Counted { channel, src, before, after, stated } = *counted;
        let Some(known) = self.known.iter_mut().find(|known| known.channel == channel) else { return };
        let bound_ns = known.bound.as_nanos();
        let rise = |of: fn(&Tally) -> u64| of(&after).saturating_sub(of(&before));
        let (lost, in_part) = (rise(|tally| tally.lost), rise(|tally| tally.incomplete));
        let late = rise(|tally| tally.late) > 0;
        // The first frame of a unit states what was left out before it, and the unit counts when it is over.
        let left_out = lost.min(stated.left_out.saturating_sub(known.left_out));
        known.left_out = known.left_out.saturating_add(left_out);
        known.judge.reached(stated.next, stated.missing, known.left_out);
        let newest = stated.next.saturating_sub(1);
        let first = newest.saturating_sub(lost);
        let by = match stated.delay_newest_ns.saturating_sub(bound_ns) {
            0 => after.latest_by_ns,
            by => by,
        };
        let late_ns = i64::try_from(by).unwrap_or(i64::MAX);
        let of = |verdict, number, units| Missed {
            verdict,
            number,
            units,
            octets: 0,
            early_ns: 0,
            deadline_ns: 0,
            late_ns: 0,
        };
        let deadline_ns = at.as_nanos().saturating_sub(by);
        let late_one = Missed { deadline_ns, late_ns, ..of(TraceVerdict::Late, newest, bound_ns) };
        let all = [
            (in_part > 0).then(|| of(TraceVerdict::Incomplete, newest.saturating_sub(1), 0)),
            (lost > left_out).then(|| of(TraceVerdict::Missing, first, lost - left_out)),
            (left_out > 0).then(|| of(TraceVerdict::LeftOut, newest.saturating_sub(left_out), left_out)),
            late.then_some(late_one),
        ];
        let (channel, _, port) = self.called(channel);
        let own = self.own(TraceEvent::Missed, at, port);
        for missed in all.into_iter().flatten() {
            self.missed(missed, TraceRecord { channel, src, dst: own.src, ..own });
        }
    }
}
