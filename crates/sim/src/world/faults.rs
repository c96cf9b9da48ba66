//! How a world does what a fault says.

use super::{EPOCH, SECRET, World, mac};
use crate::check::{Blow, Scope, Seen, are_strangers};
use crate::engine::Stream;
use crate::faults::{Aim, Fault, Happened, Injected, Moment};
use crate::hosts::{HostProfile, Keeps};
use crate::media::wire_time;
use rota_units::{Instant, Span};
use rota_wire::{Key, MacAddr};

/// What waits for a station to reach a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    pub(super) host: usize,
    state: &'static str,
    /// By when it happens anyway.
    by: Instant,
    what: Strike,
    /// How often it happens again.
    left: u32,
}

#[derive(Clone, Copy, Debug)]
enum Strike {
    Kill { down: Option<Span> },
    Pause(Span),
}

impl World {
    /// How often a fault does what it does again.
    pub fn beat(&self, fault: &Fault) -> Option<Span> {
        let octets = if let Fault::Flood { octets, .. } = fault { usize::from(*octets) } else { 0 };
        fault.beat(wire_time(self.spec.settings.link.rate, octets))
    }

    /// A fault begins; it ends by itself, or [`Self::end_fault`] ends it.
    pub fn begin_fault(&mut self, index: usize, fault: &Fault, until: Instant) {
        let now = self.now();
        let (lasts, stations) = (until.since(now), self.hosts.len() as u64);
        let slot = self.recovery.slot();
        let random = Stream::named(self.chance.seed, &format!("fault {index}"));
        match fault {
            Fault::Wire { .. } | Fault::Boundary { .. } => self.begin_on_wires(fault, until, &random),
            Fault::Crash { host, moment, down } => {
                self.arm(*host, *moment, Strike::Kill { down: *down }, 1, until)
            }
            Fault::CrashLoop { host, up, down } => self.crash_loop(*host, *up, *down, until),
            Fault::Pause { host, moment } => self.arm(*host, *moment, Strike::Pause(lasts), 1, until),
            Fault::PauseAll => {
                self.tally.count(Happened::PausedAll);
                (0..self.hosts.len()).for_each(|host| self.pause(host, lasts));
                let recovery = self.recovery.crash(stations) + slot;
                self.windows.open(now, lasts + recovery, Scope::All);
            }
            Fault::Starve { host, late_ppm, late_max } => {
                self.tally.count(Happened::Starved);
                let profile =
                    HostProfile { late_ppm: *late_ppm, late_max: *late_max, ..self.hosts[*host].profile };
                self.hosts[*host].profile = profile;
                // A holder that sleeps through its lease has lost the token, and only a claim makes another.
                // One at which it rests needs only to miss the cycle in which it would have gone round.
                let sleeps = *late_max >= self.spec.settings.lease.min(self.spec.settings.trt);
                let lost = if sleeps { self.recovery.crash(0) } else { self.recovery.token_loss(4) };
                self.windows.open(now, lasts + lost + *late_max + slot, Scope::All);
            }
            // No machine is given a wall clock: there is nothing that could be set.
            Fault::WallClock { .. } => self.tally.count(Happened::WallClock),
            Fault::Drift { host, rate } => {
                self.tally.count(Happened::Drifted);
                self.set_clock(*host, *rate);
                if rate.abs_diff(1_000_000_000) > 500_000 {
                    let recovery = self.recovery.crash(1) + slot;
                    self.windows.open(now, lasts + recovery, Scope::All);
                }
            }
            Fault::Hog { host, times } => {
                let span = self.spec.settings.lease + Span::from_millis(1);
                self.tally.count(Happened::Hogged);
                self.arm(*host, Moment::In("holding"), Strike::Pause(span), *times, until);
            }
            Fault::Keep { host, hold, nth } => {
                self.hosts[*host].flaws.keeps = Some(Keeps { hold: *hold, nth: (*nth).max(1), tokens: 0 });
            }
            Fault::Stray { host, late } => self.hosts[*host].flaws.units_late = *late,
            Fault::Partition { .. } | Fault::OneWay { .. } => self.cut(fault, until, &random),
            _ => self.begin_evil(fault, lasts),
        }
        // What strikes by itself says so when it does.
        if let Some(blow) = self.blow_of(fault, until) {
            self.judge.seen.push(Seen::Struck { blow });
            self.check();
        }
    }

