//! The links of a node to its neighbours, from its arguments.

use super::Args;
use rota_answer::Failure;
use rota_node::KeptNodeId;
use rota_node::links::{LinkSettings, NodeKey, listen, read_neighbours};

/// The settings of the links; `None` without a neighbours file.
///
/// # Errors
/// A file that cannot be used, an address that cannot be had, or too few descriptors.
pub fn settings(args: &Args, node_id: &KeptNodeId) -> Result<Option<LinkSettings>, Failure> {
    let Some(file) = &args.neighbours else { return Ok(None) };
    let Some(id_file) = node_id.path() else {
        let why = node_id.note().unwrap_or("the id is kept nowhere");
        let sentence = format!("neighbours know a node by an id and a key that are kept, and {why}");
        return Err(Failure::failed(sentence));
    };
    let key = NodeKey::find(&NodeKey::beside(id_file)).map_err(Failure::failed)?;
    let node = node_id.get();
    let neighbours = read_neighbours(file, (node, key.public()));
    let neighbours = neighbours.map_err(|error| Failure::wrong_use(error.to_string()))?;
    rota_node::descriptors_for_neighbours(neighbours.len()).map_err(Failure::failed)?;
    let listener = listen(args.rcap_listen).map_err(Failure::failed)?;
    Ok(Some(LinkSettings { node, key, neighbours, listener }))
}
