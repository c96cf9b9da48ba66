//! Ends over Zenoh: publications between two peers over TCP, held until there is room. Round trips are
//! those of Zenoh's own example: a publication there, another one back, and neither waits for others.

use crate::end::{CHUNK, Fault, QUESTION, Trips, now, say_ready, tell_octets};
use crate::{End, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Config, Session, Wait};

const STREAM: &str = "stream";
const THERE: &str = "there";
const BACK: &str = "back";
/// How often an end looks whether the other one has subscribed or answered.
const LOOK: Duration = Duration::from_millis(20);

pub fn run(end: End) -> Result<(), Fault> {
    match end.role {
        Role::Sink => sink(end),
        Role::Source => source(end),
        Role::Echo => echo(end),
        Role::Ask => ask(end),
    }
}

/// A session that finds nobody by itself: it listens, or knows whom to call.
fn open(end: End) -> Result<Session, Fault> {
    let listens = matches!(end.role, Role::Sink | Role::Echo);
    let (own, other) = if listens { ("listen", "connect") } else { ("connect", "listen") };
    let mut config = Config::default();
    config.insert_json5("mode", "\"peer\"")?;
    config.insert_json5("scouting/multicast/enabled", "false")?;
    config.insert_json5("scouting/gossip/enabled", "false")?;
    config.insert_json5(&format!("{own}/endpoints"), &format!("[\"tcp/{}\"]", end.at))?;
    config.insert_json5(&format!("{other}/endpoints"), "[]")?;
    zenoh::open(config).wait()
}

fn publisher(session: &Session, key: &'static str, express: bool) -> Result<Publisher<'static>, Fault> {
    let publisher = session.declare_publisher(key).congestion_control(CongestionControl::Block);
    publisher.express(express).wait()
}

fn wait_for_subscriber(end: End, publisher: &Publisher<'_>) -> Result<(), Fault> {
    while !publisher.matching_status().wait()?.matching() {
        if end.window.is_over() {
            return Err("nobody has subscribed".into());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn sleep_until(then: std::time::Instant) {
    std::thread::sleep(then.saturating_duration_since(std::time::Instant::now()));
}

fn sink(end: End) -> Result<(), Fault> {
    let session = open(end)?;
    let octets = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&octets);
    let take = move |sample: Sample| {
        if end.window.is_open() {
            count.fetch_add(sample.payload().len() as u64, Ordering::Relaxed);
        }
    };
    let _subscriber = session.declare_subscriber(STREAM).callback(take).wait()?;
    say_ready();
    sleep_until(end.window.end());
    tell_octets(octets.load(Ordering::Relaxed));
    Ok(())
}

fn source(end: End) -> Result<(), Fault> {
    let session = open(end)?;
    let publisher = publisher(&session, STREAM, false)?;
    wait_for_subscriber(end, &publisher)?;
    let chunk = ZBytes::from(vec![0x5a; CHUNK]);
    while !end.window.is_over() {
        publisher.put(chunk.clone()).wait()?;
    }
    Ok(())
}

fn echo(end: End) -> Result<(), Fault> {
    let session = open(end)?;
    let back = publisher(&session, BACK, true)?;
    let answer = move |sample: Sample| {
        if let Err(fault) = back.put(sample.payload().clone()).wait() {
            eprintln!("rota-bench-peers: {fault}");
        }
    };
    let _subscriber = session.declare_subscriber(THERE).callback(answer).wait()?;
    say_ready();
    sleep_until(end.window.end());
    Ok(())
}

fn ask(end: End) -> Result<(), Fault> {
    let session = open(end)?;
    let answers = session.declare_subscriber(BACK).wait()?;
    let there = publisher(&session, THERE, true)?;
    wait_for_subscriber(end, &there)?;
    let question = ZBytes::from(vec![0x5a; QUESTION]);
    let mut trips = Trips::default();
    // The first questions may find an echo that does not know yet who wants its answers.
    there.put(question.clone()).wait()?;
    while answers.recv_timeout(LOOK)?.is_none() {
        if end.window.is_over() {
            return Err("nothing came back".into());
        }
        there.put(question.clone()).wait()?;
    }
    sleep_until(end.window.begin());
    answers.drain().for_each(drop);
    while !end.window.is_over() {
        let sent = now();
        there.put(question.clone()).wait()?;
        match answers.recv_deadline(end.window.end())? {
            Some(_) => trips.took.push(now() - sent),
            None => break,
        }
    }
    trips.tell();
    Ok(())
}
