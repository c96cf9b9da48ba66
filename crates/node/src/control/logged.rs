//! Log lines about channels and incidents.

use super::Control;
use crate::log::{Level, say};
use crate::rerouting;
use crate::session::Owned;
use rota_contract::{CloseCause, CpuShare, Tally, Withdrawn};
use rota_driver::clock::now;
use rota_proto::{ChannelEvent, ChannelId, PortId, Stated};
use rota_shm::StationRow;
use rota_units::{BitRate, Span};
use rota_wire::{RcapDenied, RcapTest};

/// The promise, in the words about units that broke it.
const BOUND: &str = "the bound";
/// Broken channels that a status names.
const BROKEN_SHOWN: usize = 32;

impl Control<'_> {
    /// The name of a channel: as both ends know it, also when its program has gone before its end is told.
    pub(super) fn called(&self, channel: ChannelId) -> String {
        let mut owned = self.sessions.iter().flat_map(|session| &session.channels);
        let owned = owned.find(|owned| owned.channel == channel);
        owned.map_or_else(|| self.ended.called(channel), Owned::called)
    }

    /// The same by its number at its sender.
    fn called_at_sender(&self, number: ChannelId) -> String {
        let mut owned = self.sessions.iter().flat_map(|session| &session.channels);
        let called = owned.find(|owned| owned.shared == number).map(Owned::called);
        let ended = || self.ended.called_at_sender(number).map(str::to_owned);
        called.or_else(ended).unwrap_or_else(|| format!("channel {number}"))
    }

    /// The name of the node that denies a channel; its id where it has none that is known.
    pub(super) fn name_of(&self, denied: &RcapDenied, name: Option<&str>) -> String {
        match name {
            Some(name) => name.to_owned(),
            None if denied.node == self.facts.node_id => self.facts.name.clone(),
            None => denied.node.to_string(),
        }
    }

    /// The counts that the programs of a channel see.
    fn counts(&self, channel: ChannelId) -> Option<Tally> {
        let mut owned = self.sessions.iter().flat_map(|session| &session.channels);
        Some(owned.find(|owned| owned.channel == channel)?.board.as_ref()?.tally())
    }

    fn warn_of_port(&self, port: PortId, cause: &'static str, text: String) {
        say(Level::Warn, cause, &self.facts.of_port(port, text));
    }

    fn log_refused(&self, channel: ChannelId, why: &str) {
        say(Level::Warn, "refused", &format!("refused: {}: {why}", self.called(channel)));
    }

    pub(super) fn log_channel(&mut self, port: PortId, event: &ChannelEvent) {
        match event {
            ChannelEvent::Opened { channel, granted, .. }
            | ChannelEvent::IncomingOpened { channel, granted } => {
                let called = self.called(*channel);
                let (octets, period) = (granted.contract.unit_octets_max, granted.period());
                let (bound, but) = (granted.bound().printed_up(), granted.but());
                let text =
                    format!("opened: {called}: units of {octets} octets each {period}, bound {bound}{but}");
                say(Level::Info, "opened", &text);
            }
            ChannelEvent::Probed { channel, granted } => {
                let (octets, period) = (granted.contract.unit_octets_max, granted.period());
                let called = self.called(*channel);
                let text = format!("probed: {called}: units of {octets} octets each {period} would fit");
                say(Level::Info, "probed", &text);
            }
            ChannelEvent::Changed { channel, granted } => {
                let (octets, period) = (granted.contract.unit_octets_max, granted.period());
                let (called, bound) = (self.called(*channel), granted.bound().printed_up());
                let text =
                    format!("changed: {called}: units of {octets} octets each {period}, bound {bound}");
                say(Level::Info, "changed", &text);
            }
            ChannelEvent::Refused { channel, refusal } | ChannelEvent::NotChanged { channel, refusal } => {
                self.log_refused(*channel, &refusal.to_string());
            }
            ChannelEvent::Denied { channel, denied, name, withdrawn, partition } => {
                let node = self.name_of(denied, name.as_deref());
                self.log_refused(*channel, &denial(denied, &node, *withdrawn, partition.as_deref()));
            }
            ChannelEvent::ChangeDenied { channel, denied, name, partition, to } => {
                let node = self.name_of(denied, name.as_deref());
                let text = change_denial(denied, &node, partition.as_deref(), to.as_deref());
                self.log_refused(*channel, &text);
            }
            ChannelEvent::Rerouting { .. }
            | ChannelEvent::Rerouted { .. }
            | ChannelEvent::NotRerouted { .. }
            | ChannelEvent::SecondLost { .. } => self.log_path(event),
            ChannelEvent::Closed { channel, cause, stated, tally, .. } => {
                self.log_closed(*channel, *cause, *stated, tally);
            }
            ChannelEvent::Afterwards { channel, stated, tally, sending } => {
                let counts = counted(Some(*stated), tally);
                let how = format!("{counts}: {}", afterwards(*sending));
                say(Level::Info, "closed", &format!("afterwards: {}{how}", self.ended.called(*channel)));
                self.ended.update(*channel, how);
            }
            // The journal tells which setting it is.
            ChannelEvent::Refusal { why: rota_wire::Verdict::Settings, .. } => {}
            ChannelEvent::Refusal { mac, why, here } => {
                self.warn_of_port(port, "mismatch", crate::status::refusal(*mac, *why, *here));
            }
            ChannelEvent::Contested { mac, astray } => {
                self.warn_of_port(port, "contested", StationRow::contested_sentence(mac, "", *astray));
            }
            // The end of the channel is told next; the journal writes the lines of the others, for both ends.
            ChannelEvent::NoMemory { .. }
            | ChannelEvent::Told { .. }
            | ChannelEvent::Receiver { .. }
            | ChannelEvent::Struck(_)
            | ChannelEvent::Invited { .. }
            | ChannelEvent::NotInvited { .. }
            | ChannelEvent::Incoming { .. }
            | ChannelEvent::ModeChanged
            | ChannelEvent::MembersChanged => {}
        }
    }

    fn log_closed(&mut self, channel: ChannelId, cause: CloseCause, stated: Option<Stated>, tally: &Tally) {
        self.rerouting.end(channel);
        let counts = self.counts(channel).unwrap_or(*tally);
        let broken = counts.words_of_broken(BOUND);
        let is_well = cause.is_clean() && broken.is_none();
        let thrown_out = self.ended.take_thrown_out(channel);
        let words = thrown_out.as_deref().unwrap_or_else(|| cause.sentence());
        let called = self.called(channel);
        let how = format!("{}: {words}", counted(stated, &counts));
        if thrown_out.is_none() {
            let level = if is_well { Level::Info } else { Level::Warn };
            say(level, "closed", &format!("closed: {called}{how}"));
        }
        let receivers = self.receivers.remove(&channel).unwrap_or_default();
        self.ended.keep_end(now(), channel, called.clone(), how.clone(), receivers);
        let has_units = stated.is_some_and(|stated| stated.units > 0) || came(&counts) > 0;
        if !is_well && (has_units || broken.is_some()) {
            self.ended.remember(now(), channel, called, how);
        }
        self.ended.forget_name(channel);
    }

    /// The path of a channel has failed, and what came of that.
    fn log_path(&mut self, event: &ChannelEvent) {
        match event {
            ChannelEvent::Rerouting { channel, cause, node, name } => {
                let (called, why) = (self.called(*channel), rerouting::why(*cause, *node, name.as_deref()));
                say(Level::Warn, "rerouting", &format!("rerouting: {called}: {why}"));
                self.rerouting.begin(*channel, called, why);
            }
            ChannelEvent::Rerouted { channel, granted } => {
                let (called, bound) = (self.called(*channel), granted.bound().printed_up());
                let but = granted.but();
                let text = format!("rerouted: {called}: it goes on over another path, bound {bound}{but}");
                say(Level::Info, "rerouted", &text);
                self.rerouting.end(*channel);
            }
            ChannelEvent::SecondLost { channel, cause, node, name } => {
                let (called, why) = (self.called(*channel), rerouting::why(*cause, *node, name.as_deref()));
                let text = format!("no path in reserve: {called}: it goes on without one: {why}");
                say(Level::Warn, "rerouting", &text);
            }
            ChannelEvent::NotRerouted { channel, denied, name } => {
                let node = self.name_of(denied, name.as_deref());
                let (called, why) = (self.called(*channel), denial(denied, &node, None, None));
                say(Level::Warn, "rerouting", &format!("not rerouted: {called}: {why}"));
            }
            _ => {}
        }
    }

    /// A note for each channel of this station on which something went wrong, as far as a status holds them.
    pub(super) fn broken_channels(&self) -> Vec<String> {
        let owned = self.sessions.iter().flat_map(|session| &session.channels);
        shortened(owned.filter_map(|owned| {
            let broken = owned.board.as_ref()?.tally().words_of_broken(BOUND)?;
            Some(format!("{}: {broken}", self.called(owned.channel)))
        }))
    }

    /// Begins an incident for an event, if one is to be kept.
    pub(super) fn begin_incident(&mut self, event: u64) {
        let begun = self.incidents.begin(now(), event);
        if let Some(about) = begun {
            let ago = Span::from_nanos(now().as_nanos().saturating_sub(about.at_ns));
            let what = self.incidents.sentence(&about, &self.called_at_sender(about.channel));
            let is_one_of_several = self.facts.ports.len() > 1 && !about.interface.is_empty();
            let on = if is_one_of_several { format!(" on {}", about.interface) } else { String::new() };
            let text = format!("incident: {what}{on}, {ago} ago; 'rota trace incident' lists them");
            say(Level::Warn, "incident", &text);
        }
    }
}

