//! The process that holds a lab: when it ends, by whatever signal, so does the lab.

use crate::build::Lab;
use crate::hub::Report;
use crate::hub_process::HubProcess;
use crate::nodes::Nodes;
use crate::registry::{About, Answer, Connection, Counted, Place, Request};
use crate::spec::{Isolation, LabSpec};
use crate::topology::Medium;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use rota_driver::netns;
use rota_driver::signals;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

/// A lab that is up, and everything that must end with it. Fields are dropped in this order: the nodes end
/// first, then the hubs, then the namespaces go, and closed connections tell the last who waits that all is
/// gone.
pub struct Keeper {
    nodes: Nodes,
    hubs: Vec<HubProcess>,
    lab: Lab,
    user: Option<OwnedFd>,
    about: About,
    aloud: bool,
    signals: SignalFd,
    listener: UnixListener,
    connections: Vec<Connection>,
}

/// What a keeper is to do.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The lab.
    pub spec: LabSpec,
    /// Whether to start `rota node` in every station.
    pub nodes: bool,
    /// Whether what the nodes say goes to our standard error.
    pub aloud: bool,
}

impl Keeper {
    /// Builds the LAN and starts the nodes. The process must have no other thread.
    ///
    /// # Errors
    /// One sentence.
    pub fn start(orders: &Orders) -> Result<Self, String> {
        let place = Place::of(&orders.spec.name)?;
        let listener = UnixListener::from(place.listen()?);
        // Before any thread exists, so that every thread inherits the mask.
        let signals = signals::catch(&signals::SUPERVISED)
            .map_err(|e| format!("could not wait for signals: {}", e.desc()))?;
        let lab = Lab::build(&orders.spec).map_err(|error| error.to_string())?;
        let user = match lab.isolation() {
            Isolation::Root => None,
            Isolation::UserNamespace => Some(netns::own_user_namespace().map_err(|error| error.to_string())?),
        };
        let mut about = About::of(&orders.spec, orders.nodes, lab.isolation().to_string());
        let mut hubs = Vec::new();
        for (index, segment) in orders.spec.topology.segments.iter().enumerate() {
            if let Medium::Hub(script) = &segment.medium {
                let hub = HubProcess::start(&lab, index, script, orders.aloud)?;
                about.segments[index].hub_pid = Some(hub.pid());
                about.hub_pid = about.hub_pid.or(Some(hub.pid()));
                hubs.push(hub);
            }
        }
        let mut nodes = Nodes::default();
        if orders.nodes {
            (nodes, about.warnings) = Nodes::start(&lab, orders.aloud)?;
        }
        let aloud = orders.aloud;
        Ok(Self { nodes, hubs, lab, user, about, aloud, signals, listener, connections: Vec::new() })
    }

    /// What the lab is like.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Serves commands until one takes the lab down or a signal ends it; then all is gone. Returns what the
    /// lab's hubs counted, if a signal ended it.
    ///
    /// # Errors
    /// The kernel no longer says what happens.
    pub fn run(mut self) -> Result<Vec<Report>, String> {
        loop {
            let ready = self.wait().map_err(|errno| format!("could not wait: {}", errno.desc()))?;
            if ready.signals && self.ended_by_signal() {
                self.connections.clear();
                return Ok(self.end());
            }
            self.nodes.look();
            let aloud = self.aloud;
            self.hubs.iter_mut().for_each(|hub| hub.look(aloud));
            // From the last, so that removing one leaves the others' places.
            for index in ready.connections.into_iter().rev() {
                match self.serve(index) {
                    Served::Stays => {}
                    Served::Left => drop(self.connections.remove(index)),
                    Served::Down => {
                        // Those who run programs learn it now, the one who asked when all is gone.
                        let asker = self.connections.swap_remove(index);
                        self.connections.clear();
                        for report in self.end() {
                            // The one that asks has gone or not.
                            let _ = asker.send(&Counted { hub: report }, &[]);
                        }
                        self.connections.push(asker);
                        return Ok(Vec::new());
                    }
                }
            }
            if ready.listener
                && let Ok((stream, _)) = self.listener.accept()
            {
                self.connections.extend(Connection::accepted(stream.into()));
            }
        }
    }

    /// Ends the nodes and the hubs, and returns what the hubs counted.
    fn end(&mut self) -> Vec<Report> {
        drop(std::mem::take(&mut self.nodes));
        self.hubs.drain(..).filter_map(HubProcess::finish).collect()
    }

    fn wait(&self) -> Result<Ready, Errno> {
        let wait_for = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = vec![wait_for(self.signals.as_fd()), wait_for(self.listener.as_fd())];
        fds.extend(self.connections.iter().map(|c| wait_for(c.as_fd())));
        fds.extend(self.nodes.pipes().chain(self.hubs.iter().filter_map(HubProcess::pipe)).map(wait_for));
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let ready = |index: usize| fds[index].any().unwrap_or(false);
        let connections = (0..self.connections.len()).filter(|index| ready(index + 2)).collect();
        Ok(Ready { signals: ready(0), listener: ready(1), connections })
    }

    fn ended_by_signal(&self) -> bool {
        let mut ended = false;
        while let Ok(Some(info)) = self.signals.read_signal() {
            ended |= info.ssi_signo != Signal::SIGCHLD as u32;
        }
        ended
    }

    fn serve(&self, index: usize) -> Served {
        let connection = &self.connections[index];
        let request = match connection.receive::<Request>() {
            Ok(Some((request, _))) => request,
            Ok(None) | Err(_) => return Served::Left,
        };
        let sent = match request {
            Request::About => connection.send(&Answer::About(self.about.clone()), &[]),
            Request::Join { station } => self.let_in(connection, station),
            Request::Down => {
                // The one that asks has gone or not: the lab ends.
                let _ = connection.send(&Answer::GoingDown, &[]);
                return Served::Down;
            }
        };
        if sent.is_ok() { Served::Stays } else { Served::Left }
    }

    fn let_in(&self, connection: &Connection, station: u8) -> Result<(), Errno> {
        if !(1..=self.lab.spec().stations()).contains(&station) {
            let sentence = format!("the lab has no station {station}");
            return connection.send(&Answer::No { sentence }, &[]);
        }
        // The user namespace first: it gives the right to enter the others.
        let user = self.user.iter().map(AsFd::as_fd);
        let fds: Vec<BorrowedFd<'_>> = user.chain(self.lab.door(station).namespaces()).collect();
        let ports = &self.lab.spec().topology.stations[usize::from(station) - 1].ports;
        let mut hubs = self.hubs.iter().filter(|hub| ports.contains(&hub.segment));
        let of_hub = || hubs.find_map(HubProcess::warning);
        let warning = self.nodes.warning(&self.lab, station).or_else(of_hub);
        let environment = self.lab.environment(station).into();
        connection.send(&Answer::Door { warning, environment }, &fds)
    }
}

struct Ready {
    signals: bool,
    listener: bool,
    connections: Vec<usize>,
}

enum Served {
    Stays,
    Left,
    Down,
}
