//! The nodes that a channel can reach, and the ways to them: the one place where names, numbers and addresses
//! become node ids, and node ids become next hops. The members of the ports are all that is known here.
//!
//! In a ring the dead stay members, and a machine may have come back under another address while its old self
//! is one of them. So a station that lives goes before one that does not, and only live ones are doubles.

use super::Node;
use crate::channels::{RequestError, Sender};
use crate::io::{Destination, PortId, Way};
use crate::port::Medium;
use rota_contract::NodeId;
use rota_medium::Member;
use rota_wire::MacAddr;

/// A station that somebody has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its node; [`NodeId::UNKNOWN`] where its announcement has not been heard.
    pub node: NodeId,
    /// The way to it, which is one hop.
    pub way: Way,
}

/// Why a name, number or address means no station.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// No station is called so.
    #[error("no station is called so; there are: {}", .known.join(", "))]
    Unknown {
        /// The names that there are.
        known: Vec<String>,
    },
    /// No node is called so, here or beyond.
    #[error("no node '{called}' is known here; there are: {}", .known.join(", "))]
    Nowhere {
        /// The name that means none, of several that were named.
        called: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// It means more than one, or none that a channel can reach.
    #[error(transparent)]
    Wrong(#[from] RequestError),
}

/// The line of a channel, and the next hop on its segment. There is none where no member is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) line: usize,
    pub(super) hop: Option<MacAddr>,
}

impl Node {
    /// The node of the station of that name, number or address, and the way to it.
    ///
    /// # Errors
    /// [`NotFound`].
    pub fn find(&self, called: &str) -> Result<Found, NotFound> {
        if let Some([one, other]) = self.ports().find_map(|port| doubled(port.medium(), called)) {
            return Err(RequestError::DoubleName(one, other).into());
        }
        let own = self.medium();
        if own.name() == called {
            return Err(RequestError::OwnStation(own.mac()).into());
        }
        let found = self.found(called)?;
        if !self.lives(found.way) {
            return Ok(found);
        }
        let mut others = self.all_called(called).filter(|other| other.way.port != found.way.port);
        let Some(other) = others.find(|other| self.lives(other.way)) else { return Ok(found) };
        let (one, other_way) = (found.way, other.way);
        let is_one = one.hop == other_way.hop || found.node.is_known() && found.node == other.node;
        Err(NotFound::Wrong(match is_one {
            true => RequestError::two_ports(found.node, one, other_way),
            false => RequestError::DoubleName(one.hop, other_way.hop),
        }))
    }

    /// The sender that a listener is to wait for. A station that is named by its number or address is meant
    /// still when another one has these.
    ///
    /// # Errors
    /// [`NotFound`].
    pub fn find_sender(&self, called: &str) -> Result<Sender, NotFound> {
        let Found { node, way } = self.found(called)?;
        let member = self.port_at(way.port).and_then(|port| port.medium().member_at(way.hop));
        Ok(match member {
            Some(member) if member.announce.name() == called => Sender::Named(called.to_owned()),
            // Of two nodes of one id only the one that was named is meant.
            _ if self.double(node).is_some() => Sender::Station { mac: way.hop, node: NodeId::UNKNOWN },
            _ => Sender::Station { mac: way.hop, node },
        })
    }

    /// The station that somebody means, on any port; one that lives where there is one.
    fn found(&self, called: &str) -> Result<Found, NotFound> {
        let first = self.all_called(called).min_by_key(|found| (!self.lives(found.way), found.way.port));
        first.ok_or_else(|| {
            let members = self.ports().flat_map(|port| port.medium().members());
            let known = members.map(|member| member.announce.name().to_owned()).collect();
            NotFound::Unknown { known }
        })
    }

    /// The station that is called so on each port. The one at the other end of a tunnel is no station of a
    /// segment: a channel to it is one across segments.
    fn all_called(&self, called: &str) -> impl Iterator<Item = Found> {
        self.ports().filter(|port| !self.is_withdrawn(port.id())).filter_map(move |port| {
            let medium = port.medium();
            let member = meant(medium.members(), called, |station| medium.is_dead(station))?;
            let way = Way { port: port.id(), hop: member.mac };
            Some(Found { node: member.announce.node_id, way })
        })
    }

    fn lives(&self, way: Way) -> bool {
        self.port_at(way.port).is_some_and(|port| {
            let medium = port.medium();
            medium.member_at(way.hop).is_some_and(|member| !medium.is_dead(member.station))
        })
    }

