//! The parts that all ends have: the measured window, and the lines that are printed of it.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Octets that each transport is given at once, as Rota's own ends are.
pub const CHUNK: usize = 65_536;
/// Octets of a question and of its answer.
pub const QUESTION: usize = 64;

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// The measured time, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    begin: u64,
    end: u64,
}

impl Window {
    pub fn new(begin: u64, length: u64) -> Self {
        Self { begin, end: begin.saturating_add(length) }
    }

    pub fn is_over(self) -> bool {
        now() >= self.end
    }

    /// True if that which comes now counts.
    pub fn is_open(self) -> bool {
        (self.begin..self.end).contains(&now())
    }

    pub fn begin(self) -> Instant {
        Self::instant(self.begin)
    }

    pub fn end(self) -> Instant {
        Self::instant(self.end)
    }

    fn instant(then: u64) -> Instant {
        Instant::now() + Duration::from_nanos(then.saturating_sub(now()))
    }
}

/// The first word of an end that listens.
pub fn say_ready() {
    eprintln!("ready");
}

/// Prints the octets that a sink took in its window.
pub fn tell_octets(octets: u64) {
    println!("{{\"octets\":{octets}}}");
}

/// Awaits `work` until the window is over; true if it came to its end before.
pub async fn within(window: Window, work: impl Future<Output = Result<(), Fault>>) -> Result<bool, Fault> {
    match tokio::time::timeout_at(window.end().into(), work).await {
        Ok(done) => done.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Asks one question after another, and prints how long they took. The first one opens what must be opened.
pub async fn ask_by(window: Window, mut once: impl AsyncFnMut() -> Result<(), Fault>) -> Result<(), Fault> {
    let mut trips = Trips::default();
    let asking = async {
        once().await?;
        tokio::time::sleep_until(window.begin().into()).await;
        while !window.is_over() {
            let sent = now();
            once().await?;
            trips.took.push(now() - sent);
        }
        Ok(())
    };
    within(window, asking).await?;
    trips.tell();
    Ok(())
}

/// How long round trips took, in nanoseconds.
#[derive(Default)]
pub struct Trips {
    pub took: Vec<u64>,
    pub lost: u64,
}

impl Trips {
    /// The longest of the quickest so many of 1,000.
    fn permille(sorted: &[u64], permille: usize) -> u64 {
        let rank = (sorted.len() * permille).div_ceil(1_000);
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }

    fn document(mut self) -> String {
        self.took.sort_unstable();
        let [p50, p99, p999, max] = [500, 990, 999, 1_000].map(|share| Self::permille(&self.took, share));
        let (count, lost) = (self.took.len(), self.lost);
        format!(
            "{{\"p50_ns\":{p50},\"p99_ns\":{p99},\"p999_ns\":{p999},\"max_ns\":{max},\
             \"count\":{count},\"lost\":{lost}}}"
        )
    }

    pub fn tell(self) {
        println!("{}", self.document());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_round_trips_are_those_of_the_sorted_ones() {
        let trips = Trips { took: (1..=1_000).rev().collect(), lost: 2 };
        let wanted = r#"{"p50_ns":500,"p99_ns":990,"p999_ns":999,"max_ns":1000,"count":1000,"lost":2}"#;
        assert_eq!(trips.document(), wanted);
        let none = r#"{"p50_ns":0,"p99_ns":0,"p999_ns":0,"max_ns":0,"count":0,"lost":0}"#;
        assert_eq!(Trips::default().document(), none);
    }
}
