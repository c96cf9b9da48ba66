//! The door between C and Rust: statuses, sentences, pointers.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call returns; the numbers are those of `rota.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    Ok = 0,
    Refused = 1,
    NoSuchStation = 2,
    NoListener = 3,
    TooLong = 4,
    WouldBlock = 5,
    TimedOut = 6,
    Ended = 7,
    Broken = 8,
    NodeGone = 9,
    WrongUse = 10,
    Failed = 11,
    InvalidSocket = 12,
    DuplicateSocket = 13,
    TooManySockets = 14,
    Busy = 15,
    InDoubt = 16,
    LeftOut = 17,
}

/// Why a call was not done.
pub struct Fault {
    status: Status,
    sentence: Cow<'static, str>,
}

impl Fault {
    pub fn new(status: Status, why: impl ToString) -> Self {
        Self { status, sentence: Cow::Owned(why.to_string()) }
    }

    /// Nothing is there: what a program that asks in a loop hears most, and must cost nothing.
    pub const fn idle() -> Self {
        Self { status: Status::WouldBlock, sentence: Cow::Borrowed("nothing is there yet") }
    }

    /// The same status with another sentence.
    pub fn saying(self, sentence: String) -> Self {
        Self { sentence: Cow::Owned(sentence), ..self }
    }

    pub const fn status(&self) -> Status {
        self.status
    }

    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    pub fn null(what: &str) -> Self {
        Self::new(Status::WrongUse, format!("the argument '{what}' is a null pointer"))
    }
}

pub type Done = Result<(), Fault>;

thread_local! {
    static SENTENCE: RefCell<CString> = RefCell::default();
    /// Whether the last fault was that nothing is there.
    static IDLE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call: its fault becomes this thread's sentence, and a panic, which would be a bug, a status too.
pub fn guard(call: impl FnOnce() -> Done) -> c_int {
    let fault = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return Status::Ok as c_int,
        Ok(Err(fault)) => fault,
        Err(_) => {
            Fault::new(Status::Failed, "the library failed; standard error says where: please report it")
        }
    };
    IDLE.set(matches!(fault.sentence, Cow::Borrowed(_)));
    if IDLE.get() {
        return fault.status as c_int;
    }
    let octets: Vec<u8> = fault.sentence.bytes().filter(|&octet| octet != 0).collect();
    SENTENCE.with(|kept| *kept.borrow_mut() = CString::new(octets).unwrap_or_default());
    fault.status as c_int
}

/// This thread's last sentence; valid until its next call that fails.
pub fn sentence() -> *const c_char {
    if IDLE.get() { c"nothing is there yet".as_ptr() } else { SENTENCE.with(|kept| kept.borrow().as_ptr()) }
}

/// Declares functions for C. References in their arguments are pointers that may be null there.
macro_rules! export {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => { $(
        $(#[$doc])*
        // SAFETY: every exported name begins with rota_, and no other symbol of the program does.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
            $crate::face::guard(|| $body)
        }
    )* };
}
pub(crate) use export;

/// A pointer to octets, as C hands it over.
pub type Octets = *const u8;

/// Octets to read.
pub fn octets<'a>(start: Octets, count: usize, what: &str) -> Result<&'a [u8], Fault> {
    values(start, count, what)
}

/// A negative number as a count comes as more than a process has memory for.
fn check(count: usize, octets_each: usize, what: &str) -> Result<(), Fault> {
    let fits = count.checked_mul(octets_each).is_some_and(|octets| isize::try_from(octets).is_ok());
    let sentence = || format!("the argument '{what}' cannot have {count} elements; is the number negative?");
    if fits { Ok(()) } else { Err(Fault::new(Status::TooLong, sentence())) }
}

/// Values to read.
pub fn values<'a, T>(start: *const T, count: usize, what: &str) -> Result<&'a [T], Fault> {
    check(count, size_of::<T>(), what)?;
    match (start.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Fault::null(what)),
        // SAFETY: rota.h asks for `count` readable values there, which nobody changes during the call.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(start, count) }),
    }
}

/// Octets to write.
pub fn octets_mut<'a>(start: *mut u8, count: usize, what: &str) -> Result<&'a mut [u8], Fault> {
    values_mut(start, count, what)
}

/// Values to write.
pub fn values_mut<'a, T>(start: *mut T, count: usize, what: &str) -> Result<&'a mut [T], Fault> {
    check(count, size_of::<T>(), what)?;
    match (start.is_null(), count) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Fault::null(what)),
        // SAFETY: rota.h asks for `count` writable values there, which nobody else uses during the call.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(start, count) }),
    }
}

/// A string, or `None` where the pointer is null.
pub fn text<'a>(start: *const c_char, what: &str) -> Result<Option<&'a str>, Fault> {
    if start.is_null() {
        return Ok(None);
    }
    // SAFETY: rota.h asks for a string that ends in NUL and does not change during the call.
    let string = unsafe { CStr::from_ptr(start) };
    let not_text = || Fault::new(Status::WrongUse, format!("the argument '{what}' is no UTF-8"));
    string.to_str().map(Some).map_err(|_| not_text())
}

/// Where a call writes a new value for C, perhaps over octets that were never set.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Copies as many octets as there is room for. True if some were cut off.
pub fn copy_octets(octets: &[u8], into: &mut [u8]) -> bool {
    let fits = octets.len().min(into.len());
    into[..fits].copy_from_slice(&octets[..fits]);
    fits < octets.len()
}

/// Writes an answer where C wants it; a null pointer means that it does not.
pub fn tell<T>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// Hands a value over to C, which gives it back in the call that ends it.
pub fn hand_over<T>(out: Out<'_, *mut T>, value: T, what: &str) -> Done {
    out.ok_or_else(|| Fault::null(what))?.write(Box::into_raw(Box::new(value)));
    Ok(())
}

/// Copies a text into an array of C, cut at a character where it is too long, and always ended.
pub fn copy_text<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    let mut end = text.len().min(N - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (to, from) in array.iter_mut().zip(&text.as_bytes()[..end]) {
        *to = c_char::from_ne_bytes([*from]);
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_a_status_and_a_sentence_and_a_panic_is_one_too() {
        assert_eq!(guard(|| Ok(())), 0);
        assert_eq!(guard(|| Err(Fault::idle())), Status::WouldBlock as c_int);
        assert_eq!(text(sentence(), "x").ok().flatten(), Some("nothing is there yet"));
        assert_eq!(guard(|| Err(Fault::null("out"))), Status::WrongUse as c_int);
        // What `sentence` points at lives until the next fault of this thread.
        let told = text(sentence(), "x").ok().flatten();
        assert_eq!(told, Some("the argument 'out' is a null pointer"));
        assert_eq!(guard(|| panic!("planted")), Status::Failed as c_int);
    }

    #[test]
    fn null_pointers_and_texts_too_long_are_no_crash() {
        assert!(octets(std::ptr::null(), 0, "x").is_ok_and(<[u8]>::is_empty));
        assert!(octets(std::ptr::null(), 1, "x").is_err());
        assert!(octets_mut(std::ptr::null_mut(), 9, "x").is_err());
        assert!(matches!(text(std::ptr::null(), "x"), Ok(None)));
        assert!(text(c"\xff".as_ptr(), "x").is_err());
        assert!(hand_over(None, 1u8, "out").is_err());
        let cut: [c_char; 4] = copy_text("aäö");
        assert_eq!(cut.map(|c| c.to_ne_bytes()[0]), *b"a\xc3\xa4\0");
    }
}
