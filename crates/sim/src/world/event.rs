//! The events of a world: what is hashed of each, and its words in a log.

use super::wills::Will;
use crate::engine::Stamped;
use crate::media::{Frame, WireEvent};
use rota_proto::{ChannelId, Settings};
use rota_wire::FrameView;

/// Something that happens at an instant.
#[derive(Debug)]
pub(super) enum Event {
    /// Of the medium of a segment.
    Medium {
        on: usize,
        event: WireEvent,
    },
    Arrive {
        on: usize,
        to: usize,
        from: usize,
        frame: Frame,
    },
    /// A frame that the wires held back.
    Late {
        on: usize,
        to: usize,
        frame: Frame,
        lie: bool,
    },
    /// The processor has finished with a frame, which goes to the card.
    Hand {
        on: usize,
        from: usize,
        frame: Frame,
    },
    /// The processor takes the next frame out of the queue.
    Serve {
        host: usize,
    },
    Wake {
        host: usize,
    },
    CardEmpty {
        on: usize,
        host: usize,
    },
    Resume {
        host: usize,
    },
    Emit {
        source: usize,
    },
    Start {
        host: usize,
    },
    /// A guardian looks whether its station's card is empty, and speaks.
    Will {
        on: usize,
        host: usize,
        will: Will,
    },
    /// A will should have been heard by now.
    WillHeard {
        on: usize,
        host: usize,
        will: Will,
    },
    /// The thread that knows the programs has heard that a channel never opened.
    ListenAgain {
        host: usize,
        boot: u32,
        listener: u64,
    },
    /// The sessions between neighbours are looked at.
    Sessions,
    /// Something from a neighbour is due at a host.
    Hear {
        host: usize,
        peer: usize,
    },
    /// The program of a channel across segments hands units over.
    Across {
        flow: usize,
        boot: u32,
    },
    /// A program has no room for a channel across segments.
    Decline {
        host: usize,
        boot: u32,
        channel: ChannelId,
    },
    /// The program of a channel in both directions asks for the way back, or, with its number, one opens what
    /// it was asked for.
    Ask {
        flow: usize,
        host: usize,
        boot: u32,
        number: Option<ChannelId>,
    },
    /// A program waits no more to be asked for a channel.
    Uninvite {
        flow: usize,
        host: usize,
        boot: u32,
    },
}

impl Stamped for Event {
    fn stamp(&self) -> u64 {
        let mark = |frame: &Frame| frame.len() as u64 ^ frame.last().map_or(0, |last| u64::from(*last) << 16);
        // The first segment adds nothing.
        let segment = self.segment().map_or(0, |on| (on as u64) << 48);
        segment
            ^ match self {
                Self::Medium { event: WireEvent::AtSwitch { from, frame }, .. } => {
                    1 << 56 ^ (*from as u64) << 32 ^ mark(frame)
                }
                Self::Medium { event: WireEvent::PortFree { port }, .. } => 2 << 56 ^ *port as u64,
                Self::Medium { event: WireEvent::Carrier, .. } => 12 << 56,
                Self::Arrive { to, frame, .. } => 3 << 56 ^ (*to as u64) << 32 ^ mark(frame),
                Self::Late { to, frame, .. } => 4 << 56 ^ (*to as u64) << 32 ^ mark(frame),
                Self::Hand { from, frame, .. } => 5 << 56 ^ (*from as u64) << 32 ^ mark(frame),
                Self::Serve { host } => 6 << 56 ^ *host as u64,
                Self::Wake { host } => 7 << 56 ^ *host as u64,
                Self::CardEmpty { host, .. } => 8 << 56 ^ *host as u64,
                Self::Resume { host } => 9 << 56 ^ *host as u64,
                Self::Emit { source } => 10 << 56 ^ *source as u64,
                Self::Start { host } => 11 << 56 ^ *host as u64,
                Self::Will { host, .. } => 14 << 56 ^ *host as u64,
                Self::WillHeard { host, .. } => 15 << 56 ^ *host as u64,
                Self::ListenAgain { host, listener, .. } => 13 << 56 ^ (*host as u64) << 32 ^ *listener,
                Self::Sessions => 16 << 56,
                Self::Hear { host, peer } => 17 << 56 ^ (*host as u64) << 32 ^ *peer as u64,
                Self::Across { flow, .. } => 18 << 56 ^ *flow as u64,
                Self::Decline { host, channel, .. } => 19 << 56 ^ (*host as u64) << 32 ^ channel.0,
                Self::Ask { flow, host, .. } => 20 << 56 ^ (*host as u64) << 32 ^ *flow as u64,
                Self::Uninvite { flow, host, .. } => 21 << 56 ^ (*host as u64) << 32 ^ *flow as u64,
            }
    }
}

