//! The tests of the CPU against a host that is simulated unit by unit, by other code than the scheduler's.

use super::{Ask, COST_MAX, Class, Costs, CpuTest, Host, PERIOD_MAX, Promise, Share, WEIGHT_MAX};
use super::{NO_BOUND, admit, grown, shrunk};
use proptest::prelude::*;
use rota_units::{Octets, Span};
use std::collections::VecDeque;

const fn ns(nanos: u64) -> Span {
    Span::from_nanos(nanos)
}

const HOST: Host = Host { share_ppm: 950_000, slack: Span::ZERO, above: None };

fn ask(class: Class, weight: u16, unit: u64, promise: Option<(u32, u64, u64)>) -> Ask {
    let promise = promise.map(|(units, period, deadline)| Promise {
        units,
        period: ns(period),
        deadline: ns(deadline),
    });
    Ask { class, weight, unit: ns(unit), message: ns(unit / 2), promise }
}

/// Admits what can be admitted, in this order.
fn admitted(host: &Host, asks: &[Ask]) -> Vec<Share> {
    let mut shares = Vec::new();
    for ask in asks {
        if let Ok(granted) = admit(host, &shares, ask) {
            shares.push(Share { ask: *ask, response: granted.response });
            grown(host, &mut shares);
        }
    }
    shares
}

/// A client of the simulated host: messages that wait (when each came, and the units left of it), and the
/// longest response so far.
#[derive(Clone, Default)]
struct Client {
    waiting: VecDeque<(u64, u32)>,
    next: u64,
    longest: u64,
}

struct Cpu<'s> {
    host: &'s Host,
    shares: &'s [Share],
    clients: Vec<Client>,
    lists: [VecDeque<usize>; 3],
    left: [u32; 3],
    now: u64,
    above: u64,
}

impl<'s> Cpu<'s> {
    fn new(host: &'s Host, shares: &'s [Share], first: &[u64]) -> Self {
        let client = |at: usize| Client { next: first[at % first.len()], ..Client::default() };
        let clients = (0..shares.len()).map(client).collect();
        Self { host, shares, clients, lists: Default::default(), left: [0; 3], now: 0, above: 0 }
    }

    /// All that has come by now. A client without a promise always has one more unit.
    fn hear(&mut self, pause: &mut impl FnMut() -> u64) {
        for (at, Share { ask, .. }) in self.shares.iter().enumerate() {
            let client = &mut self.clients[at];
            let had = !client.waiting.is_empty();
            match ask.promise {
                Some(promise) => {
                    while client.next <= self.now {
                        client.waiting.push_back((client.next, promise.units));
                        client.next += promise.period.as_nanos() + pause();
                    }
                }
                None if !had && client.next <= self.now => client.waiting.push_back((self.now, u32::MAX)),
                None => {}
            }
            if !had && !client.waiting.is_empty() {
                self.lists[ask.class.place()].push_back(at);
            }
        }
    }

    /// The next unit of work, to its end. `false`: there is none now.
    fn unit(&mut self, pause: &mut impl FnMut() -> u64) -> bool {
        if let Some((work, period)) = self.host.above
            && self.above <= self.now
        {
            self.above += period.as_nanos();
            self.now += work.as_nanos();
            return true;
        }
        let Some(class) = (0..3).find(|class| !self.lists[*class].is_empty()) else { return false };
        let at = self.lists[class][0];
        let Ask { weight, unit, message, promise, .. } = self.shares[at].ask;
        if self.left[class] == 0 {
            self.left[class] = weight.into();
        }
        let client = &mut self.clients[at];
        let (came, units) = client.waiting[0];
        let is_first = promise.is_none_or(|promise| promise.units == units);
        self.now += unit.as_nanos() + if is_first { message.as_nanos() } else { 0 };
        client.waiting[0].1 -= 1;
        self.left[class] -= 1;
        // Work that came amid the unit is told before it ends, and joins before its client joins again.
        self.hear(pause);
        let client = &mut self.clients[at];
        if units == 1 {
            client.waiting.pop_front();
            client.longest = client.longest.max(self.now - came);
        }
        let is_over = self.left[class] == 0;
        let rests = client.waiting.is_empty();
        if is_over || rests {
            self.left[class] = 0;
            self.lists[class].pop_front();
        }
        if is_over && !rests {
            self.lists[class].push_back(at);
        }
        true
    }

    fn run(mut self, until: u64, mut pause: impl FnMut() -> u64) -> Vec<u64> {
        while self.now < until {
            self.hear(&mut pause);
            if !self.unit(&mut pause) {
                self.now += 1;
            }
        }
        self.clients.iter().map(|client| client.longest).collect()
    }
}

