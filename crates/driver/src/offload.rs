//! What a station leaves to its card, done here: the checksum, and cutting one large TCP segment into frames.
//! Between virtual interfaces no card does it.

use crate::device::ETHERNET_HEADER;

/// Octets of struct virtio_net_hdr, which the kernel puts before each frame and wants before each.
pub(crate) const OFFLOAD_HEADER: usize = 10;
/// Octets of the largest frame that is still to be cut.
pub(crate) const LARGEST: usize = ETHERNET_HEADER + (1 << 16);
const NEEDS_CHECKSUM: u8 = 1;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
/// Set beside the kind where the segment carries a congestion mark.
const ECN: u8 = 0x80;
const IPV6_HEADER: usize = 40;

/// What is left to do, as the kernel says it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offload {
    checksum: bool,
    kind: u8,
    /// Octets of data in each frame.
    size: usize,
    /// Where the checksum's octets begin.
    start: usize,
    /// Where it belongs, from there.
    field: usize,
}

impl Offload {
    pub(crate) fn parse(header: &[u8; OFFLOAD_HEADER]) -> Self {
        let half = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        Self {
            checksum: header[0] & NEEDS_CHECKSUM != 0,
            kind: header[1] & !ECN,
            size: half(4),
            start: half(6),
            field: half(8),
        }
    }

    /// Whether the frame is to be cut.
    pub(crate) fn is_large(&self) -> bool {
        self.kind != 0
    }

    /// Fills in the checksum of a frame that is not cut; false where that makes no sense.
    pub(crate) fn complete(&self, frame: &mut [u8]) -> bool {
        !self.checksum || fill_in(frame, self.start, self.field)
    }
}

/// Fills in the checksum over everything from `start` on; its field holds the pseudo header's sum already.
fn fill_in(frame: &mut [u8], start: usize, field: usize) -> bool {
    let field = start + field;
    let Some(covered) = frame.get(start..).filter(|_| field + 2 <= frame.len()) else { return false };
    let folded = fold(sum(covered));
    // A UDP checksum of zero means that there is none; its other form says the same sum.
    let checksum = if folded == u16::MAX { u16::MAX } else { !folded };
    frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// The sum of the 16-bit words of `octets`, the last one filled up with zero.
fn sum(octets: &[u8]) -> u64 {
    octets.chunks(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))).sum()
}

/// In ones' complement.
fn fold(sum: u64) -> u16 {
    (0..3).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16
}

/// A large TCP segment on its way into frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Octets of all headers.
    headers: usize,
    tcp: usize,
    size: usize,
    is_v6: bool,
    /// Octets of data that are in frames already, and how many frames.
    done: usize,
    frames: u16,
}

impl Cut {
    /// `None` for what is no TCP segment over IP.
    pub(crate) fn new(offload: &Offload, large: &[u8]) -> Option<Self> {
        let is_v6 = match (offload.kind, large.get(12..14)?) {
            (TCP_V4, [0x08, 0x00]) => false,
            (TCP_V6, [0x86, 0xdd]) => true,
            _ => return None,
        };
        let ip_header = if is_v6 { IPV6_HEADER } else { 20 };
        let tcp = offload.start;
        let headers = tcp + usize::from(large.get(tcp + 12)? >> 4) * 4;
        let sound = tcp >= ETHERNET_HEADER + ip_header
            && headers >= tcp + 20
            && headers < large.len()
            && offload.size > 0;
        sound.then_some(Self { headers, tcp, size: offload.size, is_v6, done: 0, frames: 0 })
    }

    /// Whether octets of `large` are in no frame yet.
    pub(crate) fn has_more(&self, large: &[u8]) -> bool {
        self.headers + self.done < large.len()
    }

    /// Puts the next frame of `large` into `frame`.
    pub(crate) fn next(&mut self, large: &[u8], frame: &mut Vec<u8>) {
        let data = &large[self.headers..];
        let end = (self.done + self.size).min(data.len());
        frame.clear();
        frame.extend_from_slice(&large[..self.headers]);
        frame.extend_from_slice(&data[self.done..end]);
        self.number(frame, end == data.len());
        self.address(frame);
        self.done = end;
        self.frames = self.frames.wrapping_add(1);
    }

    /// The TCP header: where the data belong, and flags that only the first or the last frame carries.
    fn number(&self, frame: &mut [u8], is_last: bool) {
        const FIN_AND_PSH: u8 = 0x09;
        const CWR: u8 = 0x80;
        let field = &mut frame[self.tcp + 4..self.tcp + 8];
        let first = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
        field.copy_from_slice(&first.wrapping_add(self.done as u32).to_be_bytes());
        let flags = &mut frame[self.tcp + 13];
        *flags &= if is_last { u8::MAX } else { !FIN_AND_PSH };
        *flags &= if self.done == 0 { u8::MAX } else { !CWR };
    }

