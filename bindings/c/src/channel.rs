//! Channels: open, send, close; listen, accept, receive.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};

use rota::{
    AcceptError, CloseError, ControlName, End, Instant, Listener, Node, NodeError, OpenError, OpenRequest,
    Overdue, Received, RecvChannel, RecvError, RefusalInfo, SendChannel, SendError, Span, Tally, TrafficSpec,
    Unit,
};

use crate::face::{Fault, Octets, Out, Status, copy_text, export, hand_over, octets, octets_mut};
use crate::face::{copy_octets, sentence, tell, text};

/// The node that `control` names, or the one of this station.
pub fn control_name(control: *const c_char) -> Result<ControlName, Fault> {
    match text(control, "control")? {
        None => Ok(ControlName::default()),
        Some(name) => ControlName::named(name).map_err(|error| Fault::new(Status::WrongUse, error)),
    }
}

impl From<AcceptError> for Fault {
    fn from(error: AcceptError) -> Self {
        let status = match &error {
            AcceptError::TimedOut { .. } => Status::TimedOut,
            AcceptError::NodeGone => Status::NodeGone,
            AcceptError::Refused(_) => Status::Refused,
            AcceptError::NotThere(_) => Status::NoListener,
            _ => Status::Failed,
        };
        Self::new(status, error)
    }
}

impl From<NodeError> for Fault {
    fn from(error: NodeError) -> Self {
        let status = match &error {
            NodeError::NotOpened { .. } | NodeError::NotChanged { .. } => Status::TimedOut,
            NodeError::Socket(_) => Status::NodeGone,
            NodeError::Denied { wrong_use: true, .. } => Status::WrongUse,
            _ => Status::Failed,
        };
        Self::new(status, error)
    }
}

impl From<SendError> for Fault {
    fn from(error: SendError) -> Self {
        let status = match error {
            SendError::TooLong { .. } => Status::TooLong,
            SendError::WouldBlock => Status::WouldBlock,
            SendError::LeftOut => Status::LeftOut,
            SendError::TimedOut => Status::TimedOut,
            SendError::Closed(cause) if cause.is_clean() => Status::Ended,
            SendError::Closed(_) => Status::Broken,
            SendError::NodeGone => Status::NodeGone,
            _ => Status::Failed,
        };
        Self::new(status, error)
    }
}

impl From<RecvError> for Fault {
    fn from(error: RecvError) -> Self {
        let status = match error {
            RecvError::TimedOut => Status::TimedOut,
            RecvError::Broken(_) => Status::Broken,
            RecvError::NodeGone => Status::NodeGone,
            _ => Status::Failed,
        };
        Self::new(status, error)
    }
}

/// `rota_request`.
#[repr(C)]
pub struct Request {
    to: *const c_char,
    name: *const c_char,
    period_ns: u64,
    timeout_ns: u64,
    unit_octets_max: u32,
    room_octets: u32,
    service: u16,
    buffers: u16,
    periodic: c_int,
}

impl Request {
    pub fn read(&self) -> Result<OpenRequest, Fault> {
        self.read_to(None)
    }

    /// The same for a station that is known otherwise.
    pub fn read_to(&self, to: Option<&str>) -> Result<OpenRequest, Fault> {
        let to = match to {
            Some(to) => to,
            None => text(self.to, "to")?.ok_or_else(|| Fault::null("to"))?,
        };
        let asked =
            OpenRequest::new(to, self.service, self.unit_octets_max, Span::from_nanos(self.period_ns));
        let or_default =
            |given: u64, default: Span| if given == 0 { default } else { Span::from_nanos(given) };
        let traffic = TrafficSpec { periodic: self.periodic != 0, ..asked.traffic };
        Ok(OpenRequest {
            traffic: traffic.with_room(self.room_octets),
            buffers: if self.buffers == 0 { asked.buffers } else { self.buffers },
            name: text(self.name, "name")?.map(str::to_owned),
            timeout: or_default(self.timeout_ns, asked.timeout),
            ..asked
        })
    }
}

/// `rota_nearest`.
#[repr(C)]
struct Nearest {
    delay_ns: u64,
    jitter_ns: u64,
    xmin_ns: u64,
    end_ns: u64,
    octets_max: u32,
    packet_octets: u32,
}

impl From<&RefusalInfo> for Nearest {
    fn from(info: &RefusalInfo) -> Self {
        Self {
            delay_ns: info.nearest_delay_ns,
            jitter_ns: info.nearest_jitter_ns,
            xmin_ns: info.nearest_xmin_ns.max(info.counter_offer_period_ns),
            end_ns: info.nearest_end_ns,
            octets_max: info.counter_offer_octets,
            packet_octets: info.nearest_packet_octets,
        }
    }
}

