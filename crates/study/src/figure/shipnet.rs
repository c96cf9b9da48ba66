//! Figures 2 to 8 of the SHIPNET paper (1988): its hosts in simulated time beside its printed points.

use super::chart::Figure;
use crate::plot::{Axis, Look, Panel, Printed, Series};
use rota_sim::paper::shipnet::{HOSTS, Host, LENGTHS, Run};

/// Messages behind each point; the model is exact, so more change nothing.
const MESSAGES: u64 = 100;
const FITTED: &str = "Fitted: the fixed work from the empty message, the firmware's copy from 2,000 octets, \
                      the idle share from the empty message; printed in the text: the host's copy and the \
                      ring's 4 Mbit/s.";

/// One of the paper's curves: which number of a run it shows, and what was printed.
struct Curve {
    broadcast: bool,
    ours: fn(u64, &Run) -> f64,
    printed: fn(&Host) -> Option<[f64; 5]>,
}

fn per_second(run: &Run) -> f64 {
    1e9 / run.delay.as_nanos().max(1) as f64
}

fn kbit(octets: u64, run: &Run) -> f64 {
    per_second(run) * octets as f64 * 8.0 / 1e3
}

fn ms(micros: [u64; 5]) -> [f64; 5] {
    micros.map(|us| us as f64 / 1e3)
}

/// Kilobits a second at so many milliseconds a message.
fn load(delays: [u64; 5]) -> [f64; 5] {
    let mut at = LENGTHS.iter();
    delays.map(|us| *at.next().unwrap_or(&0) as f64 * 8e3 / us as f64)
}

/// Printed points, ours as lines, and the mean and worst distance of those that were not fitted.
fn figure(key: &'static str, title: &str, y: (&str, f64), curves: &[(&str, Curve)], why: &str) -> Figure {
    let x = Axis::linear("message length, octets", 2_000.0);
    let mut panel = Panel::new("", x, Axis::linear(y.0, y.1));
    let (mut off, mut worst): (Vec<f64>, (f64, String)) = (Vec::new(), (0.0, String::new()));
    let mut colour = 0;
    for (name, curve) in curves {
        for host in HOSTS {
            let Some(printed) = (curve.printed)(&host) else { continue };
            let all = LENGTHS.map(|octets| (octets, host.run(octets, MESSAGES, curve.broadcast)));
            let ours = all.map(|(octets, run)| (curve.ours)(octets, &run));
            let at = |values: [f64; 5]| -> Vec<(f64, f64)> {
                LENGTHS.iter().map(|octets| *octets as f64).zip(values).collect()
            };
            let label = format!("{}{name}", host.name);
            panel.series.push(Series::new(format!("{label}, simulated"), colour, Look::Line, at(ours)));
            panel.series.push(Series::new(format!("{label}, printed"), colour, Look::Dots, at(printed)));
            panel.printed.push(Printed {
                at: (2_000.0, printed[4]),
                words: format!("{}", (printed[4] * 10.0).round() / 10.0),
                left: true,
            });
            for ((octets, ours), printed) in LENGTHS.into_iter().zip(ours).zip(printed) {
                let distance = if printed == 0.0 { 0.0 } else { (ours - printed) / printed * 100.0 };
                off.push(distance.abs());
                if distance.abs() > worst.0 {
                    worst = (distance.abs(), format!("{label} at {octets} octets, {distance:+.1} %"));
                }
            }
            colour += 1;
        }
    }
    let mean = off.iter().sum::<f64>() / off.len().max(1) as f64;
    Figure {
        key,
        title: title.into(),
        subtitle: "hosts of 1988 (8088 at 4.77 and 7.16 MHz, 80286 at 8 MHz), a token ring of 4 Mbit/s, one \
                   message at a time; simulated"
            .into(),
        panels: vec![panel],
        verdict: format!("Off by {mean:.1} % in the mean, at worst {}. {why} {FITTED}", worst.1),
    }
}

const fn directed(ours: fn(u64, &Run) -> f64, printed: fn(&Host) -> Option<[f64; 5]>) -> Curve {
    Curve { broadcast: false, ours, printed }
}

