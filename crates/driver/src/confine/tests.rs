use super::*;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Runs `work` in a thread that the filters hold, and no other.
fn confined<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    held(false, work)
}

/// The same for one that may connect by TCP or not.
fn held<T: Send + 'static>(dials: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        for program in programs(dials).unwrap() {
            seccompiler::apply_filter(&program).unwrap();
        }
        work()
    });
    thread.join().unwrap()
}

#[test]
fn a_confined_thread_opens_no_raw_socket_and_makes_no_namespace() {
    let (raw, plain, space, program, written, made) = confined(|| {
        let open = |family, kind| socket(family, kind, SockFlag::SOCK_CLOEXEC, None).map(drop);
        (
            open(AddressFamily::Packet, SockType::Raw),
            open(AddressFamily::Netlink, SockType::Raw),
            unshare(CloneFlags::CLONE_NEWUSER),
            std::process::Command::new("/bin/true").spawn().map(|mut child| child.wait().is_ok()),
            std::fs::write("/tmp/rota-confined", "").map_err(|error| error.raw_os_error()),
            crate::sys::schedule::set_fifo(1),
        )
    });
    assert_eq!((raw, plain), (Err(Errno::EPERM), Ok(())));
    assert_eq!((space, made), (Err(Errno::EPERM), Err(Errno::EPERM)));
    assert_eq!(program.map_err(|error| error.raw_os_error()).unwrap_err(), Some(libc::EPERM));
    assert_eq!(written, Err(Some(libc::EPERM)));
}

/// A broker of root that was taken over could write root's files.
#[test]
fn a_thread_that_only_schedules_opens_no_file() {
    let rules = calls::scheduling().into_iter().map(|call| (call, Vec::new())).collect();
    let program = allowing(rules).unwrap();
    let thread = std::thread::spawn(move || {
        seccompiler::apply_filter(&program).unwrap();
        let own = nix::unistd::gettid();
        let opened = std::fs::read("/proc/self/status").map_err(|error| error.raw_os_error());
        let made = std::os::unix::net::UnixStream::pair().map_err(|error| error.raw_os_error());
        let found = std::path::Path::new(&format!("/proc/self/task/{own}")).exists();
        // The kernel answers, not the filter.
        let scheduled = crate::realtime::set_fifo_of(nix::unistd::Pid::from_raw(i32::MAX), 1);
        (opened.map(drop), made.map(drop), found, scheduled)
    });
    let (opened, made, found, scheduled) = thread.join().unwrap();
    assert_eq!((opened, made), (Err(Some(libc::EPERM)), Err(Some(libc::EPERM))));
    assert_eq!((found, scheduled), (true, Err(Errno::ESRCH)));
}

/// A node of root that was taken over could kill any process of root.
#[test]
fn a_confined_thread_signals_nobody_else() {
    let mut other = std::process::Command::new("sleep").arg("30").spawn().expect("there is sleep");
    let pid = nix::unistd::Pid::from_raw(other.id().cast_signed());
    let own = nix::unistd::getpid();
    let (killed, asked, itself) = confined(move || {
        let kill = |pid| nix::sys::signal::kill(pid, None);
        (kill(pid), crate::sys::pidfd::pidfd_open(pid.as_raw().cast_unsigned()).map(drop), kill(own))
    });
    other.kill().expect("it is ours");
    other.wait().expect("it is ours");
    assert_eq!((killed, asked, itself), (Err(Errno::EPERM), Err(Errno::EPERM), Err(Errno::EPERM)));
    assert!(confined(|| getrlimit(Resource::RLIMIT_NOFILE)).is_ok());
}

/// On a kernel without filters its programs could get new privileges.
#[test]
fn a_thread_that_gives_its_rights_away_gets_no_new_ones_without_a_filter_either() {
    let work = || {
        keep_capabilities(&[]).unwrap();
        Confinement::parse(&std::fs::read_to_string("/proc/thread-self/status").unwrap()).no_new_privs
    };
    assert!(std::thread::spawn(work).join().unwrap());
}

