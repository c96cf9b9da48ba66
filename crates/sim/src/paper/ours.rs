//! The paper's questions, asked of the shipping [`rota_proto::Node`] in the simulated world.
//!
//! The world is a full-duplex switch, so nothing collides. Hosts cost what the world charges and no more:
//! what a curve labelled "ours" shows is the protocol and the wire, not a processor of 1995.
//!
//! Fulfils RETHER-5-1 with the lab's measurement in cli.

use super::profile::TRT;
use crate::{HostProfile, World, WorldSpec};
use rota_admission::LinkModel;
use rota_proto::{ChannelId, ModeName, Settings};
use rota_units::{BitRate, Octets, Span};

/// What the simulated world takes by default.
pub const LATENCY: Span = Span::from_micros(20);
/// How often the experiment looks whether the talkers still have something to send.
const LOOK: Span = Span::from_micros(250);
/// Frames that a talker keeps queued: one a visit, the 2 x 100 octets a rotation of theory.md §1.4.
pub const ONE: usize = 1;
/// The same where a talker always has more than a visit may send.
pub const SATURATED: usize = 100;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Scene {
    /// How many stations; at least five.
    pub stations: usize,
    /// Ports of the switch.
    pub rate: BitRate,
    /// Octets a rotation of each session; they come from stations 0 and 1 in turn.
    pub sessions: Vec<u32>,
    /// Whether they ask for the strict period; otherwise cycles restart early, as the paper's do.
    pub strict: bool,
    /// Stations 2 and 3 exchange frames of so many octets continuously; without, the idle token goes round.
    pub exchanged: Option<u16>,
    /// Frames that each of them keeps queued: [`ONE`] or [`SATURATED`].
    pub queued: usize,
    /// Everybody sends that to the next station, not only those two.
    pub everybody: bool,
    /// From a frame's last bit at a station to the node's answer, beside what `costs` say.
    pub latency: Span,
    /// What stations cost and are charged.
    pub costs: Costs,
    /// For how many rotations.
    pub rotations: u64,
}

/// What stations cost, and what their admission charges and keeps free.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Processors.
    pub profile: HostProfile,
    /// What admission charges; the defaults of the rate without it.
    pub link: Option<LinkModel>,
    /// The stated latency of ordinary traffic, from which T_NRT then follows alone.
    pub nrt_latency: Option<Span>,
}

impl Costs {
    /// Hosts that take no time, and the defaults of the product.
    pub const DEFAULT: Self = Self { profile: HostProfile::IDEAL, link: None, nrt_latency: None };

    /// The settings of a segment.
    pub fn settings(&self, rate: BitRate) -> Settings {
        let mut settings = Settings::ethernet(rate, Octets::new(150_000));
        if let Some(link) = self.link {
            settings = settings.with_link(link);
        }
        if let Some(latency) = self.nrt_latency {
            settings = settings.with_nrt_latency(latency);
        }
        settings
    }
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Mean time between two visits of the last station, which has nothing to send and no session.
    pub mean_gap: Span,
    /// The longest of those times.
    pub longest_gap: Span,
    /// Frames of the talkers that arrived.
    pub exchanged: u64,
    /// Violations that the world's checkers found.
    pub violations: usize,
}

fn world(stations: usize, rate: BitRate, latency: Span, costs: &Costs, seed: u64) -> World {
    let spec = WorldSpec::with(stations, costs.settings(rate));
    let mut world = World::new(seed, WorldSpec { latency, profile: costs.profile, ..spec });
    // Everybody has found everybody.
    world.run_for(Span::from_millis(3_000));
    world
}

