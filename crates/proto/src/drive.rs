//! The loop of a parent that does at once what its node calls for: tests, models and small programs. The
//! daemon and the simulator have loops of their own: their turns have budgets, and their cards take time.

use crate::channels::{ChannelEvent, Listener};
use crate::io::{ChannelId, Delivery, FrameBuf, GateOrder, Input, Output, Payloads, PortId};
use crate::llc::LlcEvent;
use crate::node::Node;
use crate::rtip::HopEvent;
use rota_admission::Framing;
use rota_units::Instant;
use rota_wire::{ETHERNET_HEADER_OCTETS, TAG_OCTETS};
use std::collections::VecDeque;

/// More outputs than any node gives between two inputs.
const OUTPUTS_MAX: usize = 20_000;

/// The longest frame of any MTU, with its header and a tag.
const FRAME_OCTETS_MAX: usize = Framing::MTU_MAX as usize + ETHERNET_HEADER_OCTETS + TAG_OCTETS;

/// An output or an event of a node.
#[derive(Debug)]
pub enum Given<'a> {
    /// An output, and the octets of the frame that it transmits. [`Output::Event`] is taken already.
    Output(Output, &'a [u8]),
    /// A fragment that waited for those before it, and its octets.
    Kept(Delivery, &'a [u8]),
    /// An event of a channel.
    Channel(ChannelEvent),
    /// An event of link control.
    Message(LlcEvent),
    /// An event of a channel across segments.
    Hop(HopEvent),
}

impl Given<'_> {
    /// The duty of a parent without limits: its card is empty at once, and it has memory for every
    /// channel.
    pub fn duty(&self) -> Option<Duty> {
        match *self {
            Self::Output(Output::Gate { port, order: GateOrder::Divert }, _) => Some(Duty::CardEmpty(port)),
            Self::Channel(ChannelEvent::Incoming { channel, .. }) => Some(Duty::Accept(channel)),
            Self::Channel(ChannelEvent::Closed { listener: Some(id), .. }) => Some(Duty::ListenAgain(id)),
            _ => None,
        }
    }
}

/// A duty of a parent once its node is drained.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Duty {
    /// Nothing of this port is on its way.
    CardEmpty(PortId),
    /// There is memory for this channel.
    Accept(ChannelId),
    /// Another program listens.
    Listen(Listener),
    /// The program of a channel that never opened listens again.
    ListenAgain(u64),
}

/// The duties of a parent, in their order.
pub type Duties = VecDeque<Duty>;

/// Polls a node until it is drained, does the duties that came of it, and polls again behind each.
///
/// # Panics
/// A node that gives outputs without end has a fault.
pub fn drain(
    node: &mut Node,
    now: Instant,
    payloads: &mut dyn Payloads,
    mut take: impl FnMut(Given<'_>, &mut Duties),
) {
    let mut duties = Duties::new();
    loop {
        let is_drained = poll(node, now, OUTPUTS_MAX, payloads, |given| take(given, &mut duties));
        assert!(is_drained, "never drained in mode {:?}", node.medium().mode());
        match duties.pop_front() {
            None => return,
            Some(Duty::CardEmpty(port)) => _ = node.handle(now, Input::CardEmpty { port }),
            Some(Duty::Accept(channel)) => _ = node.accept(now, channel),
            Some(Duty::Listen(listener)) => node.listen(listener),
            Some(Duty::ListenAgain(listener)) => node.listen_again(listener),
        }
    }
}

/// Takes so many outputs at most. False if the node is not drained: say [`Node::break_off`] before the next
/// input.
pub fn poll(
    node: &mut Node,
    now: Instant,
    most: usize,
    payloads: &mut dyn Payloads,
    mut take: impl FnMut(Given<'_>),
) -> bool {
    let mut bytes = [0; FRAME_OCTETS_MAX];
    for _ in 0..most {
        let Some(output) = node.poll(now, &mut FrameBuf { bytes: &mut bytes, payloads: &mut *payloads })
        else {
            return true;
        };
        match output {
            Output::Transmit { len, .. } => take(Given::Output(output, &bytes[..usize::from(len)])),
            Output::Kept => {
                if let Some(delivery) = node.take_kept() {
                    take(Given::Kept(delivery, &bytes[..usize::from(delivery.octets)]));
                }
            }
            Output::Event => {
                while let Some(event) = node.next_event() {
                    take(Given::Channel(event));
                }
                while let Some(event) = node.next_llc_event() {
                    take(Given::Message(event));
                }
                while let Some(event) = node.next_hop_event() {
                    take(Given::Hop(event));
                }
            }
            _ => take(Given::Output(output, &[])),
        }
    }
    false
}

/// Units and messages whose octets are all 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Zeros;

impl Payloads for Zeros {
    fn copy_unit(&mut self, _: ChannelId, _: u64, _: u32, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }

    fn copy_message(&mut self, _: u8, _: u64, _: u32, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }
}
