//! Channels to several receivers (`TENET-6-4`): a tree of hops, each link once, with a test for each branch.
//! A branch that fails is pruned with its reason and the others stand. Receivers join and leave.
//!
//! Each station of the tree but the source receives over one segment, and one station of the tree sends into
//! each segment. So the hops of a tree are tested at ports that have nothing to do with each other, and the
//! way to each receiver is a way as that of a channel with one receiver, with the same tests and certificate.
//! A receiver that joins finds the hops that there are with their bounds, which do not change, and has new
//! ones reserved behind them. One that leaves takes the hops with it that no other one needs.
//!
//! *Relaxing.* A hop of several ways may have as much more time as the way with the least left can give. Hops
//! are relaxed one after another; each way's part is what it has left then, divided by those of its hops that
//! are not relaxed yet.

use super::engine::{Accepted, CLOCKS, Leg, Plan, Refused, asked_of, of_path, refused};
use super::file::Wanted;
use super::ledger::Seat;
use super::offers::Asks;
use super::ports::Want;
use super::route::{Step, routes};
use rota_admission::certificate::Branch as Way;
use rota_admission::path::{self, Hop, counts_for_jitter};
use rota_admission::rtip::{Chance, Packets};
use rota_units::{Octets, Span};
use serde_json::Value;
use std::collections::BTreeMap;

/// A hop of a tree.
#[derive(Clone, Debug)]
struct Edge {
    leg: Leg,
    hop: Hop,
    /// It was there before the newest request.
    stands: bool,
}

/// A channel to several receivers.
#[derive(Clone, Debug)]
pub struct Tree {
    wanted: Wanted,
    seat: Seat,
    packets: Packets,
    packet_max: Octets,
    /// By the segment.
    edges: BTreeMap<usize, Edge>,
    /// The way to each receiver.
    ways: BTreeMap<usize, Vec<Step>>,
}

/// The answer for one receiver.
pub type Branch = (usize, Result<Accepted, Box<Refused>>);

impl Tree {
    /// True if a way goes along the tree and leaves it once at most.
    fn goes(&self, way: &[Step]) -> bool {
        let reaches = |station: usize, other: usize| {
            let mut steps = self.ways.values().flatten();
            steps.any(|step| step.next == station && step.segment != other)
        };
        way.iter().all(|step| {
            let sends =
                self.edges.get(&step.segment).is_none_or(|edge| edge.leg.step.station == step.station);
            sends && step.next != self.wanted.from && !reaches(step.next, step.segment)
        })
    }

    fn hops(&self, way: &[Step]) -> Vec<Hop> {
        way.iter().map(|step| self.edges[&step.segment].hop).collect()
    }

    fn legs(&self, way: &[Step]) -> Vec<Leg> {
        let leg = |step: &Step| Leg { step: *step, ..self.edges[&step.segment].leg.clone() };
        way.iter().map(leg).collect()
    }

    /// The stations that receive from the hop on a segment.
    fn next(&self, segment: usize) -> Vec<usize> {
        let steps = self.ways.values().flatten().filter(|step| step.segment == segment);
        let mut next: Vec<usize> = steps.map(|step| step.next).collect();
        next.sort_unstable();
        next.dedup();
        next
    }

    /// Forgets the hops that no way needs, except those that stand.
    fn prune(&mut self) {
        let Self { edges, ways, .. } = self;
        let is_used = |segment: usize| ways.values().flatten().any(|step| step.segment == segment);
        edges.retain(|segment, edge| edge.stands || is_used(*segment));
    }
}

