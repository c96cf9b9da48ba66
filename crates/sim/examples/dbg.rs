//! Debug.
use rota_sim::Run;
use rota_sim::sweep::Campaign;
use rota_units::Span;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let campaign = if a[1] == "product" { Campaign::Product } else { Campaign::Proven };
    let seed: u64 = a[2].parse().unwrap();
    let (from, to): (u64, u64) = (a[3].parse().unwrap(), a[4].parse().unwrap());
    let s = campaign.scenario(seed);
    println!("{:?}", s.world.ports);
    for on in 0..s.world.segments() {
        println!(
            "{on}: {:?} {} {:?}",
            s.world.topology_of(on),
            s.world.settings_of(on).link.rate.as_bps(),
            s.world.settings_of(on).trt
        );
    }
    let mut run = Run::new(seed, &s);
    for f in run.faults() {
        println!("{f:?}");
    }
    run.world.keep_log(
        Span::from_millis(from),
        Some(Span::from_millis(to)),
        Box::new(|l| {
            println!("{l}");
            true
        }),
    );
    run.advance(run.until());
    for f in run.world.across() {
        println!("{f:?}");
    }
    println!("{:?}", run.world.violations());
}
