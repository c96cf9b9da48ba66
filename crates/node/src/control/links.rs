//! News of the links to neighbouring nodes.

use super::Control;
use crate::log::{Level, say};
use crate::rcap::{LinkEvent, Links};

impl Control<'_> {
    /// Takes what has come. No machine of this node has a use for messages of neighbours yet, so that a node
    /// of this version sends none and leaves those of later ones alone.
    pub(super) fn hear_neighbours(&mut self) {
        while let Some(event) = self.links.as_mut().and_then(Links::event) {
            match event {
                // The links' thread has written a line.
                LinkEvent::Up { .. } | LinkEvent::Down { .. } => {}
                LinkEvent::Message { node, octets } => {
                    let text = format!(
                        "link: {} octets from node {node}, for which nothing here waits",
                        octets.len()
                    );
                    say(Level::Debug, "link-message", &text);
                }
            }
        }
    }
}
