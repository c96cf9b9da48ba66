//! What round trips took.

use hdrhistogram::Histogram;
use rota_units::Span;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Round trips of one kind, or ways there.
pub struct Record {
    answered: Histogram<u64>,
    lost: u64,
}

/// What became of them, in nanoseconds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Times {
    /// The median.
    pub p50_ns: u64,
    /// 99 % took at most this.
    pub p99_ns: u64,
    /// 99.9 % took at most this.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How many were answered.
    pub count: u64,
    /// Messages that no answer came to in time.
    pub lost: u64,
}

impl Default for Record {
    fn default() -> Self {
        let answered = Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("the bounds are sound");
        Self { answered, lost: 0 }
    }
}

impl Record {
    /// One more, or one without an answer.
    pub fn note(&mut self, took: Option<Span>) {
        match took {
            Some(took) => self.answered.saturating_record(took.as_nanos().max(1)),
            None => self.lost += 1,
        }
    }

    /// So many more without an answer.
    pub fn lose(&mut self, count: u64) {
        self.lost += count;
    }

    /// True if nothing was answered so far.
    pub fn is_in_vain(&self) -> bool {
        self.answered.is_empty()
    }

    /// The fates of all of them.
    pub fn sum_up(&self) -> Times {
        let at = |quantile| self.answered.value_at_quantile(quantile);
        let [p50_ns, p99_ns, p999_ns] = [0.5, 0.99, 0.999].map(at);
        let (max_ns, count) = (self.answered.max(), self.answered.len());
        Times { p50_ns, p99_ns, p999_ns, max_ns, count, lost: self.lost }
    }

    /// The median; nothing where none was answered.
    pub fn median(&self) -> Option<u64> {
        (!self.answered.is_empty()).then(|| self.answered.value_at_quantile(0.5))
    }

    /// For programs.
    pub fn json(&self) -> serde_json::Value {
        let Times { p50_ns, p99_ns, max_ns, count, lost, .. } = self.sum_up();
        let had = |ns: u64| (count > 0).then_some(ns);
        json!({
            "answered": count, "lost": lost,
            "p50_ns": had(p50_ns), "p99_ns": had(p99_ns), "max_ns": had(max_ns),
        })
    }

    /// For people.
    pub fn sentence(&self) -> String {
        let Times { p50_ns, p99_ns, max_ns, count, lost, .. } = self.sum_up();
        if count == 0 {
            return format!("0 answered, {lost} lost");
        }
        let [half, most, all] = [p50_ns, p99_ns, max_ns].map(Span::from_nanos);
        format!("{count} answered, {lost} lost; round trip {half} median, {most} p99, {all} at most")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_took_no_time_at_all() {
        let mut times = Record::default();
        times.note(None);
        assert_eq!(times.sentence(), "0 answered, 1 lost");
        assert!(times.json()["p50_ns"].is_null());
        times.note(Some(Span::from_nanos(1_500)));
        let wanted = format!("1 answered, 1 lost; round trip {} median", Span::from_nanos(1_500));
        assert!(times.sentence().starts_with(&wanted), "{}", times.sentence());
    }
}
