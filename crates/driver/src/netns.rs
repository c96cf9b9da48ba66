//! Namespaces.

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
#[error("todo")]
pub struct NsError;
