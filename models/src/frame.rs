//! Frames on their way, as a checker compares them.

use crate::canon::{Item, Items, key_name};
use rota_proto::{Settings, Visit};
use rota_wire::{
    Announce, Claim, ClaimGrant, FrameView, Generation, Key, Kind, LinkHeader, MacAddr, ModeNotice, Nack,
    Token, verify,
};

/// One frame, with what it means.
#[derive(Clone, Debug)]
pub struct Frame {
    /// From the destination address on.
    pub octets: Vec<u8>,
    /// Its link header.
    pub header: LinkHeader,
    /// Its meaning, word by word.
    pub items: Items,
}

impl Frame {
    /// Reads what a station has sent; `keys` are those that it has.
    pub fn read(octets: &[u8], settings: &Settings, keys: &[Key]) -> Option<Self> {
        let view = FrameView::parse(octets, settings.ether_type).ok()?;
        let header = *view.header();
        let mut items = Items::default();
        items.word(u64::from(header.kind.code()) << 16 | u64::from(header.source));
        items.name(u64::from(header.incarnation));
        if header.key_epoch == 0 {
            items.frame_seq(view.source_mac(), header.seq);
        } else {
            items.stamp(header.generation, header.seq);
            items.word(u64::from(header.key_epoch));
            let key = keys.iter().find(|key| verify(&view, key));
            items.push(Item::Name(key.map_or(0, key_name)));
        }
        read_body(header.kind, view.body(), &mut items);
        Some(Self { octets: octets.to_vec(), header, items })
    }

    /// One line for people. Made when it is asked for: millions of frames are never printed.
    pub fn label(&self, settings: &Settings) -> String {
        let view = FrameView::parse(&self.octets, settings.ether_type).ok();
        let told = view.and_then(|view| told(self.header.kind, view.body())).unwrap_or_default();
        let LinkHeader { kind, source, generation: Generation { counter, station }, seq, .. } = self.header;
        let to = self.destination();
        let to = if to == MacAddr::BROADCAST { "all".to_owned() } else { format!("{}", to.0[5]) };
        let plain = self.header.key_epoch == 0;
        let name = if plain { String::new() } else { format!(" {counter}.{station}/{seq}") };
        format!("{kind:?}{name} {source}→{to}{told}")
    }

    /// Whether it goes to everybody.
    pub fn is_broadcast(&self) -> bool {
        self.octets[0] & 1 == 1
    }

    /// The address that it goes to.
    pub fn destination(&self) -> MacAddr {
        let mut mac = [0; 6];
        mac.copy_from_slice(&self.octets[..6]);
        MacAddr(mac)
    }
}

/// What a body says, for people.
fn told(kind: Kind, body: &[u8]) -> Option<String> {
    let generation = |g: Generation| format!(" for {}.{}", g.counter, g.station);
    match kind {
        Kind::Token | Kind::List => {
            let token = Token::parse(body).ok()?;
            let dead: Vec<u16> = token.dead.iter().collect();
            let dead = if dead.is_empty() { String::new() } else { format!(" dead {dead:?}") };
            Some(format!(" ({:?}{dead})", token.phase))
        }
        Kind::Claim => Some(generation(Claim::parse(body).ok()?.generation)),
        Kind::ClaimGrant => Some(generation(ClaimGrant::parse(body).ok()?.generation)),
        Kind::Nack => Some(generation(Nack::parse(body).ok()?.generation)),
        Kind::Mode => {
            let notice = ModeNotice::parse(body).ok()?;
            Some(format!(" ({} {})", if notice.ring { "ring" } else { "plain" }, notice.mode_epoch))
        }
        Kind::Announce => Some(format!(" ({:?})", Announce::parse(body).ok()?.state)),
        _ => None,
    }
}

/// A token, or a list, on its way: its residual time counts.
fn read_token(token: &Token, residual: bool, items: &mut Items) {
    items.word(u64::from(token.mode_epoch));
    items.cycle(token.cycle);
    items.word(if residual { u64::from(token.residual_ns) } else { 0 });
    items.word((token.phase as u64) << 1 | u64::from(token.rested));
    items.word(
        u64::from(token.position) << 32 | u64::from(token.next_nrt) << 16 | u64::from(token.idle_visits),
    );
    token.dead.iter().for_each(|station| items.word(u64::from(station)));
    for slot in token.slots.as_slice() {
        items.word(u64::from(slot.station) << 33 | u64::from(slot.tht_ns) << 1 | u64::from(slot.periodic));
    }
}

/// A body that cannot be read says nothing, and no station believes it.
fn read_body(kind: Kind, body: &[u8], items: &mut Items) -> Option<()> {
    match kind {
        Kind::Token | Kind::List => read_token(&Token::parse(body).ok()?, true, items),
        Kind::TokenAck | Kind::Request => {}
        Kind::Claim => {
            let claim = Claim::parse(body).ok()?;
            items.stamp(claim.generation, 0);
            items.word(u64::from(claim.mode_epoch));
        }
        Kind::ClaimGrant => {
            let grant = ClaimGrant::parse(body).ok()?;
            items.stamp(grant.generation, 0);
            items.stamp(grant.seen, grant.seen_seq);
            items.word(u64::from(grant.key_epoch));
            if let Some(list) = &grant.list {
                read_token(list, false, items);
            }
        }
        Kind::Nack => {
            let nack = Nack::parse(body).ok()?;
            items.stamp(nack.generation, 0);
            items.word(u64::from(nack.mode_epoch));
        }
        Kind::Mode => {
            let notice = ModeNotice::parse(body).ok()?;
            items.word(u64::from(notice.mode_epoch) << 1 | u64::from(notice.ring));
        }
        Kind::Announce => {
            let said = Announce::parse(body).ok()?;
            items.word(u64::from(said.mode_epoch) << 8 | said.state as u64);
            items.name(said.nonce);
            items.name(said.answers);
        }
        // Rare ones count as equal only when they are equal in every octet.
        _ => body.iter().for_each(|octet| items.word(u64::from(*octet))),
    }
    Some(())
}
