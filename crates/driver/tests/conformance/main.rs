//! One suite for every frame device: the in-process segment, and AF_PACKET on a bridge in a network namespace
//! that this program makes for itself, as root or in a user namespace. Without either it says so and skips.

mod net;
mod packet_only;
mod rig;
mod suite;

use net::Netlink;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use rig::{InProcessRig, PacketRig, Rig};
use rota_units::BitRate;

fn main() {
    // The harness is our own, so its two usual requests are answered here.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if std::env::args().any(|arg| arg == "--list") {
        suite::CHECKS.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    // Before any thread exists: a process with two threads may not leave its user namespace.
    let network = own_network();
    run(&mut InProcessRig::new("in-process", None), &chosen);
    run(&mut InProcessRig::new("in-process at 1 Gbit/s", Some(BitRate::from_mbit(1_000))), &chosen);
    match network {
        Ok(netlink) => {
            let mut rig = PacketRig::new(netlink);
            run(&mut rig, &chosen);
            packet_only::run(rig, &chosen);
        }
        Err(reason) => {
            eprintln!("SKIPPED every check of the AF_PACKET device: {reason}");
            eprintln!("         Run as root, or allow user namespaces.");
        }
    }
}

fn run(rig: &mut dyn Rig, chosen: &dyn Fn(&str) -> bool) {
    for (name, check) in suite::CHECKS.iter().filter(|(name, _)| chosen(name)) {
        println!("test {}: {name} ...", rig.name());
        check(rig);
    }
}

/// A fresh network namespace, proven by using it: some systems grant one and then deny all work in it.
fn own_network() -> Result<Netlink, String> {
    let user = if geteuid().is_root() { CloneFlags::empty() } else { CloneFlags::CLONE_NEWUSER };
    unshare(user | CloneFlags::CLONE_NEWNET).map_err(|errno| format!("unshare failed: {errno}"))?;
    let mut netlink = Netlink::open().map_err(|errno| format!("there is no netlink: {errno}"))?;
    netlink.set_up("lo", true).map_err(|errno| format!("the new namespace cannot be used: {errno}"))?;
    netlink
        .add_veth("probe0", [2, 0, 0, 0, 0, 1], "probe1")
        .map_err(|errno| format!("no veth pair can be made: {errno}"))?;
    Ok(netlink)
}
