//! The Ethernet header, and the priority level of an ordinary frame.

use core::fmt;

/// Destination, source and EtherType.
pub const ETHERNET_HEADER_OCTETS: usize = 14;

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All stations of the segment.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The address that the low 48 bits of a number hold.
    pub const fn from_word(word: u64) -> Self {
        let [_, _, octets @ ..] = word.to_be_bytes();
        Self(octets)
    }

    /// The address as a number.
    pub const fn word(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The group address of the station that has this one: no switch learns where it is, so that frames to it
    /// leave at every port, and only that station's card takes them.
    pub const fn own_group(self) -> Self {
        let [first, rest @ ..] = self.0;
        let [b, c, d, e, f] = rest;
        Self([first | 1, b, c, d, e, f])
    }

    /// Whether a frame to this address reaches more than one station.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::str::FromStr for MacAddr {
    type Err = ();

    /// Six pairs of hexadecimal digits with colons between them.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().ok_or(())?;
            if part.len() != 2 {
                return Err(());
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        if parts.next().is_some() { Err(()) } else { Ok(Self(octets)) }
    }
}

const VLAN: u16 = 0x8100;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The level 0–7 of an ordinary frame in the non-real-time queue: its 802.1Q priority code point, else the
/// class selector bits of its DSCP, else 0. Frames too short to say are level 0.
pub fn host_level(frame: &[u8]) -> u8 {
    let Some(ether_type) = be16(frame, 12) else { return 0 };
    match ether_type {
        VLAN => frame.get(14).map_or(0, |tci| tci >> 5),
        // The top three of the six DSCP bits are the class selector, RFC 2474 section 4.2.2.
        IPV4 => frame.get(15).map_or(0, |tos| tos >> 5),
        IPV6 => be16(frame, 14).map_or(0, |word| (word >> 9) as u8 & 7),
        _ => 0,
    }
}

fn be16(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_print_and_parse() {
        let mac = MacAddr([2, 0x52, 0x4f, 0x54, 0x41, 5]);
        assert_eq!(mac.to_string(), "02:52:4f:54:41:05");
        assert_eq!(mac.to_string().parse(), Ok(mac));
        for wrong in ["", "02:52", "02:52:4f:54:41:05:06", "2:52:4f:54:41:05", "zz:52:4f:54:41:05"] {
            assert!(wrong.parse::<MacAddr>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_level_comes_from_pcp_else_dscp_else_zero() {
        let mut frame = [0u8; 60];
        assert_eq!(host_level(&frame[..3]), 0);
        frame[12..16].copy_from_slice(&[0x81, 0x00, 0xe0, 0x00]);
        assert_eq!(host_level(&frame), 7);
        frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0xb8]);
        assert_eq!(host_level(&frame), 5, "expedited forwarding");
        frame[12..16].copy_from_slice(&[0x86, 0xdd, 0x6b, 0x80]);
        assert_eq!(host_level(&frame), 5);
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(host_level(&frame), 0, "ARP");
    }
}
