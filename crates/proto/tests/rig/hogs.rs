//! Cycles in which a station keeps an audited token (decision 016).

use super::{ME, Rig, TRT, mac, ms};
use rota_units::Span;
use rota_wire::{Kind, Phase, Struck, Token};

const SLOTS: &[(u16, u32, bool)] = &[(1, 6_000, true), (3, 6_000, true)];
/// When the first slot is passed on.
pub const GIVEN: Span = Span::from_millis(5);

pub fn token(rig: &Rig, cycle: u32, phase: Phase, position: u16, spent: Span) -> Token {
    let residual_ns = TRT.minus(spent).as_nanos() as u32;
    Token { cycle, position, residual_ns, next_nrt: ME, ..rig.token(phase, SLOTS) }
}

/// The cycle master begins a cycle.
pub fn begin(rig: &mut Rig, cycle: u32, change: impl FnOnce(&mut Token)) {
    let mut list = token(rig, cycle, Phase::RealTime, 0, Span::ZERO);
    change(&mut list);
    let mut body = [0; 1_400];
    let length = list.emit(&mut body);
    rig.stamp.2 += 1;
    rig.hear_ring(1, Kind::List, rig.stamp, &body[..length]);
}

/// An audited token between two others, or to this station, so many hops newer.
pub fn hop(rig: &mut Rig, (from, to): (u16, u16), hops: u64, token: &Token) {
    let audited = Token { audit: Some(mac(to)), ..*token };
    rig.hear_token(from, hops, &audited);
}

/// One cycle in which station 3 is given its slot by that token; then comes the rest.
pub fn given(rig: &mut Rig, cycle: u32, rest: impl FnOnce(&mut Rig, &Token)) {
    begin(rig, cycle, |_| ());
    rig.run(GIVEN);
    let given = token(rig, cycle, Phase::RealTime, 1, GIVEN);
    hop(rig, (1, 3), 1, &given);
    rest(rig, &given);
    rig.run(ms(3));
}

/// One cycle in which station 3 keeps the token for so long, and says that it took 2 ms.
pub fn cycle(rig: &mut Rig, cycle: u32, kept: Span) {
    given(rig, cycle, |rig, _| {
        rig.run(kept);
        let said = token(rig, cycle, Phase::Home, 2, ms(8));
        hop(rig, (3, 1), 1, &said);
    });
}

/// The token comes to this station in an ordinary round of that cycle.
pub fn visit(rig: &mut Rig, cycle: u32) {
    begin(rig, cycle, |_| ());
    rig.run(ms(2));
    rig.clear();
    let here = token(rig, cycle, Phase::NonRealTime, 2, ms(2));
    rig.hear_token(1, 1, &here);
    rig.run(ms(3));
}

/// The first strike that the node has told.
pub fn struck(rig: &Rig) -> Option<Struck> {
    rig.sent.iter().filter(|sent| sent.header.kind == Kind::List).find_map(|sent| {
        let list = Token::parse(&sent.body).expect("sound");
        assert!(list.struck.is_none_or(|struck| list.dead.contains(struck.station)));
        list.struck
    })
}
