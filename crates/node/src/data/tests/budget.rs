//! The budget of this host's programs in a turn.

use super::*;
use std::os::unix::fs::FileExt;

/// Two units of 100,000 octets.
const LONG: SourceShape = SourceShape { buffers: 2, unit_octets_max: 100_000 };
const MESSAGES: u16 = 8;
const MESSAGE_OCTETS: usize = 16_000;
/// Below 200 µs of copying, on any machine that runs this protocol.
const OCTETS_A_TURN: u64 = 128_000;

fn home(socket: u8) -> u64 {
    MessageRoute { socket, node: 1, ..MessageRoute::default() }.pack()
}

/// A turn of a station that is to have something to do.
fn turn(data: &mut Data<Sink, NoGate>) {
    data.work.leaving.get_or_insert_with(|| Leaving::at(now() + Span::from_millis(60_000)));
    let goes_on = data.turn(now());
    assert!(matches!(goes_on, Ok(Some(_))), "it sleeps, and not all is done");
}

fn taken(data: &Data<Sink, NoGate>) -> u64 {
    data.node.llc().counters().messages_received
}

/// 20 programs that sent to their own station made 43 of 183 units of another channel late, and 100 programs
/// turns of 482 ms: a turn copied all that they had written.
#[test]
fn a_hundred_programs_that_flood_their_own_station_leave_a_turn_its_time() {
    let (mut data, _control) = alone();
    let mut programs: Vec<ClientSocket> = Vec::new();
    // 170 is no socket.
    let sockets: Vec<u8> = (1..=101).map(|nth| nth * 2).filter(|socket| *socket != 170).collect();
    for socket in &sockets {
        programs.push(program(&mut data, *socket, u64::from(*socket) + 1_000, MESSAGES));
    }
    for (program, socket) in programs.iter_mut().zip(&sockets) {
        for _ in 0..MESSAGES {
            let written = program.messages.try_write_to(&[7; MESSAGE_OCTETS], Instant::ZERO, home(*socket));
            written.expect("room");
        }
        program.ring_doorbell();
    }
    let all = taken(&data) + 100 * u64::from(MESSAGES);
    let (mut turns, mut most) = (0, 0);
    while taken(&data) < all {
        let before = taken(&data);
        turn(&mut data);
        most = most.max(taken(&data) - before);
        turns += 1;
        assert!(turns < 10_000, "{} of {all} came", taken(&data));
    }
    assert!(most * (MESSAGE_OCTETS as u64) <= OCTETS_A_TURN, "{most} messages in one turn");
    assert!(sleeps(&mut data), "and then it sleeps");
    assert!(programs.iter().all(|program| program.messages.waiting() == 0));
}

#[test]
fn a_program_with_one_message_waits_for_no_full_ring() {
    let (mut data, _control) = alone();
    let mut flood: Vec<ClientSocket> =
        (1..=20u8).map(|nth| program(&mut data, nth * 2, u64::from(nth) + 1_000, 64)).collect();
    let mut modest = program(&mut data, 60, 2_000, 64);
    for program in &mut flood {
        for _ in 0..64 {
            program.messages.try_write_to(&[7; MESSAGE_OCTETS], Instant::ZERO, home(2)).expect("room");
        }
        program.ring_doorbell();
    }
    turn(&mut data);
    modest.messages.try_write_to(b"one", Instant::ZERO, home(60)).expect("room");
    modest.ring_doorbell();
    let mut turns = 0;
    while modest.messages.waiting() > 0 {
        turn(&mut data);
        turns += 1;
    }
    // One message of each ring, three or four a turn; all that the others have are 320 turns and more.
    assert!(turns <= 20, "after {turns} turns");
}

#[test]
fn what_the_control_thread_says_is_heard_in_turns_and_none_of_it_is_forgotten() {
    let (mut data, control) = alone();
    for ask in 0..100 {
        control.say(Command::CancelSocket { ask, socket: 2 });
    }
    let mut most = 0;
    let mut heard = 0;
    for _ in 0..100 {
        if heard == 100 {
            break;
        }
        turn(&mut data);
        let notes = std::iter::from_fn(|| control.heard());
        let notes = notes.filter(|note| matches!(note, Note::Done { .. })).count();
        (most, heard) = (most.max(notes), heard + notes);
    }
    assert_eq!(heard, 100);
    assert!(most <= COMMANDS_A_TURN, "{most}");
}

