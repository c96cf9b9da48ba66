//! The commands of the control thread to the machines.

use super::rings::Sink;
use super::{Data, Stopped};
use crate::commands::{Command, Note, Opening, Peer, Remains, SinkMemory};
use crate::gate::Egress;
use rota_contract::{AskedTerms, NodeId};
use rota_driver::device::FrameDevice;
use rota_proto::{
    Beyond, ChannelId, Destination, Found, Listener, Node, NotFound, OpenRequest, RequestError,
};
use rota_shm::control::InvitationInfo;
use rota_units::Instant;

/// The control thread may have been asked for much at once.
pub(super) const COMMANDS_A_TURN: usize = 16;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    pub(super) fn commands(&mut self, at: Instant) -> Result<(), Stopped> {
        for _ in 0..COMMANDS_A_TURN {
            let Some(command) = self.control.heard() else {
                self.work.has_commands = false;
                return Ok(());
            };
            self.command(at, command)?;
            self.drain()?;
        }
        // The wait is edge-triggered: it does not report the remaining commands again.
        self.work.has_commands = true;
        Ok(())
    }

    fn attach_sink(&mut self, at: Instant, channel: ChannelId, memory: SinkMemory) {
        if memory.is_apart {
            self.node.take_apart(channel);
        }
        // One that has ended meanwhile is not heard of again: nobody would take its memory away.
        if self.node.accept(at, channel) {
            self.rings.sinks.push(Sink::new(channel, memory));
        } else {
            self.control.say(Note::Remains(Remains::Sink(memory)));
        }
    }

    fn command(&mut self, at: Instant, command: Command) -> Result<(), Stopped> {
        match command {
            Command::Open { ask, to, service, request } => {
                let result = open(&mut self.node, at, &to, service, &request);
                self.control.say(Note::Asked { ask, result });
            }
            Command::AttachSource { channel, memory } => self.attach(at, channel, memory),
            Command::Decline { channel, short } => self.node.decline(at, channel, short),
            Command::AttachSink { channel, buffers, memory } => {
                self.node.state_memory(channel, buffers);
                self.attach_sink(at, channel, memory);
            }
            Command::Bell { channel, sleeper } => self.rings.hang_bell(channel, sleeper),
            Command::Deny { channel } => self.node.deny(at, channel),
            Command::Listen { ask, service, from, invites } => {
                let result = listen(&mut self.node, (at, ask), service, (from.as_deref(), invites));
                self.control.say(Note::Listening { ask, result });
            }
            Command::Invitee { ask, service, uid } => {
                let result = self.node.add_invitee(ask, service, uid).map_err(NotFound::from);
                self.control.say(Note::Listening { ask, result });
            }
            Command::RemoveInvitee { invitee } => self.node.remove_invitee(at, invitee),
            Command::ListenAgain { listener } => self.node.listen_again(listener),
            Command::FramesCame { channel } => self.node.frames_came(channel),
            Command::Unlisten { listener } => self.node.unlisten(listener),
            Command::Close { channel } => {
                self.rings.state_units(at, channel, &mut self.node, &mut self.told.tracer);
                self.node.close(at, channel);
            }
            Command::Revoke { channel } => {
                self.rings.state_units(at, channel, &mut self.node, &mut self.told.tracer);
                self.node.revoke(at, channel);
            }
            Command::Abort { channel } => self.abort(at, channel),
            Command::Change { ask, channel, change } => {
                let result = self.node.change(at, channel, &change);
                self.control.say(Note::Resizing { ask, result });
            }
            Command::Join { ask, channel, to, leaves } => self.join(at, (ask, leaves), channel, &to),
            Command::AttachSocket { ask, socket, memory } => self.attach_socket(ask, socket, *memory),
            Command::DetachSocket { socket } => {
                self.node.llc_close(at, socket);
                if let Some(remains) = self.rings.sockets.detach(socket, |fd| self.waits.remove(fd)) {
                    self.control.say(Note::Remains(remains));
                }
            }
            Command::CancelSocket { ask, socket } => {
                let control = &self.control;
                self.rings.sockets.cancel(at, socket, &mut self.node, |note| control.say(note));
                self.control.say(Note::Done { ask });
            }
            Command::Circuit(command) => self.circuit_command(at, command),
            Command::Circulate { until } => {
                self.measures.measure_hops(until);
                self.ways.iter_mut().for_each(|way| way.wire.counts.round = Default::default());
                self.node.keep_awake(at, until);
            }
            Command::Snapshot { ask, shown } => self.tell_snapshot(ask, shown),
            Command::Stop => {
                self.node.leave(at);
                self.work.leave(at, None);
            }
        }
        Ok(())
    }

    fn tell_snapshot(&mut self, ask: u64, shown: Vec<ChannelId>) {
        let mut snapshot = Box::new(self.snapshot());
        let detail = |channel: ChannelId| Some((channel, self.node.detail(channel)?));
        snapshot.details = shown.into_iter().filter_map(detail).collect();
        self.control.say(Note::Snapshot { ask, snapshot });
    }

    /// Asks for another receiver of a channel, or takes one out.
    fn join(&mut self, at: Instant, (ask, leaves): (u64, bool), channel: ChannelId, to: &str) {
        let result = receiver(&self.node, to).and_then(|to| {
            match leaves {
                true => self.node.leave_channel(at, channel, to)?,
                false => self.node.join(at, channel, to)?,
            }
            Ok(to)
        });
        self.control.say(Note::Joining { ask, result });
    }
}

