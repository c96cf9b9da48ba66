//! Looking for a while before going to sleep, for who exchanges messages one at a time.

use crate::now;
use rota_shm::Patience;
use rota_units::{Instant, Span};

/// So long it is looked at most.
const LOOKED_MAX: Span = Span::from_micros(200);

/// Looks until there is something, for as long as `patience` says and not beyond `until`. Whether there is.
pub(crate) fn look(patience: &mut Patience, until: Instant, mut is_there: impl FnMut() -> bool) -> bool {
    if !patience.looks() {
        return false;
    }
    let until = until.min(now() + LOOKED_MAX);
    while now() < until {
        if is_there() {
            patience.found();
            return true;
        }
        // The node, or the program that is to answer, may have this very CPU.
        std::thread::yield_now();
    }
    patience.in_vain();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_for_a_fifth_of_a_millisecond_and_never_beyond_the_wait() {
        let patience = &mut Patience::default();
        let far = now() + Span::from_millis(10_000);
        assert!(!look(patience, far, || panic!("looked without a reason")));
        (0..3).for_each(|_| patience.waited(Span::ZERO));
        let (began, mut looks) = (now(), 0);
        assert!(look(patience, far, || {
            looks += 1;
            looks == 3
        }));
        assert!(!look(patience, far, || false));
        assert!(now().since(began) >= LOOKED_MAX);
        (0..6).for_each(|_| patience.waited(Span::ZERO));
        assert!(!look(patience, now(), || panic!("looked behind its end")));
    }
}
