//! Why a call was not done: an `errno`, and a sentence.

use std::borrow::Cow;

use nix::errno::Errno;
use rota::NodeError;
use rota::vc::{CircuitEnd, VcError};

use crate::face::{Fault, Status, guard};

/// A refusal of a call.
#[derive(Clone)]
pub struct No {
    pub errno: Errno,
    pub sentence: Cow<'static, str>,
    /// The reason of a program that did not take the circuit.
    pub reason: Option<u32>,
}

impl No {
    pub fn new(errno: Errno, why: impl ToString) -> Self {
        Self { errno, sentence: Cow::Owned(why.to_string()), reason: None }
    }

    pub const fn fixed(errno: Errno, why: &'static str) -> Self {
        Self { errno, sentence: Cow::Borrowed(why), reason: None }
    }

    /// Nothing is there, or no room.
    pub const fn idle() -> Self {
        Self::fixed(Errno::EAGAIN, "nothing is there yet")
    }

    pub fn is_idle(&self) -> bool {
        self.errno == Errno::EAGAIN
    }

    /// A handle that is not one, or is closed.
    pub fn no_handle(number: i32) -> Self {
        Self::new(Errno::EBADF, format!("{number} is no open handle of a circuit; rota_vc_socket makes one"))
    }

    /// The same of a listener, whose numbers are right: its service is taken, or there is no room.
    pub fn of_listener(self) -> Self {
        let errno = match self.errno {
            Errno::EINVAL => Errno::EADDRINUSE,
            Errno::ECONNREFUSED => Errno::ENOBUFS,
            other => other,
        };
        Self { errno, ..self }
    }
}

impl From<Errno> for No {
    fn from(errno: Errno) -> Self {
        Self::new(errno, format!("the system refused a descriptor: {}", errno.desc()))
    }
}

impl From<Fault> for No {
    fn from(fault: Fault) -> Self {
        let errno = match fault.status() {
            Status::TooLong => Errno::EMSGSIZE,
            _ => Errno::EINVAL,
        };
        Self::new(errno, fault.sentence())
    }
}

impl From<VcError> for No {
    fn from(error: VcError) -> Self {
        let errno = match &error {
            VcError::TimedOut => return Self::idle(),
            VcError::Ended(CircuitEnd::Declined(_)) => Errno::ECONNREFUSED,
            VcError::Ended(_) => Errno::ECONNRESET,
            VcError::NodeGone | VcError::Node(NodeError::Socket(_)) => Errno::ENETDOWN,
            VcError::Finished => Errno::EPIPE,
            VcError::TooLong(..) => Errno::EMSGSIZE,
            VcError::Unfinished | VcError::WrongKind(_) => Errno::EINVAL,
            VcError::Node(NodeError::Denied { wrong_use: true, .. }) => Errno::EINVAL,
            VcError::Node(NodeError::Denied { .. }) | VcError::Refused(_) => Errno::ECONNREFUSED,
            VcError::Node(NodeError::NotThere(_)) => Errno::EHOSTUNREACH,
            _ => Errno::EIO,
        };
        let reason = match &error {
            VcError::Ended(CircuitEnd::Declined(reason)) => Some(*reason),
            _ => None,
        };
        Self { reason, ..Self::new(errno, error) }
    }
}

/// Runs a call: its number, or -1 with `errno` and this thread's sentence.
pub fn call(call: impl FnOnce() -> Result<isize, No>) -> isize {
    let (mut answer, mut errno) = (-1, Errno::EIO);
    let status = guard(|| match call() {
        Ok(number) => {
            answer = number;
            Ok(())
        }
        Err(no) => {
            errno = no.errno;
            let idle = no.is_idle() && matches!(no.sentence, Cow::Borrowed(_));
            Err(if idle { Fault::idle() } else { Fault::new(Status::Failed, no.sentence) })
        }
    });
    if status != 0 {
        errno.set();
        return -1;
    }
    answer
}