    /// The IP header's length, number and checksum, and the checksum of TCP.
    fn address(&self, frame: &mut [u8]) {
        const IP: usize = ETHERNET_HEADER;
        let set = |frame: &mut [u8], at: usize, value: u16| {
            frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
        };
        let tcp_octets = frame.len() - self.tcp;
        let addresses = if self.is_v6 {
            set(frame, IP + 4, (frame.len() - IP - IPV6_HEADER) as u16);
            IP + 8..IP + 40
        } else {
            set(frame, IP + 2, (frame.len() - IP) as u16);
            let number = u16::from_be_bytes([frame[IP + 4], frame[IP + 5]]);
            set(frame, IP + 4, number.wrapping_add(self.frames));
            set(frame, IP + 10, 0);
            let checksum = !fold(sum(&frame[IP..self.tcp]));
            set(frame, IP + 10, checksum);
            IP + 12..IP + 20
        };
        let pseudo = fold(sum(&frame[addresses]) + u64::from(libc::IPPROTO_TCP as u8) + tcp_octets as u64);
        set(frame, self.tcp + 16, pseudo);
        fill_in(frame, self.tcp, 16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offload(flags: u8, kind: u8, size: u16, start: u16, field: u16) -> Offload {
        let mut header = [0; OFFLOAD_HEADER];
        (header[0], header[1]) = (flags, kind);
        for (at, value) in [(4, size), (6, start), (8, field)] {
            header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        Offload::parse(&header)
    }

    #[test]
    fn a_checksum_that_was_left_to_the_card_is_filled_in() {
        // The field holds the pseudo header's sum, 0x1234. A receiver sums that too and gets all ones.
        let mut frame: Vec<u8> = (0..61).collect();
        frame[40..42].copy_from_slice(&0x1234_u16.to_be_bytes());
        assert!(offload(NEEDS_CHECKSUM, 0, 0, 34, 6).complete(&mut frame));
        assert_eq!(fold(sum(&frame[34..]) + 0x1234), u16::MAX);
    }

    #[test]
    fn what_no_card_could_complete_is_refused_and_the_rest_left_alone() {
        let mut frame: Vec<u8> = (0..60).collect();
        let before = frame.clone();
        assert!(!offload(NEEDS_CHECKSUM, 0, 0, 50, 9).complete(&mut frame), "the field lies behind the end");
        assert!(!offload(NEEDS_CHECKSUM, 0, 0, 61, 0).complete(&mut frame));
        assert!(offload(0, 0, 0, 34, 6).complete(&mut frame));
        assert_eq!(frame, before);
        for (kind, start, size) in
            [(5, 34, 9), (TCP_V6, 54, 9), (TCP_V4, 34, 0), (TCP_V4, 20, 9), (TCP_V4, 59, 9)]
        {
            let mut frame = frame.clone();
            (frame[12], frame[13], frame[46]) = (0x08, 0x00, 0x50);
            assert!(Cut::new(&offload(1, kind, size, start, 16), &frame).is_none(), "{kind} {start} {size}");
        }
    }

    /// A TCP segment with all flags and 3,000 octets of data.
    fn large(is_v6: bool) -> (Vec<u8>, usize) {
        let ip = if is_v6 { IPV6_HEADER } else { 20 };
        let tcp = ETHERNET_HEADER + ip;
        let mut large: Vec<u8> = (0..tcp + 32 + 3_000).map(|at| (at * 7) as u8).collect();
        let ether_type = if is_v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        large[12..14].copy_from_slice(&ether_type);
        large[14] = if is_v6 { 0x60 } else { 0x45 };
        large[tcp + 4..tcp + 8].copy_from_slice(&0xffff_ff00_u32.to_be_bytes());
        (large[tcp + 12], large[tcp + 13]) = (0x80, 0xff);
        (large, tcp)
    }

    #[test]
    fn a_large_segment_becomes_frames_that_a_receiver_puts_together() {
        for (is_v6, kind) in [(false, TCP_V4), (true, TCP_V6 | ECN)] {
            let (large, tcp) = large(is_v6);
            let mut cut = Cut::new(&offload(1, kind, 1_400, tcp as u16, 16), &large).unwrap();
            let (mut frame, mut data, mut flags) = (Vec::new(), Vec::new(), Vec::new());
            while cut.has_more(&large) {
                cut.next(&large, &mut frame);
                let at = u32::from_be_bytes(frame[tcp + 4..tcp + 8].try_into().unwrap());
                assert_eq!(at, 0xffff_ff00_u32.wrapping_add(data.len() as u32));
                let addresses = if is_v6 { &frame[22..54] } else { &frame[26..34] };
                let pseudo = sum(addresses) + 6 + (frame.len() - tcp) as u64;
                assert_eq!(fold(sum(&frame[tcp..]) + pseudo), u16::MAX, "the checksum of TCP");
                let (field, counted) = if is_v6 { (18, frame.len() - 54) } else { (16, frame.len() - 14) };
                assert_eq!(frame[field..field + 2], (counted as u16).to_be_bytes());
                assert!(is_v6 || fold(sum(&frame[14..34])) == u16::MAX, "the checksum of IP");
                data.extend_from_slice(&frame[tcp + 32..]);
                flags.push(frame[tcp + 13]);
            }
            assert_eq!(data, large[tcp + 32..]);
            assert_eq!(flags, [0xf6, 0x76, 0x7f], "only the last ends, only the first tells of congestion");
        }
    }
}