/// `rota_refusal`.
#[repr(C)]
pub struct Refusal {
    margin_bps: u64,
    counter_offer_bps: u64,
    nearest: Nearest,
    counter_offer_octets: u32,
    tsn_code: c_int,
    test: [c_char; 32],
    node: [c_char; 64],
    sentence: [c_char; 256],
}

impl From<&RefusalInfo> for Refusal {
    fn from(info: &RefusalInfo) -> Self {
        Self {
            margin_bps: info.margin_bps,
            counter_offer_bps: info.counter_offer_bps,
            nearest: info.into(),
            counter_offer_octets: info.counter_offer_octets,
            tsn_code: info.tsn_code.map_or(0, c_int::from),
            test: copy_text(&info.test),
            node: copy_text(&info.node),
            sentence: copy_text(&info.sentence),
        }
    }
}

/// `rota_unit`.
#[repr(C)]
pub struct UnitInfo {
    number: u64,
    octets: usize,
    schedule_ns: u64,
    arrived_at_ns: u64,
    lost_before: u64,
    missing_octets: u32,
    truncated: c_int,
}

impl UnitInfo {
    /// A unit of which nothing is there.
    pub fn missing(number: u64) -> Self {
        Self {
            number,
            octets: 0,
            schedule_ns: 0,
            arrived_at_ns: 0,
            lost_before: 0,
            missing_octets: 0,
            truncated: 0,
        }
    }

    pub fn set_lost_before(&mut self, units: u64) {
        self.lost_before = units;
    }
}

/// `rota_tally`.
#[repr(C)]
pub struct CTally {
    units: u64,
    late: u64,
    lost: u64,
    incomplete: u64,
    latest_by_ns: u64,
    unread: u64,
}

impl From<Tally> for CTally {
    fn from(tally: Tally) -> Self {
        let Tally { units, late, lost, incomplete, latest_by_ns, unread } = tally;
        Self { units, late, lost, incomplete, latest_by_ns, unread }
    }
}

/// The receiving end, with room for one unit.
pub struct Receiver {
    channel: RecvChannel,
    unit: Vec<u8>,
}

impl Receiver {
    /// The handle of a channel that has come.
    pub fn of(channel: RecvChannel) -> Self {
        Self { channel, unit: Vec::new() }
    }

    pub fn channel(&self) -> &RecvChannel {
        &self.channel
    }

    pub fn channel_mut(&mut self) -> &mut RecvChannel {
        &mut self.channel
    }

    pub fn into_channel(self) -> RecvChannel {
        self.channel
    }
}

pub fn opened(error: OpenError, refusal: Out<'_, Refusal>) -> Fault {
    match error {
        OpenError::Refused(info) => {
            tell(refusal, Refusal::from(&*info));
            Fault::new(Status::Refused, info.sentence)
        }
        OpenError::NoSuchStation(why) => Fault::new(Status::NoSuchStation, why),
        OpenError::NoListener(why) => Fault::new(Status::NoListener, why),
        OpenError::Node(error) => error.into(),
        other => Fault::new(Status::Failed, other),
    }
}

/// A channel that could not be closed: one that ended by itself at its time has ended well.
pub fn not_closed(error: CloseError) -> Fault {
    let is_clean = matches!(error, CloseError::Closed(cause) if cause.is_clean());
    Fault::new(if is_clean { Status::Ended } else { Status::Broken }, error)
}

pub fn need<T>(handle: Option<T>, what: &str) -> Result<T, Fault> {
    handle.ok_or_else(|| Fault::null(what))
}

/// The last sentence of this thread.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_error() -> *const c_char {
    sentence()
}

/// The host's monotonic clock.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_now() -> u64 {
    rota::now().as_nanos()
}

/// Listens to a service; `is_asked` is true of a program that is asked about each channel.
fn listen(
    control: *const c_char,
    (service, from, buffers): (u16, *const c_char, u16),
    is_asked: bool,
    listener: Out<'_, *mut Listener>,
) -> Result<(), Fault> {
    let listener = need(listener, "listener")?;
    let from = text(from, "from")?;
    let buffers = if buffers == 0 { 4 } else { buffers };
    let node = Node::connect(&control_name(control)?)?;
    let listening = match is_asked {
        true => node.listen_asked(service, from, buffers),
        false => node.listen(service, from, buffers),
    };
    hand_over(Some(listener), listening?, "listener")
}

