//! The maps, programs and sockets of a node's bypass. All of it goes with this value, and with its process.

use super::channel_hold::ChannelQueues;
use super::code::Dialect;
use super::filter::{Inlet, Maps, Network, filter, tail};
use super::packet::{Counts, SOCKETS_MAX, count, key, value};
use super::proof::{self, Refused, Tables};
use super::surroundings::{Surroundings, Unfit};
use crate::still_open::StillOpen;
use crate::sys::bpf::{self, Hook, Map, MapKind, ProgramKind};
use crate::sys::udp;
use nix::errno::Errno;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Fewest and most octets of a ring: the largest packet fits in at least three times.
pub const RING_OCTETS: std::ops::RangeInclusive<u32> = 256 << 10..=64 << 20;
/// Addresses and ports of all sockets: one that is bound to no address has a key for each of the host's.
const KEYS_MAX: u32 = 1_024;

/// One interface of the node.
#[derive(Debug)]
struct Interface {
    index: u32,
    /// The facts that its filter knows, and the link that holds it there.
    filter: Result<(Inlet, OwnedFd), Unfit>,
}

/// A socket with a queue.
#[derive(Debug)]
struct Held {
    /// Open until its filter is gone: so the port is nobody else's before.
    socket: OwnedFd,
    bound: SocketAddrV4,
    peer: Option<SocketAddrV4>,
    ring: Map,
    /// The control group of its program, whose filters count as a firewall.
    group: Option<File>,
    /// Under which the filter finds it.
    keys: Vec<SocketAddrV4>,
}

/// A queue that is closed, and whose tail is still before its socket: the program has locked its filters. The
/// tail counts into the place of the queue, so nobody else gets that before the socket is gone.
#[derive(Debug)]
struct Locked {
    slot: u32,
    /// The number of the socket's file, which is not open here: it would never be gone. One that cannot be
    /// watched stays, and its place with it.
    file: Result<u64, OwnedFd>,
    /// Open here until then: who watches the ring sees that its memory is in use.
    _ring: Map,
}

/// A request for a queue.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Of the ring.
    pub octets: u32,
    /// From which alone packets are wanted.
    pub peer: Option<SocketAddrV4>,
    /// The program.
    pub process: u32,
}

/// The bypass of one node.
#[derive(Debug)]
pub struct Bypass {
    sockets: Map,
    rings: Map,
    counts: Map,
    interfaces: Vec<Interface>,
    held: Vec<Option<Held>>,
    locked: Vec<Locked>,
    /// For sockets that are locked.
    files: StillOpen,
    /// Those of channels; one sentence where this kernel refuses them.
    pub channels: Result<ChannelQueues, String>,
}

impl Bypass {
    /// Over the interfaces of these numbers, in the calling thread's network namespace.
    ///
    /// # Errors
    /// One sentence: this kernel, or this user, has no eBPF that suffices.
    pub fn begin(interfaces: &[u32]) -> Result<Self, String> {
        let refused = |errno: Errno| format!("the kernel makes no BPF maps here: {}", errno.desc());
        let ring = new_ring(*RING_OCTETS.start()).map_err(refused)?;
        let map = |kind, sizes, entries, inner| Map::create(kind, sizes, entries, inner).map_err(refused);
        let bypass = Self {
            sockets: map(MapKind::Hash, (8, 16), KEYS_MAX, None)?,
            rings: map(MapKind::ArrayOfMaps, (4, 4), SOCKETS_MAX, Some(&ring))?,
            counts: map(MapKind::Array, (4, count::OCTETS), SOCKETS_MAX, None)?,
            interfaces: interfaces
                .iter()
                .map(|index| Interface { index: *index, filter: Err(Unfit::Unused) })
                .collect(),
            held: (0..SOCKETS_MAX).map(|_| None).collect(),
            locked: Vec::new(),
            files: StillOpen::new().map_err(|error| format!("no open file can be watched here: {error}"))?,
            channels: ChannelQueues::begin(interfaces),
        };
        // A kernel that refuses a program says so now, and not to the first program that asks.
        let networks = vec![Network { address: Ipv4Addr::LOCALHOST, prefix: 8 }];
        let example = filter(&Inlet { own: Vec::new(), networks }, bypass.maps(), Dialect::Kernel);
        bpf::load(ProgramKind::Ingress, &example).map_err(words)?;
        Ok(bypass)
    }

    fn maps(&self) -> Maps {
        Maps { sockets: self.sockets.raw(), rings: self.rings.raw(), counts: self.counts.raw() }
    }

