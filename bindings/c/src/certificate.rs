//! The certificate of a channel, as text.

use std::ffi::c_char;

use rota::{CertificateError, SendChannel};

use crate::channel::need;
use crate::face::{Done, Fault, Out, Status, export, octets_mut, tell};

impl From<CertificateError> for Fault {
    fn from(error: CertificateError) -> Self {
        match error {
            CertificateError::Node(error) => error.into(),
            CertificateError::Ended(_) => Self::new(Status::Broken, error),
            other => Self::new(Status::Failed, other),
        }
    }
}

/// Copies a text with its end, or tells how long it is.
fn hand_text(text: &str, into: &mut [u8], octets: Out<'_, usize>) -> Done {
    tell(octets, text.len());
    let Some((copy, end)) = into.split_at_mut_checked(text.len()).filter(|(_, end)| !end.is_empty()) else {
        let why = format!(
            "the certificate and its end have {} octets, and there is room for {}",
            text.len() + 1,
            into.len()
        );
        return Err(Fault::new(Status::TooLong, why));
    };
    copy.copy_from_slice(text.as_bytes());
    end[0] = 0;
    Ok(())
}

export! {
    /// The certificate of the promise to a channel.
    fn rota_channel_certificate(
        channel: Option<&SendChannel>,
        text: *mut c_char,
        room: usize,
        octets: Out<'_, usize>,
    ) {
        let channel = need(channel, "channel")?;
        let into = octets_mut(text.cast(), room, "text")?;
        hand_text(&channel.certificate()?, into, octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    #[test]
    fn a_text_comes_whole_with_its_end_or_tells_its_length() {
        for room in 0..5 {
            let (mut into, mut octets) = ([b'x'; 5], MaybeUninit::uninit());
            let done = hand_text("{1}", &mut into[..room], Some(&mut octets));
            // SAFETY: the length is told in any case.
            assert_eq!(unsafe { octets.assume_init() }, 3);
            match done {
                Ok(()) => assert_eq!((room, &into), (4, b"{1}\0x")),
                Err(fault) => {
                    assert!(room < 4 && into == *b"xxxxx", "{room}");
                    assert!(fault.status() == Status::TooLong && fault.sentence().contains("4 octets"));
                }
            }
        }
    }
}
