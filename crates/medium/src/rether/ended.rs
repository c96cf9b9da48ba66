//! A ring whose end this station knows while another station may not know it (REPAIR-B8, REPAIR-B13).
//!
//! A station that misses the end of its ring waits for the token. Until it claims, at most T_w later, it says
//! that the ring runs. All stations of the segment would leave plain Ethernet at that word and ask to be let
//! in. They would not answer the claim, and would wait for its drain and longer (seed 457376 of the
//! product's timers: 5 s).
//!
//! A token is destroyed once in its generation, and no other token has that generation. So the word that the
//! ring of this generation runs is wrong, whoever says it. The mode epoch is compared too: generations count
//! anew where all stations of a segment have booted. The memory ends when the other station has claimed.

use super::outbox::Pending;
use super::{Mode, Rether};
use rota_units::Instant;
use rota_wire::{Generation, Key, MacAddr, ModeNotice};

/// What a station keeps of the rings that it has left for plain mode.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    /// The last one's key, for the farewell that proves it.
    pub(super) key: Option<(u8, Key)>,
    pub(super) ended: Option<Ended>,
}

/// The last ring whose token was destroyed, by this station or as its last holder said under the ring's key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) generation: Generation,
    pub(super) mode_epoch: u32,
    /// Until when a station may be that has not noticed.
    pub(super) until: Instant,
}

impl Rether {
    /// The token of this generation is destroyed; the mode epoch is still that of its ring.
    pub(super) fn note_end(&mut self, now: Instant, generation: Generation) {
        // A station that missed it claims when T_w is over, and asks several times.
        let until = now + self.silence(now, u64::from(self.ring_size())) * 2;
        self.members.note_end();
        self.fence.left.ended = Some(Ended { generation, mode_epoch: self.mode_epoch, until });
    }

    /// True if the ring of this generation and epoch is over, whatever a station says that has missed it.
    /// Strangers that counted alike have another ring: this station never heard of them while its own ran.
    pub(super) fn is_ended(
        &self,
        now: Instant,
        mac: MacAddr,
        generation: Generation,
        mode_epoch: u32,
    ) -> bool {
        self.ended_ring(now, mode_epoch).is_some_and(|ended| ended.generation == generation)
            && self.members.by_mac(mac).is_some_and(|member| member.knew_ended)
    }

    fn ended_ring(&self, now: Instant, mode_epoch: u32) -> Option<&Ended> {
        self.fence.left.ended.as_ref().filter(|ended| ended.mode_epoch == mode_epoch && now < ended.until)
    }

    /// A claim while this station switches: the claimant is told of the plain mode between its ring and the
    /// next one.
    pub(super) fn tell_of_end(&mut self, now: Instant, mode_epoch: u32) {
        if self.ended_ring(now, mode_epoch).is_some() && self.may_notify(now) {
            self.out.outbox.push_back(Pending::ModeBefore);
        }
    }

    /// The notice that `pending` stands for. `None` where the mode is another one now: a station that
    /// switches has left the plain mode that the notice was to speak of, and knows of no ring. Another
    /// initiator would wait for that ring, and both for each other.
    pub(super) fn notice_of(&self, pending: &Pending) -> Option<ModeNotice> {
        match (pending, &self.mode) {
            (Pending::ModeBefore, Mode::Initiating(_) | Mode::Yielding(_)) => {
                Some(ModeNotice { mode_epoch: self.mode_epoch.wrapping_sub(1), ring: false })
            }
            (Pending::Mode, Mode::Plain | Mode::Ring(_)) => {
                Some(ModeNotice { mode_epoch: self.mode_epoch, ring: self.in_ring() })
            }
            _ => None,
        }
    }
}
