//! Every event in every state, as a table that is committed beside the machine
//! (`crates/medium/src/rether/table.md`).
//! When the machine changes on purpose, the test prints the new table; read the difference before keeping it.

use crate::rig::{ME, Rig, ms};
use rota_units::Span;
use rota_wire::bodies::StationState;
use rota_wire::{Claim, Generation, Kind, ModeNotice, Nack, Phase};

const TABLE: &str = include_str!("../../medium/src/rether/table.md");

type Event = fn(&mut Rig);

fn holding() -> Rig {
    let (mut rig, _) = Rig::master(6_250, true);
    rig.rest();
    rig
}

fn claiming() -> Rig {
    let mut rig = Rig::ring();
    rig.run(ms(700));
    rig
}

fn started(act: Event) -> Rig {
    let mut rig = Rig::plain();
    act(&mut rig);
    rig.run(ms(2));
    rig
}

fn states() -> Vec<Rig> {
    let joining_ring = || {
        let mut rig = Rig::new();
        rig.announce(1, StationState::Ring);
        rig
    };
    let initiating = || started(|rig| assert!(rig.open(6_250, true).0 > 0));
    let yielding = || started(|rig| rig.switch(1, 1));
    let (joining, plain, ring) = (Rig::new(), Rig::plain(), Rig::ring());
    vec![joining, joining_ring(), plain, initiating(), yielding(), ring, holding(), claiming()]
}

fn claim(rig: &mut Rig, counter: u32) {
    let generation = Generation { counter, station: 3 };
    let mut body = [0; 10];
    Claim { generation, mode_epoch: rig.mode_epoch }.emit(&mut body);
    rig.hear(3, Kind::Claim, &body);
}

fn mode(rig: &mut Rig, above: u32, ring: bool) {
    let mut body = [0; 5];
    let mode_epoch = rig.node.rether().mode_epoch() + above;
    ModeNotice { mode_epoch, ring }.emit(&mut body);
    rig.hear(1, Kind::Mode, &body);
}

fn events() -> Vec<(&'static str, Event)> {
    vec![
        ("nothing for 2 ms", |_| ()),
        ("Announce, plain", |rig| rig.announce(3, StationState::Plain)),
        ("Announce, joining", |rig| rig.announce(7, StationState::Joining)),
        ("Announce, ring", |rig| rig.announce(3, StationState::Ring)),
        ("Announce, leaving", |rig| rig.announce(3, StationState::Leaving)),
        ("Switch, smaller id", |rig| rig.switch(1, 1)),
        ("Switch, greater id", |rig| rig.switch(3, 1)),
        ("SwitchAck", |rig| rig.ack_switch(3)),
        ("Form without us", |rig| rig.form(&[1, 3])),
        ("Form with us", |rig| rig.form(&[1, ME, 3])),
        ("Token, newer", |rig| {
            rig.mode_epoch = rig.node.rether().mode_epoch();
            let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
            rig.hear_token(1, 5, &token);
        }),
        ("Token, stale", |rig| {
            let token = rig.token(Phase::NonRealTime, &[(1, 6_000, true)]);
            rig.hear_token(1, 0, &token);
        }),
        ("Request", |rig| rig.hear_ring(3, Kind::Request, rig.stamp, &[])),
        ("Claim, higher", |rig| claim(rig, 90)),
        ("Claim, lower", |rig| claim(rig, 0)),
        ("Nack, higher", |rig| {
            let generation = Generation { counter: 99, station: 1 };
            let mut body = [0; 10];
            Nack { generation, mode_epoch: rig.mode_epoch }.emit(&mut body);
            rig.hear(1, Kind::Nack, &body);
        }),
        ("Mode, plain and newer", |rig| mode(rig, 1, false)),
        ("Mode, ring", |rig| mode(rig, 0, true)),
        ("the card is empty", Rig::card_empty),
        ("an ordinary frame", |rig| rig.host_frame(1, 300, 0)),
    ]
}

#[test]
fn the_table_is_what_the_machine_does() {
    let mut table = String::from("# Every event in every state\n\nState after 2 ms, and the frames sent.\n");
    for at in 0..states().len() {
        let name = states()[at].state();
        table += &format!("\n## {name}\n\n| event | then | sends |\n|---|---|---|\n");
        for (event, act) in events() {
            let mut rig = states().swap_remove(at);
            rig.clear();
            act(&mut rig);
            rig.run(Span::from_millis(2));
            let sent: Vec<String> = rig.sent.iter().map(|sent| format!("{:?}", sent.header.kind)).collect();
            let sent = if sent.is_empty() { "–".to_owned() } else { sent.join(", ") };
            table += &format!("| {event} | {} | {sent} |\n", rig.state());
        }
    }
    assert!(table == TABLE, "the machine has changed; its table is now:\n{table}");
}
