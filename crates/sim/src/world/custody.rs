//! S10: what became of every fragment of every channel. Each copy of a frame is in somebody's hands until
//! it is delivered or ends under a name; what was sent and copied is what was delivered, ended, or is on its
//! way.

use super::World;
use crate::hosts::Waiting;
use crate::media::{End, Frame};
use crate::traffic::Purpose;
use rota_proto::{FrameVerdict, PortId};
use rota_wire::{FrameView, Kind, UnitHeader};
use std::collections::{BTreeMap, VecDeque};

/// The fragments of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Handed to the sender's card.
    pub sent: u64,
    /// Copies beside the one that was sent: by floods of a switch, a shared wire, duplication and replay.
    pub copied: u64,
    /// Taken by the receiver's node for the channel.
    pub delivered: u64,
    /// Copies that ended, by [`End`].
    pub ended: [u64; End::NAMES.len()],
}

impl Fragments {
    /// Copies that have neither arrived nor ended. Negative when one has ended twice.
    pub fn on_their_way(&self) -> i64 {
        let ended: u64 = self.ended.iter().sum();
        (self.sent + self.copied) as i64 - (self.delivered + ended) as i64
    }
}

/// Frames beyond which those that nobody has any more are forgotten.
const TRACKED_MAX: usize = 1_024;

/// The books. A frame is known by where it lies in memory, which stays its own while it is kept here: labels
/// and numbers come again, and old frames may come late. Nothing is ever listed in that order.
#[derive(Debug, Default)]
pub struct Custody {
    flows: Vec<Fragments>,
    tracked: BTreeMap<usize, (Frame, usize)>,
    /// The flow that was last told to end more than it sent.
    overdrawn: Option<usize>,
}

fn place(frame: &[u8]) -> usize {
    frame.as_ptr().addr()
}

impl Custody {
    /// The fragments of a flow.
    pub fn of(&self, flow: usize) -> Fragments {
        self.flows.get(flow).copied().unwrap_or_default()
    }

    /// All flows together.
    pub fn total(&self) -> Fragments {
        self.flows.iter().fold(Fragments::default(), |mut sum, flow| {
            (sum.sent, sum.copied) = (sum.sent + flow.sent, sum.copied + flow.copied);
            sum.delivered += flow.delivered;
            sum.ended.iter_mut().zip(flow.ended).for_each(|(sum, ended)| *sum += ended);
            sum
        })
    }

    /// The flow whose fragment is in a frame; `None` for every other frame.
    fn flow(&self, frame: &[u8]) -> Option<usize> {
        self.tracked.get(&place(frame)).map(|(_, flow)| *flow)
    }

    fn track(&mut self, frame: &Frame, flow: usize) {
        if self.tracked.len() >= TRACKED_MAX {
            self.tracked.retain(|_, (frame, _)| Frame::strong_count(frame) > 1);
        }
        self.tracked.insert(place(frame), (frame.clone(), flow));
    }

    fn book(&mut self, flow: usize) -> &mut Fragments {
        if self.flows.len() <= flow {
            self.flows.resize(flow + 1, Fragments::default());
        }
        &mut self.flows[flow]
    }
}

/// The label of a fragment's channel.
fn label(frame: &[u8], ether_type: u16) -> Option<u16> {
    let view = FrameView::parse(frame, ether_type).ok().filter(|view| view.header().kind == Kind::Data)?;
    UnitHeader::parse(view.body()).ok().map(|(unit, _)| unit.label)
}

impl World {
    /// The books of fragments.
    pub fn custody(&self) -> &Custody {
        &self.traffic.custody
    }

