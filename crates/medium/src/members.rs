//! Who is on the segment.

use crate::door::StationId;
use crate::leaps::{Leaps, Line};
use rota_contract::NodeId;
use rota_units::{Instant, Span};
use rota_wire::{Announce, FormMember, Load, MAX_STATIONS, MacAddr, StationSet};

/// Most stations of a ring, this one included: what the parts of a Form may name.
pub const STATIONS_MAX: u16 = 200;

/// Stations that may have been heard once and not again: whole segments boot at a time, and floods of
/// invented ones do not fill the table.
const ONCE_HEARD_MAX: usize = 160;

/// The refused frames of one sender since its newest one, and the question to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behind {
    /// The last refused counter.
    pub(crate) last: u64,
    /// How many of the last ones rose.
    pub(crate) rising: u8,
    /// The open challenge; 0: none.
    pub(crate) challenge: u64,
    /// When it may be asked again.
    pub(crate) next: Instant,
    /// The greatest counter of its own questions that were answered.
    pub(crate) asked: u64,
    /// When a question of it that is not above that counter is answered again.
    pub(crate) again: Instant,
}

impl Behind {
    /// A newer frame has come.
    pub(crate) fn reset(&mut self) {
        (self.last, self.rising, self.challenge) = (0, 0, 0);
    }

    /// Another boot of it begins.
    pub(crate) fn begin(&mut self) {
        self.reset();
        self.asked = 0;
    }
}

/// A station that has been heard.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its place, 0 while it has none.
    pub station: StationId,
    /// Its address.
    pub mac: MacAddr,
    /// Its boot.
    pub incarnation: u32,
    /// What it said of itself.
    pub announce: Announce,
    /// When it was last heard.
    pub heard: Instant,
    /// It was heard again after its first frame, which any station can invent.
    pub(crate) again: bool,
    /// What was heard of it and proven.
    pub received: Load,
    /// Its part of the ring's key.
    pub(crate) nonce: u64,
    /// Its last frame counter under the segment key: what does not exceed it is a replay.
    pub(crate) frame_seq: u64,
    /// The leaps of that counter.
    pub(crate) leaps: Leaps,
    /// The boot before, and its frame counter: what is heard of it and not newer was played again.
    pub(crate) before: Line,
    /// When the last will of this boot was heard: it counts once.
    pub(crate) willed: Option<Instant>,
    /// Its frames that were refused for their counter.
    pub(crate) behind: Behind,
    /// It was known here when the last ring of this station ended, and may have missed that end.
    pub(crate) knew_ended: bool,
}

impl Member {
    /// It is heard as this boot, with this frame counter. Within one boot the counter never falls, or old
    /// frames would count as new again.
    fn begin(&mut self, now: Instant, incarnation: u32, seq: u64) {
        if self.incarnation != incarnation {
            let over = Line { incarnation: self.incarnation, seq: self.frame_seq, leaps: self.leaps };
            let back = core::mem::replace(&mut self.before, over);
            let back = if back.incarnation == incarnation { back } else { Line::default() };
            (self.incarnation, self.frame_seq, self.leaps) = (incarnation, back.seq, back.leaps);
            self.willed = None;
            self.behind.begin();
        }
        if seq > self.frame_seq {
            // The leap is charged here too: boots that take turns would else leap without a rate.
            let _ = self.leaps.admit(now, self.heard, self.frame_seq, seq);
            self.frame_seq = seq;
        }
    }

    /// It has this number from now on. True when that is another one.
    fn number(&mut self, station: StationId) -> bool {
        core::mem::replace(&mut self.station, station) != station
    }

    /// Whether somebody means it by that name, number or address.
    pub fn is_called(&self, name: &str) -> bool {
        self.announce.name() == name
            || (self.station != 0 && self.station.to_string() == name)
            || self.mac.to_string() == name
    }
}

/// What a station's announcement changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announced {
    /// Nothing: it was known.
    Known,
    /// It is new, or has booted again.
    New,
    /// A replayed or doubled frame.
    Replay,
}

