//! A run of the model as a schedule for `rota sim`: which frame is lost or doubled, by its number among those
//! of its kind between two stations; who dies, stands still or is cut off, when and in which state.
//!
//! The ticks of the model are coarser than the simulator's time, so the schedule is a run of its own there:
//! what the model found need not happen again, and what happens is judged by the simulator's checkers.

use crate::frame::Frame;
use crate::ring::step;
use crate::world::{Action, Flight, Spec, TICK, World, settings};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Numbers frames by kind, sender and receiver, and remembers what has begun and not ended.
#[derive(Default)]
struct Told {
    gone: BTreeMap<(u8, u8, u8), u64>,
    doubled: Vec<(Arc<Frame>, String, u64)>,
    since: BTreeMap<(&'static str, u8), (u64, String)>,
    lines: Vec<String>,
}

impl Told {
    /// The words that name a flight, where `before` like it are still in front of it.
    fn flight(&mut self, flight: &Flight, before: u64, takes: bool) -> String {
        let kind = flight.frame.header.kind;
        let gone = self.gone.entry((kind.code(), flight.from, flight.to)).or_default();
        let number = *gone + before + 1;
        *gone += u64::from(takes);
        format!("{number} {} {} {}", kind.word(), flight.from + 1, flight.to + 1)
    }

    fn action(&mut self, world: &World, action: Action, now: u64) {
        match action {
            // A scenario's hosts leave wills by themselves.
            Action::Tick | Action::Will(_) => {}
            Action::Deliver(at) | Action::Lose(at) | Action::Double(at) => self.frame(world, action, at, now),
            Action::Crash(of) => self.begins("crash", of, now, world),
            Action::Pause(of) => self.begins("pause", of, now, world),
            Action::Split(set) => {
                let part = (0..8).filter(|of| set >> of & 1 == 1).map(|of| format!(" {}", of + 1));
                self.since.insert(("split", 0), (now, part.collect()));
            }
            Action::Restart(of) => self.ends("crash", of, now),
            Action::Resume(of) => self.ends("pause", of, now),
            Action::Merge => self.ends("split", 0, now),
        }
    }

    fn frame(&mut self, world: &World, action: Action, at: u8, now: u64) {
        let at = usize::from(at);
        let flight = &world.net[at];
        if flight.late {
            // The second copy comes.
            if let Some(known) = self.doubled.iter().position(|(frame, ..)| Arc::ptr_eq(frame, &flight.frame))
            {
                let (_, which, since) = self.doubled.remove(known);
                self.lines.push(format!("twice {which} {}ms", (now - since).max(1)));
            }
            return;
        }
        let like = |other: &&Flight| {
            let same = (other.from, other.to, other.frame.header.kind);
            !other.late && same == (flight.from, flight.to, flight.frame.header.kind)
        };
        let before = world.net[..at].iter().filter(like).count() as u64;
        let which = self.flight(flight, before, !matches!(action, Action::Double(_)));
        match action {
            Action::Lose(_) => self.lines.push(format!("lose {which}")),
            Action::Double(_) => self.doubled.push((Arc::clone(&flight.frame), which, now)),
            _ => {}
        }
    }

    fn begins(&mut self, what: &'static str, of: u8, now: u64, world: &World) {
        let node = world.stations[usize::from(of)].node.as_ref();
        let state = node.map_or("", |node| node.rether().state_name());
        let told = matches!(state, "holding" | "claiming");
        let moment = if told { format!(" while {state}") } else { String::new() };
        self.since.insert((what, of), (now, moment));
    }

    fn ends(&mut self, what: &'static str, of: u8, now: u64) {
        let Some((since, more)) = self.since.remove(&(what, of)) else { return };
        self.line(what, of, since, &more, Some((now - since).max(1)));
    }

    fn line(&mut self, what: &str, of: u8, since: u64, more: &str, lasts: Option<u64>) {
        let lasts = lasts.map_or(String::new(), |lasts| format!(" for {lasts}ms"));
        self.lines.push(match what {
            "split" => format!("split{more} at {since}ms{lasts}"),
            _ => format!("{what} {} at {since}ms{lasts}{more}", of + 1),
        });
    }

    /// A fault that has not ended goes on to the end, the dead stay dead.
    fn finish(&mut self, now: u64) {
        for ((what, of), (since, more)) in std::mem::take(&mut self.since) {
            let lasts = (what != "crash").then_some((now - since).max(1));
            self.line(what, of, since, &more, lasts);
        }
    }
}

/// Writes a run of the model as a schedule.
///
/// # Errors
/// The ring does not form under this specification.
pub fn write(spec: &Spec, actions: &[Action]) -> Result<String, String> {
    let mut world = World::formed(spec)?;
    let begin = world.now;
    let ticks = |world: &World| world.now.since(begin).count_down(TICK);
    let mut told = Told::default();
    for action in actions {
        told.action(&world, *action, ticks(&world));
        world = step(spec, &world, *action);
    }
    told.finish(ticks(&world));
    let timers = settings();
    let ms = |span: rota_units::Span| span.as_nanos() / 1_000_000;
    let (trt, hop, lease) = (ms(timers.trt), ms(timers.hop_timeout), ms(timers.lease));
    // The product refuses a death timer below three retransmissions, which the model allows itself.
    let death = ms(timers.death_timeout).max(hop * 3);
    // A tick is shorter than a control frame behind a full one takes at the schedules' rate.
    let delay = ms(timers.delay_max).max(2);
    let mut text = format!(
        "stations {}\ncycle {trt}ms\nhop {hop}ms\ndeath {death}ms\nlease {lease}ms\ndelay {delay}ms\n",
        spec.stations
    );
    let strict = if spec.periodic { " strict" } else { "" };
    for (from, to) in &spec.channels {
        let _ = writeln!(text, "reserve {} {} 1000{strict}", from + 1, to + 1);
    }
    if spec.load {
        text.push_str("load 1226\n");
    }
    text.extend(told.lines.iter().map(|line| format!("{line}\n")));
    Ok(text)
}
