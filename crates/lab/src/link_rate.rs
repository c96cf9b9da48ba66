//! Which rates a port can have: what the commands that make or name a link accept.

use rota_units::{BitRate, parse_rate};

/// Below it a single full frame takes half a cycle.
const LOWEST: BitRate = BitRate::from_mbit(1);
/// The fastest Ethernet there is.
const HIGHEST: BitRate = BitRate::from_mbit(800_000);

/// A link's rate, such as 100mbit.
pub fn link_rate(text: &str) -> Result<BitRate, String> {
    check_rate(parse_rate(text).map_err(|error| error.to_string())?)
}

/// The same of a rate that has been read.
pub(crate) fn check_rate(rate: BitRate) -> Result<BitRate, String> {
    if (LOWEST..=HIGHEST).contains(&rate) {
        Ok(rate)
    } else {
        Err(format!("no ring runs on a link of {rate}; {LOWEST} to {HIGHEST} can"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_neither_slower_nor_faster_than_ethernet() {
        for good in ["1mbit", "10mbit", "2.5gbit", "800gbit"] {
            assert!(link_rate(good).is_ok(), "{good}");
        }
        for bad in ["1bit", "999kbit", "801gbit", "10", "0mbit"] {
            assert!(link_rate(bad).is_err(), "{bad}");
        }
    }
}
