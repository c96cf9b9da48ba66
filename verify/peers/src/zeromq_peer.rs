//! ZeroMQ, by its implementation in Rust: PUSH and PULL for a stream, REQ and REP for round trips, over TCP.

use crate::{CHUNK, Failure, Order, QUESTION, ask, now, say_count, say_ready};
use bytes::Bytes;
use zeromq::{Socket, SocketRecv, SocketSend, ZmqMessage};

pub async fn run(role: &str, order: &Order) -> Result<(), Failure> {
    let at = format!("tcp://{}", order.at);
    match role {
        "sink" => sink(&at, order).await,
        "source" => source(&at, order).await,
        "echo" => echo(&at).await,
        "ask" => {
            let mut socket = zeromq::ReqSocket::new();
            socket.connect(&at).await?;
            let socket = tokio::sync::Mutex::new(socket);
            let question = Bytes::from_static(&[0x5a; QUESTION]);
            let once = || async {
                let mut socket = socket.lock().await;
                socket.send(ZmqMessage::from(question.clone())).await?;
                socket.recv().await?;
                Ok(())
            };
            ask(order.window, once).await
        }
        _ => Err(format!("'{role}' is no role").into()),
    }
}

async fn sink(at: &str, order: &Order) -> Result<(), Failure> {
    let mut socket = zeromq::PullSocket::new();
    socket.bind(at).await?;
    say_ready();
    let mut octets = 0;
    let counting = async {
        loop {
            let message = socket.recv().await?;
            let taken: usize = message.iter().map(Bytes::len).sum();
            octets += if order.window.holds(now()) { taken as u64 } else { 0 };
        }
        #[allow(unreachable_code)]
        Ok::<(), Failure>(())
    };
    let _ = tokio::time::timeout(order.window.left(), counting).await;
    say_count(octets);
    Ok(())
}

async fn source(at: &str, order: &Order) -> Result<(), Failure> {
    let mut socket = zeromq::PushSocket::new();
    socket.connect(at).await?;
    let chunk = Bytes::from(vec![0x5a; CHUNK]);
    let sending = async {
        while !order.window.is_over() {
            socket.send(ZmqMessage::from(chunk.clone())).await?;
        }
        Ok::<_, Failure>(())
    };
    let _ = tokio::time::timeout(order.window.left(), sending).await;
    Ok(())
}

async fn echo(at: &str) -> Result<(), Failure> {
    let mut socket = zeromq::RepSocket::new();
    socket.bind(at).await?;
    say_ready();
    loop {
        let question = socket.recv().await?;
        socket.send(question).await?;
    }
}
