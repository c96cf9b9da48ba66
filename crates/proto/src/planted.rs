//! Bugs planted on purpose, each one condition in the machines, so that checkers can be seen to find them.
//!
//! Only the feature `planted` can choose one, and only `models` asks for it: in any other build the condition
//! is `false` when the compiler reads it, and nothing is left of it.

/// The bugs, each with the sentence that the table of the hunt prints.
macro_rules! bugs {
    ($($(#[doc = $sentence:literal])+ $name:ident,)*) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $sentence])+ $name,)*
        }

        /// All of them, each with its name and what it does to the machines.
        #[cfg(feature = "planted")]
        pub const ALL: &[(Bug, &str, &str)] =
            &[$((Bug::$name, stringify!($name), concat!($($sentence),+))),*];
    };
}

bugs! {
    /// A token that is not newer than the newest seen is believed.
    StaleTokenBelieved,
    /// The lease runs from when the process took the token out of its queue.
    LeaseAtDequeue,
    /// A newer reservation list is ignored.
    ListIgnored,
    /// A token that is not acknowledged is not sent again.
    TokenNotRepeated,
    /// A token that is sent again gets a new sequence number.
    RetransmissionRenumbered,
    /// Tokens are not acknowledged.
    AckNotSent,
    /// Acknowledgements are ignored.
    AckIgnored,
    /// A strict cycle begins when its master gets to it, not at c_k + TRT.
    StrictStartNow,

    /// Whoever counts as silent needs no time to lose an old token.
    NoDrain,
    /// Whoever notices the silence makes a token at once and asks nobody: the paper's rule.
    NoGrants,
    /// Who hears no acknowledgement in time leaves its successor out and sends the token on by itself: the
    /// paper's recovery (section 2.4).
    PaperRecovery,
    /// A claim gets no generation of its own.
    GenerationNotRaised,
    /// A claim that is behind is granted.
    LowerClaimGranted,
    /// A granter keeps the token that it holds, and goes on.
    GrantWithoutFence,
    /// Claims are never sent.
    ClaimNotSent,

    /// A slot may send one fragment more than was reserved.
    FragmentTooMany,
    /// An ordinary frame leaves whether it still fits the cycle or not (A1).
    NrtWithoutRefusal,
    /// The round goes on to the next station whether the way home still fits or not (A1).
    NrtWithoutWayHome,
    /// Admission leaves ordinary traffic no time in the cycle (A3).
    NrtFloorDropped,
    /// Admission forgets what is reserved already.
    ReservationsForgotten,
    /// A new slot is put in front of the others.
    SlotInFront,
    /// A slot is a frame shorter than what was admitted.
    SlotTooShort,
    /// When a slot closes, the first one moves to the end.
    CompactionMovesRight,
    /// The slots of the dead stay in the list.
    DeadSlotKept,
    /// A unit that was sent is sent again.
    UnitRepeated,
    /// The queue of ordinary frames has no cap.
    QueueWithoutCap,

    /// A station on the dead list that is heard stays on it.
    RevivalForgotten,
    /// The token goes to the dead too.
    DeadVisited,
    /// A joiner need not answer the master's challenge.
    ChallengeNotAsked,
    /// A doubled or replayed frame under the segment's key is believed.
    ReplayBelieved,
    /// The ring's key does not change when a station joins.
    KeyKeptAtJoin,

    /// A switch to token mode keeps the mode's epoch.
    SwitchKeepsEpoch,
    /// The return to plain mode keeps the mode's epoch.
    ReturnKeepsEpoch,
    /// A notice of an older mode is believed.
    OldModeBelieved,
    /// The return to plain mode is told to nobody.
    ReturnNotTold,
    /// A switch is acknowledged before the card is empty.
    SwitchAckedEarly,
    /// An ordinary frame leaves at once although the gate is shut.
    GateNotShut,
    /// No first rotation flushes the ports.
    NoFirstRotation,
    /// The ring goes on when the last reservation is gone.
    EmptyRingKept,
    /// Who has yielded to an initiator waits for its ring for ever, though it may be dead.
    YieldsForEver,

    /// The ids of channels begin anew at each boot.
    ChannelIdsRepeated,
    /// A fragment that came before is delivered again.
    FragmentTwice,
    /// A fragment is put where the one before it belongs.
    FragmentMisplaced,
    /// Channels to or from a dead station stay open.
    DeadPeerKept,

    /// A machine draws its nonces from something that its seed does not decide.
    SeedForgotten,
}

/// Whether this bug is planted: never.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted")]
std::thread_local! {
    static CHOSEN: core::cell::Cell<Option<Bug>> = const { core::cell::Cell::new(None) };
}

/// Whether this bug is planted in the machines of this thread.
#[cfg(feature = "planted")]
pub(crate) fn planted(bug: Bug) -> bool {
    CHOSEN.get() == Some(bug)
}

/// A number that no seed decides, where that is the bug.
#[cfg(feature = "planted")]
pub(crate) fn unseeded() -> u64 {
    static CALLS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    CALLS.fetch_add(1, core::sync::atomic::Ordering::Relaxed)
}

/// What a machine adds to its seed: nothing.
#[cfg(not(feature = "planted"))]
pub(crate) const fn unseeded() -> u64 {
    0
}

/// Plants a bug in all machines that this thread runs from now on, or none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    CHOSEN.set(bug);
}
