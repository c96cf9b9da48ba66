//! Times, rates and limits of a segment. All stations of a segment must agree on them.
//!
//! Fulfils RETHER-2.2.2-9, RETHER-2.4-5.

use crate::door::MediumKind;
use crate::members::STATIONS_MAX;
use core::ops::{Deref, DerefMut};
use rota_admission::rtip::Discipline;
use rota_admission::subnet::{NamedPartitions, Partitions};
use rota_admission::{Framing, LinkModel, NrtPolicy, RecoveryModel, SegmentParams, Timers};
use rota_admission::{link_capacity, link_cycle_min};
use rota_contract::PartitionName;
use rota_units::{BitRate, Octets, Span};
use rota_wire::{DEFAULT_ETHERTYPE, ETHERNET_HEADER_OCTETS};

/// 30 Hz; 33.33 ms would slip a whole period every few minutes.
pub const TRT_30_HZ: Span = Span::from_nanos(33_333_333);

/// The shortest cycle on the fastest link; a slow one needs more for its hops and one full frame.
const TRT_MIN: Span = Span::from_millis(1);
/// The longest cycle: ordinary traffic waits for several.
const TRT_MAX: Span = Span::from_millis(1_000);
/// L is at least so many D: half of L + D is then 2D, the way of a claim and its answer.
const LEASE_DELAYS: u64 = 3;
/// Raised with every change that a station of the version before would misread.
const PROTOCOL_VERSION: u64 = 12;
/// Default N.
pub const STATIONS_STATED: u16 = 14;

/// Why settings contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The token carries times in 32 bits, and each cycle must have room for what it always spends and for
    /// one full frame.
    #[error(
        "a cycle of {trt} cannot be kept; {least} to {TRT_MAX} can, at {rate} for at most {stations} \
         stations{}",
        long_frames(*.mtu)
    )]
    Cycle {
        /// The cycle that was asked for.
        trt: Span,
        /// The shortest that works.
        least: Span,
        /// The link's rate.
        rate: BitRate,
        /// N.
        stations: u16,
        /// The longest frame's payload.
        mtu: u16,
    },
    /// Not even the longest cycle has that room.
    #[error(
        "no cycle can be kept at {rate} for at most {stations} stations: it would be {least}, over {TRT_MAX}"
    )]
    NoCycle {
        /// What it would take.
        least: Span,
        /// The link's rate.
        rate: BitRate,
        /// N.
        stations: u16,
    },
    /// On a link nothing could be reserved.
    #[error(
        "a cycle of {trt} has no room for a channel on a link; {least} to {TRT_MAX} has, at {rate}{}",
        long_frames(*.mtu)
    )]
    LinkCycle {
        /// The cycle that was asked for.
        trt: Span,
        /// The shortest that works.
        least: Span,
        /// The link's rate.
        rate: BitRate,
        /// The longest frame's payload.
        mtu: u16,
    },
    /// Not even the longest cycle has that room.
    #[error("no cycle up to {TRT_MAX} has room for a channel on a link at {rate}")]
    NoLinkCycle {
        /// The link's rate.
        rate: BitRate,
    },
    /// Lists would not fit a frame, or places for frames would be too short.
    #[error(
        "an MTU of {0} is not served; set one of {min} to {max} on every station of the segment",
        min = Framing::MTU_MIN,
        max = Framing::MTU_MAX
    )]
    Mtu(u16),
    /// A live successor would be declared dead before its token was repeated.
    #[error("a death timeout of {death} is too short; {least} would do, three hop timeouts")]
    Death {
        /// The cycle that was asked for.
        death: Span,
        /// The shortest that works.
        least: Span,
    },
    /// A station would lose its token in an ordinary visit; or a claimant, who begins anew when it has not
    /// asked for L + D, would have to ask twice before it can have an answer.
    #[error(
        "a lease of {lease} is too short; {least} would do, one ordinary visit or three delays of a frame"
    )]
    Lease {
        /// The cycle that was asked for.
        lease: Span,
        /// The shortest that works.
        least: Span,
    },
    /// Station numbers run from 1 to 255.
    #[error("a segment of {0} stations cannot be stated; 1 to {STATIONS_MAX} can")]
    Stations(u16),
    /// Ordinary traffic can never be served that soon.
    #[error("ordinary traffic cannot be served within {latency} when a cycle lasts {trt}")]
    Latency {
        /// The cycle that was asked for.
        latency: Span,
        /// The cycle.
        trt: Span,
    },
    /// A frame that is in time would count as lost, and two stations could hold a token.
    #[error("a delay of {delay} is shorter than a control frame behind a full one takes, {least}")]
    Delay {
        /// The cycle that was asked for.
        delay: Span,
        /// The shortest that works.
        least: Span,
    },
    /// A claim would be repeated before its answer can be there.
    #[error("claims every {claim} come sooner than an answer, which takes {least}: twice the delay")]
    Claim {
        /// The cycle that was asked for.
        claim: Span,
        /// The shortest that works.
        least: Span,
    },
    /// A token would be sent again before its acknowledgement can be there.
    #[error("a hop timeout of {hop} is shorter than a token and its acknowledgement take, {least}")]
    Hop {
        /// The cycle that was asked for.
        hop: Span,
        /// The shortest that works.
        least: Span,
    },
}

