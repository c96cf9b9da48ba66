//! Stations that are held off because they fell silent several times, told to people and to the stations.
//!
//! The rule itself is in `join.rs`: from the third silence on a station has to wait, twice as long each time.
//! This part tells who waits, for how long, and why. The cycle master answers a station that waits, so that
//! this one can tell it too. No action of the protocol depends on that answer, apart from the next question
//! of a joiner.

use super::join::{HOLD_OFF_MAX, Record, STRIKES};
use super::outbox::Pending;
use super::{Mode, Rether};
use rota_units::{Instant, Span};
use rota_wire::{JoinAnswer, MacAddr, Verdict};

/// The shortest time between two answers to a station whose announcements show that it waits.
const ANSWER_EVERY: Span = Span::from_millis(250);

/// A station that has to wait before it may take part in the ring again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldOff {
    /// Its address; this station's own where it is the one.
    pub mac: MacAddr,
    /// True if this station is the one.
    pub here: bool,
    /// How often it fell silent.
    pub silences: u8,
    /// For how long it is held off, as far as this station knows.
    pub wait: Span,
    /// When it may come back.
    pub until: Instant,
}

impl Rether {
    /// The stations that wait because they fell silent, this one included.
    pub fn held_off(&self, now: Instant) -> impl Iterator<Item = HeldOff> {
        let in_ring = self.mode.is_ring();
        let waits = move |record: &&Record| {
            let number = self.number(record.mac);
            let is_out = number == 0 || self.is_dead(number);
            let silent = record.deaths >= STRIKES && now < record.until;
            in_ring && is_out && silent && !self.excluded(now).any(|excluded| excluded.mac == record.mac)
        };
        let others = self.others.standing.records.iter().filter(waits).map(|record| {
            let Record { mac, deaths: silences, wait, until, .. } = *record;
            HeldOff { mac, here: false, silences, wait, until }
        });
        let own = self.others.standing.held_here.filter(|held| now < held.until && self.is_outside());
        others.chain(own)
    }

    /// True if this station is in no ring although one runs: it has asked to be let in, or its ring takes it
    /// for dead. It gets no token then, and sends no ordinary frame.
    pub fn is_outside(&self) -> bool {
        match &self.mode {
            Mode::Joining(joining) => joining.ring,
            Mode::Ring(_) => self.is_dead(self.own.station),
            _ => false,
        }
    }

    /// The refusal of a station that is held off, with the numbers.
    pub(super) fn held_off_answer(&self, now: Instant, mac: MacAddr, nonce: u64) -> JoinAnswer {
        let refusal = JoinAnswer::new(nonce, 0, Verdict::HeldOff);
        let silent = |record: &&Record| record.mac == mac && record.deaths >= STRIKES;
        let is_excluded = self.excluded(now).any(|excluded| excluded.mac == mac);
        let Some(record) = self.others.standing.records.iter().find(silent).filter(|_| !is_excluded) else {
            return refusal;
        };
        let left_ms = record.until.since(now).as_nanos().div_ceil(1_000_000);
        JoinAnswer { silences: record.deaths, left_ms: u32::try_from(left_ms).unwrap_or(u32::MAX), ..refusal }
    }

    /// A station that is held off announces itself as a member that its list calls dead. It is no joiner, and
    /// the cycle master tells it why it stays out.
    pub(super) fn answer_held_off(&mut self, now: Instant, mac: MacAddr) {
        let due = |record: &&mut Record| record.mac == mac && now >= record.answer_at;
        if !self.is_master() || !self.others.standing.records.iter_mut().any(|record| due(&record)) {
            return;
        }
        let Some(nonce) = self.members.by_mac(mac).map(|member| member.announce.nonce) else { return };
        if !self.may_answer(now) {
            return;
        }
        if let Some(record) = self.others.standing.records.iter_mut().find(|record| record.mac == mac) {
            record.answer_at = now + ANSWER_EVERY;
        }
        let answer = self.held_off_answer(now, mac, nonce);
        self.out.outbox.push_back(Pending::JoinAnswer { to: mac, answer });
    }

    /// The cycle master says that this station has to wait. False if it says nothing of silences.
    pub(super) fn take_held_off(&mut self, now: Instant, answer: &JoinAnswer) -> bool {
        if answer.verdict != Verdict::HeldOff || answer.silences == 0 {
            return false;
        }
        let silences = answer.silences;
        let known =
            self.others.standing.held_here.filter(|held| held.silences == silences && now < held.until);
        if known.is_none() {
            let wait = Span::from_millis(u64::from(answer.left_ms)).min(HOLD_OFF_MAX);
            let mac = self.own.me.mac;
            self.others.standing.held_here =
                Some(HeldOff { mac, here: true, silences, wait, until: now + wait });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::join::FORGIVEN;
    use super::*;
    use crate::door::{Identity, PortId};
    use crate::settings::Settings;
    use rota_contract::NodeId;
    use rota_units::{BitRate, Octets};
    use rota_wire::Key;

    const SILENT: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);

    /// The cycle master of a ring whose list calls station 2 dead.
    fn master(now: Instant) -> Rether {
        let mac = MacAddr([2, 0, 0, 0, 0, 0xa]);
        let identity = Identity { node_id: NodeId(1), boot_id: 1, mac, name: "n1".to_owned() };
        let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        let mut link = Rether::new(now, PortId(0), identity, &Key::new([1; 32]), settings, 1);
        link.own.station = 1;
        link.meet(now, 2, SILENT);
        link.enter_ring(now);
        let mut list = link.empty_token();
        list.dead.insert(2);
        link.note_list(&list);
        link.out.outbox.clear();
        link
    }

    #[test]
    fn a_station_that_waits_is_told_the_rest_of_its_wait_four_times_a_second_at_most() {
        let (ms, now) = (Span::from_millis, Instant::from_nanos(1));
        let mut link = master(now);
        let record = link.record_of(now, SILENT);
        (record.deaths, record.wait, record.until) = (5, ms(4_000), now + ms(4_000));
        let mut told = Vec::new();
        for at in (0..1_000).step_by(10) {
            link.answer_held_off(now + ms(at), SILENT);
            while let Some(pending) = link.out.outbox.pop_front() {
                let Pending::JoinAnswer { to: SILENT, answer } = pending else { panic!("{pending:?}") };
                assert_eq!((answer.verdict, answer.silences), (Verdict::HeldOff, 5));
                told.push((at, answer.left_ms));
            }
        }
        assert_eq!(told, [(0, 4_000), (250, 3_750), (500, 3_500), (750, 3_250)]);
    }

    /// The time counts from its newest death: else its waits would begin anew amid them.
    #[test]
    fn a_station_is_forgiven_when_it_has_done_nothing_for_two_minutes() {
        let first = Instant::from_nanos(1);
        let mut link = master(first);
        let mut died = |at: Instant| {
            let record = link.record_of(at, SILENT);
            record.deaths += 1;
            record.deaths
        };
        let again = first + FORGIVEN.div_down(2);
        assert_eq!([first, again, first + FORGIVEN].map(&mut died), [1, 2, 3]);
        assert_eq!(died(first + FORGIVEN * 2), 1);
    }
}
