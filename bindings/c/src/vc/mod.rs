//! Circuits as sockets: what `include/rota_vc.h` declares.
//!
//! A handle is the number of a descriptor. A number that is none, or is closed, is found in no table, and the
//! call says so. Everything below a call is done without waiting; a call that waits does it again.

mod handle;
mod listening;
mod no;
mod open;
mod poll;
mod ready;

use std::ffi::{c_char, c_int, c_long};

use nix::errno::Errno;
use rota::vc::{Flow, Guarantee, ListenOptions, Options};
use rota::{BitRate, Octets, Span, now};

use crate::channel::control_name;
use crate::face;
use handle::{ALL_CLASSES, Handle, Kind, Settings, Side, State, find};
use listening::{Listening, Opening};
use no::{No, call};

const DONTWAIT: c_int = 1;
const MORE: c_int = 2;

/// `rota_vc_qos`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Qos {
    size: usize,
    depth_octets: u64,
    rate_bps: u64,
    window: u32,
    kind: u8,
    simplex: u8,
    unreliable: u8,
    flow: u8,
    level: u8,
    reserved: [u8; 3],
    message_octets: u32,
    peak_bps: u64,
    delay_ns: u64,
}

impl Qos {
    /// The service asked for, and whether it is simplex.
    fn options(given: Option<&Self>) -> Result<(Options, bool), No> {
        let Some(qos) = given else { return Ok((Options::RELIABLE.streaming(), false)) };
        let wrong = |why: String| Err(No::new(Errno::EINVAL, why));
        let size = size_of::<Self>();
        if qos.size != size {
            return wrong(format!(
                "the size of rota_vc_qos is sizeof(rota_vc_qos), {size}, not {}",
                qos.size
            ));
        }
        if qos.kind > 1 || qos.simplex > 1 || qos.unreliable > 1 || qos.reserved != [0; 3] {
            return wrong(
                "kind, simplex and unreliable of rota_vc_qos are 0 or 1, and its last octets 0".into(),
            );
        }
        if qos.unreliable == 1 && qos.simplex == 0 {
            let why =
                "unreliable goes with simplex = 1: a duplex circuit begins with greetings, which must arrive";
            return wrong(why.into());
        }
        if qos.level > 7 || qos.window > 16_384 {
            return wrong(format!(
                "level is 0 to 7 and window 0 to 16384, not {} and {}",
                qos.level, qos.window
            ));
        }
        let flow = match qos.flow {
            0 => Flow::Window,
            1 => Flow::Open,
            2 => match BitRate::new(qos.rate_bps) {
                Some(rate) if qos.depth_octets > 0 => Flow::Bucket(Octets::new(qos.depth_octets), rate),
                _ => return wrong("a leaky bucket has depth_octets and rate_bps, 1 or more".into()),
            },
            3 if qos.unreliable == 0 => {
                return wrong("a channel carries circuits with unreliable = 1 alone".into());
            }
            3 => Flow::Channel(qos.guarantee()?),
            other => {
                return wrong(format!(
                    "there is no flow control {other}: ROTA_VC_WINDOW_FLOW, ..._OPEN, ..._BUCKET, ..._CHANNEL"
                ));
            }
        };
        let window = if qos.window == 0 { Options::RELIABLE.window } else { qos.window.into() };
        let (error_control, stream, level) = (qos.unreliable == 0, qos.kind == 0, qos.level);
        Ok((Options { error_control, flow, stream, window, level }, qos.simplex == 1))
    }

    fn guarantee(&self) -> Result<Guarantee, No> {
        let no_rate = || No::fixed(Errno::EINVAL, "a channel reserves rate_bps, 1 or more");
        let rate = BitRate::new(self.rate_bps).ok_or_else(no_rate)?;
        let burst = u32::try_from(self.depth_octets).unwrap_or(u32::MAX);
        let delay = Some(Span::from_nanos(self.delay_ns)).filter(|delay| *delay > Span::ZERO);
        let (message, peak) = (self.message_octets, BitRate::new(self.peak_bps));
        Ok(Guarantee { message, burst, peak, delay, ..Guarantee::of_rate(rate) })
    }
}

