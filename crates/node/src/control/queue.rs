//! Receive queues of programs' sockets of UDP: who has which.

use super::Control;
use crate::commands::{Command, Peer};
use crate::limits::Limit;
use crate::queues::{ChannelQueue, NoQueue, OwnedQueue, close_elsewhere};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockaddrIn, getsockname};
use rota_driver::bypass::{Ask, RING_OCTETS, Refused, is_udp};
use rota_shm::control::{QueueInfo, Reply, Request, RequestResult, StatusInfo};
use rota_units::{Instant, Span};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The ring of a channel's queue: at 10,000 full frames a second that of 60 ms.
const CHANNEL_RING_OCTETS: u32 = 1 << 20;

/// How often the queue of a channel is looked at that is not open yet.
const LOOKS: Span = Span::from_millis(10);
/// Why a channel has no queue whose frames the node cannot state.
const NO_FACTS: &str = "only channels that come over a link, to one receiver, have such queues";

/// The socket that came with a request for a queue; an error where a program handed over anything else, which
/// is closed where nobody waits for that.
pub(super) fn socket_of(request: &RequestResult, mut along: Vec<OwnedFd>) -> Result<Option<OwnedFd>, ()> {
    let is_open = matches!(request, Ok(Some((_, Request::UdpOpen { .. }))));
    if along.is_empty() || (is_open && along.len() == 1 && is_udp(&along[0])) {
        return Ok(along.pop());
    }
    close_elsewhere(along);
    Err(())
}

/// Sentences for people. A node inside another program has no queues, which surprises nobody.
fn notes(told: &serde_json::Value, is_own_process: bool) -> Vec<String> {
    let none = told["unavailable"].as_str().filter(|_| is_own_process);
    let none = none.map(|why| format!("receive queues: none, sockets of UDP have the kernel's own: {why}"));
    let interfaces = told["interfaces"].as_array().into_iter().flatten().filter_map(|of| {
        let (name, why) = (of["interface"].as_str()?, of["full_path"].as_str()?);
        Some(format!("{name}: all packets of UDP take the full path: {why}"))
    });
    none.into_iter().chain(interfaces).collect()
}

