//! Who may use a direction of acknowledged service, and when.
//!
//! A direction is taken by the message that is *sent*, fragment by fragment, and not by one that only waits
//! in the node's queue: there a message of a low level may wait for long, and somebody else's high one for
//! the same station must not wait for it. A message that comes out of the queue while the direction is taken
//! is parked; when it is free again the highest level goes back into the queue, and of one level the first.

use super::table::{AckLink, LINKS_MAX, Message, NOBODY, Stage};
use super::{BIT_LIFE, Llc, Want};
use rota_units::Instant;
use rota_wire::MacAddr;
use rota_wire::llc::SAP_SNAP;

impl Llc {
    /// Gives an acknowledged message its direction. Where there is none left it is held until there is.
    pub(super) fn direct(&mut self, now: Instant, slot: u16) {
        // A message that is held already comes first. A direction that is known is none that anybody is held
        // for.
        let Some(of) = self.find_link(now, slot, self.held.is_empty()) else {
            self.held.push_back(slot);
            self.wake = self.wake.min(now + BIT_LIFE.div_down(8));
            return;
        };
        self.assign(now, slot, of);
    }

    /// The direction that a message is to use: one that is known, else a new one, where it may have one.
    fn find_link(&mut self, now: Instant, slot: u16, may_be_new: bool) -> Option<u16> {
        let message = &self.messages[usize::from(slot)];
        let sap = if message.is_cut() { SAP_SNAP } else { message.request.socket };
        let mac = message.mac;
        let known = self.links.iter().position(|of| of.sap == sap && of.mac == mac);
        let of = known.or_else(|| if may_be_new { self.new_link(now, sap, mac) } else { None })?;
        Some(of as u16)
    }

    fn assign(&mut self, now: Instant, slot: u16, of: u16) {
        let message = &mut self.messages[usize::from(slot)];
        (message.link, message.stage) = (Some(of), Stage::Held);
        self.links[usize::from(of)].users += 1;
        if self.may_go(now, slot) {
            self.queue(slot, false);
        } else {
            self.park(now, slot);
        }
    }

    /// Looks whether there are directions now for those who are held.
    pub(super) fn direct_held(&mut self, now: Instant) {
        while let Some(slot) = self.held.front().copied() {
            let Some(of) = self.find_link(now, slot, true) else {
                self.wake = self.wake.min(now + BIT_LIFE.div_down(8));
                return;
            };
            self.held.pop_front();
            self.assign(now, slot, of);
        }
    }

    /// A direction that was not in use; none when too many are.
    fn new_link(&mut self, now: Instant, sap: u8, mac: MacAddr) -> Option<usize> {
        // Nobody may remember a bit of our former life when the first command of this one comes.
        let fresh = AckLink::new(sap, mac, self.born + BIT_LIFE, now);
        if self.links.len() < LINKS_MAX {
            self.links.push(fresh);
            return Some(self.links.len() - 1);
        }
        let unused = self.links.iter_mut().enumerate().filter(|(_, of)| of.users == 0);
        let (at, oldest) = unused.min_by_key(|(_, of)| of.used)?;
        if now.since(oldest.used) <= BIT_LIFE * 2 {
            return None;
        }
        *oldest = AckLink { forgot: true, ..fresh };
        Some(at)
    }

    /// Whether a message's command is on its way already, so that what it sends is a repetition.
    pub(super) fn is_outstanding(&self, slot: u16) -> bool {
        let of = self.messages[usize::from(slot)].link;
        of.is_some_and(|of| self.links[usize::from(of)].owner == Some(slot))
    }

    /// Whether a message that is not under way in its direction may be sent there now.
    fn may_go(&self, now: Instant, slot: u16) -> bool {
        let message = &self.messages[usize::from(slot)];
        let Some(of) = message.link.map(|of| &self.links[usize::from(of)]) else { return true };
        let overtakes = !message.senior && of.has_waiting(message.request.level);
        of.owner.is_none() && of.ready_at <= now && !overtakes
    }

    /// A message has come out of the queue to be sent: its direction is free for it, or it is parked there.
    pub(super) fn has_direction(&mut self, now: Instant, slot: u16) -> bool {
        let message = &self.messages[usize::from(slot)];
        let (level, senior) = (message.request.level, message.senior);
        let Some(of) = message.link.map(usize::from) else { return true };
        if self.is_outstanding(slot) {
            return true;
        }
        if senior {
            self.links[of].seniors &= !(1 << level);
        }
        let may_go = self.may_go(now, slot);
        if !may_go {
            self.park(now, slot);
        }
        may_go
    }

