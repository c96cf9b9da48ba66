//! Faults as a scenario names them: what, when, for how long.

use super::wire::{Select, WireFault};
use rota_units::Span;

/// In which state a station is to be when it is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At once.
    Now,
    /// As soon as its node is in the state of this name (`Rether::state_name`).
    In(&'static str),
}

/// To whom a stranger with a station's address sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To everybody, with our EtherType.
    All,
    /// Ordinary frames to another station, which no other hears.
    One,
    /// Ordinary frames to the address itself: a switch forwards none of them, and learns.
    Itself,
}

/// Something that goes wrong with a station, or that somebody does.
#[derive(Clone, Debug)]
pub enum Fault {
    /// 1–9: frames are lost, changed, doubled or late.
    Wire {
        /// How.
        fault: WireFault,
        /// Which.
        select: Select,
    },
    /// 10: tokens arrive within a microsecond of a timer's end.
    Boundary {
        /// Of a million tokens.
        ppm: u32,
    },
    /// 11, 12: a process is killed; its successor knows nothing.
    Crash {
        /// Whose.
        host: usize,
        /// When exactly.
        moment: Moment,
        /// How long until the next process starts; never when `None`.
        down: Option<Span>,
    },
    /// 13: crash, restart, crash …
    CrashLoop {
        /// Whose.
        host: usize,
        /// From start to crash.
        up: Span,
        /// From crash to start.
        down: Span,
    },
    /// 14, 15: a process stands still.
    Pause {
        /// Whose.
        host: usize,
        /// When exactly.
        moment: Moment,
    },
    /// 16: all processes stand still.
    PauseAll,
    /// 17: the processor is slow to give a process its turn.
    Starve {
        /// Whose.
        host: usize,
        /// Of a million wake-ups.
        late_ppm: u32,
        /// At most.
        late_max: Span,
    },
    /// 18: the wall clock jumps.
    WallClock {
        /// Whose.
        host: usize,
    },
    /// 19: a monotonic clock runs at so many nanoseconds for a billion.
    Drift {
        /// Whose.
        host: usize,
        /// 1,000,000,000 is right, 0 stands still.
        rate: u64,
    },
    /// 20, 21: the hosts of `part` and the others do not hear each other; at its end they meet again.
    Partition {
        /// Some of the hosts.
        part: Vec<usize>,
    },
    /// 22: nothing gets from one to the other; the way back is sound.
    OneWay {
        /// From.
        from: usize,
        /// To.
        to: usize,
    },
    /// 23: a link goes down for half of each period.
    Flap {
        /// Whose.
        host: usize,
        /// Down and up.
        period: Span,
    },
    /// 23: an interface disappears, and its process runs on with the others, or ends where it was the only
    /// one. At the end a new process finds it again.
    PortLoss {
        /// Whose.
        host: usize,
    },
    /// 26: a station sends ordinary frames whether it may or not.
    Babble {
        /// Who.
        host: usize,
        /// From one to the next.
        gap: Span,
        /// Of how many octets.
        octets: u16,
    },
    /// 27: a station keeps the token until its lease ends, so often.
    Hog {
        /// Who.
        host: usize,
        /// How often.
        times: u32,
    },
    /// 27: a station keeps each token for longer than its slot, and passes it on before its lease ends.
    Keep {
        /// Who.
        host: usize,
        /// For so long.
        hold: Span,
        /// Every so many tokens one.
        nth: u32,
    },
    /// 27: a station's units leave its card so much later than it hands them over: behind the token.
    Stray {
        /// Whose.
        host: usize,
        /// How much later.
        late: Span,
    },
    /// 28: frames that nobody with a key made.
    Forge {
        /// From one to the next.
        gap: Span,
    },
    /// 29, 33: frames made with the segment's key by somebody who should not.
    Insider {
        /// From one to the next.
        gap: Span,
        /// Whether counters are near their end.
        wrap: bool,
    },
    /// 30: frames that were seen before come again.
    Replay {
        /// From one to the next.
        gap: Span,
    },
    /// 31: a station starts with the address of another.
    Clone {
        /// Who starts.
        host: usize,
        /// Whose address it has.
        of: usize,
    },
    /// 32: a station starts with another cycle.
    Skew {
        /// Who.
        host: usize,
    },
    /// 34: these stations start at one instant.
    Storm {
        /// Who; those that run are started anew.
        hosts: Vec<usize>,
    },
    /// 28: a stranger sends with the address of a station.
    Spoof {
        /// Whose.
        host: usize,
        /// From one to the next.
        gap: Span,
        /// To whom.
        to: Aim,
    },
    /// 35: a stranger sends at the link's rate.
    Flood {
        /// Of how many octets.
        octets: u16,
        /// To everybody.
        broadcast: bool,
    },
}

impl Fault {
    /// Hosts that it names.
    pub fn hosts(&self) -> Vec<usize> {
        let mut hosts = Vec::new();
        self.clone().renumber(|host| {
            hosts.push(host);
            host
        });
        hosts
    }

    /// Gives each host that it names another number.
    pub fn renumber(&mut self, mut number: impl FnMut(usize) -> usize) {
        match self {
            Self::Crash { host, .. }
            | Self::CrashLoop { host, .. }
            | Self::Pause { host, .. }
            | Self::Starve { host, .. }
            | Self::WallClock { host }
            | Self::Drift { host, .. }
            | Self::Flap { host, .. }
            | Self::PortLoss { host }
            | Self::Babble { host, .. }
            | Self::Hog { host, .. }
            | Self::Keep { host, .. }
            | Self::Stray { host, .. }
            | Self::Spoof { host, .. }
            | Self::Skew { host } => *host = number(*host),
            Self::OneWay { from: one, to: other } | Self::Clone { host: one, of: other } => {
                (*one, *other) = (number(*one), number(*other));
            }
            Self::Partition { part: hosts } | Self::Storm { hosts } => {
                hosts.iter_mut().for_each(|host| *host = number(*host));
            }
            Self::Wire { .. }
            | Self::Boundary { .. }
            | Self::PauseAll
            | Self::Forge { .. }
            | Self::Insider { .. }
            | Self::Replay { .. }
            | Self::Flood { .. } => {}
        }
    }

    /// How often it does what it does again, if it does.
    pub fn beat(&self, wire: Span) -> Option<Span> {
        let beat = match self {
            Self::Babble { gap, .. }
            | Self::Forge { gap }
            | Self::Spoof { gap, .. }
            | Self::Insider { gap, .. }
            | Self::Replay { gap } => *gap,
            Self::Flap { period, .. } => period.div_down(2),
            Self::Flood { .. } => wire,
            _ => return None,
        };
        Some(beat.max(Span::from_micros(1)))
    }
}

/// A fault with its time.
#[derive(Clone, Debug)]
pub struct Timed {
    /// From the end of the settling time.
    pub at: Span,
    /// For so long; zero for what happens in an instant.
    pub lasts: Span,
    /// The segment whose frames it strikes, from 0. A fault of a process is felt on all its segments.
    pub segment: usize,
    /// What.
    pub fault: Fault,
}

impl Timed {
    /// A fault of the first segment.
    pub fn new(at: Span, lasts: Span, fault: Fault) -> Self {
        Self { at, lasts, segment: 0, fault }
    }
}
