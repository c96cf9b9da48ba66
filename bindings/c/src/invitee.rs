//! Channels that their receivers ask for.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};

use rota::{AskedTerms, Invitation, Invitee, Listener, Node, OpenRequest, SendChannel, Span};

use crate::channel::{Refusal, Request, control_name, need, opened};
use crate::face::{Done, Fault, Out, Status, export, hand_over, tell, text};
use crate::stream::{About, Terms};

/// `rota_invitee`: a program that waits to be asked, and who has asked it.
pub struct InviteeHandle {
    invitee: Invitee,
    asked: Option<Invitation>,
}

/// Opens the channel that a receiver has asked for, by the request to this receiver.
pub fn open_asked(
    InviteeHandle { invitee, asked }: InviteeHandle,
    request: impl FnOnce(&str) -> Result<OpenRequest, Fault>,
    channel: Out<'_, *mut SendChannel>,
    refusal: Out<'_, Refusal>,
) -> Done {
    let none = || Fault::new(Status::WrongUse, "nobody has asked; call rota_invitee_wait first");
    let asked = asked.ok_or_else(none)?;
    let request = request(&asked.name)?;
    let channel = need(channel, "channel")?;
    let made = invitee.open(&asked, &request).map_err(|error| opened(error, refusal))?;
    hand_over(Some(channel), made, "channel")
}

export! {
    /// Listens for a channel of a station, which is asked for it.
    fn rota_invite(
        control: *const c_char,
        from: *const c_char,
        service: u16,
        buffers: u16,
        listener: Out<'_, *mut Listener>,
    ) {
        let listener = need(listener, "listener")?;
        let from = text(from, "from")?.ok_or_else(|| Fault::null("from"))?;
        let buffers = if buffers == 0 { 4 } else { buffers };
        let node = Node::connect(&control_name(control)?)?;
        hand_over(Some(listener), node.invite(from, service, buffers)?, "listener")
    }

    /// Waits to be asked for a channel of a service.
    fn rota_invitee_begin(control: *const c_char, service: u16, invitee: Out<'_, *mut InviteeHandle>) {
        let invitee = need(invitee, "invitee")?;
        let node = Node::connect(&control_name(control)?)?;
        hand_over(Some(invitee), InviteeHandle { invitee: node.invitee(service)?, asked: None }, "invitee")
    }

    /// Waits until a receiver asks.
    fn rota_invitee_wait(invitee: Option<&mut InviteeHandle>, timeout_ns: u64, about: Out<'_, About>) {
        let handle = need(invitee, "invitee")?;
        let invitation = handle.invitee.invited(Span::from_nanos(timeout_ns))?;
        tell(about, About::asked(&invitation));
        handle.asked = Some(invitation);
        Ok(())
    }

    /// Opens the channel that was asked for. The invitee is gone in any case.
    fn rota_invitee_open(
        invitee: Option<Box<InviteeHandle>>,
        request: Option<&Request>,
        terms: Option<&Terms>,
        channel: Out<'_, *mut SendChannel>,
        refusal: Out<'_, Refusal>,
    ) {
        let terms = terms.map(AskedTerms::from).unwrap_or_default();
        let read = |name: &str| {
            let request = need(request, "request")?.read_to(Some(name))?;
            Ok(OpenRequest { terms, ..request })
        };
        open_asked(*need(invitee, "invitee")?, read, channel, refusal)
    }

    /// Waits no more. A receiver that has asked is refused.
    fn rota_invitee_close(invitee: Option<Box<InviteeHandle>>) {
        need(invitee, "invitee").map(drop)
    }
}

/// The descriptor that becomes readable when a receiver has asked, -1 for a null pointer.
// SAFETY: the name is declared in rota.h and nowhere else.
#[unsafe(no_mangle)]
pub extern "C" fn rota_invitee_fd(invitee: Option<&InviteeHandle>) -> c_int {
    invitee.map_or(-1, |handle| handle.invitee.as_fd().as_raw_fd())
}
