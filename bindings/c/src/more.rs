//! Terms that came after `rota_terms`: a structure that states its size, so that it can grow. Channels that
//! have them, one alone and one in each direction.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use rota::{
    AcceptError, AskedTerms, Duplex, DuplexError, Group, Listener, Node, OpenRequest, SendChannel, Span,
};

use crate::channel::{Receiver, Refusal, Request, control_name, need, opened};
use crate::face::{Fault, Out, Status, export, hand_over, tell, text};
use crate::invitee::{InviteeHandle, open_asked};
use crate::stream::{About, Terms};
use crate::withdrawn::{Hop, tell_hop};

/// `rota_more`. A later version adds fields at its end, and none is ever taken away or moved.
#[repr(C)]
pub struct More {
    size: usize,
    partition: *const c_char,
    group: *const c_char,
    start_ns: u64,
    end_ns: u64,
    reroute_ns: u64,
    at_once: u32,
    backup: c_int,
    allow_withdrawn: c_int,
    reserved: u32,
    via: *const c_char,
}

/// The size of the first version, which ended before `via`: no program has a smaller one.
const FIRST: usize = std::mem::offset_of!(More, via);

/// The octets of a structure of this library that C has filled, whatever version the program was built with:
/// fields that it does not have are not stated, and those that the library does not know must not be.
fn read_sized(more: *const More) -> Result<More, Fault> {
    let wrong = |why: String| Fault::new(Status::WrongUse, why);
    // SAFETY: rota.h asks for a structure that begins with its size, which nobody changes during the call.
    let size = unsafe { more.cast::<usize>().read() };
    // No version ends amid a field: of a pointer that is cut in two nothing would be known.
    if !(FIRST..=4_096).contains(&size) || size % size_of::<usize>() != 0 {
        return Err(wrong(format!(
            "the size of rota_more is sizeof(rota_more), {FIRST} or more, not {size}"
        )));
    }
    // SAFETY: so many octets are there, as the program states.
    let octets = unsafe { std::slice::from_raw_parts(more.cast::<u8>(), size) };
    let (known, beyond) = octets.split_at(size.min(size_of::<More>()));
    if beyond.iter().any(|octet| *octet != 0) {
        return Err(wrong("rota_more states terms that this library does not know; leave them 0".into()));
    }
    let mut read = MaybeUninit::<More>::zeroed();
    // SAFETY: `known` is no longer than the structure, and all its fields are numbers and pointers, for which
    // any octets are a value.
    Ok(unsafe {
        std::ptr::copy_nonoverlapping(known.as_ptr(), read.as_mut_ptr().cast::<u8>(), known.len());
        read.assume_init()
    })
}

impl More {
    fn add_to(&self, terms: AskedTerms) -> Result<AskedTerms, Fault> {
        let wrong = |why: String| Fault::new(Status::WrongUse, why);
        let stated = |ns: u64| (ns > 0).then_some(Span::from_nanos(ns));
        if self.reserved != 0 {
            return Err(wrong("the field 'reserved' of rota_more is 0".into()));
        }
        let partition = text(self.partition, "partition")?.map(str::parse).transpose();
        let at_once = match self.at_once {
            0 => 1,
            many => u8::try_from(many).map_err(|_| wrong(format!("{many} members cannot send at once")))?,
        };
        let via = text(self.via, "via")?.map(str::parse).transpose();
        let group = text(self.group, "group")?.map(|name| name.parse().map(|name| Group { name, at_once }));
        if group.is_none() && self.at_once != 0 {
            return Err(wrong("'at_once' counts members of a group; state its name".into()));
        }
        Ok(AskedTerms {
            partition: partition.map_err(|bad: rota::BadPartitionName| wrong(bad.to_string()))?,
            group: group.transpose().map_err(|bad: rota::BadGroupName| wrong(bad.to_string()))?,
            start: stated(self.start_ns),
            end: stated(self.end_ns),
            reroute: match self.reroute_ns {
                u64::MAX => Some(Span::ZERO),
                ns => stated(ns),
            },
            backup: self.backup != 0,
            allow_withdrawn: self.allow_withdrawn != 0,
            via: via.map_err(|bad: rota::BadVia| wrong(bad.to_string()))?,
            ..terms
        })
    }
}