/// The number of a unit that its program spoilt stayed a gap: the receiver took it for a loss on the wire,
/// and named an innocent station for it.
#[test]
fn a_unit_that_changes_while_it_is_sent_ends_its_channel() {
    let (mut data, control) = alone();
    let (channel, (_program, memory)) = (ChannelId(1), source(LONG));
    control.say(Command::AttachSource { channel, memory });
    turn(&mut data);
    data.slot(now(), channel, Some((0, UnitFate::Dropped)));
    assert!(data.follow_up());
    let notes: Vec<Note> = std::iter::from_fn(|| control.heard()).collect();
    assert!(notes.iter().any(|note| matches!(note, Note::Hostile { channel: ChannelId(1), .. })));
    assert!(data.rings.sources.is_empty());
}

/// A channel ended for a broken ring where its contract had become less than its program knew.
#[test]
fn a_unit_beyond_a_contract_that_is_over_ends_nothing() {
    let (mut data, control) = alone();
    let (channel, (mut program, memory)) = (ChannelId(1), source(LONG));
    program.ring.try_write(b"unit", now()).expect("room");
    control.say(Command::AttachSource { channel, memory });
    turn(&mut data);
    data.slot(now(), channel, Some((0, UnitFate::Beyond)));
    data.follow_up();
    let notes: Vec<Note> = std::iter::from_fn(|| control.heard()).collect();
    assert!(!notes.iter().any(|note| matches!(note, Note::Hostile { .. })));
    assert_eq!((data.rings.sources.len(), program.board.units_sent()), (1, 1));
}

/// The data thread panicked: the place of the newest ring was looked at although it had moved.
#[test]
fn a_hostile_ring_ends_its_own_channel_and_the_newer_ones_go_on() {
    for hostile in 0..3 {
        let (mut data, control) = alone();
        let (mut programs, mut files) = (Vec::new(), Vec::new());
        for number in 0..3 {
            let (program, memory, file) = source_of(SHORT, false);
            data.attach(now(), ChannelId(number), memory);
            programs.push(program);
            files.push(file);
        }
        for program in &mut programs {
            program.ring.try_write(b"a unit", now()).expect("room");
        }
        files[hostile as usize].write_all_at(&[0xff; 8], 0).expect("the program's own memory");
        let ready: Vec<u64> = data.rings.sources.iter().map(|source| source.token).collect();
        assert!(data.look_at_rings(now(), &ready).is_ok());
        let notes: Vec<Note> = std::iter::from_fn(|| control.heard()).collect();
        let ended =
            |note: &&Note| matches!(note, Note::Hostile { channel, .. } if *channel == ChannelId(hostile));
        assert_eq!(notes.iter().filter(ended).count(), 1);
        assert_eq!(data.rings.sources.len(), 2);
        assert!(data.rings.sources.iter().all(|source| source.offered.len() == 1), "{hostile}");
    }
}

/// Four channels of 250 MB kept every other waiting 160 to 275 ms when they ended.
#[test]
fn the_memory_of_what_has_ended_is_unmapped_by_the_control_thread() {
    let (mut data, control) = alone();
    let _program = program(&mut data, 2, SOCKET, 8);
    let (channel, (_writer, memory)) = (ChannelId(1), source(LONG));
    control.say(Command::AttachSource { channel, memory });
    control.say(Command::Abort { channel });
    control.say(Command::DetachSocket { socket: 2 });
    turn(&mut data);
    let left = |note| if let Note::Remains(remains) = note { Some(remains) } else { None };
    let remains: Vec<Remains> = std::iter::from_fn(|| control.heard()).filter_map(left).collect();
    assert!(matches!(remains[..], [Remains::Source(_), Remains::Socket(_)]), "{}", remains.len());
}
