//! A cell switch as the paper's: a queue for each circuit at the port that it leaves by, served in turn, and
//! shaped where the circuit asks for it (TRANSPORT-R49).
//!
//! A plain value: a cell arrives, and a port is asked when its next one leaves. Where a queue or a port is
//! full, cells are dropped by one of two rules: the one that came (tail), or whole frames. The second rule
//! refuses a frame at its first cell once the queue is longer than a threshold (early packet discard), and
//! drops the rest of a frame that has lost a cell, but its last one, which keeps two frames apart (partial
//! packet discard).

use rota_units::{Instant, Span};
use rota_wire::atm::{CELL_HEADER_OCTETS, CellHeader};
use rota_wire::cells::Cell;
use std::collections::{BTreeMap, VecDeque};

/// What is dropped where there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropRule {
    /// The cell that came.
    Tail,
    /// Whole frames, from so many cells of their circuit in the queue on.
    Frame {
        /// Cells that wait when a frame begins.
        threshold: usize,
    },
}

/// A leaky bucket of cells: the peak cell rate of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellShape {
    /// From one cell to the next.
    pub gap: Span,
    /// Cells that may leave without a gap.
    pub burst: u64,
}

/// The way of a circuit through the switch.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The port by which it comes, and its virtual path and circuit there.
    pub from: (usize, u8, u16),
    /// The port by which it leaves, and its virtual path and circuit there.
    pub to: (usize, u8, u16),
    /// Cells that it may have waiting.
    pub room: usize,
    /// Its shaping.
    pub shape: Option<CellShape>,
}

/// The counts of a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellCounts {
    /// Cells that have left.
    pub passed: u64,
    /// Cells that were dropped.
    pub dropped: u64,
    /// Frames that lost a cell, or all.
    pub frames_hurt: u64,
}

/// What becomes of the rest of the frame that is coming in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// The next cell is the first of a frame.
    Between,
    Passes,
    /// It has lost a cell.
    Hurt,
    /// It was refused at its first cell.
    Refused,
}

#[derive(Clone, Debug)]
struct Queue {
    route: Route,
    cells: VecDeque<Cell>,
    frame: Frame,
    /// When the next cell would leave if all came at their gap.
    due: Instant,
    counts: CellCounts,
}

#[derive(Clone, Debug)]
struct Port {
    cell: Span,
    room: usize,
    waiting: usize,
    queues: Vec<Queue>,
    turn: usize,
    free_at: Instant,
}

/// The switch.
#[derive(Clone, Debug)]
pub struct CellSwitch {
    rule: DropRule,
    ports: Vec<Port>,
    /// The port and the queue of each circuit.
    routes: BTreeMap<(usize, u8, u16), (usize, usize)>,
    strangers: u64,
}

impl CellSwitch {
    /// So many ports, each with the time of a cell on its wire and room for so many cells.
    pub fn new(ports: usize, cell: Span, room: usize, rule: DropRule) -> Self {
        let port = || Port { cell, room, waiting: 0, queues: vec![], turn: 0, free_at: Instant::ZERO };
        Self { rule, ports: (0..ports).map(|_| port()).collect(), routes: BTreeMap::new(), strangers: 0 }
    }

    /// Opens a circuit. Panics if its ports do not exist or its name is taken.
    pub fn open(&mut self, route: Route) {
        assert!(route.from.0 < self.ports.len(), "port {} does not exist", route.from.0);
        let port = &mut self.ports[route.to.0];
        let place = (route.to.0, port.queues.len());
        let (cells, counts) = (VecDeque::with_capacity(route.room), CellCounts::default());
        port.queues.push(Queue { route, cells, frame: Frame::Between, due: Instant::ZERO, counts });
        let before = self.routes.insert(route.from, place);
        assert!(before.is_none(), "circuit {:?} is open", route.from);
    }

    /// A cell comes in at a port: the port by which it will leave, if it has not been dropped.
    pub fn arrives(&mut self, port: usize, cell: &Cell) -> Option<usize> {
        let header = cell.first_chunk::<CELL_HEADER_OCTETS>().and_then(|head| CellHeader::parse(head).ok());
        let place = header.and_then(|header| self.routes.get(&(port, header.vpi, header.vci)));
        let (Some(mut header), Some(&(out, queue))) = (header, place) else {
            self.strangers += 1;
            return None;
        };
        let port = &mut self.ports[out];
        let is_full = port.waiting >= port.room;
        let queue = &mut port.queues[queue];
        let is_taken = queue.judge(self.rule, is_full, header.is_last());
        if !is_taken {
            queue.counts.dropped += 1;
            return None;
        }
        (_, header.vpi, header.vci) = queue.route.to;
        let mut cell = *cell;
        cell[..CELL_HEADER_OCTETS].copy_from_slice(&header.emit());
        queue.cells.push_back(cell);
        port.waiting += 1;
        Some(out)
    }

