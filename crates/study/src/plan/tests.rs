use super::*;
use crate::certificate::document::Document;
use crate::plan::file::parse;

mod groups;
mod nodes;
mod statistical;
mod suite2;

fn plan() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/wan.toml");
    std::fs::read_to_string(path).expect("the plan is part of the repository")
}

/// The certificate of a channel of that plan, by its place.
pub(crate) fn certificate(at: usize) -> String {
    let accepted = decided(&plan()).swap_remove(at).expect("it is accepted");
    format!("{:#}", accepted.certificate.expect("it has one"))
}

/// The answer to each channel of a plan's text.
fn decided(text: &str) -> Vec<Result<Accepted, Box<Refused>>> {
    let file = parse(text, Path::new("")).expect(text);
    let answers = decide(&file).0.into_iter().map(|one| match one.answer {
        Answer::Accepted(accepted) => Ok(accepted),
        Answer::Refused(refused) => Err(refused),
        Answer::Left(_) => panic!("this plan has none that leaves"),
    });
    answers.collect()
}

#[test]
fn the_plan_of_the_repository_is_decided_and_each_certificate_holds() {
    let all = decided(&plan());
    let accepted: Vec<bool> = all.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, true, false]);
    for one in all.iter().flatten() {
        let document = Document::read(&one.certificate.as_ref().expect("no levels").to_string())
            .expect("its own document");
        assert_eq!(document.check(), Ok(()));
        assert_eq!(document.promise().delay, one.delay.as_nanos());
        assert_eq!(document.hops(), one.legs.len());
    }
    let refused = all[2].as_ref().expect_err("the cable is full");
    assert_eq!((refused.test, refused.step.map(|step| step.segment)), ("Load", Some(1)));
}

/// The offer of a refusal fits, and one octet or nanosecond better does not.
#[test]
fn the_offer_of_a_refusal_fits_and_is_the_nearest() {
    let [Offered::SMax(octets)] = decided(&plan())[2].as_ref().expect_err("full").offer[..] else {
        panic!("a smaller message fits")
    };
    let with = |octets: u64| {
        let text = plan();
        let at = text.rfind("smax = \"7200B\"").expect("of the last channel");
        let last = text[at..].replacen("7200B", &format!("{octets}B"), 1);
        decided(&format!("{}{last}", &text[..at])).pop().expect("three channels").is_ok()
    };
    assert!(with(octets.get()) && !with(octets.get() + 1));
    let short = plan().replacen("delay = \"400ms\"", "delay = \"100ms\"", 1);
    let [Offered::Delay(delay)] = decided(&short)[0].as_ref().expect_err("too short").offer[..] else {
        panic!("a longer delay fits")
    };
    let with = |delay: Span| {
        let text = plan().replacen("delay = \"400ms\"", &format!("delay = \"{}ns\"", delay.as_nanos()), 1);
        decided(&text)[0].is_ok()
    };
    assert!(with(delay) && !with(delay.minus(Span::from_nanos(1))));
}

/// Two links of 1 Gbit/s with a gateway between them, which has room for 16,384 packets of a channel.
fn over_a_gateway(xmin: &str, smax: &str, delay: &str) -> Result<Accepted, Box<Refused>> {
    let link = |name| format!("[[segment]]\nname = \"{name}\"\nmedium = \"link\"\nrate = \"1gbit\"\n");
    let host = |name, on| format!("[[station]]\nname = \"{name}\"\neth0 = \"{on}\"\n");
    let gateway = host("g", "l") + "eth1 = \"m\"\n";
    let channel = format!("xmin = \"{xmin}\"\nsmax = \"{smax}\"\ndelay = \"{delay}\"\n");
    let channel = format!("[[channel]]\nname = \"c\"\nfrom = \"a\"\nto = \"b\"\n{channel}");
    let text = link("l") + &link("m") + &host("a", "l") + &gateway + &host("b", "m") + &channel;
    decided(&text).remove(0)
}

/// Nodes refused with `PortBuffer` what a plan had accepted: too many packets may wait within 2 s.
#[test]
fn a_plan_counts_the_buffers_of_gateways_as_nodes_do() {
    let relaxed = |xmin: &str| over_a_gateway(xmin, "5B", "2s").expect("a part of 2 s has room").delay;
    // Each link gives 200 ms at most.
    assert!(relaxed("2ms") > Span::from_millis(400), "1,000 packets may wait");
    let shorter = relaxed("10us");
    assert!(shorter < Span::from_millis(200), "16,384 packets come in 164 ms: {shorter}");
}

/// The route through the idle segment is longer, and has room.
#[test]
fn a_channel_that_the_shortest_route_refuses_takes_another_one() {
    let text = plan()
        + "[[segment]]\nname = \"spare\"\nmedium = \"link\"\nrate = \"100mbit\"\n"
        + "[[segment]]\nname = \"spare2\"\nmedium = \"link\"\nrate = \"100mbit\"\n"
        + "[[station]]\nname = \"hill\"\neth0 = \"spare\"\neth1 = \"spare2\"\n";
    let text = text.replacen("eth1 = \"wan\"\n", "eth1 = \"wan\"\neth2 = \"spare\"\n", 1);
    let text = text.replacen("eth1 = \"right\"\n", "eth1 = \"right\"\neth2 = \"spare2\"\n", 1);
    let all = decided(&text);
    let ways: Vec<usize> = all.iter().flatten().map(|one| one.legs.len()).collect();
    assert_eq!(ways, [3, 3, 4], "{all:?}");
}

