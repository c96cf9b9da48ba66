//! Capabilities of the calling thread, and the scheduling of another one.

use nix::errno::Errno;

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// One half of the three sets; the kernel takes two of them.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The permitted capabilities of the calling thread, one bit each.
pub(crate) fn permitted() -> Result<u64, Errno> {
    let mut header = Header { version: CAPABILITY_VERSION_3, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: version 3 means one header and two halves, which the kernel fills; both outlive the call.
    let code = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) };
    Errno::result(code)?;
    Ok(u64::from(halves[1].permitted) << 32 | u64::from(halves[0].permitted))
}

/// Leaves the calling thread `capabilities`, permitted and effective, and nothing to inherit.
pub(crate) fn set(capabilities: u64) -> Result<(), Errno> {
    let mut header = Header { version: CAPABILITY_VERSION_3, pid: 0 };
    let half = |bits: u32| Half { effective: bits, permitted: bits, inheritable: 0 };
    let halves = [half(capabilities as u32), half((capabilities >> 32) as u32)];
    // SAFETY: version 3 means one header and two halves, which the kernel reads; both outlive the call.
    let code = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) };
    Errno::result(code).map(drop)
}

/// Makes sure that nothing this thread runs ever gets the capability; EINVAL past the last one.
pub(crate) fn drop_from_bounding(capability: u8) -> Result<(), Errno> {
    // SAFETY: this operation takes one number.
    let code = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) };
    Errno::result(code).map(drop)
}

/// Programs that this thread runs get no capabilities from it.
pub(crate) fn clear_ambient() -> Result<(), Errno> {
    // SAFETY: this operation takes no further argument.
    let code = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    Errno::result(code).map(drop)
}