    /// When the next cell leaves by this port, if one waits.
    pub fn next_at(&self, port: usize) -> Option<Instant> {
        let port = &self.ports[port];
        let ready = port.queues.iter().filter(|queue| !queue.cells.is_empty()).map(Queue::ready_at);
        ready.min().map(|at| at.max(port.free_at))
    }

    /// The cell that leaves by this port now: of the circuits whose time has come, the next one in turn.
    pub fn leaves(&mut self, now: Instant, port: usize) -> Option<Cell> {
        let port = &mut self.ports[port];
        if now < port.free_at {
            return None;
        }
        let count = port.queues.len();
        let is_next = |at: &usize| {
            let queue = &port.queues[*at];
            !queue.cells.is_empty() && queue.ready_at() <= now
        };
        let place = (port.turn..port.turn + count).map(|at| at % count).find(is_next)?;
        port.turn = place + 1;
        let queue = &mut port.queues[place];
        if let Some(shape) = queue.route.shape {
            queue.due = queue.due.max(now) + shape.gap;
        }
        queue.counts.passed += 1;
        port.waiting -= 1;
        port.free_at = now + port.cell;
        queue.cells.pop_front()
    }

    /// The counts of the circuit that comes by this port under this name.
    pub fn counts(&self, from: (usize, u8, u16)) -> CellCounts {
        self.routes
            .get(&from)
            .map_or_else(CellCounts::default, |(port, queue)| self.ports[*port].queues[*queue].counts)
    }

    /// Cells of circuits that are not open, or with a broken header.
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }
}

impl Queue {
    fn ready_at(&self) -> Instant {
        let Some(shape) = self.route.shape else { return Instant::ZERO };
        self.due.minus(shape.gap * (shape.burst.max(1) - 1))
    }

