use super::*;

fn settings(mbit: u64) -> Settings {
    Settings::ethernet(BitRate::from_mbit(mbit), Octets::new(150_000))
}

#[test]
fn the_defaults_agree_at_every_rate() {
    for mbit in [1, 10, 100, 1_000, 10_000] {
        assert_eq!(settings(mbit).check(), Ok(()), "{mbit} Mbit/s");
    }
}

#[test]
fn the_proven_timers_agree_and_stay_below_a_twelfth_of_the_cycle() {
    for mbit in [10, 100, 1_000, 10_000] {
        let proven = settings(mbit).proven();
        assert_eq!(proven.check(), Ok(()), "{mbit} Mbit/s");
        assert!(mbit == 10 || proven.hop_timeout <= proven.trt.div_down(12), "{mbit} Mbit/s");
        assert!(proven.silence(0) < proven.trt * 2, "{mbit} Mbit/s");
    }
}

#[test]
fn a_long_cycle_brings_its_lease_and_death_timer_along() {
    let long = settings(10).with_cycle(Span::from_millis(1_000)).expect("1 s can be kept");
    assert!(long.lease >= Span::from_millis(1_000) && long.death_timeout == Span::from_millis(2_000));
    assert!(long.silence(0) > long.trt + long.lease);
    let short = settings(10).with_cycle(Span::from_millis(5)).expect("5 ms can be kept");
    assert_eq!((short.lease, short.death_timeout), (settings(10).lease, settings(10).death_timeout));
    let beyond = Span::from_millis(1_001);
    let error = settings(10).with_cycle(beyond).unwrap_err();
    assert!(matches!(error, SettingsError::Cycle { trt, .. } if trt == beyond), "{error}");
}

/// A cycle of 1 ms was taken at 10 Mbit/s, where the way to a station and one full frame take 2.1 ms.
#[test]
fn a_cycle_has_room_for_its_overhead_and_one_full_frame() {
    for mbit in [1, 10, 100, 1_000, 10_000] {
        let mut settings = settings(mbit);
        for stations in [1, 2, 14, 200] {
            settings.stations_max = stations;
            let least = settings.cycle_min();
            let at = |trt| settings.clone().with_cycle(trt).map(|_| ());
            assert_eq!(at(least), Ok(()), "{mbit} Mbit/s, {stations}");
            let error = at(least.minus(Span::from_micros(1))).unwrap_err().to_string();
            assert!(error.contains(&format!("; {least} to 1 s can, at ")), "{error}");
        }
    }
    let error = settings(10).with_cycle(Span::from_millis(1)).unwrap_err().to_string();
    let right = "a cycle of 1 ms cannot be kept; 3.414 ms to 1 s can, at 10 Mbit/s for at most 14 stations";
    assert_eq!(error, right);
    let slow = Settings::ethernet(BitRate::new(10_000).expect("more than zero"), Octets::new(150_000));
    let error = slow.check().unwrap_err().to_string();
    assert!(error.starts_with("no cycle can be kept at 10 kbit/s for at most 14 stations: "), "{error}");
}