/// The stations of the segment in the order of their numbers; this station is not among them.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    list: Vec<Member>,
    /// Somebody has another number than before, which nobody has been told yet.
    renumbered: bool,
}

impl Members {
    pub(crate) fn new() -> Self {
        Self { list: Vec::with_capacity(usize::from(MAX_STATIONS)), renumbered: false }
    }

    pub(crate) fn as_slice(&self) -> &[Member] {
        &self.list
    }

    pub(crate) fn get(&self, station: StationId) -> Option<&Member> {
        self.list.iter().find(|member| member.station == station && station != 0)
    }

    pub(crate) fn get_mut(&mut self, station: StationId) -> Option<&mut Member> {
        self.list.iter_mut().find(|member| member.station == station && station != 0)
    }

    pub(crate) fn by_mac(&self, mac: MacAddr) -> Option<&Member> {
        self.list.iter().find(|member| member.mac == mac)
    }

    /// The same where it has a number: who has none for now is sent nothing that a program asked for.
    pub(crate) fn numbered(&self, mac: MacAddr) -> Option<&Member> {
        self.by_mac(mac).filter(|member| member.station != 0)
    }

    pub(crate) fn by_mac_mut(&mut self, mac: MacAddr) -> Option<&mut Member> {
        self.list.iter_mut().find(|member| member.mac == mac)
    }

    /// Notes a frame under the segment key.
    pub(crate) fn heard(&mut self, now: Instant, mac: MacAddr, incarnation: u32, seq: u64) -> Announced {
        let Some(member) = self.by_mac_mut(mac) else { return Announced::New };
        if member.incarnation != incarnation {
            let before = &member.before;
            let again = before.incarnation == incarnation && before.refuses(now, member.heard, seq);
            return if again { Announced::Replay } else { Announced::New };
        }
        if seq <= member.frame_seq {
            return Announced::Replay;
        }
        if !member.leaps.admit(now, member.heard, member.frame_seq, seq) {
            return Announced::Replay;
        }
        member.frame_seq = seq;
        member.behind.reset();
        (member.heard, member.again) = (now, true);
        Announced::Known
    }

    /// Takes up what a station says of itself. A full table ignores strangers.
    pub(crate) fn announce(
        &mut self,
        now: Instant,
        station: StationId,
        mac: MacAddr,
        inc: u32,
        said: &Announce,
        seq: u64,
    ) {
        if let Some(member) = self.by_mac_mut(mac) {
            let renumbered = member.number(station);
            member.begin(now, inc, seq);
            member.announce = said.named_as(&member.announce);
            member.nonce = said.nonce;
            member.heard = now;
            self.renumbered |= renumbered;
        } else if self.list.len() < usize::from(MAX_STATIONS) {
            let announce = *said;
            let nonce = said.nonce;
            let mut leaps = Leaps::default();
            leaps.rise(now, 0, seq);
            self.renumbered = true;
            self.list.push(Member {
                station,
                mac,
                incarnation: inc,
                announce,
                heard: now,
                again: false,
                received: Load::default(),
                nonce,
                frame_seq: seq,
                leaps,
                before: Line::default(),
                willed: None,
                behind: Behind::default(),
                knew_ended: false,
            });
        }
        self.list.sort_unstable_by_key(|member| (member.station, member.mac));
    }

    /// Makes room for a newcomer: of the stations heard only once, it removes the one silent for longest, if
    /// for more than `patience`. `None`: there is no room; `Some(None)`: no station had to be removed.
    pub(crate) fn make_room(&mut self, now: Instant, patience: Span) -> Option<Option<MacAddr>> {
        let silent = |member: &&Member| !member.again;
        let full = self.list.len() >= usize::from(MAX_STATIONS);
        if !full && self.list.iter().filter(silent).count() < ONCE_HEARD_MAX {
            return Some(None);
        }
        let oldest = self.list.iter().filter(silent).min_by_key(|member| (member.heard, member.mac))?;
        if now.since(oldest.heard) < patience {
            return None;
        }
        let mac = oldest.mac;
        self.list.retain(|member| member.mac != mac);
        Some(Some(mac))
    }

