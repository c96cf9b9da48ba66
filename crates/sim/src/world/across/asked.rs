//! Channels that their receivers ask for, and channels in both directions.
//!
//! The program of a source waits by the number of its service, and opens what it is asked for. T11: a channel
//! back is open as the way there is, or the way there ends.

use super::suite::{Initiation, Suite};
use super::{AcrossSpec, Answer, EndState, OUTCOME, World};
use crate::world::Event;
use rota_contract::CloseCause;
use rota_proto::{ChannelId, RequestError};
use rota_units::Span;

/// A receiver that asks learns of its outcome within this time: four seconds of silence, and the request of
/// the source.
pub(super) const ASKED: Span = Span::from_millis(8_000);

/// The receiver hears that its source was denied within this time and that of a word: it asks again where a
/// session has broken meanwhile.
const DENIED: Span = Span::from_millis(2_000);

impl World {
    /// The receiver asks for a channel. Its flow has no number until the source has opened it.
    pub(super) fn ask_across(&mut self, spec: AcrossSpec) -> Result<usize, RequestError> {
        let (at, service) = self.next_across();
        if self.hosts[spec.to].node.is_none() || self.hosts[spec.from].node.is_none() {
            return Err(RequestError::NotJoined);
        }
        self.await_invitation(spec.from, service, spec.uid)?;
        let (from, to) = (spec.from, spec.to);
        self.push_across(spec, ChannelId::NONE, service);
        self.across.flows[at].beside.invitee = Some(service.into());
        if !self.invites(at, ChannelId::NONE) {
            self.forget_invitee(at);
            self.across.flows.pop();
            return Err(RequestError::NotJoined);
        }
        self.drain_and_arm(to);
        self.drain_and_arm(from);
        self.check();
        Ok(at)
    }

    fn await_invitation(&mut self, host: usize, service: u16, uid: u32) -> Result<(), RequestError> {
        let waits = self.with(host, |node, _| node.add_invitee(service.into(), service, uid));
        waits.unwrap_or(Err(RequestError::NotJoined))
    }

    pub(super) fn forget_invitee(&mut self, at: usize) {
        let flow = &mut self.across.flows[at];
        let from = flow.spec.from;
        if let Some(invitee) = flow.beside.invitee.take() {
            self.with(from, |node, now| node.remove_invitee(now, invitee));
        }
    }

    /// The receiver of a flow asks for it; false where it knows no way to the source.
    fn invites(&mut self, at: usize, pair: ChannelId) -> bool {
        let flow = &self.across.flows[at];
        let (to, service, source) = (flow.spec.to, flow.service, format!("n{}", flow.spec.from + 1));
        let asked =
            self.with(to, |node, now| node.invite(now, (service.into(), service), &source, pair).is_ok());
        asked == Some(true)
    }

    /// The way there of a channel in both directions is asked for: the other program waits to be asked for
    /// the way back.
    pub(super) fn expect_back(&mut self, there: usize) {
        let spec = &self.across.flows[there].spec;
        let suite = Suite { asks: Initiation::Receiver, ..Suite::default() };
        let back =
            AcrossSpec { from: spec.to, to: spec.from, answer: Answer::Accepts, suite, ..spec.clone() };
        let (_, service) = self.next_across();
        if self.await_invitation(back.from, service, back.uid).is_err() {
            return;
        }
        let back = self.push_across(back, ChannelId::NONE, service);
        let beside = &mut self.across.flows[back].beside;
        (beside.invitee, beside.there) = (Some(service.into()), Some(there));
        self.across.flows[there].beside.back = Some(back);
    }

    /// The sender of the way there asks for the way back, or a source opens what it was asked for.
    pub(in crate::world) fn answer_across(
        &mut self,
        at: usize,
        host: usize,
        boot: u32,
        number: Option<ChannelId>,
    ) {
        if self.hosts[host].boots != boot || self.hosts[host].node.is_none() {
            return;
        }
        let Some(number) = number else { return self.goes_back(at) };
        let spec = self.across.flows[at].spec.clone();
        let service = self.across.flows[at].service;
        let opened = self.open_beyond_of(&spec, service, number);
        self.across.flows[at].beside.invitee = None;
        match opened {
            Ok(channel) => {
                self.across.flows[at].channel = channel;
                self.across.sending.insert((host, channel), at);
            }
            // The receiver hears that the source is silent.
            Err(_) => {
                self.across.flows[at].sender = EndState::Denied;
                self.with(host, |node, now| node.remove_invitee(now, service.into()));
            }
        }
        self.drain_and_arm(host);
    }

    /// The program of the way there asks for the way back, or closes where there will be none.
    fn goes_back(&mut self, at: usize) {
        let Some(there) = self.across.flows[at].beside.there else {
            self.close_without_back(at);
            return;
        };
        let pair = self.across.flows[there].channel;
        self.across.flows[at].asked = self.now();
        if !self.invites(at, pair) {
            self.back_is_denied(at, "NotFound");
        }
    }

