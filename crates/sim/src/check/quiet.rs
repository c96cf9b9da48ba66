//! S9, S5, L3–L5: after the last fault and enough quiet all stations of each segment agree.

use super::link;
use crate::check::Stations;
use crate::hosts::Station;
use crate::world::{FlowState, World};
use rota_proto::ModeName;
use rota_proto::rether::Rether;

/// Checks that the stations of each segment agree.
///
/// # Errors
/// The rule, and what does not agree.
pub fn agree(world: &World) -> Result<(), (&'static str, String)> {
    (0..world.segments.len()).try_for_each(|segment| agree_on(world, segment))
}

fn agree_on(world: &World, segment: usize) -> Result<(), (&'static str, String)> {
    let stations = Stations::new(&world.hosts, segment, world.segments[segment].stations);
    if world.spec().is_link(segment) {
        return link::agree(world.flows(), stations, world.now());
    }
    let there = || stations.iter().filter_map(|(at, station)| Some((at, station, station.rether()?)));
    let links: Vec<&Rether> = there().map(|(.., link)| link).collect();
    let states: Vec<&str> = links.iter().map(|link| link.state_name()).collect();
    let mode = world.agreed_mode_on(segment);
    let mode = mode.filter(|mode| matches!(mode, ModeName::Plain | ModeName::Token));
    let Some(mode) = mode else { return Err(("S9", format!("no common mode after quiet: {states:?}"))) };
    let lists: Vec<_> = links.iter().map(|link| link.slots()).collect();
    // Sessions do not change any more, so a list that is one cycle old is the same list.
    if lists.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(("S5", format!("reservations differ after quiet: {lists:?}")));
    }
    let mut numbers: Vec<u16> = links.iter().map(|link| link.station()).collect();
    numbers.sort_unstable();
    if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(("S9", format!("two stations have one number: {numbers:?}")));
    }
    if links.iter().any(|link| link.members().len() + 1 != links.len()) {
        let known: Vec<usize> = links.iter().map(|link| link.members().len()).collect();
        return Err(("L4", format!("not everybody knows everybody after quiet: {known:?} {states:?}")));
    }
    // A station that died again and again has to wait, for longer than this quiet lasts after the seventh
    // time.
    let waits = |number| {
        let mac = there().find(|(.., link)| link.station() == number).map(|(_, station, _)| station.card.mac);
        let held_off =
            |mac| there().any(|(_, station, link)| link.is_held_off(station.clock.read(world.now()), mac));
        mac.is_some_and(held_off)
    };
    let dead = |station: &u16| links.iter().any(|link| link.is_dead(*station));
    if numbers.iter().any(|station| dead(station) && !waits(*station)) {
        return Err(("L4", "a living station is still on the dead list after quiet".to_owned()));
    }
    let slots = lists.first().map_or(0, |list| list.len());
    let flows = || world.flows().iter().filter(|flow| flow.on == segment && flow.state == FlowState::Open);
    if mode == ModeName::Token && slots == 0 {
        return Err(("L5", "token mode although nothing is reserved".to_owned()));
    }
    // A channel that has grown may have a slot more for each time.
    let own =
        |station| lists.first().into_iter().copied().flatten().filter(|slot| slot.station == station).count();
    let fits = |(at, station): (usize, Station<'_>)| {
        let slots = own(station.rether().map_or(0, |link| link.station()));
        let open = flows().filter(|flow| flow.from == at);
        let (least, more) = open.fold((0, 0), |(least, more), flow| (least + 1, more + flow.asked as usize));
        (least..=least + more + station.card.hops as usize).contains(&slots)
    };
    let known: usize = numbers.iter().map(|station| own(*station)).sum();
    if known != slots || !stations.iter().all(fits) {
        let open = flows().count();
        return Err(("S5", format!("{slots} slots are reserved and {open} channels are open after quiet")));
    }
    Ok(())
}
