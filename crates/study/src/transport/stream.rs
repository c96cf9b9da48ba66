//! The numbers of units that come over one channel after another.
//!
//! A sender numbers the units of each channel from 0, and says with each channel how many units of its stream
//! it had handed over before. A receiver may join late, so its own numbers begin elsewhere. Two numbers tie
//! them together: `from`, the sender's count at the first channel that came of the stream, and `base`, the
//! receiver's number of that channel's first unit.
//!
//! A sender that has begun anew cannot be told from the one before if both are of one station and its count
//! is as large as that of the one before at least. A sender's first channel has the count 0.

/// The units of all channels so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The address of the sender's station; none before the first channel.
    sender: Option<String>,
    base: u64,
    from: u64,
    /// The number of the newest channel's first unit.
    first: u64,
    /// The number after the last unit that was delivered.
    next: u64,
}

impl Stream {
    /// A channel has come from the station `sender`, which had handed over `before` units of its stream. The
    /// result is the number of units lost at the change, or `None` if a new stream begins, of which nothing
    /// before this channel is known.
    pub(super) fn begin_channel(&mut self, sender: &str, before: u64) -> Option<u64> {
        let is_same = self.sender.as_deref() == Some(sender);
        let passed = before.checked_sub(self.from).filter(|_| is_same);
        let first = passed.and_then(|passed| self.base.checked_add(passed));
        // Units that came were handed over: a sender that knows less of them has begun anew.
        let lost = first.and_then(|first| first.checked_sub(self.next));
        if lost.is_none() {
            self.sender = Some(sender.to_owned());
            (self.base, self.from) = (self.next, before);
        }
        self.first = self.next.saturating_add(lost.unwrap_or(0));
        self.next = self.first;
        lost
    }

    /// The channel's unit of this number is delivered; its number in all.
    pub(super) fn number(&mut self, on_channel: u64) -> u64 {
        let number = self.first.saturating_add(on_channel);
        self.next = number.saturating_add(1);
        number
    }

    /// The channel has ended after so many units; those that did not come are counted.
    pub(super) fn passed(&mut self, on_channel: u64) {
        self.next = self.next.max(self.first.saturating_add(on_channel));
    }

    /// All units up to the end of the channel, on which so many were sent, if that is known.
    pub(super) fn sent(&self, on_channel: Option<u64>) -> u64 {
        on_channel.map_or(self.next, |sent| self.first.saturating_add(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "02:00:00:00:00:01";
    const THREE: &str = "02:00:00:00:00:03";

    /// Delivers so many units of the newest channel.
    fn deliver(stream: &mut Stream, units: u64) {
        for unit in 0..units {
            stream.number(unit);
        }
    }

    /// The first channel of a sender that had handed over `before` units, and so many units of it.
    fn begun(before: u64, units: u64) -> Stream {
        let mut stream = Stream::default();
        assert_eq!(stream.begin_channel(ONE, before), None);
        deliver(&mut stream, units);
        stream
    }

    #[test]
    fn a_stream_goes_on_over_channels() {
        let mut stream = begun(0, 100);
        assert_eq!(stream.begin_channel(ONE, 103), Some(3));
        assert_eq!((stream.number(0), stream.number(5)), (103, 108));
        assert_eq!(stream.begin_channel(ONE, 109), Some(0), "the number of the next one");
        assert_eq!(stream.begin_channel(ONE, 111), Some(2), "none came over the channel between");
        assert_eq!((stream.sent(Some(7)), stream.sent(None)), (118, 111));
    }

    /// It took all units before its first channel for lost ones.
    #[test]
    fn a_receiver_that_joins_late_counts_its_own_losses_only() {
        let mut stream = begun(1_912, 1_000);
        assert_eq!(stream.begin_channel(ONE, 2_946), Some(34));
        assert_eq!(stream.number(0), 1_034);
        assert_eq!(stream.sent(Some(10)), 1_044);
    }

    /// Its count was below the receiver's, and no loss was seen.
    #[test]
    fn the_losses_of_a_sender_that_begins_anew_count() {
        let mut stream = begun(0, 2_400);
        assert_eq!(stream.begin_channel(ONE, 0), None, "a new stream");
        assert_eq!(stream.number(0), 2_400);
        deliver(&mut stream, 1_200);
        assert_eq!(stream.begin_channel(ONE, 1_230), Some(30));
        assert_eq!(stream.number(0), 2_400 + 1_230);
        assert_eq!(stream.begin_channel(ONE, 1_200), None, "less than it had handed over: another one");
        assert_eq!(stream.sent(None), 2_400 + 1_231);
    }

    /// Its count was taken for that of the sender before.
    #[test]
    fn a_sender_of_another_station_begins_a_new_stream() {
        let mut stream = begun(0, 50);
        assert_eq!(stream.begin_channel(THREE, 900), None);
        assert_eq!(stream.number(0), 50);
        assert_eq!(stream.begin_channel(THREE, 903), Some(2));
        assert_eq!(stream.begin_channel(ONE, 10_000), None, "the first one again");
        assert_eq!(stream.number(0), 53);
    }

    #[test]
    fn counts_at_the_end_of_the_numbers_do_no_harm() {
        let mut stream = Stream::default();
        assert_eq!(stream.begin_channel(ONE, u64::MAX), None);
        assert_eq!(stream.number(u64::MAX), u64::MAX);
        assert_eq!(stream.begin_channel(ONE, u64::MAX), None);
        assert_eq!(stream.begin_channel(ONE, 0), None);
        assert_eq!(stream.begin_channel(ONE, 5), None, "past the end");
        assert_eq!((stream.number(1), stream.sent(Some(1))), (u64::MAX, u64::MAX));
    }
}