/// A link was asked for the hops of a ring and for one frame of each station.
#[test]
fn a_link_has_a_shortest_cycle_of_its_own() {
    for (mbit, stations) in [(10, 2), (10, 200), (100, 14), (1_000, 14)] {
        let link = settings(mbit).with(|of| {
            of.medium = MediumKind::Link;
            of.stations_max = stations;
        });
        let at = |trt| link.clone().with_cycle(trt).map(|_| ());
        let SettingsError::LinkCycle { least, .. } = at(Span::from_micros(10)).unwrap_err() else {
            panic!("the cycle is too short");
        };
        assert!(at(least) == Ok(()) && least < settings(mbit).cycle_min().max(Span::from_millis(4)));
        assert!(at(least.minus(Span::from_micros(1))).is_err());
        assert!(at(Span::from_millis(1_001)).is_err());
    }
    let link = settings(10).with(|of| of.medium = MediumKind::Link);
    assert_eq!(
        link.clone()
            .with(|of| {
                of.lease = Span::ZERO;
                of.hop_timeout = Span::ZERO;
            })
            .check(),
        Ok(())
    );
    let error = link.with_cycle(Span::from_millis(1)).unwrap_err().to_string();
    assert!(error.starts_with("a cycle of 1 ms has no room for a channel on a link; "), "{error}");
    assert!(error.ends_with(" to 1 s has, at 10 Mbit/s"), "{error}");
    let slow = Settings::ethernet(BitRate::new(10_000).expect("more than zero"), Octets::new(150_000));
    let error = slow.with(|of| of.medium = MediumKind::Link).check().unwrap_err().to_string();
    assert_eq!(error, "no cycle up to 1 s has room for a channel on a link at 10 kbit/s");
}

/// With a lease of less than 3D claims were repeated before an answer could come.
#[test]
fn claims_wait_for_their_answers_whatever_agrees() {
    let us = Span::from_micros;
    let (mut agreed, mut refused) = (0, 0);
    for mbit in [1, 10, 100, 1_000] {
        for delay in [90, 900, 2_400, 5_000, 15_000, 40_000] {
            for lease in [100, 1_000, 7_000, 14_999, 45_000, 119_999, 120_000, 250_000] {
                for claim in [100, 1_000, 20_000, 80_000] {
                    let (delay_max, lease, claim_interval) = (us(delay), us(lease), us(claim));
                    let hop_timeout = delay_max * 2 + RecoveryModel::GUARD;
                    let base = settings(mbit);
                    let set = base.with(|of| {
                        of.delay_max = delay_max;
                        of.lease = lease;
                        of.claim_interval = claim_interval;
                        of.hop_timeout = hop_timeout;
                    });
                    let hasty = lease < delay_max * 3 || claim_interval < delay_max * 2;
                    match set.check() {
                        Ok(()) => {
                            assert!(!hasty && set.claim_every() >= delay_max * 2, "{set:?}");
                            agreed += 1;
                        }
                        Err(_) => refused += usize::from(hasty),
                    }
                }
            }
        }
    }
    assert!(agreed > 50 && refused > 50, "{agreed} {refused}");
    let short = settings(10).with(|of| of.lease = settings(10).delay_max * 2);
    let error = short.check().unwrap_err().to_string();
    assert!(error.ends_with(" would do, one ordinary visit or three delays of a frame"), "{error}");
    // The delay that the error names suffices: it has more digits than are printed.
    let base = settings(10).with(|of| of.delay_max = Span::from_nanos(1_234_567));
    let SettingsError::Lease { least, .. } =
        base.clone().with(|of| of.lease = Span::ZERO).check().unwrap_err()
    else {
        panic!("a lease of nothing is too short");
    };
    assert_eq!(least.as_nanos() % 1_000, 0, "{least}");
    let claim_interval = settings(10).delay_max;
    let error = settings(10).with(|of| of.claim_interval = claim_interval).check().unwrap_err().to_string();
    assert!(error.starts_with("claims every "), "{error}");
    // With a longer delay claims wait for it.
    let patient = settings(10).with_delay(us(30_000));
    assert_eq!(patient.claim_interval, us(60_000));
}

#[test]
fn measured_costs_are_part_of_the_digest_and_never_shorten_a_timer() {
    let plain = settings(100);
    let us = Span::from_micros;
    let quick = LinkModel { hop: us(100), prepare: us(3), per_frame: Span::ZERO, ..plain.link };
    let fast = plain.clone().with_link(quick);
    assert_eq!((fast.delay_max, fast.hop_timeout), (plain.delay_max, plain.hop_timeout));
    let slow = plain.clone().with_link(LinkModel { hop: us(4_000), ..plain.link });
    assert!(slow.delay_max > us(4_700) && slow.check() == Ok(()), "{slow:?}");
    let digests = [
        plain.digest(),
        fast.digest(),
        plain.clone().with_link(LinkModel { prepare: us(1), ..plain.link }).digest(),
        plain.clone().with_nrt_latency(plain.nrt_latency_max).digest(),
    ];
    for (at, digest) in digests.iter().enumerate() {
        assert!(!digests[..at].contains(digest), "{at}");
    }
}