/// The owner of a descriptor gets the kernel's signals, SIGKILL too; and a socket's path is a file.
#[test]
fn a_confined_thread_finds_no_detour_to_others() {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    let place = std::env::temp_dir().join(format!("rota-detour-{}", std::process::id()));
    let _ = std::fs::remove_file(&place);
    let listener = UnixListener::bind(&place).unwrap();
    let there = place.clone();
    let (signalled, plain, made, connected) = confined(move || {
        let (one, _other) = UnixStream::pair().unwrap();
        (
            fcntl(&one, FcntlArg::F_SETFL(OFlag::O_ASYNC)),
            fcntl(&one, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)),
            UnixDatagram::bind(there.with_extension("made")).map_err(|error| error.raw_os_error()).map(drop),
            UnixStream::connect(&there).map_err(|error| error.raw_os_error()).map(drop),
        )
    });
    drop(listener);
    let _ = std::fs::remove_file(&place);
    assert_eq!((signalled, plain), (Err(Errno::EPERM), Ok(0)));
    assert_eq!((made, connected), (Err(Some(libc::EPERM)), Err(Some(libc::EPERM))));
}

/// A node with neighbours reaches them, and no service of this host behind a path.
#[test]
fn a_thread_that_dials_connects_by_tcp_and_to_no_unix_socket() {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    let place = std::env::temp_dir().join(format!("rota-dials-{}", std::process::id()));
    let _ = std::fs::remove_file(&place);
    let unix = UnixListener::bind(&place).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let (to, there) = (tcp.local_addr().unwrap(), place.clone());
    let work = move || {
        let failed = |error: std::io::Error| error.raw_os_error();
        (
            TcpStream::connect(to).map_err(failed).map(drop),
            UnixStream::connect(&there).map_err(failed).map(drop),
            UnixDatagram::pair().map_err(failed).map(drop),
            UnixStream::pair().map_err(failed).map(drop),
        )
    };
    let forbidden = Err(Some(libc::EPERM));
    assert_eq!(held(true, work.clone()), (Ok(()), forbidden, forbidden, Ok(())));
    assert_eq!(held(false, work), (forbidden, forbidden, Ok(()), Ok(())));
    drop(unix);
    let _ = std::fs::remove_file(&place);
}

#[test]
fn a_confined_thread_works_on() {
    let done = confined(|| {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let thread = std::thread::spawn(|| 7).join().unwrap();
        let file = nix::sys::memfd::memfd_create("test", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
        nix::unistd::ftruncate(&file, 4_096).unwrap();
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        drop((one, other));
        let seccomp = Confinement::parse(&std::fs::read_to_string("/proc/thread-self/status").unwrap());
        (text.is_empty(), thread, seccomp.seccomp && seccomp.no_new_privs)
    });
    assert_eq!(done, (false, 7, true));
}

#[test]
fn capabilities_go_and_do_not_come_back() {
    let (kept, back) = std::thread::spawn(|| {
        keep_capabilities(&[NET_ADMIN]).unwrap();
        let kept = privileges::permitted().unwrap() & !(1 << IPC_LOCK);
        (kept & !(1 << NET_ADMIN), privileges::set(1 << NET_RAW))
    })
    .join()
    .unwrap();
    assert_eq!((kept, back), (0, Err(Errno::EPERM)));
}

#[test]
fn what_is_in_force_is_said() {
    let status = "Name:\trota\nCapPrm:\t0000000000001000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
    let text = Confinement::parse(status).to_string();
    assert_eq!(text, "system calls filtered, no new privileges, capabilities net_admin");
    let free = Confinement::parse("CapPrm:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n").to_string();
    assert_eq!(free, "system calls NOT filtered, new privileges possible, no capabilities");
}
