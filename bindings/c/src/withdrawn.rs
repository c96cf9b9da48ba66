//! The guarantee of a channel at present, which another path may change.

use std::ffi::{c_char, c_int};

use rota::{SendChannel, Withdrawn};

use crate::channel::{Receiver, need};
use crate::face::{Done, Out, copy_text, export, tell};

/// `rota_withdrawn`.
#[repr(C)]
pub struct Hop {
    from: [c_char; 64],
    to: [c_char; 64],
    more: u32,
}

/// Tells whether there is such a hop, and which.
pub fn tell_hop(withdrawn: Option<Withdrawn>, is: Out<'_, c_int>, hop: Out<'_, Hop>) -> Done {
    need(is, "is")?.write(c_int::from(withdrawn.is_some()));
    if let Some(Withdrawn { from, to, more }) = withdrawn {
        let [from, to] = [from, to].map(|name| copy_text(name.as_str()));
        tell(hop, Hop { from, to, more: u32::from(more) });
    }
    Ok(())
}

export! {
    /// At the sender.
    fn rota_channel_withdrawn(channel: Option<&mut SendChannel>, is: Out<'_, c_int>, hop: Out<'_, Hop>) {
        tell_hop(need(channel, "channel")?.withdrawn(), is, hop)
    }

    /// At the receiver.
    fn rota_receiver_withdrawn(receiver: Option<&mut Receiver>, is: Out<'_, c_int>, hop: Out<'_, Hop>) {
        tell_hop(need(receiver, "receiver")?.channel_mut().withdrawn(), is, hop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    #[test]
    fn a_hop_without_a_guarantee_is_named_and_none_is_0() {
        let name = rota::NodeName::new;
        let withdrawn = Withdrawn { from: name("g1"), to: name("g2"), more: 3 };
        let (mut is, mut hop) = (MaybeUninit::new(9), MaybeUninit::uninit());
        assert!(tell_hop(Some(withdrawn), Some(&mut is), Some(&mut hop)).is_ok());
        // SAFETY: both were written.
        let (is, hop) = unsafe { (is.assume_init(), hop.assume_init()) };
        let text = |octets: [c_char; 64]| octets.map(|c| c.to_ne_bytes()[0]);
        assert_eq!(
            (is, &text(hop.from)[..3], &text(hop.to)[..3], hop.more),
            (1, &b"g1\0"[..], &b"g2\0"[..], 3)
        );
        let mut is = MaybeUninit::new(9);
        assert!(tell_hop(None, Some(&mut is), None).is_ok() && tell_hop(None, None, None).is_err());
        // SAFETY: it was initialised.
        assert_eq!(unsafe { is.assume_init() }, 0);
    }
}