export! {
    /// Opens a sending channel. Overdue units are left out unless rota_channel_drop_overdue says otherwise.
    fn rota_channel_open(
        control: *const c_char,
        request: Option<&Request>,
        channel: Out<'_, *mut SendChannel>,
        refusal: Out<'_, Refusal>,
    ) {
        let request = need(request, "request")?.read()?;
        let channel = need(channel, "channel")?;
        let node = Node::connect(&control_name(control)?)?;
        let opened = node.open(&request).map_err(|error| opened(error, refusal))?;
        hand_over(Some(channel), opened, "channel")
    }

    /// Opens a channel again after its node has died.
    fn rota_channel_reattach(
        channel: Option<&mut SendChannel>,
        timeout_ns: u64,
        refusal: Out<'_, Refusal>,
    ) {
        let again = need(channel, "channel")?.reattach(Span::from_nanos(timeout_ns));
        again.map(|_| ()).map_err(|error| opened(error, refusal))
    }

    /// Listens again where the node has died.
    fn rota_listener_reattach(listener: Option<&mut Listener>, timeout_ns: u64) {
        Ok(need(listener, "listener")?.reattach(Span::from_nanos(timeout_ns))?)
    }

    /// The cycle of the segment.
    fn rota_cycle_ns(control: *const c_char, cycle_ns: Out<'_, u64>) {
        let status = Node::connect(&control_name(control)?)?.status()?;
        need(cycle_ns, "cycle_ns")?.write(status.trt_ns);
        Ok(())
    }

    /// Asks for units of another size.
    fn rota_channel_modify(
        channel: Option<&mut SendChannel>,
        unit_octets_max: u32,
        refusal: Out<'_, Refusal>,
    ) {
        let modified = need(channel, "channel")?.modify(unit_octets_max);
        modified.map(|_| ()).map_err(|error| opened(error, refusal))
    }

    /// Hands over one unit.
    fn rota_channel_send(
        channel: Option<&mut SendChannel>,
        unit: Octets,
        count: usize,
        schedule_ns: u64,
        timeout_ns: u64,
    ) {
        let channel = need(channel, "channel")?;
        let unit = octets(unit, count, "unit")?;
        let schedule = if schedule_ns == 0 { rota::now() } else { Instant::from_nanos(schedule_ns) };
        let sent = match timeout_ns {
            0 => channel.try_send(unit, schedule),
            _ => channel.send_timeout(unit, schedule, Span::from_nanos(timeout_ns)),
        };
        sent.map(|_| ()).map_err(Fault::from)
    }

    /// Ends a channel when its units have left, or the time is over. The handle is gone in any case.
    fn rota_channel_close(channel: Option<Box<SendChannel>>, drain_ns: u64, units_sent: Out<'_, u64>) {
        let mut channel = need(channel, "channel")?;
        let report = channel.finish(Span::from_nanos(drain_ns));
        let sent = report.as_ref().map_or_else(|_| channel.send_progress(), |report| report.units_sent);
        tell(units_sent, sent);
        let report = report.map_err(not_closed)?;
        if report.drained { Ok(()) } else { Err(Fault::new(Status::TimedOut, "units were still waiting")) }
    }

    /// True if a unit is left out while the one before it still waits for its slot.
    fn rota_channel_drop_overdue(channel: Option<&mut SendChannel>, drop: c_int) {
        let overdue = if drop != 0 { Overdue::Drop } else { Overdue::Keep };
        need(channel, "channel")?.set_overdue(overdue);
        Ok(())
    }

    /// Counts of the channel's units so far, as the receiver's node counted them.
    fn rota_channel_tally(channel: Option<&SendChannel>, tally: Out<'_, CTally>) {
        need(tally, "tally")?.write(need(channel, "channel")?.tally().into());
        Ok(())
    }

    /// Ends a channel as rota_channel_close does, and returns the counts of all its units.
    fn rota_channel_finish(channel: Option<Box<SendChannel>>, drain_ns: u64, tally: Out<'_, CTally>) {
        let mut channel = need(channel, "channel")?;
        let report = channel.finish(Span::from_nanos(drain_ns));
        tell(tally, report.as_ref().map_or_else(|_| channel.tally(), |report| report.tally).into());
        let report = report.map_err(not_closed)?;
        if report.drained { Ok(()) } else { Err(Fault::new(Status::TimedOut, "units were still waiting")) }
    }

    /// Listens to a service.
    fn rota_listen(
        control: *const c_char,
        service: u16,
        from: *const c_char,
        buffers: u16,
        listener: Out<'_, *mut Listener>,
    ) {
        listen(control, (service, from, buffers), false, listener)
    }

    /// Listens to a service, and is asked about each channel.
    fn rota_listen_asked(
        control: *const c_char,
        service: u16,
        from: *const c_char,
        buffers: u16,
        listener: Out<'_, *mut Listener>,
    ) {
        listen(control, (service, from, buffers), true, listener)
    }

    /// Waits for a channel.
    fn rota_accept(listener: Option<&mut Listener>, timeout_ns: u64, receiver: Out<'_, *mut Receiver>) {
        let channel = need(listener, "listener")?.accept(Span::from_nanos(timeout_ns))?;
        hand_over(receiver, Receiver::of(channel), "receiver")
    }

    /// Listens no more. Channels that were accepted live on.
    fn rota_listener_close(listener: Option<Box<Listener>>) {
        need(listener, "listener").map(drop)
    }

    /// Receives one unit.
    fn rota_receive(
        receiver: Option<&mut Receiver>,
        buffer: *mut u8,
        size: usize,
        unit: Out<'_, UnitInfo>,
        timeout_ns: u64,
    ) {
        let Receiver { channel, unit: octets } = need(receiver, "receiver")?;
        let into = octets_mut(buffer, size, "buffer")?;
        match channel.recv(octets, Span::from_nanos(timeout_ns))? {
            Received::Unit(came) => {
                let is_cut = copy_octets(octets, into);
                tell(unit, unit_info(&came, octets.len(), is_cut));
                Ok(())
            }
            Received::End(end) => Err(ended(end)),
        }
    }

    /// Counts of the channel's units so far.
    fn rota_receiver_tally(receiver: Option<&Receiver>, tally: Out<'_, CTally>) {
        need(tally, "tally")?.write(need(receiver, "receiver")?.channel.tally().into());
        Ok(())
    }

    /// Whether each receive gives the newest unit and passes over older ones.
    fn rota_receiver_newest(receiver: Option<&mut Receiver>, newest: c_int) {
        need(receiver, "receiver")?.channel.set_newest(newest != 0);
        Ok(())
    }

    /// Receives no more.
    fn rota_receiver_close(receiver: Option<Box<Receiver>>) {
        need(receiver, "receiver").map(drop)
    }
}

