//! Units that came to a channel's receiving station, and that its program did not read in time.
//!
//! The program's memory is written again before it was read, or the program ended. The parent knows of that;
//! the counts of the channel, and thereby its sender, learn it here.

use super::Channels;
use crate::io::ChannelId;
use rota_contract::{Tally, Unread};

/// The counts of a channel of which these units were not read: each unit still counts once, by what its
/// program has of it. A late unit that was not read is lost, and not late.
pub(super) fn less_unread(came: Tally, unread: Unread) -> Tally {
    let late = came.late.saturating_sub(unread.late);
    let whole = unread.lost.saturating_sub(unread.in_part).saturating_add(unread.incomplete);
    Tally {
        units: came.units.saturating_sub(whole),
        lost: came.lost.saturating_add(unread.lost),
        incomplete: came.incomplete.saturating_sub(unread.in_part).saturating_add(unread.incomplete),
        unread: unread.lost.saturating_add(unread.incomplete),
        late,
        latest_by_ns: if late > 0 { came.latest_by_ns } else { 0 },
    }
}

impl Channels {
    /// The program of a channel that is received here has not read so many units in time, in all.
    pub(crate) fn unread(&mut self, id: ChannelId, unread: Unread) {
        if let Some(channel) = self.incoming.iter_mut().find(|channel| channel.id == id) {
            channel.meter.unread = unread;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_counts_once_however_it_was_missed() {
        let came = Tally { units: 100, late: 7, lost: 3, incomplete: 2, latest_by_ns: 5, unread: 0 };
        assert_eq!(less_unread(came, Unread::default()), came);
        let found = less_unread(came, Unread { lost: 11, in_part: 1, incomplete: 4, late: 5 });
        assert_eq!((found.units, found.lost, found.incomplete, found.unread), (86, 14, 5, 15));
        assert_eq!((found.late, found.latest_by_ns), (2, 5));
        let none = less_unread(came, Unread { lost: 7, late: 7, ..Unread::default() });
        assert_eq!((none.lost, none.late, none.latest_by_ns), (10, 0, 0));
        assert_eq!(found.units + found.lost + found.incomplete, 105);
    }
}
