//! Fuzz targets of the bypass as plain functions.

use super::code::Dialect;
use super::filter::{HEADERS, Inlet, LEAVE, Network, TAKE, filter, tail};
use super::interpret::{Context, Kernel};
use super::model::{Delivery, Socket, stack, sum, udp_sum};
use super::packet::{Counts, HEAD_OCTETS, Path, key, value};
use crate::sys::interpreted::run;
use std::net::{Ipv4Addr, SocketAddrV4};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 1);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 9), 4_000);

/// The host of these targets: two networks here, and a socket of each kind.
fn host() -> (Inlet, Vec<Socket>) {
    let network = |address, prefix| Network { address, prefix };
    let networks = vec![network(OWN, 24), network(Ipv4Addr::new(172, 16, 4, 1), 22)];
    let own = vec![OWN, OTHER, Ipv4Addr::new(172, 16, 4, 1)];
    let socket = |address, port, peer| Socket { bound: SocketAddrV4::new(address, port), peer };
    let sockets = vec![socket(OWN, 5_000, None), socket(OWN, 5_001, Some(PEER)), socket(OTHER, 5_000, None)];
    (Inlet { own, networks }, sockets)
}

/// The octets that decide about a packet; zeros once they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn octet(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.octet()) % all.len()]
    }
}

/// Lengths around the limits of records, and odd ones.
const LENGTHS: [usize; 12] = [100, 0, 1, 2, 3, 104, 105, 488, 489, 1_480, 1_481, 1_472];
const SOURCES: [[u8; 4]; 14] = [
    [10, 1, 0, 9],
    [172, 16, 7, 254],
    [10, 1, 0, 0],
    [10, 1, 0, 255],
    [172, 16, 7, 255],
    [10, 1, 0, 1],
    [192, 168, 7, 1],
    [172, 16, 4, 1],
    [172, 16, 4, 0],
    [8, 8, 8, 8],
    [127, 0, 0, 1],
    [224, 0, 0, 5],
    [0, 0, 0, 0],
    [255, 255, 255, 255],
];

/// A sound packet for one of the sockets.
fn sound(choices: &mut Choices<'_>) -> (Vec<u8>, Context) {
    let length = choices.of(&LENGTHS);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
    let total = (28 + length) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([choices.octet(), 7, choices.of(&[0x40, 0]), 0, 64, 17, 0, 0]);
    let rare = choices.of(&SOURCES);
    frame.extend(choices.of(&[PEER.ip().octets(), PEER.ip().octets(), [172, 16, 5, 2], rare]));
    frame.extend(choices.of(&[OWN, OWN, OTHER]).octets());
    frame.extend(choices.of(&[4_000_u16, 9]).to_be_bytes());
    frame.extend(choices.of(&[5_000_u16, 5_000, 5_001]).to_be_bytes());
    frame.extend((8 + length as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..length).map(|at| (at as u8).wrapping_mul(37)));
    (frame, Context::default())
}

/// Makes both sums right where the lengths allow that; without one of UDP, if so.
fn mend(frame: &mut [u8], with_udp: bool) {
    let header = 14 + usize::from(frame.get(14).copied().unwrap_or(0) & 0xf) * 4;
    if header < 34 || header + 8 > frame.len() {
        return;
    }
    frame[24..26].fill(0);
    let right = !sum(&[&frame[14..header]]);
    frame[24..26].copy_from_slice(&right.to_be_bytes());
    frame[header + 6..header + 8].fill(0);
    let octets = usize::from(u16::from_be_bytes([frame[header + 4], frame[header + 5]]));
    let end = header + octets;
    if with_udp && octets >= 8 && end <= frame.len() {
        let right = !udp_sum(&frame[14..], &frame[header..end]);
        let right = if right == 0 { 0xffff } else { right };
        frame[header + 6..header + 8].copy_from_slice(&right.to_be_bytes());
    }
}

