//! One unit being put together from its fragments, in a buffer that is reused.

use rota_units::Instant;

use super::rx_writer::RingFragment;

/// What is known about a unit that is handed to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxUnit {
    /// The unit's number.
    pub number: u64,
    /// Octets that are missing from it, zeroed in the buffer; 0 = complete.
    pub missing_octets: u32,
    /// The sender's schedule for it, ns since its incarnation.
    pub schedule_ns: u64,
    /// When its last fragment to arrive reached this host, where the kernel stamped it.
    pub arrived_at: Option<Instant>,
    /// When the node took that fragment from the kernel.
    pub dequeued_at: Instant,
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// It is in; more is to come.
    Kept,
    /// It is in, and nothing more is to come.
    Finished,
    /// It was in already.
    Double,
    /// It contradicts the unit or itself.
    Bad,
}

/// The unit under construction; `None` in `unit` when there is none.
pub(super) struct Reassembly {
    buffer: Vec<u8>,
    // One bit for each fragment index that is in.
    seen: Vec<u64>,
    unit: Option<RxUnit>,
    unit_octets_max: u32,
}

impl Reassembly {
    pub(super) fn new(unit_octets_max: u32) -> Self {
        let buffer = Vec::with_capacity(unit_octets_max as usize);
        Self { buffer, seen: vec![0; usize::from(u16::MAX).div_ceil(64)], unit: None, unit_octets_max }
    }

    /// The unit under construction, with the octets that are missing so far.
    pub(super) fn begun(&self) -> Option<RxUnit> {
        self.unit
    }

    /// Number of the unit under construction.
    pub(super) fn number(&self) -> Option<u64> {
        self.unit.map(|unit| unit.number)
    }

    /// Puts a fragment in its place. The caller has taken away any other unit first.
    pub(super) fn place(&mut self, descriptor: &RingFragment, payload: &[u8]) -> Placed {
        let RingFragment { number, fragment, last, unit_octets, offset, .. } = *descriptor;
        let end = u64::from(offset) + payload.len() as u64;
        if unit_octets > self.unit_octets_max || end > u64::from(unit_octets) {
            return Placed::Bad;
        }
        if self.unit.is_none() {
            self.begin(descriptor);
        }
        let Some(unit) = self.unit.as_mut() else { return Placed::Bad };
        if unit.number != number || self.buffer.len() != unit_octets as usize {
            return Placed::Bad;
        }
        let (word, bit) = (usize::from(fragment) / 64, 1 << (fragment % 64));
        if self.seen[word] & bit != 0 {
            return Placed::Double;
        }
        self.seen[word] |= bit;
        let start = offset as usize;
        self.buffer[start..start + payload.len()].copy_from_slice(payload);
        // Saturating: overlapping fragments are the sender's fault and must not hide as a huge number.
        unit.missing_octets = unit.missing_octets.saturating_sub(payload.len() as u32);
        unit.arrived_at = descriptor.arrived_at;
        unit.dequeued_at = descriptor.dequeued_at;
        // Fragments of a unit leave in order on one segment: after the last, nothing more comes.
        if last || unit.missing_octets == 0 { Placed::Finished } else { Placed::Kept }
    }

    /// Hands the unit over by swapping buffers; `None` when none is under construction.
    pub(super) fn take(&mut self, into: &mut Vec<u8>) -> Option<RxUnit> {
        let unit = self.unit.take()?;
        std::mem::swap(&mut self.buffer, into);
        Some(unit)
    }

    fn begin(&mut self, descriptor: &RingFragment) {
        self.buffer.clear();
        self.buffer.resize(descriptor.unit_octets as usize, 0);
        self.seen.fill(0);
        self.unit = Some(RxUnit {
            number: descriptor.number,
            missing_octets: descriptor.unit_octets,
            schedule_ns: descriptor.schedule_ns,
            arrived_at: descriptor.arrived_at,
            dequeued_at: descriptor.dequeued_at,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(number: u64, fragment: u16, last: bool, unit_octets: u32, offset: u32) -> RingFragment {
        RingFragment { number, fragment, last, unit_octets, offset, ..RingFragment::default() }
    }

    #[test]
    fn a_unit_is_whole_when_all_its_octets_are_there() {
        let mut unit = Reassembly::new(10);
        assert_eq!(unit.place(&fragment(3, 0, false, 6, 0), b"abcd"), Placed::Kept);
        assert_eq!(unit.place(&fragment(3, 0, false, 6, 0), b"abcd"), Placed::Double);
        assert_eq!(unit.place(&fragment(3, 1, true, 6, 4), b"ef"), Placed::Finished);
        assert_eq!(unit.place(&fragment(3, 1, true, 6, 4), b"ef"), Placed::Double);
        let mut out = Vec::new();
        assert_eq!(unit.take(&mut out).map(|unit| unit.missing_octets), Some(0));
        assert_eq!(out, b"abcdef");
        assert_eq!(unit.take(&mut out), None);
    }

    #[test]
    fn a_unit_has_arrived_when_its_last_fragment_has() {
        let at = |ns| Instant::from_nanos(ns);
        let came = |number, last, offset, ns| RingFragment {
            arrived_at: Some(at(ns)),
            dequeued_at: at(ns + 5),
            ..fragment(0, number, last, 4, offset)
        };
        let mut unit = Reassembly::new(10);
        assert_eq!(unit.place(&came(0, false, 0, 100), b"ab"), Placed::Kept);
        assert_eq!(unit.place(&came(1, true, 2, 200), b"cd"), Placed::Finished);
        let unit = unit.take(&mut Vec::new()).expect("a unit");
        assert_eq!((unit.arrived_at, unit.dequeued_at), (Some(at(200)), at(205)));
    }

    #[test]
    fn a_hole_is_zeroed_and_counted() {
        let mut unit = Reassembly::new(10);
        let mut out = b"old octets that must not show".to_vec();
        assert_eq!(unit.place(&fragment(0, 1, true, 6, 4), b"ef"), Placed::Finished);
        assert_eq!(unit.take(&mut out).map(|unit| unit.missing_octets), Some(4));
        assert_eq!(out, b"\0\0\0\0ef");
    }

    #[test]
    fn contradictions_are_refused() {
        let mut unit = Reassembly::new(10);
        assert_eq!(unit.place(&fragment(0, 0, false, 11, 0), b"abcd"), Placed::Bad);
        assert_eq!(unit.place(&fragment(0, 0, false, 6, 4), b"abcd"), Placed::Bad);
        assert_eq!(unit.place(&fragment(0, 0, false, 6, u32::MAX), b"abcd"), Placed::Bad);
        assert_eq!(unit.place(&fragment(0, 0, false, 6, 0), b"abcd"), Placed::Kept);
        assert_eq!(unit.place(&fragment(0, 1, true, 7, 4), b"abc"), Placed::Bad);
    }
}
