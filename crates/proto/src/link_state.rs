//! Which nodes there are beyond this one's segments, and the links between them (link-state routing).
//!
//! Each node states its neighbours, and each passes on the statements that it hears, so that all know the
//! same graph. A link counts if both of its ends state it: a dead node is on no way, since its neighbours
//! have stopped to state it. Nothing expires. Statements of nodes that no link leads to are forgotten when
//! there is no room for another one, and not before: while a graph forms, the statement of a far node may
//! come first. Two ends that connect exchange all that they know, so that a forgotten node is heard of again.
//!
//! A node that comes back hears its own statement of the boot before, and states a newer one. Of two
//! statements with one number, of which one is of the boot before, all nodes take the same, by their content,
//! so that it comes to that node in any case.
//!
//! A statement goes to a neighbour when its turn comes, as it is then: however often it changes meanwhile, it
//! is sent once.

use rota_contract::NodeId;
use rota_wire::{LINK_STATE_OCTETS_MAX, LinkStatement, Malformed, NEIGHBOURS_MAX};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most nodes that are known: a neighbour that invents nodes takes no more memory.
pub const NODES_MAX: usize = 1_024;

/// A node, as it has stated itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stated {
    /// First, for the order.
    sequence: u64,
    /// With each whether nothing is guaranteed on the way to it.
    neighbours: BTreeMap<NodeId, bool>,
    /// Its name.
    pub name: String,
    /// It forwards packets between its ports.
    pub forwards: bool,
}

/// The graph of the nodes.
#[derive(Clone, Debug)]
pub struct LinkState {
    own: NodeId,
    /// Of all nodes, this one included.
    stated: BTreeMap<NodeId, Stated>,
    /// The neighbours to which statements can be sent.
    connected: BTreeSet<NodeId>,
    /// For each of these neighbours: the nodes whose statement it is to get.
    pending: BTreeSet<(NodeId, NodeId)>,
    refused: u64,
    /// Counts the changes of the graph.
    changes: u64,
}

impl LinkState {
    /// A node without neighbours.
    pub fn new(own: NodeId, name: &str, forwards: bool) -> Self {
        let stated = Stated { name: name.to_owned(), forwards, sequence: 1, neighbours: BTreeMap::new() };
        Self {
            own,
            stated: BTreeMap::from([(own, stated)]),
            connected: BTreeSet::new(),
            pending: BTreeSet::new(),
            refused: 0,
            changes: 0,
        }
    }

    /// A connection to a neighbour stands: it gets all that is known.
    pub fn connected(&mut self, neighbour: NodeId) {
        if neighbour == self.own || !self.connected.insert(neighbour) {
            return;
        }
        let all: Vec<NodeId> = self.stated.keys().copied().collect();
        self.pending.extend(all.into_iter().map(|node| (neighbour, node)));
    }

    /// It is gone.
    pub fn disconnected(&mut self, neighbour: NodeId) {
        self.connected.remove(&neighbour);
        self.pending.retain(|(to, _)| *to != neighbour);
    }

    /// Packets can be sent to these nodes in one hop, and whether nothing is guaranteed on it. The first
    /// [`NEIGHBOURS_MAX`] are stated.
    pub fn adjacent(&mut self, neighbours: impl Iterator<Item = (NodeId, bool)>) {
        let own = self.own;
        let neighbours = neighbours.filter(|(node, _)| node.is_known() && *node != own);
        let neighbours: BTreeMap<NodeId, bool> = neighbours.collect();
        let neighbours: BTreeMap<NodeId, bool> = neighbours.into_iter().take(NEIGHBOURS_MAX).collect();
        let stated = self.own_mut();
        if stated.neighbours != neighbours {
            stated.neighbours = neighbours;
            self.state_anew();
        }
    }

    fn own_mut(&mut self) -> &mut Stated {
        self.stated.get_mut(&self.own).expect("this node is always stated")
    }

    fn state_anew(&mut self) {
        let stated = self.own_mut();
        stated.sequence = stated.sequence.saturating_add(1);
        self.changed(self.own, None);
    }

    /// The statement of a node has changed: all neighbours get it but the one that it came from.
    fn changed(&mut self, node: NodeId, from: Option<NodeId>) {
        self.changes += 1;
        let to = self.connected.iter().copied().filter(|to| Some(*to) != from);
        self.pending.extend(to.map(|to| (to, node)));
    }

