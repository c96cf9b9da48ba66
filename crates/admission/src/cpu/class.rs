//! The strict classes of protocol work.

/// A class of the task scheduler (TRANSPORT-5.1-13 to 5.1-17). One with work goes before all below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Circuits with a contract: weights by their bandwidth.
    Guaranteed,
    /// Error control without a contract: each has the weight 1.
    Reliable,
    /// The rest. It gets nothing while another class has work, by design (TRANSPORT-R56).
    BestEffort,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// All of them, the highest first.
    pub const ALL: [Self; Self::COUNT] = [Self::Guaranteed, Self::Reliable, Self::BestEffort];

    /// Its place in [`Class::ALL`].
    pub const fn place(self) -> usize {
        self as usize
    }

    /// For people and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guaranteed => "guaranteed",
            Self::Reliable => "reliable",
            Self::BestEffort => "best effort",
        }
    }
}
