//! The state of a port as a model checker compares it; its medium's is shown first.

use super::spend::{Sent, Spending};
use super::{Port, Turning};
use crate::io::GateOrder;
use rota_medium::rether::Visit;
use rota_units::Span;

impl Port {
    pub(crate) fn visit(&self, visit: &mut dyn Visit) {
        let Self {
            id: _,
            medium,
            units,
            // Links have them, and models know RETHER only.
            groups: _,
            queue,
            own,
            gate,
            turning,
            spending,
            outputs,
            ended_octets: _,
            eligible_at: _,
            circuits_free: _,
            counters: _,
            tally: _,
        } = self;
        assert!(outputs.is_empty() && own.is_drained(), "a drained machine is shown");
        let rether = medium.rether().expect("models know RETHER only");
        rether.visit(visit);
        let flags = [*gate == GateOrder::Divert, matches!(turning, Turning::Out(_))];
        visit.word(flags.iter().fold(1, |word, flag| word << 1 | u64::from(*flag)));
        for queue in units.iter() {
            visit.word(queue.channel.0);
            visit.word(u64::from(queue.to.0[5]) << 16 | u64::from(queue.label));
            visit.word((queue.ready.len() as u64) << 16 | u64::from(queue.fragments_sent));
            visit.word(queue.resize.map_or(0, |(octets, _)| u64::from(octets)));
            visit.word(queue.resize.and_then(|(_, behind)| behind).map_or(0, |unit| unit + 1));
        }
        for (to, signal) in own.signals() {
            let mut octets = [0; 256];
            let length = signal.emit(&mut octets);
            visit.word(u64::from(to.0[5]));
            octets[..length].iter().for_each(|octet| visit.word(u64::from(*octet)));
        }
        for entry in queue.levels.iter().flatten() {
            visit.word(u64::from(entry.octets));
        }
        visit.word((queue.frames() as u64) << 1 | u64::from(queue.others_first));
        if rether.granted() == Some(spending.number) {
            visit_spending(spending, visit);
        }
    }
}

/// A slot or a visit that is under way. The number of its grants only tells it from others.
fn visit_spending(spending: &Spending, visit: &mut dyn Visit) {
    let Spending { number: _, units, most: _, left, sent } = spending;
    let (kind, took) = match sent {
        Sent::Nothing => (0, Span::ZERO),
        Sent::Signalling(took) => (1, *took),
        Sent::Others(took) => (2, *took),
    };
    visit.word(u64::from(*units) << 34 | u64::from(*left) << 2 | kind);
    visit.word(took.as_nanos());
}