fn flags(flags: c_int, known: c_int) -> Result<(), No> {
    let why =
        || No::new(Errno::EINVAL, format!("the flags {flags:#x} have bits that this call does not know"));
    if flags & !known == 0 { Ok(()) } else { Err(why()) }
}

fn number(octets: usize) -> isize {
    isize::try_from(octets).unwrap_or(isize::MAX)
}

/// Declares functions for C that return -1 with `errno`, or a number.
macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $answer:ty $body:block)*) => { $(
        $(#[$doc])*
        // SAFETY: every exported name begins with rota_, and no other symbol of the program does.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type),*) -> $answer {
            // A handle is an int, and every other answer fits.
            call(|| $body) as $answer
        }
    )* };
}

calls! {
    /// A handle without a circuit.
    fn rota_vc_socket(control: *const c_char) -> c_int {
        let made = Handle::make(control_name(control)?, Kind::New { service: None }, Settings::default())?;
        Ok(made as isize)
    }

    /// Whether a number is a handle.
    fn rota_vc_is(vc: c_int) -> c_int {
        Ok(isize::from(find(vc).is_ok()))
    }

    /// The service of a listener.
    fn rota_vc_bind(vc: c_int, service: u32) -> c_int {
        find(vc)?.now(|state| {
            let Kind::New { service: place @ None } = &mut state.kind else {
                return Err(No::fixed(Errno::EINVAL, "a handle is bound once, and before all else"));
            };
            *place = Some(service);
            Ok(0)
        })
    }

    /// Listens.
    fn rota_vc_listen(vc: c_int, backlog: c_int) -> c_int {
        let handle = find(vc)?;
        handle.now(|state| {
            let &Kind::New { service: Some(service) } = &state.kind else {
                return Err(No::fixed(Errno::EINVAL, "a handle listens that is bound to a service, once"));
            };
            let backlog = u16::try_from(backlog.clamp(1, 64)).unwrap_or(1);
            let options = ListenOptions { window: state.settings.window, backlog };
            let listening = Listening::begin(&state.control, service, options, state.settings)?;
            state.kind = Kind::Listening(Box::new(listening));
            handle.watch(state)?;
            Ok(0)
        })
    }

    /// The next circuit of a listener: a handle of its own.
    fn rota_vc_accept(vc: c_int, from: *mut c_char, room: usize) -> c_int {
        let handle = find(vc)?;
        let into = if from.is_null() { &mut [] } else { face::octets_mut(from.cast(), room, "from")? };
        let (open, name, control, settings) = handle.until(Side::In, true, |state| {
            let Kind::Listening(listening) = &mut state.kind else {
                return Err(No::fixed(Errno::EINVAL, "this handle does not listen"));
            };
            let (open, name) = listening.take()?;
            Ok((open, name, state.control.clone(), state.settings))
        })?;
        if let Some(last) = into.len().checked_sub(1) {
            let octets = name.len().min(last);
            into[..octets].copy_from_slice(&name.as_bytes()[..octets]);
            into[octets] = 0;
        }
        let settings = Settings { is_nonblocking: false, ..settings };
        Ok(Handle::make(control, Kind::Open(Box::new(open)), settings)? as isize)
    }

    /// Opens a circuit.
    fn rota_vc_connect(vc: c_int, node: *const c_char, service: u32, qos: Option<&Qos>) -> c_int {
        let handle = find(vc)?;
        let null = No::fixed(Errno::EINVAL, "the argument 'node' is a null pointer");
        let node = face::text(node, "node")?.ok_or(null)?;
        let (options, simplex) = Qos::options(qos)?;
        let begun = handle.now(|state| match &state.kind {
            Kind::New { service: None } => {
                let opening = Opening::begin(&state.control, node, service, options, simplex, &handle.bell);
                state.kind = Kind::Opening(opening);
                Ok(true)
            }
            Kind::Open(_) => Ok(false),
            Kind::Opening(_) => Err(No::fixed(Errno::EALREADY, "the circuit is being opened")),
            Kind::Failed(no) => Err(no.clone()),
            _ => Err(No::fixed(Errno::EINVAL, "a handle that is bound or listens does not connect")),
        })?;
        if !begun {
            return Err(No::fixed(Errno::EISCONN, "this handle has its circuit already"));
        }
        let opened = handle.until(Side::Out, true, |state| state.open().map(|_| 0));
        opened.map_err(|no| match no.is_idle() {
            true => No::fixed(Errno::EINPROGRESS, "the circuit is being opened: poll for POLLOUT"),
            false => no,
        })
    }

    /// Sends.
    fn rota_vc_send(vc: c_int, octets: face::Octets, count: usize, more: c_int) -> isize {
        let handle = find(vc)?;
        let octets = face::octets(octets, count, "octets")?;
        flags(more, DONTWAIT | MORE)?;
        send(&handle, octets, more)
    }

    /// Receives.
    fn rota_vc_recv(vc: c_int, buffer: *mut u8, room: usize, how: c_int) -> isize {
        let handle = find(vc)?;
        let into = face::octets_mut(buffer, room, "buffer")?;
        flags(how, DONTWAIT)?;
        handle.until(Side::In, how & DONTWAIT == 0, |state| {
            let most = state.settings.message_max;
            state.open()?.recv(into, most).map(number)
        })
    }

    /// The length of the next message.
    fn rota_vc_next(vc: c_int, octets: face::Out<'_, usize>) -> c_int {
        let handle = find(vc)?;
        let found = handle.until(Side::In, true, |state| {
            let most = state.settings.message_max;
            state.open()?.next(most)
        })?;
        face::tell(octets, found.unwrap_or(0));
        Ok(isize::from(found.is_some()))
    }

    /// Ends one direction, or both.
    fn rota_vc_shutdown(vc: c_int, how: c_int) -> c_int {
        let handle = find(vc)?;
        if !(0..=2).contains(&how) {
            return Err(No::new(Errno::EINVAL, format!("how is SHUT_RD, SHUT_WR or SHUT_RDWR, not {how}")));
        }
        if how != 1 {
            handle.now(|state| {
                state.open()?.shut_receiver();
                Ok(())
            })?;
        }
        if how != 0 {
            handle.until(Side::Out, true, |state| state.open()?.shut_sender())?;
        }
        Ok(0)
    }

    /// Ends a handle.
    fn rota_vc_close(vc: c_int) -> c_int {
        let handle = find(vc)?;
        let closed = close(&handle);
        handle.remove();
        closed
    }

    /// Sets an option.
    fn rota_vc_set(vc: c_int, option: c_int, value: c_long) -> c_int {
        find(vc)?.now(|state| set(state, option, value))
    }

    /// An option, or what the circuit carries.
    fn rota_vc_get(vc: c_int, option: c_int) -> c_long {
        find(vc)?.now(|state| get(state, option))
    }

    /// The certificate of a guaranteed circuit: its length without its end.
    fn rota_vc_certificate(vc: c_int, text: *mut c_char, room: usize) -> isize {
        let handle = find(vc)?;
        let into = if text.is_null() { &mut [] } else { face::octets_mut(text.cast(), room, "text")? };
        let certificate = handle.now(|state| state.open()?.certificate())?;
        if let Some(copy) = into.get_mut(..=certificate.len()) {
            copy[..certificate.len()].copy_from_slice(certificate.as_bytes());
            copy[certificate.len()] = 0;
        }
        Ok(number(certificate.len()))
    }

    /// What is readable while a direction has something to do.
    fn rota_vc_descriptor(vc: c_int, events: c_int) -> c_int {
        let handle = find(vc)?;
        let side = match events {
            e if e == c_int::from(libc::POLLIN) => Side::In,
            e if e == c_int::from(libc::POLLOUT) => Side::Out,
            _ => return Err(No::new(Errno::EINVAL, format!("events is POLLIN or POLLOUT, not {events}"))),
        };
        handle.due();
        Ok(handle.descriptor(side) as isize)
    }

    /// Waits for circuits and other descriptors.
    fn rota_vc_poll(fds: *mut libc::pollfd, count: usize, timeout_ms: c_int) -> c_int {
        let fds = face::values_mut(fds, count, "fds")?;
        if fds.len() > 65_536 {
            return Err(No::new(Errno::EINVAL, format!("at most 65536 descriptors are polled, not {count}")));
        }
        poll::poll(fds, timeout_ms).map(number)
    }
}

