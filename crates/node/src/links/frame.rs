//! The frames inside the TLS stream of a link: a length, a kind, a body.
//!
//! ```text
//!   length (4, big endian: kind and body) · kind (1) · body
//!   1 hello    version-independent: from (8) · to (8), node ids; the first frame of each side
//!   2 message  up to 65,536 octets, which no part of this module reads
//!   3 alive    heard (8): frames taken from this connection so far
//! ```

use rota_contract::NodeId;

/// The longest message.
pub const MESSAGE_OCTETS_MAX: usize = 65_536;
const HEAD_OCTETS: usize = 4;
const HELLO: u8 = 1;
const MESSAGE: u8 = 2;
const ALIVE: u8 = 3;
/// Octets that were decoded are given back once they are so many.
const COMPACT_FROM: usize = 64 * 1024;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Which node speaks, and to which.
    Hello {
        /// Its id.
        from: NodeId,
        /// The id of the node that it means.
        to: NodeId,
    },
    /// For the user of the link.
    Message(Vec<u8>),
    /// The far end runs, and has taken so many frames.
    Alive {
        /// How many.
        heard: u64,
    },
}

/// A frame that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than the longest message, or empty.
    #[error("a frame of {0} octets, 1 to {max} may come", max = MESSAGE_OCTETS_MAX + 1)]
    Length(u32),
    /// None of the kinds.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// Its body has another length than its kind.
    #[error("a frame of kind {kind} with a body of {octets} octets")]
    Body {
        /// Which.
        kind: u8,
        /// As many as came.
        octets: usize,
    },
}

impl Frame {
    /// The frame as it is sent.
    pub fn octets(&self) -> Vec<u8> {
        match self {
            Self::Hello { from, to } => framed(HELLO, &[from.0.to_be_bytes(), to.0.to_be_bytes()].concat()),
            Self::Message(message) => framed(MESSAGE, message),
            Self::Alive { heard } => framed(ALIVE, &heard.to_be_bytes()),
        }
    }
}

fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
    let mut octets = Vec::with_capacity(HEAD_OCTETS + 1 + body.len());
    octets.extend_from_slice(&length.to_be_bytes());
    octets.push(kind);
    octets.extend_from_slice(body);
    octets
}

/// Takes frames out of a stream of octets. It holds one frame at most, and what was read with it.
#[derive(Debug, Default)]
pub struct Decoder {
    octets: Vec<u8>,
    done: usize,
}

impl Decoder {
    /// Octets as they come.
    pub fn take(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// The next whole frame. After an error the stream means nothing any more.
    ///
    /// # Errors
    /// It is no frame; a length that cannot be is known before any of its octets is.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let waiting = &self.octets[self.done..];
        let Some((head, rest)) = waiting.split_first_chunk::<HEAD_OCTETS>() else {
            self.compact();
            return Ok(None);
        };
        let length = u32::from_be_bytes(*head);
        if length == 0 || length as usize > MESSAGE_OCTETS_MAX + 1 {
            return Err(FrameError::Length(length));
        }
        let Some((kind, body)) = rest.get(..length as usize).and_then(<[u8]>::split_first) else {
            self.compact();
            return Ok(None);
        };
        let frame = frame(*kind, body)?;
        self.done += HEAD_OCTETS + length as usize;
        if self.done >= COMPACT_FROM {
            self.compact();
        }
        Ok(Some(frame))
    }

    fn compact(&mut self) {
        self.octets.drain(..self.done);
        self.done = 0;
    }
}

fn frame(kind: u8, body: &[u8]) -> Result<Frame, FrameError> {
    let wrong = || FrameError::Body { kind, octets: body.len() };
    let number = |octets: &[u8]| octets.try_into().map(u64::from_be_bytes).map_err(|_| wrong());
    match kind {
        HELLO => {
            let (from, to) = body.split_at_checked(8).ok_or_else(wrong)?;
            Ok(Frame::Hello { from: NodeId(number(from)?), to: NodeId(number(to)?) })
        }
        MESSAGE => Ok(Frame::Message(body.to_vec())),
        ALIVE => Ok(Frame::Alive { heard: number(body)? }),
        _ => Err(FrameError::Kind(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(octets: &[u8], step: usize) -> Result<Vec<Frame>, FrameError> {
        let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
        for part in octets.chunks(step.max(1)) {
            decoder.take(part);
            while let Some(frame) = decoder.next_frame()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let frames = vec![
            Frame::Hello { from: NodeId(1), to: NodeId(u64::MAX) },
            Frame::Message(Vec::new()),
            Frame::Message(vec![7; MESSAGE_OCTETS_MAX]),
            Frame::Alive { heard: 3 },
            Frame::Message(b"last".to_vec()),
        ];
        let octets: Vec<u8> = frames.iter().flat_map(Frame::octets).collect();
        for step in [1, 3, 4, 5, 1_000, octets.len()] {
            assert_eq!(all(&octets, step), Ok(frames.clone()), "in parts of {step}");
        }
        assert_eq!(
            all(&octets[..octets.len() - 1], 64).map(|frames| frames.len()),
            Ok(4),
            "half a frame waits"
        );
    }

    #[test]
    fn what_is_no_frame_is_an_error_at_once() {
        for (octets, error) in [
            (&[0, 0, 0, 0][..], FrameError::Length(0)),
            (&[0, 1, 0, 2], FrameError::Length(65_538)),
            (&[0xff; 4], FrameError::Length(u32::MAX)),
            (&[0, 0, 0, 1, 9], FrameError::Kind(9)),
            (&[0, 0, 0, 1, 1], FrameError::Body { kind: 1, octets: 0 }),
            (&[0, 0, 0, 3, 3, 1, 1], FrameError::Body { kind: 3, octets: 2 }),
        ] {
            assert_eq!(all(octets, 1), Err(error));
        }
        assert_eq!(all(&[0, 1, 0, 1, 2], 1), Ok(Vec::new()), "the longest message is awaited");
    }

    #[test]
    fn a_decoder_gives_its_room_back() {
        let mut decoder = Decoder::default();
        let one = Frame::Message(vec![1; 1_000]).octets();
        for _ in 0..1_000 {
            decoder.take(&one);
            assert!(matches!(decoder.next_frame(), Ok(Some(Frame::Message(_)))));
        }
        assert!(decoder.octets.capacity() < 4 * COMPACT_FROM, "{}", decoder.octets.capacity());
    }
}
