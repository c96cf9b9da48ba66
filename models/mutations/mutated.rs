//! The mutations of these machines, each one condition, so that checkers can be seen to find them.
//! `cargo xtask hunt` puts this file and the conditions into a copy of `crates/medium`; the list is that of
//! `mutations.toml`.

/// The mutations, each with the sentence that the table of the hunt prints.
macro_rules! mutations {
    ($($(#[doc = $sentence:literal])+ $name:ident,)*) => {
        /// A mutation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutation {
            $($(#[doc = $sentence])+ $name,)*
        }

        /// All of them, each with its name and what it does to the machines.
        pub const ALL: &[(Mutation, &str, &str)] =
            &[$((Mutation::$name, stringify!($name), concat!($($sentence),+))),*];
    };
}

/// True if the machines of this thread have the mutation of that name.
#[macro_export]
macro_rules! mutated {
    ($name:ident) => {
        $crate::mutated::is($crate::mutated::Mutation::$name)
    };
}
pub use mutated;

std::thread_local! {
    static CHOSEN: core::cell::Cell<Option<Mutation>> = const { core::cell::Cell::new(None) };
}

/// Chooses the mutation of all machines of this thread, or none.
pub fn mutate(mutation: Option<Mutation>) {
    CHOSEN.set(mutation);
}

/// True if the machines of this thread have this mutation.
pub fn is(mutation: Mutation) -> bool {
    CHOSEN.get() == Some(mutation)
}

/// A number that no seed decides.
pub(crate) fn unseeded() -> u64 {
    static CALLS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    CALLS.fetch_add(1, core::sync::atomic::Ordering::Relaxed)
}
