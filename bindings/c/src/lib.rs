//! The C face of the library `rota`: what `include/rota.h` declares.
//!
//! Everything here turns C arguments into checked values, calls the Rust library, and turns its answer into a
//! status and a sentence, or for `include/rota_vc.h` (`vc`) into an `errno` and a sentence.
//! No call unwinds into C, none trusts a pointer to be non-null, and none keeps one.
//! The ten calls of SHIPNET (`csrc/llcio.c`), the six of RETHER (`csrc/rether.c`) and the seven of RCAP
//! (`csrc/rcap.c`) are plain C upon this face.

mod certificate;
mod channel;
mod circuit;
mod face;
mod invitee;
mod llc;
mod more;
mod stream;
mod udp;
mod vc;
mod withdrawn;

/// The library's version.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_version() -> *const std::ffi::c_char {
    // With its end: the text lives as long as the library.
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