    /// What a fault does to the token where it strikes all the time, or at once and as a whole.
    fn blow_of(&self, fault: &Fault, until: Instant) -> Option<Blow> {
        let stations = self.hosts.len() as u64;
        let other = |ends, silent| Some(Blow::Other { ends, silent });
        match fault {
            Fault::Partition { part } if stations <= 64 => {
                Some(Blow::Parting(part.iter().fold(0, |hosts, host| hosts | 1 << host)))
            }
            Fault::Partition { .. } | Fault::PauseAll => other(until, stations),
            Fault::Starve { late_max, .. } => other(until + *late_max, 1),
            Fault::OneWay { .. } => other(until, 1),
            // Once pulled, the plug is out for half a period, also behind the fault's end (seeds 107553 and
            // 115823 of the proven timers).
            Fault::Flap { period, .. } => {
                let (half, lasts) = (period.div_down(2), until.since(self.now()));
                let pulled = (half * 2) * lasts.minus(Span::from_nanos(1)).count_down(half * 2);
                other(until.max(self.now() + pulled + half), 1)
            }
            // Whose address another has is reached no more, nor is the other.
            Fault::Clone { .. } => other(until, 2),
            Fault::Babble { .. } | Fault::Insider { .. } => other(until, 0),
            // What waits at the ports must leave them first.
            Fault::Flood { .. } => {
                let port = self.spec.settings.link.rate.span_of_up(self.spec.settings.port_queue);
                other(until + port, stations)
            }
            Fault::Drift { rate, .. } if rate.abs_diff(1_000_000_000) > 500_000 => other(until, 1),
            // These say themselves when they strike, or take nothing from a ring that keeps its rules.
            _ => None,
        }
    }

    /// Somebody is not what he should be, or does what he should not.
    fn begin_evil(&mut self, fault: &Fault, lasts: Span) {
        let (now, slot) = (self.now(), self.recovery.slot());
        match fault {
            Fault::Insider { .. } | Fault::Flood { .. } => {
                let recovery = self.recovery.crash(1) + slot;
                self.windows.open(now, lasts + recovery, Scope::All);
            }
            Fault::Babble { gap, octets, .. } => {
                // Excused from nothing: but what it takes of each cycle is missing for ordinary traffic. Its
                // last frames may wait in its card for the end of a cycle.
                let trt = self.spec.settings.trt;
                let frame = wire_time(self.spec.settings.link.rate, usize::from(*octets));
                let frames = trt.count_down((*gap).max(Span::from_micros(1))) + 2;
                self.windows.burden(now, lasts + trt, frame * frames);
            }
            // One unit, or a token, may be under way when the first frame comes. If no station of the segment
            // hears the stranger, all units are at risk for as long as the victim sends nothing.
            Fault::Spoof { to, .. } => {
                let lasts = if *to == Aim::All { Span::ZERO } else { lasts };
                self.windows.open(now, lasts + self.recovery.slot(), Scope::All);
            }
            Fault::Clone { host, of } => {
                self.tally.count(Happened::Cloned);
                self.kill(*host);
                self.hosts[*host].mac = self.hosts[*of].mac;
                self.start(*host);
                self.windows.open(now, lasts + self.recovery.crash(2) + slot, Scope::All);
            }
            Fault::Skew { host } => {
                self.tally.count(Happened::Skewed);
                self.kill(*host);
                let mut settings = self.spec.settings.clone();
                settings.trt = settings.trt.div_down(4) * 3;
                self.hosts[*host].settings = Some(settings);
                self.start(*host);
                self.windows.open(now, lasts + self.recovery.crash(1) + slot, Scope::All);
            }
            Fault::Storm { hosts } => {
                self.tally.count(Happened::TogetherStarted);
                hosts.iter().for_each(|host| self.kill(*host));
                hosts.iter().for_each(|host| self.start(*host));
            }
            // What these do, they do at each beat.
            _ => {}
        }
    }