/// The settings of one port: those that every medium has, and those of the token.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which segment; frames of another one are not ours.
    pub segment: u32,
    /// EtherType of our frames.
    pub ether_type: u16,
    /// Target token rotation time.
    pub trt: Span,
    /// What a frame costs on this link.
    pub link: LinkModel,
    /// Percent of the cycle kept for ordinary data whatever that latency needs: 5 in eq. 6, where the paper
    /// assumes such a load; 0 where the latency is stated and T_NRT follows from it alone (repair A4).
    pub nrt_share_percent: u8,
    /// How long ordinary frames may queue before new ones are dropped.
    pub nrt_queue: Span,
    /// The largest buffer of any switch port or card on the segment.
    pub port_queue: Octets,
    /// How long a ring may be silent before somebody claims the token.
    pub death_timeout: Span,
    /// Announcements in plain mode.
    pub hello: Span,
    /// Announcements while joining.
    pub join_interval: Span,
    /// How often this station reports what it has sent, for monitors; zero for never. Not every station
    /// needs the same.
    pub report: Span,
    /// The address of this station in link control, as it announces it; 0 for none.
    pub llc_address: u8,
    /// The medium of the segment.
    pub medium: MediumKind,
    /// How this end of a link serves packets of channels across segments. The other end is free to have
    /// another one.
    pub discipline: Discipline,
    /// The partitions of this end of a link, whose other end is free to have others, or of a RETHER segment,
    /// whose stations all have the same ones in the same order.
    pub partitions: NamedPartitions,
    /// True for a tunnel: the link's frames go over a network that runs no Rota, so that its bounds are
    /// computed as those of a cable and guaranteed by nobody.
    pub withdrawn: bool,
    /// The settings of the token alone. They are read and set here as well.
    pub token: TokenSettings,
}

/// Times, tries and policies of RETHER. On another medium they have no effect, but both ends have to state
/// the same.
#[derive(Clone, Debug)]
pub struct TokenSettings {
    /// How much a station may send at a non-real-time visit (paper section 2.2.3); without it the default,
    /// which follows the number of stations of the ring.
    pub nrt_policy: Option<NrtPolicy>,
    /// The stated worst-case access latency of ordinary traffic, from which T_NRT follows (equations 4–6).
    pub nrt_latency_max: Span,
    /// Longest one-way delay of a control frame in token mode, with receive processing.
    pub delay_max: Span,
    /// Hop retransmission: how long a successor may stay silent before it is sent the same token again.
    pub hop_timeout: Span,
    /// L: how long a station may hold the token at most, from the kernel's receive stamp. A cycle master that
    /// rests may hold it for a cycle longer. Admission refuses what would need a longer hold.
    pub lease: Span,
    /// How many of those before a silent segment counts as plain.
    pub join_tries: u8,
    /// How often a switch is repeated before the silent count as dead.
    pub switch_tries: u8,
    /// Between repeated claims.
    pub claim_interval: Span,
    /// How many claims before the silent count as dead.
    pub claim_tries: u8,
    /// Between the acknowledgements of neighbouring station numbers (paper section 4.3).
    pub ack_spacing: Span,
    /// N: for how many stations admission reckons, whether they are there or not. A ring of more is reckoned
    /// as it is, and a joiner beyond N gets in only while the reservations keep their promise with it. 14
    /// is the most that 500 ms of latency at 30 Hz serve without a second visit in some cycle: five streams
    /// of 1.5 Mbit/s still fit at 10 Mbit/s, with 15 stations four.
    pub stations_max: u16,
    /// All stations share one half-duplex wire: a token is acknowledged before anything else is sent, since
    /// an acknowledgement behind it would meet the next holder's frames. It costs what it costs anyway.
    pub half_duplex: bool,
    /// How much ordinary or real-time wire time may be handed to the card ahead of the nominal schedule.
    pub burst: Span,
    /// Lease and death timer follow how long the stations' hosts stand still; the values here are the
    /// longest then (decision 017).
    pub follow_stalls: bool,
}

