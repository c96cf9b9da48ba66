//! The promise to a channel, and the share of the medium that keeps it.

use crate::group::Group;
use crate::statistical::Statistical;
use crate::withdrawn::Withdrawn;
use alloc::format;
use alloc::string::String;
use rota_units::Span;

/// The promise to a channel. It holds for every medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Contract {
    /// Largest unit.
    pub unit_octets_max: u32,
    /// One unit in each period.
    pub period_ns: u64,
    /// From handing over a unit to its arrival, at most.
    pub bound_ns: u64,
    /// The reservation beyond one unit in each period, in millionths. A period that is no multiple and no
    /// whole part of the cycle is served by slots that come more often than its units.
    pub extra_ppm: u32,
    /// Units for which the sender needs buffers so that none waits for one; the node made at least as many.
    pub buffers: u16,
}

/// RETHER's own numbers of a channel: for people and tools. A program needs none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RetherShare {
    /// Where the channel's slot begins inside the cycle.
    pub slot_offset_ns: u64,
    /// Time on the medium reserved in each cycle (the paper's token holding time).
    pub tht_ns: u64,
    /// The segment's cycle: how often the channel's slot comes.
    pub cycle_ns: u64,
    /// Units that are reserved in each `reserved_cycles` cycles.
    pub reserved_units: u16,
    /// Cycles in which `reserved_units` units are reserved.
    pub reserved_cycles: u16,
}

/// The CPU of this host that is promised to a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CpuShare {
    /// The part of one CPU that its work takes, in millionths.
    pub load_ppm: u32,
    /// Within so long the work of a unit is done here. At the sender the bound contains it.
    pub within_ns: u64,
}

impl CpuShare {
    /// Millionths in words, exactly.
    pub fn percent(ppm: u64) -> String {
        format!("{}.{:04} %", ppm / 10_000, ppm % 10_000)
    }
}

/// The answer of admission: the promise, and beside it the share of the medium that keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Granted {
    /// The promise.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub contract: Contract,
    /// The share of a RETHER segment; none where another medium keeps the promise.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub rether: Option<RetherShare>,
    /// The part of its way for which the contract guarantees nothing; none where it guarantees all.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub withdrawn: Option<Withdrawn>,
    /// The promise of the statistical class; none in the guaranteed one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub statistical: Option<Statistical>,
    /// The group with which the channel shares what links reserve: the promise holds while no more members
    /// send than that allows.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub group: Option<Group>,
    /// At the sender of a channel across segments: nanoseconds from handing a unit over within which all of
    /// it has left this node. None on one segment.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub leaves_within_ns: Option<u64>,
    /// The CPU of this host; none where it is not admitted.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub cpu: Option<CpuShare>,
}

impl Granted {
    /// The words behind the bound: for how many units it holds, on what condition, and the part of the way
    /// for which it is not guaranteed.
    pub fn but(&self) -> String {
        let class = self.statistical.map_or_else(String::new, |of| of.but());
        let withdrawn = self.withdrawn.map_or_else(String::new, |withdrawn| format!("; {withdrawn}"));
        let group = self.group.map_or_else(String::new, |group| format!(" while {}", group.words()));
        class + &group + &withdrawn
    }

    /// One unit in each of these.
    pub const fn period(&self) -> Span {
        Span::from_nanos(self.contract.period_ns)
    }

    /// From handing over a unit to its arrival, at most.
    pub const fn bound(&self) -> Span {
        Span::from_nanos(self.contract.bound_ns)
    }

    /// The cycle of a RETHER segment; zero on another medium.
    pub fn cycle(&self) -> Span {
        Span::from_nanos(self.rether.map_or(0, |share| share.cycle_ns))
    }

    /// Time reserved in each cycle of a RETHER segment; zero on another medium.
    pub fn tht(&self) -> Span {
        Span::from_nanos(self.rether.map_or(0, |share| share.tht_ns))
    }

    /// The reservation in words, if it is more than one unit in each period.
    pub fn reservation(&self) -> Option<String> {
        let Self { contract: Contract { extra_ppm, .. }, rether, .. } = self;
        let rether = rether.as_ref()?;
        let tenths = (u64::from(*extra_ppm) + 500) / 1_000;
        let units = if rether.reserved_units == 1 { "unit" } else { "units" };
        let cycles = match rether.reserved_cycles {
            1 => String::from("cycle"),
            many => format!("{many} cycles"),
        };
        let cycle = Span::from_nanos(rether.cycle_ns);
        (*extra_ppm > 0).then(|| {
            format!(
                "{} {units} reserved in each {cycles} of {cycle}, {}.{} % more than one each period",
                rether.reserved_units,
                tenths / 10,
                tenths % 10
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_a_group_has_a_condition_behind_its_bound() {
        let but = |at_once| {
            let group = Some(Group { name: "talk".parse().unwrap(), at_once });
            Granted { group, ..Granted::default() }.but()
        };
        assert_eq!(but(1), " while 1 member of group talk sends at a time");
        assert_eq!(but(3), " while 3 members of group talk send at a time");
    }

    #[test]
    fn a_reservation_has_words_only_where_it_exceeds_the_traffic() {
        let contract = Contract { extra_ppm: 200_000, ..Contract::default() };
        let rether = RetherShare { reserved_units: 1, reserved_cycles: 1, ..RetherShare::default() };
        let told = |rether| {
            Granted { contract, rether: Some(rether), ..Granted::default() }.reservation().unwrap_or_default()
        };
        assert_eq!(told(rether), "1 unit reserved in each cycle of 0 ns, 20.0 % more than one each period");
        let rether = RetherShare { reserved_units: 2, reserved_cycles: 3, ..rether };
        assert!(told(rether).starts_with("2 units reserved in each 3 cycles of "));
        assert_eq!(Granted { rether: Some(rether), ..Granted::default() }.reservation(), None);
        assert_eq!(
            Granted { contract, ..Granted::default() }.reservation(),
            None,
            "a link has no slots to tell of"
        );
    }
}
