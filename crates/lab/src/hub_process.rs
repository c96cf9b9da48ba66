//! The `rota hub` that joins the stations of a segment in the bridge's place.

use crate::build::Lab;
use crate::hub::Report;
use crate::kept::{Kept, PAUSE, end_all};
use crate::topology::Segment;
use rota_driver::clock;
use rota_units::Span;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How long a hub may take until it carries frames.
const READY_WITHIN: Span = Span::from_millis(5_000);

/// What a lab's hub is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubOrders {
    /// What goes wrong when; nothing without it.
    pub script: Option<PathBuf>,
    /// The seed of its faults.
    pub seed: u64,
}

/// This program as the hub of a segment, with the rate and the queues of its ports.
///
/// # Errors
/// One sentence: this program is not found, or may open no more descriptors.
pub fn hub_command(lab: &Lab, segment: usize) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|e| format!("could not find this program: {e}"))?;
    let topology = &lab.spec().topology;
    let Segment { rate, port_queue, .. } = &topology.segments[segment];
    let ports: Vec<String> = topology.on(segment).map(|(k, _)| format!("p{k}")).collect();
    let mut command = lab.middle_command(segment, program).map_err(|error| error.to_string())?;
    command.args(["hub", "--ports", &ports.join(",")]);
    command.args(["--rate", &format!("{}bit", rate.as_bps())]);
    command.args(["--port-queue", &format!("{}octets", port_queue.get())]);
    Ok(command)
}

/// The process; dropping it ends it.
pub struct HubProcess {
    /// The number of its segment.
    pub segment: usize,
    process: Kept,
}

impl HubProcess {
    /// Starts the hub and waits until it carries frames.
    ///
    /// # Errors
    /// One sentence: it could not be started or ended at once.
    pub fn start(lab: &Lab, segment: usize, orders: &HubOrders, aloud: bool) -> Result<Self, String> {
        let mut command = hub_command(lab, segment)?;
        command.args(["--json", "--seed", &orders.seed.to_string()]);
        if let Some(script) = &orders.script {
            command.arg("--script").arg(script);
        }
        command.stdout(Stdio::piped());
        let segments = &lab.spec().topology.segments;
        let what = match segments.len() {
            1 => "the hub".to_owned(),
            _ => format!("the hub of {}", segments[segment].name),
        };
        let mut hub = Self { segment, process: Kept::start(what, command)? };
        let deadline = clock::now() + READY_WITHIN;
        while !hub.process.said("rota hub: ") {
            hub.process.look(aloud);
            if let Some(sentence) = hub.process.sentence() {
                return Err(sentence);
            }
            if clock::now() > deadline {
                return Err("the hub runs, but has not said that it carries frames".to_owned());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(hub)
    }

    /// Its number, for who wants it to read its script again.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Takes in what it said and whether it ended.
    pub fn look(&mut self, aloud: bool) {
        self.process.look(aloud);
    }

    /// That it has ended, and its last words.
    pub fn warning(&self) -> Option<String> {
        self.process.sentence()
    }

    /// What becomes readable when it speaks.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.process.pipe()
    }

    /// Ends it and returns what it counted.
    pub fn finish(mut self) -> Option<Report> {
        end_all(&mut [&mut self.process]);
        serde_json::from_str(&self.process.output()).ok()
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        end_all(&mut [&mut self.process]);
    }
}
