//! Names that fit a field of a message: plain characters, zeros behind them.

pub(crate) const OCTETS: usize = 16;

/// True if the octets are 1 to 16 letters, digits, `-`, `_` and `.`, with nothing but zeros behind them.
pub(crate) fn is_plain(octets: &[u8; OCTETS]) -> bool {
    let is_plain = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_.".contains(octet);
    let (name, behind) = octets.split_at(len(octets));
    !name.is_empty() && name.iter().all(is_plain) && behind.iter().all(|octet| *octet == 0)
}

/// The name before the zeros.
pub(crate) fn text(octets: &[u8; OCTETS]) -> &str {
    core::str::from_utf8(&octets[..len(octets)]).unwrap_or_default()
}

/// The name with zeros behind it; `None` if it is too long.
pub(crate) fn filled(name: &str) -> Option<[u8; OCTETS]> {
    let mut octets = [0; OCTETS];
    octets.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    Some(octets)
}

fn len(octets: &[u8; OCTETS]) -> usize {
    octets.iter().position(|octet| *octet == 0).unwrap_or(OCTETS)
}
