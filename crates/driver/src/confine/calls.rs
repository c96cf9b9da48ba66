//! The system calls of a node after its start.

use libc::c_long;
use seccompiler::{
    SeccompCmpArgLen as Width, SeccompCmpOp as Op, SeccompCondition as Condition, SeccompRule as Rule,
};
use std::collections::BTreeMap;

pub(super) type Rules = BTreeMap<c_long, Vec<Rule>>;

/// Those that may be called with any arguments.
#[rustfmt::skip]
const ANY: &[c_long] = &[
    // Memory.
    libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_mprotect,
    libc::SYS_mlock, libc::SYS_mlock2, libc::SYS_mlockall, libc::SYS_munlock, libc::SYS_munlockall,
    libc::SYS_mincore, libc::SYS_msync, libc::SYS_membarrier, libc::SYS_memfd_create,
    // Files that are open, and looking at others.
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64,
    libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_lseek, libc::SYS_close, libc::SYS_close_range,
    libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_statfs, libc::SYS_fstatfs,
    libc::SYS_readlinkat, libc::SYS_getdents64, libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_getcwd,
    libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fsync, libc::SYS_fdatasync,
    libc::SYS_flock, libc::SYS_dup, libc::SYS_dup3, libc::SYS_pipe2, libc::SYS_unlinkat,
    // Sockets.
    libc::SYS_socketpair, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4,
    libc::SYS_shutdown, libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_getsockopt,
    libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    // Waiting.
    libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2,
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_eventfd2, libc::SYS_signalfd4, libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime, libc::SYS_futex, libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep, libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // Threads, signals, and what a process is.
    libc::SYS_exit, libc::SYS_exit_group, libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn, libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigpending, libc::SYS_sigaltstack,
    libc::SYS_wait4, libc::SYS_waitid, libc::SYS_set_robust_list, libc::SYS_get_robust_list, libc::SYS_rseq,
    libc::SYS_set_tid_address, libc::SYS_gettid, libc::SYS_getpid, libc::SYS_getppid, libc::SYS_getuid,
    libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getgroups, libc::SYS_getresuid,
    libc::SYS_getresgid, libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_getrusage,
    libc::SYS_sysinfo, libc::SYS_uname, libc::SYS_times, libc::SYS_getcpu, libc::SYS_getrandom,
    libc::SYS_prctl, libc::SYS_capget, libc::SYS_capset, libc::SYS_getpriority, libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity, libc::SYS_sched_setaffinity, libc::SYS_sched_getscheduler,
    libc::SYS_sched_getparam, libc::SYS_sched_getattr, libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    // This process may forbid itself more.
    libc::SYS_seccomp,
];

/// The same under older names, which not every processor has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[c_long] = &[
    libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink, libc::SYS_unlink, libc::SYS_rmdir,
    libc::SYS_dup2, libc::SYS_pipe, libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait, libc::SYS_eventfd,
    libc::SYS_time, libc::SYS_getrlimit, libc::SYS_getpgrp, libc::SYS_arch_prctl, libc::SYS_getdents,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[c_long] = &[];

/// An open for writing, or one that makes a file.
const WRITES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;

/// Make a process the owner of a socket, as F_SETOWN does; not among the constants of `libc`.
const FIOSETOWN: libc::Ioctl = 0x8901;
/// The same under its older name.
const SIOCSPGRP: libc::Ioctl = 0x8902;
/// Make the kernel signal another process when a descriptor becomes ready, or type into a terminal.
const FOREIGN_IOCTLS: [libc::Ioctl; 4] = [libc::FIOASYNC, FIOSETOWN, SIOCSPGRP, libc::TIOCSTI];

/// A call is allowed where all these conditions hold.
fn all_of<const N: usize>(
    conditions: [Result<Condition, seccompiler::BackendError>; N],
) -> Result<Rule, String> {
    let conditions: Result<Vec<_>, _> = conditions.into_iter().collect();
    conditions.and_then(Rule::new).map_err(|error| error.to_string())
}

fn rule(argument: u8, width: Width, op: Op, value: u64) -> Result<Rule, String> {
    all_of([Condition::new(argument, width, op, value)])
}

/// The commands of fcntl. None of them names a process: an owner of a descriptor gets the kernel's signals,
/// and the filter of kill would not see them.
fn descriptor_rules() -> Result<Vec<Rule>, String> {
    let is = |command: i32| Condition::new(1, Width::Dword, Op::Eq, command as u64);
    let plain = [
        libc::F_DUPFD,
        libc::F_DUPFD_CLOEXEC,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_ADD_SEALS,
        libc::F_GET_SEALS,
    ];
    let mut rules: Vec<Rule> = plain.into_iter().map(|one| all_of([is(one)])).collect::<Result<_, _>>()?;
    let quiet = Condition::new(2, Width::Dword, Op::MaskedEq(libc::O_ASYNC as u64), 0);
    rules.push(all_of([is(libc::F_SETFL), quiet])?);
    Ok(rules)
}

/// The kinds of sockets, without the flags beside them.
const KINDS: u64 = 0xf;

