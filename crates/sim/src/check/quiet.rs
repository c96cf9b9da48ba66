//! S9, S5, L3–L5: after the last fault and enough quiet all stations agree.

use crate::hosts::Host;
use crate::world::{FlowState, World};
use rota_proto::ModeName;

/// What does not agree, if anything.
pub fn agree(world: &World) -> Result<(), (&'static str, String)> {
    let nodes: Vec<_> = world.hosts.iter().filter_map(|host| host.node.as_ref()).collect();
    let states: Vec<&str> = nodes.iter().map(|node| node.link().state_name()).collect();
    let mode = world.agreed_mode().filter(|mode| matches!(mode, ModeName::Plain | ModeName::Token));
    let Some(mode) = mode else { return Err(("S9", format!("no common mode after quiet: {states:?}"))) };
    let lists: Vec<_> = nodes.iter().map(|node| node.link().slots()).collect();
    // Sessions do not change any more, so a list that is one cycle old is the same list.
    if lists.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(("S5", format!("reservations differ after quiet: {lists:?}")));
    }
    let mut numbers: Vec<u16> = nodes.iter().map(|node| node.link().station()).collect();
    numbers.sort_unstable();
    if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(("S9", format!("two stations have one number: {numbers:?}")));
    }
    if nodes.iter().any(|node| node.link().members().len() + 1 != nodes.len()) {
        let known: Vec<usize> = nodes.iter().map(|node| node.link().members().len()).collect();
        return Err(("L4", format!("not everybody knows everybody after quiet: {known:?} {states:?}")));
    }
    // Who died again and again has to wait, for longer than this quiet lasts after the seventh time.
    let hosts = || world.hosts.iter().filter_map(|host| Some((host, host.node.as_ref()?.link())));
    let waits = |station| {
        let mac = hosts().find(|(_, link)| link.station() == station).map(|(host, _)| host.mac);
        mac.is_some_and(|mac| hosts().any(|(host, link)| link.is_held_off(host.clock.read(world.now()), mac)))
    };
    let dead = |station: &u16| nodes.iter().any(|node| node.link().is_dead(*station));
    if numbers.iter().any(|station| dead(station) && !waits(*station)) {
        return Err(("L4", "a living station is still on the dead list after quiet".to_owned()));
    }
    let slots = lists.first().map_or(0, |list| list.len());
    let open = world.flows().iter().filter(|flow| flow.state == FlowState::Open).count();
    if mode == ModeName::Token && slots == 0 {
        return Err(("L5", "token mode although nothing is reserved".to_owned()));
    }
    // A channel that has grown may have a slot more for each time.
    let own =
        |station| lists.first().into_iter().copied().flatten().filter(|slot| slot.station == station).count();
    let fits = |(at, host): (usize, &Host)| {
        let slots = own(host.node.as_ref().map_or(0, |node| node.link().station()));
        let open = world.flows().iter().filter(|flow| flow.from == at && flow.state == FlowState::Open);
        let (least, more) = open.fold((0, 0), |(least, more), flow| (least + 1, more + flow.asked as usize));
        (least..=least + more).contains(&slots)
    };
    let known: usize = numbers.iter().map(|station| own(*station)).sum();
    if known != slots || !world.hosts.iter().enumerate().all(fits) {
        return Err(("S5", format!("{slots} slots are reserved and {open} channels are open after quiet")));
    }
    Ok(())
}