impl Deref for Settings {
    type Target = TokenSettings;

    fn deref(&self) -> &TokenSettings {
        &self.token
    }
}

impl DerefMut for Settings {
    fn deref_mut(&mut self) -> &mut TokenSettings {
        &mut self.token
    }
}

impl Settings {
    /// Settings for an Ethernet segment of `rate` whose largest port buffer is `port_queue`.
    pub fn ethernet(rate: BitRate, port_queue: Octets) -> Self {
        Self::ethernet_of(rate, port_queue, Framing::ETHERNET.mtu)
    }

    /// The same with other values.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The same with another MTU: what a frame costs, how units are cut and how long timers wait follow it.
    pub fn ethernet_of(rate: BitRate, port_queue: Octets, mtu: u16) -> Self {
        let params = SegmentParams::with_framing(rate, Framing::ethernet(mtu), 2);
        let delay_max = params.link.one_way() + RecoveryModel::HOST_DELAY_LAB;
        let (lease, death_timeout) = (RecoveryModel::LEASE_LAB, RecoveryModel::DEATH_MIN_LAB);
        let token = TokenSettings {
            nrt_policy: None,
            nrt_latency_max: params.nrt_latency_max,
            delay_max,
            hop_timeout: RecoveryModel::ACK_MIN.max(delay_max * 2 + RecoveryModel::GUARD),
            lease,
            join_tries: 3,
            switch_tries: 5,
            claim_interval: RecoveryModel::CLAIM_MIN_LAB.max(delay_max * 2),
            claim_tries: 3,
            ack_spacing: RecoveryModel::SPACING_LAB,
            stations_max: STATIONS_STATED,
            half_duplex: false,
            burst: rate.span_of_up(params.card_burst_octets),
            follow_stalls: false,
        };
        Self {
            segment: 1,
            ether_type: DEFAULT_ETHERTYPE,
            trt: TRT_30_HZ,
            link: params.link,
            nrt_share_percent: params.nrt_share_percent,
            nrt_queue: Span::from_millis(50),
            port_queue,
            death_timeout,
            hello: Span::from_millis(1000),
            join_interval: Span::from_millis(100),
            report: Span::ZERO,
            llc_address: 0,
            medium: MediumKind::Rether,
            discipline: Discipline::default(),
            partitions: NamedPartitions::default(),
            withdrawn: false,
            token,
        }
    }

    /// Settings for a tunnel of `rate`, whose frames have a payload of `mtu` octets at most and travel behind
    /// IP and UDP headers of so many octets. The frame's own Ethernet header goes along.
    pub fn tunnel_of(rate: BitRate, port_queue: Octets, mtu: u16, headers: u16) -> Self {
        let mut tunnel = Self::ethernet_of(rate, port_queue, mtu);
        tunnel.link.framing.overhead_octets += headers + ETHERNET_HEADER_OCTETS as u16;
        (tunnel.medium, tunnel.withdrawn) = (MediumKind::Link, true);
        tunnel
    }

