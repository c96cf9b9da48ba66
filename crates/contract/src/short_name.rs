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

/// The part of such a name's type that does not depend on its own rules: `of_octets` checks them, and
/// `$too_long` is the error of a text that fits no field.
macro_rules! short_name {
    ($name:ident, $bad:ident, $too_long:expr) => {
        impl $name {
            /// Octets of a name in a message: shorter ones are filled up with zeros.
            pub const OCTETS: usize = $crate::short_name::OCTETS;

            /// Its octets, zeros behind it.
            pub const fn octets(&self) -> [u8; Self::OCTETS] {
                self.0
            }

            /// The name.
            pub fn as_str(&self) -> &str {
                $crate::short_name::text(&self.0)
            }
        }

        impl core::str::FromStr for $name {
            type Err = $bad;

            fn from_str(name: &str) -> Result<Self, $bad> {
                $crate::short_name::filled(name).ok_or($too_long).and_then(Self::of_octets)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.as_str().fmt(f)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl TryFrom<alloc::string::String> for $name {
            type Error = $bad;

            fn try_from(name: alloc::string::String) -> Result<Self, $bad> {
                name.parse()
            }
        }

        impl From<$name> for alloc::string::String {
            fn from(name: $name) -> Self {
                alloc::borrow::ToOwned::to_owned(name.as_str())
            }
        }
    };
}
pub(crate) use short_name;
