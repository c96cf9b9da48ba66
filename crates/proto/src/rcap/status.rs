//! The status of a channel at each node: collected on the way to the destination, reported on the way back.

use super::Rcap;
use super::call::Question;
use super::io::{ChannelKey, EntryId, HopOffer, RcapCallError, RcapEvent, RcapOutput, StatusCounts};
use super::ledger::{Asked, Entry};
use super::record::{Record, of_wire, written};
use rota_admission::rtip::{Chance, Regulator};
use rota_admission::subnet::Offer;
use rota_contract::{ChannelId, CloseCause, NodeId};
use rota_medium::door::PortId;
use rota_units::{Instant, Span};
use rota_wire::{RCAP_NODES_MAX, RCAP_OCTETS_MAX, RcapBody, RcapChannel, RcapClose, RcapRecords, RcapStatus};

impl Rcap {
    /// Asks for the status of an open channel whose source is here (`TENET-4.1-7`). The outcome is one event.
    ///
    /// # Errors
    /// There is no such channel, or a question is on its way.
    pub fn status(&mut self, now: Instant, channel: ChannelId) -> Result<(), RcapCallError> {
        let key = ChannelKey { origin: self.own, channel };
        let id = self.ledger.find(&key).ok_or(RcapCallError::NoChannel)?;
        let entry = self.ledger.get_mut(id).filter(|entry| entry.state.is_open());
        let entry = entry.ok_or(RcapCallError::NoChannel)?;
        if self.questions.contains_key(&channel) {
            return Err(RcapCallError::StatusPending);
        }
        self.last_question = self.last_question.wrapping_add(1);
        let (number, until) = (self.last_question, now + self.limits.status);
        self.questions.insert(channel, Question { number, until });
        entry.asked = Some(Asked { question: number, nodes: Vec::new() });
        self.outputs.push_back(RcapOutput::Inspect { entry: id });
        Ok(())
    }

    pub(super) fn on_status_request(&mut self, from: NodeId, of: &RcapChannel, status: &RcapStatus<'_>) {
        let Some(id) = self.entry_of(of) else {
            self.counters.stray += 1;
            let close = RcapClose { cause: CloseCause::ReservationLost, node: self.own };
            return self.send(from, *of, RcapBody::CloseReverse(close));
        };
        let entry = self.ledger.get_mut(id).expect("it was found");
        let is_due = entry.before == Some(from) && entry.state.is_open();
        if !is_due || status.nodes.count() >= RCAP_NODES_MAX {
            self.counters.stray += 1;
            return;
        }
        entry.asked = Some(Asked { question: status.question, nodes: of_wire(&status.nodes) });
        self.outputs.push_back(RcapOutput::Inspect { entry: id });
    }

    /// RTIP's counts of an entry.
    pub fn inspected(&mut self, id: EntryId, counts: StatusCounts) {
        let own = self.own;
        let Some(entry) = self.ledger.get_mut(id) else { return };
        let Some(Asked { question, mut nodes }) = entry.asked.take() else { return };
        nodes.push(Record { counts, ..own_record(own, entry) });
        let octets = written(&nodes, RCAP_OCTETS_MAX - 64);
        let records = RcapRecords::parse(&octets, nodes.len()).expect("sound records");
        let status = RcapStatus { question, nodes: records };
        let of = entry.of;
        match (entry.hop, entry.before) {
            (Some(hop), _) => self.send(hop.node, of, RcapBody::StatusRequest(status)),
            (None, Some(before)) => self.send(before, of, RcapBody::StatusReport(status)),
            (None, None) => {}
        }
    }

    pub(super) fn on_status_report(&mut self, from: NodeId, of: &RcapChannel, status: &RcapStatus<'_>) {
        let entry = self.entry_of(of).and_then(|id| self.ledger.get(id));
        let entry =
            entry.filter(|entry| entry.state.is_open() && entry.hop.is_some_and(|hop| hop.node == from));
        let is_answer = |question: &Question| question.number == status.question;
        match entry.map(|entry| entry.before) {
            Some(Some(before)) => self.send(before, *of, RcapBody::StatusReport(*status)),
            Some(None) if self.questions.get(&of.channel).is_some_and(is_answer) => {
                self.questions.remove(&of.channel);
                self.tell(RcapEvent::Status { channel: of.channel, nodes: of_wire(&status.nodes) });
            }
            _ => self.counters.stray += 1,
        }
    }

    /// Questions that nobody answered in time.
    pub(super) fn give_up_questions(&mut self, now: Instant) {
        let late = self.questions.iter().filter(|(_, question)| question.until <= now);
        let late: Vec<ChannelId> = late.map(|(channel, _)| *channel).collect();
        late.into_iter().for_each(|channel| self.question_ended(channel));
    }

    /// The channel of a question has ended, or its time has.
    pub(super) fn question_ended(&mut self, channel: ChannelId) {
        if self.questions.remove(&channel).is_some() {
            self.tell(RcapEvent::NoStatus { channel });
        }
    }
}

/// The record of this node. The destination sends nothing on, so its numbers are zero.
fn own_record(own: NodeId, entry: &Entry) -> Record {
    let zero = Span::ZERO;
    let offer = Offer { delay: zero, service_least: zero, link_least: zero, link_most: zero };
    let none = Regulator::None;
    let hop =
        HopOffer { offer, regulator: none, host_slack: zero, late: Chance::NEVER, medium: 0, percent: 0 };
    let at_end = Record {
        node: own,
        port: PortId(0),
        is_open: true,
        hop,
        buffers: 0,
        counts: StatusCounts::default(),
        terms: Vec::new(),
    };
    let of_hop = entry.records.last().filter(|_| entry.hop.is_some());
    of_hop.cloned().unwrap_or(at_end)
}
