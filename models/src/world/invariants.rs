//! The invariants of every run.

use super::{Budget, MERGE_TRT, Spec, World, settings};

impl World {
    /// Keeps the first violation.
    pub(super) fn violates(&mut self, sentence: String) {
        self.violation.get_or_insert(sentence);
    }

    /// The stations that hold a token whose lease has not ended, by index.
    pub fn holders(&self) -> Vec<usize> {
        let holds = self.nodes().filter(|(_, node)| node.rether().holds_token(self.now));
        holds.map(|(index, _)| index).collect()
    }

    /// Looks at all invariants of a moment.
    pub(super) fn check(&mut self, spec: &Spec) {
        let holders = self.holders();
        let fresh = self.merged.is_some_and(|at| self.now.since(at) <= settings().trt * MERGE_TRT);
        for (at, one) in holders.iter().enumerate() {
            for other in &holders[at + 1..] {
                let joined = (self.cut >> one & 1) == (self.cut >> other & 1);
                let generation = |index: usize| self.seen(index).map(|(generation, _)| generation);
                // R1 and S1: two rings that have just met may both hold, each its own generation.
                if joined && (!fresh || generation(*one) == generation(*other)) {
                    let (one, other) = (one + 1, other + 1);
                    self.violates(format!("S1: stations {one} and {other} hold the token at once"));
                    return;
                }
            }
        }
        self.check_quiet(spec);
    }

    /// Nobody claims before anything went wrong, nor after one lost frame.
    fn check_quiet(&mut self, spec: &Spec) {
        let (given, left) = (spec.budget, self.budget);
        let one_loss = Budget { loss: given.loss.saturating_sub(1), ..given };
        if left != given && left != one_loss {
            return;
        }
        let claimed = self.nodes().any(|(_, node)| node.rether().counters().claims > 0);
        let repeats =
            self.nodes().map(|(_, node)| node.rether().counters().tokens_retransmitted).sum::<u64>();
        if claimed {
            let why = if left == given { "without a fault" } else { "after one lost frame" };
            self.violates(format!("R9: a claim {why}"));
        } else if left == given && repeats > self.repeats {
            self.violates("R9: a token sent again without a fault".to_owned());
        }
    }
}
