//! Channels in the terms of the Tenet paper, their status, and streams of continuous media.

use std::ffi::{c_char, c_int};

use rota::cmtp::{Played, StreamSink, StreamSource, StreamTally, StreamUnit, UnitState};
use rota::{
    AskedTerms, Chances, ChannelId, Contract, Invitation, Listener, Node, OpenRequest, Peer, SendChannel,
    Shown, Span,
};

use crate::channel::{CTally, Receiver, Refusal, Request, control_name, ended, need, not_closed, opened};
use crate::channel::{UnitInfo, unit_info};
use crate::face::{
    Fault, Octets, Out, Status, copy_octets, copy_text, export, hand_over, octets, octets_mut, tell,
};
use crate::face::{text, values_mut};

/// `rota_terms`.
#[repr(C)]
pub struct Terms {
    average_ns: u64,
    interval_ns: u64,
    delay_ns: u64,
    jitter_ns: u64,
    late_ppb: u32,
    loss_ppb: u32,
}

impl From<&Terms> for AskedTerms {
    fn from(terms: &Terms) -> Self {
        let stated = |ns: u64| (ns > 0).then_some(Span::from_nanos(ns));
        Self {
            average: stated(terms.average_ns),
            interval: stated(terms.interval_ns),
            delay: stated(terms.delay_ns),
            jitter: stated(terms.jitter_ns),
            chances: Chances { late_ppb: terms.late_ppb, loss_ppb: terms.loss_ppb },
            ..Self::default()
        }
    }
}

/// `rota_about`.
#[repr(C)]
pub struct About {
    channel: u64,
    node_id: u64,
    period_ns: u64,
    bound_ns: u64,
    unit_octets_max: u32,
    from: [c_char; 64],
}

impl About {
    pub fn of(channel: ChannelId, contract: &Contract, peer: &Peer) -> Self {
        Self {
            channel: channel.0,
            node_id: peer.node_id.0,
            period_ns: contract.period_ns,
            bound_ns: contract.bound_ns,
            unit_octets_max: contract.unit_octets_max,
            from: copy_text(&peer.name),
        }
    }

    /// Of a receiver that asks: no channel has been promised yet.
    pub fn asked(invitation: &Invitation) -> Self {
        Self {
            channel: invitation.pair.map_or(0, |pair| pair.0),
            node_id: invitation.node_id.0,
            period_ns: 0,
            bound_ns: 0,
            unit_octets_max: 0,
            from: copy_text(&invitation.name),
        }
    }
}

/// `rota_hop`.
#[repr(C)]
pub struct Hop {
    bound_ns: u64,
    buffers: u64,
    sent: u64,
    dropped: u64,
    port: c_int,
    node: [c_char; 64],
    medium: [c_char; 16],
}

/// `rota_played`.
#[repr(C)]
pub struct CPlayed {
    unit: UnitInfo,
    due_ns: u64,
    state: c_int,
}

/// `rota_stream_tally`.
#[repr(C)]
pub struct CStreamTally {
    whole: u64,
    in_part: u64,
    late: u64,
    lost: u64,
    latest_by_ns: u64,
}

impl From<StreamTally> for CStreamTally {
    fn from(tally: StreamTally) -> Self {
        let StreamTally { whole, in_part, late, lost, latest_by_ns, .. } = tally;
        Self { whole, in_part, late, lost, latest_by_ns }
    }
}

/// The receiving end of a stream, with room for one unit.
pub struct Player {
    stream: StreamSink,
    unit: Vec<u8>,
}

fn played(unit: &StreamUnit, octets: usize, truncated: bool) -> CPlayed {
    let state = match unit.state {
        UnitState::Whole => 0,
        UnitState::InPart { .. } => 1,
        UnitState::Late => 2,
        UnitState::Lost => 3,
    };
    let mut info = unit
        .unit
        .as_ref()
        .map_or_else(|| UnitInfo::missing(unit.number), |came| unit_info(came, octets, truncated));
    info.set_lost_before(unit.lost_before);
    CPlayed { unit: info, due_ns: unit.due.as_nanos(), state }
}