/// The units of an ended channel, in the words of `rota send`: ", 164 units, 118 sent and 46 left out (47
/// lost, 1 of the lost waited at the end and never left), 20 unknown, as the receiver's node has told nothing
/// of them". Where the sender has stated nothing, as its receiver ended first, ", 118 units came".
pub(super) fn counted(stated: Option<Stated>, counts: &Tally) -> String {
    let units = match (stated, came(counts)) {
        (None, 0) => String::new(),
        (None, 1) => ", 1 unit came".into(),
        (None, came) => format!(", {came} units came"),
        (Some(Stated { units, left_out: 0, .. }), _) => format!(", {units} units"),
        (Some(Stated { units, left_out, .. }), _) => {
            format!(", {units} units, {} sent and {left_out} left out", units.saturating_sub(left_out))
        }
    };
    let unsent = match stated.map_or(0, |stated| stated.unsent) {
        0 => String::new(),
        n => format!(", {n} of the lost waited at the end and never left"),
    };
    let broken = counts.words_of_broken(BOUND).map_or(String::new(), |broken| format!(" ({broken}{unsent})"));
    format!("{units}{broken}{}", unknown(stated, counts))
}

/// Why the counts of an ended channel are known only now.
fn afterwards(sending: bool) -> &'static str {
    if sending {
        "its receiver's node was silent, and has counted the end now"
    } else {
        "its sender's node was silent, and has stated its units now"
    }
}