    /// A station gives a frame to its card.
    pub(super) fn fragment_sent(&mut self, on: usize, from: usize, frame: &Frame) {
        let Some(label) = label(frame, self.segments[on].settings.ether_type) else { return };
        let of = |flow: &super::Flow| (flow.from, flow.on) == (from, on) && flow.label == Some(label);
        // A channel that the world did not open is nobody's here.
        let Some(flow) = self.traffic.flows.iter().rposition(of) else { return };
        self.traffic.custody.track(frame, flow);
        self.traffic.custody.book(flow).sent += 1;
    }

    /// A wire has put another frame in a frame's place: the same fragment, or a lie, which is nobody's.
    pub(super) fn fragment_changed(&mut self, sent: &Frame, now: &Frame, lie: bool) {
        let Some(flow) = self.traffic.custody.flow(sent).filter(|_| place(sent) != place(now)) else {
            return;
        };
        if lie {
            self.fragment_ends(sent, End::Altered);
        } else {
            self.traffic.custody.track(now, flow);
        }
    }

    /// There are more copies of a frame now; fewer are told by [`Self::fragment_ends`].
    pub(super) fn fragment_copied(&mut self, frame: &[u8], more: u64) {
        if let Some(flow) = self.traffic.custody.flow(frame) {
            self.traffic.custody.book(flow).copied += more;
        }
    }

    /// A copy of a frame ends here.
    pub(super) fn fragment_ends(&mut self, frame: &[u8], end: End) {
        if let Some(flow) = self.traffic.custody.flow(frame) {
            self.traffic.custody.book(flow).ended[end as usize] += 1;
            self.audit(flow);
        }
    }

    /// A node has looked at a frame: it took it for a channel, or its verdict says why not.
    pub(super) fn fragment_looked_at(
        &mut self,
        host: usize,
        port: PortId,
        frame: &[u8],
        taken: bool,
        verdict: FrameVerdict,
    ) {
        let Some(flow) = self.traffic.custody.flow(frame) else { return };
        if taken {
            self.traffic.custody.book(flow).delivered += 1;
        } else {
            self.traffic.custody.book(flow).ended[End::Refused as usize] += 1;
        }
        // Only a host with settings of its own may live on another segment.
        let elsewhere =
            verdict == FrameVerdict::OtherSegment && self.hosts[host].card(port).settings.is_some();
        let is_unnamed =
            matches!(verdict, FrameVerdict::Taken | FrameVerdict::Foreign | FrameVerdict::OtherSegment);
        if !taken && !elsewhere && is_unnamed {
            let now = self.now();
            let what = format!("host {host} swallowed a fragment of flow {flow} without a verdict");
            self.findings.add(now, "S10", what);
        }
        self.audit(flow);
    }

    pub(super) fn is_fragment(&self, frame: &[u8]) -> bool {
        self.traffic.custody.flow(frame).is_some()
    }

    /// Frames that a process had not looked at end with it.
    pub(super) fn fragments_die(&mut self, host: usize) {
        let inbox = std::mem::take(&mut self.hosts[host].process.inbox);
        for Waiting { frame, .. } in inbox {
            self.fragment_ends(&frame, End::Silent);
        }
    }

    /// Frames of a port that its process had not looked at end with the port.
    pub(super) fn fragments_end_at(&mut self, host: usize, port: PortId) {
        let inbox = std::mem::take(&mut self.hosts[host].process.inbox);
        let (gone, kept): (VecDeque<_>, VecDeque<_>) = inbox.into_iter().partition(|of| of.port == port);
        self.hosts[host].process.inbox = kept;
        for Waiting { frame, .. } in gone {
            self.fragment_ends(&frame, End::Silent);
        }
    }

    /// No copy arrives or ends twice.
    fn audit(&mut self, flow: usize) {
        let fragments = self.traffic.custody.of(flow);
        if fragments.on_their_way() < 0 && self.traffic.custody.overdrawn != Some(flow) {
            self.traffic.custody.overdrawn = Some(flow);
            let now = self.now();
            self.findings.add(now, "S10", format!("more of flow {flow} ended than was sent: {fragments:?}"));
        }
    }

