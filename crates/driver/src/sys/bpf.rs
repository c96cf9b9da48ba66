//! bpf(2): maps, programs, and the links that hold a program at an interface while a descriptor lives.

use nix::errno::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const MAP_DELETE: u32 = 3;
const PROG_LOAD: u32 = 5;
const PROG_QUERY: u32 = 16;
const LINK_CREATE: u32 = 28;

const LOG_OCTETS: usize = 64 << 10;
/// The licence that the kernel asks of programs which call its helpers.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

/// Kinds of maps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapKind {
    Hash = 1,
    Array = 2,
    ArrayOfMaps = 12,
    Ring = 27,
}

/// Kinds of programs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramKind {
    Socket = 1,
    Ingress = 3,
}

/// The kernel's hook for a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hook {
    /// Packets that come to the sockets of a control group.
    CgroupIngress = 0,
    /// Packets that come to an interface.
    Ingress = 46,
}

#[repr(C)]
#[derive(Default)]
struct CreateMap {
    kind: u32,
    key_octets: u32,
    value_octets: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_octets: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach: u32,
}

#[repr(C)]
#[derive(Default)]
struct CreateLink {
    program: u32,
    target: u32,
    attach: u32,
    flags: u32,
    /// Where among others: none is named, so the last.
    relative: u32,
    _pad: u32,
    revision: u64,
}

#[repr(C)]
#[derive(Default)]
struct Query {
    target: u32,
    attach: u32,
    query_flags: u32,
    attach_flags: u32,
    programs: u64,
    count: u32,
    _pad: u32,
    program_flags: u64,
    links: u64,
    link_flags: u64,
    revision: u64,
}

fn call<T>(command: u32, attributes: &mut T) -> Result<i32, Errno> {
    let octets = size_of::<T>();
    let pointer: *mut T = attributes;
    // SAFETY: pointer and size describe `attributes`, whose pointers each caller has taken from buffers that
    // outlive the call and are as long as it says.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, octets) };
    Errno::result(answer).map(|answer| answer as i32)
}

/// The descriptor that a call has made.
fn owned(raw: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor, close-on-exec, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(raw) }
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    // The kernel wants a closing zero.
    name[..15].iter_mut().zip(text.bytes()).for_each(|(place, octet)| *place = octet);
    name
}

/// A map, which lives as long as its descriptors and the programs that use it.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    key_octets: usize,
    value_octets: usize,
}

impl Map {
    pub(crate) fn create(
        kind: MapKind,
        (key_octets, value_octets): (usize, usize),
        entries: u32,
        inner: Option<&Self>,
    ) -> Result<Self, Errno> {
        let mut attributes = CreateMap {
            kind: kind as u32,
            key_octets: key_octets as u32,
            value_octets: value_octets as u32,
            entries,
            inner: inner.map_or(0, |inner| number(inner.as_fd())),
            name: name("rota"),
            ..CreateMap::default()
        };
        let fd = owned(call(MAP_CREATE, &mut attributes)?);
        Ok(Self { fd, key_octets, value_octets })
    }

    fn element(&self, key: &[u8], value: u64) -> Element {
        assert_eq!(key.len(), self.key_octets, "a key of this map");
        Element { map: number(self.as_fd()), key: key.as_ptr() as u64, value, ..Element::default() }
    }

    /// Sets the value of a key. Of a map of maps the value is the descriptor of the inner one.
    pub(crate) fn set(&self, key: &[u8], value: &[u8]) -> Result<(), Errno> {
        assert_eq!(value.len(), self.value_octets, "a value of this map");
        call(MAP_UPDATE, &mut self.element(key, value.as_ptr() as u64)).map(drop)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut value = vec![0; self.value_octets];
        call(MAP_LOOKUP, &mut self.element(key, value.as_mut_ptr() as u64)).map(|_| value)
    }

    pub(crate) fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        call(MAP_DELETE, &mut self.element(key, 0)).map(drop)
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Lets the kernel check a program; where it refuses, the last lines of its reasons.
pub(crate) fn load(kind: ProgramKind, code: &[u8]) -> Result<OwnedFd, (Errno, String)> {
    let mut attributes = Load {
        kind: kind as u32,
        instructions: (code.len() / 8) as u32,
        code: code.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        name: name("rota"),
        ..Load::default()
    };
    let first = match call(PROG_LOAD, &mut attributes) {
        Ok(raw) => return Ok(owned(raw)),
        Err(errno) => errno,
    };
    // Only a program that is refused costs the time of a log.
    let mut log = vec![0_u8; LOG_OCTETS];
    attributes.log_level = 1;
    attributes.log_octets = LOG_OCTETS as u32;
    attributes.log = log.as_mut_ptr() as u64;
    match call(PROG_LOAD, &mut attributes) {
        Ok(raw) => Ok(owned(raw)),
        Err(_) => {
            let text = String::from_utf8_lossy(&log);
            let text = text.trim_end_matches('\0').trim_end();
            let last: Vec<&str> = text.lines().rev().take(12).collect();
            Err((first, last.into_iter().rev().collect::<Vec<_>>().join("\n")))
        }
    }
}

/// Hooks a program to what comes to an interface, behind the programs that are there.
pub(crate) fn link(program: BorrowedFd<'_>, ifindex: u32) -> Result<OwnedFd, Errno> {
    let mut attributes = CreateLink {
        program: number(program),
        target: ifindex,
        attach: Hook::Ingress as u32,
        ..CreateLink::default()
    };
    call(LINK_CREATE, &mut attributes).map(owned)
}

/// How many programs are at a hook of an interface or of a control group; those of the groups above it count.
pub(crate) fn hooked(target: u32, hook: Hook) -> Result<u32, Errno> {
    const EFFECTIVE: u32 = 1;
    let query_flags = if matches!(hook, Hook::CgroupIngress) { EFFECTIVE } else { 0 };
    let mut attributes = Query { target, attach: hook as u32, query_flags, ..Query::default() };
    match call(PROG_QUERY, &mut attributes) {
        // Without room for their numbers the kernel still says how many there are.
        Ok(_) | Err(Errno::ENOSPC) => Ok(attributes.count),
        Err(errno) => Err(errno),
    }
}