/// Mean access delay as the paper measures it; `None` when admission refuses a session.
pub fn access(scene: &Scene, seed: u64) -> Option<Seen> {
    let last = scene.stations.max(5) - 1;
    let mut world = world(last + 1, scene.rate, scene.latency, &scene.costs, seed);
    let mut sessions = Vec::new();
    for (index, octets) in scene.sessions.iter().enumerate() {
        let from = index % 2;
        let flow = world.open_flow(from, last, *octets, scene.strict).ok()?;
        let channel = world.flows()[flow].channel;
        world.run_for(Span::from_millis(1_000));
        world.hosts[from].opened(channel)??;
        sessions.push((from, channel, *octets));
    }
    // A few rotations until the round has its rhythm.
    rotate(&mut world, scene, &sessions, 8);
    let (began, before) = (world.now(), accepted(&world, last));
    let arrived = received(&world);
    let longest_gap = rotate(&mut world, scene, &sessions, scene.rotations);
    let visits = (accepted(&world, last) - before).max(1);
    Some(Seen {
        mean_gap: world.now().since(began).div_down(visits),
        longest_gap,
        exchanged: received(&world) - arrived,
        violations: world.violations().len(),
    })
}

fn accepted(world: &World, host: usize) -> u64 {
    world.hosts[host].node.as_ref().map_or(0, |node| node.rether().counters().tokens_accepted)
}

fn received(world: &World) -> u64 {
    world.hosts[2].ordinary_received + world.hosts[3].ordinary_received
}

/// Returns the longest time between two visits of the last station, as fine as the experiment looks.
fn rotate(world: &mut World, scene: &Scene, sessions: &[(usize, ChannelId, u32)], rotations: u64) -> Span {
    let last = world.hosts.len() - 1;
    let (mut longest, mut visits, mut since) = (Span::ZERO, accepted(world, last), world.now());
    for _ in 0..rotations {
        for (from, channel, octets) in sessions {
            world.unit(*from, *channel, *octets);
        }
        let until = world.now() + TRT;
        while world.now() < until {
            load(world, scene);
            world.run_for(LOOK.min(until.since(world.now())));
            let now = world.now();
            longest = longest.max(now.since(since));
            let visited = accepted(world, last);
            if visited > visits {
                (visits, since) = (visited, now);
            }
        }
    }
    longest
}

/// Keeps the talkers talking, or an idle token going round.
fn load(world: &mut World, scene: &Scene) {
    let Some(octets) = scene.exchanged else {
        for host in 0..world.hosts.len() {
            world.with(host, |node, now| node.keep_awake(now, now + TRT));
        }
        return;
    };
    let hosts = world.hosts.len();
    let talkers = if scene.everybody { 0..hosts } else { 2..4 };
    let most = scene.queued;
    for from in talkers {
        let to = if scene.everybody { (from + 1) % hosts } else { 5 - from };
        let queued = world.hosts[from].node.as_ref().map_or(most, |node| node.port().queued_frames());
        for _ in queued..most {
            world.ordinary(from, to, octets);
        }
    }
}

/// The largest unit of four equal sessions with which the mean access delay of `scene` stays within
/// `tolerance`; `None` when not even `low` does. A session that admission refuses does not count.
pub fn largest(scene: &Scene, tolerance: Span, low: u32, high: u32) -> Option<u32> {
    let fits = |octets: u32| {
        let scene = Scene { sessions: vec![octets; 4], ..scene.clone() };
        access(&scene, 1).is_some_and(|seen| seen.mean_gap <= tolerance)
    };
    if !fits(low) {
        return None;
    }
    let (mut good, mut bad) = (low, high.saturating_add(1));
    // One part in a thousand is finer than a figure shows.
    while bad - good > (bad / 1_000).max(1) {
        let middle = good + (bad - good) / 2;
        if fits(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

/// Time from the first request until all stations are in token mode; `None` when they never are.
pub fn switch_time(stations: usize, rate: BitRate, seed: u64) -> Option<Span> {
    let mut world = world(stations.max(2), rate, LATENCY, &Costs::DEFAULT, seed);
    let began = world.now();
    world.open(0, 1, 1_000).ok()?;
    for _ in 0..100_000 {
        if world.agreed_mode() == Some(ModeName::Token) {
            return Some(world.now().since(began));
        }
        world.run_for(Span::from_micros(20));
    }
    None
}
