//! Removes the rights that a process does not need after its start: capabilities, and the system calls that
//! it never makes.
//!
//! The filter allows the calls of a daemon with threads, memory files and sockets. All other calls fail with
//! EPERM. So an attacker who takes over the process after its start cannot open a raw socket, load a BPF
//! program, look into another process, make a namespace, mount, run a program, or open a file for writing.

mod calls;

use crate::sys::privileges;
use nix::errno::Errno;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::fs;

/// To configure networks: the egress gate.
pub const NET_ADMIN: u8 = 12;
/// To open packet sockets.
pub const NET_RAW: u8 = 13;
/// To lock memory beyond the limit.
pub const IPC_LOCK: u8 = 14;
/// To load programs and to make maps for them.
pub const BPF: u8 = 39;
/// To give threads a real-time class.
pub const SYS_NICE: u8 = 23;
/// More than any kernel has.
const CAPABILITIES_MAX: u8 = 63;

/// Lifts the limit of locked memory of this process, if the kernel allows that; then it needs no capability
/// for later mappings.
pub fn lift_memory_limit() {
    // The kernel refuses this to ordinary users, who cannot lock memory beyond the limit in any case.
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
}

/// Takes all capabilities but these from the calling thread and the programs that it runs, for ever. No such
/// program gets new privileges.
///
/// # Errors
/// The kernel's error; the thread then keeps its permitted capabilities, and has lost its bounding and
/// ambient sets.
pub fn keep_capabilities(keep: &[u8]) -> Result<(), Errno> {
    let mut wanted = keep.iter().fold(0_u64, |all, capability| all | 1 << capability);
    let is_unlimited = getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY);
    if !is_unlimited {
        // All later memory of a process that locks it counts against the limit: mapping would fail.
        wanted |= 1 << IPC_LOCK;
    }
    keep_only(wanted)
}

/// As [`keep_capabilities`], for a process that locks no memory.
///
/// # Errors
/// The kernel's error; the thread then keeps its capabilities.
pub fn keep_capability(capability: u8) -> Result<(), Errno> {
    keep_only(1 << capability)
}

fn keep_only(wanted: u64) -> Result<(), Errno> {
    for capability in (0..CAPABILITIES_MAX).filter(|capability| wanted & 1 << capability == 0) {
        // The kernel refuses this without CAP_SETPCAP; no program that such a process runs gains rights.
        let _ = privileges::drop_from_bounding(capability);
    }
    let _ = privileges::clear_ambient();
    // A filter sets it for all threads, but a kernel may have none.
    let _ = nix::sys::prctl::set_no_new_privs();
    privileges::set(privileges::permitted()? & wanted)
}

/// Forbids all threads of this process, for ever, the calls that are not on the list, and new privileges
/// for any program that it runs. A process that `dials` may make TCP connections, and gets no Unix socket
/// that it could connect.
///
/// # Errors
/// One sentence; on a kernel without seccomp, for one.
pub fn forbid_calls(dials: bool) -> Result<(), String> {
    for program in programs(dials)? {
        seccompiler::apply_filter_all_threads(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Forbids the calling process, for ever, all calls but those with which it answers on a socket that is open,
/// looks for a file, and schedules a thread.
///
/// # Errors
/// As [`forbid_calls`].
pub fn forbid_all_but_scheduling() -> Result<(), String> {
    let rules = calls::scheduling().into_iter().map(|call| (call, Vec::new())).collect();
    seccompiler::apply_filter_all_threads(&allowing(rules)?).map_err(|error| error.to_string())
}

/// Forbids the calling process, for ever, all calls but those with which it answers on a socket that is open,
/// looks at the network and its sockets, and gives them receive queues.
///
/// # Errors
/// As [`forbid_calls`].
pub fn forbid_all_but_queues() -> Result<(), String> {
    seccompiler::apply_filter_all_threads(&allowing(calls::queues()?)?).map_err(|error| error.to_string())
}

/// The two filters: the calls that are allowed, and the calls that fail as if the kernel did not have them.
fn programs(dials: bool) -> Result<[BpfProgram; 2], String> {
    let unknown = SeccompAction::Errno(Errno::ENOSYS as u32);
    let hidden = compiled(calls::hidden(), SeccompAction::Allow, unknown)?;
    Ok([hidden, allowing(calls::allowed(dials)?)?])
}

/// A filter that allows these calls; all others fail with EPERM.
fn allowing(rules: calls::Rules) -> Result<BpfProgram, String> {
    compiled(rules, SeccompAction::Errno(Errno::EPERM as u32), SeccompAction::Allow)
}

fn compiled(rules: calls::Rules, others: SeccompAction, these: SeccompAction) -> Result<BpfProgram, String> {
    let arch = std::env::consts::ARCH;
    let target = arch.try_into().map_err(|_| format!("there is no filter for the processor {arch}"))?;
    let filter = SeccompFilter::new(rules, others, these, target);
    filter.and_then(TryInto::try_into).map_err(|error: seccompiler::BackendError| error.to_string())
}

/// The restrictions in force for this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// No program that it runs gets more privileges than it has; in all threads.
    pub no_new_privs: bool,
    /// System calls are filtered; in all threads.
    pub seccomp: bool,
    /// The capabilities that any thread has, one bit each.
    pub capabilities: u64,
}

impl Confinement {
    /// As the kernel says it now.
    pub fn here() -> Self {
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
        let each: Vec<Self> = texts.map(|text| Self::parse(&text)).collect();
        Self {
            no_new_privs: !each.is_empty() && each.iter().all(|thread| thread.no_new_privs),
            seccomp: !each.is_empty() && each.iter().all(|thread| thread.seccomp),
            capabilities: each.iter().fold(0, |all, thread| all | thread.capabilities),
        }
    }

    fn parse(status: &str) -> Self {
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).unwrap_or_default()
        };
        Self {
            no_new_privs: value("NoNewPrivs:") == "1",
            seccomp: value("Seccomp:") == "2",
            capabilities: u64::from_str_radix(value("CapPrm:"), 16).unwrap_or(0),
        }
    }

    /// The names of the capabilities, without the prefix; a number for one without a name here.
    pub fn capability_names(&self) -> Vec<String> {
        let kept = (0..=CAPABILITIES_MAX).filter(|bit| self.capabilities & 1 << bit != 0);
        kept.map(|bit| match bit {
            NET_ADMIN => "net_admin".into(),
            NET_RAW => "net_raw".into(),
            IPC_LOCK => "ipc_lock".into(),
            SYS_NICE => "sys_nice".into(),
            BPF => "bpf".into(),
            other => other.to_string(),
        })
        .collect()
    }
}

impl std::fmt::Display for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.seccomp { "system calls filtered" } else { "system calls NOT filtered" })?;
        f.write_str(if self.no_new_privs { ", no new privileges" } else { ", new privileges possible" })?;
        let names = self.capability_names();
        match names.len() {
            0 => f.write_str(", no capabilities"),
            // Such a node was never confined.
            10.. => write!(f, ", {} capabilities", names.len()),
            _ => write!(f, ", capabilities {}", names.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests;
