//! The part of circuits in the control thread, whose data thread the test plays.

use super::*;
use crate::commands::DataEnd;
use crate::privileges::Privileges;
use crate::quota::Quota;
use crate::session::Owned;
use crate::session::tests::session;
use crate::status::Facts;
use rota_contract::{ChannelId, Granted};
use rota_driver::poller::Poller;
use rota_driver::realtime::Realtime;
use rota_proto::Settings;
use rota_shm::control::{Connection, ControlListener, ControlName, Request};
use rota_shm::layout::BoardHeader;
use rota_shm::{NodeSink, SinkShape};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

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

const QUALITY: CircuitQuality =
    CircuitQuality { error_control: true, stream: false, flow: CircuitFlow::Window };
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

    fn sentence(&self, at: usize) -> String {
        match self.told(at) {
            Some(Reply::Error { sentence, .. }) => sentence,
            other => panic!("no error, but {other:?}"),
        }
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

/// A user could have as many circuits as connections.
#[test]
fn an_accept_counts_as_a_channel_and_is_refused_at_the_limit() {
    bench("accept", Quota { channels: 2, ..Quota::default() }, |bench| {
        bench.listens(1, SERVICE);
        let (first, second) = (bench.connect(1), bench.connect(1));
        bench.ask(first, ACCEPT);
        assert!(bench.told(first).is_none(), "it waits");
        bench.ask(second, ACCEPT);
        let sentence = bench.sentence(second);
        assert!(sentence.contains("--user-channels"), "{sentence}");
        bench.offered(circuit(0, 1));
        assert!(matches!(bench.told(first), Some(Reply::Circuit(CircuitAnswer::Accepted { .. }))));
        bench.ask(second, ACCEPT);
        assert!(bench.sentence(second).contains("--user-channels"), "the circuit counts too");
    });
}

/// Level 7 goes before all other ordinary traffic of the host: it is not for every program.
#[test]
fn the_highest_level_is_for_root_and_the_user_of_the_node() {
    bench("level", Quota::default(), |bench| {
        bench.control.user = 7;
        for (user, level, is_let) in [(1, 7, false), (1, 6, true), (7, 7, true), (0, 7, true)] {
            let at = bench.connect(user);
            let (to, quality) = (String::from("n2"), QUALITY);
            bench.ask(at, CircuitAsk::Open { to, service: SERVICE, window: 1, quality, level });
            let asked = matches!(bench.said().pop(), Some(CircuitCommand::Open { .. }));
            assert_eq!(asked, is_let, "level {level} of user {user}");
            if !is_let {
                let said = bench.sentence(at);
                assert!(said.contains("levels 0 to 6") && said.contains("--user-level"), "{said}");
            }
        }
    });
}

#[test]
fn a_circuit_that_its_program_declines_is_declined_once_and_leaves_the_connection_free() {
    bench("decline", Quota::default(), |bench| {
        bench.listens(1, SERVICE);
        let at = bench.connect(1);
        bench.ask(at, CircuitAsk::Decline { reason: 3 });
        assert!(bench.sentence(at).contains("waits to be taken"));
        bench.ask(at, ACCEPT);
        bench.offered(circuit(0, 1));
        assert!(matches!(bench.told(at), Some(Reply::Circuit(CircuitAnswer::Accepted { .. }))));
        bench.said();
        bench.ask(at, CircuitAsk::Decline { reason: 3 });
        assert!(matches!(bench.told(at), Some(Reply::Circuit(CircuitAnswer::Done))));
        let said = bench.said();
        assert!(matches!(said[..], [CircuitCommand::Decline { reason: 3, .. }]));
        bench.ask(at, CircuitAsk::Decline { reason: 3 });
        assert!(bench.sentence(at).contains("waits to be taken"));
        bench.ask(at, ACCEPT);
        bench.offered(circuit(0, 2));
        assert!(matches!(bench.told(at), Some(Reply::Circuit(CircuitAnswer::Accepted { .. }))));
    });
}

#[test]
fn a_connection_beyond_the_limit_may_list_circuits_and_have_none() {
    bench("beyond", Quota::default(), |bench| {
        let at = bench.connect(1);
        bench.control.sessions[at].only_asks = true;
        let (to, quality) = (String::from("n2"), QUALITY);
        let open = CircuitAsk::Open { to, service: SERVICE, window: 1, quality, level: 0 };
        for asked in [listen(SERVICE), ACCEPT, open] {
            assert!(bench.control.is_beyond_asking(at, &Request::Circuit(asked)));
            assert!(bench.sentence(at).contains("--user-connections"));
        }
        assert!(!bench.control.is_beyond_asking(at, &Request::Circuit(CircuitAsk::List)));
    });
}

#[test]
fn a_user_leaves_half_of_a_port_to_others() {
    bench("share", Quota::default(), |bench| {
        bench.listens(1, SERVICE);
        (0..32).for_each(|number| bench.offered(circuit(0, number)));
        assert!(bench.released().is_empty());
        bench.offered(circuit(0, 32));
        assert_eq!(bench.released(), [circuit(0, 32)]);
        bench.offered(circuit(1, 32));
        assert!(bench.released().is_empty(), "the other port has ends of its own");

        // Another user may ask, and this one may not.
        for (user, is_let) in [(2, true), (1, false)] {
            let (to, quality) = (String::from("n2"), QUALITY);
            let at = bench.connect(user);
            bench.ask(at, CircuitAsk::Open { to, service: 1, window: 1, quality, level: 0 });
            let Some(CircuitCommand::Open { ask, .. }) = bench.said().pop() else { panic!("it asks") };
            let of = circuit(0, 100 + u64::from(user));
            bench.control.on_circuit(CircuitNote::Asked { ask, result: Ok(of) });
            assert_eq!(bench.released().is_empty(), is_let, "user {user}");
            assert_eq!(bench.told(at).is_none(), is_let, "user {user}");
        }
        (10..17).for_each(|service| _ = bench.listens(1, service));
        let more = bench.connect(1);
        bench.ask(more, listen(17));
        assert!(bench.sentence(more).contains("8 listeners for circuits"));
        bench.listens(2, 17);
    });
}

/// The data thread kept such an end for ever.
#[test]
fn an_end_that_crosses_with_the_death_of_its_listener_is_released() {
    bench("crosses", Quota::default(), |bench| {
        let first = bench.listens(1, SERVICE);
        bench.offered(circuit(0, 1));
        bench.control.forget(&Poller::new(1).expect("a poller"), first);
        bench.programs.clear();
        assert!(bench.released().is_empty(), "the end of its service is the end of what it was offered");
        bench.control.on_circuit(CircuitNote::Ended { circuit: circuit(0, 1), end: CircuitEnd::Silent });
        assert_eq!(bench.released(), [circuit(0, 1)]);

        // One whose program is about to map it is told there.
        bench.listens(1, SERVICE);
        let program = bench.connect(1);
        bench.ask(program, ACCEPT);
        bench.offered(circuit(0, 2));
        bench.control.on_circuit(CircuitNote::Ended { circuit: circuit(0, 2), end: CircuitEnd::Silent });
        assert!(bench.released().is_empty());
    });
}

/// Each program that asked in a loop let the data thread copy the whole table for each of its questions.
#[test]
fn lists_are_made_for_all_who_wait_and_not_more_often_than_snapshots() {
    bench("lists", Quota::default(), |bench| {
        let asked = |bench: &Bench<'_>| {
            bench.said().into_iter().find_map(|command| match command {
                CircuitCommand::List { ask } => Some(ask),
                _ => None,
            })
        };
        let (first, second, late) = (bench.connect(1), bench.connect(2), bench.connect(1));
        let begin = Instant::from_nanos(1_000_000_000);
        assert_eq!(bench.control.ask_for_circuits(begin), Instant::FAR);
        assert_eq!(asked(bench), None, "nobody wants one");
        bench.ask(first, CircuitAsk::List);
        bench.ask(second, CircuitAsk::List);
        assert_eq!(bench.control.ask_for_circuits(begin), Instant::FAR);
        let ask = asked(bench).expect("a question");
        bench.ask(late, CircuitAsk::List);
        bench.control.ask_for_circuits(begin);
        assert_eq!(asked(bench), None, "one at a time");
        bench.control.on_circuit(CircuitNote::Listed { ask, all: Vec::new() });
        for at in [first, second] {
            assert!(matches!(bench.told(at), Some(Reply::Circuit(CircuitAnswer::List(_)))));
        }
        assert!(bench.told(late).is_none(), "the list is older than its question");
        let next = bench.control.ask_for_circuits(begin);
        assert_eq!((next, asked(bench)), (begin + super::super::SNAPSHOT_EVERY, None));
        bench.control.ask_for_circuits(next);
        assert!(asked(bench).is_some());
    });
}

/// A program that takes its frames itself counts late units by the bound on its board.
#[test]
fn a_change_is_written_on_the_board_of_its_channel() {
    bench("change", Quota::default(), |bench| {
        let at = bench.connect(1);
        let shape = SinkShape { slots: 4, fragment_octets: 512, unit_octets_max: 500 };
        let sink = NodeSink::create(shape).expect("memory");
        let file = File::from(sink.descriptors()[0].try_clone_to_owned().expect("a descriptor"));
        let (channel, board) = (ChannelId(7), Some(sink.into_parts().1));
        bench.control.sessions[at].channels.push(Owned { channel, board, told: true, ..Owned::default() });
        let on_board = || {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, offset_of!(BoardHeader, bound_ns) as u64).expect("it is there");
            u64::from_ne_bytes(word)
        };
        let mut granted = Granted::default();
        for bound_ns in [40_000, 30_000] {
            granted.contract.bound_ns = bound_ns;
            bench.control.on_changed(channel, granted);
            assert_eq!(on_board(), bound_ns);
        }
    });
}
