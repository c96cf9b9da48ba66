//! Times, rates and limits of a segment. All stations of a segment must agree on them.
//!
//! Fulfils RETHER-2.2.2-9, RETHER-2.4-5.

use rota_admission::{LinkModel, NrtPolicy, SegmentParams};
use rota_units::{BitRate, Octets, Span};
use rota_wire::DEFAULT_ETHERTYPE;

/// 30 Hz; 33.33 ms would slip a whole period every few minutes.
pub const TRT_30_HZ: Span = Span::from_nanos(33_333_333);

/// The settings of one port.
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
    /// How much a station may send at a non-real-time visit (paper section 2.2.3).
    pub nrt_policy: NrtPolicy,
    /// The stated worst-case access latency of ordinary traffic, from which T_NRT follows (equations 4–6).
    pub nrt_latency_max: Span,
    /// How long ordinary frames may queue before new ones are dropped.
    pub nrt_queue: Span,
    /// The largest buffer of any switch port or card on the segment.
    pub port_queue: Octets,
    /// Longest one-way delay of a control frame in token mode, with receive processing.
    pub delay_max: Span,
    /// Hop retransmission: how long a successor may stay silent before it is sent the same token again.
    pub hop_timeout: Span,
    /// How long a ring may be silent before somebody claims the token.
    pub death_timeout: Span,
    /// How long a station may hold the token at most, from the kernel's receive stamp.
    pub lease: Span,
    /// Announcements in plain mode.
    pub hello: Span,
    /// Announcements while joining.
    pub join_interval: Span,
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
    /// How much ordinary or real-time wire time may be handed to the card ahead of the nominal schedule.
    pub burst: Span,
}

impl Settings {
    /// Settings for an Ethernet segment of `rate` whose largest port buffer is `port_queue`.
    pub fn ethernet(rate: BitRate, port_queue: Octets) -> Self {
        let params = SegmentParams::new(rate, 2);
        Self {
            segment: 1,
            ether_type: DEFAULT_ETHERTYPE,
            trt: TRT_30_HZ,
            link: params.link,
            nrt_policy: params.nrt_policy,
            nrt_latency_max: params.nrt_latency_max,
            nrt_queue: Span::from_millis(50),
            port_queue,
            delay_max: Span::from_millis(5),
            hop_timeout: Span::from_millis(5),
            death_timeout: Span::from_millis(500),
            lease: Span::from_millis(250),
            hello: Span::from_millis(1000),
            join_interval: Span::from_millis(100),
            join_tries: 3,
            switch_tries: 5,
            claim_interval: Span::from_millis(20),
            claim_tries: 3,
            ack_spacing: Span::from_micros(200),
            burst: rate.span_of_up(params.card_burst_octets),
        }
    }

    /// What admission needs to know, for a segment of `stations` stations.
    pub fn params(&self, stations: u16) -> SegmentParams {
        SegmentParams {
            trt: self.trt,
            link: self.link,
            nrt_policy: self.nrt_policy,
            nrt_latency_max: self.nrt_latency_max,
            ..SegmentParams::new(self.link.rate, stations)
        }
    }

    /// How long an initiator waits for acknowledgements: T_to >= 2D + 2Q/C + N·δ, since a frame and its
    /// answer may each wait behind one full port buffer (theory a.5).
    pub fn switch_timeout(&self, stations: u16) -> Span {
        let drain = self.link.rate.span_of_up(self.port_queue);
        self.delay_max * 2 + drain * 2 + self.ack_spacing * u64::from(stations)
    }

    /// T_w: how long a station of this rank hears nothing before it claims (foundation, "The token ring").
    pub fn silence(&self, rank: u64) -> Span {
        let base = self.trt + self.lease + self.delay_max + self.hop_timeout * 2;
        base.at_least(self.death_timeout) + (self.delay_max * 2) * rank
    }
}