export! {
    /// Opens a channel in the terms of the Tenet paper.
    fn rota_channel_open_terms(
        control: *const c_char,
        request: Option<&Request>,
        terms: Option<&Terms>,
        channel: Out<'_, *mut SendChannel>,
        refusal: Out<'_, Refusal>,
    ) {
        let request = need(request, "request")?.read()?;
        let terms = terms.map(AskedTerms::from).unwrap_or_default();
        let channel = need(channel, "channel")?;
        let node = Node::connect(&control_name(control)?)?;
        let request = OpenRequest { terms, ..request };
        let made = node.open(&request).map_err(|error| opened(error, refusal))?;
        hand_over(Some(channel), made, "channel")
    }

    /// Facts of its channel that a receiver knows.
    fn rota_receiver_about(receiver: Option<&Receiver>, about: Out<'_, About>) {
        let channel = need(receiver, "receiver")?.channel();
        need(about, "about")?.write(About::of(channel.id(), channel.contract(), channel.peer()));
        Ok(())
    }

    /// Waits for a channel about which the program is asked.
    fn rota_asked(listener: Option<&mut Listener>, timeout_ns: u64, about: Out<'_, About>) {
        let about = need(about, "about")?;
        let asked = need(listener, "listener")?.asked(Span::from_nanos(timeout_ns))?;
        about.write(About::of(asked.channel, &asked.contract, &asked.peer));
        Ok(())
    }

    /// Takes such a channel, or denies it.
    fn rota_answer(listener: Option<&mut Listener>, channel: u64, accept: c_int) {
        Ok(need(listener, "listener")?.answer(ChannelId(channel), accept != 0)?)
    }

    /// The status of a channel that this station sends on, at each node of its way.
    fn rota_channel_status(
        control: *const c_char,
        channel: u64,
        hops: *mut Hop,
        room: usize,
        count: Out<'_, usize>,
    ) {
        let hops = values_mut(hops, room, "hops")?;
        let shown = Node::connect(&control_name(control)?)?.channel(ChannelId(channel))?;
        let detail = match shown {
            Shown::Channel(detail) => detail,
            Shown::Ended(end) => {
                let sentence = format!("{} has ended{}", end.called, end.how);
                return Err(Fault::new(Status::Broken, sentence));
            }
        };
        for (to, hop) in hops.iter_mut().zip(&detail.hops) {
            *to = Hop {
                bound_ns: hop.bound_ns,
                buffers: hop.buffers,
                sent: hop.sent,
                dropped: hop.dropped,
                port: c_int::from(hop.port),
                node: copy_text(&hop.node),
                medium: copy_text(&hop.medium),
            };
        }
        tell(count, detail.hops.len());
        Ok(())
    }

    /// Begins a stream on a channel, which it takes over, also when it fails.
    fn rota_stream_begin(
        channel: Option<Box<SendChannel>>,
        ahead: u16,
        timeout_ns: u64,
        stream: Out<'_, *mut StreamSource>,
    ) {
        let channel = need(channel, "channel")?;
        let stream = need(stream, "stream")?;
        let begun = StreamSource::begin(*channel, ahead, Span::from_nanos(timeout_ns));
        let begun = begun.map_err(|error| Fault::new(Status::Broken, error))?;
        hand_over(Some(stream), begun, "stream")
    }

    /// Waits until the next unit may be put, and tells its number.
    fn rota_stream_wait(stream: Option<&mut StreamSource>, number: Out<'_, u64>) {
        let next = need(stream, "stream")?.wait()?;
        tell(number, next);
        Ok(())
    }

    /// Puts the next unit into the shared ring.
    fn rota_stream_put(stream: Option<&mut StreamSource>, unit: Octets, count: usize, number: Out<'_, u64>) {
        let put = need(stream, "stream")?.put(octets(unit, count, "unit")?)?;
        tell(number, put);
        Ok(())
    }

    /// Ends a stream. The handle is gone in any case.
    fn rota_stream_finish(stream: Option<Box<StreamSource>>, drain_ns: u64, tally: Out<'_, CTally>) {
        let report = need(stream, "stream")?.finish(Span::from_nanos(drain_ns));
        let report = report.map_err(not_closed)?;
        tell(tally, report.tally.into());
        if report.drained { Ok(()) } else { Err(Fault::new(Status::TimedOut, "units were still waiting")) }
    }

    /// Begins to play a stream of a channel, which it takes over.
    fn rota_player_begin(receiver: Option<Box<Receiver>>, ahead: u16, player: Out<'_, *mut Player>) {
        let receiver = need(receiver, "receiver")?;
        let stream = StreamSink::begin(receiver.into_channel(), ahead);
        hand_over(player, Player { stream, unit: Vec::new() }, "player")
    }

    /// Waits for the play-out point of the next unit.
    fn rota_player_next(
        player: Option<&mut Player>,
        buffer: *mut u8,
        size: usize,
        unit: Out<'_, CPlayed>,
        timeout_ns: u64,
    ) {
        let Player { stream, unit: octets } = need(player, "player")?;
        let into = octets_mut(buffer, size, "buffer")?;
        match stream.next(octets, Span::from_nanos(timeout_ns))? {
            Played::Unit(came) => {
                let is_cut = copy_octets(octets, into);
                tell(unit, played(&came, octets.len(), is_cut));
                Ok(())
            }
            Played::End(end) => Err(ended(end)),
        }
    }

    /// The play-out counts so far.
    fn rota_player_tally(player: Option<&Player>, tally: Out<'_, CStreamTally>) {
        need(tally, "tally")?.write(need(player, "player")?.stream.tally().into());
        Ok(())
    }

    /// Plays no more.
    fn rota_player_close(player: Option<Box<Player>>) {
        need(player, "player").map(drop)
    }
}

/// Keeps a sentence for `rota_error`.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_fail(status: c_int, sentence: *const c_char) -> c_int {
    // Of any status only the sentence is kept: the caller returns its own.
    crate::face::guard(|| Err(Fault::new(Status::Failed, text(sentence, "sentence")?.unwrap_or_default())));
    status
}

/// Units of work-ahead for which a stream has room, 0 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_stream_ahead(stream: Option<&StreamSource>) -> u16 {
    stream.map_or(0, StreamSource::ahead)
}

/// The id of a channel, 0 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_channel_id(channel: Option<&SendChannel>) -> u64 {
    channel.map_or(0, |channel| channel.id().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_0_are_not_stated() {
        let terms =
            Terms { average_ns: 0, interval_ns: 0, delay_ns: 7, jitter_ns: 0, late_ppb: 0, loss_ppb: 0 };
        let delay = Some(Span::from_nanos(7));
        assert_eq!(AskedTerms::from(&terms), AskedTerms { delay, ..AskedTerms::default() });
    }
}