/// Units of which at least a part was read.
fn came(counts: &Tally) -> u64 {
    counts.units.saturating_add(counts.incomplete)
}

/// The units of an ended channel that stand in no count: the receiver's node fell silent.
fn unknown(stated: Option<Stated>, tally: &Tally) -> String {
    let known = tally.units.saturating_add(tally.lost).saturating_add(tally.incomplete);
    match stated.map_or(0, |stated| stated.units.saturating_sub(known)) {
        0 => String::new(),
        n => format!(", {n} unknown, as the receiver's node has told nothing of them"),
    }
}

/// The first notes, and one that counts the others.
fn shortened(mut notes: impl Iterator<Item = String>) -> Vec<String> {
    let mut shown: Vec<String> = notes.by_ref().take(BROKEN_SHOWN).collect();
    let more = notes.count();
    if more > 0 {
        shown.push(format!("{more} more channels broke their promise; 'rota channel list' shows them"));
    }
    shown
}

/// Nanoseconds, rounded up.
fn time(nanos: u32) -> String {
    Span::from_nanos(nanos.into()).printed_up().to_string()
}

/// The counts of a test that counts, in words.
fn counts(denied: &RcapDenied) -> String {
    let RcapDenied { needed, most, .. } = *denied;
    match denied.test {
        _ if needed == 0 => String::new(),
        RcapTest::PortBuffer => format!(": {needed} packets may wait there, and it has room for {most}"),
        RcapTest::QuotaReserved => {
            let rate = |octets: u32| {
                BitRate::new(u64::from(octets) * 8).map_or("0 bit/s".into(), |of| of.to_string())
            };
            format!(": it would be {}, and {} is allowed", rate(needed), rate(most))
        }
        RcapTest::QuotaChannels => format!(": it would be {needed}, and {most} are allowed"),
        RcapTest::CpuUtilisation => {
            let percent = |ppm: u32| CpuShare::percent(ppm.into());
            format!(": it would be {}, and {} is its share", percent(needed), percent(most))
        }
        RcapTest::CpuResponse if needed == u32::MAX => {
            format!(": it would never be, and {} is allowed", time(most))
        }
        RcapTest::CpuResponse => {
            format!(": it would take {}, and {} is allowed", time(needed), time(most))
        }
        RcapTest::Room => format!(": {needed} units may wait there, and it holds {most}"),
        _ => format!(": it would bring {needed}, and a share carries {most} at most"),
    }
}

