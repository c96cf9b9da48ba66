//! How units travel: over a reserved channel, or over an ordinary UDP socket as most programs do today.
//! `rota send` and `rota recv` do not know which.

pub mod channel;
mod datagram;
pub mod guarantee;
mod reassembly;
mod reattach;
mod stream;
pub mod udp;

use crate::came::Rest;
use crate::stall::Stall;
use rota::{Contract, Group, ReceiverInfo, Statistical, Tally, Withdrawn};
use rota_answer::Failure;
use rota_units::{Instant, Span};
use serde::{Deserialize, Serialize};

/// Over what units travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// A reserved channel with a bound (needs `rota node` at both ends)
    Channel,
    /// A plain UDP socket, marked for expedited forwarding
    Udp,
}

/// The promise of admission before the first unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// No unit takes longer from its schedule to its arrival.
    pub bound_ns: u64,
    /// The time between two slots.
    pub period_ns: u64,
    /// The largest unit that the reservation carries.
    pub unit_octets: u64,
    /// The reservation beyond one unit in each period, in millionths.
    pub extra_ppm: u32,
    /// The part of the way for which nothing is guaranteed; absent where all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawn>,
    /// The promise of the statistical class; absent in the guaranteed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistical: Option<Statistical>,
    /// The group with which the channel shares what links reserve; absent where it is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
}

impl Promise {
    /// The words behind the bound, as [`rota::Granted::but`] has them.
    pub fn but(&self) -> String {
        let &Self { withdrawn, statistical, group, .. } = self;
        rota::Granted { withdrawn, statistical, group, ..rota::Granted::default() }.but()
    }
}

/// Why admission said no, and what it would have accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The test that failed.
    pub test: String,
    /// By how much the request exceeds what is free.
    pub margin_bps: u64,
    /// The largest rate that would have been accepted; 0 when none.
    pub counter_offer_bps: u64,
    /// The node that refused.
    #[serde(default)]
    pub node: String,
    /// By how much time.
    #[serde(default)]
    pub margin_ns: u64,
    /// The delay of the nearest request that fits; 0 where it is the same.
    #[serde(default)]
    pub nearest_delay_ns: u64,
    /// Its jitter.
    #[serde(default)]
    pub nearest_jitter_ns: u64,
    /// Its X_min.
    #[serde(default)]
    pub nearest_xmin_ns: u64,
    /// Its S_max.
    #[serde(default)]
    pub counter_offer_octets: u32,
    /// The largest packet that fits; 0 where none helps.
    #[serde(default)]
    pub nearest_packet_octets: u32,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it is {:.3} Mbit/s more than is free in the cycle ", self.margin_bps as f64 / 1e6)?;
        write!(f, "(admission's test {}); ", self.test)?;
        match self.counter_offer_bps {
            0 => write!(f, "nothing more fits"),
            bps => write!(f, "up to {:.3} Mbit/s would fit", bps as f64 / 1e6),
        }
    }
}

/// One unit as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number, counted from 0 by the sender.
    pub number: u64,
    /// Did every octet come? If not, the unit holds what came before the first gap.
    pub complete: bool,
    /// When the sender meant it to leave, on the sender's clock.
    pub schedule: Instant,
    /// When its last octet came, by the kernel's stamp.
    pub arrived: Instant,
    /// When this program had it in its hands.
    pub dequeued: Instant,
}

/// An event of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A unit arrived.
    Unit(Arrival),
    /// Nothing of a unit is there at its time, which has come.
    Missing {
        /// Its number.
        number: u64,
        /// It may still come, behind its time; otherwise it is lost.
        is_late: bool,
    },
    /// The sender closed after sending so many units.
    Closed {
        /// Units sent, whether they arrived or not, and units that the sender left out.
        sent: u64,
    },
    /// Nothing came within the time that the caller was ready to wait.
    Silence,
}

/// The right to hand over one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTurn {
    /// When it was due: the schedule that travels with the unit.
    pub schedule: Instant,
    /// When the first of the turns that passed unused was due, and so a unit that waited since then.
    pub waited: Instant,
    /// Turns that passed unused since the last one, because this program did not run.
    pub skipped: u64,
}