impl Plan<'_> {
    /// Decides a channel to several receivers. The tree of those that are accepted stands from now on. A
    /// refusal has the nearest request with which its branch and those that were accepted fit; a receiver
    /// that joins later has none, for the terms of its channel stand.
    pub fn decide_tree(&mut self, wanted: &Wanted) -> Vec<Branch> {
        let before = self.clone();
        let mut branches = self.plant(wanted, true);
        let accepted: Vec<usize> =
            branches.iter().filter(|(_, answer)| answer.is_ok()).map(|(to, _)| *to).collect();
        for (receiver, answer) in &mut branches {
            let Err(refused) = answer else { continue };
            let needed = |to: &usize| accepted.contains(to) || to == receiver;
            let fits = |wanted: &Wanted, is_proven: bool| {
                let mut answers = before.clone().plant(wanted, is_proven);
                answers.retain(|(to, _)| needed(to));
                answers.into_iter().try_for_each(|(_, answer)| answer.map(|_| ()))
            };
            let (tests, proof) = (|of: &Wanted| fits(of, false), |of: &Wanted| fits(of, true));
            refused.offer = before.nearest(wanted, refused, &Asks { tests: &tests, proof: &proof });
        }
        branches
    }

    /// A new tree. Each branch has a certificate if it is to be proven.
    fn plant(&mut self, wanted: &Wanted, is_proven: bool) -> Vec<Branch> {
        self.asked += 1;
        let (packet_max, packets) = match self.packets(wanted, std::iter::empty()) {
            Ok(packets) => packets,
            Err(refused) => {
                return wanted.to.iter().map(|to| (*to, Err(refused.clone()))).collect();
            }
        };
        let seat = self.seat(wanted);
        let (edges, ways) = (BTreeMap::new(), BTreeMap::new());
        let tree = Tree { wanted: wanted.clone(), seat, packets, packet_max, edges, ways };
        self.extend(tree, &wanted.to, is_proven)
    }

    /// A receiver joins a tree.
    pub fn join(&mut self, name: &str, receiver: usize) -> Vec<Branch> {
        let why = match self.trees.get(name) {
            None => "the channel was refused, so that there is nothing to join",
            Some(tree) if tree.ways.contains_key(&receiver) => "the station receives this channel already",
            Some(tree) => return self.extend(tree.clone(), &[receiver], true),
        };
        vec![(receiver, Err(Box::new(Refused { why: why.to_owned(), ..refused(None, "Join", Span::ZERO) })))]
    }

    /// A receiver leaves a tree, with the hops that only it needed. False if it received nothing.
    pub fn leave(&mut self, name: &str, receiver: usize) -> bool {
        let Some(mut tree) = self.trees.remove(name) else { return false };
        let has_left = tree.ways.remove(&receiver).is_some();
        for segment in tree.edges.keys().copied().collect::<Vec<_>>() {
            let next = tree.next(segment);
            if next.is_empty() {
                tree.edges.remove(&segment);
            }
            let visit = self.visit(segment);
            self.ledger.set_receivers(segment, tree.seat.channel, next, visit);
        }
        // Without receivers the tree has no hops; its channel may be joined again.
        self.trees.insert(name.to_owned(), tree);
        has_left
    }

    /// The time of a token's visit beside its packets, at most.
    fn visit(&self, segment: usize) -> Span {
        let link = &self.params[segment].link;
        link.per_visit + link.hop + link.frame_span_max()
    }

    /// Receivers that a tree has and those that it can have of these.
    fn extend(&mut self, mut tree: Tree, receivers: &[usize], is_proven: bool) -> Vec<Branch> {
        let mut answers: Vec<Branch> = Vec::new();
        let mut new = Vec::new();
        for receiver in receivers {
            match self.graft(&mut tree, *receiver) {
                Ok(()) => new.push(*receiver),
                Err(refused) => answers.push((*receiver, Err(refused))),
            }
        }
        self.relax(&mut tree);
        for receiver in new {
            let answer = self.branch(&tree, receiver, is_proven);
            if answer.is_err() {
                tree.ways.remove(&receiver);
            }
            answers.push((receiver, answer));
        }
        tree.prune();
        let ask = asked_of(&tree.packets);
        for (segment, edge) in &tree.edges {
            let next = tree.next(*segment);
            if edge.stands {
                self.ledger.set_receivers(*segment, tree.seat.channel, next, self.visit(*segment));
            } else {
                self.reserve(&tree.seat, &ask, &edge.leg, next);
            }
        }
        tree.edges.values_mut().for_each(|edge| edge.stands = true);
        if !tree.ways.is_empty() {
            self.trees.insert(tree.wanted.name.clone(), tree);
        }
        let order = |to: &usize| receivers.iter().position(|receiver| receiver == to);
        answers.sort_by_key(|(to, _)| order(to));
        answers
    }

    /// Gives a tree a way to a receiver, with the best bounds of its new hops; or leaves it as it was.
    fn graft(&self, tree: &mut Tree, receiver: usize) -> Result<(), Box<Refused>> {
        let ends = [tree.wanted.from, receiver];
        let all = routes(self.topology, ends);
        let mut of_shortest = None;
        for way in all.iter().filter(|way| tree.goes(way)) {
            match self.grafted(tree, way) {
                Ok(edges) => {
                    tree.edges.extend(edges);
                    tree.ways.insert(receiver, way.clone());
                    return Ok(());
                }
                Err(refused) => of_shortest = of_shortest.or(Some(refused)),
            }
        }
        let none = || match all.is_empty() {
            true => self.no_way(ends),
            false => {
                let why = "no way leads there along the tree without a loop".to_owned();
                Refused { why, ..refused(None, "Route", Span::ZERO) }
            }
        };
        Err(of_shortest.unwrap_or_else(|| Box::new(none())))
    }

    /// The new hops of a way.
    fn grafted(&self, tree: &Tree, way: &[Step]) -> Result<BTreeMap<usize, Edge>, Box<Refused>> {
        let (ask, mut hops, mut edges) = (asked_of(&tree.packets), Vec::new(), BTreeMap::new());
        for (n, step) in way.iter().enumerate() {
            if let Some(edge) = tree.edges.get(&step.segment) {
                hops.push(edge.hop);
                continue;
            }
            let asked = self.ask(step, &tree.seat, &ask, Want::Best);
            let (offer, leg) = asked.map_err(|why| self.denied(step, why))?;
            let hop = offer.hop(self.regulator(way, n, Chance::NEVER));
            hops.push(hop);
            edges.insert(step.segment, Edge { leg, hop, stands: false });
        }
        path::check(&hops, tree.packets.spread, &tree.wanted.goal, CLOCKS).map_err(of_path)?;
        Ok(edges)
    }

    /// Gives the new hops of a tree what its ways have left.
    fn relax(&self, tree: &mut Tree) {
        let ask = asked_of(&tree.packets);
        let mut left: Vec<usize> =
            tree.edges.iter().filter(|(_, edge)| !edge.stands).map(|(segment, _)| *segment).collect();
        while let Some(segment) = left.last().copied() {
            let part = |way: &Vec<Step>| {
                let at = way.iter().position(|step| step.segment == segment)?;
                let hops = tree.hops(way);
                let relaxation = path::check(&hops, tree.packets.spread, &tree.wanted.goal, CLOCKS).ok()?;
                let open = way.iter().filter(|step| left.contains(&step.segment)).count();
                Some(relaxation.for_first(open as u64).share(counts_for_jitter(&hops, at)))
            };
            let more = tree.ways.values().filter_map(part).min().unwrap_or(Span::ZERO);
            let edge = &tree.edges[&segment];
            let most = edge.hop.delay + more;
            if let Ok((_, leg)) = self.ask(&edge.leg.step, &tree.seat, &ask, Want::Keeping(most)) {
                let edge = tree.edges.get_mut(&segment).expect("it was one of them");
                edge.hop.delay = leg.delay;
                edge.leg = leg;
            }
            left.pop();
        }
    }

    /// The certificate of all branches of a channel to several receivers, as it stands; none of one that is
    /// not there, or without receivers.
    pub fn certificate_of(&self, name: &str) -> Result<Option<Value>, Box<Refused>> {
        let Some(tree) = self.trees.get(name).filter(|tree| !tree.ways.is_empty()) else { return Ok(None) };
        // Hops of a way in its order, and each of them once.
        let mut segments: Vec<usize> = Vec::new();
        let mut ways = Vec::new();
        for way in tree.ways.values() {
            let place = |step: &Step| {
                segments.iter().position(|known| *known == step.segment).unwrap_or_else(|| {
                    segments.push(step.segment);
                    segments.len() - 1
                })
            };
            let places: Vec<usize> = way.iter().map(place).collect();
            ways.push((tree.hops(way), places));
        }
        let legs: Vec<Leg> = segments.iter().map(|segment| tree.edges[segment].leg.clone()).collect();
        let branches: Vec<Way<'_>> = ways.iter().map(|(hops, places)| Way { hops, places }).collect();
        let ask = asked_of(&tree.packets);
        self.proven(&tree.wanted, tree.packet_max, &tree.seat, &ask, (&legs, &branches))
    }

    /// The promise to a receiver of the tree, with its certificate if it is to be proven.
    fn branch(&self, tree: &Tree, receiver: usize, is_proven: bool) -> Result<Accepted, Box<Refused>> {
        let (way, ask, packets) = (&tree.ways[&receiver], asked_of(&tree.packets), tree.packets);
        let (hops, legs) = (tree.hops(way), tree.legs(way));
        let places: Vec<usize> = (0..hops.len()).collect();
        let way = Way { hops: &hops, places: &places };
        let certificate = match is_proven {
            true => self.proven(&tree.wanted, tree.packet_max, &tree.seat, &ask, (&legs, &[way]))?,
            false => None,
        };
        let delay = path::delay(&hops, packets.spread, CLOCKS);
        let jitter = path::jitter(&hops, packets.spread, CLOCKS);
        Ok(Accepted { packets, legs, delay, jitter, late: Chance::NEVER, certificate })
    }
}
