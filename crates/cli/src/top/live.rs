//! The screen while it lives: looks, draws, listens to keys, and gives the terminal back as it was.

use super::lookout::{Absent, Lookout};
use super::narrow::Narrow;
use super::picture::{Picture, Warning};
use super::screen::{self, Shown};
use super::warn;
use nix::sys::signal::{SigSet, Signal};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rota::{Instant, Span};
use rota_answer::{Exit, Failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Keys and signals are answered within this, however rarely it draws.
const ATTENTIVE: Span = Span::from_millis(200);
const FASTEST: Span = Span::from_millis(20);
const SLOWEST: Span = Span::from_millis(60_000);

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Nothing,
    Draw,
    End,
}

struct Live {
    lookout: Lookout,
    shown: Shown,
    every: Span,
    picture: Picture,
    /// The port that is shown, by its interface; the first one where there is none of that name.
    port: String,
}

/// Runs until a key or a signal ends it.
///
/// # Errors
/// The terminal.
pub fn run(every: Span, filter: Narrow, shown: Shown) -> Result<Exit, Failure> {
    let told =
        signals().map_err(|errno| Failure::failed(format!("signals cannot be taken over: {errno}")))?;
    let picture = Picture::without_node("looking for the node of this station");
    let mut live = Live { lookout: Lookout::new(every, filter), shown, every, picture, port: String::new() };
    // It also gives the terminal back should something here panic.
    let mut terminal =
        ratatui::try_init().map_err(|e| Failure::failed(format!("the terminal cannot be used: {e}")))?;
    let outcome = live.turns(&mut terminal, &told);
    ratatui::restore();
    outcome.map_err(|error| Failure::failed(format!("the terminal is gone: {error}")))?;
    Ok(Exit::Done)
}

/// Signals that end programs are taken by a thread that raises a flag: nothing then keeps the terminal from
/// being given back.
fn signals() -> nix::Result<Arc<AtomicBool>> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        set.add(signal);
    }
    set.thread_block()?;
    let told = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&told);
    std::thread::spawn(move || {
        if set.wait().is_ok() {
            tell.store(true, Ordering::Relaxed);
            end_soon();
        }
    });
    std::thread::spawn(|| {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;
        let stdin = std::io::stdin();
        // Only a hang-up or an error wakes this: keys are the screen's.
        let mut terminal = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
        if poll(&mut terminal, PollTimeout::NONE).is_ok() {
            end_soon();
        }
    });
    Ok(told)
}

/// Where the terminal is gone, reading keys never returns, so that no flag is looked at.
fn end_soon() {
    std::thread::sleep(Duration::from_millis(500));
    ratatui::restore();
    std::process::exit(0);
}