#[test]
fn a_contradiction_is_named_in_one_sentence() {
    let long = settings(10).with_cycle(Span::from_millis(400)).expect("can be kept");
    let hasty = long.clone().with_death_timeout(Span::from_millis(14)).unwrap_err();
    assert_eq!(
        hasty.to_string(),
        "a death timeout of 14 ms is too short; 15 ms would do, three hop timeouts"
    );
    let lease = Span::from_micros(900);
    let error = long.with(|of| of.lease = lease).check().unwrap_err().to_string();
    assert!(error.starts_with("a lease of 900 us is too short; "), "{error}");
    let hasty = settings(10).with(|of| of.delay_max = Span::from_micros(1)).check().unwrap_err();
    assert!(hasty.to_string().starts_with("a delay of 1 us is shorter than "), "{hasty}");
}

/// At an MTU of 1400 every unit came incomplete, at 9000 frames over 1,480 octets vanished.
#[test]
fn all_that_a_frame_costs_follows_the_mtu() {
    let of = |mbit, mtu| Settings::ethernet_of(BitRate::from_mbit(mbit), Octets::new(150_000), mtu);
    for mbit in [10, 100, 1_000, 10_000] {
        for mtu in [576, 1_400, 9_000] {
            let settings = of(mbit, mtu);
            assert_eq!(settings.check(), Ok(()), "{mbit} Mbit/s, {mtu}");
            let frame = settings.link.frame_span_max();
            assert_eq!(frame, settings.link.rate.span_of_up(Octets::new(u64::from(mtu) + 38)));
            assert!(settings.delay_max > frame && settings.burst >= frame * 2, "{mbit} Mbit/s, {mtu}");
            assert_ne!(settings.digest(), of(mbit, 1_500).digest());
            let params = settings.params(5);
            assert_eq!(params.link.framing.mtu, mtu);
            assert_eq!(params.slots_max, of(mbit, mtu).params(14).slots_max);
        }
    }
    assert_eq!(of(10, 1_500).digest(), settings(10).digest());
    for mtu in [68, 575, 9_001, 65_521] {
        let error = of(100, mtu).check().unwrap_err().to_string();
        let right = " is not served; set one of 576 to 9000 on every station of the segment";
        assert_eq!(error, format!("an MTU of {mtu}{right}"));
    }
    let error = of(10, 9_000).with_cycle(Span::from_millis(8)).unwrap_err().to_string();
    assert!(error.ends_with("an MTU of 9000; a lower MTU on all stations allows shorter ones"), "{error}");
}

#[test]
fn both_rooms_compute_the_same_timers() {
    for mbit in [10, 100, 1_000] {
        let here = settings(mbit);
        let params = SegmentParams::new(here.link.rate, 5);
        let (lab, there) = (Timers::new(RecoveryModel::lab(&params, here.port_queue)), here.timers(5));
        let all = |timers: Timers| {
            let drains = [timers.drain(2, true), timers.claim(), timers.switch_timeout()];
            (timers.ack(), timers.silence(3), timers.after_silent_crash(1, true), drains)
        };
        assert_eq!(all(lab), all(there), "{mbit} Mbit/s");
        let proven = here.proven();
        let model = RecoveryModel::proven(&params, proven.lease, proven.port_queue);
        assert_eq!(all(Timers::new(model)), all(proven.timers(5)), "{mbit} Mbit/s");
    }
}