    /// Takes up a member of a formed ring. Its earlier words of itself stay.
    pub(crate) fn form(&mut self, now: Instant, formed: &FormMember) {
        if let Some(member) = self.by_mac_mut(formed.mac) {
            let renumbered = member.number(formed.station);
            member.begin(now, formed.incarnation, 0);
            member.nonce = formed.nonce;
            (member.heard, member.again) = (now, true);
            self.renumbered |= renumbered;
            self.list.sort_unstable_by_key(|member| (member.station, member.mac));
        } else {
            let said =
                Announce::new(NodeId::UNKNOWN, formed.nonce, 0, rota_wire::bodies::StationState::Ring, "");
            self.announce(now, formed.station, formed.mac, formed.incarnation, &said, 0);
        }
    }

    /// A known station has taken this number. False if it is not known, or the number is none.
    pub(crate) fn renumber(&mut self, mac: MacAddr, station: StationId) -> bool {
        let Some(member) = self.by_mac_mut(mac).filter(|_| station != 0) else { return false };
        if member.number(station) {
            self.renumbered = true;
            self.list.sort_unstable_by_key(|member| (member.station, member.mac));
        }
        true
    }

    /// Whether somebody has another number than when this was last asked.
    pub(crate) fn take_renumbered(&mut self) -> bool {
        core::mem::take(&mut self.renumbered)
    }

    /// A station's fresh part of the ring's key.
    pub(crate) fn set_nonce(&mut self, mac: MacAddr, nonce: u64) {
        if let Some(member) = self.by_mac_mut(mac) {
            member.nonce = nonce;
        }
    }

    /// Counts everybody's silence from now on.
    pub(crate) fn heard_all(&mut self, now: Instant) {
        self.list.iter_mut().for_each(|member| member.heard = now);
    }

    /// The ring has ended: all that are known here were known while it ran.
    pub(crate) fn note_end(&mut self) {
        self.list.iter_mut().for_each(|member| member.knew_ended = true);
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Member) -> bool) {
        self.list.retain(keep);
    }

    /// Forgets who shares its number with a smaller address or with this station.
    pub(crate) fn keep_one_of_each_number(&mut self, own: StationId) {
        let mut taken = own;
        // In the order of numbers, and of addresses within one.
        self.list.retain(|member| {
            let shared = member.station != 0 && (member.station == taken || member.station == own);
            taken = member.station;
            !shared
        });
    }

    /// The lowest free station number; `None` on a full segment.
    pub(crate) fn lowest_free(&self, taken: StationId) -> Option<StationId> {
        let mut used = StationSet::EMPTY;
        used.insert(taken);
        self.list.iter().for_each(|member| used.insert(member.station));
        (1..=MAX_STATIONS).find(|station| !used.contains(*station))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Form says nothing of frame counters: one that comes again must not make old frames new again.
    #[test]
    fn within_one_boot_a_frame_counter_never_falls() {
        let (now, mac) = (Instant::ZERO, MacAddr([2, 0, 0, 0, 0, 3]));
        let formed = |incarnation| FormMember { station: 3, mac, incarnation, nonce: 1 };
        let mut members = Members::new();
        members.form(now, &formed(7));
        assert_eq!(members.heard(now, mac, 7, 50), Announced::Known);
        members.form(now, &formed(7));
        assert_eq!(members.heard(now, mac, 7, 50), Announced::Replay, "50 has been heard");
        assert_eq!(members.heard(now, mac, 7, 51), Announced::Known);
        members.form(now, &formed(8));
        assert_eq!(members.heard(now, mac, 7, 51), Announced::Replay, "of the boot before");
        assert_eq!(members.heard(now, mac, 8, 1), Announced::Known, "a new boot counts from one");
    }
}
