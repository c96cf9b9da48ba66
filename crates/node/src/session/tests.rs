//! Sessions, without the threads around them.

use super::*;
use rota_contract::AskedTerms;
use rota_shm::SocketShape;
use rota_shm::control::{ControlListener as Door, ControlName};

/// A session of user 0, and its client.
pub(crate) fn session(name: &str) -> (Session, Connection) {
    let name = ControlName::named(&format!("test-{}-{name}", std::process::id())).unwrap();
    let door = Door::bind(&name).unwrap();
    let client = Connection::connect(&name).unwrap();
    (Session::new(1, 0, door.accept().unwrap().unwrap()), client)
}

/// A note about a hostile program's socket closed the socket of the program that had opened the same
/// number meanwhile.
#[test]
fn a_hostile_socket_ends_and_a_later_one_of_that_number_stays() {
    let (control, data) = ControlEnd::pair().unwrap();
    let (mut session, client) = session("hostile");
    session.socket = Some(OwnedSocket { number: 2, memory: None, charge: None, attached: 9 });
    session.end_socket(8, "hostile", "it wrote nonsense", &control);
    assert!(session.socket.is_some() && data.heard().is_none() && client.try_reply().unwrap().is_none());
    session.end_socket(9, "hostile", "it wrote nonsense", &control);
    assert!(session.socket.is_none());
    assert!(matches!(data.heard(), Some(Command::DetachSocket { socket: 2 })));
    let Reply::Error { sentence, wrong_use: true } = client.try_reply().unwrap().unwrap().body else {
        panic!("no error")
    };
    assert_eq!(sentence, "socket 2 was closed: it wrote nonsense");
    let (process, user) = (std::process::id(), session.user);
    assert_eq!(session.program(), format!("the program is process {process} of user {user}"));
}

/// The data thread knows the socket by the request that attached it.
#[test]
fn a_socket_ends_by_the_note_about_the_memory_that_was_attached() {
    let (control, data) = ControlEnd::pair().unwrap();
    let (mut session, client) = session("attached");
    let memory = NodeSocket::create(SocketShape { messages: 1, message_octets_max: 100, rx_slots: 1 });
    let memory = Some(Box::new(memory.unwrap()));
    session.socket = Some(OwnedSocket { number: 2, memory, charge: None, attached: 0 });
    session.socket_mapped(9, &control);
    let Some(Command::AttachSocket { memory, .. }) = data.heard() else { panic!("it is attached") };
    session.end_socket(memory.attached, "hostile", "it wrote nonsense", &control);
    assert!(session.socket.is_none());
    assert!(matches!(client.try_reply().unwrap().unwrap().body, Reply::Error { wrong_use: true, .. }));
}

/// Such an answer once ended the session of each program that asked.
#[test]
fn an_answer_too_long_for_a_message_is_an_error_and_the_session_lives() {
    let (session, client) = session("long");
    let list = vec!["x".repeat(1_000); rota_shm::control::MESSAGE_OCTETS_MAX / 1_000];
    assert!(session.reply(&Reply::NoSuchStation { sentence: list.concat() }, &[]));
    assert!(!session.is_over());
    let told = client.try_reply().unwrap().unwrap().body;
    assert!(matches!(told, Reply::NoSuchStation { .. }), "one of nearly the greatest length passes");
    assert!(session.reply(&Reply::NoSuchStation { sentence: list.concat() + &list.concat() }, &[]));
    assert!(!session.is_over());
    let Reply::Error { sentence, wrong_use: false } = client.try_reply().unwrap().unwrap().body else {
        panic!("no error")
    };
    assert!(sentence.contains("octets where 131072 are allowed"), "{sentence}");
}

/// Answers come in another order than requests: without their numbers each was taken for another's.
#[test]
fn an_answer_repeats_the_number_of_its_request_and_news_have_none() {
    let (mut session, client) = session("numbers");
    let next = || client.try_reply().unwrap().unwrap();
    session.to(7);
    session.wait_for(1, Asked::Status);
    assert!(session.to(8).reply(&Reply::Done, &[]) && next().number == 8);
    assert!(session.news(&Reply::Done) && next().number == UNASKED);
    let Question { number, .. } = session.asked.remove(0);
    session.to(number).error("it waited", false);
    assert!(next().number == 7);
}

