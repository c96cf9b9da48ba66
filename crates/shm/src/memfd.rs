//! Memory files: made by the node, never named, sealed so that neither side can hurt the other.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;

/// Seals that fix a file's size: without them a peer could cut pages away under the other's feet.
pub(crate) const SIZE_SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW);
/// Seals of a finished file. The size seals alone still allow punching holes; no new writer closes that
/// door, while mappings that already exist stay writable.
pub(crate) const FINAL_SEALS: SealFlag =
    SIZE_SEALS.union(SealFlag::F_SEAL_FUTURE_WRITE).union(SealFlag::F_SEAL_SEAL);

/// A zeroed memory file of `octets`; the name only shows in /proc.
pub(crate) fn create(name: &str, octets: usize) -> nix::Result<OwnedFd> {
    let plain = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let never_run = MFdFlags::from_bits_retain(libc::MFD_NOEXEC_SEAL);
    let file = match memfd_create(name, plain | never_run) {
        // Kernels before 6.3 do not know the flag.
        Err(Errno::EINVAL) => memfd_create(name, plain)?,
        other => other?,
    };
    let length = libc::off_t::try_from(octets).map_err(|_| Errno::EFBIG)?;
    ftruncate(&file, length)?;
    Ok(file)
}

/// Adds `seals` and confirms that they are there.
pub(crate) fn seal(file: impl AsFd, seals: SealFlag) -> nix::Result<()> {
    if !seals_of(&file)?.contains(seals) {
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    }
    if seals_of(&file)?.contains(seals) { Ok(()) } else { Err(Errno::EPERM) }
}

/// The seals on a file; an error when it is no memory file.
pub(crate) fn seals_of(file: impl AsFd) -> nix::Result<SealFlag> {
    let bits = fcntl(&file, FcntlArg::F_GET_SEALS)?;
    Ok(SealFlag::from_bits_retain(bits))
}

/// The file's size in octets, provided that nobody can change it any more.
pub(crate) fn fixed_octets(file: impl AsFd) -> nix::Result<usize> {
    if !seals_of(&file)?.contains(SIZE_SEALS) {
        return Err(Errno::EPERM);
    }
    usize::try_from(fstat(&file)?.st_size).map_err(|_| Errno::EFBIG)
}