impl Live {
    fn turns(&mut self, terminal: &mut DefaultTerminal, told: &AtomicBool) -> std::io::Result<()> {
        let mut next = rota::now();
        loop {
            let now = rota::now();
            if now >= next {
                next = (next + self.every).max(now);
                self.look(now);
                self.draw(terminal)?;
            }
            let wait = next.since(rota::now()).min(ATTENTIVE);
            let mut wish = Wish::Nothing;
            if event::poll(Duration::from_nanos(wait.as_nanos()))? {
                wish = match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
                    Event::Resize(..) => Wish::Draw,
                    _ => Wish::Nothing,
                };
            }
            if wish == Wish::End || told.load(Ordering::Relaxed) {
                return Ok(());
            }
            if wish == Wish::Draw {
                self.draw(terminal)?;
            }
        }
    }

    fn look(&mut self, now: Instant) {
        let picture = self.lookout.look(now).unwrap_or_else(Absent::picture);
        if !self.shown.paused {
            self.picture = picture;
        }
    }

    fn draw(&mut self, terminal: &mut DefaultTerminal) -> std::io::Result<()> {
        let (place, picture) = of_port(&self.picture, &self.port);
        self.shown.place = place;
        terminal.draw(|frame| screen::draw(frame, &picture, &self.shown)).map(drop)
    }

    /// The next port, after the last one the first.
    fn next_port(&mut self) {
        let ports: Vec<&str> = self.picture.all_ports().map(|port| &*port.interface).collect();
        let shown = ports.iter().position(|port| *port == self.port).unwrap_or(0);
        self.port = ports[(shown + 1) % ports.len()].to_owned();
    }

    fn key(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if matches!(key.code, KeyCode::Char('c' | 'd')) { Wish::End } else { Wish::Nothing };
        }
        if self.shown.typing.is_some() {
            self.type_filter(key.code);
            return Wish::Draw;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::End,
            KeyCode::Char('p' | ' ') => self.shown.paused = !self.shown.paused,
            KeyCode::Char('t') => self.shown.theme = self.shown.theme.next(),
            KeyCode::Char('?' | 'h') => self.shown.help = !self.shown.help,
            KeyCode::Char('r') => self.lookout.begin_anew(),
            KeyCode::Tab => self.next_port(),
            KeyCode::Char('/') => {
                self.shown.typing = Some(self.picture.filter.clone());
                self.shown.wrong = None;
            }
            KeyCode::Char('+') => self.set_rate(self.every.div_down(2)),
            KeyCode::Char('-') => self.set_rate(self.every * 2),
            _ => return Wish::Nothing,
        }
        Wish::Draw
    }

    fn set_rate(&mut self, every: Span) {
        self.every = every.max(FASTEST).min(SLOWEST);
        self.shown.rate = super::rate_name(self.every);
        self.lookout.set_sampling(self.every);
    }

    fn type_filter(&mut self, code: KeyCode) {
        let Some(typed) = &mut self.shown.typing else { return };
        self.shown.wrong = None;
        match code {
            KeyCode::Char(letter) => typed.push(letter),
            KeyCode::Backspace => _ = typed.pop(),
            KeyCode::Esc => self.shown.typing = None,
            KeyCode::Enter => match Narrow::parse(typed) {
                Ok(filter) => {
                    self.picture.filter.clone_from(&filter.text);
                    self.lookout.set_filter(&filter);
                    self.shown.typing = None;
                }
                Err(error) => {
                    self.shown.wrong =
                        Some(format!("column {}: {}; {}", error.column, error.found, error.wanted));
                }
            },
            _ => {}
        }
    }
}

/// The picture of the port of that interface, with the warnings of the other ports, and its place among all.
fn of_port(all: &Picture, interface: &str) -> ((usize, usize), Picture) {
    let ports: Vec<&Picture> = all.all_ports().collect();
    let at = ports.iter().position(|port| port.interface == interface).unwrap_or(0);
    let mut picture = ports[at].clone();
    let others = ports.iter().enumerate().filter(|(other, _)| *other != at);
    let warnings = others.flat_map(|(_, port)| {
        port.warnings.iter().map(|warning| {
            let sentence = format!("{}: {}", port.interface, warning.sentence);
            Warning { sentence, ..warning.clone() }
        })
    });
    picture.warnings.extend(warnings);
    warn::sort(&mut picture.warnings);
    ((at, ports.len()), picture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::picture::Beyond;

    #[test]
    fn each_port_can_be_shown_and_the_trouble_of_the_others_is_shown_with_it() {
        let port = |interface: &str, lately| {
            let warning = Warning { kind: "dead".into(), sentence: format!("n9 of {interface}"), lately };
            Picture { interface: interface.into(), warnings: vec![warning], ..Picture::default() }
        };
        let all = Picture {
            beyond: Beyond { other_ports: vec![port("eth1", true)], ..Beyond::default() },
            ..port("eth0", false)
        };
        let said = |interface| {
            let (place, picture) = of_port(&all, interface);
            let said = picture.warnings.into_iter().map(|warning| warning.sentence).collect::<Vec<_>>();
            (place, picture.interface, said)
        };
        let first = ((0, 2), "eth0".to_owned(), vec!["eth1: n9 of eth1".to_owned(), "n9 of eth0".into()]);
        assert_eq!([said(""), said("gone0")], [first.clone(), first]);
        let second = ((1, 2), "eth1".to_owned(), vec!["n9 of eth1".to_owned(), "eth0: n9 of eth0".into()]);
        assert_eq!(said("eth1"), second);
    }
}
