//! The newest channels of this station that ended early or broke their promise: their counts stay in the
//! status for a while, when no list has the channel any more.

use rota_proto::{ChannelId, Stated};
use rota_shm::Board;
use rota_shm::control::{EndInfo, ReceiverInfo};
use rota_units::{Instant, Span};
use std::collections::VecDeque;

/// Channels that are remembered.
const KEPT_MAX: usize = 8;
/// Ends that are told to those who ask.
const ENDS_MAX: usize = 64;
/// How long they stay in the status.
const SHOWN: Span = Span::from_millis(600_000);

/// Channels without a program whose end is not told yet: more than a node has.
const NAMES_MAX: usize = 512;
/// Boards that wait for the statement of a silent sender; the machine remembers no more such ends.
const BOARDS_MAX: usize = 32;

/// One of them.
struct Ended {
    channel: ChannelId,
    /// Its direction, the other station and the service.
    called: String,
    /// Its counts and the cause of its end, in words.
    how: String,
    /// Where it was sent to several.
    receivers: Vec<ReceiverInfo>,
    at: Instant,
}

/// Those of this station, the newest last.
#[derive(Default)]
pub(super) struct EndedChannels {
    kept: VecDeque<Ended>,
    /// The newest ends of all kinds.
    ends: VecDeque<Ended>,
    /// The names of channels whose program has gone, until their end is told.
    names: VecDeque<(ChannelId, String)>,
    /// The boards of received channels whose silent sender has stated no units. Their programs may look.
    boards: VecDeque<(ChannelId, Board)>,
    /// Channels of programs that were thrown out, whose end is not told yet: why.
    thrown_out: VecDeque<(ChannelId, String)>,
}

impl EndedChannels {
    /// Remembers a channel.
    pub(super) fn remember(&mut self, at: Instant, channel: ChannelId, called: String, how: String) {
        keep(&mut self.kept, KEPT_MAX, Ended { channel, called, how, receivers: Vec::new(), at });
    }

    /// Keeps the end of a channel for those who ask for it by its number at its sender.
    pub(super) fn keep_end(
        &mut self,
        at: Instant,
        channel: ChannelId,
        called: String,
        how: String,
        receivers: Vec<ReceiverInfo>,
    ) {
        keep(&mut self.ends, ENDS_MAX, Ended { channel, called, how, receivers, at });
    }

    /// The end of the newest channel with this number at its sender.
    pub(super) fn end_of(&self, now: Instant, number: ChannelId) -> Option<EndInfo> {
        let end = self.ends.iter().rev().find(|ended| is_named(&ended.called, number))?;
        let ago_ns = now.since(end.at).as_nanos();
        Some(EndInfo {
            called: end.called.clone(),
            how: end.how.clone(),
            ago_ns,
            receivers: end.receivers.clone(),
        })
    }

    /// Both nodes know its counts afterwards.
    pub(super) fn update(&mut self, channel: ChannelId, how: String) {
        for ended in self.kept.iter_mut().chain(&mut self.ends).filter(|ended| ended.channel == channel) {
            ended.how.clone_from(&how);
        }
    }

    /// Keeps the name of a channel whose program has gone: the machine tells its end later.
    pub(super) fn keep_name(&mut self, channel: ChannelId, called: String) {
        keep(&mut self.names, NAMES_MAX, (channel, called));
    }

    /// Forgets the name: the end of the channel is told.
    pub(super) fn forget_name(&mut self, channel: ChannelId) {
        self.names.retain(|(named, _)| *named != channel);
    }

    /// The program of a channel was thrown out, which the log has told.
    pub(super) fn throw_out(&mut self, channel: ChannelId, why: String) {
        keep(&mut self.thrown_out, NAMES_MAX, (channel, why));
    }

    /// Why the program of a channel that has ended now was thrown out, if it was. Such a program may live:
    /// the machine knows only that it sends no more.
    pub(super) fn take_thrown_out(&mut self, channel: ChannelId) -> Option<String> {
        let at = self.thrown_out.iter().position(|(thrown_out, _)| *thrown_out == channel)?;
        self.thrown_out.remove(at).map(|(_, why)| why)
    }

    /// Keeps the board of a received channel that has ended without its sender's statement.
    pub(super) fn keep_board(&mut self, channel: ChannelId, board: Board) {
        keep(&mut self.boards, BOARDS_MAX, (channel, board));
    }

