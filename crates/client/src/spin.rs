//! Looking for a while before going to sleep, for who exchanges messages one at a time.

use crate::now;
use rota_shm::Patience;
use rota_units::{Instant, Span};

/// So long it is looked at most.
const LOOKED_MAX: Span = Span::from_micros(200);

/// Looks until there is something, for as long as `patience` says and not beyond `until`. Whether there is.
pub(crate) fn look(patience: &mut Patience, until: Instant, mut is_there: impl FnMut() -> bool) -> bool {
    let begin = now();
    if !patience.looks() || until <= begin {
        return false;
    }
    loop {
        // Before the look: who has this CPU meanwhile may keep it for longer than that.
        let at = now();
        if is_there() {
            patience.found();
            return true;
        }
        if at >= until.min(begin + LOOKED_MAX) {
            // A wait that ends sooner says nothing, however late this thread sees its end.
            if until >= begin + LOOKED_MAX {
                patience.in_vain();
            }
            return false;
        }
        // The node, or the program that is to answer, may have this very CPU.
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_for_a_fifth_of_a_millisecond_and_never_beyond_the_wait() {
        let patience = &mut Patience::default();
        let far = now() + Span::from_millis(10_000);
        assert!(!look(patience, far, || panic!("looked without a reason")));
        (0..3).for_each(|_| patience.waited(Span::ZERO, true));
        assert!(look(patience, far, || true));
        // It does not wait for long enough to say that there is nothing.
        assert!(!look(patience, now() + Span::from_micros(1), || false) && patience.looks());
        assert!(!look(patience, now(), || panic!("looked behind its end")) && patience.looks());
        let began = now();
        assert!(!look(patience, far, || false));
        assert!(now().since(began) >= LOOKED_MAX && !patience.looks());
    }
}
