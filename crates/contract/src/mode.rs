//! The mode of a station.

/// The mode of a station on a segment, as users see it. The place of a mode is its code, on the board of a
/// node and in its event log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[strum(serialize_all = "lowercase")]
pub enum ModeName {
    /// Looking for the segment.
    #[default]
    Joining,
    /// Plain Ethernet: nothing is regulated.
    Plain,
    /// Between plain Ethernet and token mode.
    Switching,
    /// Token mode.
    Token,
    /// A link on which this station has shares: its ordinary frames wait behind them.
    Paced,
}

impl ModeName {
    /// The word that programs use.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantNames;

    #[test]
    fn the_place_of_a_mode_is_that_of_its_word() {
        use ModeName::{Joining, Paced, Plain, Switching, Token};
        for mode in [Joining, Plain, Switching, Token, Paced] {
            assert_eq!(ModeName::VARIANTS[mode as usize], mode.word());
        }
        assert_eq!(ModeName::VARIANTS, ["joining", "plain", "switching", "token", "paced"]);
    }
}
