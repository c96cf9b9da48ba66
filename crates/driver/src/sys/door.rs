//! Making a child start inside a lab station.

use crate::netns::Door;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// Lets the child of `command` enter the namespaces of `door` before it becomes the program, lets the kernel
/// kill it when the thread that spawned it ends, and gives it a clean signal mask.
pub fn enter_on_exec(command: &mut Command, door: Arc<Door>) {
    let parent = nix::unistd::getpid();
    let enter = move || {
        step_inside(&door)?;
        // Entering a user namespace clears this setting, so it comes after.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The spawner may have died before the line above.
        if nix::unistd::getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // The lab's keeper reads its signals from a descriptor and blocks them; a child inherits that.
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec; it makes system calls only, takes no lock and
    // allocates nothing (errors are bare numbers).
    unsafe { command.pre_exec(enter) };
}

/// Enters every namespace of `door`, keeping the working directory: entering a mount namespace moves it to /.
fn step_inside(door: &Door) -> io::Result<()> {
    let mut here = [0u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer is as long as we say, and getcwd writes a string that ends in it.
    let known = !unsafe { libc::getcwd(here.as_mut_ptr().cast(), here.len()) }.is_null();
    for namespace in door.namespaces() {
        setns(namespace, CloneFlags::empty())?;
    }
    // SAFETY: `here` holds a string closed by a zero that getcwd wrote.
    if known && unsafe { libc::chdir(here.as_ptr().cast()) } != 0 {
        return Err(io::Error::from_raw_os_error(Errno::last_raw()));
    }
    Ok(())
}
