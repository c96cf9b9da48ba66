//! Why a connection is refused, and why a link ends.

use super::frame::FrameError;
use rustls::{Error, PeerIncompatible};
use std::fmt;

/// Why a connection never became a link. Each is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Its key is in no line of the neighbours file, or another one than the line says.
    NotPinned,
    /// It shows no key, or one of another kind.
    NoKey,
    /// It speaks another protocol inside TLS (ALPN).
    Protocol,
    /// It speaks another version than TLS 1.3.
    Version,
    /// It sends what is not TLS, or no first frame of a link.
    Garbage,
    /// It was not done within the time for it.
    Deadline,
    /// Too many others are not done yet, or too many come.
    Crowded,
    /// The node should wait until it is dialled: the one with the smaller id dials.
    WrongSide,
    /// Its first frame names other nodes than the key does.
    WrongId,
    /// It closed the connection before it was done, or could not be reached.
    Unreachable,
    /// It refuses this node's key, or anything else about this node.
    Refused,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::NotPinned,
        Self::NoKey,
        Self::Protocol,
        Self::Version,
        Self::Garbage,
        Self::Deadline,
        Self::Crowded,
        Self::WrongSide,
        Self::WrongId,
        Self::Unreachable,
        Self::Refused,
    ];

    /// Its word in the JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotPinned => "not_pinned",
            Self::NoKey => "no_key",
            Self::Protocol => "protocol",
            Self::Version => "version",
            Self::Garbage => "garbage",
            Self::Deadline => "deadline",
            Self::Crowded => "crowded",
            Self::WrongSide => "wrong_side",
            Self::WrongId => "wrong_id",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
        }
    }

    /// The refusal that an error of TLS means.
    pub(super) fn of(error: &Error) -> Self {
        use PeerIncompatible as Other;
        match error {
            Error::InvalidCertificate(_) => Self::NotPinned,
            Error::NoCertificatesPresented
            | Error::PeerIncompatible(
                Other::IncorrectCertificateTypeExtension
                | Other::UnsolicitedCertificateTypeExtension
                | Other::NoSignatureSchemesInCommon
                | Other::NoCertificateRequestSignatureSchemesInCommon,
            ) => Self::NoKey,
            Error::NoApplicationProtocol => Self::Protocol,
            Error::PeerIncompatible(
                Other::ServerDoesNotSupportTls12Or13
                | Other::ServerTlsVersionIsDisabledByOurConfig
                | Other::SupportedVersionsExtensionRequired
                | Other::Tls12NotOffered
                | Other::Tls12NotOfferedOrEnabled,
            ) => Self::Version,
            Error::AlertReceived(_) => Self::Refused,
            _ => Self::Garbage,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPinned => "its key is not the one in the neighbours file",
            Self::NoKey => "it shows no Ed25519 key",
            Self::Protocol => "it does not speak rota-rcap/1",
            Self::Version => "it does not speak TLS 1.3",
            Self::Garbage => "it sends something else than a link",
            Self::Deadline => "it was not done within 2 s",
            Self::Crowded => "too many connections come, or are not done yet",
            Self::WrongSide => "the node with the smaller id dials, and its id is the larger one",
            Self::WrongId => "it names other node ids than the neighbours file",
            Self::Unreachable => "it cannot be reached, or closed the connection before it was done",
            Self::Refused => "it refuses this node; see whether it pins this node's key",
        })
    }
}

/// Why a link that was up is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownCause {
    /// The far end closed it.
    Closed,
    /// Nothing came from it for 1.5 s.
    Silent,
    /// It sends, and takes nothing from the connection.
    NotReading,
    /// The connection broke.
    Broken(String),
    /// The octets were no frame.
    Frame(FrameError),
    /// The neighbour has made a new connection, which takes this one's place.
    Replaced,
    /// This node ends, or its links' thread does.
    Stopped,
    /// The user of the links ended it: a message was none, or could not be sent.
    Ended,
}

impl fmt::Display for DownCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the neighbour closed it"),
            Self::Silent => f.write_str("nothing came from the neighbour for 1.5 s"),
            Self::NotReading => f.write_str("the neighbour took nothing from it for 1.5 s"),
            Self::Broken(error) => write!(f, "the connection broke: {error}"),
            Self::Frame(error) => write!(f, "the neighbour sent {error}"),
            Self::Replaced => f.write_str("the neighbour made a new connection"),
            Self::Stopped => f.write_str("this node ends its links"),
            Self::Ended => f.write_str("this node ended it for a message"),
        }
    }
}
