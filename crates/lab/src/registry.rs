//! How commands find a running lab: its keeper listens on an abstract Unix socket and hands out namespaces.
//!
//! An abstract name leaves no file, and ends with its keeper. It carries the user's number, because anybody
//! may bind any name; both sides check who is at the other end.

use crate::hub::Report;
use crate::spec::LabSpec;
use crate::topology::{Segment, Station, Topology, address, interface};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{PeerCredentials, SndBuf};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, bind, connect,
    getsockopt, listen, sendmsg, setsockopt, socket,
};
use rota_driver::sys::receive_with_fds;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::IoSlice;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// What a command asks of a keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Request {
    /// What the lab is like.
    About,
    /// The namespaces of one station (1 to N); they ride along with the answer, in the order to enter them.
    Join {
        /// Which station.
        station: u8,
    },
    /// End the lab.
    Down,
}

/// What a keeper answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::About`].
    About(About),
    /// To [`Request::Join`].
    Door {
        /// That the station's node has ended, and how.
        warning: Option<String>,
        /// The environment of a program there.
        environment: Vec<(String, String)>,
    },
    /// To [`Request::Down`]: the connection closes when all is gone.
    GoingDown,
    /// It cannot.
    No {
        /// One sentence.
        sentence: String,
    },
}

/// A last word of a keeper whose lab had hubs, one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// What it counted.
    pub hub: Report,
}

/// A running lab in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its segments.
    pub segments: Vec<SegmentAbout>,
    /// Its stations, from number 1.
    pub stations: Vec<StationAbout>,
    /// The rate of the first segment, in bits a second.
    pub rate_bps: u64,
    /// The queue of a port of the first segment, in octets.
    pub port_queue_octets: u64,
    /// "root" or "user-namespace".
    pub isolation: String,
    /// Whether every station runs `rota node`.
    pub nodes: bool,
    /// The first hub that joins a segment; SIGHUP lets it read its script again.
    pub hub_pid: Option<u32>,
    /// The process that holds it.
    pub keeper_pid: u32,
    /// What is not as it should be.
    pub warnings: Vec<String>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentAbout {
    /// Its name.
    pub name: String,
    /// "switch", "hub" or "link".
    pub medium: String,
    /// Wire rate of every port, in bits a second.
    pub rate_bps: u64,
    /// What a port holds, in octets.
    pub port_queue_octets: u64,
    /// The MTU of every port.
    pub mtu_octets: u16,
    /// The hub that joins it.
    pub hub_pid: Option<u32>,
}

/// One station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationAbout {
    /// Its name.
    pub name: String,
    /// The address of its first port.
    pub address: Ipv4Addr,
    /// Its ports.
    pub ports: Vec<PortAbout>,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortAbout {
    /// Its interface in the station.
    pub interface: String,
    /// The name of the segment it is on.
    pub segment: String,
    /// Its address there.
    pub address: Ipv4Addr,
    /// True if the station's node serves it.
    pub node: bool,
}

impl About {
    /// A lab built to `spec` whose hubs do not run yet.
    pub fn of(spec: &LabSpec, nodes: bool, isolation: String) -> Self {
        let Topology { segments, stations } = &spec.topology;
        let segment = |segment: &Segment| SegmentAbout {
            name: segment.name.clone(),
            medium: segment.medium.to_string(),
            rate_bps: segment.rate.as_bps(),
            port_queue_octets: segment.port_queue.get(),
            mtu_octets: segment.mtu,
            hub_pid: None,
        };
        let station = |(station, k): (&Station, u8)| {
            let port = |(port, at): (usize, &usize)| PortAbout {
                interface: interface(port),
                segment: segments[*at].name.clone(),
                address: address(*at, k),
                node: nodes,
            };
            let ports = station.ports.iter().enumerate().map(port).collect();
            StationAbout { name: station.name.clone(), address: address(station.ports[0], k), ports }
        };
        Self {
            name: spec.name.clone(),
            rate_bps: segments[0].rate.as_bps(),
            port_queue_octets: segments[0].port_queue.get(),
            segments: segments.iter().map(segment).collect(),
            stations: stations.iter().zip(1..).map(station).collect(),
            isolation,
            nodes,
            hub_pid: None,
            keeper_pid: std::process::id(),
            warnings: Vec::new(),
        }
    }
}

/// Why a running lab did not do what was asked of it; one sentence each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No such lab is up, or it has no such station.
    #[error("{0}")]
    NotThere(String),
    /// It could not.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for AskError {
    fn from(sentence: String) -> Self {
        Self::Failed(sentence)
    }
}