    /// Gives a program's bound socket a queue; its number.
    ///
    /// # Errors
    /// [`Refused`]; the socket is then as it was.
    pub fn open(&mut self, socket: OwnedFd, ask: Ask) -> Result<u32, Refused> {
        if !RING_OCTETS.contains(&ask.octets) || !ask.octets.is_power_of_two() {
            return Err(Refused::Size);
        }
        let bound = proof::check(&socket)?;
        self.look_at_locked();
        let free = self.free().ok_or(Refused::Full)?;
        let slot = free as u32;
        let ring = new_ring(ask.octets)?;
        self.counts.set(&slot.to_ne_bytes(), &[0; count::OCTETS])?;
        let code = tail(slot, self.maps(), ring.raw(), Dialect::Kernel);
        let program = bpf::load(ProgramKind::Socket, &code).map_err(|(errno, _)| errno)?;
        // A socket that refuses the tail leaves no ring behind, which nobody would count.
        udp::attach(socket.as_fd(), program.as_fd())?;
        if let Err(errno) = self.rings.set(&slot.to_ne_bytes(), &ring.raw().to_ne_bytes()) {
            if udp::detach(socket.as_fd()).is_err() {
                self.keep_locked(slot, socket, ring);
            }
            return Err(errno.into());
        }
        let group = group_of(ask.process);
        let held = Held { socket, bound, peer: ask.peer, ring, group, keys: Vec::new() };
        self.held[free] = Some(held);
        self.look();
        Ok(slot)
    }

    fn held(&self, slot: u32) -> Option<&Held> {
        self.held.get(slot as usize).and_then(Option::as_ref)
    }

    /// The ring of a socket.
    pub fn ring(&self, slot: u32) -> Option<BorrowedFd<'_>> {
        self.held(slot).map(|held| held.ring.as_fd())
    }

    /// Why all packets of a socket take the full path at present, as one sentence; `None` if plain ones from
    /// the network of one interface go past it.
    pub fn full_path(&self, slot: u32) -> Option<String> {
        let held = self.held(slot)?;
        if held.is_filtered() {
            return Some("its control group has a packet filter".to_owned());
        }
        if let Err(refused) = held.check_alone(&Tables::read()) {
            return Some(refused.to_string());
        }
        if held.keys.is_empty() {
            return Some(format!("this host does not have the address {}", held.bound.ip()));
        }
        let mut unfit = self.interfaces.iter().map(|of| of.filter.as_ref().err());
        let first = unfit.next()??;
        unfit.all(|of| of.is_some()).then(|| first.to_string())
    }

    /// Takes the queue of a socket away: first the filter's entry, then the tail, and the port is free then.
    pub fn close(&mut self, slot: u32) {
        let Some(held) = self.held.get_mut(slot as usize).and_then(Option::take) else { return };
        for of in &held.keys {
            let _ = self.sockets.remove(&key(*of));
        }
        // The kernel waits here until no filter uses the ring any more: then its number is free.
        let _ = self.rings.remove(&slot.to_ne_bytes());
        if udp::detach(held.socket.as_fd()).is_err() {
            self.keep_locked(slot, held.socket, held.ring);
        }
        self.look();
    }

    /// A place that no queue has, and no tail of a queue that is closed.
    fn free(&self) -> Option<usize> {
        let is_locked = |at: usize| self.locked.iter().any(|locked| locked.slot as usize == at);
        (0..self.held.len()).find(|at| self.held[*at].is_none() && !is_locked(*at))
    }

    /// A program has locked its socket's filters (SO_LOCK_FILTER): its tail cannot be taken away.
    fn keep_locked(&mut self, slot: u32, socket: OwnedFd, ring: Map) {
        let file = self.files.watch(&socket).map_err(|_| socket);
        self.locked.push(Locked { slot, file, _ring: ring });
    }

    /// Places of sockets that are gone are free.
    fn look_at_locked(&mut self) {
        if !self.locked.is_empty()
            && let Ok(open) = self.files.numbers()
        {
            self.locked.retain(|locked| locked.file.as_ref().map_or(true, |file| open.contains(file)));
        }
    }

    /// The kernel's counts of a socket.
    pub fn counts(&self, slot: u32) -> Counts {
        let octets = self.counts.get(&slot.to_ne_bytes()).unwrap_or_default();
        Counts::parse(&octets)
    }

    /// True if the filter knows the socket at present.
    pub fn is_known(&self, slot: u32) -> bool {
        self.held(slot).is_some_and(|held| !held.keys.is_empty())
    }

    /// Why an interface has no filter at present, by its place; `None` if it has one.
    pub fn unfit(&self, interface: usize) -> Option<&Unfit> {
        self.interfaces.get(interface).and_then(|of| of.filter.as_ref().err())
    }

    /// True while a socket has a queue.
    pub fn is_used(&self) -> bool {
        self.held.iter().any(Option::is_some)
    }

    /// Looks at what stands at the interfaces, and brings filters and their entries in line with it.
    pub fn look(&mut self) {
        self.look_at_locked();
        if !self.is_used() {
            self.interfaces.iter_mut().for_each(|of| of.filter = Err(Unfit::Unused));
            return;
        }
        let (maps, surroundings) = (self.maps(), Surroundings::look());
        for of in &mut self.interfaces {
            let ours = self.channels.as_ref().map_or(0, |channels| channels.programs_at(of.index));
            of.bring_in_line(surroundings.as_ref(), maps, ours);
        }
        let own = surroundings.as_ref().map_or_else(|_| Vec::new(), Surroundings::own);
        let tables = Tables::read();
        for (slot, held) in self.held.iter_mut().enumerate() {
            let Some(held) = held else { continue };
            held.bring_in_line(&self.sockets, slot as u32, &own, &tables);
        }
    }
}

