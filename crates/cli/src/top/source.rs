//! Where the monitor looks: the node's counters file, mapped read-only. The node is asked once for the file
//! and never again; when it ends, its return is waited for.

use rota::{ControlName, CounterReader, Instant, Monitor, Node, Span};

/// How often a node that is gone is looked for.
const AGAIN: Span = Span::from_millis(500);

/// What one look at the file gave.
pub enum Look {
    /// The rows of one moment, and the named counters.
    Seen,
    /// No node runs here, or the one that did has ended.
    Gone,
    /// There is a node, but it has not written yet.
    NotYet,
}

/// The file of this station's node, of whichever node runs here now.
pub struct Source {
    open: Option<(Node, CounterReader)>,
    next_try: Instant,
    /// Why there is none.
    why: String,
    /// The rows last seen.
    pub rows: Monitor,
    /// The counters last seen, by name.
    pub counters: Vec<(String, u64)>,
    /// Raised by each node that was found: counts begin anew with it.
    pub nodes_found: u64,
}

impl Source {
    /// Nothing is looked at yet.
    pub fn new() -> Self {
        let rows = Monitor::default();
        Self {
            open: None,
            next_try: Instant::ZERO,
            why: String::new(),
            rows,
            counters: Vec::new(),
            nodes_found: 0,
        }
    }

    /// Why there is no node, as one sentence.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Looks once.
    pub fn look(&mut self, now: Instant) -> Look {
        if self.open.as_ref().is_some_and(|(node, _)| node.is_gone()) {
            self.open = None;
            self.why = "the node of this station has ended; waiting for 'rota node' to start again".into();
        }
        if self.open.is_none() && now >= self.next_try {
            self.next_try = now + AGAIN;
            self.connect();
        }
        let Some((_, reader)) = &self.open else { return Look::Gone };
        if !reader.monitor(&mut self.rows) {
            return Look::NotYet;
        }
        if self.counters.is_empty() {
            self.counters = reader.iter().map(|(name, value)| (name.to_owned(), value)).collect();
        } else {
            let values = reader.iter().map(|(_, value)| value);
            self.counters.iter_mut().zip(values).for_each(|((_, seen), value)| *seen = value);
        }
        Look::Seen
    }

    fn connect(&mut self) {
        let connected = Node::connect(&ControlName::default()).and_then(|mut node| {
            let counters = node.counters()?;
            Ok((node, counters))
        });
        match connected {
            Ok(open) => {
                self.open = Some(open);
                self.counters.clear();
                self.nodes_found += 1;
            }
            Err(error) if self.why.is_empty() => self.why = error.to_string(),
            Err(_) => {}
        }
    }
}
