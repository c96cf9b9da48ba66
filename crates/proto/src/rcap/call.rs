//! The calls of this node's programs: a channel is asked for, in several attempts; a service is waited on.

use super::Rcap;
use super::backup::Pending;
use super::establish::Attempt;
use super::io::{ChannelRequest, RcapCallError, RcapEvent, simply};
use super::other::Paths;
use super::record::{Again, Demand};
use super::reroute::Broken;
use super::search::Nodes;
use rota_admission::path::Goal;
use rota_contract::{ChannelId, NodeId};
use rota_units::{Instant, Octets, Span};
use rota_wire::{RcapChannel, RcapDenied, RcapStanding, RcapTest};

/// Random times between attempts for another path grow up to this attempt, and no longer: the time for them
/// is short.
const TRIES_WINDOW: u16 = 4;
/// A channel that has had more attempts changes no more: those that are left are for other paths.
pub(super) const ATTEMPTS_MAX: u16 = u16::MAX - 1_000;

/// A call that waits for its outcome.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) demand: Demand,
    pub(super) attempts: u16,
    /// By when the program has its outcome.
    pub(super) until: Instant,
    /// When to try again; none while an attempt is under way.
    pub(super) retry_at: Option<Instant>,
    /// The program has closed it: no attempt follows.
    pub(super) is_over: bool,
    /// The channel was open, and another path is looked for: the end of the one before, and how many
    /// attempts there were since.
    pub(super) broken: Option<(Broken, u16)>,
    /// The channel is open and is to change: the newest attempt before this call.
    pub(super) change: Option<u16>,
    /// The first path is open, and a second one is asked for.
    pub(super) pending: Option<Box<Pending>>,
    /// The first refusal after which D_max was made shorter, since its node has no room for the packets of
    /// the one that was asked for, and that one.
    pub(super) shortened: Option<(RcapDenied, Span)>,
    pub(super) paths: Paths,
    /// The refusal of a change that would have taken the place of the open contract: it is asked for beside
    /// that one.
    pub(super) beside: Option<RcapDenied>,
}

impl Call {
    /// One that begins now.
    pub(super) fn new(demand: Demand, until: Instant) -> Self {
        let (demand, paths) = (Demand { path: Nodes::default(), ..demand }, Paths::default());
        let (retry_at, broken, change, pending, shortened) = (None, None, None, None, None);
        let beside = None;
        Self {
            demand,
            attempts: 0,
            until,
            retry_at,
            is_over: false,
            broken,
            change,
            pending,
            shortened,
            paths,
            beside,
        }
    }

    /// The demand of the next attempt. The first one, the third one and so on pass by what has failed; those
    /// between may find it mended.
    fn next_demand(&mut self) -> Demand {
        Demand { path: self.paths.named, ..self.next_as_routed() }
    }

    fn next_as_routed(&mut self) -> Demand {
        if let Some(pending) = &self.pending {
            return pending.demand(self.demand);
        }
        let apart = Nodes::default();
        if self.change.is_some() {
            // All branches go over together: none takes the place of what it has.
            let takes_place = self.beside.is_none() && !self.demand.is_branch();
            let again = Again { is_change: true, takes_place, avoid: None, apart };
            return Demand { again: Some(again), ..self.demand };
        }
        let Some((broken, tries)) = &mut self.broken else { return self.demand };
        *tries = tries.saturating_add(1);
        let avoid = broken.avoid.filter(|_| *tries % 2 == 1);
        Demand { again: Some(Again { avoid, apart, ..Again::default() }), ..self.demand }
    }

    /// The same demand with this D_max.
    fn keeping(&self, delay: Span) -> Option<Demand> {
        let Demand { heard, request, .. } = self.demand;
        let goal = Goal { delay, ..request.goal };
        Demand::of(heard, ChannelRequest { goal, ..request }).ok()
    }

    /// The nodes that its paths pass by: those of the first path where it is for a second one, the one that
    /// failed where another one is looked for.
    pub(super) fn passed_by(&self) -> impl Iterator<Item = NodeId> {
        let first = self.pending.iter().flat_map(|pending| pending.between());
        first.chain(self.broken.iter().filter_map(|(broken, _)| broken.avoid))
    }
}

/// A question for the status of a channel.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) number: u32,
    pub(super) until: Instant,
}

/// True if a refusal names a D_max that fits. A second path keeps the contract of the first one, and all
/// branches have one.
fn shortens(call: &Call, denied: &RcapDenied) -> bool {
    let shorter = 1..call.demand.request.goal.delay.as_nanos();
    shorter.contains(&denied.nearest_delay_ns) && call.pending.is_none() && !call.demand.is_branch()
}

