//! The windows of units at the source, in whole periods.

/// The units of a source: those whose window has opened, and the next one that is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// w: periods from the opening of a unit's window to its time.
    ahead: u64,
    /// Units whose window has opened.
    opened: u64,
    /// The number of the next unit.
    next: u64,
}

impl Turns {
    /// No window is open yet.
    pub(super) fn new(ahead: u64) -> Self {
        assert!(ahead > 0, "a window is a period long at least");
        Self { ahead, opened: 0, next: 0 }
    }

    pub(super) fn ahead(self) -> u64 {
        self.ahead
    }

    /// The number of the next unit.
    pub(super) fn next(self) -> u64 {
        self.next
    }

    /// So many periods have passed.
    pub(super) fn open(&mut self, periods: u64) {
        self.opened = self.opened.saturating_add(periods);
    }

    /// True if the next unit may be put.
    pub(super) fn is_open(self) -> bool {
        self.next < self.opened
    }

    /// How many periods before the next opening the window of the next unit has opened; 0 if it has not.
    pub(super) fn age(self) -> u64 {
        self.opened.saturating_sub(self.next)
    }

    /// Leaves out the units whose time has passed; how many these are.
    pub(super) fn pass_overdue(&mut self) -> u64 {
        let overdue = self.age().saturating_sub(self.ahead);
        self.next += overdue;
        overdue
    }

    /// The next unit was put, or left out.
    pub(super) fn pass(&mut self) {
        self.next += 1;
    }
}