    /// Puts a message into its direction's list: before its level if it has been there, else behind.
    fn park(&mut self, now: Instant, slot: u16) {
        let message = self.messages[usize::from(slot)];
        let Some(of) = message.link else { return };
        let level = message.request.level;
        let list = &mut self.links[usize::from(of)].parked[usize::from(level)];
        let (before, behind) = if message.senior { (NOBODY, list.first) } else { (list.last, NOBODY) };
        if behind == NOBODY {
            list.last = slot;
        }
        if before == NOBODY {
            list.first = slot;
        }
        if let Some(next) = self.messages.get_mut(usize::from(behind)) {
            next.before = slot;
        }
        if let Some(last) = self.messages.get_mut(usize::from(before)) {
            last.behind = slot;
        }
        let message = &mut self.messages[usize::from(slot)];
        (message.before, message.behind, message.stage) = (before, behind, Stage::Parked);
        self.hurry(of);
        self.release(now, of);
    }

    /// Takes a message out of its direction's list.
    pub(super) fn unpark(&mut self, slot: u16) {
        let Message { link, before, behind, request, .. } = self.messages[usize::from(slot)];
        let Some(of) = link else { return };
        let list = &mut self.links[usize::from(of)].parked[usize::from(request.level)];
        if list.first == slot {
            list.first = behind;
        }
        if list.last == slot {
            list.last = before;
        }
        if let Some(next) = self.messages.get_mut(usize::from(behind)) {
            next.before = before;
        }
        if let Some(last) = self.messages.get_mut(usize::from(before)) {
            last.behind = behind;
        }
        let message = &mut self.messages[usize::from(slot)];
        (message.before, message.behind, message.stage) = (NOBODY, NOBODY, Stage::Held);
    }

    /// The level at which the next frame of a message waits: its own, or where it is a repetition that others
    /// of its direction wait for, the highest of theirs.
    pub(super) fn queue_level(&self, slot: u16) -> u8 {
        let message = &self.messages[usize::from(slot)];
        let own = message.request.level;
        let of = message.link.filter(|_| self.is_outstanding(slot)).map(|of| &self.links[usize::from(of)]);
        of.and_then(AckLink::highest).map_or(own, |waiting| waiting.max(own))
    }

    /// The repetition of an outstanding command does not wait at a lower level than those who wait for it.
    fn hurry(&mut self, of: u16) {
        let Some(slot) = self.links[usize::from(of)].owner else { return };
        let Message { stage, queued_at, .. } = self.messages[usize::from(slot)];
        if stage == Stage::Queued && self.queue_level(slot) > queued_at {
            self.wants.push(Want::Unqueue { level: queued_at, slot });
            self.queue(slot, true);
        }
    }

    /// Lets the next one back into the queue if the direction is free and nobody of that level is there yet.
    pub(super) fn release(&mut self, now: Instant, of: u16) {
        let direction = &mut self.links[usize::from(of)];
        let Some(level) = direction.highest() else { return };
        if direction.owner.is_some() || direction.seniors >> level != 0 {
            return;
        }
        if direction.ready_at > now {
            self.wake = self.wake.min(direction.ready_at);
            return;
        }
        direction.seniors |= 1 << level;
        let slot = direction.parked[usize::from(level)].first;
        self.unpark(slot);
        let message = &mut self.messages[usize::from(slot)];
        message.senior = true;
        let begun = message.begun;
        self.queue(slot, begun);
    }

    /// A direction's outstanding command is over. Where no answer came, the other station may or may not have
    /// taken it: it must forget the bit first, and an answer that still comes must not fit the next command.
    pub(super) fn give_back(&mut self, now: Instant, slot: u16, of: u16, answered: bool) {
        let direction = &mut self.links[usize::from(of)];
        if direction.owner == Some(slot) {
            direction.owner = None;
            direction.bit ^= true;
            direction.forgot &= !answered;
            if !answered {
                direction.ready_at = direction.used + BIT_LIFE + BIT_LIFE.div_down(8);
            }
        }
        self.release(now, of);
    }
}