fn send(handle: &Handle, octets: &[u8], how: c_int) -> Result<isize, No> {
    let may_wait = how & DONTWAIT == 0;
    let _turn = handle.turn(may_wait)?;
    let mut sent = 0;
    loop {
        let step = handle.until(Side::Out, may_wait, |state| {
            let (took, is_done) = state.open()?.send(&octets[sent..], how & MORE != 0)?;
            if took == 0 && !is_done { Err(No::idle()) } else { Ok((took, is_done)) }
        });
        match step {
            Ok((took, is_done)) => {
                sent += took;
                if is_done {
                    return Ok(number(sent));
                }
            }
            // The next call says why.
            Err(_) if sent > 0 => return Ok(number(sent)),
            Err(no) => return Err(no),
        }
    }
}

fn close(handle: &Handle) -> Result<isize, No> {
    let begun = now();
    loop {
        let (done, limit) = handle.now(|state| {
            let limit = Span::from_millis(state.settings.linger_ms);
            let done = if let Kind::Open(open) = &mut state.kind { open.close() } else { Ok(()) };
            Ok((done, limit))
        })?;
        match done {
            Err(no) if no.is_idle() => {}
            other => return other.map(|()| 0),
        }
        let left = (begun + limit).since(now());
        if left == Span::ZERO {
            return Err(No::fixed(
                Errno::ETIMEDOUT,
                "closed before the other program had taken all, after ROTA_VC_LINGER_MS",
            ));
        }
        handle.wait(Side::Out, left.min(Span::from_millis(20)));
    }
}