    /// True if the cell is taken.
    fn judge(&mut self, rule: DropRule, is_port_full: bool, is_last: bool) -> bool {
        let has_room = !is_port_full && self.cells.len() < self.route.room;
        let frame = match (rule, self.frame) {
            (DropRule::Frame { threshold }, Frame::Between) if self.cells.len() >= threshold => {
                Frame::Refused
            }
            (_, Frame::Between) => Frame::Passes,
            (_, frame) => frame,
        };
        let is_taken = match (rule, frame) {
            (_, Frame::Refused) => false,
            (DropRule::Frame { .. }, Frame::Hurt) => is_last && has_room,
            _ => has_room,
        };
        let is_known = frame == Frame::Hurt || self.frame == Frame::Refused;
        self.counts.frames_hurt += u64::from(!is_taken && !is_known);
        let hurt = if frame == Frame::Refused { frame } else { Frame::Hurt };
        self.frame = match (is_last, is_taken) {
            (true, _) => Frame::Between,
            (false, true) => frame,
            (false, false) => hurt,
        };
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_wire::aal5::{Aal5Trailer, CELL_PAYLOAD_OCTETS, aal5_cells};
    use rota_wire::cells::{Reassembly, cut};

    const CELL: Span = Span::from_nanos(4_240);

    fn frame(vci: u16, octets: usize) -> Vec<Cell> {
        let mut pdu = vec![vci as u8; aal5_cells(octets) * CELL_PAYLOAD_OCTETS];
        Aal5Trailer { uu: 0, cpi: 0, length: octets as u16 }.emit(&mut pdu);
        cut(CellHeader { gfc: 0, vpi: 0, vci, pti: 0, clp: false }, &pdu).collect()
    }

    fn route(vci: u16, room: usize, shape: Option<CellShape>) -> Route {
        Route { from: (0, 0, vci), to: (1, 5, vci + 100), room, shape }
    }

    /// All that leaves by port 1: when, and of which circuit.
    fn drained(switch: &mut CellSwitch) -> Vec<(Instant, u16, Cell)> {
        let mut left = vec![];
        while let Some(at) = switch.next_at(1) {
            let cell = switch.leaves(at, 1).expect("it said when");
            let header = CellHeader::parse(cell.first_chunk().unwrap()).expect("a sound header");
            assert_eq!(header.vpi, 5);
            left.push((at, header.vci - 100, cell));
        }
        left
    }

    fn arrive(switch: &mut CellSwitch, cells: &[Cell]) -> usize {
        cells.iter().filter(|cell| switch.arrives(0, cell).is_some()).count()
    }

    #[test]
    fn circuits_take_turns_cell_by_cell_and_none_holds_another_up() {
        let mut switch = CellSwitch::new(2, CELL, 1_000, DropRule::Tail);
        [1, 2, 3].into_iter().for_each(|vci| switch.open(route(vci, 500, None)));
        arrive(&mut switch, &frame(1, 4_128));
        arrive(&mut switch, &frame(2, 80));
        arrive(&mut switch, &frame(3, 80));
        let left = drained(&mut switch);
        let order: Vec<u16> = left.iter().map(|(_, vci, _)| *vci).collect();
        assert_eq!((order.len(), &order[..7]), (91, &[1, 2, 3, 1, 2, 3, 1][..]));
        let apart = left.windows(2).map(|two| two[1].0.since(two[0].0));
        assert!(apart.into_iter().all(|gap| gap == CELL), "the port never rests");
        let mut stranger = frame(9, 1);
        assert_eq!((switch.arrives(0, &stranger[0]), switch.strangers()), (None, 1));
        stranger[0][1] ^= 1;
        assert_eq!((switch.arrives(0, &stranger[0]), switch.strangers()), (None, 2));
    }

    #[test]
    fn a_shaped_circuit_keeps_its_peak_rate_and_its_burst_and_the_others_have_the_rest() {
        let mut switch = CellSwitch::new(2, CELL, 1_000, DropRule::Tail);
        switch.open(route(1, 500, Some(CellShape { gap: CELL * 10, burst: 3 })));
        switch.open(route(2, 500, None));
        arrive(&mut switch, &frame(1, 800));
        arrive(&mut switch, &frame(2, 4_128));
        let left = drained(&mut switch);
        let of = |vci| left.iter().filter(move |cell| cell.1 == vci).map(|cell| cell.0).collect::<Vec<_>>();
        let shaped = of(1);
        // In any interval from one cell to another no more than the burst and one for each gap.
        for (first, at) in shaped.iter().enumerate() {
            for (last, until) in shaped.iter().enumerate().skip(first) {
                let allowed = 3 + until.since(*at).count_down(CELL * 10) as usize;
                assert!(last - first < allowed, "{first} to {last} in {}", until.since(*at));
            }
        }
        assert_eq!(shaped.len(), 17);
        assert!(shaped[16].since(shaped[0]) <= CELL * 10 * 15, "and no less");
        assert_eq!(of(2).len(), 87);
        assert!(*of(2).last().unwrap() < Instant::ZERO + CELL * 100, "it waits for nobody's gap");
    }

    /// Frames that come whole out of a queue with room for `room` cells, while 8 of 20 cells each come in
    /// faster than they leave.
    fn whole(rule: DropRule, room: usize) -> (usize, CellCounts) {
        let mut switch = CellSwitch::new(2, CELL, 1_000, rule);
        switch.open(route(1, room, None));
        let mut reassembly = Reassembly::new(&[(5, 101)], 1_000);
        let (mut frames, mut at, mut now) = (0, 0, Instant::ZERO);
        let cells: Vec<Cell> = (0..8).flat_map(|_| frame(1, 950)).collect();
        while at < cells.len() || switch.next_at(1).is_some() {
            // Three come in the time of two.
            for _ in 0..if at / 3 % 2 == 0 { 1 } else { 2 } {
                if let Some(cell) = cells.get(at) {
                    switch.arrives(0, cell);
                    at += 1;
                }
            }
            if let Some(cell) = switch.leaves(now, 1) {
                frames += usize::from(matches!(reassembly.handle(&cell), Ok(Some(_))));
            }
            now += CELL;
        }
        (frames, switch.counts((0, 0, 1)))
    }

    #[test]
    fn whole_frames_are_dropped_where_the_rule_says_so_and_more_of_them_arrive() {
        let (tail, cut) = whole(DropRule::Tail, 12);
        let (partial, kept) = whole(DropRule::Frame { threshold: 12 }, 12);
        let (early, refused) = whole(DropRule::Frame { threshold: 2 }, 12);
        assert!(cut.dropped > 0 && kept.dropped > 0 && refused.dropped > 0);
        assert!(tail < early && partial <= early, "tail {tail}, partial {partial}, early {early}");
        // A frame that is refused at its first cell costs nothing behind the switch.
        assert_eq!(refused.passed, 20 * early as u64, "{refused:?}");
        assert_eq!(8 - refused.frames_hurt, early as u64);
        assert_eq!(cut.passed + cut.dropped, 160);
    }
}
