//! Zenoh: publications and a subscription between two peers over TCP, without discovery. A publication waits
//! until there is room for it, so that none is dropped.

use crate::{CHUNK, Failure, Order, QUESTION, ask, now, say_count, say_ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc::unbounded_channel;
use zenoh::bytes::ZBytes;
use zenoh::qos::CongestionControl;

const THERE: &str = "bench/there";
const BACK: &str = "bench/back";

pub async fn run(role: &str, order: &Order) -> Result<(), Failure> {
    match role {
        "sink" => sink(order).await,
        "source" => source(order).await,
        "echo" => echo(order).await,
        "ask" => questions(order).await,
        _ => Err(format!("'{role}' is no role").into()),
    }
}

async fn open(order: &Order, listens: bool) -> Result<zenoh::Session, Failure> {
    let mut config = zenoh::Config::default();
    let at = format!("[\"tcp/{}\"]", order.at);
    let none = "[]".to_owned();
    let (listen, connect) = if listens { (&at, &none) } else { (&none, &at) };
    for (key, value) in [
        ("mode", "\"peer\""),
        ("scouting/multicast/enabled", "false"),
        ("listen/endpoints", listen),
        ("connect/endpoints", connect),
    ] {
        config.insert_json5(key, value)?;
    }
    zenoh::open(config).await
}

/// A publication before the other end's subscription is known reaches nobody.
async fn matched(publisher: &zenoh::pubsub::Publisher<'_>) -> Result<(), Failure> {
    while !publisher.matching_status().await?.matching() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    Ok(())
}

async fn sink(order: &Order) -> Result<(), Failure> {
    let session = open(order, true).await?;
    let octets = Arc::new(AtomicU64::new(0));
    let (counted, window) = (Arc::clone(&octets), order.window);
    let each = move |sample: zenoh::sample::Sample| {
        if window.holds(now()) {
            counted.fetch_add(sample.payload().len() as u64, Ordering::Relaxed);
        }
    };
    let _subscriber = session.declare_subscriber(THERE).callback(each).await?;
    say_ready();
    tokio::time::sleep(order.window.left()).await;
    say_count(octets.load(Ordering::Relaxed));
    Ok(())
}

async fn source(order: &Order) -> Result<(), Failure> {
    let session = open(order, false).await?;
    let publisher = session.declare_publisher(THERE).congestion_control(CongestionControl::Block).await?;
    matched(&publisher).await?;
    let chunk = ZBytes::from(vec![0x5a; CHUNK]);
    let sending = async {
        while !order.window.is_over() {
            publisher.put(chunk.clone()).await?;
        }
        Ok::<_, Failure>(())
    };
    let _ = tokio::time::timeout(order.window.left(), sending).await;
    Ok(())
}

async fn echo(order: &Order) -> Result<(), Failure> {
    let session = open(order, true).await?;
    let publisher =
        session.declare_publisher(BACK).congestion_control(CongestionControl::Block).express(true).await?;
    let (answer, mut questions) = unbounded_channel();
    let each = move |sample: zenoh::sample::Sample| drop(answer.send(sample.payload().clone()));
    let _subscriber = session.declare_subscriber(THERE).callback(each).await?;
    say_ready();
    while let Some(question) = questions.recv().await {
        publisher.put(question).await?;
    }
    Ok(())
}

async fn questions(order: &Order) -> Result<(), Failure> {
    let session = open(order, false).await?;
    let (answered, answers) = unbounded_channel();
    let each = move |_: zenoh::sample::Sample| drop(answered.send(()));
    let _subscriber = session.declare_subscriber(BACK).callback(each).await?;
    let publisher =
        session.declare_publisher(THERE).congestion_control(CongestionControl::Block).express(true).await?;
    matched(&publisher).await?;
    let answers = tokio::sync::Mutex::new(answers);
    let question = ZBytes::from(vec![0x5a; QUESTION]);
    let once = || async {
        publisher.put(question.clone()).await?;
        answers.lock().await.recv().await.ok_or("the session has ended")?;
        Ok(())
    };
    ask(order.window, once).await
}
