//! The `rota hub` that joins the stations of a lab in the bridge's place.

use crate::build::Lab;
use crate::hub::Report;
use crate::kept::{Kept, PAUSE, end_all};
use rota_driver::clock;
use rota_units::Span;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::process::Stdio;

/// How long a hub may take until it carries frames.
const READY_WITHIN: Span = Span::from_millis(5_000);

/// What a lab's hub is to do.
#[derive(Clone, Debug)]
pub struct HubOrders {
    /// What goes wrong when; nothing without it.
    pub script: Option<PathBuf>,
    /// The seed of its faults.
    pub seed: u64,
}

/// The process; dropping it ends it.
pub struct HubProcess(Kept);

impl HubProcess {
    /// Starts the hub and waits until it carries frames.
    ///
    /// # Errors
    /// One sentence: it could not be started or ended at once.
    pub fn start(lab: &Lab, orders: &HubOrders, aloud: bool) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| format!("could not find this program: {e}"))?;
        let spec = lab.spec();
        let ports: Vec<String> = (1..=spec.stations).map(|k| format!("p{k}")).collect();
        let mut command = lab.switch_command(program).map_err(|error| error.to_string())?;
        command.args(["hub", "--json", "--ports", &ports.join(",")]);
        command.args(["--rate", &format!("{}bit", spec.rate.as_bps())]);
        command.args(["--port-queue", &format!("{}octets", spec.port_queue.get())]);
        command.args(["--seed", &orders.seed.to_string()]);
        if let Some(script) = &orders.script {
            command.arg("--script").arg(script);
        }
        command.stdout(Stdio::piped());
        let mut hub = Self(Kept::start("the hub".to_owned(), command)?);
        let deadline = clock::now() + READY_WITHIN;
        while !hub.0.said("rota hub: ") {
            hub.0.look(aloud);
            if let Some(sentence) = hub.0.sentence() {
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
        self.0.pid()
    }

    /// Takes in what it said and whether it ended.
    pub fn look(&mut self, aloud: bool) {
        self.0.look(aloud);
    }

    /// That it has ended, and its last words.
    pub fn warning(&self) -> Option<String> {
        self.0.sentence()
    }

    /// What becomes readable when it speaks.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.0.pipe()
    }

    /// Ends it and returns what it counted.
    pub fn finish(mut self) -> Option<Report> {
        end_all(&mut [&mut self.0]);
        serde_json::from_str(&self.0.output()).ok()
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        end_all(&mut [&mut self.0]);
    }
}