/// One thing that makes a packet rare, or wrong.
fn change(frame: &mut Vec<u8>, context: &mut Context, choices: &mut Choices<'_>) {
    let put = |frame: &mut Vec<u8>, at: usize, octets: &[u8]| {
        if let Some(place) = frame.get_mut(at..at + octets.len()) {
            place.copy_from_slice(octets);
        }
    };
    match choices.octet() % 16 {
        0 => put(frame, 12, &choices.of(&[[0x86, 0xdd], [0x81, 0], [8, 6], [0x88, 0xb5]])),
        1 => _ = frame.splice(12..12, [0x81, 0, 0, 5]),
        2 => context.kind = choices.of(&[1, 2, 3]),
        3 => context.has_vlan = true,
        4 => context.segment = 1_000,
        5 => put(frame, 14, &[choices.of(&[0x44, 0x46, 0x4f, 0x65, 0x55, 0x05])]),
        // An option of four octets, and lengths that count it.
        6 => {
            put(frame, 14, &[0x46]);
            let total = frame.get(16..18).map_or(0, |word| u16::from_be_bytes([word[0], word[1]]));
            put(frame, 16, &total.wrapping_add(4).to_be_bytes());
            if frame.len() >= 34 {
                frame.splice(34..34, choices.of(&[[1, 1, 1, 0], [0x94, 4, 0, 0]]));
            }
        }
        7 => put(frame, 16, &choices.of(&[0_u16, 20, 27, 28, 29, 127, 129, 65_535]).to_be_bytes()),
        8 => put(frame, 20, &choices.of(&[0x2000_u16, 0x0001, 0x1fff, 0x8000, 0x6000]).to_be_bytes()),
        9 => put(frame, 23, &[choices.of(&[6, 1, 0, 16, 18])]),
        10 => put(frame, 26, &choices.of(&SOURCES)),
        11 => put(frame, 30, &choices.of(&[[10, 1, 0, 2], [224, 0, 0, 5], [255; 4], [10, 1, 0, 255]])),
        12 => put(frame, 34 + 2 * usize::from(choices.octet() & 1), &choices.word().to_be_bytes()),
        13 => put(frame, 38, &choices.of(&[0_u16, 7, 8, 9, 107, 109, 65_535]).to_be_bytes()),
        14 => frame.resize(usize::from(choices.word()) % 1_600, choices.octet()),
        _ => {
            let (at, bits) = (usize::from(choices.word()), choices.octet());
            if let Some(octet) = frame.get_mut(at % 1_600) {
                *octet ^= bits;
            }
        }
    }
}

/// The packet that the data describes.
fn packet(data: &[u8]) -> (Vec<u8>, Context) {
    let mut choices = Choices(data);
    let (mut frame, mut context) = sound(&mut choices);
    let (changes, mended) = (choices.octet() % 4, choices.octet());
    mend(&mut frame, mended & 1 == 0);
    for _ in 0..changes {
        change(&mut frame, &mut context, &mut choices);
    }
    if mended & 2 != 0 {
        mend(&mut frame, mended & 1 == 0);
    }
    context.octets = frame.len() as u32;
    (frame, context)
}

/// True if a record holds exactly what was delivered.
fn does_hold(record: &[u8], delivery: &Delivery<'_>, path: Path) -> bool {
    let mut wanted = Vec::new();
    wanted.extend(delivery.from.ip().octets());
    wanted.extend(delivery.from.port().to_be_bytes());
    wanted.extend((path as u16).to_ne_bytes());
    wanted.extend((delivery.octets.len() as u32).to_ne_bytes());
    wanted.extend(delivery.to.octets());
    wanted.extend(delivery.octets);
    assert_eq!(wanted.len(), HEAD_OCTETS + delivery.octets.len());
    record.get(..wanted.len()) == Some(&wanted[..])
}

/// The filter against the model of the layers: it takes a packet where they deliver it and nothing about it
/// is rare, and puts into the queue of the same socket what they would deliver.
pub fn fuzz_bypass_filter(data: &[u8]) {
    let _ = is_taken(data);
}