    /// S10 for ordinary frames: each frame given to a node waits in its queue, has left, or was dropped under
    /// a name. While frames wait, the gate is shut: otherwise later frames would overtake them.
    pub(super) fn count_ordinary(&mut self, index: usize) {
        let host = &self.hosts[index];
        let Some(node) = &host.node else { return };
        for port in node.ports() {
            let (card, counters) = (host.card(port.id()), port.counters());
            let named = counters.host_frames_dropped + counters.host_dropped_switch;
            let (queued, kept) = (port.queued_host_frames(), card.host_frames.len());
            let what = if queued != kept {
                format!("host {index}: {kept} ordinary frames are kept and {queued} wait")
            } else if named != card.dropped {
                format!("host {index}: {} ordinary frames were dropped, {named} under a name", card.dropped)
            } else if kept > 0 && !card.gated {
                format!("host {index}: the gate is open, and {kept} ordinary frames wait")
            } else {
                continue;
            };
            self.findings.add(self.engine.now(), "S10", what);
        }
    }

    /// S10 for ordinary frames that no fault has held up: those of one program come in the order in which it
    /// sent them.
    pub(super) fn check_order(&mut self, on: usize, to: usize, frame: &[u8]) {
        let word = |at: usize| frame.get(at..at + 8).and_then(|octets| octets.try_into().ok());
        let (Some(source), Some(number)) = (word(34).map(u64::from_be_bytes), word(42)) else { return };
        let is_ordinary = frame.get(12..14) == Some(&[8, 0]);
        let sources = &mut self.traffic.sources;
        let Some(source) = usize::try_from(source).ok().and_then(|at| sources.get_mut(at)) else { return };
        let Purpose::Ordinary { from, to: receiver } = source.purpose else { return };
        let sender = self.hosts[from].on(on).map(|station| station.card.mac.0);
        if !is_ordinary || receiver != to || sender.as_ref().map(|mac| &mac[..]) != frame.get(6..12) {
            return;
        }
        let (number, newest) = (u64::from_be_bytes(number), source.newest);
        source.newest = newest.max(number);
        if number < newest {
            let what = format!("frame {number} of host {from} came to host {to} behind frame {newest}");
            self.findings.add(self.engine.now(), "S10", what);
        }
    }

    /// S10 when everything is at rest: nothing is on its way any more.
    ///
    /// # Errors
    /// The first flow whose books do not balance.
    pub fn balance(&self) -> Result<(), String> {
        let unbalanced = self.traffic.custody.flows.iter().position(|flow| flow.on_their_way() != 0);
        unbalanced.map_or(Ok(()), |flow| {
            let books = self.traffic.custody.of(flow);
            Err(format!("{} fragments of flow {flow} vanished: {books:?}", books.on_their_way()))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::traffic::{Purpose, Shape};
    use crate::world::{World, WorldSpec};
    use rota_units::Span;

    /// S10: two frames of one program, and the first one behind the second.
    #[test]
    fn an_ordinary_frame_that_overtakes_is_found() {
        let mut world = World::new(1, WorldSpec::new(2));
        let shape = Shape::Periodic { period: Span::from_millis(1), octets: 100 };
        let until = world.now();
        world.feed(Purpose::Ordinary { from: 0, to: 1 }, shape, until);
        let frame = |number: u64| {
            let mut frame = [0u8; 100];
            frame[..6].copy_from_slice(&crate::world::mac(1).0);
            frame[6..12].copy_from_slice(&crate::world::mac(0).0);
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[42..50].copy_from_slice(&number.to_be_bytes());
            frame
        };
        [3, 4, 4].iter().for_each(|number| world.check_order(0, 1, &frame(*number)));
        assert_eq!(world.violations(), []);
        world.check_order(0, 1, &frame(3));
        assert_eq!(world.violations().iter().map(|found| found.rule).collect::<Vec<_>>(), ["S10"]);
    }
}
