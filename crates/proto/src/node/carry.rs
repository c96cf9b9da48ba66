//! Carries out what the machines want of each other: the only place where one changes another.

use crate::channels::{Channels, Want};
use crate::circuits::{Circuits, Want as CircuitWant};
use crate::llc::{Llc, Want as LlcWant};
use crate::port::Port;
use rota_medium::rether::{Rether, Sign};
use rota_units::Instant;

/// Does what the channels want of the port and of its medium, in order.
pub(crate) fn channels(now: Instant, channels: &mut Channels, port: &mut Port) {
    while let Some(want) = channels.next_want() {
        match want {
            Want::Signal { to, signal } => port.send_signal(now, to, signal),
            Want::Reserve { channel, asked } => port.reserve(now, channel, &asked),
            Want::Release { channel } => port.release(now, channel),
            Want::Resize { channel, unit_octets_max } => port.resize(channel, unit_octets_max),
            Want::KeepUnitInPart { channel } => port.keep_unit_in_part(now, channel),
            Want::Contest { mac } => port.tell(now, |medium| medium.contest(now, mac, Sign::Repeated)),
            Want::Doubt { mac } => tell_rether(now, port, |rether| rether.doubt(now, mac)),
            Want::DoubtOwn => tell_rether(now, port, |rether| rether.doubt_own(now)),
            Want::ContestOwn => tell_rether(now, port, |rether| rether.contest_astray(now)),
            Want::ShowPlace { since } => tell_rether(now, port, |rether| rether.show_place(now, since)),
            Want::NoteReached => tell_rether(now, port, |rether| rether.note_asked()),
            Want::NoteReachedAgain => tell_rether(now, port, |rether| rether.note_asked_again(now)),
            Want::CountRefusedTally => port.count_refused_tally(),
        }
    }
}

/// Addresses that go astray are RETHER's affair: another medium has nothing to be told of them.
fn tell_rether(now: Instant, port: &mut Port, tell: impl FnOnce(&mut Rether)) {
    port.tell(now, |medium| {
        if let Some(rether) = medium.rether_mut() {
            tell(rether);
        }
    });
}

/// Does what link control wants of the queue of ordinary traffic, in order.
pub(crate) fn llc(now: Instant, llc: &mut Llc, port: &mut Port) {
    while let Some(want) = llc.next_want() {
        match want {
            LlcWant::Queue { slot, octets, level, first } => {
                port.queue_llc(now, slot, octets, level, first);
            }
            LlcWant::Unqueue { level, slot } => port.unqueue_llc(level, slot),
            LlcWant::Sweep => {
                port.sweep_llc(|slot| llc.is_gone(slot));
                llc.free_gone();
            }
        }
    }
}

/// Does what circuits want of the queue of ordinary traffic, in order.
pub(crate) fn circuits(now: Instant, circuits: &mut Circuits, port: &mut Port) {
    if !circuits.has_want() {
        return;
    }
    while let Some(CircuitWant::Queue { place, octets, level }) = circuits.next_want() {
        port.queue_circuit(now, place, octets, level);
    }
}
