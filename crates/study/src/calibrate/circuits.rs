//! What a message, a TPDU and an octet of a circuit cost the CPU (TRANSPORT-R57): the shipping machines of
//! both ends, each TPDU and each acknowledgement built, tagged, handed to the device and its tag checked.
//!
//! Both ends are timed together, since one cost is to hold for either. What a program and its wake-up cost is
//! not in it.

use super::file::Measurement;
use super::fit::Spread;
use super::measure::{Bench, SAMPLES_MIN};
use crate::clock;
use rota_admission::cpu::Costs;
use rota_answer::Failure;
use rota_sim::circuits::{Pace, Pair};
use rota_units::Span;
use rota_wire::{TPDU_HEADER_OCTETS, UNIT_HEADER_OCTETS};

/// TPDUs of the long message.
const ROW: u64 = 16;
const WINDOW: u32 = 64;
/// Before each message, so that each begins on a host that has just woken: the first one after a long wait
/// costs more than any octets.
const PAUSE: Span = Span::from_micros(500);
/// Of the machines' own time, in which nothing is lost.
const PACE: Pace = Pace {
    first: Span::from_millis(1),
    least: Span::from_millis(1),
    most: Span::from_millis(50),
    silence: Span::from_millis(400),
    reorder: 3,
};

/// The times of messages of one octet, of one full TPDU, and of a row of them.
pub struct Times {
    octets: u64,
    short: Spread,
    full: Spread,
    row: Spread,
}

/// Measures all three in turn, so that what disturbs the host disturbs each.
pub fn measure(bench: &mut Bench) -> Result<Times, Failure> {
    let room = bench.params.link.framing.unit_payload_max() as usize + UNIT_HEADER_OCTETS;
    let full = room - TPDU_HEADER_OCTETS;
    let message = vec![0x5a; full * ROW as usize];
    let mut pair = Pair::open(WINDOW, full as u16, PACE);
    let end = clock::now() + bench.effort.part(15);
    let mut times: [Vec<u64>; 3] = Default::default();
    let mut tries = 0;
    while clock::now() < end || times[0].len() < SAMPLES_MIN {
        tries += 1;
        if tries > 100 * SAMPLES_MIN && times[0].is_empty() {
            return Err(Failure::failed("the device takes no frame; is its queue blocked?"));
        }
        for (kind, octets) in [1, full, message.len()].into_iter().enumerate() {
            let (mut wire, mut is_sent, mut failed) = (Span::ZERO, true, None);
            let begun = clock::now();
            pair.message(&message[..octets], |tpdu| {
                wire += bench.wire(tpdu.len());
                match bench.station.send_tpdu(bench.to, tpdu) {
                    Ok(sent) => is_sent &= sent,
                    Err(failure) => failed = Some(failure),
                }
            });
            let took = clock::now().since(begun);
            if let Some(failure) = failed {
                return Err(failure);
            }
            // One that found no room was not handed over, and says nothing.
            if is_sent {
                times[kind].push(took.as_nanos());
            }
            bench.station.wait_drained(begun + wire)?;
            bench.station.wait_until(clock::now() + PAUSE)?;
        }
    }
    let [short, full_one, row] = times.map(Spread::of);
    Ok(Times { octets: full as u64, short, full: full_one, row })
}

impl Times {
    /// The costs in nine of ten messages; tails are the host's lateness.
    pub fn costs(&self) -> Costs {
        costs(self.octets, [self.short.p90, self.full.p90, self.row.p90])
    }

    /// What they were derived from.
    pub fn measured(&self) -> [(Measurement, Spread); 3] {
        [
            (Measurement::MessageShort, self.short),
            (Measurement::MessageTpdu, self.full),
            (Measurement::MessageRow, self.row),
        ]
    }
}

/// The costs by which none of the three messages takes longer than it took: of one octet, of a TPDU with so
/// many, and of a row of such.
fn costs(octets: u64, [short, full, row]: [Span; 3]) -> Costs {
    let octet_ps = (full.minus(short).as_nanos() * 1_000).div_ceil((octets - 1).max(1));
    let data = |octets: u64| Span::from_nanos((octets * octet_ps).div_ceil(1_000));
    let further = Span::from_nanos(row.minus(full).as_nanos().div_ceil(ROW - 1));
    let tpdu = further.minus(data(octets));
    Costs { message: short.minus(tpdu + data(1)), tpdu, octet_ps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::Octets;

    #[test]
    fn no_measured_message_costs_more_than_the_three_costs_say() {
        let us = Span::from_micros;
        let exact = costs(1_001, [us(9), us(11), us(11 + 15 * 6)]);
        let tpdu = Span::from_nanos(3_998);
        assert_eq!(exact, Costs { message: us(5), tpdu, octet_ps: 2_000 });
        // Also where noise has a long message take less than a short one.
        for times in [[9, 11, 100], [9, 8, 300], [9, 30, 100], [1, 11, 1_000], [5, 5, 5]] {
            let [short, full, row] = times.map(us);
            let Costs { message, .. } = costs(1_437, [short, full, row]);
            let unit = |octets| costs(1_437, [short, full, row]).unit(Octets::new(octets));
            assert!(message + unit(1) >= short && message + unit(1_437) >= full, "{times:?}");
            assert!(message + unit(1_437) * ROW >= row, "{times:?}");
        }
    }
}
