//! A slot that another one relieves, and that the list has lost by then.

use rota_sim::sweep::{self, Campaign};

/// The token machine looked for the slot for ever, and its events took all memory: 24 GB within minutes.
#[test]
fn seed_3448724_of_the_products_timers_ends() {
    let seed = 3_448_724;
    let result = sweep::run(seed, &Campaign::Product.scenario(seed));
    assert_eq!(result.violations, []);
}
