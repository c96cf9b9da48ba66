//! One timer for each client, by deadline: a heap that knows the place of each client in it, so that a timer
//! is set, moved and cleared in the logarithm of their number. It allocates when it is made, and never again.

use rota_units::Instant;

const NOWHERE: u16 = u16::MAX;

#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// A heap of clients, the earliest deadline first.
    heap: Vec<u16>,
    /// Of each client: its deadline, and its place in the heap.
    clients: Vec<(Instant, u16)>,
}

impl Timers {
    pub(super) fn new(most: u16) -> Self {
        let clients = vec![(Instant::FAR, NOWHERE); usize::from(most)];
        Self { heap: Vec::with_capacity(usize::from(most)), clients }
    }

    /// The earliest deadline.
    pub(super) fn first(&self) -> Instant {
        self.heap.first().map_or(Instant::FAR, |client| self.clients[usize::from(*client)].0)
    }

    /// A client whose deadline has come, and whose timer is cleared thereby.
    pub(super) fn expired(&mut self, now: Instant) -> Option<u16> {
        let client = *self.heap.first()?;
        if self.clients[usize::from(client)].0 > now {
            return None;
        }
        self.clear(client);
        Some(client)
    }

    /// Sets or moves the timer of a client; [`Instant::FAR`] clears it.
    pub(super) fn set(&mut self, client: u16, at: Instant) {
        if at == Instant::FAR {
            return self.clear(client);
        }
        let mut place = self.clients[usize::from(client)].1;
        if place == NOWHERE {
            place = self.heap.len() as u16;
            self.heap.push(client);
        }
        self.clients[usize::from(client)] = (at, place);
        self.settle(client);
    }

    pub(super) fn clear(&mut self, client: u16) {
        let place = self.clients[usize::from(client)].1;
        if place == NOWHERE {
            return;
        }
        self.clients[usize::from(client)] = (Instant::FAR, NOWHERE);
        let last = self.heap.pop().unwrap_or(client);
        if last == client {
            return;
        }
        self.put(place, last);
        self.settle(last);
    }

    /// The client alone may be out of order.
    fn settle(&mut self, client: u16) {
        self.rise(self.clients[usize::from(client)].1);
        self.sink(self.clients[usize::from(client)].1);
    }

    fn put(&mut self, place: u16, client: u16) {
        self.heap[usize::from(place)] = client;
        self.clients[usize::from(client)].1 = place;
    }

    /// The order of the heap: of timers of one instant the client with the lower place is first.
    fn key(&self, place: u16) -> (Instant, u16) {
        let client = self.heap[usize::from(place)];
        (self.clients[usize::from(client)].0, client)
    }

    fn swap(&mut self, one: u16, other: u16) {
        let (first, second) = (self.heap[usize::from(one)], self.heap[usize::from(other)]);
        self.put(one, second);
        self.put(other, first);
    }

    fn rise(&mut self, mut place: u16) {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.key(above) <= self.key(place) {
                return;
            }
            self.swap(above, place);
            place = above;
        }
    }

    fn sink(&mut self, mut place: u16) {
        let count = self.heap.len();
        loop {
            let left = usize::from(place) * 2 + 1;
            if left >= count {
                return;
            }
            let (left, right) = (left as u16, left as u16 + 1);
            let is_right = usize::from(right) < count && self.key(right) < self.key(left);
            let least = if is_right { right } else { left };
            if self.key(place) <= self.key(least) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}
