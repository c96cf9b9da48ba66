//! The statistical class of plans, which is that of nodes.

use super::*;
use crate::plan::statistical::borne;
use rota_admission::rtip::{Messages, NodeTest};
use rota_units::Octets;

fn file() -> PlanFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/statistical.toml");
    parse(&std::fs::read_to_string(path).expect("the plan"), Path::new("")).expect("the plan")
}

/// So many copies of the first channel of the plan as are accepted, and the refusal of the next one.
fn filled<'f>(file: &'f PlanFile, wanted: &Wanted) -> (Plan<'f>, usize, Box<Refused>) {
    let mut network = Plan::new(file);
    for count in 0..200 {
        if let Err(refused) = network.decide(wanted) {
            return (network, count, refused);
        }
    }
    panic!("no cable carries two hundred")
}

/// The chance that more than `most` of `all` sources are active.
fn tail(all: usize, most: usize, active: f64) -> f64 {
    let mut of = vec![1.0f64];
    for _ in 0..all {
        let mut next = vec![0.0; of.len() + 1];
        for (at, chance) in of.iter().enumerate() {
            next[at] += chance * (1.0 - active);
            next[at + 1] += chance * active;
        }
        of = next;
    }
    of.iter().skip(most + 1).sum()
}

#[test]
fn a_cable_has_as_many_statistical_channels_as_the_chance_of_an_overload_allows() {
    let file = file();
    let wanted = &file.wanted[0];
    let (network, count, refused) = filled(&file, wanted);
    assert_eq!(refused.test, NodeTest::Overflow.name());
    let (_, guaranteed, _) = filled(&file, &Wanted { chances: Default::default(), ..wanted.clone() });
    assert!(count * 10 >= guaranteed * 13, "{count} statistical ones, {guaranteed} guaranteed ones");
    // 62 packets in a second, 4 ms apart.
    let (active, late) = (0.248, 0.01);
    let all = |count| tail(count, most_active(&network), active);
    // Behind them a few found room as guaranteed ones.
    let step = Step { station: 0, segment: 0, next: 1 };
    let by_chance = network.ledger.statistical(&step, usize::MAX).count();
    assert!(all(by_chance) <= late * active && all(by_chance + 1) > late * active, "{by_chance} of {count}");
    // A smaller message fits in the place of the one that was refused, as the refusal says.
    let [Offered::SMax(octets)] = refused.offer[..] else { panic!("{refused:?}") };
    let mut smaller = wanted.clone();
    smaller.messages.s_max = octets;
    assert!(network.clone().decide(&smaller).is_ok());
    smaller.messages.s_max = octets + Octets::new(1);
    assert!(network.clone().decide(&smaller).is_err());
}

/// So many of the plan's sources fit the cable while they are active, beside announcements (1 %) and the
/// share of ordinary traffic (5 %).
fn most_active(network: &Plan<'_>) -> usize {
    let entry = network.ledger.at(0, Span::ZERO, usize::MAX).next().expect("one stands");
    let link = &network.params[0].link;
    let cost = rota_admission::subnet::packet_cost(link, entry.ask.octets);
    let each = cost.as_nanos() as f64 / entry.ask.traffic.x_min().as_nanos() as f64;
    (0.94 / each) as usize
}

/// The packets of the plan's first channel, but guaranteed and without a pause.
fn steady(file: &PlanFile) -> Wanted {
    let mut steady = Wanted { chances: Default::default(), ..file.wanted[0].clone() };
    steady.messages.x_ave = steady.messages.x_min;
    steady.messages.interval = steady.messages.x_min;
    steady
}

/// Packets that go behind guaranteed ones are in no test of theirs; but a guaranteed channel that would break
/// a promise to the statistical class is refused.
#[test]
fn guaranteed_channels_are_not_touched_and_touch_no_promise() {
    let file = file();
    let (network, _, _) = filled(&file, &file.wanted[0]);
    let guaranteed = steady(&file);
    let refused = network.clone().decide(&guaranteed).expect_err("it would take the room of the others");
    assert!(["Overflow", "DeddSum"].contains(&refused.test), "{refused:?}");
    let mut small = guaranteed.clone();
    small.messages.s_max = Octets::new(64);
    small.messages.x_min = Span::from_millis(100);
    small.messages.x_ave = Span::from_millis(100);
    small.messages.interval = Span::from_millis(100);
    let mut few = Plan::new(&file);
    few.decide(&file.wanted[0]).expect("one has room");
    let mut in_slots = small.clone();
    let cycle = Span::from_millis(34);
    let Messages { s_max, .. } = small.messages;
    in_slots.messages = Messages { x_min: cycle, x_ave: cycle, interval: cycle, s_max };
    // A channel of the link itself has slots, and one that ends has packets there.
    small.life.end = Some(Span::from_millis(60_000));
    for (small, is_slots) in [(small, false), (in_slots, true)] {
        let plans = [few.clone(), Plan::new(&file)];
        let [beside, alone] = plans.map(|mut plan| plan.decide(&small).expect("it is small"));
        assert_eq!((beside.delay, &beside.legs), (alone.delay, &alone.legs));
        let certificate = alone.certificate.expect("it is guaranteed");
        assert_eq!(beside.certificate.as_ref(), Some(&certificate));
        assert_eq!(certificate["hops"][0]["slots"].is_object(), is_slots, "{certificate}");
    }
}

