//! Two stations of one segment that have one node id.

use super::sinks::PATIENCE;
use super::*;
use crate::KeptNodeId;
use crate::commands::ControlEnd;
use rota_contract::{Mismatch, NodeId};
use rota_driver::in_process::{InProcessDevice, Segment, SegmentSpec};
use rota_shm::{CounterReader, Monitor};

struct Station {
    data: Data<InProcessDevice, NoGate>,
    _control: ControlEnd,
    rows: CounterReader,
}

impl Station {
    fn new(segment: &Segment, last: u8, node_id: NodeId) -> Self {
        let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        let spec = NodeSpec { node_id: KeptNodeId::of(node_id), ..spec(&format!("n{last}"), settings) };
        let device = segment.port([2, 0, 0, 0, 0, last], 1_500).expect("a timer");
        let (control, end) = Wiring::pair().expect("two ends");
        let (table, published) = counters::file(&["none"]).expect("memory");
        let file = table.descriptor().try_clone_to_owned().expect("a copy");
        let rows = CounterReader::open(file).expect("a table");
        let files = Files { published, log: None, wills: Wills::default() };
        let Ok(data) = Data::new(&spec, device, NoGate, end, files) else { panic!("a station") };
        Self { data, _control: control, rows }
    }

    fn turn(&mut self) {
        assert!(self.data.receive(0).is_ok());
        if self.data.node.deadline() <= now() {
            self.data.node.handle_deadline(now());
        }
        assert!(self.data.drain().is_ok());
        self.data.end_turn(now());
    }

    /// The doubles that it names.
    fn doubles(&self) -> Vec<String> {
        let mut seen = Monitor::default();
        // False before the first row is written.
        let _ = self.rows.monitor(0, &mut seen);
        let doubles = seen.all_mismatches().into_iter();
        doubles.filter(|row| row.kind() == Some(Mismatch::NodeId)).map(|row| row.sentence()).collect()
    }
}

#[test]
fn two_stations_with_one_node_id_are_named_until_one_has_gone() {
    let segment = Segment::new(SegmentSpec { rate: None, port_queue: Octets::new(150_000) });
    let mut all =
        [(1, 0xa5), (2, 0xb6), (3, 0xa5)].map(|(last, id)| Station::new(&segment, last, NodeId(id)));
    let give_up = now() + PATIENCE;
    let until = |what: &str, all: &mut [Station; 3], reached: &dyn Fn(&[Station; 3]) -> bool| {
        while !reached(all) {
            assert!(now() < give_up, "{what}: never; {:?}", all[1].doubles());
            all.iter_mut().for_each(Station::turn);
        }
    };
    until("all name them", &mut all, &|all| all.iter().all(|station| station.doubles().len() == 1));
    let said = &all[1].doubles()[0];
    assert!(said.contains("two stations have the node id 00000000000000a5: 02:00:00:00:00:0"), "{said}");
    all[2].data.node.leave(now());
    until("it is mended", &mut all, &|all| all[..2].iter().all(|station| station.doubles().is_empty()));
}
