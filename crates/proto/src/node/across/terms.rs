//! Terms of a program as RCAP has them, and its refusals in words of the program.

use crate::rcap::{ChannelRequest, RcapDenied, RcapPart};
use rota_admission::rtip::Chance;
use rota_contract::Chances;

/// The chances that a program has stated: late, and lost.
pub(super) fn chances_of(Chances { late_ppb, loss_ppb }: Chances) -> (Chance, Chance) {
    (Chance::of_ppb(late_ppb), Chance::of_ppb(loss_ppb))
}

/// The partition that refuses, in words: the one that the request names, or the rest.
pub(super) fn refusing(denied: &RcapDenied, request: Option<&ChannelRequest>) -> Option<String> {
    match denied.part {
        RcapPart::Whole => None,
        RcapPart::Rest => Some("rest".to_owned()),
        RcapPart::Named => Some(request?.partition?.to_string()),
    }
}