/// The calls of a process that connects to others by TCP. A filter does not see the address of `connect`, so
/// there is no Unix socket that could be connected: none can be made, and those of a pair are connected
/// already, unless they are for datagrams.
fn dial(rules: &mut Rules) -> Result<(), String> {
    rules.insert(libc::SYS_connect, Vec::new());
    let streams = rule(1, Width::Dword, Op::MaskedEq(KINDS), libc::SOCK_STREAM as u64)?;
    rules.insert(libc::SYS_socketpair, vec![streams]);
    Ok(())
}

/// The allowed calls, and the arguments that each of them allows.
pub(super) fn allowed(dials: bool) -> Result<Rules, String> {
    let mut rules: Rules = ANY.iter().chain(OLD).map(|call| (*call, Vec::new())).collect();
    let family = |family: i32| rule(0, Width::Dword, Op::Eq, family as u64);
    let families = [libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6].into_iter();
    let families = families.chain((!dials).then_some(libc::AF_UNIX));
    rules.insert(libc::SYS_socket, families.map(family).collect::<Result<_, _>>()?);
    if dials {
        dial(&mut rules)?;
    }
    // A packet socket's options open rings and fan-outs; those that are wanted were set at start.
    let packet = rule(1, Width::Dword, Op::Ne, libc::SOL_PACKET as u64)?;
    rules.insert(libc::SYS_setsockopt, vec![packet]);
    rules.insert(libc::SYS_openat, vec![rule(2, Width::Dword, Op::MaskedEq(WRITES), 0)?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![rule(1, Width::Dword, Op::MaskedEq(WRITES), 0)?]);
    rules.insert(libc::SYS_fcntl, descriptor_rules()?);
    let foreign = FOREIGN_IOCTLS.map(|call| Condition::new(1, Width::Dword, Op::Ne, call));
    rules.insert(libc::SYS_ioctl, vec![all_of(foreign)?]);
    // Threads, and no processes.
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(libc::SYS_clone, vec![rule(0, Width::Qword, Op::MaskedEq(thread), thread)?]);
    // A signal to this process, as an abort sends it, and its own limits; none of any other process.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![rule(0, Width::Dword, Op::Eq, own)?]);
    rules.insert(libc::SYS_prlimit64, vec![rule(0, Width::Dword, Op::Eq, 0)?]);
    // The filter that hides it has the last word.
    rules.insert(libc::SYS_clone3, Vec::new());
    Ok(rules)
}

/// The calls of a process that only gives threads a scheduling class.
#[rustfmt::skip]
const SCHEDULING: &[c_long] = &[
    libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_mprotect,
    libc::SYS_read, libc::SYS_write, libc::SYS_writev, libc::SYS_close, libc::SYS_ppoll,
    libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sched_setscheduler,
    libc::SYS_futex, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn, libc::SYS_restart_syscall, libc::SYS_sigaltstack, libc::SYS_gettid,
    libc::SYS_getpid, libc::SYS_getrandom, libc::SYS_clock_gettime, libc::SYS_sched_yield,
];

/// The same under older names.
#[cfg(target_arch = "x86_64")]
const SCHEDULING_OLD: &[c_long] = &[libc::SYS_stat, libc::SYS_lstat, libc::SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const SCHEDULING_OLD: &[c_long] = &[];

pub(super) fn scheduling() -> Vec<c_long> {
    SCHEDULING.iter().chain(SCHEDULING_OLD).copied().collect()
}

/// The calls of a process that gives sockets receive queues, beside those of one that schedules.
#[rustfmt::skip]
const QUEUES: &[c_long] = &[
    libc::SYS_lseek, libc::SYS_fstat, libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_getsockopt,
    libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_setsockopt, libc::SYS_connect, libc::SYS_bind,
    libc::SYS_pread64, libc::SYS_fcntl, libc::SYS_epoll_create1, libc::SYS_epoll_ctl,
];
/// Commands of bpf: maps and their values, programs, what stands at a hook, links.
const BPF_COMMANDS: [u64; 7] = [0, 1, 2, 3, 5, 16, 28];

pub(super) fn queues() -> Result<Rules, String> {
    // Such a process schedules nothing.
    let plain = scheduling().into_iter().filter(|call| *call != libc::SYS_sched_setscheduler);
    let mut rules: Rules = plain.chain(QUEUES.iter().copied()).map(|call| (call, Vec::new())).collect();
    let family = |family: i32| rule(0, Width::Dword, Op::Eq, family as u64);
    let families = [libc::AF_NETLINK, libc::AF_INET].map(family);
    rules.insert(libc::SYS_socket, families.into_iter().collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_openat, vec![rule(2, Width::Dword, Op::MaskedEq(WRITES), 0)?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![rule(1, Width::Dword, Op::MaskedEq(WRITES), 0)?]);
    let commands = BPF_COMMANDS.map(|command| rule(0, Width::Dword, Op::Eq, command));
    rules.insert(libc::SYS_bpf, commands.into_iter().collect::<Result<_, _>>()?);
    Ok(rules)
}

/// Calls whose arguments a filter cannot read: the caller falls back to the older call.
pub(super) fn hidden() -> Rules {
    [(libc::SYS_clone3, Vec::new())].into()
}
