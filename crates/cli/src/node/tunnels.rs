//! The tunnels of a node: ports whose frames travel in UDP datagrams over a network that runs no Rota.

use rota_answer::Failure;
use rota_driver::tunnel::{TunnelEnds, TunnelOpenError};
use rota_node::PORTS_MAX;
use std::net::SocketAddr;

/// The shortest and the longest IP packets that hold frames of a port.
const PACKETS: std::ops::RangeInclusive<u16> = 638..=9_042;
/// As long as the names of interfaces are.
const NAME_OCTETS: usize = 15;

/// A tunnel as it was stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The name of its port.
    pub name: String,
    /// Both ends.
    pub ends: TunnelEnds,
    /// The longest IP packet, if it was stated.
    pub packet: Option<u16>,
}

/// Reads `wan=10.0.0.1:7250,10.0.1.1:7250`, or the same with the longest IP packet behind it.
pub fn tunnel(text: &str) -> Result<Tunnel, String> {
    let wrong = || {
        format!(
            "'{text}' is no tunnel; write its name, this host's address and the peer's: \
             wan=10.0.0.1:7250,10.0.1.1:7250, and the longest IP packet where that is less than 1500: …,1400"
        )
    };
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if name.is_empty() || name.len() > NAME_OCTETS || !name.chars().all(is_letter) {
        return Err(format!("the name '{name}' must have 1 to {NAME_OCTETS} letters, digits, - and _"));
    }
    let parts: Vec<&str> = rest.split(',').collect();
    let (local, peer, packet) = match parts[..] {
        [local, peer] => (local, peer, None),
        [local, peer, packet] => (local, peer, Some(packet)),
        _ => return Err(wrong()),
    };
    let end = |text: &str| {
        let number = "write the number of a host and a port, such as 10.0.0.1:7250 or [fd00::1]:7250";
        text.parse::<SocketAddr>().map_err(|_| format!("'{text}' is no end of a tunnel; {number}"))
    };
    let ends = TunnelEnds { local: end(local)?, peer: end(peer)? };
    let packet = packet.map(|octets| {
        let octets = octets.parse::<u16>().ok().filter(|octets| PACKETS.contains(octets));
        let (least, most) = (PACKETS.start(), PACKETS.end());
        octets.ok_or_else(|| format!("the longest IP packet of a tunnel has {least} to {most} octets"))
    });
    Ok(Tunnel { name: name.to_owned(), ends, packet: packet.transpose()? })
}

/// Tests the tunnels of a node against each other and against its interfaces.
///
/// # Errors
/// The first that cannot be.
pub fn check(tunnels: &[Tunnel], ifaces: usize) -> Result<(), Failure> {
    if ifaces + tunnels.len() > PORTS_MAX {
        let sentence = format!(
            "a node has at most {PORTS_MAX} ports; {ifaces} interfaces and {} tunnels were given",
            tunnels.len()
        );
        return Err(Failure::wrong_use(sentence));
    }
    for (at, tunnel) in tunnels.iter().enumerate() {
        let Tunnel { name, ends, .. } = tunnel;
        if nix::net::if_::if_nametoindex(name.as_str()).is_ok() {
            let sentence = format!("{name} is an interface of this host; give the tunnel another name");
            return Err(Failure::wrong_use(sentence));
        }
        for other in &tunnels[..at] {
            let sentence = match () {
                () if other.name == *name => format!("tunnel {name} was given twice; give each once"),
                () if other.ends.peer == ends.peer => format!(
                    "tunnels {} and {name} lead to the same peer, {}; one is enough",
                    other.name, ends.peer
                ),
                () if other.ends.local == ends.local => format!(
                    "tunnels {} and {name} begin at the same port, {}; give each its own",
                    other.name, ends.local
                ),
                () => continue,
            };
            return Err(Failure::wrong_use(sentence));
        }
    }
    Ok(())
}

/// The failure of a tunnel that cannot be opened: wrong use where another start would fail alike.
pub fn failure(name: &str, error: &TunnelOpenError) -> Failure {
    let sentence = format!("tunnel {name}: {error}");
    match error {
        TunnelOpenError::Families { .. }
        | TunnelOpenError::NoHost(_)
        | TunnelOpenError::Same(_)
        | TunnelOpenError::TooShort { .. } => Failure::wrong_use(sentence),
        TunnelOpenError::NotLocal(_)
        | TunnelOpenError::Taken(_)
        | TunnelOpenError::NoRoute(_)
        | TunnelOpenError::Os { .. } => Failure::failed(sentence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_has_a_name_two_ends_and_perhaps_a_size() {
        let read = tunnel("wan=10.0.0.1:7250,10.0.1.1:7251").expect("a tunnel");
        let ends = TunnelEnds {
            local: "10.0.0.1:7250".parse().expect("an address"),
            peer: "10.0.1.1:7251".parse().expect("an address"),
        };
        assert_eq!(read, Tunnel { name: "wan".into(), ends, packet: None });
        let read = tunnel("a-b_1=[fd00::1]:7250,[fd00::2]:7250,1400").expect("a tunnel");
        assert_eq!((read.packet, read.ends.header_octets()), (Some(1_400), 48));
    }

    #[test]
    fn a_tunnel_that_cannot_be_is_refused_with_what_would_be_right() {
        for (text, said) in [
            ("wan", "is no tunnel"),
            ("wan=10.0.0.1:7250", "is no tunnel"),
            ("wan=10.0.0.1:1,10.0.0.2:1,1400,9", "is no tunnel"),
            ("=10.0.0.1:7250,10.0.1.1:7250", "1 to 15 letters"),
            ("a-name-of-sixteen=10.0.0.1:1,10.0.0.2:1", "1 to 15 letters"),
            ("w/n=10.0.0.1:1,10.0.0.2:1", "1 to 15 letters"),
            ("wan=gateway:7250,10.0.1.1:7250", "'gateway:7250' is no end"),
            ("wan=10.0.0.1,10.0.1.1:7250", "'10.0.0.1' is no end"),
            ("wan=10.0.0.1:1,10.0.0.2:1,637", "638 to 9042"),
            ("wan=10.0.0.1:1,10.0.0.2:1,many", "638 to 9042"),
        ] {
            let refused = tunnel(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }

    #[test]
    fn two_tunnels_differ_in_name_port_and_peer() {
        let of = |text: &str| tunnel(text).expect("a tunnel");
        let refused = |second: &str| {
            let tunnels = [of("wan=10.0.0.1:1,10.0.1.1:1"), of(second)];
            check(&tunnels, 1).map_err(|failure| failure.sentence)
        };
        assert_eq!(refused("other=10.0.0.1:2,10.0.2.1:1"), Ok(()));
        for (second, said) in [
            ("wan=10.0.0.1:2,10.0.2.1:1", "wan was given twice"),
            ("other=10.0.0.1:2,10.0.1.1:1", "lead to the same peer"),
            ("other=10.0.0.1:1,10.0.2.1:1", "begin at the same port"),
            ("lo=10.0.0.1:2,10.0.2.1:1", "lo is an interface"),
        ] {
            assert!(refused(second).is_err_and(|sentence| sentence.contains(said)), "{second}");
        }
        let many: Vec<_> = (1..=8).map(|n| of(&format!("t{n}=10.0.0.1:{n},10.0.{n}.1:1"))).collect();
        assert!(check(&many, 1).is_err_and(|failure| failure.sentence.contains("8 tunnels were given")));
    }
}
