//! SHIPNET as it was measured in 1988: three hosts, a front-end processor on each network card, a token ring
//! of 4 Mbit/s, and one message at a time.
//!
//! A message goes through stages one after another: the host's fixed work, the copy from the user's buffer to
//! LLC's (printed, section 6.1), the firmware's copy to the front end, the ring; on the far side the
//! firmware's copy, the host's copy and its fixed work. A transmitter calls again when its message has left;
//! one that broadcasts receives its own message first, with the same processor (section 6.4).
//!
//! Three numbers of each host are fitted, all others come out: the fixed work of a transmitter is the printed
//! delay of an empty message, the firmware's time an octet follows from the printed delay of 2,000 octets,
//! and the share of the fixed work in which the processor has nothing to do from the idle time of an empty
//! message. The paper states a receiver's fixed work in words: it is 6 % slower than a transmitter (section
//! 6.2).

use rota_units::Span;

/// Message lengths of the figures, in octets.
pub const LENGTHS: [u64; 5] = [0, 100, 500, 1_000, 2_000];
/// The ring's time for one octet at 4 Mbit/s.
const RING_PER_OCTET: Span = Span::from_nanos(2_000);

/// A host of 1988, and what the paper printed of it at [`LENGTHS`].
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// As the paper calls it.
    pub name: &'static str,
    /// From the user's buffer to LLC's, for each octet (section 6.1).
    copy: Span,
    /// Figure 4, in microseconds.
    pub delay: [u64; 5],
    /// Figure 5, in microseconds.
    pub end_to_end: [u64; 5],
    /// Figure 7, in microseconds, where it was measured.
    pub broadcast: Option<[u64; 5]>,
    /// Figure 8, transmitter, in tenths of a percent.
    pub idle: [u64; 5],
    /// Figure 2, in tenths of a packet a second.
    pub packets: [u64; 5],
}

/// The three of section 4.
pub const HOSTS: [Host; 3] = [
    Host {
        name: "PC",
        copy: Span::from_nanos(2_750),
        delay: [10_100, 10_900, 14_500, 19_000, 28_200],
        end_to_end: [17_000, 19_000, 27_000, 35_900, 55_000],
        broadcast: Some([20_700, 22_100, 28_000, 34_000, 48_100]),
        idle: [47, 44, 78, 107, 136],
        packets: [989, 921, 691, 525, 355],
    },
    Host {
        name: "LED",
        copy: Span::from_nanos(1_900),
        delay: [7_000, 7_500, 10_200, 13_700, 20_700],
        end_to_end: [11_800, 13_000, 18_700, 25_700, 39_500],
        broadcast: None,
        idle: [79, 81, 128, 166, 199],
        packets: [1_433, 1_327, 973, 728, 483],
    },
    Host {
        name: "PC/AT",
        copy: Span::from_nanos(410),
        delay: [3_100, 3_400, 5_100, 7_200, 11_300],
        end_to_end: [8_500, 9_700, 13_800, 19_000, 29_500],
        broadcast: Some([5_400, 5_900, 8_000, 10_900, 16_600]),
        idle: [239, 243, 333, 373, 421],
        packets: [3_221, 2_912, 1_963, 1_397, 888],
    },
];

/// How a host fared that sent one message after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// From one call to the next (figures 2, 3, 4, 6 and 7).
    pub delay: Span,
    /// From the call to the receiving program (figure 5).
    pub end_to_end: Span,
    /// Of the sender's processor, in thousandths (figure 8).
    pub idle_permille: u64,
}

impl Host {
    fn fixed(&self) -> Span {
        Span::from_micros(self.delay[0])
    }

    fn firmware(&self) -> Span {
        let slope = Span::from_micros(self.delay[4] - self.delay[0]).div_down(LENGTHS[4]);
        slope.minus(self.copy + RING_PER_OCTET)
    }

    /// A receiver's fixed work.
    fn taking(&self) -> Span {
        Span::from_nanos(self.fixed().as_nanos() * 106 / 100)
    }

    /// Sends so many messages of a length, each when the one before has left; `broadcast` reaches the sender
    /// too.
    pub fn run(&self, octets: u64, messages: u64, broadcast: bool) -> Run {
        let (copies, ring) = ((self.copy + self.firmware()) * octets, RING_PER_OCTET * octets);
        let idle_of_fixed = Span::from_nanos(self.fixed().as_nanos() * self.idle[0] / 1_000);
        // When the sender's processor is free again.
        let (mut sender, mut idle, mut way) = (Span::ZERO, Span::ZERO, Span::ZERO);
        for _ in 0..messages {
            let called = sender;
            let left = called + self.fixed() + copies + ring;
            idle += idle_of_fixed + ring;
            // End-to-end delay is that of single messages: the receiver waits for each.
            let taken = left + self.taking() + copies;
            way += taken.minus(called);
            sender = if broadcast { taken } else { left };
        }
        let delay = sender.div_down(messages);
        let idle_permille = idle.as_nanos() * 1_000 / sender.as_nanos().max(1);
        Run { delay, end_to_end: way.div_down(messages), idle_permille }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off_permille(ours: u64, printed: u64) -> u64 {
        ours.abs_diff(printed) * 1_000 / printed
    }

    /// SHIPNET-6.1-1: the points between the two that were fitted come out within 4 %.
    #[test]
    fn station_delays_between_the_fitted_points_come_out() {
        for host in HOSTS {
            for (octets, printed) in LENGTHS.into_iter().zip(host.delay) {
                let ours = host.run(octets, 100, false).delay.as_nanos() / 1_000;
                assert!(off_permille(ours, printed) <= 40, "{} {octets}: {ours} {printed}", host.name);
            }
        }
    }

    #[test]
    fn broadcasts_come_out_within_a_fifth_though_nothing_of_them_was_fitted() {
        for (host, all) in HOSTS.into_iter().filter_map(|host| Some((host, host.broadcast?))) {
            for (octets, printed) in LENGTHS.into_iter().zip(all) {
                let ours = host.run(octets, 100, true).delay.as_nanos() / 1_000;
                assert!(off_permille(ours, printed) <= 200, "{} {octets}: {ours} {printed}", host.name);
            }
        }
    }

    #[test]
    fn idle_time_grows_by_the_rings_time() {
        for host in HOSTS {
            for (octets, printed) in LENGTHS.into_iter().zip(host.idle) {
                let ours = host.run(octets, 100, false).idle_permille;
                assert!(ours.abs_diff(printed) <= 40, "{} {octets}: {ours} {printed}", host.name);
            }
        }
    }
}