    /// What admission needs to know, for a segment of `stations` live stations, or N where that is more.
    pub fn params(&self, stations: u16) -> SegmentParams {
        let stations = stations.max(self.stations_max);
        SegmentParams {
            trt: self.trt,
            link: self.link,
            nrt_policy: self.policy(stations),
            nrt_latency_max: self.nrt_latency_max,
            hold_max: self.lease,
            nrt_share_percent: self.nrt_share_percent,
            partitions: self.partitions_of_all(),
            ..SegmentParams::with_framing(self.link.rate, self.link.framing, stations)
        }
    }

    /// The partitions that all stations share; those of a link are of one end of it.
    pub(crate) fn partitions_of_all(&self) -> Partitions {
        match self.medium {
            MediumKind::Rether => self.partitions.shares(),
            MediumKind::Link => Partitions::default(),
        }
    }

    /// The limit of an ordinary visit on a segment of `stations` live stations, or N where that is more.
    pub fn policy(&self, stations: u16) -> NrtPolicy {
        let default = || {
            let stations = stations.max(self.stations_max);
            NrtPolicy::default_for(&self.link, stations, self.trt, self.nrt_latency_max)
        };
        self.nrt_policy.unwrap_or_else(default)
    }

    /// The same with measured costs of this link. Where a hop takes longer than assumed, the times that are
    /// made of hops become longer too; none becomes shorter, for a control frame may find a busy host.
    pub fn with_link(mut self, link: LinkModel) -> Self {
        let delay_max = link.one_way() + RecoveryModel::HOST_DELAY_LAB;
        self.link = link;
        let delay_max = delay_max.max(self.delay_max);
        self = self.with_delay(delay_max);
        self.hop_timeout = self.hop_timeout.max(self.delay_max * 2 + RecoveryModel::GUARD);
        self
    }

    /// The same with another D. Claims are repeated no sooner than they can be answered, nor begun anew.
    #[must_use]
    pub fn with_delay(mut self, delay: Span) -> Self {
        self.delay_max = delay;
        self.claim_interval = self.claim_interval.max(delay * 2);
        self.lease = self.lease.max(delay * LEASE_DELAYS);
        self
    }

    /// The same with a stated latency of ordinary traffic, from which T_NRT then follows alone.
    pub fn with_nrt_latency(mut self, latency: Span) -> Self {
        (self.nrt_latency_max, self.nrt_share_percent) = (latency, 0);
        self
    }

    /// The same with another cycle. A lease or a death timer that is too short for it becomes longer.
    ///
    /// # Errors
    /// No ring can keep such a cycle.
    pub fn with_cycle(mut self, trt: Span) -> Result<Self, SettingsError> {
        self.trt = trt;
        self.lease = self.lease.max(self.lease_for_all());
        self.death_timeout = self.death_timeout.max(trt * 2);
        // Long cycles hold many ordinary visits each, so that four of them are enough where 500 ms hold none.
        self.nrt_latency_max = self.nrt_latency_max.max(trt * 4);
        self.check()?;
        Ok(self)
    }

    /// The shortest lease for which no reservation is refused.
    pub(crate) fn lease_for_all(&self) -> Span {
        RecoveryModel::lease_min(self.trt, self.delay_max).max(self.delay_max * LEASE_DELAYS)
    }

    /// The same with the timers whose bounds are proven (theory.md §6.3), for hosts that never stall: tokens
    /// are sent again after 2D + g, a silent successor is claimed about after three times that, and no
    /// station holds a token for more than two fifths of a cycle, rests apart (or three delays of a control
    /// frame, where cycles are that short).
    #[must_use]
    pub fn proven(mut self) -> Self {
        self.delay_max = self.link.one_way();
        self.hop_timeout = self.delay_max * 2 + RecoveryModel::GUARD;
        self.death_timeout = self.hop_timeout * 3;
        self.claim_interval = self.delay_max * 2;
        self.lease = (self.trt * 2).div_down(5).max(self.delay_max * LEASE_DELAYS);
        self.ack_spacing = self.link.frame_span_min().max(Span::from_micros(50));
        self
    }