    fn begin_on_wires(&mut self, fault: &Fault, until: Instant, random: &Stream) {
        let stations = self.hosts.len();
        let what = self.wires.begin(fault, stations, &self.spec.settings, until, random);
        what.into_iter().for_each(|what| self.tally.count(what));
    }

    fn cut(&mut self, fault: &Fault, until: Instant, random: &Stream) {
        self.begin_on_wires(fault, until, random);
        if let Fault::Partition { part } = fault {
            self.parted(part, until);
            return;
        }
        self.parts_meet(until);
    }

    /// Until `until` some do not hear others, and from then on they become one ring again.
    fn parts_meet(&mut self, until: Instant) {
        let (now, merge) = (self.now(), self.merge());
        self.windows.open(now, until.since(now) + merge, Scope::All);
        self.windows.merging_until = self.windows.merging_until.max(until + merge);
    }

    /// One ring again, and every unit in its slot.
    fn merge(&self) -> Span {
        let mut merge = self.recovery.merge(self.hosts.len() as u64);
        if are_strangers(&self.hosts, self.now()) {
            merge = merge.max(self.recovery.meeting_of_strangers());
        }
        merge + self.recovery.slot()
    }

    /// Each part has a ring again after it has found the others silent, and keeps its promises until they
    /// meet. Between the parts nothing is promised.
    fn parted(&mut self, part: &[usize], until: Instant) {
        let (now, stations) = (self.now(), self.hosts.len());
        let recovery = self.recovery.crash(stations as u64) + self.recovery.slot();
        self.windows.open(now, recovery, Scope::All);
        let (one, other): (Vec<usize>, Vec<usize>) = (0..stations).partition(|host| part.contains(host));
        for (from, to) in one.iter().flat_map(|from| other.iter().map(move |to| (*from, *to))) {
            self.windows.open(now, until.since(now), Scope::Pair(from, to));
            self.windows.open(now, until.since(now), Scope::Pair(to, from));
        }
    }

    fn crash_loop(&mut self, host: usize, up: Span, down: Span, until: Instant) {
        self.tally.count(Happened::CrashLoop);
        let mut at = self.now();
        while at < until {
            self.mischief.armed.push(Armed {
                host,
                state: "",
                by: at,
                what: Strike::Kill { down: Some(down) },
                left: 1,
            });
            at += up + down + Span::from_millis(1);
        }
    }

    fn arm(&mut self, host: usize, moment: Moment, what: Strike, left: u32, until: Instant) {
        let (state, by) = match moment {
            Moment::Now => ("", self.now()),
            Moment::In(state) => (state, until.max(self.now() + Span::from_millis(500))),
        };
        self.mischief.armed.push(Armed { host, state, by, what, left });
        self.fire();
    }

    /// Strikes whoever is in the state that was waited for.
    pub(super) fn fire(&mut self) {
        let now = self.now();
        let mut at = 0;
        while at < self.mischief.armed.len() {
            let armed = self.mischief.armed[at];
            let node = self.hosts[armed.host].node.as_ref();
            let reached =
                !armed.state.is_empty() && node.is_some_and(|node| node.link().state_name() == armed.state);
            if !(reached && self.hosts[armed.host].is_running(now)) && now < armed.by {
                at += 1;
                continue;
            }
            if armed.left > 1 && reached {
                self.mischief.armed[at].left -= 1;
                at += 1;
            } else {
                self.mischief.armed.remove(at);
            }
            match armed.what {
                Strike::Kill { down } => {
                    self.kill(armed.host);
                    if let Some(down) = down {
                        self.start_later(armed.host, down);
                    }
                }
                Strike::Pause(span) => self.pause(armed.host, span),
            }
        }
    }

