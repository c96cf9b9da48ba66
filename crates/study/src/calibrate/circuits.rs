//! What a message, a TPDU and an octet of a circuit cost the CPU (TRANSPORT-R57): the shipping machines of
//! both ends, each TPDU and each acknowledgement built, tagged, handed to the device and its tag checked.
//!
//! Both ends are timed together, since one cost is to hold for either. The cost of a program and its wake-up
//! is not in it.

use super::file::{COST_MAX, Measurement};
use super::fit::Spread;
use super::measure::{Bench, SAMPLES_MIN};
use crate::clock;
use rota_admission::cpu::Costs;
use rota_answer::Failure;
use rota_sim::circuits::{Pace, Pair};
use rota_units::{Octets, Span};
use rota_wire::{TPDU_HEADER_OCTETS, UNIT_HEADER_OCTETS};

/// TPDUs of the long message.
const ROW: u64 = 16;
const WINDOW: u32 = 64;
/// Tries to hand over enough messages of each kind.
const TRIES_MAX: usize = 100 * SAMPLES_MIN;
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
    while clock::now() < end || fewest(&times) < SAMPLES_MIN && tries < TRIES_MAX {
        tries += 1;
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
    Times::of(full as u64, times)
}

fn fewest(times: &[Vec<u64>; 3]) -> usize {
    times.iter().map(Vec::len).min().unwrap_or(0)
}

impl Times {
    /// Of nanoseconds of each kind of message.
    fn of(octets: u64, times: [Vec<u64>; 3]) -> Result<Self, Failure> {
        if fewest(&times) < SAMPLES_MIN {
            let [short, full, row] = times.map(|times| times.len());
            return Err(Failure::failed(format!(
                "the device took {short} messages of one octet, {full} of one TPDU and {row} of {ROW} whole, \
                 and {SAMPLES_MIN} of each are needed; is its queue blocked, or shorter than {ROW} frames?"
            )));
        }
        let [short, full, row] = times.map(Spread::of);
        let longest = short.max.max(full.max).max(row.max);
        if longest > COST_MAX {
            return Err(Failure::failed(format!(
                "a message took {longest}, and {COST_MAX} is the most that a circuit can bear; measure again \
                 while the host is not busy"
            )));
        }
        Ok(Self { octets, short, full, row })
    }

    /// The costs that no message has exceeded. The costs of a TPDU and an octet are those of nine messages in
    /// ten; what the longest of each kind took beyond that is the message's.
    pub fn costs(&self) -> Costs {
        let usual = costs(self.octets, [self.short.p90, self.full.p90, self.row.p90]);
        let unit = |octets| usual.unit(Octets::new(octets));
        let short = self.short.max.minus(unit(1));
        let full = self.full.max.minus(unit(self.octets));
        let row = self.row.max.minus(unit(self.octets) * ROW);
        Costs { message: usual.message.max(short).max(full).max(row), ..usual }
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

    /// The p90 was stated as the time that no message exceeds.
    #[test]
    fn the_longest_message_of_each_kind_is_within_the_costs() {
        for slow in 0..3 {
            let mut times = [9_000, 11_000, 101_000].map(|nanos| vec![nanos; 1_000]);
            times[slow][500] = 400_000;
            let times = Times::of(1_001, times).expect("enough of each");
            let costs = times.costs();
            let unit = |octets| costs.unit(Octets::new(octets));
            assert_eq!((costs.tpdu, costs.octet_ps), (Span::from_nanos(3_998), 2_000), "they are as usual");
            assert!(costs.message + unit(1) >= times.short.max, "{slow}: {costs:?}");
            assert!(costs.message + unit(1_001) >= times.full.max, "{slow}: {costs:?}");
            assert!(costs.message + unit(1_001) * ROW >= times.row.max, "{slow}: {costs:?}");
            assert!(costs.message > Span::from_micros(290), "{slow}: {costs:?}");
        }
        let stalled = [9_000, 11_000, 100_000_001].map(|nanos| vec![nanos; SAMPLES_MIN]);
        let refused = Times::of(1_001, stalled).err().expect("no circuit bears it");
        assert!(refused.sentence.contains("measure again"), "{}", refused.sentence);
    }

    /// A device whose queue is shorter than a row took the short messages only, and a TPDU cost nothing.
    #[test]
    fn a_kind_of_message_without_samples_is_an_error_and_no_cost_of_nothing() {
        for few in 0..3 {
            let mut times = [9_000, 11_000, 101_000].map(|nanos| vec![nanos; SAMPLES_MIN]);
            assert!(Times::of(1_001, times.clone()).is_ok());
            times[few].truncate(if few == 0 { 0 } else { SAMPLES_MIN - 1 });
            let refused = Times::of(1_001, times).err().expect("too few");
            assert!(refused.sentence.contains("100 of each are needed"), "{}", refused.sentence);
        }
    }
}
