//! The certificate's part of a port, as its node states it in a message of bounded room: only what nobody
//! else knows. The maker of the certificate computes the rest ([`super::port_terms`]), and never on a thread
//! that serves frames.
//!
//! Numbers, in this order: how many flows; `FrameTerms`; 1 if it serves levels; `card_ahead`; the window, and
//! the work in it that goes before packets; the place of the channel among the flows; then each kind of flow
//! with X_min, I − B·X_min, B, octets, how many there are of it, the least of their bounds, and by how much
//! each further one is longer; then how many flows have a life, and of each its place, its beginning and its
//! end. So a flow like others takes three or four octets, and one of its own kind some fifteen.

use super::{FrameTerms, Life, Standing};
use crate::link::{Framing, LinkModel};
use crate::rtip::Traffic;
use crate::subnet::{Ask, PortLoad, RTIP_OCTETS};
use rota_units::{BitRate, Octets, Span};

/// The numbers of a port that are no flow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPart {
    /// The cost of a frame.
    pub frame: FrameTerms,
    /// Its load beside channels. Of s_0 one full frame is that of the cost.
    pub load: PortLoad,
    /// The place of this channel among the flows.
    pub own: usize,
}

/// No number of a certificate is larger: sums of them stay in 64 bits.
const MOST: u64 = 1 << 56;

impl PortPart {
    /// The part of a port with this load. `flows` are all of its flows with their bounds on the port, and
    /// come into the order of the part; `own` is the place of the channel before that.
    ///
    /// # Panics
    /// If `own` is no place, or one full frame exceeds s_0.
    pub fn of(link: &LinkModel, load: PortLoad, flows: &mut [Standing], own: usize) -> Self {
        let ours = key(&flows[own]);
        flows.sort_unstable_by_key(key);
        // One that is the same in each number proves the same.
        let own = flows.iter().position(|flow| key(flow) == ours).expect("it is among them");
        assert!(load.ordinary >= link.frame_span_max(), "one full frame can always be ahead");
        Self { frame: FrameTerms::of(link), load, own }
    }

    /// Calls `write` with each number, for flows in the order of the part.
    pub fn write(&self, flows: &[Standing], write: &mut dyn FnMut(u64)) {
        let PortLoad { by_levels, ordinary, window, work } = self.load;
        let full = self.frame.link().map_or(Span::ZERO, |link| link.frame_span_max());
        write(flows.len() as u64);
        self.frame.values().for_each(&mut *write);
        write(by_levels.into());
        [ordinary.minus(full), window, work].map(Span::as_nanos).into_iter().for_each(&mut *write);
        write(self.own as u64);
        for kind in flows.chunk_by(|one, next| key(one).0 == key(next).0) {
            let [x_min, rest, burst, octets] = key(&kind[0]).0;
            [x_min, rest, burst, octets, kind.len() as u64].into_iter().for_each(&mut *write);
            let mut before = Span::ZERO;
            for Standing { delay, .. } in kind {
                write(delay.minus(before).as_nanos());
                before = *delay;
            }
        }
        let lives = || flows.iter().zip(0..).filter(|(flow, _)| flow.life != Life::ALWAYS);
        write(lives().count() as u64);
        for (Standing { life, .. }, place) in lives() {
            [place, life.from.as_nanos(), life.until_ns()].into_iter().for_each(&mut *write);
        }
    }