/// Figures 2, 3 and 4: what a transmitter can offer.
pub fn fig2() -> Figure {
    let curve =
        directed(|_, run| per_second(run), |host| Some(host.packets.map(|tenths| tenths as f64 / 10.0)));
    let y = ("transmitter load, packets/s", 350.0);
    figure("shipnet-fig2", "SHIPNET, figure 2: packets a second against their size", y, &[("", curve)], "")
}

/// See [`fig2`].
pub fn fig3() -> Figure {
    let printed = |host: &Host| {
        let mut at = LENGTHS.iter();
        Some(host.packets.map(|tenths| tenths as f64 * *at.next().unwrap_or(&0) as f64 * 8.0 / 1e4))
    };
    let why = "The printed points are figure 2's times the length, as in the paper.";
    let y = ("transmitter load, kbit/s", 1_500.0);
    figure(
        "shipnet-fig3",
        "SHIPNET, figure 3: load against packet size",
        y,
        &[("", directed(kbit, printed))],
        why,
    )
}

/// See [`fig2`].
pub fn fig4() -> Figure {
    let curve = directed(|_, run| super::ms(run.delay), |host| Some(ms(host.delay)));
    let y = ("transmitting station delay, ms", 30.0);
    figure("shipnet-fig4", "SHIPNET, figure 4: from one message to the next", y, &[("", curve)], "")
}

/// From program to program.
pub fn fig5() -> Figure {
    let curve = directed(|_, run| super::ms(run.end_to_end), |host| Some(ms(host.end_to_end)));
    let why = "Nothing of this figure was fitted: a receiver is taken to be 6 % slower than a transmitter, \
               as section 6.2 says, and to copy as fast. The printed receivers take longer for an octet (the \
               PC/AT 6.4 us where it sends in 4.1), which the paper does not explain.";
    let y = ("end-to-end delay, ms", 60.0);
    figure("shipnet-fig5", "SHIPNET, figure 5: end-to-end delay", y, &[("", curve)], why)
}

const BROADCAST_WHY: &str = "Nothing of the broadcasts was fitted: the sender's processor also receives its \
                             own message, 6 % slower than it sends.";

/// Broadcast against directed messages, as load and as delay.
pub fn fig6() -> Figure {
    let curves = [
        (" directed", directed(kbit, |host| host.broadcast.map(|_| load(host.delay)))),
        (" broadcast", Curve { broadcast: true, ours: kbit, printed: |host| host.broadcast.map(load) }),
    ];
    let why = format!("{BROADCAST_WHY} The printed points are computed from figure 7, which says the same.");
    let y = ("load, kbit/s", 1_500.0);
    figure("shipnet-fig6", "SHIPNET, figure 6: load of broadcasts and of directed messages", y, &curves, &why)
}

/// See [`fig6`].
pub fn fig7() -> Figure {
    fn delay(_: u64, run: &Run) -> f64 {
        super::ms(run.delay)
    }
    let curves = [
        (" directed", directed(delay, |host| host.broadcast.map(|_| ms(host.delay)))),
        (" broadcast", Curve { broadcast: true, ours: delay, printed: |host| host.broadcast.map(ms) }),
    ];
    let y = ("delay, ms", 55.0);
    figure(
        "shipnet-fig7",
        "SHIPNET, figure 7: delay of broadcasts and of directed messages",
        y,
        &curves,
        BROADCAST_WHY,
    )
}

/// What a transmitter leaves of its processor.
pub fn fig8() -> Figure {
    let curve = directed(
        |_, run| run.idle_permille as f64 / 10.0,
        |host| Some(host.idle.map(|tenths| tenths as f64 / 10.0)),
    );
    let why = "A transmitter has nothing to do while the ring sends, which is what makes idle time grow. The \
               paper's receivers (2.4 % and less on the PC, 4.7 % on the LED) are the slowest stage and \
               hardly ever idle; they are not drawn.";
    figure(
        "shipnet-fig8",
        "SHIPNET, figure 8: idle time of a transmitter",
        ("idle time, %", 45.0),
        &[("", curve)],
        why,
    )
}
