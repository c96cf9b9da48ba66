//! How a command ends: one of seven exit codes and, when it failed, one sentence.

use rota::llc::LlcError;
use rota::vc::{CircuitEnd, VcError};
use rota::{AcceptError, CloseCause, DuplexError, NodeError, OpenError, SocketError, WaitError};
use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;

/// The stable exit codes of every command, and their words for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Exit {
    /// The command did what it was asked for.
    Done = 0,
    /// It failed; the sentence says why.
    Failed = 1,
    /// The command was used wrongly.
    WrongUse = 2,
    /// Admission refused the reservation.
    Refused = 3,
    /// An accepted guarantee was broken during the run.
    Broken = 4,
    /// The node of this station does not run, or the named lab, station, channel, listener or incident does
    /// not exist, each perhaps not yet.
    NotThere = 5,
    /// A signal asked the command to end before its work was done; what it had done is reported.
    Interrupted = 130,
}

impl Exit {
    /// The same as a word, for JSON.
    pub fn kind(self) -> &'static str {
        self.into()
    }

    /// The code the shell sees.
    pub fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// Writes the cause of a command's end to standard error. The command ends also if the reader of the pipe
/// is gone or reads nothing.
pub fn complain(sentence: &str) {
    put_error_line(&format!("rota: {sentence}\n"));
}

/// Writes a whole line to standard error, as [`complain`] does.
pub fn put_error_line(line: &str) {
    use nix::poll::{PollFd, PollFlags, poll};
    let errors = std::io::stderr();
    let mut wait = [PollFd::new(errors.as_fd(), PollFlags::POLLOUT)];
    let is_taken = poll(&mut wait, 200u16).is_ok()
        && wait[0].revents().is_some_and(|events| events.contains(PollFlags::POLLOUT));
    if is_taken {
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Why a command could not do what it was asked to: one clear sentence and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The code the shell sees.
    pub exit: Exit,
    /// What went wrong, where, and what would have been right.
    pub sentence: String,
}

impl Failure {
    /// The command failed (exit code 1).
    pub fn failed(sentence: impl ToString) -> Self {
        Self { exit: Exit::Failed, sentence: sentence.to_string() }
    }

    /// The command was used wrongly (exit code 2).
    pub fn wrong_use(sentence: impl Into<String>) -> Self {
        Self { exit: Exit::WrongUse, sentence: sentence.into() }
    }

    /// A signal asked for an early end (exit code 130).
    pub fn interrupted(sentence: impl Into<String>) -> Self {
        Self { exit: Exit::Interrupted, sentence: sentence.into() }
    }

    /// A named thing does not exist, perhaps not yet (exit code 5).
    pub fn not_there(sentence: impl Into<String>) -> Self {
        Self { exit: Exit::NotThere, sentence: sentence.into() }
    }

    /// The node ended while the command used it (exit code 1).
    pub fn node_gone() -> Self {
        Self::failed("the node of this station is gone; 'rota node' starts it again")
    }

    /// Admission said no (exit code 3), and why.
    pub fn refused(why: &str) -> Self {
        Self { exit: Exit::Refused, sentence: format!("refused: {why}") }
    }
}

impl From<CloseCause> for Failure {
    /// A channel that ended by itself. A lost reservation is a broken promise. For other causes the counts of
    /// units decide: programs and stations that go away are no fault of the ring. A caller that knows of no
    /// counts, because the sender's node is gone, answers with [`Exit::Broken`] instead.
    fn from(cause: CloseCause) -> Self {
        let exit = if cause == CloseCause::ReservationLost { Exit::Broken } else { Exit::Failed };
        Self { exit, sentence: format!("the channel ended: {}", cause.sentence()) }
    }
}

impl From<VcError> for Failure {
    fn from(error: VcError) -> Self {
        match error {
            VcError::Node(error) => error.into(),
            VcError::NodeGone => Self::node_gone(),
            VcError::Ended(end @ CircuitEnd::Declined(_)) => Self::refused(&end.to_string()),
            VcError::Refused(refusal) => Self::refused(&refusal.sentence),
            other => Self::failed(other),
        }
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        let exit = match &error {
            NodeError::Denied { wrong_use: true, .. } => Exit::WrongUse,
            NodeError::NotThere(_) | NodeError::Socket(SocketError::NoNode(_)) => Exit::NotThere,
            _ => Exit::Failed,
        };
        Self { exit, sentence: error.to_string() }
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Refused(refusal) => Self::refused(&refusal.sentence),
            AcceptError::NotThere(sentence) => Self { exit: Exit::NotThere, sentence },
            other => Self::failed(other),
        }
    }
}

impl From<DuplexError> for Failure {
    fn from(error: DuplexError) -> Self {
        let sentence = error.to_string();
        let of_direction = match error {
            DuplexError::There(error) => Self::from(error),
            DuplexError::Back(error) => error.into(),
            DuplexError::Node(error) => error.into(),
            other => Self::failed(other),
        };
        Self { sentence, ..of_direction }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Refused(refusal) => Self::refused(&refusal.sentence),
            OpenError::NoSuchStation(sentence) | OpenError::NoListener(sentence) => {
                Self { exit: Exit::NotThere, sentence }
            }
            OpenError::Node(error) => error.into(),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<WaitError> for Failure {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Closed(cause) => cause.into(),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<LlcError> for Failure {
    fn from(error: LlcError) -> Self {
        match error {
            LlcError::Node(NodeError::Socket(SocketError::Gone)) => Self::node_gone(),
            LlcError::Node(error) => error.into(),
            LlcError::NotReserved(error) => error.into(),
            LlcError::NoStation(_) => Self { exit: Exit::NotThere, sentence: error.to_string() },
            LlcError::ReservationEnded { .. }
            | LlcError::System(_)
            | LlcError::Busy(_)
            | LlcError::Memory(_) => Self::failed(error.to_string()),
            _ => Self::wrong_use(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver that was silent ended with 4, and its sender with 1, although no unit was late or lost.
    #[test]
    fn a_station_that_fell_silent_decides_no_code_at_either_end() {
        let exit = |cause| Failure::from(cause).exit;
        assert_eq!(exit(CloseCause::PeerGone), exit(CloseCause::WasSilent));
        assert_eq!(exit(CloseCause::PeerGone), exit(CloseCause::PeerDied));
        assert_eq!(
            (exit(CloseCause::WasSilent), exit(CloseCause::ReservationLost)),
            (Exit::Failed, Exit::Broken)
        );
    }

    /// All of them ended with 1.
    #[test]
    fn a_missing_station_or_node_is_not_there_and_a_taken_socket_is_wrong_use() {
        let exit = |error: LlcError| Failure::from(error).exit;
        let no_node = NodeError::Socket(SocketError::NoNode("control".into()));
        assert_eq!(exit(LlcError::Node(no_node)), Exit::NotThere);
        assert_eq!(exit(LlcError::NoStation(9)), Exit::NotThere);
        assert_eq!(exit(LlcError::DuplicateSocket(4)), Exit::WrongUse);
        assert_eq!(exit(LlcError::InvalidSocket(5)), Exit::WrongUse);
        assert_eq!(exit(LlcError::Node(NodeError::Socket(SocketError::Gone))), Exit::Failed);
    }
}