    /// The sender of a channel has stated its units afterwards: its program can read them.
    pub(super) fn state(&mut self, channel: ChannelId, stated: Stated) {
        if let Some(at) = self.boards.iter().position(|(kept, _)| *kept == channel)
            && let Some((_, board)) = self.boards.remove(at)
        {
            board.state_afterwards(stated.units, stated.unsent);
        }
    }

    /// The name by which the log has called it, or would have if its program had stayed.
    pub(super) fn called(&self, channel: ChannelId) -> String {
        let ended = self.kept.iter().map(|ended| (ended.channel, &ended.called));
        let names = self.names.iter().map(|(named, called)| (*named, called));
        let known = ended.chain(names).find(|(known, _)| *known == channel);
        known.map_or_else(|| format!("channel {channel}"), |(_, called)| called.clone())
    }

    /// The name of a channel with this number at its sender.
    pub(super) fn called_at_sender(&self, number: ChannelId) -> Option<&str> {
        let kept = self.kept.iter().map(|ended| &ended.called);
        let mut all = kept.chain(self.names.iter().map(|(_, called)| called));
        all.find(|called| is_named(called, number)).map(String::as_str)
    }

    /// A note about each for the status.
    pub(super) fn notes(&self, now: Instant) -> impl Iterator<Item = String> {
        let lately = self.kept.iter().filter(move |ended| now.since(ended.at) < SHOWN);
        lately.map(move |ended| {
            let seconds = now.since(ended.at).as_nanos() / 1_000_000_000;
            format!("{} ended {seconds} s ago{}", ended.called, ended.how)
        })
    }
}

/// True if a channel is called by this number, which is its number at its sender.
fn is_named(called: &str, number: ChannelId) -> bool {
    called.starts_with(&format!("channel {number} "))
}

/// Keeps the newest ones, so many at most.
fn keep<T>(queue: &mut VecDeque<T>, most: usize, newest: T) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(newest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ends_are_told_for_ten_minutes_with_what_became_known_afterwards() {
        let at = |s| Instant::ZERO + Span::from_millis(1_000 * s);
        let mut ended = EndedChannels::default();
        for k in 0..9 {
            let how = format!(", {k} units: it fell silent");
            ended.remember(at(k), ChannelId(k), format!("channel {k} to n2, service 3"), how);
        }
        let notes = |ended: &EndedChannels, now| ended.notes(now).collect::<Vec<String>>();
        assert_eq!(notes(&ended, at(10)).len(), KEPT_MAX);
        assert_eq!(
            notes(&ended, at(10))[0],
            "channel 1 to n2, service 3 ended 9 s ago, 1 units: it fell silent"
        );
        ended.update(ChannelId(8), ", 8 units: counted now".into());
        assert_eq!(
            notes(&ended, at(607)),
            ["channel 8 to n2, service 3 ended 599 s ago, 8 units: counted now"]
        );
        assert_eq!(
            (ended.called(ChannelId(8)), ended.called(ChannelId(0))),
            ("channel 8 to n2, service 3".into(), "channel 0".into())
        );
        assert_eq!(ended.called_at_sender(ChannelId(8)), Some("channel 8 to n2, service 3"));
        assert_eq!(
            (ended.called_at_sender(ChannelId(0)), ended.called_at_sender(ChannelId(80))),
            (None, None)
        );
        assert_eq!(notes(&ended, at(608)), Vec::<String>::new());
    }

    /// The log called it by this station's own number, with neither station nor service.
    #[test]
    fn a_channel_without_its_program_keeps_its_name_until_its_end_is_told() {
        let mut ended = EndedChannels::default();
        for k in 0..600 {
            ended.keep_name(ChannelId(k), format!("channel {} from n1, service 3", k + 1_000));
        }
        assert_eq!(ended.called(ChannelId(599)), "channel 1599 from n1, service 3");
        assert_eq!((ended.called(ChannelId(7)), ended.names.len()), ("channel 7".into(), NAMES_MAX));
        ended.forget_name(ChannelId(599));
        assert_eq!((ended.called(ChannelId(599)), ended.names.len()), ("channel 599".into(), NAMES_MAX - 1));
    }

    /// The end was told a second time, as that of a program that had ended without closing its channel.
    #[test]
    fn the_end_of_a_program_that_was_thrown_out_has_its_own_cause_once() {
        let mut ended = EndedChannels::default();
        ended.throw_out(ChannelId(7), "it wrote an impossible index".into());
        assert_eq!(ended.take_thrown_out(ChannelId(8)), None);
        assert_eq!(ended.take_thrown_out(ChannelId(7)).as_deref(), Some("it wrote an impossible index"));
        assert_eq!(ended.take_thrown_out(ChannelId(7)), None);
    }
}
