//! The local ids that this node gives to the packets of its channels.

use std::collections::BTreeSet;

/// Those that are in use, and the newest one.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    /// Of entries.
    given: BTreeSet<u16>,
    /// Of programs whose frames somebody sorts out by them. Such a program keeps the local id of its first
    /// path, also where its channel has another path or contract: a channel that got the id meanwhile would
    /// lose its packets to that program.
    faced: BTreeSet<u16>,
    last: u16,
}

impl Labels {
    pub(super) const fn new() -> Self {
        Self { given: BTreeSet::new(), faced: BTreeSet::new(), last: 0 }
    }

    /// Gives the label that was not given for as long as possible: packets of its former channel are gone by
    /// then.
    pub(super) fn give(&mut self) -> u16 {
        assert!(self.given.len() + self.faced.len() < usize::from(u16::MAX), "fewer channels than labels");
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            if !self.faced.contains(&self.last) && self.given.insert(self.last) {
                return self.last;
            }
        }
    }

    /// No entry has this one any more; 0 is none.
    pub(super) fn free(&mut self, label: u16) {
        self.given.remove(&label);
    }

    /// The frames of a program are sorted out by this one from now on, or no more.
    pub(super) fn face(&mut self, label: u16, is_faced: bool) {
        match is_faced {
            true => _ = self.faced.insert(label),
            false => _ = self.faced.remove(&label),
        }
    }

    /// How many entries have.
    pub(super) fn of_entries(&self) -> usize {
        self.given.len()
    }

    /// How many programs are sorted out by.
    pub(super) fn faced(&self) -> usize {
        self.faced.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id of a first path was given again once the labels had come round, and the packets of that channel
    /// went to the program of the other one.
    #[test]
    fn a_label_by_which_a_queue_is_filled_is_given_to_no_other_channel() {
        let mut labels = Labels::new();
        let (first, second) = (labels.give(), labels.give());
        labels.face(first, true);
        labels.free(first);
        let round = |labels: &mut Labels| -> Vec<u16> {
            let mut next = || {
                let label = labels.give();
                labels.free(label);
                label
            };
            (0..70_000).map(|_| next()).collect()
        };
        let others = round(&mut labels);
        assert!(others.iter().all(|label| ![0, first, second].contains(label)));
        labels.face(first, false);
        let others = round(&mut labels);
        assert!(others.contains(&first) && !others.contains(&second));
    }
}
