//! The Tenet paper's experiments on the Sequoia 2000 network (section 5.2, Figure 11) with the shipping
//! [`rota_proto::Node`]: two campuses, and a line of 1.5 Mbit/s between their gateways.
//!
//! The world forwards no ordinary packets between segments, so the load and the UDP video begin at the first
//! gateway, where the paper's met the line.

use crate::world::{
    AcrossSpec, Answer, EndState, Manner, SegmentSpec, Sessions, Suite, Topology, World, WorldSpec,
};
use crate::{Arrival, Shape};
use rota_admission::rtip::Discipline;
use rota_proto::{MediumKind, Settings};
use rota_units::{BitRate, Instant, Octets, Span};

/// The hosts: two of one campus, its gateway, and the same on the other side.
pub const FAITH: usize = 0;
/// Sends the second channel.
pub const THEOREM: usize = 1;
/// The gateway before the line.
pub const SOCK: usize = 2;
/// The gateway behind it.
pub const BREEZE: usize = 3;
/// Receives all channels.
pub const PAOLA: usize = 4;
/// The segments: campus, line, campus.
pub const BERKELEY: usize = 0;
/// The bottleneck.
pub const T1: usize = 1;
/// The far campus.
pub const SAN_DIEGO: usize = 2;

/// A T1 line as the paper rounds it.
pub const LINE: BitRate = match BitRate::new(1_500_000) {
    Some(rate) => rate,
    None => BitRate::from_mbit(1),
};
/// Packets of RTIP have 1,000 octets at most, as note 7 of the paper says, and a link header of ours.
pub const MTU: u16 = 1_064;
/// S_max of a message: one frame of motion JPEG.
pub const MESSAGE: u32 = 7_200;
/// The UDP video has 580 kbit/s (section 5.2.3): packets of 906 octets and their headers.
const UDP_VIDEO: Shape = Shape::Periodic { period: Span::from_micros(12_500), octets: 948 };
/// The number of its source of ordinary traffic: it is the first one.
pub const UDP_SOURCE: u64 = 0;

/// One experiment.
#[derive(Clone, Debug)]
pub struct Scene {
    /// From one message to the next, for each channel.
    pub period: Span,
    /// The delay that is asked for.
    pub delay: Span,
    /// The hosts that send a channel to [`PAOLA`].
    pub channels: Vec<usize>,
    /// The last channel's program hands over three times as much as agreed once the load is there.
    pub hurries: bool,
    /// There is a UDP video beside them.
    pub udp: bool,
    /// The load comes.
    pub load_from: Span,
    /// It goes.
    pub load_to: Span,
    /// The end.
    pub end: Span,
    /// How the gateways' ends of the line serve packets.
    pub discipline: Discipline,
}

/// One channel.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// The sending host.
    pub from: usize,
    /// The promise from end to end.
    pub bound: Span,
    /// The promise of the first gateway.
    pub local: Span,
    /// X_min of its packets.
    pub spacing: Span,
    /// Messages that were handed over.
    pub units: u64,
    /// Of them came whole.
    pub whole: u64,
    /// Messages that found no room.
    pub refused: u64,
    /// The longest time of a message that was promised one, in millionths of the bound.
    pub longest_ppm: u64,
}

/// The course of an experiment.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it began.
    pub origin: Instant,
    /// The channels.
    pub channels: Vec<Channel>,
    /// Every frame of channels and of ordinary traffic that came to a card.
    pub arrivals: Vec<Arrival>,
    /// Rules that were broken.
    pub violations: Vec<String>,
}

fn world(scene: &Scene) -> World {
    let campus = |_| SegmentSpec {
        settings: Settings::ethernet_of(BitRate::from_mbit(10), Octets::new(150_000), MTU),
        topology: Topology::Switch,
        card_queue: Octets::new(150_000),
    };
    // A tenth of a second, as a lab's ports have it.
    let card_queue = LINE.octets_in_down(Span::from_millis(100));
    let mut settings = Settings::ethernet_of(LINE, card_queue, MTU);
    (settings.medium.medium, settings.medium.discipline) = (MediumKind::Link, scene.discipline);
    let topology = Topology::Link { delay: WorldSpec::CABLE };
    let [near, far] = [BERKELEY, SAN_DIEGO].map(campus);
    let across = Sessions {
        delay_max: Span::from_millis(2),
        quota: None,
        breaks_ppm: 0,
        reroute: Span::from_millis(2_000),
    };
    let spec = WorldSpec {
        more: vec![SegmentSpec { settings, topology, card_queue }, far],
        ports: vec![vec![BERKELEY], vec![BERKELEY], vec![BERKELEY, T1], vec![T1, SAN_DIEGO], vec![SAN_DIEGO]],
        across: Some(across),
        ..WorldSpec::with(5, near.settings)
    };
    World::new(1, spec)
}

/// Runs an experiment.
///
/// # Errors
/// Admission refuses a channel.
pub fn run(scene: &Scene) -> Result<Seen, String> {
    let mut world = world(scene);
    world.run_for(Span::from_millis(4_000));
    world.arrivals = Some(Vec::new());
    let mut flows = Vec::new();
    for from in &scene.channels {
        let spec = AcrossSpec {
            from: *from,
            to: PAOLA,
            octets: MESSAGE,
            period: scene.period,
            delay: Some(scene.delay),
            uid: 0,
            manner: Manner::Greedy,
            answer: Answer::Accepts,
            suite: Suite { room: MESSAGE, ..Suite::default() },
        };
        flows.push(world.open_across(spec).map_err(|error| format!("{error:?}"))?);
        // Cameras are not synchronised.
        world.run_for(Span::from_millis(2_000) + scene.period.div_down(3));
    }
    let open = |flow: &usize| world.across()[*flow].sender == EndState::Open;
    if let Some(refused) = flows.iter().find(|flow| !open(flow)) {
        return Err(format!("{:?}", world.across()[*refused].denied));
    }
    let origin = world.now();
    if scene.udp {
        world.load(SOCK, BREEZE, UDP_VIDEO, origin + scene.end);
    }
    world.run_until(origin + scene.load_from);
    // Transfers of data, as from grayling to blizzard.
    let octets = u32::from(MTU) + 14;
    let tcp = Shape::Tcp { octets, window: 64 };
    for shape in [tcp, Shape::Poisson { mean: Span::from_millis(4), octets }] {
        world.load(SOCK, BREEZE, shape, origin + scene.load_to);
    }
    if let Some(last) = flows.last().filter(|_| scene.hurries) {
        world.set_manner(*last, Manner::Hurried);
    }
    world.run_until(origin + scene.end);
    let channels = flows.iter().filter_map(|flow| channel(&world, *flow)).collect();
    let arrivals = world.arrivals.take().unwrap_or_default();
    let violations = world.violations().iter().map(|of| format!("{} {}", of.rule, of.what)).collect();
    Ok(Seen { origin, channels, arrivals, violations })
}

fn channel(world: &World, flow: usize) -> Option<Channel> {
    let of = &world.across()[flow];
    let detail = world.hosts[of.spec.from].node.as_ref()?.detail(of.channel)?;
    let packets = detail.terms.messages.packets(detail.terms.packet_max).ok()?;
    Some(Channel {
        from: of.spec.from,
        bound: of.bound,
        local: detail.hops.get(1)?.0.hop.offer.delay,
        spacing: packets.traffic.x_min(),
        units: of.counts.units,
        whole: of.counts.whole,
        refused: of.counts.skipped,
        longest_ppm: of.counts.longest_ppm,
    })
}