/// The chance is divided by the links that are left and the packets of a message; a segment under a token
/// needs none of it, nor does a link with partitions, or a channel for a time.
#[test]
fn the_chance_of_a_late_message_is_divided_among_links() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/wan.toml"));
    let far = "[[segment]]\nname = \"far\"\nmedium = \"link\"\nrate = \"100mbit\"\n\
               [[station]]\nname = \"end\"\neth0 = \"far\"\n";
    let text = text.expect("the plan") + far;
    let text = text.replacen("eth1 = \"right\"\n", "eth1 = \"right\"\neth2 = \"far\"\n", 1);
    let text = text.replacen("to = \"screen\"", "to = \"end\"\ntimely = \"99%\"", 1);
    let file = parse(&text, Path::new("")).expect(&text);
    let wanted = &file.wanted[0];
    let one = Plan::new(&file).decide(wanted).expect("it has room");
    let late: Vec<u64> = one.legs.iter().map(|leg| leg.late.get()).collect();
    let (whole, count) = (borne(wanted.chances).get(), one.packets.count);
    assert!(count > 1, "several packets");
    assert_eq!(late, [0, whole / (2 * count), (whole - whole / (2 * count) * count) / count]);
    assert!(one.late.get() <= whole && one.late.get() + 2 * count > whole);
    assert!(one.certificate.is_none());
    // Buffers are not overbooked: who loses nothing is guaranteed.
    let none = |wanted: &Wanted, file: &PlanFile| {
        let one = Plan::new(file).decide(wanted).expect("it has room");
        one.legs.iter().all(|leg| leg.late.get() == 0)
    };
    let mut sure = wanted.clone();
    sure.chances.loss_ppb = 0;
    assert!(none(&sure, &file));
    let mut timed = wanted.clone();
    timed.life.end = Some(Span::from_millis(60_000));
    assert!(none(&timed, &file));
    let parted = text
        + "[[partition]]\nname = \"p\"\nsegment = \"wan\"\nshare = \"10%\"\n\
                         [[partition]]\nname = \"p\"\nsegment = \"far\"\nshare = \"10%\"\n";
    let parted = parse(&parted, Path::new("")).expect("a plan");
    assert!(none(&parted.wanted[0], &parted));
}

/// A guaranteed channel that is booked counts as if it had begun, and so does one that has ended just before
/// another one begins.
#[test]
fn the_statistical_class_stands_beside_the_most_that_is_booked() {
    let file = file();
    let (_, free, _) = filled(&file, &file.wanted[0]);
    let with = |lives: &[(u64, u64)]| {
        let mut network = Plan::new(&file);
        for (start, end) in lives {
            let mut booked = steady(&file);
            booked.life.start = Span::from_millis(*start);
            booked.life.end = Some(Span::from_millis(*end));
            network.decide(&booked).expect("it has room");
        }
        (0..200).take_while(|_| network.decide(&file.wanted[0]).is_ok()).count()
    };
    let (first, alike) = ((100_000, 200_000), (100_000, 200_000));
    let (one, apart) = (with(&[first]), with(&[first, (300_000, 400_000)]));
    // The first one is charged for 1.05 s behind its end, and counts for 200 ms more.
    let (together, near) = (with(&[first, alike]), with(&[first, (201_150, 300_000)]));
    assert!(one < free && together < one, "{free} {one} {together}");
    assert_eq!((apart, near), (one, together));
}

/// A request with a chance was refused on slow cables where the same one without a chance was accepted.
#[test]
fn a_hop_without_room_for_a_chance_is_guaranteed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/statistical.toml");
    let text = std::fs::read_to_string(path).expect("the plan").replacen("20mbit", "3mbit", 1);
    let text = text.replacen("xmin = \"4ms\"", "xmin = \"2ms\"", 1);
    let file = parse(&text.replacen("\"50ms\"", "\"400ms\"", 1), Path::new("")).expect("a plan");
    let with_chance = &file.wanted[0];
    // On one link a channel without a chance has slots; with a time its packets are served.
    let mut without = Wanted { chances: Default::default(), ..with_chance.clone() };
    without.life.end = Some(Span::from_millis(1_000_000));
    let [with, without] = [with_chance, &without].map(|of| Plan::new(&file).decide(of).expect("it fits"));
    assert_eq!((with.class(), with.delay), (Class::Guaranteed, without.delay));
    assert!(with.certificate.is_some());
}

#[test]
fn probabilities_that_make_no_sense_name_line_and_field() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/statistical.toml");
    let text = std::fs::read_to_string(path).expect("the plan");
    let with = |new: &str| {
        parse(&text.replacen("timely = \"99%\"", new, 1), Path::new("")).map_err(|(_, sentence)| sentence)
    };
    for (new, sentence) in [
        ("timely = \"0%\"", "timely: '0%' is no probability"),
        ("timely = \"1.1\"", "timely: '1.1' is no probability"),
        ("no-loss = \"0.9\"", "channel.no-loss: needs timely"),
        ("timely = \"0.9\"\nlate = 1", "late: unknown field"),
    ] {
        let said = with(new).expect_err(new);
        assert!(said.contains(sentence), "{new}: {said}");
    }
    assert!(with("timely = 1").expect("sure").wanted[0].chances.is_guaranteed());
    let of = with("timely = 0.9\nno-loss = \"99.9%\"").expect("both").wanted[0].chances;
    assert_eq!((of.late_ppb, of.loss_ppb), (100_000_000, 1_000_000));
    let tree = text.replacen("to = \"b\"", "to = [\"b\"]", 1);
    let said = parse(&tree, Path::new("")).expect_err("a tree").1;
    assert!(said.starts_with("channel.timely: a plan has channels to several"), "{said}");
}
