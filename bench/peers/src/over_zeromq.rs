//! Ends over ZeroMQ: PUSH and PULL, REQ and REP, over TCP.

use crate::end::{CHUNK, Fault, QUESTION, ask_by, say_ready, tell_octets, within};
use crate::{End, Role};
use bytes::Bytes;
use zeromq::{PullSocket, PushSocket, RepSocket, ReqSocket, Socket, SocketRecv, SocketSend};

pub async fn run(end: End) -> Result<(), Fault> {
    let at = format!("tcp://{}", end.at);
    match end.role {
        Role::Sink => sink(end, &at).await,
        Role::Source => source(end, &at).await,
        Role::Echo => echo(&at).await,
        Role::Ask => ask(end, &at).await,
    }
}

async fn sink(end: End, at: &str) -> Result<(), Fault> {
    let mut socket = PullSocket::new();
    socket.bind(at).await?;
    say_ready();
    let mut octets = 0;
    let taking = async {
        // The other end may leave a moment before this window is over: that is no error.
        while let Ok(message) = socket.recv().await {
            if end.window.is_open() {
                octets += message.iter().map(|part| part.len() as u64).sum::<u64>();
            }
        }
        Ok(())
    };
    within(end.window, taking).await?;
    tell_octets(octets);
    Ok(())
}

async fn source(end: End, at: &str) -> Result<(), Fault> {
    let mut socket = PushSocket::new();
    socket.connect(at).await?;
    let chunk = Bytes::from(vec![0x5a; CHUNK]);
    let giving = async {
        loop {
            socket.send(chunk.clone().into()).await?;
        }
    };
    within(end.window, giving).await.map(drop)
}

async fn echo(at: &str) -> Result<(), Fault> {
    let mut socket = RepSocket::new();
    socket.bind(at).await?;
    say_ready();
    loop {
        let question = socket.recv().await?;
        socket.send(question).await?;
    }
}

async fn ask(end: End, at: &str) -> Result<(), Fault> {
    let mut socket = ReqSocket::new();
    socket.connect(at).await?;
    let question = Bytes::from(vec![0x5a; QUESTION]);
    ask_by(end.window, async || {
        socket.send(question.clone().into()).await?;
        socket.recv().await?;
        Ok(())
    })
    .await
}
