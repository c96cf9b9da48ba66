//! `rota key`: what the neighbours of a node pin.

use rota_answer::{Exit, Failure, Format, outln};
use rota_node::KeptNodeId;
use rota_node::links::NodeKey;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Example: rota key show

The lines that it prints are those of this node in the neighbours files of others; the address is to be
added. 'rota node --neighbours FILE' reads such a file.";

/// Arguments of `rota key`.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Print the id and the public key of the node; both are drawn and kept where there are none yet
    Show(Show),
}

#[derive(clap::Args)]
struct Show {
    /// The file that keeps the node's id, where it is not the usual one; its key is in the file of the same
    /// name with '.key' behind it
    #[arg(long, env = "ROTA_NODE_ID_FILE", value_name = "FILE")]
    node_id_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let Verb::Show(show) = &args.verb;
    let (node, id_file) = KeptNodeId::look(show.node_id_file.as_deref()).map_err(Failure::failed)?;
    let key_file = NodeKey::beside(&id_file);
    let key = NodeKey::find(&key_file).map_err(Failure::failed)?.public();
    let document = serde_json::json!({
        "node_id": node.to_string(),
        "key": key.to_string(),
        "node_id_file": id_file.display().to_string(),
        "key_file": key_file.display().to_string(),
    });
    format.tell(&document, |_| {
        outln!("[[neighbour]]");
        outln!("node = \"{node}\"");
        outln!("key = \"{key}\"");
    });
    Ok(Exit::Done)
}