/// The sending end of a stream.
pub trait UnitSink {
    /// The promise that stands behind this sink; a plain socket has none.
    fn promise(&self) -> Option<Promise>;
    /// The reservation in words, if it is more than one unit in each period.
    fn reservation(&self) -> Option<String> {
        None
    }
    /// The receivers, where there are several: who is in and who is not.
    fn receivers(&self) -> Vec<ReceiverInfo> {
        Vec::new()
    }
    /// Those of whom there is news: they have come, or left.
    fn receivers_changed(&mut self) -> Vec<ReceiverInfo> {
        Vec::new()
    }
    /// The part of the way for which nothing is guaranteed now.
    fn withdrawn(&mut self) -> Option<Withdrawn> {
        None
    }
    /// Waits until the unit of frame time `frame` may be handed over.
    fn wait_slot(&mut self, frame: u64) -> Result<SendTurn, Failure>;
    /// The contract that has taken the place of the one before, since somebody has changed the channel.
    fn changed(&mut self) -> Option<Contract> {
        None
    }
    /// The turns are those of the contract that stands now.
    fn pace_anew(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// Hands over one unit; false when a live sender had to drop it.
    fn send(&mut self, number: u64, unit: &[u8], schedule: Instant) -> Result<bool, Failure>;
    /// True if a unit handed over now would queue behind one that is late already.
    fn is_behind(&self) -> bool {
        false
    }
    /// True if it has ended by itself, at the time that was asked for: nothing more is handed over.
    fn is_over(&self) -> bool {
        false
    }
    /// So many units were left out because their turns had passed.
    fn leave_out(&mut self, _units: u64) {}
    /// Ends the stream: in good order if `played` is the number of units sent or left out, otherwise without
    /// a message to the receiver. The result holds the stalls and counts for every kind of end.
    fn close(self: Box<Self>, played: Result<u64, Failure>) -> Closed;
}

/// How a stream ended at its sender.
#[derive(Debug)]
pub struct Closed {
    /// The stalls seen.
    pub stalls: Vec<Stall>,
    /// The counts of the units, as far as the other side has reported them; zeros if it reports none.
    pub tally: Tally,
    /// The rest of the counts.
    pub rest: Rest,
    /// Units handed over, and units left out, until the end of the channel; a socket has none.
    pub counted: Option<(u64, u64)>,
    /// The receivers with their counts, where there were several.
    pub receivers: Vec<ReceiverInfo>,
    /// The cause of an early end.
    pub failure: Option<Failure>,
}

/// The receiving end of a stream.
pub trait UnitSource {
    /// Waits for the next event, at most `patience`; a unit's octets replace what is in `unit`.
    fn next(&mut self, unit: &mut Vec<u8>, patience: Span) -> Result<Event, Failure>;
    /// How many units were late so far, and by how much; a plain socket has no bound.
    fn tally(&self) -> Tally {
        Tally::default()
    }
    /// True if units come by time: of a late one only the mark comes, and it counts beside the others.
    fn plays_by_time(&self) -> bool {
        false
    }
    /// Units of the stream as the sender stated them, where its end was no clean one.
    fn stated(&self) -> Option<u64> {
        None
    }
    /// Of the lost units: those that waited at the sender when the stream ended early, and never left.
    fn unsent(&self) -> u64 {
        0
    }
    /// The part of the way for which nothing is guaranteed now, once a channel with one has come.
    fn withdrawn(&mut self) -> Option<Withdrawn> {
        None
    }
    /// The promise of the statistical class, of the newest channel.
    fn statistical(&self) -> Option<Statistical> {
        None
    }
    /// The stalls seen so far.
    fn stalls(self: Box<Self>) -> Vec<Stall>;
}

/// Takes octets as a row of datagrams, each behind its length in two octets. No unit comes twice, or out of
/// order.
pub fn fuzz_datagrams(mut data: &[u8]) {
    let (mut reassembly, mut unit, mut last) = (reassembly::Reassembly::default(), Vec::new(), None);
    while let Some((length, rest)) = data.split_at_checked(2) {
        let length = usize::from(u16::from_be_bytes([length[0], length[1]])).min(rest.len());
        reassembly.on_datagram(&rest[..length], Instant::ZERO, Instant::ZERO);
        data = &rest[length..];
        while let Some(Event::Unit(arrival)) = reassembly.pop(&mut unit) {
            assert!(last.is_none_or(|last| arrival.number > last), "in order, none twice");
            last = Some(arrival.number);
        }
    }
}
