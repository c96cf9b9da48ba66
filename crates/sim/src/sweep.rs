//! One random world: faults of every kind, then quiet, and what must hold all the while and at the end.

use crate::{WireFault, World, WorldSpec};
use rota_proto::{ChannelId, ModeName};
use rota_units::Span;

const STATIONS: usize = 5;
/// Steps of trouble in one run, each followed by up to 400 ms.
const STEPS: u64 = 12;

/// What a station had seen when it was last looked at: its incarnation's generation counter.
type Seen = [(bool, u32); STATIONS];

/// Runs one seed and says which invariants it broke.
pub fn run(seed: u64) -> Vec<String> {
    let mut world = World::new(seed, WorldSpec::new(STATIONS));
    world.run_for(Span::from_millis(2_000));
    let mut broken = Vec::new();
    let mut open: Vec<(usize, ChannelId)> = Vec::new();
    let mut seen: Seen = [(false, 0); STATIONS];
    for step in 0..STEPS {
        trouble(&mut world, &mut open);
        let span = Span::from_micros(1 + world.below(400_000));
        world.run_for(span);
        check_running(&world, &mut seen, step, &mut broken);
    }
    world.wires.heal();
    for index in 0..STATIONS {
        if world.hosts[index].node.is_none() {
            world.start(index);
        }
    }
    // Detection, claim, drain, joining and the closing of what lost its peer.
    world.run_for(Span::from_millis(8_000));
    check_quiet(&world, &mut broken);
    if let Some(violation) = world.violations().first() {
        broken.push(format!("{}: {} at {:?}", violation.rule, violation.what, violation.at));
    }
    broken
}

fn trouble(world: &mut World, open: &mut Vec<(usize, ChannelId)>) {
    let host = world.below(STATIONS as u64) as usize;
    match world.below(8) {
        0 | 1 => {
            let to = (host + 1 + world.below(STATIONS as u64 - 1) as usize) % STATIONS;
            let octets = 500 + world.below(6_000) as u32;
            if world.hosts[host].node.is_some()
                && world.hosts[to].node.is_some()
                && let Ok(channel) = world.open(host, to, octets)
            {
                open.push((host, channel));
            }
        }
        2 => {
            if !open.is_empty() {
                let at = world.below(open.len() as u64) as usize;
                let (from, channel) = open.swap_remove(at);
                world.with(from, |node, now| node.close(now, channel));
            }
        }
        3 => {
            let ppm = world.below(60_000) as u32;
            world.disturb(WireFault::Loss { ppm, burst: 1 });
        }
        4 => {
            let ppm = world.below(60_000) as u32;
            world.disturb(WireFault::Duplicate { ppm, copies: 1, delay: Span::from_millis(3) });
        }
        5 => {
            let span = Span::from_millis(world.below(1_200));
            world.pause(host, span);
        }
        6 => {
            if world.hosts[host].node.is_some() {
                world.kill(host);
                open.retain(|(from, _)| *from != host);
            } else {
                world.start(host);
            }
        }
        _ => (0..20).for_each(|_| world.ordinary(host, (host + 1) % STATIONS, 1_514)),
    }
}

/// S2: a station's generation only rises while it lives. S5: what is reserved fits the rotation.
fn check_running(world: &World, seen: &mut Seen, step: u64, broken: &mut Vec<String>) {
    for (index, host) in world.hosts.iter().enumerate() {
        let Some(node) = &host.node else {
            seen[index] = (false, 0);
            continue;
        };
        let generation = node.link().generation();
        // A restart begins anew at zero; a station that was alive before never goes back.
        if seen[index].0 && generation < seen[index].1 && generation != 0 {
            broken.push(format!("S2: host {index} went from generation {} to {generation}", seen[index].1));
        }
        seen[index] = (true, generation);
        let reserved: Span = node.status().reservations.iter().map(|slot| slot.tht).sum();
        if reserved > node.link().settings().trt {
            broken.push(format!("S5: host {index} lists {reserved} of reservations in step {step}"));
        }
    }
}

/// After quiet all stations agree on mode, members and reservations.
fn check_quiet(world: &World, broken: &mut Vec<String>) {
    let nodes: Vec<_> = world.hosts.iter().filter_map(|host| host.node.as_ref()).collect();
    let states: Vec<&str> = nodes.iter().map(|node| node.link().state_name()).collect();
    if world.agreed_mode().is_none_or(|mode| !matches!(mode, ModeName::Plain | ModeName::Token)) {
        broken.push(format!("S9: no common mode after quiet: {states:?}"));
        return;
    }
    let lists: Vec<_> = nodes.iter().map(|node| node.status().reservations).collect();
    // A list may be one cycle old at another station; sessions do not change any more.
    if lists.windows(2).any(|pair| pair[0] != pair[1]) {
        broken.push(format!("S5: reservations differ after quiet: {lists:?}"));
    }
    let numbers: Vec<u16> = nodes.iter().map(|node| node.link().station()).collect();
    if (0..numbers.len()).any(|at| numbers[..at].contains(&numbers[at])) {
        broken.push(format!("S9: two stations have one number: {numbers:?}"));
    }
    if nodes.iter().any(|node| node.link().members().len() + 1 != nodes.len()) {
        let known: Vec<usize> = nodes.iter().map(|node| node.link().members().len()).collect();
        broken.push(format!("S9: not everybody knows everybody after quiet: {known:?} {states:?}"));
    }
}