/// The nearest request that fits, in words, as a program types it: rounded to what fits.
fn nearest(denied: &RcapDenied) -> String {
    let RcapDenied { test, nearest_delay_ns, nearest_jitter_ns, nearest_octets, .. } = *denied;
    // Of a node without room for the packets it is the longest one; else the shortest one that can be kept.
    let is_longest = matches!(test, RcapTest::PortBuffer | RcapTest::Room);
    let printed = |ns: u64| {
        let span = Span::from_nanos(ns);
        if is_longest { span.to_string() } else { span.printed_up().to_string() }
    };
    let (delay, jitter) = (printed(nearest_delay_ns), printed(nearest_jitter_ns));
    let mut text = match (nearest_delay_ns > 0, nearest_jitter_ns > 0) {
        (false, false) => String::new(),
        (true, false) => format!("; the nearest delay that fits is {delay}"),
        (false, true) => format!("; the nearest jitter that fits is {jitter}"),
        (true, true) => format!("; the nearest delay and jitter that fit are {delay} and {jitter}"),
    };
    if denied.nearest_x_min_ns > 0 {
        text += &format!("; the nearest X_min that fits is {}", printed(denied.nearest_x_min_ns));
    }
    if nearest_octets > 0 {
        text += &match test {
            RcapTest::Packet => format!("; the largest packet that fits has {nearest_octets} octets"),
            _ => format!("; the largest S_max that fits is {nearest_octets} octets"),
        };
    }
    text
}

/// The refusal of a change: of several receivers that of the first one that cannot have it.
pub(super) fn change_denial(
    denied: &RcapDenied,
    node: &str,
    partition: Option<&str>,
    to: Option<&str>,
) -> String {
    let text = denial(denied, node, None, partition);
    match to {
        Some(to) => format!("{to}: {text}"),
        None => text,
    }
}