/// Asks for a channel to the station of that name, number or address.
pub(super) fn open(
    node: &mut Node,
    at: Instant,
    to: &str,
    service: u16,
    request: &Opening,
) -> Result<(ChannelId, Peer), NotFound> {
    let Opening { traffic, terms, before, probe, answers, .. } = *request;
    if let Some(InvitationInfo { receiver, number }) = answers {
        return open_across(node, at, (receiver, number), to, service, request);
    }
    if to.contains(',') {
        return open_to_all(node, at, to, service, request);
    }
    let found = match node.find(to) {
        Err(NotFound::Unknown { known }) => return open_beyond(node, at, to, service, request, known),
        found => found?,
    };
    let Found { node: peer, way } = found;
    let across = [
        ("partition", terms.partition.is_some()),
        ("group", terms.group.is_some()),
        ("start", terms.start.is_some()),
        ("end", terms.end.is_some()),
        ("gateway of its path", terms.via.is_some_and(|via| via.names().next().is_some())),
    ];
    if let Some((what, _)) = across.into_iter().find(|(_, is)| *is) {
        return Err(RequestError::AcrossOnly(what).into());
    }
    if terms.backup {
        return Err(RequestError::OnePath.into());
    }
    let to = Destination::Node(peer);
    let request = OpenRequest { to, service, traffic };
    let channel = match probe {
        true => node.probe(at, Some(way), &request),
        false => node.go_on(at, Some(way), &request, before),
    }?;
    node.keep_within(channel, &terms);
    Ok((channel, Peer::of(channel, node).unwrap_or_default()))
}

/// Asks for a channel to a node beyond the segments of this one. `near` are the names that are on them.
fn open_beyond(
    node: &mut Node,
    at: Instant,
    called: &str,
    service: u16,
    request: &Opening,
    near: Vec<String>,
) -> Result<(ChannelId, Peer), NotFound> {
    let beyond = node.called_beyond(called);
    let [peer] = beyond[..] else {
        // Of two nodes of one name none is meant.
        return Err(unknown(node, called, near));
    };
    open_across(node, at, (peer, ChannelId::NONE), called, service, request)
}

