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
    run.world.keep_log();
    let mut t = us(&a[2]);
    let mut old: Vec<String> = vec![];
    while t <= us(&a[3]) {
        run.advance(begin + t);
        for l in run.world.take_log() {
            println!("{l}");
        }
        let s: Vec<String> = run
            .world
            .hosts
            .iter()
            .enumerate()
            .map(|(i, h)| {
                h.node.as_ref().map_or(format!("h{i} dead"), |n| {
                    let d = format!("{:#?}", n.link());
                    let m = d
                        .find("\n    mode: ")
                        .map(|p| {
                            d[p + 11..]
                                .split("\n    mode_epoch")
                                .next()
                                .unwrap()
                                .split_whitespace()
                                .collect::<Vec<_>>()
                                .join(" ")
                        })
                        .unwrap_or_default();
                    let m = m.chars().take(110).collect::<String>();
                    format!("h{i} st{} e{} {m}", n.link().station(), n.link().mode_epoch())
                })
            })
            .collect();
        for (i, l) in s.iter().enumerate() {
            if old.get(i).map(|o| o.split("t=").next()) != Some(l.split("t=").next()) {
                println!("      ==== {l}");
            }
        }
        old = s;
        t += Span::from_nanos(50_000);
    }
}
