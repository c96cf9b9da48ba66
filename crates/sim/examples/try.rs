use rota_sim::paper::{*, profile::*, ring::*};
use rota_units::*;
fn main(){
    println!("unloaded {}", table1::unloaded());
for ph in [table1::Phases::Spread, table1::Phases::Anywhere] {    for n in 1..=5 { let (m, all)=table1::middle(n, 3000, ph, 21); let run=&all[m];
        println!("{n}: seed {} {:?} aborted {}", m+1, (0..n).map(|s| run.late_share(s) as f64/100.0).collect::<Vec<_>>(), run.aborted);
        let mut tot: Vec<u64>=all.iter().map(|r| r.late.iter().sum::<u64>()*100/(n as u64*r.frames)).collect(); tot.sort(); println!("   totals {tot:?}"); }}
    for n in [2,3,4,5,10,20] { println!("switch {n}: {} spaced {}", switch::mean(n, Span::ZERO, 100), switch::mean(n, Span::from_micros(300), 100)); }
    let m=Machine::TESTBED;
    let ring=Ring{trt:TRT,hop:HOP,slots:vec![m.visit(MPEG_I);2],nodes:20,traffic:Traffic::Nobody,rules:Rules::AsPrinted};
    println!("fluid {:?} {:?}", mean_gap(TRT, ring.reserved(), ring.round()), ring.run(10_000,0));
    for r in [Reading::WholeEquation,Reading::WireOnly,Reading::Pipelined]{ for (l,b) in [(false,false),(false,true),(true,false),(true,true)] {
        let m=Machine{fast_link:l,fast_bus:b,reading:r}; println!("{r:?} link {l} bus {b}: {} {} {}", m.visit(MPEG_I), m.hop(), m.sessions_max(MPEG_I)); } }
    let talk=m.transmission(Octets::new(100))+HOP;
    for (name,round) in [("two 100", HOP*3+talk*2),("one 200", HOP*4+m.visit(Octets::new(200)))] {
      println!("{name} {round}: 1KB grid {} {} 2KB grid {} {}", reservable(1,KB,round,Span::from_millis(10))/KB, reservable(4,KB,round,Span::from_millis(10))/KB, reservable(1,2*KB,round,Span::from_millis(10))/KB, reservable(4,2*KB,round,Span::from_millis(10))/KB); }
    for (k,kb) in [(1u64,28u64),(4,26)] { let res=m.visit(Octets::new(kb*KB/k))*k; println!("implied {k} {kb}: {}", round_for(TRT,res,Span::from_millis(10)));
      for t in [Traffic::TwoNodes{visit:talk},Traffic::Exchange{visit:m.visit(Octets::new(200))}] { let ring=Ring{trt:TRT,hop:HOP,slots:vec![m.visit(Octets::new(kb*KB/k));k as usize],nodes:5,traffic:t,rules:Rules::AsPrinted}; println!("   {t:?} {:?} fluid {:?}", ring.run(10_000,0), mean_gap(TRT,ring.reserved(),ring.round())); } }
}