impl Rcap {
    /// Asks for a channel (`TENET-4.1-2`) by a number that this node has never given. The outcome is one
    /// event: opened or refused.
    ///
    /// # Errors
    /// The request can be seen to be wrong without asking anybody.
    pub fn establish(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: ChannelRequest,
    ) -> Result<(), RcapCallError> {
        self.establish_within(now, channel, request, self.limits.patience)
    }

    /// The same with an outcome within this time, if that is shorter than the patience of this node.
    ///
    /// # Errors
    /// As [`Self::establish`].
    pub fn establish_within(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: ChannelRequest,
        patience: Span,
    ) -> Result<(), RcapCallError> {
        if request.destination == self.own {
            return Err(RcapCallError::OwnNode);
        }
        let request = self.answers_invite(request)?;
        let demand = Demand::of(now, request)?;
        if self.calls.len() >= self.limits.calls {
            return Err(RcapCallError::Full);
        }
        let until = now + patience.min(self.limits.patience);
        self.calls.insert(channel, Call::new(demand, until));
        self.begin_answer(channel, &request);
        self.attempt(now, channel);
        Ok(())
    }

    /// Tests if a request can be, whatever other nodes say to it.
    ///
    /// # Errors
    /// Its traffic or one of its fields cannot be.
    pub fn check_request(now: Instant, request: ChannelRequest) -> Result<(), RcapCallError> {
        Demand::of(now, request).map(|_| ())
    }

    pub(super) fn attempt(&mut self, now: Instant, channel: ChannelId) {
        let Some(named) = self.calls.get(&channel).map(|call| self.path_as_named(call)) else { return };
        let Some(call) = self.calls.get_mut(&channel) else { return };
        let Some(attempts) = call.attempts.checked_add(1) else {
            return self.settle(now, channel, simply(self.own, RcapTest::Unsupported));
        };
        (call.attempts, call.retry_at) = (attempts, None);
        self.counters.retries += u64::from(attempts > call.change.unwrap_or(0).saturating_add(1));
        let of = RcapChannel { origin: self.own, channel, attempt: call.attempts };
        match named {
            Ok(path) => path.into_iter().for_each(|path| call.paths.go(path)),
            Err(()) => return self.settle(now, channel, simply(self.own, RcapTest::NoRoute)),
        }
        let is_again = call.broken.is_some();
        let (demand, left) = (call.next_demand(), call.until.since(now));
        // An attempt that a node swallows leaves time for another one.
        let lease = if is_again { left.min(self.limits.patience.div_down(2)) } else { left };
        let attempt = Attempt { of, before: None, demand, records: Vec::new(), lease };
        self.note_attempt(&of);
        if let Err(denied) = self.begin(now, attempt) {
            self.settle(now, channel, denied);
        }
    }

    /// Attempts whose random time has come.
    pub(super) fn retry(&mut self, now: Instant) {
        let is_due = |call: &Call| call.retry_at.is_some_and(|at| at <= now);
        let due: Vec<ChannelId> =
            self.calls.iter().filter(|(_, call)| is_due(call)).map(|(channel, _)| *channel).collect();
        due.into_iter().for_each(|channel| self.attempt(now, channel));
    }

    /// An attempt was denied: another one follows, or the program is told.
    pub(super) fn settle(&mut self, now: Instant, channel: ChannelId, denied: RcapDenied) {
        let Some(call) = self.calls.get(&channel) else { return };
        let attempts = call.attempts;
        // No path keeps a shorter D_max: there is no room for the packets of any that the path can keep.
        let shortened = call.shortened.filter(|_| denied.test == RcapTest::PathDelay);
        let shortened = shortened.map(|(first, _)| RcapDenied { nearest_delay_ns: 0, ..first });
        let denied = shortened.unwrap_or(denied);
        let told = call.paths.heard(denied);
        let next = self.next_attempt(now, call.clone(), &denied);
        match next.or_else(|| self.asked_beside(now, channel, told)) {
            Some(call) => {
                self.calls.insert(channel, call);
            }
            None => match self.calls.remove(&channel) {
                Some(Call { broken: Some((broken, _)), is_over, .. }) => {
                    self.no_way(channel, &broken, Some(denied).filter(|_| !is_over));
                }
                Some(Call { pending: Some(pending), .. }) => self.no_second(now, (channel, &pending), told),
                Some(Call { change: Some(_), beside, .. }) => {
                    // A hop that cannot grow has said nothing of the contract.
                    let first = beside.filter(|first| first.test != RcapTest::Unsupported);
                    self.tell(RcapEvent::NotChanged { channel, denied: first.unwrap_or(told) });
                }
                _ => {
                    self.end_answer(now, channel, Some(told));
                    self.tell(RcapEvent::Refused { channel, denied: told, attempts });
                }
            },
        }
    }

