//! Units that came to a channel's receiving station, and that its program did not read in time.
//!
//! The program's memory is written again before it was read, or the program ended. The parent knows of that;
//! the counts of the channel, and thereby its sender, learn it here.

use super::Channels;
use crate::io::ChannelId;
use rota_wire::Tally;

/// Units of one channel that came and were not read, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Units of which the program read nothing.
    pub lost: u64,
    /// Of these: units that had come in part only.
    pub in_part: u64,
    /// Units that had come whole, and of which the program read a part.
    pub incomplete: u64,
    /// Of all these: units that had come behind their bound.
    pub late: u64,
}

impl Unread {
    /// The counts of a channel of which these units were not read: each unit still counts once, by what its
    /// program has of it. A late unit that was not read is lost, and not late.
    pub(super) fn of(self, came: Tally) -> Tally {
        let late = came.late.saturating_sub(self.late);
        let whole = self.lost.saturating_sub(self.in_part).saturating_add(self.incomplete);
        Tally {
            units: came.units.saturating_sub(whole),
            lost: came.lost.saturating_add(self.lost),
            incomplete: came.incomplete.saturating_sub(self.in_part).saturating_add(self.incomplete),
            unread: self.lost.saturating_add(self.incomplete),
            late,
            latest_by_ns: if late > 0 { came.latest_by_ns } else { 0 },
        }
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
        assert_eq!(Unread::default().of(came), came);
        let found = Unread { lost: 11, in_part: 1, incomplete: 4, late: 5 }.of(came);
        assert_eq!((found.units, found.lost, found.incomplete, found.unread), (86, 14, 5, 15));
        assert_eq!((found.late, found.latest_by_ns), (2, 5));
        let none = Unread { lost: 7, late: 7, ..Unread::default() }.of(came);
        assert_eq!((none.lost, none.late, none.latest_by_ns), (10, 0, 0));
        assert_eq!(found.units + found.lost + found.incomplete, 105);
    }
}