/// A program that died while its listen had no answer yet left the service taken.
#[test]
fn all_listens_of_a_dead_program_end_answered_or_not() {
    let (control, data) = ControlEnd::pair().unwrap();
    let (mut session, client) = session("listens");
    let listening =
        |id, service| Listening { id, service, buffers: 4, asks: id == 8, apart: false, invites: false };
    session.listens.push(listening(3, 5));
    for id in [4, 6] {
        let asked = Asked::Listen { from: None, listener: listening(id, 5) };
        let command = Command::Listen { ask: id, service: 5, from: None, invites: None };
        session.ask(id, asked, command, &control);
    }
    session.invitees.push(11);
    session.ask(
        12,
        Asked::Invitee { service: 5 },
        Command::Invitee { ask: 12, service: 5, uid: 0 },
        &control,
    );
    session.wait_for(5, Asked::Status);
    let coming = Coming {
        channel: ChannelId(70),
        shared: ChannelId(71),
        label: 1,
        peer: Peer::default(),
        granted: Granted::default(),
        before: 0,
    };
    session.waiting.push(Waiting { listened: listening(8, 5), coming, until: Instant::FAR });
    assert_eq!(session.weight(), 6);
    drop(client);
    assert!(session.is_over());
    session.forget(&control);
    let (mut taken, mut denied, mut invited) = (vec![3_u64, 8], Vec::new(), vec![11]);
    while let Some(command) = data.heard() {
        match command {
            Command::Listen { ask, .. } => taken.push(ask),
            Command::Unlisten { listener } => taken.retain(|id| *id != listener),
            Command::Deny { channel } => denied.push(channel),
            Command::Invitee { ask, .. } => invited.push(ask),
            Command::RemoveInvitee { invitee } => invited.retain(|ask| *ask != invitee),
            _ => panic!("neither a listen nor its end"),
        }
    }
    assert_eq!(denied, [ChannelId(70)], "about which it was asked");
    assert!(invited.is_empty(), "invitees that stay: {invited:?}");
    assert!(taken.is_empty(), "services that stay taken: {taken:?}");
}

/// They were ignored, and the answer sounded as if they had changed.
#[test]
fn a_change_of_what_an_open_channel_keeps_is_wrong_use() {
    let (control, data) = ControlEnd::pair().unwrap();
    let (mut session, client) = session("keeps");
    let mut change = |terms| {
        let change = AskedChange { unit_octets_max: Some(9), terms, ..AskedChange::default() };
        session.modify(1, ChannelId(7), change, &control);
    };
    change(AskedTerms { backup: true, ..AskedTerms::default() });
    let Reply::Error { sentence, wrong_use: true } = client.try_reply().unwrap().unwrap().body else {
        panic!("no error")
    };
    assert!(sentence.contains("keeps its path in reserve"), "{sentence}");
    assert!(data.heard().is_none());
    change(AskedTerms::default());
    assert!(matches!(data.heard(), Some(Command::Change { .. })));
}

/// A peer that modified its channel some hundred times ended it: the receiver reads no such news.
#[test]
fn news_that_nobody_reads_end_no_session_but_an_answer_without_room_does() {
    let (session, client) = session("news");
    let news = Reply::Changed { channel: ChannelId(1), contract: Granted::default() };
    let told = || (0..100_000).take_while(|_| session.news(&news)).count();
    let first = told();
    assert!(first > 10 && first < 100_000 && !session.is_over(), "{first}");
    // A program that reads hears more.
    while client.try_reply().is_ok_and(|reply| reply.is_some()) {}
    assert!(told() > 10 && !session.is_over());
    assert!(!session.reply(&Reply::Done, &[]) && session.is_over());
}
