use rota_sim::Run;
use rota_sim::sweep::Campaign;
use rota_units::Span;
fn camp() -> Campaign {
    if std::env::var("PRODUCT").is_ok() { Campaign::Product } else { Campaign::Proven }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let seed: u64 = a[1].parse().unwrap();
    let from: u64 = a[2].parse::<u64>().unwrap();
    let to: u64 = a[3].parse().unwrap();
    let step: u64 = a[4].parse().unwrap();
    let who: Option<usize> = a.get(5).map(|w| w.parse().unwrap());
    let scenario = camp().scenario(seed);

    println!("{:?}", scenario.world.settings);
    let mut run = Run::new(seed, &scenario);
    let begin = run.world.now();
    for f in run.faults() {
        println!("-- {} {} {:?}", f.at, f.lasts, f.fault);
    }
    run.advance(begin + Span::from_nanos(from));
    let mut t = from;
    while t <= to {
        run.advance(begin + Span::from_nanos(t));
        println!("@{t} world {}", run.world.now().as_nanos());
        for (i, h) in run.world.hosts.iter().enumerate() {
            if who.is_some_and(|w| w != i) {
                continue;
            }
            if let Some(n) = &h.node {
                println!(
                    "  host {i} st {} {:?} epoch {} gen {} list {:?}",
                    n.link().station(),
                    n.link().mode(),
                    n.link().mode_epoch(),
                    n.link().generation(),
                    n.link().list().map(|l| format!(
                        "slots {:?} dead {:?} cycle {}",
                        l.slots.as_slice(),
                        l.dead,
                        l.cycle
                    ))
                );
            } else {
                println!("  host {i} dead");
            }
            if std::env::var("DUMP").is_ok() {
                if let Some(n) = &h.node {
                    println!("{:#?}", n.link());
                }
            }
        }
        for (i, f) in run.world.flows().iter().enumerate() {
            println!(
                "  flow {i} {}->{} {:?} label {:?} contract {:?}",
                f.from, f.to, f.state, f.label, f.contract
            );
        }
        t += step;
    }
}
