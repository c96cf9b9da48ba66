//! Channels that their receivers ask for: an invitee is asked, and a program that has asked is told if there
//! will be none.

use super::{Control, logged, modify};
use crate::log::{Level, say};
use rota_proto::ChannelEvent;
use rota_proto::rcap::RcapDenied;
use rota_shm::control::{InvitationInfo, Reply, UNASKED};
use rota_wire::RcapTest;

impl Control<'_> {
    /// The session keeps the invitee's number until the program leaves: where that is without a request, the
    /// receiver is refused at once.
    pub(super) fn on_invited(&mut self, event: &ChannelEvent) {
        let ChannelEvent::Invited { invitee, receiver, name, number, service, pair } = event else { return };
        let invitees = |session: &&crate::session::Session| session.invitees.contains(invitee);
        let Some(session) = self.sessions.iter().find(invitees) else { return };
        let invitation = InvitationInfo { receiver: *receiver, number: *number };
        let name = name.clone().unwrap_or_else(|| receiver.to_string());
        let text = format!("asked: a receiver on {name} asks for a channel of service {service}");
        say(Level::Info, "asked", &text);
        let reply = Reply::Invited { invitation, name, service: *service, pair: *pair };
        session.to(UNASKED).reply(&reply, &[]);
    }

    pub(super) fn on_not_invited(&mut self, listener: u64, denied: &RcapDenied, name: Option<&str>) {
        let node = self.name_of(denied, name);
        let place = self.sessions.iter().enumerate().find_map(|(at, session)| {
            session.listens.iter().position(|known| known.id == listener).map(|place| (at, place))
        });
        let Some((at, place)) = place else { return };
        let service = self.sessions[at].listens.swap_remove(place).service;
        let mut sentence = logged::denial(denied, &node, None);
        if denied.test == RcapTest::NoSource {
            sentence += &format!("; run 'rota send --listen --service {service}' there first");
        }
        say(Level::Warn, "refused", &format!("refused: a channel of service {service} to here: {sentence}"));
        let is_absent = matches!(
            denied.test,
            RcapTest::NoRoute | RcapTest::NoSource | RcapTest::SourceSilent | RcapTest::NeighbourLost
        );
        let refusal = modify::refusal_of(denied, node, sentence);
        self.sessions[at].to(UNASKED).reply(&Reply::NotInvited { refusal, is_absent }, &[]);
    }
}
