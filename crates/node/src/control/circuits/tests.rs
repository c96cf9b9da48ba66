//! The part of circuits in the control thread, whose data thread the test plays.

use super::*;
use crate::commands::DataEnd;
use crate::privileges::Privileges;
use crate::quota::Quota;
use crate::session::tests::session;
use crate::status::Facts;
use rota_driver::poller::Poller;
use rota_driver::realtime::Realtime;
use rota_proto::Settings;
use rota_shm::control::{Connection, ControlListener, ControlName};

const SERVICE: u32 = 7;

/// A control thread, its data thread's end, and the programs' ends of its sessions.
struct Bench<'a> {
    control: Control<'a>,
    data: DataEnd,
    programs: Vec<Connection>,
    name: &'static str,
}

fn bench(name: &'static str, quota: Quota, test: impl FnOnce(&mut Bench<'_>)) {
    let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    let spec = crate::NodeSpec { quota, ..crate::data::tests::spec("n1", settings.clone()) };
    let (table, _published) = crate::counters::file(&["none"]).expect("memory");
    let facts = Facts::of(&spec, &[("none", &settings)], table, None, Privileges::begin(false));
    let (facts, realtime) = (facts.expect("facts"), Realtime::default());
    let (to_data, data) = ControlEnd::pair().expect("two ends");
    let door = ControlName::named(&format!("test-{}-door-{name}", std::process::id())).expect("a name");
    let door = ControlListener::bind(&door).expect("a door");
    let control = Control::new(&facts, &realtime, &to_data, &door);
    test(&mut Bench { control, data, programs: Vec::new(), name });
}

const fn listen(service: u32) -> CircuitAsk {
    CircuitAsk::Listen { service, window: 1, backlog: 64 }
}

const ACCEPT: CircuitAsk = CircuitAsk::Accept { service: SERVICE };

fn circuit(port: u8, number: u64) -> CircuitId {
    CircuitId(u64::from(port) << 56 | number)
}

impl Bench<'_> {
    /// A connection of a user. Returns its place.
    fn connect(&mut self, user: u32) -> usize {
        let at = self.control.sessions.len();
        let (mut session, program) = session(&format!("circuits-{}-{at}", self.name));
        (session.id, session.user, session.greeted) = (16 + at as u64, user, true);
        self.control.sessions.push(session);
        self.programs.push(program);
        at
    }

    fn ask(&mut self, at: usize, asked: CircuitAsk) {
        self.control.next += 1;
        let (ask, had) = (self.control.next, self.control.channels_of_user(at));
        self.control.circuit_asked(at, ask, had, asked);
    }

    fn told(&self, at: usize) -> Option<Reply> {
        self.programs[at].try_reply().expect("it is there").map(|message| message.body)
    }

    /// What the data thread hears.
    fn said(&self) -> Vec<CircuitCommand> {
        let circuits = |command| match command {
            Command::Circuit(command) => Some(command),
            _ => None,
        };
        std::iter::from_fn(|| self.data.heard()).filter_map(circuits).collect()
    }

    fn released(&self) -> Vec<CircuitId> {
        let released = |command| match command {
            CircuitCommand::Release { circuit } => Some(circuit),
            _ => None,
        };
        self.said().into_iter().filter_map(released).collect()
    }

    /// The data thread takes circuits for the listener that it was told of last.
    fn opens(&mut self) {
        let ask = self.said().into_iter().find_map(|command| match command {
            CircuitCommand::Listen { ask, .. } => Some(ask),
            _ => None,
        });
        let ask = ask.expect("a listener");
        self.control.on_circuit(CircuitNote::Listening { ask, result: Ok(()) });
    }

    fn listens(&mut self, user: u32, service: u32) -> usize {
        let at = self.connect(user);
        self.ask(at, listen(service));
        self.opens();
        assert!(matches!(self.told(at), Some(Reply::Circuit(CircuitAnswer::Listening))));
        at
    }

    fn offered(&mut self, circuit: CircuitId) {
        let (source, serial, from, tpdu) = (1, 1, 1, 100);
        let terms =
            Terms { source, serial, from, service: SERVICE, window: 1, tpdu, quality: Quality::RELIABLE };
        let from = String::from("n2");
        self.control.on_circuit(CircuitNote::Offered { circuit, from, terms, name: 1 });
    }
}

/// The next listener of the service, of another user, accepted it: its program waited for ever.
#[test]
fn an_offer_whose_listener_is_gone_goes_to_no_later_listener() {
    bench("late", Quota::default(), |bench| {
        let first = bench.listens(1, SERVICE);
        bench.control.forget(&Poller::new(1).expect("a poller"), first);
        bench.programs.clear();
        assert!(matches!(bench.said()[..], [CircuitCommand::Unlisten { service: SERVICE }]));
        bench.offered(circuit(0, 1));
        assert_eq!(bench.released(), [circuit(0, 1)], "nobody listens");

        let next = bench.connect(2);
        bench.ask(next, listen(SERVICE));
        bench.offered(circuit(0, 2));
        let said = bench.said();
        let [CircuitCommand::Listen { ask, .. }, CircuitCommand::Release { circuit: of }] = said[..] else {
            panic!("another listener got it")
        };
        assert_eq!(of, circuit(0, 2));
        bench.control.on_circuit(CircuitNote::Listening { ask, result: Ok(()) });
        let program = bench.connect(2);
        bench.ask(program, ACCEPT);
        assert!(bench.said().is_empty() && bench.told(program).is_none());
        bench.offered(circuit(0, 3));
        assert!(matches!(bench.said()[..], [CircuitCommand::Accept { circuit: of }] if of == circuit(0, 3)));
        assert!(matches!(bench.told(program), Some(Reply::Circuit(CircuitAnswer::Accepted { .. }))));
    });
}