/// Where the keeper of one lab listens.
#[derive(Clone, Debug)]
pub struct Place {
    lab: String,
    address: UnixAddr,
    uid: u32,
}

/// A lab of 200 stations with eight ports each and the longest names has the most to tell: 210 KiB and a
/// warning for each.
const MESSAGE_MAX: usize = 384 * 1024;

impl Place {
    /// Of this user's lab called `name`. To be called before a user namespace changes the user's number.
    ///
    /// # Errors
    /// A name that is empty, long, or holds something else than letters, digits, `-`, `_` and `.`.
    pub fn of(name: &str) -> Result<Self, String> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 48 || !name.chars().all(good) {
            return Err(format!(
                "'{name}' is no name for a lab; use 1 to 48 letters, digits, '-', '_' or '.'"
            ));
        }
        let uid = nix::unistd::geteuid().as_raw();
        let address = UnixAddr::new_abstract(format!("rota/lab/{uid}/{name}").as_bytes())
            .map_err(|errno| format!("'{name}' is no name for a lab: {}", errno.desc()))?;
        Ok(Self { lab: name.to_owned(), address, uid })
    }

    /// Takes the name.
    ///
    /// # Errors
    /// One sentence; a lab of that name is up, for one.
    pub fn listen(&self) -> Result<OwnedFd, String> {
        let name = &self.lab;
        let listener = seqpacket().map_err(|e| format!("could not make a socket: {}", e.desc()))?;
        let fail = |errno| match errno {
            Errno::EADDRINUSE => format!(
                "a lab named '{name}' is already up: end it with 'rota lab down --name {name}' or choose \
                 another --name"
            ),
            errno => format!("could not register the lab '{name}': {}", errno.desc()),
        };
        bind(listener.as_raw_fd(), &self.address).map_err(fail)?;
        let backlog = Backlog::new(16).unwrap_or(Backlog::MAXCONN);
        listen(&listener, backlog).map_err(fail)?;
        Ok(listener)
    }

    /// Connects to the keeper.
    ///
    /// # Errors
    /// No such lab is up, or it is another user's.
    pub(crate) fn connect(&self) -> Result<Connection, AskError> {
        let name = &self.lab;
        let fd = seqpacket().map_err(|e| format!("could not make a socket: {}", e.desc()))?;
        connect(fd.as_raw_fd(), &self.address).map_err(|errno| match errno {
            Errno::ECONNREFUSED => AskError::NotThere(format!(
                "no lab named '{name}' of this user is up: start one with 'rota lab up --name {name}'"
            )),
            errno => AskError::Failed(format!("could not reach the lab '{name}': {}", errno.desc())),
        })?;
        let keeper = getsockopt(&fd, PeerCredentials).map_err(|e| e.desc().to_owned())?.uid();
        if keeper != self.uid {
            let sentence = format!("the lab '{name}' belongs to user {keeper}, not to user {}", self.uid);
            return Err(AskError::Failed(sentence));
        }
        Ok(Connection::of(fd))
    }

    /// Ends the lab and waits until all of it is gone; returns what its hubs counted.
    ///
    /// # Errors
    /// No such lab is up, or its keeper ended before it answered.
    pub fn take_down(&self) -> Result<Vec<Report>, AskError> {
        let keeper = self.connect()?;
        keeper.ask(&Request::Down)?;
        let mut reports = Vec::new();
        // The connection closes as the keeper's last act.
        while let Ok(Some((last, _))) = keeper.receive::<serde_json::Value>() {
            reports.extend(serde_json::from_value::<Counted>(last).map(|counted| counted.hub));
        }
        Ok(reports)
    }
}

fn seqpacket() -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)
}

/// One end of a conversation between a command and a keeper.
#[derive(Debug)]
pub struct Connection {
    fd: OwnedFd,
}

impl Connection {
    /// The keeper's end of an accepted connection; `None` when somebody else than this user is at the other.
    pub fn accepted(fd: OwnedFd) -> Option<Self> {
        let peer = getsockopt(&fd, PeerCredentials).ok()?.uid();
        (peer == nix::unistd::geteuid().as_raw()).then_some(Self::of(fd))
    }

    /// A message goes as a whole, and the kernel's default has less room than a large lab needs. It doubles
    /// what is asked for. Where it gives less, the largest labs alone cannot be asked about.
    fn of(fd: OwnedFd) -> Self {
        let _ = setsockopt(&fd, SndBuf, &MESSAGE_MAX);
        Self { fd }
    }