impl Event {
    /// The segment on which it happens; none where it is a host's own.
    fn segment(&self) -> Option<usize> {
        match self {
            Self::Medium { on, .. }
            | Self::Arrive { on, .. }
            | Self::Late { on, .. }
            | Self::Hand { on, .. }
            | Self::CardEmpty { on, .. }
            | Self::Will { on, .. }
            | Self::WillHeard { on, .. } => Some(*on),
            _ => None,
        }
    }

    /// The event in words, for a log. A segment behind the first is named.
    pub(super) fn line(&self, settings: &Settings) -> String {
        let words = self.words(settings);
        match self.segment() {
            Some(on @ 1..) => format!("segment {}: {words}", on + 1),
            _ => words,
        }
    }

    fn words(&self, settings: &Settings) -> String {
        let named = |frame: &Frame| match FrameView::parse(frame, settings.ether_type) {
            Ok(view) => {
                let header = view.header();
                let (generation, of) = (header.generation.counter, header.generation.station);
                format!("{:?} from {} ({generation}.{of}, {})", header.kind, header.source, header.seq)
            }
            Err(_) => format!("ordinary frame of {} octets", frame.len()),
        };
        match self {
            Self::Medium { event: WireEvent::AtSwitch { from, frame }, .. } => {
                format!("port {from}: the switch has {}", named(frame))
            }
            Self::Medium { event: WireEvent::PortFree { port }, .. } => format!("port {port} is free"),
            Self::Medium { event: WireEvent::Carrier, .. } => "the carrier".to_owned(),
            Self::Arrive { to, frame, .. } => format!("host {to} <- {}", named(frame)),
            Self::Late { to, frame, lie, .. } => {
                format!("host {to} <- late {}{}", named(frame), if *lie { ", which is a lie" } else { "" })
            }
            Self::Hand { from, frame, .. } => format!("host {from} hands over {}", named(frame)),
            Self::Serve { host } => format!("host {host} looks at its queue"),
            Self::Wake { host } => format!("host {host} wakes"),
            Self::CardEmpty { host, .. } => format!("host {host}: card empty"),
            Self::Resume { host } => format!("host {host} goes on"),
            Self::Emit { source } => format!("source {source}"),
            Self::Start { host } => format!("host {host} is started"),
            Self::Will { host, .. } => format!("host {host}: its guardian"),
            Self::WillHeard { host, .. } => format!("host {host}: its will is heard"),
            Self::ListenAgain { host, listener, .. } => format!("host {host}: {listener} listens again"),
            Self::Sessions => "the sessions are looked at".to_owned(),
            Self::Hear { host, peer } => format!("host {host} hears its neighbour {peer}"),
            Self::Across { flow, .. } => format!("channel {flow} across segments"),
            Self::Decline { host, channel, .. } => format!("host {host} declines channel {channel}"),
            Self::Ask { flow, host, .. } => format!("host {host} asks for channel {flow}, or opens it"),
            Self::Uninvite { flow, host, .. } => format!("host {host} waits no more for channel {flow}"),
        }
    }
}