    /// The call with its next attempt, if one may help (`TENET-R10`).
    fn next_attempt(&mut self, now: Instant, mut call: Call, denied: &RcapDenied) -> Option<Call> {
        let tries = call.broken.as_ref().map(|(_, tries)| *tries);
        let attempts = call.attempts - call.change.unwrap_or(0);
        if call.is_over || tries.is_none() && attempts >= self.limits.attempts {
            return None;
        }
        let first = denied.standing == RcapStanding::RaceFirst || denied.test == RcapTest::NeighbourLost;
        let wait = match (denied.test, denied.standing) {
            (RcapTest::Packet, _) if denied.nearest_octets > 0 => {
                let packet_max = Octets::new(denied.nearest_octets.into());
                if packet_max >= call.demand.request.packet_max {
                    return None;
                }
                let smaller = ChannelRequest { packet_max, ..call.demand.request };
                call.demand = Demand::of(call.demand.heard, smaller).ok()?;
                Span::ZERO
            }
            // A shorter D_max is what was asked for, too.
            (RcapTest::PortBuffer | RcapTest::Room, _) if shortens(&call, denied) => {
                let asked = call.demand.request.goal.delay;
                call.shortened = call.shortened.or(Some((*denied, asked)));
                call.demand = call.keeping(Span::from_nanos(denied.nearest_delay_ns))?;
                Span::ZERO
            }
            // The receiver is gone, or says that this is no request.
            (RcapTest::ReceiverRefused | RcapTest::Garbage | RcapTest::Traffic, _) if tries.is_some() => {
                return None;
            }
            _ if self.turns(&mut call, denied) => {
                // The nodes of another path may have room for all that was asked for.
                if let Some((_, asked)) = call.shortened.take() {
                    call.demand = call.keeping(asked)?;
                }
                Span::ZERO
            }
            _ if tries.is_some() => {
                call.paths = Paths::default();
                self.random_time(tries.unwrap_or(1).min(TRIES_WINDOW))
            }
            _ if first => self.random_time(attempts),
            (_, RcapStanding::RaceLast) => self.window(attempts) + self.random_time(attempts),
            _ => return None,
        };
        let at = now + wait;
        call.retry_at = Some(at);
        (at < call.until).then_some(call)
    }

    /// The call for a change that no hop can have in the place of the open contract: once more, beside that
    /// one. A word of its receiver is final.
    fn asked_beside(&self, now: Instant, channel: ChannelId, told: RcapDenied) -> Option<Call> {
        let call = self.calls.get(&channel).filter(|call| call.change.is_some() && call.pending.is_none())?;
        let is_of_hops = super::change::may_fit_beside(&told);
        if call.beside.is_some() || call.is_over || !call.demand.is_plain() || !is_of_hops {
            return None;
        }
        let demand = match call.shortened {
            Some((_, asked)) => call.keeping(asked)?,
            None => call.demand,
        };
        let next = Call { attempts: call.attempts, change: call.change, ..Call::new(demand, call.until) };
        (now < call.until).then_some(Call { retry_at: Some(now), beside: Some(told), ..next })
    }

    fn window(&self, attempts: u16) -> Span {
        self.limits.back_off * (1 << attempts.clamp(1, 16).saturating_sub(1))
    }

    fn random_time(&mut self, attempts: u16) -> Span {
        let window = self.window(attempts).as_nanos().max(1);
        Span::from_nanos(self.rng.next_u64() % window)
    }

    /// A program waits for channels on a service (`TENET-4.1-3`), and is known by a number of its own. Each
    /// request comes as an event (`TENET-4.1-4`).
    ///
    /// # Errors
    /// Another one waits there, or too many do.
    pub fn register(&mut self, service: u16, listener: u64) -> Result<(), RcapCallError> {
        if self.listeners.contains_key(&service) {
            return Err(RcapCallError::ServiceTaken(service));
        }
        if self.listeners.len() >= self.limits.listeners {
            return Err(RcapCallError::Full);
        }
        self.listeners.insert(service, listener);
        Ok(())
    }

    /// These programs wait from now on, one on each service, in the place of those before.
    pub fn set_listeners(&mut self, listeners: impl Iterator<Item = (u16, u64)>) {
        self.listeners.clear();
        for (service, listener) in listeners.take(self.limits.listeners) {
            self.listeners.entry(service).or_insert(listener);
        }
    }

    /// No further requests for a service; channels and requests that are there go on (`TENET-4.1-6`).
    pub fn unregister(&mut self, service: u16) {
        self.listeners.remove(&service);
    }
}