    /// Sends one message with descriptors.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn send(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let text = serde_json::to_vec(message).map_err(|_| Errno::EINVAL)?;
        let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&raw)];
        let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
        let slices = [IoSlice::new(&text)];
        sendmsg::<UnixAddr>(self.fd.as_raw_fd(), &slices, control, MsgFlags::MSG_NOSIGNAL, None).map(drop)
    }

    /// Waits for one message; `None` when the other end has closed.
    ///
    /// # Errors
    /// The connection broke, or what came is no such message.
    pub fn receive<T: DeserializeOwned>(&self) -> Result<Option<(T, Vec<OwnedFd>)>, Errno> {
        let mut buf = vec![0; MESSAGE_MAX];
        let (len, fds) = receive_with_fds(&self.fd, &mut buf)?;
        if len == 0 {
            return Ok(None);
        }
        let message = serde_json::from_slice(&buf[..len]).map_err(|_| Errno::EBADMSG)?;
        Ok(Some((message, fds)))
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// One sentence: the keeper is gone or says no.
    pub fn ask(&self, request: &Request) -> Result<(Answer, Vec<OwnedFd>), String> {
        let gone = || "the lab ended before it answered".to_owned();
        self.send(request, &[]).map_err(|_| gone())?;
        let answer = self.receive().map_err(|errno| match errno {
            Errno::ECONNRESET => gone(),
            errno => format!("the lab's answer was lost: {}", errno.desc()),
        });
        match answer? {
            Some((Answer::No { sentence }, _)) => Err(sentence),
            Some(answer) => Ok(answer),
            None => Err(gone()),
        }
    }

    /// Asks what the lab is like.
    ///
    /// # Errors
    /// One sentence: the keeper is gone.
    pub fn about(&self) -> Result<About, String> {
        match self.ask(&Request::About)? {
            (Answer::About(about), _) => Ok(about),
            _ => Err("the lab's keeper is of another version of rota".to_owned()),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::BitRate;

    #[test]
    fn names_that_would_not_fit_an_address_are_refused() {
        for bad in ["", "a b", "ü", "x/y", &"n".repeat(49)] {
            assert!(Place::of(bad).is_err(), "{bad}");
        }
        assert!(Place::of("lab-2_b.c").is_ok());
    }

    /// 200 stations, 64 segments, eight ports each, the longest names and a warning for each station.
    #[test]
    fn what_the_largest_lab_is_like_goes_in_one_message() {
        let name = |kind: &str, at: usize| format!("{kind}{at:0>31}");
        let segment = |at| Segment::new(name("s", at), BitRate::from_mbit(800_000));
        let station = |at: usize| Station {
            name: name("n", at),
            ports: (0..Topology::PORTS_MAX).map(|port| (at + port) % Topology::SEGMENTS_MAX).collect(),
        };
        let topology = Topology {
            segments: (0..Topology::SEGMENTS_MAX).map(segment).collect(),
            stations: (0..usize::from(Topology::STATIONS_MAX)).map(station).collect(),
        };
        topology.check().expect("it can be built");
        let mut about = About::of(&LabSpec::of("largest", topology), true, "user-namespace".to_owned());
        let sentence = "has ended with exit code 1, and the last that it said was one line of some length";
        about.warnings =
            about.stations.iter().map(|station| format!("the node of {} {sentence}", station.name)).collect();
        let place = Place::of(&format!("largest-{}", std::process::id())).expect("a name");
        let listener = std::os::unix::net::UnixListener::from(place.listen().expect("a place"));
        let asker = place.connect().expect("a keeper listens");
        let (stream, _) = listener.accept().expect("somebody asks");
        let keeper = Connection::accepted(stream.into()).expect("it is us");
        keeper.send(&Answer::About(about.clone()), &[]).expect("it fits");
        let (answer, _) = asker.receive::<Answer>().expect("it comes").expect("and is not the end");
        assert!(answer == Answer::About(about), "it comes whole");
    }

    #[test]
    fn requests_read_back() {
        for request in [Request::About, Request::Join { station: 3 }, Request::Down] {
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
        }
        for noise in ["", "{}", "[]", "{\"ask\":\"join\"}", "{\"ask\":\"join\",\"station\":300}", "\u{0}"] {
            assert!(serde_json::from_str::<Request>(noise).is_err(), "{noise}");
        }
    }
}
