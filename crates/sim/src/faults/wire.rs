//! What happens to frames between the medium and a station. Each part is a value with its own stream of
//! randomness; the simulator and a segment in user space pass every frame through the same parts.

use super::happened::Happened;
use crate::engine::Stream;
use crate::media::Frame;
use rota_units::{Instant, Span};
use rota_wire::{FrameView, Kind, MacAddr, StationSet, Token};

/// Ports of a medium, from 0.
pub type Ports = StationSet;

/// Every port.
pub fn all_ports() -> Ports {
    (0..=255).fold(Ports::EMPTY, |mut ports, port| {
        ports.insert(port);
        ports
    })
}

/// These ports.
pub fn ports(hosts: impl IntoIterator<Item = usize>) -> Ports {
    hosts.into_iter().fold(Ports::EMPTY, |mut ports, host| {
        ports.insert(host as u16);
        ports
    })
}

/// Which frames a part touches.
#[derive(Clone, Debug)]
pub struct Select {
    /// Only frames of these kinds; all frames, ordinary ones too, when empty.
    pub kinds: Vec<Kind>,
    /// Only frames sent by these.
    pub from: Ports,
    /// Only on their way to these.
    pub to: Ports,
}

impl Select {
    /// Every frame.
    pub fn all() -> Self {
        Self { kinds: Vec::new(), from: all_ports(), to: all_ports() }
    }

    /// Frames of one kind.
    pub fn kind(kind: Kind) -> Self {
        Self { kinds: vec![kind], ..Self::all() }
    }

    fn takes(&self, from: usize, to: usize, frame: &[u8], ether_type: u16) -> bool {
        self.from.contains(from as u16)
            && self.to.contains(to as u16)
            && (self.kinds.is_empty() || kind_of(frame, ether_type).is_some_and(|k| self.kinds.contains(&k)))
    }
}

/// What a frame of ours is; `None` for ordinary ones. Nothing is proven by it.
pub fn kind_of(frame: &[u8], ether_type: u16) -> Option<Kind> {
    FrameView::parse(frame, ether_type).ok().map(|view| view.header().kind)
}

/// True if a frame is a token that this address is to take. An audited one goes to all and names it.
pub fn is_token_for(frame: &[u8], mac: MacAddr, ether_type: u16) -> bool {
    // Each frame is asked about at each station: most are somebody else's, by their first octets.
    let to = frame.first_chunk().map(|octets| MacAddr(*octets));
    let is_own = to == Some(mac) || to == Some(mac.own_group());
    if !is_own && to != Some(MacAddr::BROADCAST) {
        return false;
    }
    FrameView::parse(frame, ether_type).is_ok_and(|view| {
        let named = || Token::parse(view.body()).is_ok_and(|token| token.audit == Some(mac));
        view.header().kind == Kind::Token && (is_own || named())
    })
}

/// What goes wrong on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFault {
    /// So many frames in a million vanish, each with up to `burst` - 1 that follow it.
    Loss {
        /// Of a million frames.
        ppm: u32,
        /// Longest run of lost frames.
        burst: u32,
    },
    /// The frames from the `first`-th on that match, `count` of them, vanish.
    Nth {
        /// From 1.
        first: u64,
        /// How many.
        count: u64,
    },
    /// The frames from the `first`-th on that match, `count` of them, are so much later.
    NthLate {
        /// From 1.
        first: u64,
        /// How many.
        count: u64,
        /// How much later.
        late: Span,
    },
    /// The frames from the `first`-th on that match, `count` of them, come once more so much later.
    NthTwice {
        /// From 1.
        first: u64,
        /// How many.
        count: u64,
        /// How much later the second copy comes.
        late: Span,
    },
    /// Gilbert's two-state channel: in its bad state half of all frames vanish.
    Gilbert {
        /// From good to bad, of a million frames.
        worse_ppm: u32,
        /// From bad to good.
        better_ppm: u32,
    },
    /// Bits flip and the check sequence does not show it.
    Corrupt {
        /// Of a million frames.
        ppm: u32,
        /// At most so many bits.
        bits: u32,
    },
    /// A frame is cut, padded or grown.
    Resize {
        /// Of a million frames.
        ppm: u32,
    },
    /// A frame comes again.
    Duplicate {
        /// Of a million frames.
        ppm: u32,
        /// At most so many times more.
        copies: u32,
        /// At most so much later.
        delay: Span,
    },
    /// A frame is late, and may be overtaken.
    Delay {
        /// Of a million frames.
        ppm: u32,
        /// At least.
        min: Span,
        /// At most.
        max: Span,
    },
    /// Nothing passes.
    Cut,
}