fn is_taken(data: &[u8]) -> bool {
    let (frame, context) = packet(data);
    let (inlet, _) = host();
    let code = filter(&inlet, Kernel::maps(), Dialect::Interpreter);
    let taken = compare(&code, &frame, context, data.first().is_some_and(|first| *first == 0xff));
    taken.unwrap_or_else(|wrong| panic!("{wrong}: {frame:02x?}"))
}

/// Runs the filter and the layers on one packet; true if the filter takes it, an error if they differ.
fn compare(code: &[u8], frame: &[u8], context: Context, is_full: bool) -> Result<bool, String> {
    let (inlet, sockets) = host();
    let entry = |(slot, socket): (usize, &Socket)| {
        (key(socket.bound).to_vec(), value(socket.peer, slot as u32).to_vec())
    };
    let kernel = Kernel {
        packet: frame.to_vec(),
        sockets: sockets.iter().enumerate().map(entry).collect(),
        slots: sockets.len(),
        is_full,
        ..Kernel::default()
    };
    let outcome = run(code, &context, kernel)?;
    let is_or = |right: bool, wrong: &str| if right { Ok(()) } else { Err(wrong.to_owned()) };
    let delivered = stack(frame, context, &inlet, &sockets);
    let Some(delivery) = delivered.filter(|delivery| delivery.is_plain) else {
        // A full queue discards before the sum is verified: what the layers would have discarded later.
        is_or(is_full || outcome.answer == LEAVE, "it takes what is not delivered, or rare")?;
        is_or(outcome.records.is_empty(), "it puts what is not delivered into a queue")?;
        return Ok(false);
    };
    is_or(outcome.answer == TAKE, "it leaves what is plain")?;
    let counts = Counts::parse(&outcome.counts[delivery.socket]);
    if is_full {
        is_or(outcome.records.is_empty(), "it fills a full queue")?;
        is_or(counts == Counts { queue_full: 1, ..Counts::default() }, "it does not count that")?;
        return Ok(true);
    }
    is_or(counts == Counts { bypass: 1, ..Counts::default() }, "it counts something else")?;
    let [(ring, record)] = &outcome.records[..] else { return Err("one record is due".into()) };
    is_or(*ring as usize == delivery.socket, "it is another socket's queue")?;
    is_or(does_hold(record, &delivery, Path::Bypass), "the record holds something else")?;
    Ok(true)
}

/// The tail against the model: each packet that the layers deliver enters the same queue with its octets.
pub fn fuzz_bypass_tail(data: &[u8]) {
    let (inlet, sockets) = host();
    let (frame, context) = packet(data);
    let Some(delivery) = stack(&frame, context, &inlet, &sockets) else { return };
    let header = 14 + usize::from(frame[14] & 0xf) * 4;
    // The layers have cut off what lies behind the datagram.
    let end = header + 8 + delivery.octets.len();
    let slot = delivery.socket as u32;
    let kernel = Kernel {
        packet: frame[..end].to_vec(),
        data_at: header,
        network_at: 14,
        slots: sockets.len(),
        ..Kernel::default()
    };
    let context = Context { octets: (end - header) as u32, ..context };
    let code = tail(slot, Kernel::maps(), Kernel::ring(slot), Dialect::Interpreter);
    let outcome = run(&code, &context, kernel).expect("the program keeps the rules");
    assert_eq!(outcome.answer, 0, "the kernel's own queue stays empty");
    let counts = Counts::parse(&outcome.counts[delivery.socket]);
    assert_eq!(counts, Counts { full_path: 1, ..Counts::default() });
    let [(ring, record)] = &outcome.records[..] else { panic!("one record") };
    assert_eq!(*ring, slot);
    assert!(does_hold(record, &delivery, Path::Full));
}