fn set(state: &mut State, option: c_int, value: c_long) -> Result<isize, No> {
    let limit: c_long = match option {
        1 | 5 => 1,
        2 | 3 => 86_400_000,
        4 => 16_384,
        6 => 1 << 40,
        13 => c_long::from(ALL_CLASSES),
        14 => c_long::from(u32::MAX),
        _ => return Err(unknown(option)),
    };
    let least = c_long::from(matches!(option, 4 | 6 | 13));
    if !(least..=limit).contains(&value) {
        return Err(No::new(Errno::EINVAL, format!("option {option} is {least} to {limit}, not {value}")));
    }
    let settings = &mut state.settings;
    let amount = value.unsigned_abs();
    match option {
        1 => settings.is_nonblocking = value == 1,
        2 => settings.linger_ms = amount,
        3 => settings.timeout_ms = amount,
        4 => settings.window = u32::try_from(amount).unwrap_or(u32::MAX),
        5 => settings.is_simplex = value == 1,
        13 => settings.takes = u8::try_from(amount).unwrap_or(ALL_CLASSES),
        14 => settings.reason = u32::try_from(amount).unwrap_or(u32::MAX),
        _ => settings.message_max = usize::try_from(amount).unwrap_or(usize::MAX),
    }
    Ok(0)
}

fn unknown(option: c_int) -> No {
    No::new(
        Errno::EINVAL,
        format!("there is no option {option}; rota_vc.h names them, ROTA_VC_NONBLOCK first"),
    )
}

fn get(state: &mut State, option: c_int) -> Result<isize, No> {
    let Settings { is_nonblocking, is_simplex, linger_ms, timeout_ms, window, message_max, takes, reason } =
        state.settings;
    let amount = match option {
        1 => u64::from(is_nonblocking),
        2 => linger_ms,
        3 => timeout_ms,
        4 => u64::from(window),
        5 => u64::from(is_simplex),
        6 => message_max as u64,
        7 => return state.open().map(|open| isize::from(!open.is_stream)),
        8 => state.open()?.receiver()?.lost().tpdus,
        9 => state.open()?.receiver()?.lost().messages,
        10 => state.open()?.receiver()?.take_gap(),
        11 => state.open()?.bound().as_nanos(),
        12 => u64::from(state.open()?.tpdu()),
        13 => u64::from(takes),
        14 => u64::from(state.declined().unwrap_or(reason)),
        _ => return Err(unknown(option)),
    };
    Ok(isize::try_from(amount).unwrap_or(isize::MAX))
}
