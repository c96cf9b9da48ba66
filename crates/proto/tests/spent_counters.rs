//! A station that is told its frames count as replays (decision 018): what it answers, and what it skips.

use crate::rig::{ME, Rig, mac, ms};
use rota_wire::{Announce, JoinAnswer, Kind, LinkHeader, Verdict};

/// The greatest skip at once and in any ten seconds: half of what receivers refuse.
const SKIP_MAX: u64 = 500_000;

/// A question of that station: the counter to exceed, and a challenge.
fn question(rig: &Rig, from: u16, seq: u64, exceed: u64, challenge: u64) -> Vec<u8> {
    let mut body = [0; 22];
    JoinAnswer::new(exceed, challenge, Verdict::Behind).emit(&mut body);
    let header = LinkHeader { seq, ..rig.header(from, Kind::JoinAnswer) };
    rig.frame(&header, &body, &rig.segment_key)
}

/// The challenges that this station has been given an answer to.
fn answered(rig: &Rig, from: u16) -> Vec<u64> {
    let of = rig.sent.iter().filter(|sent| sent.header.kind == Kind::Announce && sent.to == mac(from));
    of.map(|sent| Announce::parse(&sent.body).expect("sound").answers).collect()
}

fn hear(rig: &mut Rig, frame: &[u8]) {
    rig.hear_raw(Some(rig.now), frame);
}

/// The node's counter, which its next frame shows.
fn counter(rig: &Rig) -> u64 {
    rig.sent.iter().map(|sent| sent.header.seq).max().expect("it has sent something")
}

/// Recorded questions used up the answers of each second, and a true question went unanswered.
#[test]
fn questions_that_are_played_again_do_not_starve_true_ones() {
    let mut rig = Rig::plain();
    let mut recorded = Vec::new();
    for seq in 100..140 {
        let asked = question(&rig, 1, seq, 0, seq);
        hear(&mut rig, &asked);
        recorded.push(asked);
        rig.run(ms(110));
        // The other one is heard of, too.
        let asked = question(&rig, 3, seq, 0, seq);
        hear(&mut rig, &asked);
        rig.run(ms(110));
    }
    assert_eq!(answered(&rig, 1).len(), 40, "true questions are answered");
    // One that was never heard here, as of a station of an earlier time.
    recorded.push(question(&rig, 9, 5, 0, 77));
    rig.clear();
    let before = rig.node.rether().counters().over_budget;
    for second in 0..5 {
        for hundredth in 0..100_usize {
            let old = recorded[hundredth % recorded.len()].clone();
            hear(&mut rig, &old);
            rig.run(ms(10));
        }
        for (from, seq) in [(3, 200 + second), (1, 200 + second)] {
            let asked = question(&rig, from, seq, 0, 1_000 + second);
            hear(&mut rig, &asked);
            assert!(answered(&rig, from).contains(&(1_000 + second)), "{from} in second {second}");
        }
    }
    let played = answered(&rig, 1).iter().filter(|challenge| **challenge < 1_000).count();
    assert!((1..=6).contains(&played), "{played} answers to old questions in five seconds");
    assert!(answered(&rig, 9).len() <= 6, "{}", answered(&rig, 9).len());
    assert!(rig.node.rether().counters().over_budget > before + 400, "the others are counted");
}

/// Two that are behind at each other: the question itself counts as a replay, but is not one.
#[test]
fn a_question_of_a_station_that_is_behind_here_is_answered_beside_copies_of_its_older_ones() {
    let mut rig = Rig::plain();
    let old: Vec<_> = (100..110).map(|seq| question(&rig, 1, seq, 0, seq)).collect();
    for asked in &old {
        hear(&mut rig, asked);
        rig.run(ms(150));
    }
    // Somebody spends the counters of station 1 here.
    let header = LinkHeader { seq: 900_000, ..rig.header(1, Kind::Nack) };
    let leap = rig.frame(&header, &[0; 10], &rig.segment_key);
    hear(&mut rig, &leap);
    for second in 0..5 {
        old.iter().for_each(|asked| hear(&mut rig, asked));
        let asked = question(&rig, 1, 200 + second, 0, 1_000 + second);
        hear(&mut rig, &asked);
        assert!(answered(&rig, 1).contains(&(1_000 + second)), "second {second}");
        rig.run(ms(1_000));
    }
}

