//! The interface and the rate that a command means where its user names none.

use rota_answer::Failure;
use rota_units::BitRate;

/// The Ethernet interface, if there is exactly one beside the loopback.
pub fn only_interface(flag: &str) -> Result<String, Failure> {
    let addresses =
        nix::ifaddrs::getifaddrs().map_err(|error| Failure::failed(format!("no interfaces: {error}")))?;
    let mut names: Vec<String> = addresses.map(|address| address.interface_name).collect();
    names.retain(|name| name != "lo" && !name.starts_with("rota"));
    names.sort();
    names.dedup();
    match names.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::failed("there is no interface beside the loopback")),
        many => Err(Failure::wrong_use(format!("name one interface with {flag}: {}", many.join(", ")))),
    }
}

/// The rate that the driver reports for an interface.
pub fn driver_rate(iface: &str) -> Result<BitRate, Failure> {
    let path = format!("/sys/class/net/{iface}/speed");
    let mbit = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    mbit.filter(|mbit| (1..=400_000).contains(mbit)).map(BitRate::from_mbit).ok_or_else(|| {
        let known = nix::net::if_::if_nametoindex(iface).is_ok();
        if known {
            Failure::failed(format!(
                "the driver of {iface} does not say its rate; give it with --rate, such as 100mbit"
            ))
        } else {
            Failure::failed(format!("there is no interface {iface}; 'ip link' lists them"))
        }
    })
}