/// A refusal by a node on the way across segments: the node, the test, the margin and what would fit.
/// Offers are rounded to what fits: the least is printed up, the most down.
pub(super) fn denial(
    denied: &RcapDenied,
    node: &str,
    withdrawn: Option<Withdrawn>,
    partition: Option<&str>,
) -> String {
    let RcapDenied { test, margin_ns, nearest_end_ns, .. } = *denied;
    let mut text = format!("node {node} refuses ({}): {}", test.name(), test.words());
    match partition {
        Some("rest") => text += " in what no partition has",
        Some(partition) => text += &format!(" in partition {partition}"),
        None => {}
    }
    text += &counts(denied);
    if margin_ns > 0 {
        text += &format!(", by {}", Span::from_nanos(margin_ns).printed_up());
    }
    text += &nearest(denied);
    if test == RcapTest::QuotaReserved {
        text += "; its node says what each user may reserve there ('--user-reserved')";
    }
    if nearest_end_ns > 0 {
        let end = Span::from_nanos(nearest_end_ns);
        text += &format!(
            "; others have booked what comes later: the nearest end that fits is in {end} ('--until')"
        );
    }
    if let Some(withdrawn) = withdrawn {
        text += &format!(": {withdrawn}");
    }
    if test == RcapTest::Withdrawn {
        text += "; a program that bears it allows it ('--allow-withdrawn')";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_contract::NodeId;

    fn denied(test: RcapTest) -> RcapDenied {
        RcapDenied::simply(NodeId(5), test)
    }

    /// 50,000 octets each 33 ms were "insufficient bandwidth" on 1 Gbit/s, and 4,001 octets each 19 ms "the
    /// receiver's memory was made for smaller units": without a number and without a remedy.
    #[test]
    fn a_test_that_counts_states_its_counts_and_what_would_fit() {
        let counted = |test| RcapDenied { needed: 36, most: 32, ..denied(test) };
        let said = |test, nearest_octets, nearest_delay_ns| {
            let denied = RcapDenied { nearest_octets, nearest_delay_ns, ..counted(test) };
            denial(&denied, "h1", None, None)
        };
        assert_eq!(
            said(RcapTest::CyclePackets, 45_696, 0),
            "node h1 refuses (CyclePackets): a cycle of its segment would bring more packets than a share \
             can carry: it would bring 36, and a share carries 32 at most; the largest S_max that fits is \
             45696 octets"
        );
        let slower = RcapDenied { nearest_x_min_ns: 1_041_667, ..counted(RcapTest::CyclePackets) };
        let slower = denial(&slower, "h1", None, None);
        assert!(slower.ends_with("32 at most; the nearest X_min that fits is 1.042 ms"), "{slower}");
        let room = said(RcapTest::Room, 0, 260_000_001);
        assert!(room.contains(": 36 units may wait there, and it holds 32; the nearest delay"), "{room}");
        let buffers = said(RcapTest::PortBuffer, 298, 0);
        assert!(buffers.contains(": 36 packets may wait there, and it has room for 32"), "{buffers}");
        assert!(buffers.ends_with("the largest S_max that fits is 298 octets"), "{buffers}");
        let quota = said(RcapTest::QuotaReserved, 298, 0);
        let numbers = "as much as is allowed: it would be 288 bit/s, and 256 bit/s is allowed; the largest \
                       S_max that fits is 298 octets; its node says what each user may reserve there";
        assert!(quota.contains(numbers), "{quota}");
        let channels = said(RcapTest::QuotaChannels, 0, 0);
        assert!(
            channels.ends_with("as many channels as are allowed: it would be 36, and 32 are allowed"),
            "{channels}"
        );
        let cpu = |test, needed, most| {
            denial(&RcapDenied { needed, most, nearest_octets: 9_000, ..denied(test) }, "n2", None, None)
        };
        assert_eq!(
            cpu(RcapTest::CpuUtilisation, 512_345, 500_000),
            "node n2 refuses (CpuUtilisation): promised work would take more than its share of the CPU: it \
             would be 51.2345 %, and 50.0000 % is its share; the largest S_max that fits is 9000 octets"
        );
        assert_eq!(
            cpu(RcapTest::CpuResponse, 10_245_488, 10_000_000),
            "node n2 refuses (CpuResponse): the CPU would not be done with a unit in time: it would take \
             10.246 ms, and 10 ms is allowed; the largest S_max that fits is 9000 octets"
        );
        assert!(cpu(RcapTest::CpuResponse, u32::MAX, 1).contains("never be"));
        assert!(said(RcapTest::Packet, 298, 0).ends_with("the largest packet that fits has 298 octets"));
    }

    /// The least delay was printed as 27.375 ms, and 27.375 ms was refused by 789 ns.
    #[test]
    fn an_offer_that_is_typed_as_it_is_printed_fits() {
        let said = |test| {
            let nearest_delay_ns = 27_375_789;
            denial(&RcapDenied { margin_ns: 26_375_789, nearest_delay_ns, ..denied(test) }, "r", None, None)
        };
        assert!(
            said(RcapTest::PathDelay).ends_with(", by 26.376 ms; the nearest delay that fits is 27.376 ms")
        );
        let jitter = RcapDenied { nearest_jitter_ns: 27_375_789, ..denied(RcapTest::PathJitter) };
        assert!(denial(&jitter, "r", None, None).ends_with("; the nearest jitter that fits is 27.376 ms"));
        let (nearest_delay_ns, nearest_jitter_ns) = (30_000_001, 27_375_789);
        let both = RcapDenied { nearest_delay_ns, nearest_jitter_ns, ..denied(RcapTest::PathDelay) };
        assert!(
            denial(&both, "r", None, None)
                .ends_with("; the nearest delay and jitter that fit are 30.001 ms and 27.376 ms")
        );
        assert!(
            said(RcapTest::PortBuffer).ends_with("; the nearest delay that fits is 27.375 ms"),
            "the longest"
        );
    }

    /// It had the lost units only.
    #[test]
    fn the_units_of_an_ended_channel_are_stated_as_its_sender_states_them() {
        let counts = Tally { units: 97, lost: 47, ..Tally::default() };
        let stated = Stated { units: 164, left_out: 46, unsent: 1 };
        let lost = "47 lost, 1 of the lost waited at the end and never left";
        let unknown = "20 unknown, as the receiver's node has told nothing of them";
        let said = format!(", 164 units, 118 sent and 46 left out ({lost}), {unknown}");
        assert_eq!(counted(Some(stated), &counts), said);
        let well = Tally { units: 240, ..Tally::default() };
        assert_eq!(counted(Some(Stated { units: 240, ..Stated::default() }), &well), ", 240 units");
        assert_eq!(counted(None, &counts), ", 97 units came (47 lost)");
        assert_eq!(counted(None, &Tally { units: 1, ..counts }), ", 1 unit came (47 lost)");
        assert_eq!(counted(None, &Tally::default()), "", "of one that never opened");
    }

    #[test]
    fn a_status_has_notes_of_32_broken_channels_and_counts_the_others() {
        let notes = |all: usize| shortened((0..all).map(|at| at.to_string()));
        assert_eq!(notes(0), Vec::<String>::new());
        assert_eq!((notes(32).len(), notes(32).last().map(String::as_str)), (32, Some("31")));
        assert_eq!(notes(220).len(), 33);
        assert!(notes(220)[32].starts_with("188 more channels"));
    }
}
