//! The role's side: it has the bypass, and obeys its node.

use super::channel::{place_of, stream_of};
use super::{
    BEGIN, CHANNEL_COUNTS, CLOSE, CLOSE_CHANNEL, COUNTS, NUMBERS, OCTETS, OPEN, OPEN_CHANNEL, TEXT_MAX,
    UNFIT, parse,
};
use crate::role;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use rota_driver::bypass::{Ask, Bypass, Counts};
use rota_driver::confine::{BPF, NET_ADMIN, forbid_all_but_queues, keep_capabilities};
use rota_driver::sys::receive_with_fds;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// How often it looks whether something else stands at the interfaces now.
const LOOK_S: i64 = 1;

/// An answer: numbers, words, and a descriptor that goes along.
struct Answer<'a> {
    numbers: [u32; NUMBERS],
    text: String,
    ring: Option<BorrowedFd<'a>>,
}

impl Answer<'_> {
    fn of<const N: usize>(given: [u32; N]) -> Self {
        let mut numbers = [0; NUMBERS];
        numbers[..N].copy_from_slice(&given);
        Self { numbers, text: String::new(), ring: None }
    }

    fn with(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }
}

/// Serves the node at the other end of standard input until that is gone.
///
/// # Errors
/// One sentence: it was not started by a node.
pub fn serve() -> Result<(), String> {
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    role::node_of(&socket)?;
    // Belt and braces: the end of the socket says the same.
    let _ = set_pdeathsig(Signal::SIGKILL);
    keep_capabilities(&[BPF, NET_ADMIN])
        .map_err(|errno| format!("the role keeps too much: {}", errno.desc()))?;
    // A kernel without filters has this role all the same, as it has a node.
    let _ = forbid_all_but_queues();
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(LOOK_S, 0))
        .map_err(|errno| errno.desc().to_owned())?;
    let mut bypass = None;
    loop {
        let mut octets = [0; OCTETS + 1];
        match receive_with_fds(&socket, &mut octets) {
            Ok((OCTETS, descriptors)) => {
                if !answer(socket, &obey(&mut bypass, parse(&octets), descriptors)) {
                    return Ok(());
                }
            }
            // The filters of others come and go without a word.
            Err(Errno::EAGAIN) => bypass.iter_mut().for_each(Bypass::look),
            Err(Errno::EINTR) => {}
            Ok(_) | Err(_) => return Ok(()),
        }
    }
}

fn answer(socket: BorrowedFd<'_>, answer: &Answer<'_>) -> bool {
    let numbers: Vec<u8> = answer.numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let text = answer.text.as_bytes();
    let text = &text[..text.len().min(TEXT_MAX)];
    let rings: Vec<_> = answer.ring.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&rings)];
    let control = if rings.is_empty() { &rights[..0] } else { &rights[..] };
    let parts = [IoSlice::new(&numbers), IoSlice::new(text)];
    sendmsg::<()>(socket.as_raw_fd(), &parts, control, MsgFlags::MSG_NOSIGNAL, None).is_ok()
}

/// Does what a node may ask for, and nothing else.
fn obey(bypass: &mut Option<Bypass>, numbers: [u32; NUMBERS], mut along: Vec<OwnedFd>) -> Answer<'_> {
    let wrong = || Answer::of([Errno::EINVAL as u32]).with("no request of a node");
    let [verb, first, ..] = numbers;
    if verb == BEGIN {
        if bypass.is_some() {
            return wrong();
        }
        // Each interface keeps its place: a tunnel, whose number is 0, never has a filter.
        let used = numbers.iter().rposition(|index| *index != 0).unwrap_or(0);
        return match Bypass::begin(&numbers[1..=used]) {
            Ok(begun) => {
                *bypass = Some(begun);
                Answer::of([0])
            }
            Err(sentence) => Answer::of([Errno::EPERM as u32]).with(sentence),
        };
    }
    let Some(bypass) = bypass else { return wrong() };
    match verb {
        OPEN => match along.pop().filter(|_| along.is_empty()) {
            Some(socket) => open(bypass, numbers, socket),
            None => wrong(),
        },
        CLOSE => {
            bypass.close(first);
            Answer::of([0])
        }
        COUNTS => {
            let counts = bypass.counts(first);
            let words = [counts.bypass, counts.full_path, counts.queue_full];
            let [a, b, c] = words.map(|word| [word as u32, (word >> 32) as u32]);
            Answer::of([0, bypass.is_known(first).into(), a[0], a[1], b[0], b[1], c[0], c[1]])
        }
        OPEN_CHANNEL => open_channel(bypass, numbers),
        CLOSE_CHANNEL => {
            bypass.channels.iter_mut().for_each(|channels| channels.close(first));
            Answer::of([0])
        }
        CHANNEL_COUNTS => {
            let counts = bypass.channels.as_ref().map_or_else(|_| Counts::default(), |all| all.counts(first));
            let [a, b] = [counts.bypass, counts.queue_full].map(|word| [word as u32, (word >> 32) as u32]);
            Answer::of([0, a[0], a[1], b[0], b[1]])
        }
        UNFIT => match bypass.unfit(first as usize) {
            None => Answer::of([0]),
            Some(unfit) => Answer::of([1]).with(unfit.to_string()),
        },
        _ => wrong(),
    }
}

fn open_channel(bypass: &mut Bypass, numbers: [u32; NUMBERS]) -> Answer<'_> {
    let Some(stream) = stream_of(&numbers) else { return Answer::of([Errno::EINVAL as u32]) };
    let (place, ether_type, octets) = place_of(&numbers);
    let channels = match &mut bypass.channels {
        Ok(channels) => channels,
        Err(sentence) => return Answer::of([Errno::EPERM as u32]).with(sentence.as_str()),
    };
    match channels.open(place, ether_type, stream, octets) {
        Ok(slot) => Answer { ring: channels.ring(slot), ..Answer::of([0, slot]) },
        Err(refused) => Answer::of([refused.code()]),
    }
}

fn open(bypass: &mut Bypass, numbers: [u32; NUMBERS], socket: OwnedFd) -> Answer<'_> {
    let [_, octets, has_peer, address, port, process, ..] = numbers;
    let peer = SocketAddrV4::new(Ipv4Addr::from_bits(address), port as u16);
    let ask = Ask { octets, peer: (has_peer != 0).then_some(peer), process };
    let slot = match bypass.open(socket, ask) {
        Ok(slot) => slot,
        Err(refused) => return Answer::of([refused.code()]),
    };
    // Without a filter at any interface no packet goes past the layers, whatever is known of the socket.
    let why = bypass.full_path(slot);
    let answer = Answer::of([0, slot, why.is_none().into()]).with(why.unwrap_or_default());
    Answer { ring: bypass.ring(slot), ..answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(given: &[u32]) -> [u32; NUMBERS] {
        let mut numbers = [0; NUMBERS];
        numbers[..given.len()].copy_from_slice(given);
        numbers
    }

    #[test]
    fn it_does_what_a_node_may_ask_for_and_nothing_else() {
        let invalid = Errno::EINVAL as u32;
        for verb in [0, OPEN, CLOSE, COUNTS, UNFIT, OPEN_CHANNEL, CLOSE_CHANNEL, CHANNEL_COUNTS, 9, u32::MAX]
        {
            let mut none = None;
            let answer = obey(&mut none, request(&[verb, 1]), Vec::new());
            assert_eq!(answer.numbers[0], invalid, "{verb}: nothing has begun");
        }
    }
}
