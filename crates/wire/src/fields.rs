//! Checked reading and writing of big-endian fields.

/// Why octets are not the frame or body they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer octets than the fields need.
    #[error("the frame ends inside a field")]
    Truncated,
    /// Not our EtherType.
    #[error("the EtherType is not ours")]
    ForeignEtherType,
    /// A protocol version we do not speak.
    #[error("protocol version {0} is not spoken here, only version 1")]
    Version(u8),
    /// An authentication algorithm we do not know.
    #[error("tag algorithm {0} is unknown, only 1 (keyed BLAKE3) is")]
    TagAlgorithm(u8),
    /// A field holds a value that no sender of ours writes.
    #[error("field '{0}' holds an impossible value")]
    Field(&'static str),
    /// Octets are left over behind the last field.
    #[error("octets are left over behind the last field")]
    Trailing,
}

/// Reads fields from the front of a slice.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(n).ok_or(Malformed::Truncated)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(Malformed::Truncated)?;
        self.0 = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u24(&mut self) -> Result<u32, Malformed> {
        let [a, b, c] = self.array::<3>()?;
        Ok(u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u48(&mut self) -> Result<u64, Malformed> {
        let [a, b, c, d, e, f] = self.array::<6>()?;
        Ok(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn mac(&mut self) -> Result<[u8; 6], Malformed> {
        self.array()
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// Writes fields one after another. The buffer must be large enough: sizes are ours, never the peer's.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, at: 0 }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u24(&mut self, value: u32) -> &mut Self {
        debug_assert!(value < 1 << 24, "a 24-bit field");
        self.bytes(&value.to_be_bytes()[1..])
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u48(&mut self, value: u64) -> &mut Self {
        debug_assert!(value < 1 << 48, "a 48-bit field");
        self.bytes(&value.to_be_bytes()[2..])
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn written(&self) -> usize {
        self.at
    }
}
