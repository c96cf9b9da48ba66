//! H.264 from a file into access units in Annex B form, one per frame time.
//!
//! A byte stream is only cut, never rewritten: its units put back together are the file. An MP4 keeps the
//! parameter sets apart and lengths instead of start codes; its units are rewritten, and decode to the same
//! frames.

mod annexb;
mod mp4;

use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// Larger files would not fit the memory of a small machine; a clip is looped to play longer.
const FILE_OCTETS_MAX: u64 = 1 << 31;

/// A rate outside this range is damage in the file, not a camera.
const FPS_MAX: u64 = 1_000;

/// Why a file cannot be played; each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum VideoError {
    /// The file could not be opened or read.
    #[error("cannot read {path}: {reason}; give an H.264 byte stream or an MP4")]
    Unreadable {
        /// The file as it was named.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The file has no octets.
    #[error("{path} is empty; give an H.264 byte stream or an MP4")]
    Empty {
        /// The file as it was named.
        path: String,
    },
    /// The file is neither of the two formats, or damaged.
    #[error("{path} is not a video that can be played: {problem}; give an H.264 byte stream or an MP4")]
    NotVideo {
        /// The file as it was named.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// A frame rate as a fraction, as the file states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRate {
    frames: u64,
    seconds: u64,
}

impl FrameRate {
    /// `frames` in `seconds`; `None` when no camera runs at that rate.
    pub fn new(frames: u64, seconds: u64) -> Option<Self> {
        let sane = frames > 0 && seconds > 0 && frames >= seconds && frames / seconds <= FPS_MAX;
        sane.then_some(Self { frames, seconds })
    }

    /// A rate as people write it: `25`, `24000/1001`, or `29.97`, which stands for 30000/1001 as 23.976 and
    /// 59.94 do for theirs.
    ///
    /// # Errors
    /// A sentence for a command line.
    pub fn read(text: &str) -> Result<Self, String> {
        let digits =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let (frames, seconds) = match (text, text.split_once('/'), text.split_once('.')) {
            ("23.976" | "23.98", ..) => (Some(24_000), Some(1_001)),
            ("29.97", ..) => (Some(30_000), Some(1_001)),
            ("59.94", ..) => (Some(60_000), Some(1_001)),
            (_, Some((frames, seconds)), _) => (digits(frames), digits(seconds)),
            (_, None, Some((whole, part))) if (1..=6).contains(&part.len()) => {
                (digits(&format!("{whole}{part}")), Some(10_u64.pow(part.len() as u32)))
            }
            _ => (digits(text), Some(1)),
        };
        let rate = frames.zip(seconds).and_then(|(frames, seconds)| Self::new(frames, seconds));
        rate.ok_or_else(|| format!("'{text}' is no frame rate from 1 to 1000; write 25, 29.97 or 24000/1001"))
    }

    /// The time from one frame to the next in nanoseconds, rounded down: 33,333,333 at 30 a second.
    pub fn period_ns(self) -> u64 {
        let ns = u128::from(self.seconds) * 1_000_000_000 / u128::from(self.frames);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// A clip as access units in Annex B form.
pub struct Video {
    octets: Vec<u8>,
    units: Vec<Range<usize>>,
    rate: Option<FrameRate>,
}

impl Video {
    /// Reads the H.264 byte stream or MP4 at `path`.
    ///
    /// # Errors
    /// Unreadable, empty, or not a video.
    pub fn read(path: &Path) -> Result<Self, VideoError> {
        let name = path.display().to_string();
        let unreadable = |reason: String| VideoError::Unreadable { path: path.display().to_string(), reason };
        // A device may have no end, and a pipe no beginning.
        let kind = std::fs::metadata(path).map_err(|e| unreadable(e.to_string()))?;
        if !kind.is_file() {
            return Err(unreadable("it is no regular file".into()));
        }
        let file = std::fs::File::open(path).map_err(|e| unreadable(e.to_string()))?;
        let mut octets = Vec::new();
        let read = file.take(FILE_OCTETS_MAX + 1).read_to_end(&mut octets);
        read.map_err(|e| unreadable(e.to_string()))?;
        if octets.len() as u64 > FILE_OCTETS_MAX {
            return Err(unreadable("it is larger than 2 GiB".into()));
        }
        if octets.is_empty() {
            return Err(VideoError::Empty { path: name });
        }
        Self::parse(octets).map_err(|problem| VideoError::NotVideo { path: name, problem })
    }

    /// Takes the octets of a file apart. The error says what is wrong with them.
    pub fn parse(octets: Vec<u8>) -> Result<Self, &'static str> {
        if mp4::looks_like_mp4(&octets) { mp4::parse(&octets) } else { annexb::parse(octets) }
    }

    /// The number of access units.
    pub fn unit_count(&self) -> usize {
        self.units.len()
    }

    /// Access unit `index`, counted from 0 and starting again at the clip's end.
    pub fn unit_looped(&self, index: u64) -> &[u8] {
        let at = index % self.units.len() as u64;
        &self.octets[self.units[at as usize].clone()]
    }

    /// The size of the largest access unit in octets.
    pub fn largest_octets(&self) -> usize {
        self.units.iter().map(ExactSizeIterator::len).max().unwrap_or(0)
    }

    /// The frame rate that the file states, if it does.
    pub fn rate(&self) -> Option<FrameRate> {
        self.rate
    }
}

/// Takes any octets as a file: what comes out must be a partition of the stream, and nothing may panic.
pub fn fuzz_video(data: &[u8]) {
    if let Ok(video) = Video::parse(data.to_vec()) {
        assert!(video.unit_count() > 0 && video.largest_octets() > 0);
        let mut end = 0;
        for range in &video.units {
            assert_eq!(range.start, end, "units neither overlap nor leave gaps");
            end = range.end;
        }
        assert_eq!(end, video.octets.len());
    }
}

#[cfg(test)]
mod tests;