/// The same for a node that is known, and perhaps in answer to its invitation.
fn open_across(
    node: &mut Node,
    at: Instant,
    (peer, invitation): (NodeId, ChannelId),
    called: &str,
    service: u16,
    request: &Opening,
) -> Result<(ChannelId, Peer), NotFound> {
    let asked = asked_beyond(request, peer, service)?;
    let channel = node.open_beyond(at, &asked, beyond_of(request, invitation))?;
    Ok((channel, Peer { node_id: peer, name: called.to_owned(), ..Peer::default() }))
}

/// The request as a node beyond gets it, which cannot be a probe.
fn asked_beyond(request: &Opening, to: NodeId, service: u16) -> Result<OpenRequest, NotFound> {
    if request.probe {
        return Err(RequestError::ProbeBeyond.into());
    }
    Ok(OpenRequest { to: Destination::Node(to), service, traffic: request.traffic })
}

fn beyond_of(request: &Opening, invitation: ChannelId) -> Beyond {
    let AskedTerms {
        average,
        interval,
        delay,
        jitter,
        reroute,
        backup,
        allow_withdrawn,
        partition,
        group,
        start,
        end,
        chances,
        via,
    } = request.terms;
    Beyond {
        uid: request.uid,
        average,
        interval,
        delay,
        reroute,
        jitter,
        allow_withdrawn,
        partition,
        group,
        start,
        end,
        invitation,
        has_second: backup,
        chances,
        via,
    }
}

/// Asks for one channel to several nodes, wherever they are.
fn open_to_all(
    node: &mut Node,
    at: Instant,
    called: &str,
    service: u16,
    request: &Opening,
) -> Result<(ChannelId, Peer), NotFound> {
    let asked = asked_beyond(request, NodeId::UNKNOWN, service)?;
    let to: Result<Vec<NodeId>, NotFound> =
        called.split(',').map(|name| receiver(node, name.trim())).collect();
    let to = to?;
    let first = to.first().copied().unwrap_or_default();
    let asked = OpenRequest { to: Destination::Node(first), ..asked };
    let channel = node.open_to_all(at, &asked, &to, beyond_of(request, ChannelId::NONE))?;
    Ok((channel, Peer { name: called.to_owned(), ..Peer::default() }))
}

/// The node that is called so, on a segment of this one or beyond.
fn receiver(node: &Node, called: &str) -> Result<NodeId, NotFound> {
    let known = match node.find(called) {
        Ok(Found { node, .. }) if node.is_known() => return Ok(node),
        Err(NotFound::Unknown { known }) => known,
        Ok(_) => Vec::new(),
        Err(wrong) => return Err(wrong),
    };
    match node.called_beyond(called)[..] {
        [one] => Ok(one),
        _ => Err(nowhere(called, all_known(node, &known))),
    }
}

/// Nobody, or more than one, is called so. `near` are the names on the segments of this node.
fn unknown(node: &Node, called: &str, near: Vec<String>) -> NotFound {
    let known = all_known(node, &near);
    let is_near = |name: &String| near.contains(name);
    if known.iter().all(is_near) { NotFound::Unknown { known } } else { nowhere(called, known) }
}

fn nowhere(called: &str, known: Vec<String>) -> NotFound {
    NotFound::Nowhere { called: called.to_owned(), known }
}

/// The names on the segments of this node, and those beyond.
fn all_known(node: &Node, near: &[String]) -> Vec<String> {
    let far = node.nodes_beyond().into_iter().map(|(_, name, _)| name).filter(|name| !name.is_empty());
    let mut known: Vec<String> = near.iter().cloned().chain(far).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// Hears channels of that service, from all stations or from one, which may be asked for it.
pub(super) fn listen(
    node: &mut Node,
    (at, id): (Instant, u64),
    service: u16,
    (from, invites): (Option<&str>, Option<ChannelId>),
) -> Result<(), NotFound> {
    if let (Some(from), Some(pair)) = (from, invites) {
        return node.invite(at, (id, service), from, pair);
    }
    let from = from.map(|from| node.find_sender(from)).transpose()?;
    node.listen(Listener { id, service, from });
    Ok(())
}
