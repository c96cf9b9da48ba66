//! Channels that come: the program is asked where it wants to be, gets its memory, and is told when the
//! channel is open (`TENET-4.1-5`).

use super::{Control, memory};
use crate::commands::{Command, Peer, SinkMemory};
use crate::log::{Level, say};
use crate::session::{Coming, Listening, Offer, Owned, Session, Waiting};
use rota_contract::{ChannelId, Granted};
use rota_proto::Shortage;
use rota_shm::ChannelState;
use rota_shm::control::{RefusalInfo, Reply, UNASKED};
use rota_units::{Instant, Span};
use rota_wire::RcapTest;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How long a program may take for its answer. RCAP allows a little less, and says then what happened.
const ANSWER: Span = Span::from_millis(1_100);

impl Control<'_> {
    pub(super) fn on_incoming(&mut self, listener: u64, coming: Coming) {
        let place = self.sessions.iter().enumerate().find_map(|(at, session)| {
            session.listens.iter().position(|known| known.id == listener).map(|place| (at, place))
        });
        let Some((at, place)) = place else {
            // Its program has gone: the machine is not to wait for its listener.
            self.data.say(Command::Abort { channel: coming.channel });
            self.data.say(Command::Unlisten { listener });
            return;
        };
        let session = &mut self.sessions[at];
        let listened = session.listens.swap_remove(place);
        if !listened.asks {
            return self.take(at, listened, coming);
        }
        let Peer { node_id: from_node_id, node: from_node, .. } = coming.peer;
        let (from_mac, from_name) = (coming.peer.hop.to_string(), coming.peer.name.clone());
        let (channel, contract) = (coming.shared, coming.granted);
        let reply = Reply::Asked { channel, from_node_id, from_mac, from_name, from_node, contract };
        session.to(UNASKED).reply(&reply, &[]);
        let until = rota_driver::clock::now() + ANSWER;
        session.waiting.push(Waiting { listened, coming, until });
    }

    /// The program answers, finally.
    pub(super) fn on_answer(&mut self, at: usize, channel: ChannelId, accepts: bool) {
        let session = &mut self.sessions[at];
        let Some(place) = session.waiting.iter().position(|waiting| waiting.coming.shared == channel) else {
            return session.not_there(format!("channel {channel} waits for no answer any more"));
        };
        session.answer(&Reply::Done);
        let Waiting { listened, coming, .. } = session.waiting.swap_remove(place);
        if accepts { self.take(at, listened, coming) } else { self.deny(listened, coming.channel) }
    }

    /// The channel was the one that its listener takes.
    fn deny(&self, listened: Listening, channel: ChannelId) {
        self.data.say(Command::Deny { channel });
        self.data.say(Command::Unlisten { listener: listened.id });
    }

    /// The next channel finds the program listening.
    fn listen_again(&mut self, at: usize, listened: Listening) {
        self.data.say(Command::ListenAgain { listener: listened.id });
        self.sessions[at].listens.push(listened);
    }

    /// The sender has given a channel up about which a program was asked. It hears so when it answers.
    pub(super) fn withdraw(&mut self, channel: ChannelId) {
        if let Some((_, waiting)) = self.waiting(|waiting| waiting.coming.channel == channel) {
            self.data.say(Command::Unlisten { listener: waiting.listened.id });
        }
    }

    /// Refuses what was not answered in time; when the next one is due.
    pub(super) fn rule_waiting(&mut self, now: Instant) -> Instant {
        while let Some((_, waiting)) = self.waiting(|waiting| waiting.until <= now) {
            self.deny(waiting.listened, waiting.coming.channel);
        }
        let all = self.sessions.iter().flat_map(|session| &session.waiting);
        all.map(|waiting| waiting.until).min().unwrap_or(Instant::FAR)
    }

    /// Takes one of the channels that wait.
    fn waiting(&mut self, is_it: impl Fn(&Waiting) -> bool) -> Option<(usize, Waiting)> {
        let of = |session: &mut Session| {
            let place = session.waiting.iter().position(&is_it)?;
            Some(session.waiting.swap_remove(place))
        };
        self.sessions.iter_mut().enumerate().find_map(|(at, session)| Some((at, of(session)?)))
    }

    /// Makes the memory of a channel. The program is told once the channel is reserved: one that admission
    /// refuses is none of its business.
    fn take(&mut self, at: usize, listened: Listening, coming: Coming) {
        let Coming { channel, shared, label, peer, granted, before } = coming;
        let Listening { service, buffers, .. } = listened;
        // It may grow to the buffers that the sender's first word tells.
        let buffers = buffers.max(4).max(granted.contract.buffers);
        let unit_octets_max = granted.contract.unit_octets_max;
        let sink = self.make_sink(at, buffers, unit_octets_max);
        let made = sink.and_then(|(sink, charge)| {
            let offer =
                sink.descriptors().iter().map(BorrowedFd::try_clone_to_owned).collect::<io::Result<_>>();
            offer.map(|offer| (sink, offer, charge)).map_err(|_| Shortage::default())
        });
        let (sink, offer, charge) = match made {
            Ok(made) => made,
            Err(short) => {
                self.data.say(Command::Decline { channel, short });
                return match listened.invites {
                    true => self.not_taken(at, &listened, unit_octets_max, short),
                    false => self.listen_again(at, listened),
                };
            }
        };
        let mut offer: Vec<OwnedFd> = offer;
        let (ring, board) = sink.into_parts();
        // Before the sender hears that it may send: no frame comes while there is no filter.
        let queue = listened.apart.then(|| self.queue_of(at, &peer, &mut offer));
        let is_apart = matches!(queue, Some(Ok(_)));
        let owned = Owned {
            channel,
            shared,
            label,
            service,
            listener: Some(listened),
            peer,
            granted,
            board: Some(board.clone()),
            offer: Offer { files: offer, queue },
            buffers,
            room_octets: granted.contract.unit_octets_max,
            before,
            number: UNASKED,
            ..Owned::default()
        };
        self.sessions[at].channels.push(owned);
        board.set_state(ChannelState::Open, None);
        let sleeper = self.data.waker().sleeper(board.clone(), None);
        let memory = SinkMemory { ring, board, sleeper, is_apart, _charge: Some(charge) };
        self.data.say(Command::AttachSink { channel, buffers, memory });
    }

    /// The channel that a program has asked its source for came, and finds no memory here: it comes no second
    /// time, so that the program is told.
    fn not_taken(&self, at: usize, listened: &Listening, unit: u32, short: Shortage) {
        self.data.say(Command::Unlisten { listener: listened.id });
        let refusal = memory::of_peer(&self.facts.name, unit, short);
        say(Level::Warn, "refused", &format!("refused: a channel that was asked for: {}", refusal.sentence));
        self.sessions[at].to(UNASKED).reply(&Reply::NotInvited { refusal, is_absent: false }, &[]);
    }

    pub(super) fn on_incoming_opened(&mut self, channel: ChannelId, peer: Option<Peer>, granted: Granted) {
        let Some((at, place)) = self.owner(channel) else { return };
        let session = &mut self.sessions[at];
        let owned = &mut session.channels[place];
        owned.granted = granted;
        owned.told = true;
        if let Some(peer) = peer {
            // More may be known of it than when it asked.
            owned.peer = peer;
        }
        let queue = owned.offer.queue.as_ref();
        let reply = Reply::Accepted {
            channel: owned.shared,
            from_node_id: owned.peer.node_id,
            from_mac: owned.peer.hop.to_string(),
            from_name: owned.peer.name.clone(),
            from_node: owned.peer.node,
            before: owned.before,
            contract: granted,
            queue: queue.and_then(|queue| Some(queue.as_ref().ok()?.1.clone())),
            no_queue: queue.and_then(|queue| queue.as_ref().err().cloned()),
        };
        let offer = std::mem::take(&mut owned.offer.files);
        let files: Vec<BorrowedFd<'_>> = offer.iter().map(AsFd::as_fd).collect();
        session.to(UNASKED).reply(&reply, &files);
    }
}

/// The receiving program does not want the channel.
pub(super) fn unwanted(peer: &str) -> RefusalInfo {
    let test = RcapTest::ReceiverRefused;
    let sentence = format!("{peer} denies: {} ({})", test.words(), test.name());
    RefusalInfo { test: test.name().to_owned(), node: peer.to_owned(), sentence, ..RefusalInfo::default() }
}