const _: () = assert!(HEADERS == 42);

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Octets that chance would give, the same in every run.
    pub(in super::super) fn octets(seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..48).map(|_| next()).collect()
    }

    /// ENDHOST-R14, in small: `ROTA_PACKETS=1000000` makes it large.
    #[test]
    fn the_filter_takes_what_the_layers_would_deliver_and_nothing_else() {
        let packets = std::env::var("ROTA_PACKETS").ok().and_then(|text| text.parse().ok());
        let packets: u64 = packets.unwrap_or(5_000);
        let taken = (0..packets).filter(|seed| is_taken(&octets(*seed))).count() as u64;
        assert!(taken > packets / 10 && taken < packets * 4 / 5, "{taken} of {packets} were taken");
    }

    #[test]
    fn the_tail_puts_what_the_layers_deliver_into_the_same_queue() {
        (0..2_000).for_each(|seed| fuzz_bypass_tail(&octets(seed)));
    }

    /// The checks of the filter are needed, and the packets here show it: without one of them the filter
    /// differs from the layers. Eleven make no difference alone: three pairs of which each covers for the
    /// other (a frame that is too short, a length that is, one that is too long), an own address outside the
    /// networks, a sum and a copy that fail, and a socket without counts or without a ring.
    #[test]
    fn a_filter_that_lacks_a_check_is_found() {
        const JUMP: u8 = 0x05;
        let code = filter(&host().0, Kernel::maps(), Dialect::Interpreter);
        // The program ends with the answer that leaves the packet alone; before it a record is discarded.
        let leave = (code.len() / 8 - 2) as i64;
        let to =
            |at: usize| at as i64 + 1 + i64::from(i16::from_le_bytes([code[8 * at + 2], code[8 * at + 3]]));
        let is_check = |at: &usize| {
            let operation = code[8 * at];
            operation & 7 == 5
                && ![JUMP, 0x85, 0x95].contains(&operation)
                && [leave, leave - 3].contains(&to(*at))
        };
        let checks: Vec<usize> = (0..leave as usize).filter(is_check).collect();
        let packets: Vec<_> = (0..2_000).map(|seed| packet(&octets(seed))).collect();
        let stays_hidden = |at: &&usize| {
            let mut without = code.clone();
            without[8 * **at..8 * **at + 4].copy_from_slice(&[JUMP, 0, 0, 0]);
            packets.iter().all(|(frame, context)| compare(&without, frame, *context, false).is_ok())
        };
        let hidden: Vec<_> = checks.iter().filter(stays_hidden).collect();
        assert!(checks.len() > 25, "{checks:?}");
        assert_eq!(hidden.len(), 11, "of {checks:?} {hidden:?} make no difference");
    }

    /// A sum of zero means that there is none; one that comes out as zero is sent as 0xffff.
    #[test]
    fn both_zeros_of_the_sum_are_taken() {
        let (mut frame, mut context) = sound(&mut Choices(&[0]));
        frame[42..44].fill(0);
        mend(&mut frame, true);
        // The rest to all ones: the sum comes out as zero.
        let rest = [frame[40], frame[41]];
        frame[42..44].copy_from_slice(&rest);
        mend(&mut frame, true);
        context.octets = frame.len() as u32;
        assert_eq!(frame[40..42], [0xff, 0xff]);
        let code = filter(&host().0, Kernel::maps(), Dialect::Interpreter);
        assert_eq!(compare(&code, &frame, context, false), Ok(true));
        mend(&mut frame, false);
        assert_eq!(frame[40..42], [0, 0]);
        assert_eq!(compare(&code, &frame, context, false), Ok(true));
    }

    fn replay(target: &str, run: fn(&[u8])) {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let run = |path: std::path::PathBuf| run(&std::fs::read(path).unwrap());
        assert!(files.map(run).count() > 0);
    }

    #[test]
    fn the_corpora_replay() {
        replay("bypass_filter", fuzz_bypass_filter);
        replay("bypass_tail", fuzz_bypass_tail);
    }
}
