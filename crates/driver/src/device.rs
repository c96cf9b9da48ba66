//! The interface of every frame device.

pub use crate::filter::{SHUT_OUT_MAX, ShutOut};
use crate::tunnel::Trouble;
use rota_units::{Instant, Span};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use thiserror::Error;

/// Octets of an Ethernet header: two addresses and the EtherType.
pub const ETHERNET_HEADER: usize = 14;
/// The address that every station answers to.
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// How far a receive stamp can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Taken when the frame arrived, by the kernel or by the in-process segment.
    Kernel,
    /// The frame came without a stamp: `at` is only the time it was taken from the queue.
    Missing,
    /// The stamp lies in the future or the wall clock was stepped: `at` is only the time of dequeuing, and
    /// nothing that a lease depends on may be derived from it.
    Invalid,
}

/// One received frame; its octets are in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrame {
    /// Octets of the frame, Ethernet header included, frame check sequence not.
    pub len: usize,
    /// When the frame arrived, on the monotonic clock, never later than it truly did if `stamp` is
    /// [`Stamp::Kernel`]; otherwise the same as `dequeued`.
    pub at: Instant,
    /// How far `at` can be trusted.
    pub stamp: Stamp,
    /// When this program took the frame from the device's queue.
    pub dequeued: Instant,
    /// Addressed to all or to a group, not to this station alone.
    pub broadcast: bool,
}

/// What became of a frame handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// The device has it.
    Sent,
    /// Nothing was sent: the device's queue is full. The caller keeps the frame.
    NoRoom,
}

/// What shows that a station's frames have left the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The interface has neither a queueing discipline nor a ring: sending is handing over.
    NoQueue,
    /// The queue is the driver's own and was seen empty.
    OwnQueue,
    /// The queueing discipline's backlog and the card's bytes in flight (BQL) were both read as zero.
    QdiscAndBql,
    /// The queueing discipline's backlog was read as zero and this time (ring × MTU / rate) has passed
    /// since the last frame was handed over.
    QdiscAndWait(Span),
    /// Nothing could be read; this time (ring × MTU / rate) has passed since the last frame was handed over.
    Wait(Span),
}

/// Whether frames handed over may still be waiting to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// Everything has left.
    Empty {
        /// How this is known.
        evidence: Evidence,
    },
    /// Frames wait, or it cannot yet be excluded.
    Pending,
}

/// Why a device refused or failed; none of these ends the device except [`DeviceError::Gone`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// The interface is down; it works again once it is up.
    #[error("the interface is down; frames flow again once it is up")]
    LinkDown,
    /// The interface was removed.
    #[error("the interface no longer exists; open the device again once it is back")]
    Gone,
    /// Longer than the interface carries.
    #[error("a frame of {len} octets was handed over, but this interface carries at most {max}")]
    FrameTooLong {
        /// Octets of the frame.
        len: usize,
        /// Octets that would have been right, Ethernet header included.
        max: usize,
    },
    /// Not even an Ethernet header.
    #[error("a frame of {len} octets was handed over, but an Ethernet header alone has 14")]
    FrameTooShort {
        /// Octets of the frame.
        len: usize,
    },
    /// The receive buffer was too small; the frame is lost.
    #[error("a frame longer than the receive buffer of {room} octets arrived and is lost; give MTU + 14")]
    Truncated {
        /// Octets of the buffer.
        room: usize,
    },
    /// The kernel said no for another reason.
    #[error("{call} failed: {reason}", reason = std::io::Error::from_raw_os_error(*errno))]
    Os {
        /// The system call.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
}

/// What a device has seen since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Frames handed to the caller.
    pub received: u64,
    /// Frames that the device took.
    pub sent: u64,
    /// Times a frame was refused because a queue was full.
    pub no_room: u64,
    /// Times the device reported that its link went down.
    pub link_down: u64,
    /// Frames lost because the caller's buffer was too small.
    pub truncated: u64,
    /// Frames without a receive stamp.
    pub stamps_missing: u64,
    /// Frames whose receive stamp could not be trusted.
    pub stamps_invalid: u64,
    /// Frames that the kernel (or the segment) dropped because this station did not fetch them in time.
    pub receive_drops: u64,
}

/// One attachment to one Ethernet segment. Neither call blocks, and none allocates.
pub trait FrameDevice {
    /// This station's hardware address.
    fn mac(&self) -> [u8; 6];

    /// Octets of payload that one frame carries at most, without the Ethernet header.
    fn mtu(&self) -> u16;

    /// Takes the oldest frame from the device's queue into `buf`, which should hold `mtu() + 14` octets.
    /// `None` means that the queue is empty.
    ///
    /// # Errors
    /// [`DeviceError::LinkDown`] once after the link went down; [`DeviceError::Truncated`] for a frame that
    /// did not fit; [`DeviceError::Gone`] and [`DeviceError::Os`] as they say.
    fn receive(&mut self, buf: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError>;

    /// True if a frame waits, as far as this is known without asking the kernel.
    fn has_frame(&self) -> bool {
        true
    }

    /// Hands one whole frame, Ethernet header first, to the device.
    ///
    /// # Errors
    /// A frame of impossible length, a link that is down, or a kernel that refuses. Nothing was sent then.
    fn transmit(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError>;

    /// Whether the frames handed over have left, and how that is known.
    fn backlog(&mut self) -> Backlog;

    /// What to wait on, readable while a frame may be taken; `None` if the device must be polled.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Whether the interface is up and has a carrier.
    fn link_up(&mut self) -> bool;

    /// What to wait on for IEEE 802.2 frames, where they do not come with [`FrameDevice::receive`].
    fn llc_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Takes the oldest IEEE 802.2 frame into `buf`, where they do not come with [`FrameDevice::receive`];
    /// its length.
    ///
    /// # Errors
    /// As [`FrameDevice::receive`].
    fn receive_llc(&mut self, _buf: &mut [u8]) -> Result<Option<usize>, DeviceError> {
        Ok(None)
    }

    /// Takes no more frames from these sources, and from all others again, where it can; with `known`, only
    /// frames that tell one of these incarnations.
    ///
    /// # Errors
    /// [`DeviceError::Os`].
    fn shut_out(&mut self, _sources: &[ShutOut], _known: Option<&[u32]>) -> Result<(), DeviceError> {
        Ok(())
    }

    /// What the device has counted.
    fn counters(&mut self) -> DeviceCounters {
        DeviceCounters::default()
    }

    /// The findings of a tunnel about its way; none of another device.
    fn trouble(&self) -> Option<Arc<Trouble>> {
        None
    }
}