/// The terms of a request, of which both parts may be null pointers, for units so far apart.
fn all_terms(terms: Option<&Terms>, more: *const More, period: Span) -> Result<AskedTerms, Fault> {
    let mut all = terms.map(AskedTerms::from).unwrap_or_default();
    if !more.is_null() {
        all = read_sized(more)?.add_to(all)?;
    }
    all.check(period).map_err(|bad| Fault::new(Status::WrongUse, bad))?;
    Ok(all)
}

fn read(request: &Request, to: Option<&str>, terms: AskedParts<'_>) -> Result<OpenRequest, Fault> {
    let request = request.read_to(to)?;
    let terms = all_terms(terms.0, terms.1, request.traffic.period)?;
    Ok(OpenRequest { terms, ..request })
}

/// Both parts of the terms, as C hands them over.
type AskedParts<'a> = (Option<&'a Terms>, *const More);

fn not_both(error: DuplexError, refusal: Out<'_, Refusal>) -> Fault {
    let sentence = error.to_string();
    let fault = match error {
        DuplexError::There(error) => opened(error, refusal),
        DuplexError::Back(AcceptError::Refused(info)) => {
            tell(refusal, Refusal::from(&*info));
            Fault::new(Status::Refused, "")
        }
        DuplexError::Back(error) => error.into(),
        DuplexError::Node(error) => error.into(),
        other => Fault::new(Status::Failed, other),
    };
    fault.saying(sentence)
}

