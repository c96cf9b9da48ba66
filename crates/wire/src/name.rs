//! Names of stations, which come from others and are shown on terminals.

use crate::bodies::MAX_NAME_OCTETS;

/// Whether a character shows itself and nothing else: no control, none that is invisible or turns the
/// direction of what stands beside it.
pub fn is_printable(letter: char) -> bool {
    let hidden = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !hidden && !letter.is_control()
}

/// The same name with a question mark for each character that is not printable. None is longer than its
/// mark, so the name stays within its room.
pub(crate) fn shown<'a>(name: &str, room: &'a mut [u8; MAX_NAME_OCTETS]) -> &'a str {
    let mut end = 0;
    for letter in name.chars() {
        let letter = if is_printable(letter) { letter } else { '?' };
        let Some(place) = room.get_mut(end..end + letter.len_utf8()) else { break };
        end += letter.encode_utf8(place).len();
    }
    core::str::from_utf8(&room[..end]).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Announce, StationState};

    /// A holder of the key could write control characters to a terminal that shows the stations.
    #[test]
    fn a_name_from_the_wire_holds_nothing_but_what_it_shows() {
        for (said, heard) in [
            ("n1\u{1b}[2J", "n1?[2J"),
            ("a\nb\tc\0d\u{7f}", "a?b?c?d?"),
            ("\u{9b}31m\u{202e}txt", "?31m?txt"),
            ("Gerät-7 κ", "Gerät-7 κ"),
            (
                "\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}",
                "??????????",
            ),
        ] {
            let mut body = [0; Announce::OCTETS_MAX];
            let length =
                Announce::new(rota_contract::NodeId(1), 2, 3, StationState::Plain, said).emit(&mut body);
            let read = Announce::parse(&body[..length]).expect("a strange name is no reason to go unheard");
            assert_eq!(read.name(), heard);
            assert!(read.name().chars().all(is_printable));
        }
    }
}
