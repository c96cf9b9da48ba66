//! Carries out what the machines want of each other: the only place where one changes another.

use crate::channels::{Channels, Want};
use crate::llc::{Llc, Want as LlcWant};
use crate::rether::{Rether, Sign};
use rota_units::Instant;

/// Does what the channels want of the medium, in order.
pub(crate) fn channels(now: Instant, channels: &mut Channels, medium: &mut Rether) {
    while let Some(want) = channels.next_want() {
        match want {
            Want::Signal { to, signal } => medium.send_signal(now, to, signal),
            Want::Reserve { channel, asked } => medium.reserve(now, channel, &asked),
            Want::Release { channel } => medium.release(now, channel),
            Want::Resize { channel, unit_octets_max } => medium.resize(channel, unit_octets_max),
            Want::KeepUnitInPart { channel } => medium.keep_unit_in_part(channel),
            Want::Contest { mac } => medium.contest(now, mac, Sign::Repeated),
            Want::Doubt { mac } => medium.doubt(now, mac),
            Want::DoubtOwn => medium.doubt_own(now),
            Want::ContestOwn => medium.contest_astray(now),
            Want::ShowPlace { since } => medium.show_place(now, since),
            Want::NoteReached => medium.note_asked(),
            Want::NoteReachedAgain => medium.note_asked_again(now),
            Want::CountRefusedTally => medium.count_refused_tally(),
        }
    }
}

/// Does what link control wants of the queue of ordinary traffic, in order.
pub(crate) fn llc(now: Instant, llc: &mut Llc, medium: &mut Rether) {
    while let Some(want) = llc.next_want() {
        match want {
            LlcWant::Queue { slot, octets, level, first } => {
                medium.queue_llc(now, slot, octets, level, first);
            }
            LlcWant::Unqueue { level, slot } => medium.unqueue_llc(level, slot),
            LlcWant::Sweep => {
                medium.sweep_llc(|slot| llc.is_gone(slot));
                llc.free_gone();
            }
        }
    }
}
