//! Receivers that ask sources for channels, in a world of RCAP machines.

use super::{SERVICE, What, World, ms, node, place, request};
use rota_contract::ChannelId;
use rota_proto::rcap::{ChannelKey, ChannelRequest, Invitation, Rcap, RcapInitiation, RcapTest};
use rota_units::{Instant, Span};

/// Programs of each node that wait to be asked.
const INVITEES: u64 = 3;

/// The outcome of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The channel came, and the program took it.
    Came,
    /// It came, and the program did not want it any more.
    Declined,
    Denied(RcapTest),
    /// The receiver's node crashed.
    Crashed,
}

/// A channel that a receiver wants.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub at: usize,
    pub since: Instant,
    pub met: Option<Met>,
    /// The channel that came for it.
    came: Option<ChannelKey>,
}

pub(super) fn add_invitees(machine: &mut Rcap) {
    for invitee in 0..INVITEES {
        machine.add_invitee(invitee, SERVICE, request(0).uid).expect("there is room");
    }
}

impl World {
    /// The program of a node asks after this time for a channel from another one.
    pub fn invite(&mut self, at: usize, after: Span, from: usize) {
        self.at(self.now + after, What::Invite { at, from });
    }

    pub(super) fn invite_now(&mut self, at: usize, from: usize) {
        if self.stations[at].machine.is_none() {
            return;
        }
        self.channels += 1;
        let number = ChannelId(self.channels);
        let key = ChannelKey { origin: node(at), channel: number };
        self.wishes.insert(key, Wish { at, since: self.now, met: None, came: None });
        let (source, listener, pair) = (node(from), number.0, ChannelId::NONE);
        let invitation = Invitation { source, service: SERVICE, listener, pair };
        let life = self.life(at);
        self.with(at, life, |machine, now| machine.invite(now, number, invitation).expect("it is sound"));
    }

    /// A program is asked, and asks for the channel a moment later.
    pub(super) fn invited(&mut self, at: usize, key: ChannelKey) {
        if self.happens(self.noise.silent) {
            return;
        }
        let (life, late) = (self.life(at), Span::from_nanos(self.below(3_000_000)));
        self.at(self.now + late, What::Invited { at, life, key });
    }

    pub(super) fn ask_back(&mut self, at: usize, key: ChannelKey) {
        let initiation = RcapInitiation::Receiver(key.channel);
        self.ask(at, ChannelRequest { initiation, ..request(place(key.origin)) });
    }

    pub(super) fn arrives(&mut self, at: usize, came: ChannelKey, request: &ChannelRequest) {
        let channel = request.initiation.invitation();
        if channel.is_some() {
            let wish = self.wishes.get_mut(&ChannelKey { origin: node(at), channel });
            let wish = wish.expect("only who asked gets such a channel");
            assert_eq!(wish.met, None, "a wish is met once");
            wish.came = Some(came);
        }
    }

    /// The program of a receiver has answered.
    pub(super) fn answered(&mut self, key: ChannelKey, answered: bool, accepts: bool) {
        let wish = self.wishes.values_mut().find(|wish| wish.came == Some(key));
        if let Some(wish) = wish.filter(|_| answered) {
            assert_eq!(wish.met, None, "a wish is met once");
            wish.met = Some(if accepts { Met::Came } else { Met::Declined });
        }
    }

    pub(super) fn not_invited(&mut self, at: usize, listener: u64, test: RcapTest) {
        let key = ChannelKey { origin: node(at), channel: ChannelId(listener) };
        let wish = self.wishes.get_mut(&key).expect("it was asked for");
        assert_eq!(wish.met, None, "a wish has one outcome");
        wish.met = Some(Met::Denied(test));
        let hung = self.stations[at].has_hung;
        assert!(hung || self.now.since(wish.since) <= ms(6_000), "{wish:?} at {:?}", self.now);
    }

    pub(super) fn crash_wishes(&mut self, at: usize) {
        let its = self.wishes.values_mut().filter(|wish| wish.at == at && wish.met.is_none());
        its.for_each(|wish| wish.met = Some(Met::Crashed));
    }

    /// The outcome of each wish, in their order.
    pub fn met(&self) -> Vec<Option<Met>> {
        self.wishes.values().map(|wish| wish.met).collect()
    }
}
