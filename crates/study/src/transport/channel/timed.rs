//! Units over a channel as a continuous medium: by time, with work-ahead, and marks for what is missing.

use super::{
    Booked, ChannelFailure, ChannelRequest, FIRST_SLOT_PATIENCE, NOT_REPORTED, NOT_STATED, Sender, closed,
    end_of, end_of_sender, end_of_wait, listener, open_channel, promise, receivers, uncounted,
};
use crate::came::Rest;
use crate::clock;
use crate::stall::Stall;
use crate::transport::{Arrival, Closed, Event, Promise, SendTurn, UnitSink, UnitSource};
use rota::cmtp::{Played, StreamSink, StreamSource, StreamTally, StreamUnit, UnitState, buffers_for};
use rota::{
    AcceptError, Listener, ReceiverInfo, RecvError, SendChannel, SendError, Statistical, Tally, Withdrawn,
};
use rota_answer::Failure;
use rota_units::{Instant, Span};

/// The two lives of a stream whose channel may begin later.
enum Stage {
    /// Before the start of a channel that is booked. The stream, and its work-ahead of so many units, begins
    /// with the channel: a unit that is handed over before would only wait in the memory.
    Booked(SendChannel, u16),
    Streams(StreamSource),
    /// The channel ended before its first unit, and was freed.
    Over,
}

impl Stage {
    fn channel(&self) -> Option<&SendChannel> {
        match self {
            Self::Booked(channel, _) => Some(channel),
            Self::Streams(stream) => Some(stream.channel()),
            Self::Over => None,
        }
    }

    /// Begins the stream, if it has not begun.
    fn begin(&mut self) -> Result<&mut StreamSource, Failure> {
        if let Self::Booked(..) = self
            && let Self::Booked(channel, ahead) = std::mem::replace(self, Self::Over)
        {
            *self = Self::Streams(begin(channel, ahead)?);
        }
        match self {
            Self::Streams(stream) => Ok(stream),
            _ => Err(uncounted("the channel ended before its stream began".into(), NOT_REPORTED)),
        }
    }
}

struct TimedSink {
    stage: Stage,
    time: Booked,
}

/// Opens a channel, and a stream on it that works ahead by so many units.
pub fn open(request: &ChannelRequest, ahead: u16) -> Result<Box<dyn UnitSink>, ChannelFailure> {
    let time = Booked::since(clock::now(), &request.terms);
    let (channel, _) = open_channel(request, buffers_for(ahead))?;
    let stage = match request.terms.start {
        Some(_) => Stage::Booked(channel, ahead),
        None => Stage::Streams(begin(channel, ahead)?),
    };
    Ok(Box::new(TimedSink { stage, time }))
}

fn begin(channel: SendChannel, ahead: u16) -> Result<StreamSource, Failure> {
    StreamSource::begin(channel, ahead, FIRST_SLOT_PATIENCE).map_err(end_of_wait)
}

fn failed(error: SendError) -> Failure {
    match error {
        SendError::Closed(cause) => end_of_sender(cause),
        gone @ SendError::NodeGone => uncounted(gone.to_string(), NOT_REPORTED),
        other => Failure::failed(other),
    }
}

/// The work-ahead in words. Before the stream begins nobody knows for how many units there is room.
fn in_words(stage: &Stage) -> Option<String> {
    let (most, ahead) = match stage {
        Stage::Booked(_, ahead) => ("up to ", *ahead),
        Stage::Streams(stream) => ("", stream.ahead()),
        Stage::Over => return None,
    };
    Some(format!("{most}{ahead} unit{} of work-ahead", if ahead == 1 { "" } else { "s" }))
}

impl UnitSink for TimedSink {
    fn promise(&self) -> Option<Promise> {
        self.stage.channel().map(|channel| promise(channel.granted()))
    }

    fn reservation(&self) -> Option<String> {
        let ahead = in_words(&self.stage)?;
        let reservation = self.stage.channel()?.granted().reservation();
        Some(reservation.map_or(ahead.clone(), |reservation| format!("{reservation}; {ahead}")))
    }

    fn receivers(&self) -> Vec<ReceiverInfo> {
        self.stage.channel().map(receivers).unwrap_or_default()
    }

    fn receivers_changed(&mut self) -> Vec<ReceiverInfo> {
        match &mut self.stage {
            Stage::Booked(channel, _) => channel.receivers_changed(),
            Stage::Streams(stream) => stream.receivers_changed(),
            Stage::Over => Vec::new(),
        }
    }

    fn withdrawn(&mut self) -> Option<Withdrawn> {
        match &mut self.stage {
            Stage::Booked(channel, _) => channel.withdrawn(),
            Stage::Streams(stream) => stream.withdrawn(),
            Stage::Over => None,
        }
    }