    /// Reads a part. Calls `flow` with each flow as if it stayed, then `life` with the place of each that
    /// does not; `None` for numbers that are no part.
    pub fn read(
        numbers: &mut dyn Iterator<Item = u64>,
        flow: &mut dyn FnMut(Standing),
        life: &mut dyn FnMut(usize, Life),
    ) -> Option<Self> {
        let mut numbers = numbers.take_while(|number| *number <= MOST);
        let flows = numbers.next()?;
        let frame = FrameTerms::read(&mut numbers)?;
        let by_levels = match numbers.next()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let mut span = || numbers.next().map(Span::from_nanos);
        let (card_ahead, window, work) = (span()?, span()?, span()?);
        let ordinary = frame.link()?.frame_span_max() + card_ahead;
        let load = PortLoad { by_levels, ordinary, window, work };
        let own = numbers.next()?;
        let own = usize::try_from(own).ok().filter(|_| own < flows)?;
        let mut read = 0;
        while read < flows {
            let [x_min, rest, burst, octets, count] =
                [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
            let traffic = Traffic::of_parts(Span::from_nanos(x_min), burst, Span::from_nanos(rest))?;
            if octets == 0 || octets >= frame.mtu || count == 0 || count > flows - read {
                return None;
            }
            let octets = Octets::new(octets);
            let mut delay = 0u64;
            for _ in 0..count {
                delay = delay.checked_add(numbers.next()?).filter(|delay| *delay <= MOST)?;
                let ask = Ask { traffic, octets, octets_least: octets };
                flow(Standing::always((ask, Span::from_nanos(delay))));
            }
            read += count;
        }
        let mut next = 0;
        for _ in 0..numbers.next()? {
            let (place, from, until) = (numbers.next()?, numbers.next()?, numbers.next()?);
            let is_life = (until == 0 && from > 0) || from < until;
            if place < next || place >= flows || !is_life {
                return None;
            }
            next = place + 1;
            let until = (until > 0).then(|| Span::from_nanos(until));
            life(usize::try_from(place).ok()?, Life { from: Span::from_nanos(from), until });
        }
        numbers.next().is_none().then_some(Self { frame, load, own })
    }
}

type Key = ([u64; 4], Span, Life);

/// The kind of a flow, its bound and its life.
fn key(Standing { ask, delay, life }: &Standing) -> Key {
    let Ask { traffic, octets, .. } = ask;
    let rest = traffic.interval().minus(traffic.x_min() * traffic.burst());
    ([traffic.x_min().as_nanos(), rest.as_nanos(), traffic.burst(), octets.get()], *delay, *life)
}

impl FrameTerms {
    /// The port with these costs of a frame; what no frame costs is nothing. `None` where there is none.
    pub fn link(&self) -> Option<LinkModel> {
        let short = |octets: u64| u16::try_from(octets).ok();
        let framing = Framing {
            mtu: short(self.mtu)?,
            overhead_octets: short(self.overhead)?,
            min_wire_octets: short(self.wire_least)?,
            rota_octets: short(self.headers.checked_sub(RTIP_OCTETS)?)?,
        };
        let (per_frame, prepare) = (Span::from_nanos(self.per_frame), Span::from_nanos(self.prepare));
        let (per_visit, hop) = (Span::ZERO, Span::ZERO);
        let host_slack = Span::from_nanos(self.host_slack);
        let rate = BitRate::new(self.rate)?;
        Some(LinkModel { rate, framing, per_frame, prepare, per_visit, hop, host_slack })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SegmentParams;
    use crate::rtip::Discipline;
    use crate::subnet::link_others;

    fn ask(x_min: u64, interval: u64, octets: u64) -> Ask {
        let micros = Span::from_micros;
        let traffic = Traffic::new(micros(x_min), micros(x_min * 2), micros(interval)).expect("sound");
        let octets = Octets::new(octets);
        Ask { traffic, octets, octets_least: octets }
    }

    fn port(flows: &mut Vec<Standing>, own: Standing) -> (PortPart, Vec<u64>) {
        let params = SegmentParams::new(BitRate::from_mbit(100), 2);
        let (load, ordinary) = link_others(&params, Discipline::default(), Span::ZERO);
        flows.push(Standing::always(ordinary));
        flows.push(own);
        let at = flows.len() - 1;
        let part = PortPart::of(&params.link, load, flows, at);
        let mut numbers = Vec::new();
        part.write(flows, &mut |number| numbers.push(number));
        (part, numbers)
    }

    fn read(numbers: &[u64]) -> Option<(PortPart, Vec<Standing>)> {
        let (mut flows, mut lives) = (Vec::new(), Vec::new());
        let mut life = |place, life| lives.push((place, life));
        let part = PortPart::read(&mut numbers.iter().copied(), &mut |flow| flows.push(flow), &mut life)?;
        lives.into_iter().for_each(|(place, life): (usize, Life)| flows[place].life = life);
        Some((part, flows))
    }

    #[test]
    fn a_port_reads_back_with_its_flows_and_every_cut_or_longer_one_is_none() {
        let own = Standing::always((ask(20_000, 160_000, 1_000), Span::from_micros(777)));
        let others = [(ask(20_000, 160_000, 1_000), 900), (ask(5_000, 40_001, 300), 800)];
        let others = others.map(|(ask, delay)| Standing::always((ask, Span::from_micros(delay))));
        let life = Life { from: Span::from_micros(70), until: Some(Span::from_micros(90)) };
        let later = Life { from: Span::from_micros(50), until: None };
        let booked = [Standing { life, ..others[0] }, Standing { life: later, ..others[1] }];
        let mut flows = [&others[..], &booked].concat();
        let (part, numbers) = port(&mut flows, own);
        assert_eq!(flows[part.own], own);
        assert_eq!(read(&numbers), Some((part, flows)));
        let params = SegmentParams::new(BitRate::from_mbit(100), 2);
        let link = part.frame.link().expect("a port");
        assert_eq!((link.rate, link.framing), (params.link.rate, params.link.framing));
        for short in 0..numbers.len() {
            assert_eq!(read(&numbers[..short]), None, "{short} of {}", numbers.len());
        }
        assert_eq!(read(&[&numbers[..], &[1]].concat()), None);
        for at in 0..numbers.len() {
            let mut changed = numbers.clone();
            changed[at] = u64::MAX;
            assert_eq!(read(&changed), None, "number {at}");
        }
    }

    /// The number of all flows and those of the kinds agree, or it is no part.
    #[test]
    fn a_part_with_other_flows_than_it_states_is_none() {
        let own = Standing::always((ask(20_000, 160_000, 1_000), Span::from_micros(777)));
        let mut flows = vec![900, 950].into_iter().map(|delay| (own.ask, Span::from_micros(delay)));
        let mut flows: Vec<Standing> = flows.by_ref().map(Standing::always).collect();
        let (part, numbers) = port(&mut flows, own);
        assert!((part.own as u64) < numbers[0] - 1, "its place is one of fewer flows, too");
        for stated in [numbers[0] - 1, numbers[0] + 1] {
            let mut changed = numbers.clone();
            changed[0] = stated;
            assert_eq!(read(&changed), None, "{stated} of {}", numbers[0]);
        }
    }

    /// A flow has one life, and lives stand in the order of their flows.
    #[test]
    fn a_part_that_states_the_life_of_a_flow_twice_or_out_of_order_is_none() {
        let own = Standing::always((ask(20_000, 160_000, 1_000), Span::from_micros(777)));
        let life = |from| Life { from: Span::from_micros(from), until: None };
        let mut flows = vec![Standing { life: life(50), ..own }, Standing { life: life(70), ..own }];
        let (_, numbers) = port(&mut flows, own);
        let [.., 2, first, _, 0, second, _, 0] = numbers[..] else { panic!("{numbers:?}") };
        assert!(first < second && read(&numbers).is_some());
        for (one, other) in [(first, first), (second, second), (second, first)] {
            let mut changed = numbers.clone();
            let end = changed.len();
            (changed[end - 6], changed[end - 3]) = (one, other);
            assert_eq!(read(&changed), None, "{one} and {other}");
        }
    }

    /// As many as a link has, all of one kind but with bounds of their own.
    #[test]
    fn two_hundred_channels_of_one_kind_take_few_octets() {
        let kind = ask(20_000, 160_000, 1_000);
        let bound = |n: u64| Span::from_nanos(1_234_567 + n * 123_456);
        let flow = |n| Standing::always((kind, bound(n)));
        let mut flows: Vec<_> = (0..199).map(flow).collect();
        let (_, numbers) = port(&mut flows, flow(199));
        let octets: usize =
            numbers.iter().map(|number| (64 - (number | 1).leading_zeros()).div_ceil(7) as usize).sum();
        assert!(octets < 1_000, "{octets}");
        assert_eq!(read(&numbers).expect("it was written").1, flows);
    }
}
