//! Namespaces without names: they live as long as a descriptor or a process holds them, so nothing is left
//! behind however their keeper ends.
//!
//! Every step into a namespace is made by a thread that ends right after it. The process itself never moves.

use crate::netlink::{Link, NetlinkError, Route};
use crate::sys;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How a lab is kept apart from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Namespaces made with the privileges this process already had.
    Root,
    /// Namespaces inside a user namespace that this process made.
    UserNamespace,
}

impl core::fmt::Display for Isolation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::UserNamespace => "user-namespace",
        })
    }
}

/// Why a namespace could not be made or entered.
#[derive(Debug, thiserror::Error)]
pub enum NsError {
    /// Neither this process nor a user namespace of its own may configure networks.
    #[error(
        "this user may not make network namespaces here ({0}): run it as root, or allow unprivileged user \
         namespaces (on Ubuntu: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)"
    )]
    NotAllowed(&'static str),
    /// A user namespace is for processes with one thread.
    #[error("a user namespace must be entered before the process starts its first thread")]
    Threads,
    /// A call failed.
    #[error("could not {what}: {}", .errno.desc())]
    Call {
        /// What was tried, as a verb phrase.
        what: &'static str,
        /// The kernel's error number.
        errno: Errno,
    },
    /// The kernel refused a change inside the namespace.
    #[error("{0}")]
    Netlink(#[from] NetlinkError),
}

fn call(what: &'static str) -> impl FnOnce(Errno) -> NsError {
    move |errno| NsError::Call { what, errno }
}

fn io_call(what: &'static str) -> impl FnOnce(std::io::Error) -> NsError {
    move |error| NsError::Call { what, errno: Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)) }
}

/// Runs `work` in a thread of its own, whose namespaces end with it.
fn aside<T: Send>(work: impl FnOnce() -> Result<T, NsError> + Send) -> Result<T, NsError> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().spawn_scoped(scope, work).map_err(io_call("start a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Opens a namespace of the calling thread.
fn own(kind: &str) -> Result<OwnedFd, NsError> {
    let file = fs::File::open(format!("/proc/thread-self/ns/{kind}"));
    file.map(OwnedFd::from).map_err(io_call("open a namespace under /proc"))
}

/// Gives this process the right to make network namespaces: nothing to do with privileges, else a user
/// namespace of its own in which it is root. The rights are probed by *using* them, for Ubuntu's AppArmor
/// lets `unshare` succeed and then denies everything.
///
/// # Errors
/// Neither works, or the process already has threads.
pub fn isolate() -> Result<Isolation, NsError> {
    if probe().is_ok() {
        return Ok(Isolation::Root);
    }
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| match errno {
        Errno::EINVAL => NsError::Threads,
        errno => NsError::NotAllowed(errno.desc()),
    })?;
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {uid} 1")),
        ("gid_map", format!("0 {gid} 1")),
    ];
    for (file, text) in maps {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|_| NsError::NotAllowed("its user map may not be written"))?;
    }
    match probe() {
        Ok(()) => Ok(Isolation::UserNamespace),
        Err(NsError::Call { errno, .. } | NsError::Netlink(NetlinkError { errno, .. })) => {
            Err(NsError::NotAllowed(errno.desc()))
        }
        Err(other) => Err(other),
    }
}

/// Makes a network namespace and configures something in it.
fn probe() -> Result<(), NsError> {
    aside(|| {
        unshare(CloneFlags::CLONE_NEWNET).map_err(call("make a network namespace"))?;
        loopback_up(&mut Route::here()?)
    })
}

fn loopback_up(route: &mut Route) -> Result<(), NsError> {
    let lo = route.index_of("lo")?;
    route.set_link(lo, Link { up: true, ..Link::default() })?;
    Ok(())
}

/// The user namespace this process is in, for those who must enter it first.
///
/// # Errors
/// /proc is not there.
pub fn own_user_namespace() -> Result<OwnedFd, NsError> {
    own("user")
}

/// A host of its own: a network namespace and a host name. It lives as long as this value, or a process
/// in it.
#[derive(Debug)]
pub struct Host {
    net: OwnedFd,
    uts: OwnedFd,
}

impl Host {
    /// Makes a host called `name` with its loopback up and IPv6 off.
    ///
    /// # Errors
    /// No permission.
    pub fn create(name: &str) -> Result<Self, NsError> {
        aside(|| {
            unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS)
                .map_err(call("make a network namespace"))?;
            nix::unistd::sethostname(name).map_err(call("set the host name of a namespace"))?;
            without_ipv6();
            loopback_up(&mut Route::here()?)?;
            Ok(Self { net: own("net")?, uts: own("uts")? })
        })
    }

    /// Runs `work` in a thread that is inside this host's network namespace.
    ///
    /// # Errors
    /// The namespace could not be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NsError> {
        aside(|| {
            setns(&self.net, CloneFlags::CLONE_NEWNET).map_err(call("enter a network namespace"))?;
            Ok(work())
        })
    }

    /// The configuration of this host's network.
    ///
    /// # Errors
    /// The kernel gave no netlink socket.
    pub fn route(&self) -> Result<Route, NsError> {
        self.run(Route::here)?.map_err(NsError::from)
    }

    /// The network namespace, for `Veth::far_netns`.
    pub fn net(&self) -> BorrowedFd<'_> {
        self.net.as_fd()
    }

    /// The processes inside this host's network namespace, as far as this process may know.
    pub fn processes(&self) -> Vec<Pid> {
        processes_in(&[self.net.as_fd()])
    }

    /// The way in for processes: this host's namespaces, and `hosts` where the names are known.
    ///
    /// # Errors
    /// This process may open no more descriptors.
    pub fn door(&self, hosts: Option<&NamesNs>) -> Result<Door, NsError> {
        let mut fds = vec![&self.net, &self.uts];
        fds.extend(hosts.map(|hosts| &hosts.mnt));
        let fds: Result<_, _> = fds.into_iter().map(OwnedFd::try_clone).collect();
        fds.map(Door::new).map_err(io_call("copy a descriptor"))
    }
}