export! {
    /// Opens a channel with all terms that there are.
    fn rota_channel_open_more(
        control: *const c_char,
        request: Option<&Request>,
        terms: Option<&Terms>,
        more: *const More,
        channel: Out<'_, *mut SendChannel>,
        refusal: Out<'_, Refusal>,
    ) {
        let request = read(need(request, "request")?, None, (terms, more))?;
        let channel = need(channel, "channel")?;
        let node = Node::connect(&control_name(control)?)?;
        let made = node.open(&request).map_err(|error| opened(error, refusal))?;
        hand_over(Some(channel), made, "channel")
    }

    /// Opens a channel and one back from the same station and service: both or none.
    fn rota_channel_open_duplex(
        control: *const c_char,
        request: Option<&Request>,
        terms: Option<&Terms>,
        more: *const More,
        buffers: u16,
        channel: Out<'_, *mut SendChannel>,
        back: Out<'_, *mut Receiver>,
        refusal: Out<'_, Refusal>,
    ) {
        let request = read(need(request, "request")?, None, (terms, more))?;
        let (channel, back) = (need(channel, "channel")?, need(back, "back")?);
        let buffers = if buffers == 0 { 4 } else { buffers };
        let node = Node::connect(&control_name(control)?)?;
        let opened = node.open_duplex(&request, buffers).map_err(|error| not_both(error, refusal))?;
        let Duplex { send, recv } = opened;
        hand_over(Some(channel), send, "channel")?;
        hand_over(Some(back), Receiver::of(recv), "back")
    }

    /// Opens the channel that was asked for, with all terms that there are. The invitee is gone in any case.
    fn rota_invitee_open_more(
        invitee: Option<Box<InviteeHandle>>,
        request: Option<&Request>,
        terms: Option<&Terms>,
        more: *const More,
        channel: Out<'_, *mut SendChannel>,
        refusal: Out<'_, Refusal>,
    ) {
        let handle = need(invitee, "invitee")?;
        let read = |name: &str| read(need(request, "request")?, Some(name), (terms, more));
        open_asked(*handle, read, channel, refusal)
    }

    /// As rota_asked, and tells the part of the way for which nothing would be guaranteed.
    fn rota_asked_withdrawn(
        listener: Option<&mut Listener>,
        timeout_ns: u64,
        about: Out<'_, About>,
        is: Out<'_, c_int>,
        hop: Out<'_, Hop>,
    ) {
        let (about, is) = (need(about, "about")?, need(is, "is")?);
        let asked = need(listener, "listener")?.asked(Span::from_nanos(timeout_ns))?;
        about.write(About::of(asked.channel, &asked.contract, &asked.peer));
        tell_hop(asked.withdrawn, Some(is), hop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> More {
        let null = std::ptr::null();
        let (start_ns, end_ns, reroute_ns) = (0, 0, 0);
        More {
            size: size_of::<More>(),
            partition: null,
            group: null,
            start_ns,
            end_ns,
            reroute_ns,
            at_once: 0,
            backup: 0,
            allow_withdrawn: 0,
            reserved: 0,
            via: null,
        }
    }

    fn asked(more: &More) -> Result<AskedTerms, String> {
        all_terms(None, more, Span::from_millis(40)).map_err(|fault| fault.sentence().to_owned())
    }

    #[test]
    fn each_term_is_asked_for_and_0_is_not_stated() {
        assert_eq!(asked(&none()), Ok(AskedTerms::default()));
        let more = More {
            partition: c"studio".as_ptr(),
            start_ns: 7,
            end_ns: 9,
            reroute_ns: u64::MAX,
            backup: 1,
            allow_withdrawn: 1,
            via: c"g1,g2".as_ptr(),
            ..none()
        };
        let span = |ns| Some(Span::from_nanos(ns));
        let wanted = AskedTerms {
            partition: "studio".parse().ok(),
            start: span(7),
            end: span(9),
            reroute: Some(Span::ZERO),
            backup: true,
            allow_withdrawn: true,
            via: "g1,g2".parse().ok(),
            ..AskedTerms::default()
        };
        assert_eq!(asked(&more), Ok(wanted));
        let group = asked(&More { group: c"talk".as_ptr(), at_once: 3, ..none() }).unwrap().group.unwrap();
        assert_eq!((group.name.to_string().as_str(), group.at_once), ("talk", 3));
    }

    #[test]
    fn terms_that_cannot_be_are_wrong_use_with_a_reason() {
        for (more, why) in [
            (More { size: 8, ..none() }, "sizeof(rota_more)"),
            (More { size: 5_000, ..none() }, "sizeof(rota_more)"),
            (More { size: size_of::<More>() - 1, ..none() }, "sizeof(rota_more)"),
            (More { reserved: 1, ..none() }, "'reserved'"),
            (More { at_once: 2, ..none() }, "state its name"),
            (More { group: c"talk".as_ptr(), at_once: 17, ..none() }, "1 to 16 members"),
            (More { group: c"talk".as_ptr(), at_once: 300, ..none() }, "300 members"),
            (More { group: c"talk".as_ptr(), end_ns: 7, ..none() }, "a member of a group"),
            (More { group: c"a/b".as_ptr(), ..none() }, "letters"),
            (More { partition: c"a/b".as_ptr(), ..none() }, "letters"),
            (More { partition: c"\xff".as_ptr(), ..none() }, "UTF-8"),
            (More { via: c"g1,,g2".as_ptr(), ..none() }, "commas between them"),
            (More { start_ns: 9, end_ns: 9, ..none() }, "no later than the start"),
        ] {
            let said = asked(&more).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    /// A program that was built before `via` was a field reads on.
    #[test]
    fn the_first_version_has_no_gateways() {
        let more = More { size: FIRST, backup: 1, via: c"g1".as_ptr(), ..none() };
        assert_eq!(asked(&more).map(|terms| (terms.backup, terms.via)), Ok((true, None)));
    }

    /// A program that was built with a later version states fields that are not known here.
    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        #[repr(C)]
        struct Later {
            known: More,
            beyond: u64,
        }
        let known = || More { size: size_of::<Later>(), backup: 1, ..none() };
        let said = |later: &Later| asked_of((&raw const *later).cast());
        assert_eq!(said(&Later { known: known(), beyond: 0 }).map(|terms| terms.backup), Ok(true));
        let unknown = said(&Later { known: known(), beyond: 1 }).unwrap_err();
        assert!(unknown.contains("does not know"), "{unknown}");
    }

    fn asked_of(more: *const More) -> Result<AskedTerms, String> {
        all_terms(None, more, Span::from_millis(40)).map_err(|fault| fault.sentence().to_owned())
    }
}
