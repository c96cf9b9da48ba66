//! Memory that programs have of this node: charged by the exact sizes of the files before they are made,
//! given back when they are unmapped.
//!
//! A program that reserved one octet a cycle and asked for room of 5 MB and 50 buffers pinned 250 MB here and
//! 130 MB at the other end. So there is a budget for each user, and one for all. Only the control thread
//! charges and gives back: the data thread carries a [`Charge`] beside the memory, and hands both back.
//!
//! The ring of a receive queue is a file of the kernel that its program has open too, and may keep or send on
//! when its queue is closed. It is charged until nobody has it any more ([`RingCharge`]).

use crate::quota::Quota;
use rota_driver::still_open::StillOpen;
use rota_proto::Shortage;
use rota_shm::SinkShape;
use rota_shm::control::RefusalInfo;
use rota_shm::layout::{READER_OCTETS, RxRing, board_file_octets, tx_file_octets};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of this test in a refusal.
pub(crate) const TEST: &str = "Memory";
const PAGE: u64 = 4_096;

/// The octets charged to each user, and to all users together.
#[derive(Debug, Default)]
struct Accounts {
    users: BTreeMap<u32, u64>,
    all: u64,
}

/// The budget of one node.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    quota: Quota,
    accounts: Arc<Mutex<Accounts>>,
    rings: Arc<Mutex<Rings>>,
}

/// Rings of queues that are closed, with the numbers of their files.
#[derive(Debug, Default)]
struct Rings {
    files: Option<StillOpen>,
    left: Vec<(u64, Charge)>,
}

/// Memory that is charged to a user until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    ledger: Ledger,
    user: u32,
    octets: u64,
}

/// Memory of a ring that is charged to a user until nobody has the file of the ring any more. When this is
/// dropped the node has done with it.
#[derive(Debug)]
pub(crate) struct RingCharge {
    file: u64,
    charge: Option<Charge>,
}

impl Charge {
    /// For a ring that a program is given.
    ///
    /// # Errors
    /// This host does not tell whether the file is open.
    pub(crate) fn of_ring(self, ring: &impl AsFd) -> io::Result<RingCharge> {
        let rings = self.ledger.rings.clone();
        let mut rings = rings.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match &mut rings.files {
            Some(files) => files,
            none => none.insert(StillOpen::new()?),
        };
        let file = files.watch(ring)?;
        Ok(RingCharge { file, charge: Some(self) })
    }
}

impl Drop for RingCharge {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take() {
            let rings = charge.ledger.rings.clone();
            rings.lock().unwrap_or_else(PoisonError::into_inner).left.push((self.file, charge));
        }
    }
}

/// Why there is no memory: how much is left, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) asked: u64,
    pub(crate) left: u64,
    budget: u64,
    of_user: bool,
}

impl Ledger {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, accounts: Arc::default(), rings: Arc::default() }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Octets that all users have.
    pub(crate) fn used(&self) -> u64 {
        self.settle_rings();
        self.accounts().all
    }

    /// Gives back the memory of rings that nobody has open any more.
    fn settle_rings(&self) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let Rings { files: Some(files), left } = &mut *rings else { return };
        if left.is_empty() {
            return;
        }
        // Of a list that cannot be read nothing is known: the memory stays charged.
        if let Ok(open) = files.numbers() {
            left.retain(|(file, _)| open.contains(file));
        }
    }

    /// True if a user may have so much more.
    ///
    /// # Errors
    /// How much is left.
    pub(crate) fn would_fit(&self, user: u32, asked: u64) -> Result<(), Short> {
        self.settle_rings();
        let accounts = self.accounts();
        let of_user = self.quota.user_memory.saturating_sub(accounts.users.get(&user).copied().unwrap_or(0));
        let of_all = self.quota.memory.saturating_sub(accounts.all);
        if asked <= of_user.min(of_all) {
            return Ok(());
        }
        Err(if of_user <= of_all {
            Short { asked, left: of_user, budget: self.quota.user_memory, of_user: true }
        } else {
            Short { asked, left: of_all, budget: self.quota.memory, of_user: false }
        })
    }

    /// Takes it.
    ///
    /// # Errors
    /// As [`Ledger::would_fit`].
    pub(crate) fn charge(&self, user: u32, octets: u64) -> Result<Charge, Short> {
        self.would_fit(user, octets)?;
        let mut accounts = self.accounts();
        accounts.all += octets;
        *accounts.users.entry(user).or_default() += octets;
        Ok(Charge { ledger: self.clone(), user, octets })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut accounts = self.ledger.accounts();
        accounts.all -= self.octets;
        if let Some(user) = accounts.users.get_mut(&self.user) {
            *user -= self.octets;
            if *user == 0 {
                accounts.users.remove(&self.user);
            }
        }
    }
}

