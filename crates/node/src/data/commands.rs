//! The commands of the control thread to the machines.

use super::rings::Sink;
use super::{Data, Stopped, way};
use crate::commands::{AskError, Command, Note, Opening, Peer, Remains};
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_proto::Medium;
use rota_proto::{ChannelId, Destination, Listener, Member, Node, OpenError, OpenRequest, PortId};
use rota_units::Instant;
use rota_wire::MacAddr;

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
            Command::AttachSink { channel, memory } => {
                // One that has ended meanwhile is not heard of again: nobody would take its memory away.
                if self.node.accept(at, channel) {
                    self.rings.sinks.push(Sink::new(channel, memory));
                } else {
                    self.control.say(Note::Remains(Remains::Sink(memory)));
                }
            }
            Command::Listen { ask, mut listener } => {
                let result = listen(&mut self.node, &mut listener);
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
            Command::Resize { ask, channel, unit_octets_max } => {
                let result = self.node.resize(at, channel, unit_octets_max);
                self.control.say(Note::Resizing { ask, result });
            }
            Command::AttachSocket { ask, socket, memory } => self.attach_socket(ask, socket, *memory),
            Command::DetachSocket { socket } => {
                self.node.llc_close(at, socket);
                if let Some(remains) = self.rings.sockets.detach(socket, &self.waits.all) {
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
                self.node.keep_awake(at, until);
            }
            Command::Snapshot { ask } => {
                let snapshot = Box::new(self.snapshot());
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
) -> Result<(ChannelId, Peer), AskError> {
    if let Some([one, other]) = node.ports().find_map(|port| doubled(port.medium(), to)) {
        return Err(AskError::Wrong(OpenError::DoubleName(one, other)));
    }
    let link = node.medium();
    if link.name() == to {
        return Err(AskError::Wrong(OpenError::OwnStation(link.mac())));
    }
    let (port, peer) = stations(node, to).map_err(|known| AskError::Unknown { known })?;
    let (peer, link) = (peer.mac, way::medium(node, port));
    let others = node.ports().filter(|other| other.id() != port);
    let mut others = others.filter_map(|other| Some((other.id(), living(other.medium(), to)?.mac)));
    let other = others.next();
    drop(others);
    if let Some((other, mac)) = other.filter(|_| living(link, to).is_some()) {
        return Err(AskError::Wrong(match mac == peer {
            true => OpenError::TwoPorts { to: mac, one: port, other },
            false => OpenError::DoubleName(peer, mac),
        }));
    }
    let (peer, to) = (Peer::at(peer, link), Destination::Station(peer));
    let Opening { unit_octets_max, room_octets, period, periodic, before, probe } = *request;
    let request = OpenRequest { to, service, unit_octets_max, room_octets, period, periodic };
    let opened = match probe {
        true => node.probe(at, Some(port), &request),
        false => node.go_on(at, Some(port), &request, before),
    };
    let channel = opened.map_err(AskError::Wrong)?;
    Ok((channel, peer))
}

/// Hears channels of that service, from all stations or from one.
pub(super) fn listen(node: &mut Node, listener: &mut Listener) -> Result<(), Vec<String>> {
    if let Some(from) = &mut listener.from {
        let (_, station) = stations(node, from)?;
        // A station that was named by its number is meant still when another one has that number.
        if station.announce.name() != from {
            *from = station.mac.to_string();
        }
    }
    node.listen(listener.clone());
    Ok(())
}

/// The other station that somebody means by a name, number or address; else the names that there are.
fn stations<'a>(node: &'a Node, called: &str) -> Result<(PortId, &'a Member), Vec<String>> {
    let found = node.ports().filter_map(|port| {
        let link = port.medium();
        let member = meant(link.members(), called, |station| link.is_dead(station))?;
        Some((link.is_dead(member.station), port.id(), member))
    });
    // Rather one that lives.
    let first = found.min_by_key(|(is_dead, port, _)| (*is_dead, *port));
    first.map(|(_, port, member)| (port, member)).ok_or_else(|| {
        let members = node.ports().flat_map(|port| port.medium().members());
        members.map(|member| member.announce.name().to_owned()).collect()
    })
}

/// The station that is meant on one segment, if it lives.
fn living<'a>(link: &'a Medium, called: &str) -> Option<&'a Member> {
    let member = meant(link.members(), called, |station| link.is_dead(station))?;
    (!link.is_dead(member.station)).then_some(member)
}

/// Two stations that live and have that name, this one among them.
fn doubled(link: &Medium, name: &str) -> Option<[MacAddr; 2]> {
    let lives = |member: &&Member| !link.is_dead(member.station) && member.announce.name() == name;
    let others = link.members().iter().filter(lives).map(|member| member.mac);
    let mut all = (link.name() == name).then(|| link.mac()).into_iter().chain(others);
    Some([all.next()?, all.next()?])
}

/// The member that somebody means: in a ring the dead stay members, and a machine may have come back under
/// another address while its old self is one of them.
pub(super) fn meant<'a>(
    members: &'a [Member],
    called: &str,
    is_dead: impl Fn(u16) -> bool,
) -> Option<&'a Member> {
    let named = members.iter().filter(|member| member.is_called(called));
    named.min_by_key(|member| is_dead(member.station))
}
