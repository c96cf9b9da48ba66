use rota_sim::Run;
use rota_sim::sweep::Campaign;
use rota_units::Span;
fn camp() -> Campaign {
    if std::env::var("PRODUCT").is_ok() { Campaign::Product } else { Campaign::Proven }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let seed: u64 = a[1].parse().unwrap();
    let upto: u64 = a[2].parse().unwrap();
    let only: usize = a[3].parse().unwrap();
    let scenario = camp().scenario(seed);
    let mut run = Run::new(seed, &scenario);
    let begin = run.world.now();
    for f in run.faults() {
        println!("-- {} {} {:.60}", f.at, f.lasts, format!("{:?}", f.fault));
    }
    let mut old = String::new();
    let mut t = 0;
    while t <= upto {
        run.advance(begin + Span::from_nanos(t));
        let fl = &run.world.flows();
        if fl.len() > only {
            let f = &fl[only];
            let l = run.world.hosts[f.from].node.as_ref().map(|n| {
                (
                    n.link().station(),
                    n.link().list().map(|l| {
                        let mut off = 0u64;
                        l.slots
                            .as_slice()
                            .iter()
                            .map(|s| {
                                let o = off;
                                off += u64::from(s.tht_ns);
                                format!(
                                    "{}{}@{}+{}",
                                    s.station,
                                    if s.periodic { "p" } else { "n" },
                                    o / 1000,
                                    s.tht_ns / 1000
                                )
                            })
                            .collect::<Vec<_>>()
                            .join(" ")
                    }),
                )
            });
            let s = format!(
                "flow {}->{} {:?} lab {:?} unit {} per {} bound {} off {} tht {} wish | {:?}",
                f.from,
                f.to,
                f.state,
                f.label,
                f.contract.unit_octets_max,
                f.contract.period,
                f.contract.bound,
                f.contract.offset,
                f.contract.tht,
                l
            );
            if s != old {
                println!("@{} {s}", run.world.now().as_nanos());
                old = s;
            }
        }
        t += 200_000;
    }
}
