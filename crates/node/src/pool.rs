//! Room for diverted frames that wait for the token. Taken at birth; nothing is allocated afterwards.

use rota_proto::{HostTag, NODE_FRAMES};

/// The longest frame of an interface with the usual MTU: header, VLAN tag, payload.
const USUAL_OCTETS: usize = 1_518;
/// Longer frames of messages between nodes that are kept at once, beside the others.
const NODE_FRAMES_LARGE: usize = 4;
/// The first tag of the places for longer frames.
const LARGE: u32 = 1 << 20;

/// Places of one size.
struct Shelf {
    octets: Box<[u8]>,
    lengths: Box<[u16]>,
    free: Vec<u32>,
    size: usize,
    /// Places that only messages between nodes get.
    kept_back: usize,
}

impl Shelf {
    fn new(places: usize, kept_back: usize, size: usize) -> Self {
        let places = places + kept_back;
        Self {
            octets: vec![0; places * size].into_boxed_slice(),
            lengths: vec![0; places].into_boxed_slice(),
            free: (0..places as u32).rev().collect(),
            size,
            kept_back,
        }
    }

    fn put(&mut self, frame: &[u8], leaves: usize) -> Option<u32> {
        if self.free.len() <= leaves {
            return None;
        }
        let place = self.free.pop()?;
        let at = place as usize * self.size;
        self.octets[at..at + frame.len()].copy_from_slice(frame);
        self.lengths[place as usize] = frame.len() as u16;
        Some(place)
    }

    fn frame(&self, place: u32) -> &[u8] {
        let at = place as usize * self.size;
        &self.octets[at..at + usize::from(self.lengths[place as usize])]
    }

    fn used(&self) -> usize {
        self.lengths.len() - self.free.len()
    }
}

/// Places for frames of the usual size, and for longer ones where the interface carries them.
pub(crate) struct Pool {
    usual: Shelf,
    large: Shelf,
}

impl Pool {
    /// For so many frames, and for so many octets of frames that are longer than usual, up to `longest`,
    /// beside those between nodes.
    pub(crate) fn new(frames: usize, octets: u64, longest: usize) -> Self {
        let large = match longest.checked_sub(USUAL_OCTETS) {
            // Twice what they hold if all are of the greatest length: most are, others take as much room.
            Some(more) if more > 0 => usize::try_from(2 * octets / longest as u64).unwrap_or(frames),
            _ => 0,
        };
        Self {
            usual: Shelf::new(frames, NODE_FRAMES, USUAL_OCTETS.min(longest)),
            large: Shelf::new(large.min(frames), if large > 0 { NODE_FRAMES_LARGE } else { 0 }, longest),
        }
    }

    /// Keeps a copy of a frame; none when there is no room for it. It is no longer than was said at birth.
    pub(crate) fn put(&mut self, frame: &[u8]) -> Option<HostTag> {
        self.put_leaving(frame, self.usual.kept_back, self.large.kept_back)
    }

    /// The same for a frame of a message between nodes, for which places are kept back.
    pub(crate) fn put_of_nodes(&mut self, frame: &[u8]) -> Option<HostTag> {
        self.put_leaving(frame, 0, 0)
    }

    fn put_leaving(&mut self, frame: &[u8], usual: usize, large: usize) -> Option<HostTag> {
        if frame.len() <= self.usual.size {
            self.usual.put(frame, usual).map(HostTag)
        } else {
            self.large.put(frame, large).map(|place| HostTag(LARGE | place))
        }
    }

    fn shelf(&self, tag: HostTag) -> (&Shelf, u32) {
        if tag.0 & LARGE == 0 { (&self.usual, tag.0) } else { (&self.large, tag.0 & !LARGE) }
    }

    pub(crate) fn frame(&self, tag: HostTag) -> &[u8] {
        let (shelf, place) = self.shelf(tag);
        shelf.frame(place)
    }

    pub(crate) fn give_back(&mut self, tag: HostTag) {
        let shelf = if tag.0 & LARGE == 0 { &mut self.usual } else { &mut self.large };
        debug_assert!(!shelf.free.contains(&(tag.0 & !LARGE)), "a frame is given back once");
        shelf.free.push(tag.0 & !LARGE);
    }

    /// True if so many frames of any length find places.
    pub(crate) fn has_room(&self, frames: usize) -> bool {
        let has_room =
            |shelf: &Shelf| shelf.free.len() >= (frames + shelf.kept_back).min(shelf.lengths.len());
        has_room(&self.usual) && has_room(&self.large)
    }

    /// How many frames are kept.
    pub(crate) fn used(&self) -> usize {
        self.usual.used() + self.large.used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        let mut pool = Pool::new(2, 3_000, 1_518);
        let a = pool.put(b"abc").unwrap();
        let b = pool.put(b"abcd").unwrap();
        assert_eq!((pool.put(b"x"), pool.used()), (None, 2));
        assert_eq!((pool.frame(a), pool.frame(b)), (&b"abc"[..], &b"abcd"[..]));
        pool.give_back(a);
        assert!(pool.used() == 1 && pool.put(b"y").is_some());
    }

    #[test]
    fn messages_between_nodes_find_places_when_the_host_has_taken_its_own() {
        let mut pool = Pool::new(2, 18_000, 9_018);
        assert!(pool.has_room(2) && pool.put(b"flood").is_some() && !pool.has_room(2));
        while pool.put(b"flood").is_some() {}
        while pool.put(&[0; 9_000]).is_some() {}
        assert_eq!(pool.used(), 4);
        let taken = (0..100).filter(|_| pool.put_of_nodes(b"message").is_some()).count();
        assert_eq!(taken, NODE_FRAMES);
        assert!(pool.put_of_nodes(&[0; 9_000]).is_some());
    }

    #[test]
    fn long_frames_have_places_of_their_own_and_take_none_of_the_others() {
        let mut pool = Pool::new(4, 2 * 9_018, 9_018);
        let long: Vec<_> = (0..4).map(|fill| pool.put(&vec![fill; 9_018]).unwrap()).collect();
        assert_eq!(pool.put(&[0; 1_519]), None);
        let short = pool.put(&[9; 1_518]).unwrap();
        assert_eq!((pool.frame(long[2]), pool.frame(short)), (&[2; 9_018][..], &[9; 1_518][..]));
        long.into_iter().for_each(|tag| pool.give_back(tag));
        assert!(pool.used() == 1 && pool.put(&[0; 1_519]).is_some());
        // On an interface with a smaller MTU, places are no longer than its frames.
        let mut small = Pool::new(1, 1_000, 594);
        assert!(small.put(&[1; 594]).is_some() && small.put(&[1; 10]).is_none());
    }
}
