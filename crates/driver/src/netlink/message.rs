//! Netlink messages as octets: a header, a family's own header, and attributes that may nest.

/// The kernel is to answer with an acknowledgement or an error.
pub(crate) const NLM_F_REQUEST_ACK: u16 = 0x1 | 0x4;
/// Make it when it does not exist.
pub(crate) const NLM_F_CREATE: u16 = 0x400;
/// Fail when it exists.
pub(crate) const NLM_F_EXCL: u16 = 0x200;
/// Put it in the place of what is there.
pub(crate) const NLM_F_REPLACE: u16 = 0x100;
/// Put it after what is there.
pub(crate) const NLM_F_APPEND: u16 = 0x800;

/// List everything.
pub(crate) const NLM_F_REQUEST_DUMP: u16 = 0x1 | 0x300;

/// Length of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;
const NLA_F_NESTED: u16 = 0x8000;

/// One request being written. All integers are in the machine's order unless a method says otherwise.
pub(crate) struct Message {
    buf: Vec<u8>,
}

impl Message {
    /// A request of `kind` whose family header is `family_header`.
    pub(crate) fn new(kind: u16, flags: u16, family_header: &[u8]) -> Self {
        let mut buf = vec![0; HEADER];
        buf[4..6].copy_from_slice(&kind.to_ne_bytes());
        buf[6..8].copy_from_slice(&flags.to_ne_bytes());
        buf.extend_from_slice(family_header);
        let mut message = Self { buf };
        message.pad();
        message
    }

    fn pad(&mut self) {
        self.buf.resize(self.buf.len().next_multiple_of(4), 0);
    }

    /// Appends an attribute.
    pub(crate) fn attr(mut self, kind: u16, value: &[u8]) -> Self {
        self.put(kind, value);
        self
    }

    fn put(&mut self, kind: u16, value: &[u8]) {
        // An attribute's length field has 16 bits; everything we write is a few hundred octets.
        let len = u16::try_from(value.len() + 4).expect("a netlink attribute is shorter than 64 kB");
        self.buf.extend_from_slice(&len.to_ne_bytes());
        self.buf.extend_from_slice(&kind.to_ne_bytes());
        self.buf.extend_from_slice(value);
        self.pad();
    }

    /// Appends a 32-bit attribute.
    pub(crate) fn u32(self, kind: u16, value: u32) -> Self {
        self.attr(kind, &value.to_ne_bytes())
    }

    /// Appends a 32-bit attribute in network order, as netfilter wants them.
    pub(crate) fn be32(self, kind: u16, value: u32) -> Self {
        self.attr(kind, &value.to_be_bytes())
    }

    /// Appends a text attribute with its closing zero.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        let mut octets = value.as_bytes().to_vec();
        octets.push(0);
        self.attr(kind, &octets)
    }

    /// Appends an attribute that holds what `inner` writes.
    pub(crate) fn nest(mut self, kind: u16, inner: impl FnOnce(Self) -> Self) -> Self {
        let start = self.buf.len();
        self.put(kind | NLA_F_NESTED, &[]);
        let mut done = inner(self);
        let len = u16::try_from(done.buf.len() - start).expect("nested attributes are shorter than 64 kB");
        done.buf[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        done
    }

    /// Appends octets that are no attribute (a second family header inside a nest).
    pub(crate) fn raw(mut self, octets: &[u8]) -> Self {
        self.buf.extend_from_slice(octets);
        self.pad();
        self
    }

    /// The finished request, numbered.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let len = u32::try_from(self.buf.len()).expect("a request is short");
        self.buf[..4].copy_from_slice(&len.to_ne_bytes());
        self.buf[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.buf
    }
}

/// One message of the kernel's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    /// The message type.
    pub(crate) kind: u16,
    /// The number of the request it answers.
    pub(crate) sequence: u32,
    /// What follows the netlink header.
    pub(crate) body: &'a [u8],
}

/// Splits a datagram into messages; stops at the first that does not fit.
pub(crate) fn replies(mut datagram: &[u8]) -> impl Iterator<Item = Reply<'_>> {
    core::iter::from_fn(move || {
        let len = u32_at(datagram, 0)? as usize;
        let body = datagram.get(HEADER..len)?;
        let reply = Reply {
            kind: u16::from_ne_bytes([datagram[4], datagram[5]]),
            sequence: u32_at(datagram, 8)?,
            body,
        };
        datagram = datagram.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some(reply)
    })
}

/// Splits a run of attributes into (kind without flags, value); stops at the first that does not fit.
pub(crate) fn attributes(mut run: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes([*run.first()?, *run.get(1)?]));
        let kind = u16::from_ne_bytes([*run.get(2)?, *run.get(3)?]) & 0x3fff;
        let value = run.get(4..len)?;
        run = run.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// The 32-bit integer at `offset`, if it is there.
pub(crate) fn u32_at(octets: &[u8], offset: usize) -> Option<u32> {
    let four = octets.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nests_know_their_length() {
        let octets =
            Message::new(16, 5, &[0; 16]).text(3, "eth0").nest(18, |m| m.text(1, "veth").u32(2, 7)).finish(9);
        let reply = replies(&octets).next().unwrap();
        assert_eq!((reply.kind, reply.sequence), (16, 9));
        let all: Vec<_> = attributes(&reply.body[16..]).collect();
        assert_eq!(all[0], (3, &b"eth0\0"[..]));
        let inner: Vec<_> = attributes(all[1].1).collect();
        assert_eq!(inner, [(1, &b"veth\0"[..]), (2, &7u32.to_ne_bytes()[..])]);
    }

    #[test]
    fn a_cut_answer_ends_quietly() {
        let whole = Message::new(2, 0, &[1, 2, 3, 4]).u32(1, 1).finish(1);
        for cut in 0..whole.len() {
            assert_eq!(replies(&whole[..cut]).count(), 0);
        }
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0, "a length below its own header");
        assert_eq!(attributes(&[9, 0, 1, 0, 0]).count(), 0);
    }
}
