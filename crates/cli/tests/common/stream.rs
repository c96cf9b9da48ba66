//! Streams through channels of a lab whose nodes log their holds.

use super::{Ended, Lab, PATIENCE, Program, eventually, holds, testdata};
use std::path::PathBuf;

/// The arguments that let the node of station `k` log its holds in this life.
pub fn hold_log(lab: &Lab, k: u8, life: &str) -> Vec<String> {
    vec!["--hold-log".into(), log_path(lab, k, life).display().to_string()]
}

fn log_path(lab: &Lab, k: u8, life: &str) -> PathBuf {
    lab.file(&format!("holds-{life}-n{k}"))
}

/// The holds of these stations' lives, by their own words.
pub fn held(lab: &Lab, logs: &[(u8, &str)]) -> Vec<holds::Hold> {
    logs.iter().flat_map(|(k, life)| holds::read(&log_path(lab, *k, life), *k)).collect()
}

/// That no two stations held the token at the same time.
#[track_caller]
pub fn assert_one_holder(all: Vec<holds::Hold>) {
    assert!(all.len() > 50, "the logs hold {} holds: too few to show anything", all.len());
    assert_eq!(holds::overlap(all), None, "two stations held the token at the same time");
}

/// A video from one station to another.
pub struct Stream {
    pub from: u8,
    pub sender: Program,
    pub receiver: Program,
}

impl Stream {
    pub fn start(lab: &Lab, from: u8, to: u8) -> Self {
        let (service, to_name) = (from.to_string(), format!("n{to}"));
        let receiver = lab.receiver(to, &service, &["--log", "-"]);
        let clip = testdata("clip.h264");
        let words = ["send", "--video", &clip, "--to", &to_name, "--seconds", "60", "--service", &service];
        Self { from, sender: lab.start(from, &words), receiver }
    }

    /// That its receiver gets ten more whole units.
    #[track_caller]
    pub fn assert_goes_on(&self) {
        let before = self.whole_units();
        let more = eventually(PATIENCE, || (self.whole_units() >= before + 10).then_some(()));
        assert!(
            more.is_some(),
            "n{}'s stream stands still: {}{}",
            self.from,
            self.sender.err(),
            self.receiver.err()
        );
    }

    /// Its end says that its reservation was lost, or that its receiver fell silent.
    pub fn says_why_not(&self) -> bool {
        let err = self.sender.err();
        ["the reservation was lost", "the other station fell silent"].iter().any(|why| err.contains(why))
    }

    /// That it goes on, or that its end says why not.
    #[track_caller]
    pub fn assert_goes_on_or_says_why_not(&self) {
        let wanted = self.whole_units() + 10;
        let lost = || self.says_why_not();
        let known = eventually(PATIENCE, || (self.whole_units() >= wanted || lost()).then_some(()));
        assert!(known.is_some(), "n{}'s stream neither goes on nor ends: {}", self.from, self.sender.err());
    }

    fn whole_units(&self) -> usize {
        self.receiver.out().lines().filter(|line| line.contains(r#""complete":true"#)).count()
    }

    /// Units below the newest one that have not come whole.
    pub fn lost(&self) -> u64 {
        let out = self.receiver.out();
        let lines = out.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let newest = lines.filter_map(|line| line["unit"].as_u64()).max();
        newest.map_or(0, |newest| (newest + 1).saturating_sub(self.whole_units() as u64))
    }

    /// How its two ends end, when something ends them.
    pub fn finish(self) -> (Ended, Ended) {
        (self.sender.finish(), self.receiver.finish())
    }
}
