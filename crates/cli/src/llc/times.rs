//! What round trips took.

use rota_units::Span;
use serde_json::json;

/// Round trips of one kind.
#[derive(Default)]
pub struct Times {
    pub answered: Vec<u64>,
    pub lost: u64,
}

impl Times {
    /// One more, or one without an answer.
    pub fn note(&mut self, took: Option<Span>) {
        match took {
            Some(took) => self.answered.push(took.as_nanos()),
            None => self.lost += 1,
        }
    }

    /// The time that so many in a hundred took at most; nothing where none was answered. They must be sorted.
    pub fn at(&self, percent: usize) -> Option<u64> {
        let last = self.answered.len().saturating_sub(1);
        self.answered.get((self.answered.len() * percent / 100).min(last)).copied()
    }

    pub fn json(&self) -> serde_json::Value {
        json!({
            "answered": self.answered.len(), "lost": self.lost,
            "p50_ns": self.at(50), "p99_ns": self.at(99), "max_ns": self.at(100),
        })
    }

    pub fn sentence(&self) -> String {
        let (answered, lost) = (self.answered.len(), self.lost);
        let [Some(half), Some(most), Some(all)] =
            [50, 99, 100].map(|percent| self.at(percent).map(Span::from_nanos))
        else {
            return format!("0 answered, {lost} lost");
        };
        format!("{answered} answered, {lost} lost; round trip {half} median, {most} p99, {all} at most")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_took_no_time_at_all() {
        let mut times = Times::default();
        times.note(None);
        assert_eq!(times.sentence(), "0 answered, 1 lost");
        assert!(times.json()["p50_ns"].is_null());
        times.note(Some(Span::from_nanos(1_500)));
        let wanted = format!("1 answered, 1 lost; round trip {} median", Span::from_nanos(1_500));
        assert!(times.sentence().starts_with(&wanted), "{}", times.sentence());
    }
}
