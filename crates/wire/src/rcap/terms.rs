//! A node's part of a certificate, in the record of an accept: the kind of its network, and numbers in the
//! order of the format ([certificates](../../../docs/plan.md)). Most numbers are small, so each has as many
//! octets as it needs: seven bits in each, the lowest first, the highest bit set where more follow.

use super::sound;
use crate::fields::Malformed;

/// Octets of a part at most: records stay small, and a port with more channels has no part.
pub const RCAP_TERMS_MAX: usize = 1_024;

/// A part, still where it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapTerms<'a> {
    /// The kind of network, as in the record: 1 RETHER, 2 a link.
    pub medium: u8,
    numbers: &'a [u8],
}

impl<'a> RcapTerms<'a> {
    /// Reads the terms of a record.
    ///
    /// # Errors
    /// No terms, too many octets, or a number that is cut off, too large, or not in its shortest form.
    pub fn parse(terms: &'a [u8]) -> Result<Self, Malformed> {
        sound(terms.len() <= RCAP_TERMS_MAX, "terms")?;
        let (medium, mut rest) = terms.split_first().ok_or(Malformed::Field("terms"))?;
        sound((1..=3).contains(medium), "terms medium")?;
        let numbers = rest;
        while !rest.is_empty() {
            rest = number(rest).ok_or(Malformed::Field("terms number"))?.1;
        }
        Ok(Self { medium: *medium, numbers })
    }

    /// The numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + use<'a> {
        let mut rest = self.numbers;
        std::iter::from_fn(move || {
            let (value, behind) = number(rest)?;
            rest = behind;
            Some(value)
        })
    }

    /// Writes terms; `None` where they would be too long for a record.
    pub fn written(medium: u8, numbers: impl Iterator<Item = u64>) -> Option<Vec<u8>> {
        let mut octets = vec![medium];
        for mut value in numbers {
            while value >= 0x80 {
                octets.push(value as u8 | 0x80);
                value >>= 7;
            }
            octets.push(value as u8);
        }
        (octets.len() <= RCAP_TERMS_MAX).then_some(octets)
    }
}

/// The first number and what follows it.
fn number(octets: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, octet) in octets.iter().enumerate() {
        let bits = u64::from(octet & 0x7f);
        // Ten times seven bits are more than 64.
        let shifted = bits.checked_shl(7 * at as u32).filter(|shifted| shifted >> (7 * at) == bits)?;
        value |= shifted;
        if octet & 0x80 == 0 {
            let is_shortest = at == 0 || bits > 0;
            return is_shortest.then_some((value, &octets[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_read_back_in_their_shortest_form() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, 33_333_333, u64::MAX >> 1, u64::MAX];
        let octets = RcapTerms::written(1, numbers.into_iter()).expect("it is short");
        assert_eq!(octets.len(), 1 + 1 + 1 + 1 + 2 + 2 + 3 + 4 + 9 + 10);
        let read = RcapTerms::parse(&octets).expect("it was written");
        assert_eq!((read.medium, read.numbers().collect::<Vec<_>>()), (1, numbers.to_vec()));
        assert_eq!(RcapTerms::written(1, std::iter::repeat_n(200, RCAP_TERMS_MAX / 2)), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for wrong in [
            &[][..],                                                                   // no medium
            &[0],                                                                      // none of that kind
            &[4],                                                                      // nor of that one
            &[1, 0x80],                                                                // cut off
            &[1, 0x80, 0],                                                             // longer than needed
            &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],             // 65 bits
            &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], // 78 bits
            &[1; RCAP_TERMS_MAX + 1],
        ] {
            assert!(RcapTerms::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(RcapTerms::parse(&[1; RCAP_TERMS_MAX]).is_ok());
    }
}