impl WireFault {
    /// Under which name it is counted.
    fn happened(&self, kind: Option<Kind>, delay_allowed: Span, late: Span) -> Happened {
        match self {
            Self::Loss { .. } | Self::Nth { .. } if matches!(kind, Some(Kind::Token | Kind::TokenAck)) => {
                Happened::TokenLost
            }
            Self::Loss { .. } | Self::Nth { .. } | Self::Gilbert { .. } => Happened::FrameLost,
            Self::Corrupt { .. } => Happened::Corrupted,
            Self::Resize { .. } => Happened::Resized,
            Self::Duplicate { .. } | Self::NthTwice { .. } => Happened::Duplicated,
            Self::Delay { .. } | Self::NthLate { .. } if late <= delay_allowed => Happened::DelayedWithin,
            Self::Delay { .. } | Self::NthLate { .. } => Happened::DelayedBeyond,
            Self::Cut => Happened::Cut,
        }
    }
}

/// One fault at work.
#[derive(Clone, Debug)]
pub struct WirePart {
    fault: WireFault,
    select: Select,
    until: Instant,
    random: Stream,
    seen: u64,
    bad: bool,
    burst_left: u32,
}

/// All that is wrong with the wires now.
#[derive(Debug)]
pub struct Wires {
    parts: Vec<WirePart>,
    ether_type: u16,
    delay_allowed: Span,
}

/// A frame after the faults: how much later it comes, and whether it is still what was sent.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Later than it would have come.
    pub late: Span,
    /// What comes.
    pub frame: Frame,
    /// It says something that was never sent: nobody may believe it.
    pub lie: bool,
}

/// A fault touched a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// What happened.
    pub what: Happened,
    /// To what kind of frame.
    pub kind: Option<Kind>,
    /// How much later it comes.
    pub late: Span,
}

impl Wires {
    /// Sound wires. Delays beyond `delay_allowed` are counted apart from those within: D without the hop
    /// itself, which no fault shortens (seed 100625 of the product's timers).
    pub fn new(ether_type: u16, delay_allowed: Span) -> Self {
        Self { parts: Vec::new(), ether_type, delay_allowed }
    }

    /// Begins a fault that lasts until then.
    pub fn disturb(&mut self, fault: WireFault, select: Select, until: Instant, random: Stream) {
        self.parts.push(WirePart { fault, select, until, random, seen: 0, bad: false, burst_left: 0 });
    }

    /// Ends every fault.
    pub fn heal(&mut self) {
        self.parts.clear();
    }

    /// Whether nothing is wrong.
    pub fn are_sound(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether frames from one port can never reach another now.
    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.parts.iter().any(|part| {
            part.fault == WireFault::Cut
                && part.select.kinds.is_empty()
                && part.select.from.contains(from as u16)
                && part.select.to.contains(to as u16)
        })
    }

    /// Lets a frame through; what comes of it is appended to `out`.
    pub fn pass(
        &mut self,
        now: Instant,
        from: usize,
        to: usize,
        frame: Frame,
        strikes: &mut Vec<Strike>,
        out: &mut Vec<Passed>,
    ) {
        let begin = out.len();
        out.push(Passed { late: Span::ZERO, frame, lie: false });
        if self.parts.is_empty() {
            return;
        }
        self.parts.retain(|part| now < part.until);
        let (ether_type, allowed) = (self.ether_type, self.delay_allowed);
        for part in &mut self.parts {
            for at in (begin..out.len()).rev() {
                if !part.select.takes(from, to, &out[at].frame, ether_type) {
                    continue;
                }
                let kind = kind_of(&out[at].frame, ether_type);
                let before = out[at].late;
                let fault = part.fault;
                if part.touch(at, out) {
                    let late = out.get(at).map_or(Span::ZERO, |passed| passed.late.minus(before));
                    strikes.push(Strike { what: fault.happened(kind, allowed, late), kind, late });
                }
            }
        }
    }
}