    /// A neighbour passes on a statement.
    ///
    /// # Errors
    /// [`Malformed`]: it is none; it is counted.
    pub fn on_message(&mut self, from: NodeId, octets: &[u8]) -> Result<(), Malformed> {
        let heard = LinkStatement::parse(octets).inspect_err(|_| self.refused += 1)?;
        if !self.connected.contains(&from) {
            return Ok(());
        }
        if heard.origin == self.own {
            // The number of the boot before was higher.
            let own = self.own_mut();
            if heard.sequence >= own.sequence && *own != stated(&heard) {
                own.sequence = heard.sequence;
                self.state_anew();
            }
            return Ok(());
        }
        let told = stated(&heard);
        match self.stated.get(&heard.origin).map(|known| known.cmp(&told)) {
            // It knows less than this node: it gets the newer one.
            Some(std::cmp::Ordering::Greater) => {
                self.pending.insert((from, heard.origin));
                return Ok(());
            }
            Some(std::cmp::Ordering::Equal) => return Ok(()),
            Some(std::cmp::Ordering::Less) => {}
            None if self.stated.len() >= NODES_MAX => self.forget_unreachable(),
            None => {}
        }
        if self.stated.len() >= NODES_MAX && !self.stated.contains_key(&heard.origin) {
            self.refused += 1;
            return Ok(());
        }
        self.stated.insert(heard.origin, told);
        self.changed(heard.origin, Some(from));
        Ok(())
    }

    /// The next statement to be sent is written into `into`, which holds [`LINK_STATE_OCTETS_MAX`]: for whom,
    /// and its octets.
    pub fn poll(&mut self, into: &mut [u8; LINK_STATE_OCTETS_MAX]) -> Option<(NodeId, usize)> {
        while let Some((to, node)) = self.pending.pop_first() {
            let Some(Stated { name, forwards, sequence, neighbours }) = self.stated.get(&node) else {
                continue;
            };
            let ids = neighbours.iter().map(|(id, withdrawn)| (*id, *withdrawn));
            return Some((to, LinkStatement::emit(into, (node, *sequence), *forwards, name, ids)));
        }
        None
    }

    /// Nodes to which no link leads are forgotten.
    fn forget_unreachable(&mut self) {
        let mut reached = BTreeSet::from([self.own]);
        let mut next = VecDeque::from([self.own]);
        while let Some(node) = next.pop_front() {
            let Some(stated) = self.stated.get(&node) else { continue };
            let linked = stated.neighbours.keys().copied();
            let linked = linked.filter(|other| self.link(node, *other).is_some());
            next.extend(linked.filter(|node| reached.insert(*node)));
        }
        self.stated.retain(|node, _| reached.contains(node));
    }

    /// The link that both ends state: whether nothing is guaranteed on it, which one end states for both.
    fn link(&self, one: NodeId, other: NodeId) -> Option<bool> {
        let states = |node, to| self.stated.get(&node)?.neighbours.get(&to).copied();
        Some(states(one, other)? | states(other, one)?)
    }

    /// The links over which packets go on, from this node and from each one that forwards: both ends state
    /// them. With each whether nothing is guaranteed on it. This node's come first, in case that not all are
    /// taken.
    pub fn ways(&self) -> impl Iterator<Item = (NodeId, NodeId, bool)> {
        let own = self.stated.get_key_value(&self.own).into_iter();
        let others = self.stated.iter().filter(|(node, stated)| stated.forwards && **node != self.own);
        let ways =
            own.chain(others).flat_map(|(node, stated)| stated.neighbours.keys().map(|to| (*node, *to)));
        ways.filter_map(|(from, to)| Some((from, to, self.link(from, to)?)))
    }

    /// The name that a node has stated.
    pub fn name(&self, node: NodeId) -> Option<&str> {
        self.stated.get(&node).map(|stated| stated.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The nodes of that name.
    pub fn called(&self, name: &str) -> impl Iterator<Item = NodeId> {
        self.stated.iter().filter(move |(_, stated)| stated.name == name).map(|(node, _)| *node)
    }

    /// All nodes that are known, this one included.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Stated)> {
        self.stated.iter().map(|(node, stated)| (*node, stated))
    }

    /// Statements that were malformed, or of nodes beyond [`NODES_MAX`].
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Grows with each change of the graph.
    pub const fn changes(&self) -> u64 {
        self.changes
    }
}

fn stated(heard: &LinkStatement<'_>) -> Stated {
    Stated {
        name: heard.name.to_owned(),
        forwards: heard.forwards,
        sequence: heard.sequence,
        neighbours: heard.neighbours().collect(),
    }
}

#[cfg(test)]
mod tests;