impl Interface {
    /// `ours` are the programs of channels there.
    fn bring_in_line(&mut self, surroundings: Result<&Surroundings, &Unfit>, maps: Maps, ours: u32) {
        let ours = ours + u32::from(self.filter.is_ok());
        let wanted = surroundings.map_err(Clone::clone).and_then(|all| all.inlet(self.index, ours));
        let inlet = match (wanted, &self.filter) {
            (Ok(inlet), Ok((known, _))) if inlet == *known => return,
            (Ok(inlet), _) => inlet,
            (Err(unfit), _) => return self.filter = Err(unfit),
        };
        let code = filter(&inlet, maps, Dialect::Kernel);
        let program = bpf::load(ProgramKind::Ingress, &code).map_err(words);
        let linked = program.and_then(|program| {
            let failed = |errno: Errno| format!("no link: {}", errno.desc());
            bpf::link(program.as_fd(), self.index).map_err(failed)
        });
        // The older one, if there is one, goes when the newer one is in force.
        self.filter = linked.map(|link| (inlet, link)).map_err(Unfit::Kernel);
    }
}

impl Held {
    fn is_filtered(&self) -> bool {
        self.group
            .as_ref()
            .is_some_and(|group| bpf::hooked(group.as_raw_fd().cast_unsigned(), Hook::CgroupIngress) != Ok(0))
    }

    /// The filter knows ports and no interfaces: a port with a second socket is the layers' to decide.
    fn check_alone(&self, tables: &Result<Tables, Errno>) -> Result<(), Refused> {
        let tables = tables.as_ref().map_err(|errno| Refused::Kernel(*errno))?;
        proof::check_alone(&self.socket, self.bound, tables)
    }

    fn bring_in_line(&mut self, sockets: &Map, slot: u32, own: &[Ipv4Addr], tables: &Result<Tables, Errno>) {
        let is_plain = !self.is_filtered() && self.check_alone(tables).is_ok();
        let is_wanted = |address: &&Ipv4Addr| {
            is_plain && (self.bound.ip().is_unspecified() || *address == self.bound.ip())
        };
        let port = self.bound.port();
        let wanted: Vec<_> = own.iter().filter(is_wanted).map(|of| SocketAddrV4::new(*of, port)).collect();
        for gone in self.keys.extract_if(.., |known| !wanted.contains(known)) {
            let _ = sockets.remove(&key(gone));
        }
        for new in wanted {
            if !self.keys.contains(&new) && sockets.set(&key(new), &value(self.peer, slot)).is_ok() {
                self.keys.push(new);
            }
        }
    }
}

pub(super) fn new_ring(octets: u32) -> Result<Map, Errno> {
    Map::create(MapKind::Ring, (0, 0), octets, None)
}

pub(super) fn words((errno, log): (Errno, String)) -> String {
    match log.is_empty() {
        true => format!("the kernel loads no BPF program here: {}", errno.desc()),
        false => format!("the kernel refuses the filter: {}: {log}", errno.desc()),
    }
}

/// The control group of a process, where there is one.
fn group_of(process: u32) -> Option<File> {
    let text = std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    mounts.into_iter().find_map(|mount| File::open(format!("{mount}{path}")).ok()).filter(|file| {
        let hooked = bpf::hooked(file.as_raw_fd().cast_unsigned(), Hook::CgroupIngress);
        // A directory of something else than control groups.
        hooked.is_ok()
    })
}

/// How many programs of anybody stand where packets come to an interface.
///
/// # Errors
/// The kernel's answer; a kernel before 6.6 knows no such programs.
pub fn programs_at(interface: u32) -> Result<u32, Errno> {
    bpf::hooked(interface, Hook::Ingress)
}
