use rota_sim::Run;
use rota_sim::sweep::Campaign;
use rota_units::Span;
fn camp() -> Campaign {
    if std::env::var("PRODUCT").is_ok() { Campaign::Product } else { Campaign::Proven }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let seed: u64 = a[1].parse().unwrap();
    let (from, to): (u64, u64) = (a[2].parse().unwrap(), a[3].parse().unwrap());
    let scenario = camp().scenario(seed);
    let mut run = Run::new(seed, &scenario);
    let begin = run.world.now();
    for f in run.faults() {
        println!("-- {} {} {:.100}", f.at, f.lasts, format!("{:?}", f.fault));
    }
    let mut old = String::new();
    let mut t = from * 1_000_000;
    while t <= to * 1_000_000 {
        run.advance(begin + Span::from_nanos(t));
        let mut s = String::new();
        for (i, h) in run.world.hosts.iter().enumerate() {
            match &h.node {
                Some(n) => {
                    s += &format!(
                        "  h{i} st{} {:?} e{} g{}@{} list {:?}\n",
                        n.link().station(),
                        n.link().mode(),
                        n.link().mode_epoch(),
                        n.link().generation(),
                        0,
                        n.link().list().map(|l| (
                            l.slots.as_slice().iter().map(|s| s.station).collect::<Vec<_>>(),
                            l.dead.iter().collect::<Vec<_>>(),
                        ))
                    )
                }
                None => s += &format!("  h{i} dead\n"),
            }
        }
        for (i, f) in run.world.flows().iter().enumerate() {
            s += &format!("  f{i} {}->{} {:?}", f.from, f.to, f.state);
        }
        if s != old {
            println!("@{:.1}\n{s}", run.world.now().as_nanos() as f64 / 1e6);
            old = s;
        }
        t += 500_000;
    }
}