    /// The same with another death timer; the lease is half of it, or what the cycle needs.
    ///
    /// # Errors
    /// Its token would not be sent again first.
    pub fn with_death_timeout(mut self, death: Span) -> Result<Self, SettingsError> {
        self.death_timeout = death;
        self.lease = death.div_down(2).max(self.lease_for_all());
        self.check()?;
        Ok(self)
    }

    /// Whether the settings agree with each other.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), SettingsError> {
        let (trt, lease, hop) = (self.trt, self.lease, self.hop_timeout);
        let mtu = self.link.framing.mtu;
        if !(Framing::MTU_MIN..=Framing::MTU_MAX).contains(&mtu) {
            return Err(SettingsError::Mtu(mtu));
        }
        let stations = self.stations_max;
        if stations == 0 || stations > STATIONS_MAX {
            return Err(SettingsError::Stations(stations));
        }
        if self.medium == MediumKind::Link {
            // It has no token whose times could contradict each other.
            return self.check_link();
        }
        let (least, rate) = (self.cycle_min(), self.link.rate);
        if least > TRT_MAX {
            return Err(SettingsError::NoCycle { least, rate, stations });
        }
        if trt < least || trt > TRT_MAX {
            return Err(SettingsError::Cycle { trt, least, rate, stations, mtu });
        }
        let least = self.params(2).nrt_hold_max().max(self.delay_max * LEASE_DELAYS);
        if lease < least {
            return Err(SettingsError::Lease { lease, least: said(least) });
        }
        let least = hop * 3;
        if self.death_timeout < least {
            return Err(SettingsError::Death { death: self.death_timeout, least: said(least) });
        }
        if self.nrt_latency_max < trt {
            return Err(SettingsError::Latency { latency: self.nrt_latency_max, trt });
        }
        let (delay, least) = (self.delay_max, self.link.one_way());
        if delay < least {
            return Err(SettingsError::Delay { delay, least: said(least) });
        }
        let (claim, least) = (self.claim_interval, self.delay_max * 2);
        if claim < least {
            return Err(SettingsError::Claim { claim, least: said(least) });
        }
        let least = self.delay_max * 2 + RecoveryModel::GUARD;
        if hop < least {
            return Err(SettingsError::Hop { hop, least: said(least) });
        }
        Ok(())
    }

    /// A link's cycle needs room for what its window always spends, and for a share.
    fn check_link(&self) -> Result<(), SettingsError> {
        let (trt, rate, mtu, params) = (self.trt, self.link.rate, self.link.framing.mtu, self.params(2));
        let Some(least) = link_cycle_min(&params, TRT_MIN, TRT_MAX) else {
            return Err(SettingsError::NoLinkCycle { rate });
        };
        if trt < least || trt > TRT_MAX || link_capacity(&params) == Span::ZERO {
            return Err(SettingsError::LinkCycle { trt, least, rate, mtu });
        }
        Ok(())
    }

    /// The shortest cycle that can be kept.
    fn cycle_min(&self) -> Span {
        TRT_MIN.max(said(self.params(2).cycle_min()))
    }

    /// A digest of everything that all stations of a segment must share; one with another digest is not
    /// listened to. FNV-1a over the values in a fixed order, the protocol's version first.
    pub fn digest(&self) -> u64 {
        self.digest_of_version(PROTOCOL_VERSION)
    }

    /// The version of the protocol that this build speaks.
    pub(crate) const PROTOCOL_VERSION: u64 = PROTOCOL_VERSION;

    /// The digest of the same settings in a build with another protocol version.
    pub(crate) fn digest_of_version(&self, version: u64) -> u64 {
        let link = &self.link;
        let (policy, frames) = match self.nrt_policy {
            Some(NrtPolicy::One) => (0, 1),
            Some(NrtPolicy::AtMost(frames)) => (1, u64::from(frames.max(1))),
            Some(NrtPolicy::AsManyAsFit) => (2, 0),
            None => (3, 0),
        };
        let framing = [
            u64::from(link.framing.mtu),
            u64::from(link.framing.overhead_octets),
            u64::from(link.framing.min_wire_octets),
            u64::from(link.framing.rota_octets),
        ];
        let counts = [
            version,
            link.rate.as_bps(),
            policy,
            frames,
            self.port_queue.get(),
            u64::from(self.stations_max),
            u64::from(self.nrt_share_percent),
            u64::from(self.join_tries),
            u64::from(self.switch_tries),
            u64::from(self.claim_tries),
            u64::from(self.half_duplex),
        ];
        let spans = [
            self.trt,
            link.per_frame,
            link.prepare,
            link.per_visit,
            link.hop,
            self.nrt_latency_max,
            self.delay_max,
            self.hop_timeout,
            self.death_timeout,
            self.lease,
            self.hello,
            self.join_interval,
            self.claim_interval,
            self.ack_spacing,
        ];
        let values = counts.into_iter().chain(framing).chain(spans.iter().map(|span| span.as_nanos()));
        let values = values.chain(self.follow_stalls.then_some(1));
        let values = values.chain((self.medium == MediumKind::Link).then_some(2));
        let values = values.chain(self.withdrawn.then_some(3));
        let octets = values.flat_map(u64::to_be_bytes).chain(self.octets_of_partitions());
        octets.fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
            (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The names and shares of the partitions that all stations share.
    fn octets_of_partitions(&self) -> impl Iterator<Item = u8> + use<> {
        let is_shared = self.medium == MediumKind::Rether;
        let named = self.partitions.iter().filter_map(|(_, name, percent)| Some((name?, percent)));
        let octets = |(name, percent): (PartitionName, u8)| name.octets().into_iter().chain([percent]);
        named.filter(move |_| is_shared).flat_map(octets)
    }

    /// The recovery timers that admission proves, for a segment of `stations` stations. The hop and death
    /// timers are floors.
    pub fn timers(&self, stations: u16) -> Timers {
        self.timers_with(stations, self.lease, self.death_timeout)
    }

    /// The same with another lease and death timer.
    pub(crate) fn timers_with(&self, stations: u16, lease: Span, death: Span) -> Timers {
        Timers::new(RecoveryModel {
            trt: self.trt,
            lease,
            one_way: self.delay_max,
            hop: self.link.hop,
            guard: RecoveryModel::GUARD,
            retries: 2,
            claim_retries: u32::from(self.claim_tries.saturating_sub(1)),
            spacing: self.ack_spacing,
            port_buffer: self.port_queue,
            rate: self.link.rate,
            stations,
            death_min: death,
            ack_min: self.hop_timeout,
            claim_min: self.claim_interval,
        })
    }

    /// T_to: how long an initiator waits for acknowledgements.
    pub fn switch_timeout(&self, stations: u16) -> Span {
        self.timers(stations).switch_timeout()
    }

    /// T_w: how long a station of this rank hears nothing before it claims (theory.md §6.3).
    pub fn silence(&self, rank: u64) -> Span {
        self.timers(0).silence(u16::try_from(rank).unwrap_or(u16::MAX))
    }

    /// Between repeated claims: soon enough for a claimant that never stood still to know it. A claimant that
    /// has not asked for as long as one silent station drains takes itself for one that stood still, and
    /// begins anew. With settings that agree it is no sooner than 2D, when the answer is there: L is 3D or
    /// more.
    pub fn claim_every(&self) -> Span {
        self.claim_interval.min((self.lease_least() + self.delay_max).div_down(2))
    }

    /// W: how long so many silent stations may still hand an old token on, and whether one may be resting.
    pub fn drain(&self, silent: usize, master_silent: bool) -> Span {
        self.timers(0).drain(u16::try_from(silent).unwrap_or(u16::MAX), master_silent)
    }
}

/// With long frames a lower MTU helps too.
fn long_frames(mtu: u16) -> String {
    if mtu > Framing::ETHERNET.mtu {
        format!(" and an MTU of {mtu}; a lower MTU on all stations allows shorter ones")
    } else {
        String::new()
    }
}

/// A time that is said to be enough must be enough: rounded up to whole microseconds, as far as times are
/// printed.
fn said(least: Span) -> Span {
    Span::from_micros(least.as_nanos().div_ceil(1_000))
}

#[cfg(test)]
mod tests;