    /// The line and the hop of the way that is given, else of the only one that is known to the destination.
    /// Where none is known the first line says so.
    pub(super) fn route(&self, way: Option<Way>, to: &Destination) -> Result<Route, RequestError> {
        let Destination::Node(node) = *to else { return Ok(Route { line: 0, hop: None }) };
        if let Some(double) = self.double(node) {
            return Err(double);
        }
        let of_segments = |end: &End<'_>| !self.lines[end.line].port.medium().settings().withdrawn;
        let ends: Vec<End<'_>> = self.ends(node).filter(of_segments).collect();
        let live = || ends.iter().filter(|end| end.lives);
        if let Some(Way { port, hop }) = way {
            let line = self.place(port).ok_or(RequestError::NoPort(port))?;
            return Ok(Route { line, hop: Some(hop) });
        }
        if let (Some(one), Some(other)) = (live().next(), live().nth(1)) {
            return Err(RequestError::two_ports(node, self.way_of(one), self.way_of(other)));
        }
        let best = ends.iter().min_by_key(|end| (!end.lives, end.line));
        let (line, hop) = best.map_or((0, None), |end| (end.line, Some(end.member.mac)));
        Ok(Route { line, hop })
    }

    /// True if nothing is guaranteed behind this port.
    pub(super) fn is_withdrawn(&self, port: PortId) -> bool {
        self.port_at(port).is_some_and(|port| port.medium().settings().withdrawn)
    }

    /// The way to a node on a segment of this one, if it lives there. Of several both nodes take the same
    /// one, by the addresses of both ends; a tunnel only where there is no other one.
    pub(super) fn way_to(&self, node: NodeId) -> Option<Way> {
        let live = self.ends(node).filter(|end| end.lives && end.member.station != 0);
        let pair = |end: &End<'_>| {
            let medium = self.lines[end.line].port.medium();
            let (own, other) = (medium.mac(), end.member.mac);
            (medium.settings().withdrawn, own.min(other), own.max(other))
        };
        live.min_by_key(pair).map(|end| self.way_of(&end))
    }

    /// The refusal of a node id that two live hosts have, or this one and another.
    fn double(&self, node: NodeId) -> Option<RequestError> {
        let live = || self.ends(node).filter(|end| end.lives);
        let (first, own) = (live().next()?, self.medium());
        let double = |one: MacAddr, other: MacAddr| RequestError::DoubleNode { node, one, other };
        if node == own.node_id() {
            return Some(double(own.mac(), first.member.mac));
        }
        // One host may have several addresses.
        let other = live().find(|other| other.is_other_host(&first))?;
        Some(double(first.member.mac, other.member.mac))
    }

    fn way_of(&self, end: &End<'_>) -> Way {
        Way { port: self.lines[end.line].port.id(), hop: end.member.mac }
    }

    /// The stations of a node on the segments of this one, whose own ports are none of them.
    fn ends(&self, node: NodeId) -> impl Iterator<Item = End<'_>> {
        let is_own = move |mac| self.ports().any(|port| port.medium().mac() == mac);
        let members = self.lines.iter().enumerate().flat_map(|(line, of)| {
            let medium = of.port.medium();
            let of_line = medium.members().iter();
            of_line.map(move |member| End { line, lives: !medium.is_dead(member.station), member })
        });
        let is_meant = move |member: &Member| node.is_known() && member.announce.node_id == node;
        members.filter(move |end| is_meant(end.member) && !is_own(end.member.mac))
    }
}

/// A station of a node on the segment of a line.
struct End<'a> {
    line: usize,
    lives: bool,
    member: &'a Member,
}

impl End<'_> {
    /// True if the two stations of one node id are not ports of one host: they differ in boot or name. An
    /// announcement with settings in it has no name.
    fn is_other_host(&self, other: &Self) -> bool {
        let (one, two) = (&self.member.announce, &other.member.announce);
        let named = !one.name().is_empty() && !two.name().is_empty();
        one.boot_id != two.boot_id || named && one.name() != two.name()
    }
}

/// Two stations that live and have that name, this one among them.
fn doubled(medium: &Medium, name: &str) -> Option<[MacAddr; 2]> {
    let lives = |member: &&Member| !medium.is_dead(member.station) && member.announce.name() == name;
    let others = medium.members().iter().filter(lives).map(|member| member.mac);
    let mut all = (medium.name() == name).then(|| medium.mac()).into_iter().chain(others);
    Some([all.next()?, all.next()?])
}

/// The member that somebody means by a name, number or address.
fn meant<'a>(members: &'a [Member], called: &str, is_dead: impl Fn(u16) -> bool) -> Option<&'a Member> {
    let named = members.iter().filter(|member| member.is_called(called));
    named.min_by_key(|member| is_dead(member.station))
}

#[cfg(test)]
mod tests;
