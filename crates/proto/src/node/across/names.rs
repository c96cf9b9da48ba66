//! Nodes beyond the segments of this one, by the names that link state has of them.

use super::super::Node;
use crate::rcap::{Nodes, RcapCallError};
use rota_contract::{NodeId, NodeName, Via};

impl Node {
    /// The nodes of that name beyond the segments of this one.
    pub fn called_beyond(&self, name: &str) -> Vec<NodeId> {
        let own = self.medium().node_id();
        let called = self.across.iter().flat_map(|across| across.links.called(name));
        called.filter(|node| *node != own).collect()
    }

    /// All nodes to which a way is known, with name and hops.
    pub fn nodes_beyond(&self) -> Vec<(NodeId, String, u32)> {
        let Some(across) = &self.across else { return Vec::new() };
        let name = |node| across.links.name(node).unwrap_or_default().to_owned();
        across.rcap.routes().iter().map(|(node, route)| (node, name(node), route.hops)).collect()
    }

    /// The gateways of these names.
    pub(super) fn gateways(&self, via: Option<Via>) -> Result<Nodes, RcapCallError> {
        let Some(across) = &self.across else { return Ok(Nodes::default()) };
        let node = |name: &str| {
            let mut called = across.links.called(name);
            let node = called.next().filter(|_| called.next().is_none());
            node.ok_or(RcapCallError::Gateway(NodeName::new(name)))
        };
        let nodes: Result<Vec<NodeId>, RcapCallError> =
            via.iter().flat_map(|via| via.names().map(node)).collect();
        Ok(Nodes::of(nodes?.into_iter()))
    }
}