impl Short {
    /// One sentence about the missing memory, without an offer that would fit.
    pub(crate) fn sentence(&self, what: &str) -> String {
        let Self { asked, left, budget, of_user } = *self;
        let (asked, left, budget) = (size(asked), size(left), size(budget));
        let whose = if of_user { "one user may have" } else { "all programs together may have" };
        format!("refused by {TEST}: {what} takes {asked}, and {left} are left of the {budget} that {whose}")
    }

    /// The refusal of a sending channel, and what would fit instead.
    pub(crate) fn of_source(&self, buffers: u16, room_octets: u32, unit_octets: u32) -> RefusalInfo {
        let fits = |buffers: u16, room: u32| source_octets(buffers, room).is_some_and(|n| n <= self.left);
        let buffers_fit = largest(u32::from(buffers), |n| fits(n as u16, room_octets));
        let room_fits = largest(room_octets, |room| fits(buffers, room));
        let what = format!("a channel with {buffers} buffers of {room_octets} octets");
        let instead = match (buffers_fit, room_fits) {
            (0, 0) => "nothing would fit".to_owned(),
            (0, room) => format!("room for {room} octets would fit"),
            (some, room) => format!("{some} buffers, or room for {room} octets, would fit"),
        };
        let sentence =
            format!("{}; {instead}; a larger --memory of 'rota node' gives more", self.sentence(&what));
        let counter_offer_octets = room_fits.min(unit_octets);
        RefusalInfo { test: TEST.to_owned(), sentence, counter_offer_octets, ..RefusalInfo::default() }
    }
}

impl Short {
    /// The numbers for the sender of a channel of that room, whose memory here has the given shape.
    pub(crate) fn of_sink(&self, room_octets: u32, shape: impl Fn(u32) -> SinkShape) -> Shortage {
        let fits = |room: u32| sink_octets(shape(room)).is_some_and(|octets| octets <= self.left);
        let room_octets = largest(room_octets, fits);
        Shortage { asked_octets: self.asked, left_octets: self.left, room_octets }
    }
}

/// The largest number from 1 to `most` that fits, 0 if none fits. Each number below one that fits fits too.
fn largest(most: u32, fits: impl Fn(u32) -> bool) -> u32 {
    // No number between is above `most`.
    rota_admission::search::largest(0, u64::from(most) + 1, |number| fits(number as u32)) as u32
}

pub(crate) fn size(octets: u64) -> String {
    match octets {
        0..10_000_000 => format!("{} kB", octets / 1_000),
        _ => format!("{} MB", octets / 1_000_000),
    }
}

fn pages(octets: usize) -> u64 {
    (octets as u64).next_multiple_of(PAGE)
}

/// The memory of a sending channel, in octets; `None` if no file can be so large.
pub(crate) fn source_octets(buffers: u16, room_octets: u32) -> Option<u64> {
    Some(pages(tx_file_octets(u32::from(buffers), room_octets)?) + pages(board_file_octets(RxRing::NONE)?))
}

/// The memory of a receiving channel, in octets.
pub(crate) fn sink_octets(shape: SinkShape) -> Option<u64> {
    let board = board_file_octets(RxRing::new(shape.slots, shape.fragment_octets)?)?;
    Some(pages(board) + pages(READER_OCTETS))
}

/// The memory of a socket of link control, in octets.
pub(crate) fn socket_octets(messages: u16, message_octets: u32, rx_slots: u32) -> Option<u64> {
    let ring = RxRing::messages(rx_slots)?;
    Some(pages(tx_file_octets(u32::from(messages), message_octets)?) + pages(board_file_octets(ring)?))
}

/// A budget that leaves a small machine its memory: an eighth of what is to be had, 256 MB at most and 16 MB
/// at least.
pub(crate) fn default_budget() -> u64 {
    const MOST: u64 = 256_000_000;
    const LEAST: u64 = 16_000_000;
    let available = [available(), cgroup_left()].into_iter().flatten().min();
    available.map_or(LEAST, |octets| (octets / 8).clamp(LEAST, MOST))
}

fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1_024)
}