/// True if a record is in a ring.
fn has_frames(ring: &OwnedFd) -> bool {
    let mut wanted = [PollFd::new(ring.as_fd(), PollFlags::POLLIN)];
    poll(&mut wanted, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Why there is no queue where a ring could outlive it unseen.
fn unwatched(error: &std::io::Error) -> String {
    format!("this host does not tell whether a program has a ring open: {error}")
}

impl Control<'_> {
    pub(super) fn queue_open(
        &mut self,
        at: usize,
        had: usize,
        socket: Option<OwnedFd>,
        asked: (u32, Option<SocketAddrV4>),
    ) {
        // The node's copy of the socket is closed before the answer: a program that is refused, and binds the
        // port again at once, is not to find it taken.
        let opened = self.open_queue(at, had, socket, asked);
        let session = &self.sessions[at];
        match opened {
            Ok((reply, ring)) => {
                session.reply(&reply, &ring.iter().map(AsFd::as_fd).collect::<Vec<_>>());
            }
            Err((sentence, is_wrong_use)) => session.error(sentence, is_wrong_use),
        }
    }

    /// Gives a socket a queue: the answer, and the ring; or the sentence of an error.
    fn open_queue(
        &mut self,
        at: usize,
        had: usize,
        socket: Option<OwnedFd>,
        (octets, peer): (u32, Option<SocketAddrV4>),
    ) -> Result<(Reply, Option<OwnedFd>), (String, bool)> {
        let wrong_use = |sentence: String| (sentence, true);
        let session = &self.sessions[at];
        let socket = socket.ok_or_else(|| wrong_use(Refused::NotUdp.to_string()))?;
        if session.queue.is_some() {
            let sentence = "this connection has a queue already; each needs one of its own";
            return Err(wrong_use(sentence.into()));
        }
        self.facts.quota.one_more_channel(had).map_err(|sentence| (sentence.to_string(), false))?;
        if !RING_OCTETS.contains(&octets) {
            return Err(wrong_use(Refused::Size.to_string()));
        }
        let charge = self.facts.ledger.charge(session.user, octets.into()).map_err(|short| {
            self.data.refusals().count(Limit::Memory);
            (format!("{}; see --memory of 'rota node'", short.sentence("a receive queue")), false)
        })?;
        let address = getsockname::<SockaddrIn>(socket.as_raw_fd()).map(SocketAddrV4::from);
        let process = session.connection.peer().map_or(0, |peer| peer.pid().cast_unsigned());
        let opened = self.facts.queues.open(socket.as_fd(), Ask { octets, peer, process });
        let (slot, ring, full_path) = match opened {
            Ok(opened) => opened,
            Err(NoQueue::Unavailable(sentence)) => return Ok((Reply::UdpUnavailable { sentence }, None)),
            Err(NoQueue::Refused(refused)) => return Err(wrong_use(refused.to_string())),
        };
        let Ok(address) = address else {
            self.facts.queues.close(slot);
            return Err(wrong_use(Refused::NotBound.to_string()));
        };
        match charge.of_ring(&ring) {
            Ok(charge) => {
                self.sessions[at].queue = Some(OwnedQueue { slot, address, _charge: charge });
                Ok((Reply::UdpOpened { full_path }, Some(ring)))
            }
            Err(error) => {
                self.facts.queues.close(slot);
                Ok((Reply::UdpUnavailable { sentence: unwatched(&error) }, None))
            }
        }
    }

    /// Tells a program how many packets its queue had no room for.
    pub(super) fn tell_discarded(&mut self, at: usize) {
        let session = &self.sessions[at];
        let Some(queue) = &session.queue else {
            return session.error("this connection has no receive queue", true);
        };
        match self.facts.queues.discarded(queue.slot) {
            Some(packets) => session.answer(&Reply::UdpDiscarded { packets }),
            None => session.error("the process that fills receive queues is lost", false),
        }
    }

    pub(super) fn queue_close(&mut self, at: usize) {
        if self.sessions[at].queue.is_none() {
            return self.sessions[at].error("this connection has no receive queue", true);
        }
        self.release_queue(at);
        self.sessions[at].answer(&Reply::Done);
    }

    /// Takes the queue of a session away, if it has one.
    pub(super) fn release_queue(&mut self, at: usize) {
        if let Some(queue) = self.sessions[at].queue.take() {
            self.facts.queues.close(queue.slot);
        }
    }

    /// Gives a channel that comes a queue that the kernel fills; its ring joins the files that go to the
    /// program.
    pub(super) fn queue_of(
        &mut self,
        at: usize,
        peer: &Peer,
        offer: &mut Vec<OwnedFd>,
    ) -> Result<(ChannelQueue, QueueInfo), String> {
        let facing = peer.facing.as_deref().ok_or(NO_FACTS)?;
        let charge = self.facts.ledger.charge(self.sessions[at].user, CHANNEL_RING_OCTETS.into());
        let charge = charge.map_err(|short| short.sentence("a receive queue"))?;
        let opened = self.facts.queues.open_channel(facing, CHANNEL_RING_OCTETS);
        let (mut queue, ring) = opened.map_err(|error| match error {
            NoQueue::Unavailable(sentence) => sentence,
            NoQueue::Refused(refused) => refused.to_string(),
        })?;
        queue.charge = Some(charge.of_ring(&ring).map_err(|error| unwatched(&error))?);
        offer.push(ring);
        let info = QueueInfo {
            octets: CHANNEL_RING_OCTETS,
            fragment_octets: facing.fragment_octets,
            one_clock: facing.one_clock,
            key: *facing.facts.channel_key.octets(),
        };
        Ok((queue, info))
    }

    /// Looks whether frames are in the queues of channels of whose opening nobody has told: no frame of them
    /// comes to the machines. When to look again.
    pub(super) fn look_at_queues(&self, now: Instant) -> Instant {
        let channels = self.sessions.iter().flat_map(|session| &session.channels);
        let mut waits = false;
        for owned in channels.filter(|owned| !owned.told && matches!(owned.offer.queue, Some(Ok(_)))) {
            waits = true;
            // The ring is the last of its files.
            if owned.offer.files.last().is_some_and(has_frames) {
                self.data.say(Command::FramesCame { channel: owned.channel });
            }
        }
        if waits { now + LOOKS } else { Instant::FAR }
    }

    /// Tells the status of the queues, and why packets take the full path where they do.
    pub(super) fn tell_queues(&self, info: &mut StatusInfo) {
        let owned = self.sessions.iter().filter_map(|session| Some((session.user, session.queue.as_ref()?)));
        let mut told = self.facts.queues.json(owned);
        let channels = self.sessions.iter().flat_map(|session| &session.channels);
        let channels: Vec<_> = channels
            .filter_map(|owned| match owned.offer.queue.as_ref()? {
                Ok((queue, _)) => self.facts.queues.json_of(owned.shared.0, queue),
                Err(why) => Some(serde_json::json!({ "channel": owned.shared.0, "node": why })),
            })
            .collect();
        told["channels"] = channels.into();
        info.notes.extend(notes(&told, self.facts.queues.is_own_process()));
        info.extra["queues"] = told;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_shm::control::SocketError;

    #[test]
    fn the_status_says_in_words_why_packets_take_the_full_path() {
        let told = serde_json::json!({
            "unavailable": null,
            "interfaces": [
                { "interface": "eth0", "full_path": null },
                { "interface": "eth1", "full_path": "IPsec has policies for what comes in" },
            ],
        });
        let words = notes(&told, true);
        assert_eq!(
            words,
            ["eth1: all packets of UDP take the full path: IPsec has policies for what comes in"]
        );
        let told = serde_json::json!({ "unavailable": "no eBPF", "interfaces": [] });
        assert!(notes(&told, false).is_empty());
        assert!(notes(&told, true)[0].ends_with("have the kernel's own: no eBPF"));
    }

    /// Closing such a descriptor may last for ever, and only a request for a queue brings one along.
    #[test]
    fn what_is_no_socket_of_udp_or_comes_with_another_request_ends_the_session() {
        let open = || Ok(Some((1, Request::UdpOpen { ring_octets: 1 << 20, peer: None })));
        let udp = || OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        let tcp = OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0").expect("a socket"));
        assert!(socket_of(&open(), vec![udp()]).is_ok_and(|socket| socket.is_some()));
        assert!(socket_of(&open(), Vec::new()).is_ok_and(|socket| socket.is_none()));
        assert!(socket_of(&open(), vec![tcp]).is_err());
        assert!(socket_of(&open(), vec![udp(), udp()]).is_err());
        assert!(socket_of(&Ok(Some((1, Request::Status))), vec![udp()]).is_err());
        assert!(socket_of(&Err(SocketError::Gone), vec![udp()]).is_err());
    }
}
