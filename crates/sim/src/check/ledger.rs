//! R3, S5: what is reserved fits the rotation. R5, R8: slots appear only where their owner asked, once each.
//! S6: queues stay below their caps.

use super::{Checker, Findings, View};
use rota_admission::{Slot, nrt_need};
use rota_proto::Port;
use rota_units::Span;

/// Watches each station's newest list.
#[derive(Debug, Default)]
pub struct Ledgers {
    lists: Vec<Vec<rota_wire::Slot>>,
    buffer: Vec<rota_wire::Slot>,
}

impl Checker for Ledgers {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        self.lists.resize(view.stations.places(), Vec::new());
        for host in view.acted() {
            let Some(port) = view.at(host).port() else { continue };
            let medium = port.medium();
            check_queue(view, host, port, findings);
            let Some(list) = medium.list() else { continue };
            let slots = list.slots.as_slice();
            let known = &mut self.lists[host];
            if slots == known.as_slice() {
                continue;
            }
            self.buffer.clear();
            self.buffer.extend_from_slice(slots);
            std::mem::swap(known, &mut self.buffer);
            check_list(view, host, &self.lists[host], findings);
        }
    }
}

/// S6: the queue of ordinary frames is below its cap.
pub(super) fn check_queue(view: &View<'_>, host: usize, port: &Port, findings: &mut Findings) {
    let queue_max = view.settings.link.rate.octets_in_down(view.settings.nrt_queue).get() / 60 + 2;
    let queued = port.queued_frames();
    if queued as u64 > queue_max {
        let what = format!("host {host} keeps {queued} ordinary frames");
        findings.add(view.now, "S6", what);
    }
}

fn check_list(view: &View<'_>, host: usize, slots: &[rota_wire::Slot], findings: &mut Findings) {
    let all: Span = slots.iter().map(|slot| Span::from_nanos(u64::from(slot.tht_ns))).sum();
    let strict = slots.iter().any(|slot| slot.periodic);
    // With the fewest stations that any list can have had: who joins later raises T_NRT, not Σ THT.
    let need = nrt_need(&view.settings.params(2), all, strict).total();
    if all + need > view.settings.trt {
        let what = format!("host {host} lists {all} of slots, and {need} for ordinary traffic");
        findings.add(view.now, "R3", what);
    }
    check_partitions(view, host, slots, findings);
    // Slots that a number's earlier owner left behind stand until the number's owner has held the token.
    let Some(rether) = view.at(host).rether() else { return };
    if rether.counters().tokens_accepted == 0 {
        return;
    }
    let station = rether.station();
    let own = slots.iter().filter(|slot| slot.station == station).count();
    // A channel that grows may get one more slot each time.
    let asked: u64 = view.own_flows().filter(|flow| flow.from == host).map(|flow| 1 + flow.asked).sum();
    let asked = asked + view.at(host).card.hops;
    if own as u64 > asked {
        findings.add(view.now, "R5", format!("host {host} has {own} slots and asked for {asked}"));
    }
}

/// R3 within each partition of a divided segment. The rest has what ordinary traffic needs.
fn check_partitions(view: &View<'_>, host: usize, slots: &[rota_wire::Slot], findings: &mut Findings) {
    let partitions = view.settings.partitions.shares();
    for number in partitions.numbers().filter(|_| !partitions.is_none()) {
        let own = slots.iter().filter(|slot| slot.partition == number);
        let own: Span = own.map(|slot| Span::from_nanos(u64::from(slot.tht_ns))).sum();
        let need = || nrt_need(&view.settings.params(2), own, false).total();
        let ordinary = if number == 0 { need() } else { Span::ZERO };
        if own + ordinary > partitions.room(number, view.settings.trt) {
            let what =
                format!("host {host} lists {own} of slots in partition {number}, {ordinary} beside them");
            findings.add(view.now, "R3", what);
        }
    }
}

/// The slots of a list as admission names them.
pub(crate) fn admission_slots(slots: &[rota_wire::Slot]) -> Vec<Slot> {
    let slot = |slot: &rota_wire::Slot| {
        let rota_wire::Slot { station, tht_ns, periodic, partition } = *slot;
        Slot { station, tht: Span::from_nanos(u64::from(tht_ns)), periodic, partition }
    };
    slots.iter().map(slot).collect()
}
