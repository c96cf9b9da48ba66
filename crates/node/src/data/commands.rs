//! The commands of the control thread to the machines.

use super::rings::Sink;
use super::{Data, Stopped};
use crate::commands::{Command, Note, Opening, Peer, Remains};
use crate::gate::Egress;
use rota_contract::AskedTerms;
use rota_driver::device::FrameDevice;
use rota_proto::{
    Beyond, ChannelId, Destination, Found, Listener, Node, NotFound, OpenRequest, RequestError,
};
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
                // One that has ended meanwhile is not heard of again: nobody would take its memory away.
                if self.node.accept(at, channel) {
                    self.rings.sinks.push(Sink::new(channel, memory));
                } else {
                    self.control.say(Note::Remains(Remains::Sink(memory)));
                }
            }
            Command::Deny { channel } => self.node.deny(at, channel),
            Command::Listen { ask, service, from } => {
                let result = listen(&mut self.node, ask, service, from.as_deref());
                self.control.say(Note::Listening { ask, result });
            }
            Command::ListenAgain { listener } => self.node.listen_again(listener),
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
            Command::Circulate { until } => {
                self.measures.measure_hops(until);
                self.ways.iter_mut().for_each(|way| way.wire.counts.round = Default::default());
                self.node.keep_awake(at, until);
            }
            Command::Snapshot { ask, shown } => {
                let mut snapshot = Box::new(self.snapshot());
                let detail = |channel: ChannelId| Some((channel, self.node.detail(channel)?));
                snapshot.details = shown.into_iter().filter_map(detail).collect();
                self.control.say(Note::Snapshot { ask, snapshot });
            }
            Command::Stop => {
                self.node.leave(at);
                self.work.leave(at, None);
            }
        }
        Ok(())
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
    let Opening { traffic, terms, before, probe, .. } = *request;
    let found = match node.find(to) {
        Err(NotFound::Unknown { known }) => return open_beyond(node, at, to, service, request, known),
        found => found?,
    };
    let Found { node: peer, way } = found;
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
    mut near: Vec<String>,
) -> Result<(ChannelId, Peer), NotFound> {
    let beyond = node.called_beyond(called);
    let [peer] = beyond[..] else {
        // Of two nodes of one name none is meant.
        let names = node.nodes_beyond().into_iter().map(|(_, name, _)| name);
        near.extend(names.filter(|name| !name.is_empty()));
        near.sort_unstable();
        near.dedup();
        return Err(NotFound::Unknown { known: near });
    };
    if request.probe {
        return Err(RequestError::ProbeBeyond.into());
    }
    let asked = OpenRequest { to: Destination::Node(peer), service, traffic: request.traffic };
    let AskedTerms { average, interval, delay, jitter, allow_withdrawn } = request.terms;
    let (uid, reroute) = (request.uid, None);
    let beyond = Beyond { uid, average, interval, delay, reroute, jitter, allow_withdrawn };
    let channel = node.open_beyond(at, &asked, beyond)?;
    Ok((channel, Peer { node_id: peer, name: called.to_owned(), ..Peer::default() }))
}

/// Hears channels of that service, from all stations or from one.
pub(super) fn listen(node: &mut Node, id: u64, service: u16, from: Option<&str>) -> Result<(), NotFound> {
    let from = from.map(|from| node.find_sender(from)).transpose()?;
    node.listen(Listener { id, service, from });
    Ok(())
}