    /// A source was asked for a channel. It opens it behind this drain.
    pub(super) fn across_invited(&mut self, host: usize, invitee: u64, number: ChannelId) {
        let is_its = |flow: &super::AcrossFlow| {
            flow.spec.from == host && flow.beside.invitee == Some(invitee) && !flow.sender.is_over()
        };
        if let Some(at) = self.across.flows.iter().rposition(is_its) {
            self.soon(at, host, Some(number));
        }
    }

    /// A receiver learns that the source will send nothing.
    pub(super) fn across_not_invited(&mut self, host: usize, listener: u64, test: &'static str) {
        let is_its = |flow: &super::AcrossFlow| {
            let waits = flow.receiver == EndState::Waits || flow.receiver == EndState::Denied;
            flow.spec.to == host && u64::from(flow.service) == listener && waits
        };
        let Some(at) = self.across.flows.iter().rposition(is_its) else { return };
        let flow = &mut self.across.flows[at];
        (flow.receiver, flow.denied) = (EndState::Denied, flow.denied.or(Some(test)));
        self.back_is_denied(at, test);
    }

    fn back_is_denied(&mut self, at: usize, test: &'static str) {
        let flow = &mut self.across.flows[at];
        flow.denied = flow.denied.or(Some(test));
        if flow.is_unopened() {
            // Its source has never heard of it, or has not opened it yet.
            (flow.sender, flow.receiver) = (EndState::Denied, EndState::Denied);
        }
        let there = flow.beside.there;
        // Behind this drain.
        if let Some(there) = there.filter(|there| self.across.flows[*there].sender == EndState::Open) {
            let host = self.across.flows[there].spec.from;
            self.soon(there, host, None);
        }
        if self.across.flows[at].beside.invitee.is_some() {
            self.uninvite_soon(at);
        }
    }

    /// The program of a source waits no more to be asked.
    pub(in crate::world) fn uninvite_across(&mut self, at: usize, host: usize, boot: u32) {
        if self.hosts[host].boots == boot {
            self.forget_invitee(at);
        }
        if self.across.flows[at].receiver == EndState::Closed(CloseCause::ReceiverClosed) {
            self.unlisten_across(at);
        }
    }

    /// The way there ends without a way back: its program closes it.
    fn close_without_back(&mut self, there: usize) {
        let Some(back) = self.across.flows[there].beside.back else { return };
        let flow = &self.across.flows[back];
        if [flow.sender, flow.receiver].contains(&EndState::Denied) {
            self.close_across(there, false, false);
        }
    }

    /// T11: the way there of a channel in both directions stands without the way back.
    pub(super) fn look_at_pairs(&mut self) {
        let now = self.now();
        let told = self.neighbours.delay_most() * self.hosts.len() as u64 + DENIED;
        for there in 0..self.across.flows.len() {
            let Some(back) = self.across.flows[there].beside.back else { continue };
            let (one, other) = (&self.across.flows[there], &self.across.flows[back]);
            let never = matches!(other.sender, EndState::Waits | EndState::Denied);
            let stands = one.sender == EndState::Open && !one.is_closing;
            let (since, within) = match other.beside.over[0] {
                Some(denied) if other.sender == EndState::Denied => (denied, told),
                _ => (other.asked, ASKED + OUTCOME),
            };
            let overdue = now.since(since) > within;
            let runs = self.hosts[one.spec.from].is_running(now);
            if never && stands && overdue && runs && !self.across_excused(there, since, now) {
                self.broke("T11", format!("channel {there} is open, and {back}, its way back, never was"));
            }
        }
    }

    /// The program that asked for a channel is dead: nobody opens it any more.
    pub(super) fn asker_is_dead(&mut self, at: usize) {
        let flow = &mut self.across.flows[at];
        if flow.is_unopened() && !flow.sender.is_over() {
            flow.sender = EndState::Denied;
            self.uninvite_soon(at);
        }
    }

    fn uninvite_soon(&mut self, at: usize) {
        let host = self.across.flows[at].spec.from;
        let boot = self.hosts[host].boots;
        self.engine.schedule(self.engine.now(), Event::Uninvite { flow: at, host, boot });
    }

    /// When a program of the way there leaves, the one that waits for the way back leaves, too.
    pub(super) fn there_is_over(&mut self, there: usize, cause: EndState) {
        let Some(back) = self.across.flows[there].beside.back else { return };
        let flow = &mut self.across.flows[back];
        if flow.is_unopened() && !flow.sender.is_over() {
            flow.sender = cause;
            flow.receiver = EndState::Closed(CloseCause::ReceiverClosed);
            self.uninvite_soon(back);
        } else if (cause, flow.sender, flow.receiver) == (EndState::Denied, EndState::Dead, EndState::Waits) {
            // The host that waited to be asked died first. Nobody has asked it: the way there never opened.
            flow.receiver = EndState::Closed(CloseCause::ReceiverClosed);
        }
    }
}