    fn wait_slot(&mut self, frame: u64) -> Result<SendTurn, Failure> {
        if let Stage::Booked(channel, _) = &self.stage {
            self.time.await_start(channel)?;
        }
        let stream = self.stage.begin()?;
        clock::sleep_until_or_asked_to_end(stream.opens())?;
        let number = stream.wait().map_err(failed)?;
        let schedule = stream.time();
        Ok(SendTurn { schedule, waited: schedule, skipped: number.saturating_sub(frame) })
    }

    fn send(&mut self, _number: u64, unit: &[u8], _schedule: Instant) -> Result<bool, Failure> {
        if self.time.is_over() {
            return Ok(false);
        }
        match self.stage.begin()?.put(unit) {
            Ok(_) => Ok(true),
            Err(SendError::LeftOut) => Ok(false),
            Err(SendError::Closed(cause)) if self.time.is_end(cause) => Ok(false),
            Err(other) => Err(failed(other)),
        }
    }

    fn is_over(&self) -> bool {
        self.time.is_over()
    }

    fn close(self: Box<Self>, played: Result<u64, Failure>) -> Closed {
        let Self { stage, time } = *self;
        let channel = match stage {
            Stage::Booked(channel, _) => channel,
            Stage::Streams(stream) => stream.into_channel(),
            Stage::Over => {
                let (stalls, receivers, counted) = (Vec::new(), Vec::new(), Some((0, 0)));
                let (tally, rest, failure) = (Tally::default(), Rest::default(), played.err());
                return Closed { stalls, tally, rest, counted, receivers, failure };
            }
        };
        closed(channel, played, Vec::new(), time)
    }
}

struct TimedSource {
    listener: Listener,
    ahead: u16,
    stream: Option<StreamSink>,
    withdrawn: Option<Withdrawn>,
    statistical: Option<Statistical>,
}

/// Listens for a stream whose source works ahead by so many units at most.
pub fn listen(service: u16, from: Sender<'_>, ahead: u16) -> Result<Box<dyn UnitSource>, Failure> {
    // Units wait in this program for their time; the ring holds what comes while it is not scheduled.
    let listener = listener(service, from, super::RECEIVE_BUFFERS.max(buffers_for(ahead)), false)?;
    Ok(Box::new(TimedSource { listener, ahead, stream: None, withdrawn: None, statistical: None }))
}

impl UnitSource for TimedSource {
    fn next(&mut self, octets: &mut Vec<u8>, patience: Span) -> Result<Event, Failure> {
        let Some(stream) = &mut self.stream else {
            match self.listener.accept(patience) {
                Ok(channel) => {
                    (self.withdrawn, self.statistical) = (channel.withdrawn(), channel.statistical());
                    self.stream = Some(StreamSink::begin(channel, self.ahead));
                }
                Err(AcceptError::TimedOut { .. }) => {}
                Err(other) => return Err(other.into()),
            }
            return Ok(Event::Silence);
        };
        match stream.next(octets, patience) {
            Ok(Played::Unit(unit)) => Ok(event(&unit)),
            Ok(Played::End(end)) => {
                // Across segments the source's number is not always stated: these are all that have a number.
                let StreamTally { whole, in_part, late, lost, .. } = stream.tally();
                let numbered = [in_part, late, lost].into_iter().fold(whole, u64::saturating_add);
                Ok(Event::Closed { sent: end.units_sent.unwrap_or(numbered) })
            }
            Err(RecvError::TimedOut) => Ok(Event::Silence),
            Err(RecvError::Broken(cause)) => Err(end_of(cause, NOT_STATED)),
            Err(gone @ RecvError::NodeGone) => Err(uncounted(gone.to_string(), NOT_STATED)),
            Err(other) => Err(Failure::failed(other)),
        }
    }

    fn withdrawn(&mut self) -> Option<Withdrawn> {
        if let Some(stream) = &mut self.stream {
            self.withdrawn = stream.withdrawn();
        }
        self.withdrawn
    }

    fn statistical(&self) -> Option<Statistical> {
        self.statistical
    }

    fn tally(&self) -> Tally {
        let Some(stream) = &self.stream else { return Tally::default() };
        let played = stream.tally();
        Tally {
            units: played.whole,
            late: played.late,
            lost: played.lost,
            incomplete: played.in_part,
            latest_by_ns: played.latest_by_ns,
            unread: stream.channel().tally().unread,
        }
    }

    fn plays_by_time(&self) -> bool {
        true
    }

    fn stated(&self) -> Option<u64> {
        self.stream.as_ref()?.channel().units_stated()
    }

    fn unsent(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.channel().units_unsent())
    }

    fn stalls(self: Box<Self>) -> Vec<Stall> {
        Vec::new()
    }
}

fn event(played: &StreamUnit) -> Event {
    let Some(unit) = played.unit else {
        return Event::Missing { number: played.number, is_late: played.state == UnitState::Late };
    };
    Event::Unit(Arrival {
        number: unit.number,
        complete: unit.complete,
        schedule: Instant::from_nanos(unit.schedule_ns),
        arrived: unit.arrived_at.unwrap_or(unit.dequeued_at),
        dequeued: clock::now(),
    })
}
