//! Circuits under tokio: `async_echo serve 7` on one station, `async_echo ask n2 7` on another one, which
//! sends messages over four circuits at once.
//!
//! Each end has a descriptor. Where a call that does not wait has nothing to do, and `arm` says so too, an
//! `AsyncFd` waits for it.

use rota::vc::{CircuitListener, Duplex, ListenOptions, Options, Receiver, Sender, VcError};
use rota::{ControlName, Span};
use std::os::fd::AsRawFd;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;

type Failure = Box<dyn std::error::Error + Send + Sync>;
const PATIENCE: Span = Span::from_millis(10_000);

/// An end owns its descriptor, and keeps it open for as long as it lives.
#[expect(deprecated, reason = "the newer constructor is unsafe, which this code is not to be")]
fn watched<T: AsRawFd>(end: T) -> std::io::Result<AsyncFd<T>> {
    AsyncFd::new(end)
}

async fn wait<T: AsRawFd>(end: &mut AsyncFd<T>) -> Result<(), Failure> {
    end.readable_mut().await?.clear_ready();
    Ok(())
}

async fn accept(listener: &mut AsyncFd<CircuitListener>) -> Result<Receiver, Failure> {
    loop {
        match listener.get_mut().accept(Span::ZERO) {
            Err(VcError::TimedOut) => wait(listener).await?,
            accepted => return Ok(accepted?),
        }
    }
}

async fn send(end: &mut AsyncFd<Sender>, mut message: &[u8]) -> Result<(), Failure> {
    loop {
        let written = end.get_mut().write(message, true)?;
        message = &message[written.octets..];
        if written.ended {
            return Ok(());
        }
        if !end.get_ref().arm() {
            wait(end).await?;
        }
    }
}

/// False at the end of the circuit.
async fn recv(end: &mut AsyncFd<Receiver>, message: &mut Vec<u8>) -> Result<bool, Failure> {
    loop {
        match end.get_mut().recv(message, Span::ZERO) {
            Err(VcError::TimedOut) => {}
            came => return Ok(came?),
        }
        if !end.get_mut().arm() {
            wait(end).await?;
        }
    }
}

async fn finish(end: &mut AsyncFd<Sender>) -> Result<(), Failure> {
    while !end.get_mut().shutdown()? || end.get_ref().end().is_none() {
        if !end.get_ref().arm() {
            wait(end).await?;
        }
    }
    Ok(())
}

async fn echo(receiver: Receiver) -> Result<(), Failure> {
    let answer = move || Duplex::answer(&ControlName::default(), receiver, PATIENCE);
    let Duplex { sender, receiver } = spawn_blocking(answer).await??;
    let (mut sender, mut receiver) = (watched(sender)?, watched(receiver)?);
    let mut message = Vec::new();
    while recv(&mut receiver, &mut message).await? {
        send(&mut sender, &message).await?;
    }
    finish(&mut sender).await
}

async fn ask(to: String, service: u32, letter: u8) -> Result<usize, Failure> {
    let connect =
        move || Duplex::connect(&ControlName::default(), &to, service, &Options::RELIABLE, PATIENCE);
    let Duplex { sender, receiver } = spawn_blocking(connect).await??;
    let (mut sender, mut receiver) = (watched(sender)?, watched(receiver)?);
    let mut answer = Vec::new();
    for octets in [0, 64, 5_000, 700_000] {
        let question = vec![letter; octets];
        // Neither end has room for the whole of a long one: both directions go at once.
        let (sent, came) = tokio::join!(send(&mut sender, &question), recv(&mut receiver, &mut answer));
        sent?;
        assert!(came? && answer == question, "another answer came");
    }
    finish(&mut sender).await?;
    Ok(4)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", service] => {
            let options = ListenOptions::default();
            let listener = CircuitListener::listen(&ControlName::default(), service.parse()?, &options)?;
            let mut listener = watched(listener)?;
            eprintln!("listening");
            loop {
                tokio::spawn(echo(accept(&mut listener).await?));
            }
        }
        ["ask", to, service] => {
            let (to, service) = (to.to_owned(), service.parse()?);
            let asked = b"abcd".map(|letter| tokio::spawn(ask(to.clone(), service, letter)));
            for asked in asked {
                println!("{} messages came back", asked.await??);
            }
            Ok(())
        }
        _ => Err("usage: async_echo serve SERVICE | async_echo ask STATION SERVICE".into()),
    }
}