    /// One beat of a fault that goes on.
    pub fn beat_fault(&mut self, index: usize, fault: &Fault) {
        let now = self.now();
        let settings = self.spec.settings.clone();
        let macs: Vec<MacAddr> = self.hosts.iter().map(|host| host.mac).collect();
        let injected = self.mischief.evil.inject(fault, &settings, &macs, &mut self.mischief.random);
        injected.iter().for_each(|(what, _)| self.tally.count(*what));
        match injected.map(|(_, injected)| injected) {
            Some(Injected::Sent { from, frame }) => self.send(from, frame),
            Some(Injected::Arrived { to, frame, lie }) => {
                if matches!(fault, Fault::Replay { .. }) {
                    self.fragment_copied(&frame, 1);
                }
                self.arrive_or_lie(to, frame, lie);
            }
            None => {}
        }
        match fault {
            Fault::Insider { wrap, .. } => {
                self.tally.count(if *wrap { Happened::Wrapped } else { Happened::Insider });
                let stranger = MacAddr([2, 0x45, 0x56, 0x49, 0x4c, index as u8]);
                let station = self.hosts.len() as u16 + 1;
                let frame =
                    self.mischief.evil.insider(&settings, &Key::new(SECRET), station, stranger, *wrap);
                (0..self.hosts.len()).for_each(|host| self.arrive(host, frame.clone()));
            }
            Fault::Flap { host, period } => {
                self.tally.count(Happened::Flapped);
                self.mischief.flaps ^= 1 << (index % 64);
                if self.mischief.flaps >> (index % 64) & 1 == 1 {
                    let until = now + period.div_down(2);
                    self.wires.unplug(*host, until, &Stream::named(self.chance.seed, "flap"));
                    self.parts_meet(until);
                }
            }
            _ => {}
        }
        self.check();
    }

    /// A fault is over.
    pub fn end_fault(&mut self, _index: usize, fault: &Fault) {
        match fault {
            Fault::Starve { host, .. } => {
                let clean = self.spec.profile;
                self.hosts[*host].profile = clean;
            }
            Fault::Keep { host, .. } => self.hosts[*host].flaws.keeps = None,
            Fault::Stray { host, .. } => self.hosts[*host].flaws.units_late = Span::ZERO,
            Fault::Drift { host, .. } => self.set_clock(*host, 1_000_000_000),
            Fault::Partition { .. } => {
                self.tally.count(Happened::Merged);
                self.parts_meet(self.now());
                self.judge.seen.push(Seen::Struck { blow: Blow::Meeting });
                self.check();
            }
            Fault::Clone { host, .. } | Fault::Skew { host } => self.replace(*host),
            _ => {}
        }
    }

    /// A station that was not itself is started anew as what it should be.
    fn replace(&mut self, host: usize) {
        self.kill(host);
        self.hosts[host].mac = mac(host);
        self.hosts[host].settings = None;
        self.start(host);
    }

    fn set_clock(&mut self, host: usize, rate: u64) {
        let now = self.now();
        self.hosts[host].clock.set_rate(now, rate);
        self.hosts[host].process.alarm = Instant::FAR;
        self.settle(host);
    }

    /// Ends everything that is wrong, and starts whoever is down.
    pub fn heal_all(&mut self) {
        self.wires.heal();
        self.mischief.armed.clear();
        let now = self.now();
        for host in 0..self.hosts.len() {
            (self.hosts[host].flaws.keeps, self.hosts[host].flaws.units_late) = (None, Span::ZERO);
            if self.hosts[host].boots > 0 && self.hosts[host].node.is_none() {
                self.start(host);
            }
        }
        if self.windows.cover(now) {
            self.windows.open(now, self.merge(), Scope::All);
        }
        debug_assert!(now >= EPOCH, "time begins there");
    }
}