/// The memory that the control group of this process still allows; `None` if it has no limit.
fn cgroup_left() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let number = |file: &str| {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_shm::NodeSink;

    fn ledger(all: u64, user: u64) -> Ledger {
        Ledger::new(Quota { memory: all, user_memory: user, ..Quota::default() })
    }

    #[test]
    fn what_is_charged_is_given_back_and_no_user_has_more_than_a_share() {
        let ledger = ledger(100, 60);
        let first = ledger.charge(1, 50).expect("within the share");
        let short = ledger.charge(1, 11).expect_err("above the share");
        assert_eq!((short.asked, short.left, short.of_user), (11, 10, true));
        let second = ledger.charge(2, 45).expect("another user's");
        let short = ledger.charge(3, 6).expect_err("above what all have");
        assert_eq!((short.left, short.of_user, ledger.used()), (5, false, 95));
        drop(first);
        assert_eq!(ledger.used(), 45);
        drop(ledger.charge(1, 55).expect("given back"));
        drop(second);
        assert_eq!(ledger.used(), 0);
        assert!(ledger.accounts().users.is_empty());
    }

    /// A program kept the rings of queues that it had closed, and the kernel their memory: 1,344 MB of 21
    /// queues.
    #[test]
    fn a_ring_is_charged_until_nobody_has_it() {
        let ledger = ledger(100, 60);
        let (ring, _other) = std::os::unix::net::UnixStream::pair().expect("a file");
        let kept = ring.try_clone().expect("a descriptor of the program");
        let charge = ledger.charge(1, 40).map(|charge| charge.of_ring(&ring)).expect("room");
        let charge = charge.expect("a file that can be watched");
        drop(ring);
        assert_eq!(ledger.used(), 40);
        drop(charge);
        assert_eq!(ledger.used(), 40, "the queue is closed, and the program has its ring");
        let short = ledger.charge(1, 21).expect_err("above the share");
        assert_eq!((short.left, short.of_user), (20, true));
        drop(kept);
        drop(ledger.charge(1, 60).expect("given back with the last descriptor"));
        assert_eq!(ledger.used(), 0);
    }

    /// One octet a cycle with room for 5 MB and 50 buffers pinned 250 MB.
    #[test]
    fn a_refusal_says_what_is_asked_what_is_left_and_what_would_fit() {
        let ledger = ledger(256_000_000, 128_000_000);
        let asked = source_octets(50, 5_000_000).expect("a file");
        assert!((250_000_000..251_000_000).contains(&asked));
        let refusal = ledger.would_fit(0, asked).expect_err("too much").of_source(50, 5_000_000, 1);
        assert_eq!((refusal.test.as_str(), refusal.counter_offer_octets), (TEST, 1));
        for part in ["50 buffers of 5000000 octets", "128 MB", "25 buffers", "room for 25", "--memory"] {
            assert!(refusal.sentence.contains(part), "{part}: {}", refusal.sentence);
        }
        let fits = largest(50, |n| source_octets(n as u16, 5_000_000).is_some_and(|n| n <= 128_000_000));
        assert_eq!(fits, 25);
        assert!(ledger.would_fit(0, source_octets(25, 5_000_000).expect("a file")).is_ok());
        assert!(ledger.would_fit(0, source_octets(26, 5_000_000).expect("a file")).is_err());
    }

    #[test]
    fn the_offer_to_the_sender_fits_the_receiver() {
        let ledger = ledger(8_000_000, 2_000_000);
        let shape = |unit_octets_max| {
            let slots = rota_shm::layout::rx_slots_for(4, unit_octets_max, 1_436.min(unit_octets_max));
            SinkShape { slots, fragment_octets: 1_436.min(unit_octets_max), unit_octets_max }
        };
        let asked = sink_octets(shape(5_000_000)).expect("a file");
        let told = ledger.would_fit(0, asked).expect_err("too much").of_sink(5_000_000, shape);
        assert_eq!((told.asked_octets, told.left_octets), (asked, 2_000_000));
        assert!((300_000..500_000).contains(&told.room_octets), "{told:?}");
        assert!(ledger.would_fit(0, sink_octets(shape(told.room_octets)).expect("a file")).is_ok());
        assert!(ledger.would_fit(0, sink_octets(shape(told.room_octets + 9_000)).expect("a file")).is_err());
    }

    /// Frames of 9,000 octets bring fragments of 8,936, which were charged as 2,048.
    #[test]
    fn a_receiving_channel_is_charged_for_what_is_mapped() {
        for fragment_octets in [512, 1_436, 8_936] {
            let shape = SinkShape { slots: 40, fragment_octets, unit_octets_max: 30_000 };
            let sink = NodeSink::create(shape).expect("memory");
            let octets = sink.descriptors().into_iter().map(|file| {
                let file = std::fs::File::from(file.try_clone_to_owned().expect("a descriptor"));
                file.metadata().expect("a file").len()
            });
            let mapped: u64 = octets.map(|octets| octets.next_multiple_of(PAGE)).sum();
            let charged = sink_octets(shape).expect("a file");
            assert_eq!(charged, mapped, "{fragment_octets}");
            assert!(mapped >= 40 * u64::from(fragment_octets) && mapped < 40 * 9_100 + 2 * PAGE);
        }
    }

    #[test]
    fn the_largest_that_fits_is_found() {
        for edge in [0, 1, 7, 99, 100] {
            assert_eq!(largest(100, |n| n <= edge), edge);
        }
        assert_eq!(largest(u32::MAX - 1, |_| true), u32::MAX - 1);
    }

    #[test]
    fn the_default_suits_a_small_machine() {
        assert!((16_000_000..=256_000_000).contains(&default_budget()));
    }
}