fn some_ask() -> impl Strategy<Value = Ask> {
    (0..3usize, 1u16..5, 1u64..9, 1u32..7, 60u64..400, 30u64..101).prop_map(
        |(class, weight, unit, units, period, part)| {
            let class = Class::ALL[class];
            let weight = if class == Class::Guaranteed { weight } else { 1 };
            let has_promise = class == Class::Guaranteed || (class == Class::Reliable && part % 2 == 0);
            let promise = has_promise.then_some((units, period, (period * part / 100).max(1)));
            ask(class, weight, unit, promise)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// TRANSPORT-R58: whatever comes when, and whoever else there is.
    #[test]
    fn an_admitted_client_is_never_late(
        asks in prop::collection::vec(some_ask(), 1..9),
        first in prop::collection::vec(0u64..60, 8),
        above in prop::option::of((1u64..8, 40u64..200)),
        seed in any::<u64>(),
        is_dense in any::<bool>(),
    ) {
        let host = Host { above: above.map(|(work, period)| (ns(work), ns(period))), ..HOST };
        let shares = admitted(&host, &asks);
        let mut state = seed;
        let pause = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if is_dense { 0 } else { (state >> 33) % 50 }
        };
        let longest = Cpu::new(&host, &shares, &first).run(20_000, pause);
        for (Share { ask, response }, longest) in shares.iter().zip(longest) {
            let Some(promise) = ask.promise else { continue };
            prop_assert!(*response <= promise.deadline);
            prop_assert!(ns(longest) <= *response, "{ask:?}: {longest} ns, and {response} is the bound");
        }
    }

    /// A client that is added and goes again leaves the responses that the others had.
    #[test]
    fn the_incremental_responses_are_those_of_the_whole(asks in prop::collection::vec(some_ask(), 2..9)) {
        let mut shares = admitted(&HOST, &asks);
        let mut whole = shares.clone();
        shrunk(&HOST, &mut whole);
        prop_assert_eq!(&shares, &whole);
        if shares.len() > 1 {
            let gone = shares.pop().expect("there are two");
            shrunk(&HOST, &mut shares);
            let granted = admit(&HOST, &shares, &gone.ask).expect("it was there");
            prop_assert_eq!(granted.response, gone.response);
        }
    }

    /// The nearest promises of a refusal are admitted, and the next ones are not.
    #[test]
    fn a_refusal_names_the_nearest_promises(asks in prop::collection::vec(some_ask(), 3..14)) {
        let shares = admitted(&HOST, &asks);
        for ask in &asks {
            let Err(refused) = admit(&HOST, &shares, ask) else { continue };
            let Some(promise) = ask.promise else { continue };
            let fits = |units, period| {
                let promise = Some(Promise { units, period, ..promise });
                admit(&HOST, &shares, &Ask { promise, ..*ask }).is_ok()
            };
            let Promise { units: wanted, period: asked, .. } = promise;
            if let Some(units) = refused.nearest_units {
                prop_assert!(fits(units, asked) && units < wanted && !fits(units + 1, asked));
            } else {
                prop_assert!(!fits(1, asked));
            }
            if let Some(period) = refused.nearest_period {
                let before = ns(period.as_nanos() - 1);
                prop_assert!(fits(wanted, period) && period > asked && !fits(wanted, before));
            } else {
                prop_assert!(!fits(wanted, PERIOD_MAX));
            }
        }
    }
}

/// Work above the scheduler that leaves a ten-thousandth of the CPU: 110 ms are the fixed point, and the
/// iteration is given up long before.
#[test]
fn a_response_whose_iteration_does_not_end_is_never_stated_as_nothing() {
    let host = Host { share_ppm: 1_000_000, above: Some((ns(9_999), ns(10_000))), ..HOST };
    let ask = ask(Class::Guaranteed, 1, 667, Some((1, 1_000_000_000, 1_000_000_000)));
    let with = |response| vec![Share { ask, response }];
    let after = |change: fn(&Host, &mut [Share]), response| {
        let mut shares = with(response);
        change(&host, &mut shares);
        shares[0].response
    };
    let bound = Span::from_millis(500);
    assert_eq!(after(shrunk, Span::ZERO), NO_BOUND);
    assert_eq!(after(grown, Span::ZERO), NO_BOUND);
    assert_eq!(after(shrunk, bound), bound, "it holds with less work");
    assert_eq!(after(grown, bound), bound, "it is a fixed point or above one");
    assert_eq!(after(grown, NO_BOUND), NO_BOUND);
    let other = Ask { class: Class::BestEffort, promise: None, ..ask };
    let refused = admit(&host, &with(NO_BOUND), &other).expect_err("no bound is kept");
    assert_eq!((refused.test, refused.client, refused.margin), (CpuTest::Response, Some(0), None));
}

/// TRANSPORT-R97.
#[test]
fn one_circuit_more_is_refused_with_the_numbers() {
    let costs = Costs { message: ns(4_000), tpdu: ns(6_000), octet_ps: 1_500 };
    let (octets, tpdu) = (Octets::new(10_000), Octets::new(1_400));
    assert_eq!((costs.unit(tpdu), Costs::units(octets, tpdu)), (ns(8_100), 8));
    assert_eq!((costs.unit(Octets::new(1)), Costs::units(Octets::ZERO, tpdu)), (ns(6_002), 1));
    let promise = Promise { units: 8, period: Span::from_millis(2), deadline: Span::from_millis(2) };
    let (unit, message) = (costs.unit(tpdu), costs.message);
    let video = Ask { class: Class::Guaranteed, weight: 4, unit, message, promise: Some(promise) };
    let slack = Span::from_micros(50);
    let fill = |host: &Host| {
        let mut shares = Vec::new();
        loop {
            match admit(host, &shares, &video) {
                Ok(granted) => {
                    assert_eq!(granted.spare, promise.deadline.minus(granted.response));
                    shares.push(Share { ask: video, response: granted.response });
                    grown(host, &mut shares);
                }
                Err(refused) => break (shares, refused),
            }
        }
    };
    // A message takes 4 + 8 · 8.1 = 68.8 us of 2 ms, 23 of them 79.1 %; one more is 25.6 ms beyond 80 %.
    let host = Host { slack, share_ppm: 800_000, ..HOST };
    let (shares, refused) = fill(&host);
    assert_eq!((shares.len(), refused.test, refused.client), (23, CpuTest::Utilisation, None));
    let margin = refused.margin.expect("it is known").as_nanos();
    assert!((25_600_000..25_600_100).contains(&margin), "{margin}");
    // 8.8 ms a second are left: 4 + 8.1 us in each 2 ms, or 68.8 us in each 7.82 ms.
    let words = refused.to_string();
    assert!(words.starts_with("not enough CPU (CpuUtilisation): "), "{words}");
    assert!(words.contains("exceeds its share by 25.6"), "{words}");
    assert!(words.contains("; messages of 1 TPDUs fit now, or this one once in 7.81"), "{words}");
    // One TPDU waits for a turn of each: 50 + 12.1 + 23 · (4 · 8.1 + 2 · 4) = 991.3 us.
    let hasty = Promise { units: 1, deadline: Span::from_micros(900), ..promise };
    let refused =
        admit(&host, &shares, &Ask { promise: Some(hasty), ..video }).expect_err("others are ahead");
    assert_eq!((refused.test, refused.client, refused.margin), (CpuTest::Response, None, Some(ns(91_300))));
    let words = refused.to_string();
    assert!(
        words.starts_with("this circuit would be late by 91.3") && words.contains("(CpuResponse)"),
        "{words}"
    );
    // Of 95 % the response leaves room for 26: 50 + 68.8 + 25 · (8 · 8.1 + 2 · 4) = 1,938.8 us of 2 ms.
    let host = Host { slack, ..HOST };
    let (shares, refused) = fill(&host);
    assert_eq!((shares.len(), shares[0].response, refused.test), (26, ns(1_938_800), CpuTest::Response));
    assert_eq!(refused.client, Some(0), "all others would be late, too");
}

#[test]
fn terms_that_contradict_each_other_are_refused() {
    let good = ask(Class::Guaranteed, 2, 10, Some((3, 1_000, 500)));
    assert!(admit(&HOST, &[], &good).is_ok());
    let with = |units, period, deadline| {
        let (period, deadline) = (ns(period), ns(deadline));
        Ask { promise: Some(Promise { units, period, deadline }), ..good }
    };
    // Admission takes the scheduler's largest terms, and no larger ones.
    let second = Some((1, 4_000_000_000, 3_000_000_000));
    let long = Ask { unit: COST_MAX, message: Span::ZERO, ..ask(Class::Guaranteed, WEIGHT_MAX, 1, second) };
    assert!(admit(&HOST, &[], &long).is_ok());
    let bad = [
        Ask { weight: 0, ..good },
        Ask { promise: None, ..good },
        Ask { class: Class::Reliable, ..good },
        Ask { class: Class::BestEffort, weight: 1, ..good },
        Ask { unit: Span::ZERO, message: Span::ZERO, ..good },
        Ask { weight: WEIGHT_MAX + 1, ..good },
        Ask { unit: COST_MAX, message: ns(1), ..long },
        with(0, 1_000, 500),
        with(3, 1_000, 0),
        with(3, 1_000, 1_001),
        with(3, u64::MAX, 500),
        with(u32::MAX, 1_000, 500),
    ];
    for bad in bad {
        let refused = admit(&HOST, &[], &bad).expect_err("no sense");
        assert_eq!(refused.test, CpuTest::Terms, "{bad:?}");
        assert!(refused.to_string().contains("a deadline is within its period"));
    }
}