pub fn unit_info(unit: &Unit, octets: usize, truncated: bool) -> UnitInfo {
    UnitInfo {
        number: unit.number,
        octets,
        schedule_ns: unit.schedule_ns,
        arrived_at_ns: unit.arrived_at.unwrap_or(unit.dequeued_at).as_nanos(),
        lost_before: unit.lost_before,
        missing_octets: unit.missing_octets,
        truncated: c_int::from(truncated),
    }
}

pub fn ended(end: End) -> Fault {
    let lost =
        end.lost_after.filter(|&lost| lost > 0).map(|lost| format!("; its last {lost} units were lost"));
    Fault::new(Status::Ended, format!("the sender closed the channel{}", lost.unwrap_or_default()))
}

/// The bound from handing over a unit to its arrival, 0 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_channel_bound_ns(channel: Option<&SendChannel>) -> u64 {
    channel.map_or(0, |channel| channel.contract().bound_ns)
}

/// The reservation beyond one unit each period, in millionths; 0 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_channel_extra_ppm(channel: Option<&SendChannel>) -> u32 {
    channel.map_or(0, |channel| channel.contract().extra_ppm)
}

/// Units of the channels that this one continues, 0 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_receiver_units_before(receiver: Option<&Receiver>) -> u64 {
    receiver.map_or(0, |receiver| receiver.channel.units_before())
}

/// What becomes readable when the channel or the node ends, -1 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_channel_fd(channel: Option<&SendChannel>) -> c_int {
    channel.map_or(-1, |channel| channel.as_fd().as_raw_fd())
}

/// What becomes readable when a channel waits to be accepted, -1 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_listener_fd(listener: Option<&Listener>) -> c_int {
    listener.map_or(-1, |listener| listener.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::guard;

    /// Both were "would block", so that a program offered a unit again that was lost, and lost it twice.
    #[test]
    fn a_unit_left_out_is_told_from_full_buffers() {
        let [left_out, full] =
            [SendError::LeftOut, SendError::WouldBlock].map(|why| guard(|| Err(why.into())));
        assert_eq!([left_out, full], [Status::LeftOut as c_int, Status::WouldBlock as c_int]);
    }

    /// Nodes on the way name it one number, and the own segment's test another one.
    #[test]
    fn a_refusal_has_the_nearest_period_whichever_test_found_it() {
        let xmin_ns = |info: &RefusalInfo| Refusal::from(info).nearest.xmin_ns;
        assert_eq!(xmin_ns(&RefusalInfo { nearest_xmin_ns: 7, ..RefusalInfo::default() }), 7);
        assert_eq!(xmin_ns(&RefusalInfo { counter_offer_period_ns: 9, ..RefusalInfo::default() }), 9);
    }
}
