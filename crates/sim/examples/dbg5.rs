use rota_sim::Run;
use rota_sim::sweep::Campaign;
use rota_units::Span;
fn camp() -> Campaign {
    if std::env::var("PRODUCT").is_ok() { Campaign::Product } else { Campaign::Proven }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let seed: u64 = a[1].parse().unwrap();
    let us = |s: &str| Span::from_nanos((s.parse::<f64>().unwrap() * 1e6) as u64);
    let scenario = camp().scenario(seed);
    let mut run = Run::new(seed, &scenario);
    let begin = run.world.now();
    run.advance(begin + us(&a[2]));
    let h: usize = a[3].parse().unwrap();
    println!("{:#?}", run.world.hosts[h].node.as_ref().unwrap().link());
}
