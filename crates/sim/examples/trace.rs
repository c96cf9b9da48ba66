use rota_sim::{Run, sweep};
use rota_units::{Instant, Span};
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).filter_map(|t| t.parse().ok()).collect();
    let scenario = sweep::campaign(a[0]);
    let mut run = Run::new(a[0], &scenario);
    run.advance(Instant::from_nanos(a[1] * 1_000_000));
    run.world.keep_log();
    let mut at = Instant::from_nanos(a[1] * 1_000_000);
    for (i, f) in run.world.flows().iter().enumerate() {
        println!("flow {i} {f:?}");
    }
    while at < Instant::from_nanos(a[2] * 1_000_000) {
        at = at + Span::from_millis(1);
        run.advance(at);
        for line in run.world.take_log() {
            println!("{line}");
        }
        for v in run.world.violations() {
            if v.at + Span::from_millis(1) > at {
                println!("!!! {v:?}");
            }
        }
    }
    for (i, h) in run.world.hosts.iter().enumerate() {
        println!(
            "host {i} boots {} {:?} station {:?} events {:?}",
            h.boots,
            h.node.as_ref().map(|n| n.link().state_name()),
            h.node.as_ref().map(|n| n.link().station()),
            h.events.iter().rev().take(6).collect::<Vec<_>>()
        );
    }
    for (i, f) in run.world.flows().iter().enumerate() {
        println!("flow {i} from {} to {} {:?} since {:?} {:?}", f.from, f.to, f.state, f.since, f.channel);
    }
    println!("silent {:?}", run.world.windows);
}