impl WirePart {
    /// Does to `out[at]` what the fault does; whether it did anything.
    fn touch(&mut self, at: usize, out: &mut Vec<Passed>) -> bool {
        self.seen += 1;
        match self.fault {
            WireFault::Cut => drop_at(at, out),
            WireFault::Loss { ppm, burst } => {
                if self.burst_left > 0 {
                    self.burst_left -= 1;
                    return drop_at(at, out);
                }
                if !self.random.happens(ppm) {
                    return false;
                }
                self.burst_left = self.random.below(u64::from(burst)) as u32;
                drop_at(at, out)
            }
            WireFault::Nth { first, count } => self.is_nth(first, count) && drop_at(at, out),
            WireFault::NthLate { first, count, late } => {
                let nth = self.is_nth(first, count);
                out[at].late += if nth { late } else { Span::ZERO };
                nth
            }
            WireFault::NthTwice { first, count, late } => {
                let nth = self.is_nth(first, count);
                if nth {
                    let second = Passed { late: out[at].late + late, ..out[at].clone() };
                    out.push(second);
                }
                nth
            }
            WireFault::Gilbert { worse_ppm, better_ppm } => {
                self.bad ^= self.random.happens(if self.bad { better_ppm } else { worse_ppm });
                self.bad && self.random.happens(500_000) && drop_at(at, out)
            }
            WireFault::Corrupt { ppm, bits } => self.random.happens(ppm) && self.flip(at, bits, out),
            WireFault::Resize { ppm } => self.random.happens(ppm) && self.resize(at, out),
            WireFault::Duplicate { ppm, copies, delay } => {
                if !self.random.happens(ppm) {
                    return false;
                }
                for _ in 0..self.random.between(1, u64::from(copies.max(1))) {
                    let late = out[at].late + Span::from_nanos(self.random.below(delay.as_nanos() + 1));
                    let frame = out[at].frame.clone();
                    let lie = out[at].lie;
                    out.push(Passed { late, frame, lie });
                }
                true
            }
            WireFault::Delay { ppm, min, max } => {
                if !self.random.happens(ppm) {
                    return false;
                }
                let more = self.random.between(min.as_nanos(), max.as_nanos().max(min.as_nanos()));
                out[at].late += Span::from_nanos(more);
                true
            }
        }
    }

    /// Whether the frame that has just been counted is one of those.
    fn is_nth(&self, first: u64, count: u64) -> bool {
        (first..first.saturating_add(count)).contains(&self.seen)
    }

    fn flip(&mut self, at: usize, bits: u32, out: &mut [Passed]) -> bool {
        let mut octets = out[at].frame.to_vec();
        if octets.is_empty() {
            return false;
        }
        for _ in 0..self.random.between(1, u64::from(bits.max(1))) {
            let bit = self.random.below(octets.len() as u64 * 8) as usize;
            octets[bit / 8] ^= 1 << (bit % 8);
        }
        out[at].change(octets);
        true
    }

    fn resize(&mut self, at: usize, out: &mut [Passed]) -> bool {
        let mut octets = out[at].frame.to_vec();
        let length = match self.random.below(3) {
            0 => self.random.below(octets.len() as u64 + 1),
            1 => octets.len() as u64 + self.random.below(64),
            _ => self.random.below(1_600),
        };
        octets.resize(length as usize, 0);
        out[at].change(octets);
        true
    }
}

impl Passed {
    /// Puts other octets in the frame's place. Only what the tag covers, and the tag, can be a lie.
    fn change(&mut self, octets: Vec<u8>) {
        let covered =
            |frame: &[u8]| frame.get(18..20).map(|len| 58 + usize::from(len[0]) * 256 + usize::from(len[1]));
        let before = covered(&self.frame).and_then(|end| self.frame.get(..end));
        self.lie |= before.is_none() || before != covered(&octets).and_then(|end| octets.get(..end));
        self.frame = octets.into();
    }
}

fn drop_at(at: usize, out: &mut Vec<Passed>) -> bool {
    out.remove(at);
    true
}