/// A question could name a counter a million ahead, ten times a second; stations that heard only every other
/// skip refused its sender.
#[test]
fn a_station_skips_at_most_half_of_what_others_believe_and_for_known_ones_only() {
    let mut rig = Rig::plain();
    rig.run(ms(1_100));
    let begin = counter(&rig);
    let unknown = question(&rig, 9, 5, begin + 1_000, 7);
    hear(&mut rig, &unknown);
    assert!(counter(&rig) < begin + 10, "an unknown station causes no skip");
    let mut seq = 100;
    let mut asked = |rig: &mut Rig, ahead: u64| {
        seq += 1;
        let before = counter(rig);
        let asked = question(rig, 1, seq, before + ahead, seq);
        hear(rig, &asked);
        assert!(answered(rig, 1).contains(&seq), "it answers");
        counter(rig) - before
    };
    assert!((SKIP_MAX..SKIP_MAX + 10).contains(&asked(&mut rig, 1_000_000)));
    for _ in 0..9 {
        rig.run(ms(1_000));
        assert!(asked(&mut rig, 1_000_000) < 10, "no more in these ten seconds");
    }
    // A frame in its own name, under the key.
    let own = LinkHeader { seq: counter(&rig) + 400_000, ..rig.header(ME, Kind::Request) };
    let incarnation = rig.sent[0].header.incarnation;
    let own = rig.frame(&LinkHeader { incarnation, ..own }, &[], &rig.segment_key);
    let before = counter(&rig);
    hear(&mut rig, &own);
    rig.run(ms(900));
    assert!(counter(&rig) < before + 20, "that is no way around it");
    rig.run(ms(200));
    hear(&mut rig, &own);
    // Both skips are in one step of the counter, which the answer shows.
    assert!((SKIP_MAX..SKIP_MAX + 10).contains(&asked(&mut rig, 1_000_000)));
    let far = counter(&rig) - begin;
    assert!((2 * SKIP_MAX..2 * SKIP_MAX + 100).contains(&far), "{far} in ten seconds and a little");
}

/// A question with the challenge 2^64 − 1 had the station say that a stranger uses its address.
#[test]
fn a_challenge_that_no_station_makes_is_not_echoed() {
    let mut rig = Rig::plain();
    let malformed = |rig: &Rig| rig.node.rether().counters().frames_malformed;
    for (at, challenge) in [0, 1 << 63, u64::MAX - 1, u64::MAX].into_iter().enumerate() {
        let before = malformed(&rig);
        let asked = question(&rig, 1, 100 + at as u64, 0, challenge);
        hear(&mut rig, &asked);
        assert_eq!(malformed(&rig), before + 1, "{challenge:#x} is counted");
        // The same once more, as a replay.
        hear(&mut rig, &asked);
        assert_eq!(malformed(&rig), before + 2, "{challenge:#x} is counted");
        assert_eq!(answered(&rig, 1), [], "{challenge:#x}");
    }
    let asked = question(&rig, 1, 200, 0, (1 << 63) - 1);
    hear(&mut rig, &asked);
    assert_eq!(answered(&rig, 1), [(1 << 63) - 1]);
}

/// The same from a cycle master, whose challenge every announcement of a joiner repeats.
#[test]
fn a_joiner_repeats_no_challenge_that_no_master_makes() {
    for challenge in [0, 1 << 63, u64::MAX] {
        let mut rig = Rig::new();
        rig.run(ms(200));
        let said = rig.sent.iter().rev().find(|sent| sent.header.kind == Kind::Announce);
        let nonce = Announce::parse(&said.expect("it asks").body).expect("sound").nonce;
        let mut body = [0; 22];
        JoinAnswer::new(nonce, challenge, Verdict::Prove).emit(&mut body);
        rig.hear(1, Kind::JoinAnswer, &body);
        rig.clear();
        rig.run(ms(2_000));
        let said = rig.sent.iter().filter(|sent| sent.header.kind == Kind::Announce);
        assert!(said.map(|sent| Announce::parse(&sent.body).expect("sound").answers).all(|it| it == 0));
        assert_eq!(rig.node.rether().counters().frames_malformed, 1);
    }
}