#[test]
fn bad_plans_name_line_and_field() {
    let wrong = |old: &str, new: &str| {
        assert!(plan().contains(old), "{old}");
        parse(&plan().replacen(old, new, 1), Path::new("")).expect_err(new).1
    };
    let all = [
        ("xmin = \"90ms\"", "xmin = \"0ms\"", "channel.xmin: xmin is zero"),
        ("xmin = \"90ms\"", "xmin = \"90ms\"\nxave = \"80ms\"", "channel.xave: xave is shorter than xmin"),
        (
            "xmin = \"90ms\"",
            "xmin = \"90ms\"\ninterval = \"80ms\"",
            "channel.interval: the interval is shorter",
        ),
        ("xmin = \"90ms\"", "xmin = \"1001s\"", "channel.xmin: xmin is longer than 1000"),
        ("xmin = \"90ms\"", "xmin = \"90ms\"\nxave = \"1001s\"", "channel.xave: xave is longer than 1000"),
        (
            "xmin = \"90ms\"",
            "xmin = \"90ms\"\nxave = \"2s\"\ninterval = \"1001s\"",
            "channel.interval: the interval is longer than 1000 s",
        ),
        ("delay = \"120ms\"", "delay = \"9999999999s\"", "channel.delay: is longer than a year"),
        ("jitter = \"100ms\"", "jitter = \"9999999999s\"", "channel.jitter: is longer than a year"),
        ("jitter = \"100ms\"", "jitter = \"0ms\"", "channel.jitter: a jitter of 0 cannot be kept"),
        ("smax = \"160B\"", "smax = \"0B\"", "channel.smax: smax is zero"),
        ("delay = \"120ms\"", "delay = \"0ms\"", "channel.delay: no path takes no time"),
        ("to = \"screen\"", "to = \"nobody\"", "channel.to: there is no station 'nobody'; there are camera,"),
        ("to = \"screen\"", "to = \"camera\"", "channel.to: a channel leads to another station"),
        ("name = \"voice\"", "name = \"video\"", "channel.name: 'video' names two channels"),
        ("name = \"voice\"", "name = \"../voice\"", "channel.name: write 1 to 64"),
        ("jitter = \"100ms\"", "jiter = \"60ms\"", "jiter: unknown field"),
        ("delay = \"120ms\"\n", "", "channel.delay: is missing"),
        ("eth0 = \"wan\"", "eth0 = \"won\"", "station.eth0: there is no segment 'won'"),
    ];
    for (old, new, sentence) in all {
        let said = wrong(old, new);
        assert!(said.starts_with(sentence), "{new}: {said}");
    }
}

/// A delay of 317 years was refused by the checker, with no node, test or offer.
#[test]
fn a_goal_of_a_year_has_a_certificate() {
    let year = "31536000s";
    let text = plan().replacen("delay = \"120ms\"", &format!("delay = \"{year}\"\nstart = \"{year}\""), 1);
    let text = text.replacen("jitter = \"100ms\"", &format!("jitter = \"{year}\""), 1);
    let accepted: Vec<bool> = decided(&text).iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, true, false]);
}

/// The shortest period stood in the sentence, and the offer was empty.
#[test]
fn a_refused_period_has_an_offer_that_is_accepted() {
    let with = |x_min: &str, more: &str| {
        let head = "[[segment]]\nname = \"s\"\nmedium = \"switch\"\nrate = \"10mbit\"\n\
                    [[station]]\nname = \"a\"\neth0 = \"s\"\n[[station]]\nname = \"b\"\neth0 = \"s\"\n";
        let channel = format!("xmin = \"{x_min}\"\nsmax = \"100B\"\n{more}");
        decided(&format!("{head}[[channel]]\nname = \"c\"\nfrom = \"a\"\nto = \"b\"\n{channel}")).remove(0)
    };
    let long = "delay = \"10s\"\n";
    for (x_min, more) in
        [("1us", long), ("200s", long), ("1us", "delay = \"1ms\"\n"), ("200s", "delay = \"1ms\"\n")]
    {
        let refused = with(x_min, more).expect_err("no such period");
        assert_eq!(refused.test, "Period");
        let mut asked = ("".to_owned(), more.to_owned());
        for offered in &refused.offer {
            match offered {
                Offered::XMin(nearest) => asked.0 = format!("{}ns", nearest.as_nanos()),
                Offered::Delay(longer) => asked.1 = format!("delay = \"{}ns\"\n", longer.as_nanos()),
                Offered::XAve(_) | Offered::Interval(_) => {}
                other => panic!("{x_min}: {other:?}"),
            }
        }
        assert!(!asked.0.is_empty(), "{x_min}: {refused:?}");
        assert!(with(&asked.0, &asked.1).is_ok(), "{x_min}: {asked:?}");
    }
}

#[test]
fn stations_without_a_way_are_told_so() {
    let text = plan().replacen("eth0 = \"wan\"\neth1 = \"right\"", "eth0 = \"right\"", 1);
    let text = text.replacen(
        "name = \"camera\"\neth0 = \"left\"\n",
        "name = \"camera\"\neth0 = \"left\"\neth1 = \"wan\"\n",
        1,
    );
    let refused = decided(&text)[0].as_ref().expect_err("cut").why.clone();
    assert_eq!(refused, "no way of 8 hops or fewer leads from camera to screen");
}

#[test]
fn the_corpus_of_plans_replays() {
    crate::scenario::tests::replay("fuzz/corpus/plan", file::fuzz_plan);
}

#[test]
fn an_offer_is_told_in_the_largest_unit_that_says_it_exactly() {
    let said = [298_600_000_000, 3_000_000_000, 42_000, 33_333_333, 0];
    let said = said.map(|ns| exactly(Span::from_nanos(ns)));
    assert_eq!(said, ["298600ms", "3s", "42us", "33333333ns", "0ns"]);
}