/// The processes whose network namespace is one of `namespaces`.
fn processes_in(namespaces: &[BorrowedFd<'_>]) -> Vec<Pid> {
    let id = |fd| nix::sys::stat::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    let wanted: Vec<_> = namespaces.iter().filter_map(|fd| id(*fd).ok()).collect();
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let inside = |pid: &i32| {
        let net = fs::metadata(format!("/proc/{pid}/ns/net"));
        net.is_ok_and(|net| wanted.contains(&(net.dev(), net.ino())))
    };
    pids.filter(inside).map(Pid::from_raw).collect()
}

/// Ends every process that `find` finds: those who end by themselves get `grace` for it, the others are
/// killed. Gives up after two seconds, for a process may hang in the kernel.
pub fn clear_out(find: impl Fn() -> Vec<Pid>, grace: Duration) {
    const GIVE_UP: Duration = Duration::from_secs(2);
    let start = Instant::now();
    loop {
        let strays = find();
        if strays.is_empty() || start.elapsed() > GIVE_UP {
            return;
        }
        if start.elapsed() >= grace {
            for pid in strays {
                // One that has just ended by itself is no error.
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// IPv6 off for what exists and what will come. On a read-only /proc/sys it stays on, which costs a few
/// router solicitations and nothing else.
fn without_ipv6() {
    for conf in ["all", "default"] {
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{conf}/disable_ipv6"), "1");
    }
}

/// Namespaces that a process is to enter, in this order.
#[derive(Debug)]
pub struct Door {
    fds: Vec<OwnedFd>,
}

impl Door {
    /// A door made of namespace descriptors, to be entered in this order.
    pub const fn new(fds: Vec<OwnedFd>) -> Self {
        Self { fds }
    }

    /// The processes that are in this door's network namespace, as far as this process may know.
    pub fn processes(&self) -> Vec<Pid> {
        processes_in(&self.namespaces().collect::<Vec<_>>())
    }

    /// The namespaces, in the order to enter them.
    pub fn namespaces(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.fds.iter().map(AsFd::as_fd)
    }
}

/// A mount namespace in which /etc/hosts knows the lab's stations.
#[derive(Debug)]
pub struct NamesNs {
    mnt: OwnedFd,
}

impl NamesNs {
    /// Makes one whose /etc/hosts reads `hosts`. No file of it is left on any disk.
    ///
    /// # Errors
    /// No permission, or a system without /etc/hosts.
    pub fn create(hosts: &str) -> Result<Self, NsError> {
        /// A directory that exists everywhere; it is covered for a moment, in this namespace only.
        const SCRATCH: &str = "/tmp";
        const FILE: &str = "/tmp/hosts";
        let none: Option<&str> = None;
        aside(|| {
            unshare(CloneFlags::CLONE_NEWNS).map_err(call("make a mount namespace"))?;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
                .map_err(call("keep the lab's mounts to itself"))?;
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            mount(Some("rota"), SCRATCH, Some("tmpfs"), flags, Some("size=256k,mode=755"))
                .map_err(call("mount a tmpfs for the lab's host names"))?;
            fs::write(FILE, hosts).map_err(io_call("write the lab's host names"))?;
            mount(Some(FILE), "/etc/hosts", none, MsFlags::MS_BIND, none)
                .map_err(call("put the lab's host names over /etc/hosts"))?;
            umount2(SCRATCH, MntFlags::MNT_DETACH).map_err(call("uncover /tmp"))?;
            Ok(Self { mnt: own("mnt")? })
        })
    }
}

/// Lets the kernel do for `name` what a card would do (checksums, cutting and joining of large frames), so
/// that what crosses the link is what would cross a wire. For the calling thread's network namespace.
///
/// # Errors
/// No such interface or no permission.
pub fn without_offloads(name: &str) -> Result<(), NsError> {
    const ETHTOOL_STXCSUM: u32 = 0x17;
    const ETHTOOL_STSO: u32 = 0x1f;
    const ETHTOOL_SGSO: u32 = 0x24;
    const ETHTOOL_SGRO: u32 = 0x2c;
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM] {
        match sys::set_offload(name, command, 0) {
            // A device without the feature cannot have it on.
            Ok(()) | Err(Errno::EOPNOTSUPP) => {}
            Err(errno) => return Err(call("turn off the offloads of a virtual link")(errno)),
        }
    }
    Ok(())
}
