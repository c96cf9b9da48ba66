//! Test door: runs a closure before each access to shared memory on this thread, so that a test can let
//! the other side act, or the process die, between any two accesses.

use std::cell::{Cell, RefCell};

/// What is about to happen to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A word will be read.
    Read,
    /// A word will be written.
    Write,
}

type Closure = Box<dyn FnMut(Access)>;

thread_local! {
    static HOOK: RefCell<Option<Closure>> = const { RefCell::new(None) };
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` with `hook` called before each access; the hook's own accesses are not hooked.
pub(crate) fn with_hook<T>(hook: impl FnMut(Access) + 'static, body: impl FnOnce() -> T) -> T {
    struct Unhook;
    impl Drop for Unhook {
        // Also on a panic, which is how a test plays a process that dies.
        fn drop(&mut self) {
            HOOK.with(|slot| slot.borrow_mut().take());
            BUSY.with(|busy| busy.set(false));
        }
    }
    HOOK.with(|slot| *slot.borrow_mut() = Some(Box::new(hook)));
    let _unhook = Unhook;
    body()
}

pub(super) fn access(kind: Access) {
    if BUSY.with(|busy| busy.replace(true)) {
        return;
    }
    let taken = HOOK.with(|slot| slot.borrow_mut().take());
    if let Some(mut hook) = taken {
        hook(kind);
        HOOK.with(|slot| *slot.borrow_mut() = Some(hook));
    }
    BUSY.with(|busy| busy.set(false));
}
