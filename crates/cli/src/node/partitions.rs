//! Partitions of a node's ports.

use rota::PartitionName;
use rota_admission::rtip::{Flow, Point, Scheduler, Traffic};
use rota_admission::subnet::{LINK_FLOWS_OWN, LINK_POINTS, NamedPartitions, PartedPort};
use rota_answer::Failure;
use rota_node::{MediumKind, Settings};
use rota_study::quantity::parse_percent;
use rota_units::Span;

/// The partitions that were given for one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfPort {
    iface: String,
    partitions: NamedPartitions,
}

/// Reads `eth1:studio=40%,news=20%`.
pub fn of_port(text: &str) -> Result<OfPort, String> {
    let wrong = || format!("'{text}' divides no interface; write it like eth1:studio=40%,news=20%");
    let (iface, parts) = text.split_once(':').filter(|(iface, _)| !iface.is_empty()).ok_or_else(wrong)?;
    let mut partitions = NamedPartitions::default();
    for part in parts.split(',') {
        let (name, share) = part.split_once('=').ok_or_else(wrong)?;
        let bad = |why: &dyn core::fmt::Display| format!("'{part}': {why}");
        let name: PartitionName = name.parse().map_err(|why| bad(&why))?;
        let percent = parse_percent(share).map_err(|why| bad(&why))?;
        partitions.add(name, percent).map_err(|why| bad(&why))?;
    }
    Ok(OfPort { iface: iface.to_owned(), partitions })
}

/// An interface that has partitions and is none of these.
pub fn stranger<'a>(given: &'a [OfPort], ifaces: &[String]) -> Option<&'a str> {
    given.iter().map(|of| &*of.iface).find(|iface| !ifaces.iter().any(|of| of == iface))
}

/// Divides an interface as it was given.
pub fn set(given: &[OfPort], iface: &str, settings: &mut Settings) -> Result<(), Failure> {
    let mut of_it = given.iter().filter(|of| of.iface == iface);
    let Some(OfPort { partitions, .. }) = of_it.next() else { return Ok(()) };
    let wrong = |why: &str| Err(Failure::wrong_use(format!("{iface}: {why}")));
    if of_it.next().is_some() {
        return wrong("its partitions were given twice; give them at once: eth1:studio=40%,news=20%");
    }
    let medium = &mut settings.medium;
    if medium.discipline.scheduler == Scheduler::Rcsp {
        return wrong("it serves levels (rcsp), which cannot be divided");
    }
    medium.partitions = *partitions;
    Ok(())
}

/// Tests if the rest has room for what it always has, now that the cycle is known.
pub fn check(iface: &str, settings: &Settings) -> Result<(), Failure> {
    if settings.medium.partitions.is_none() || rest_has_room(settings) {
        return Ok(());
    }
    let rest = settings.medium.partitions.shares().percent(0);
    Err(Failure::wrong_use(format!(
        "{iface}: the rest of {rest} % has no room for ordinary traffic and announcements; give its \
         partitions less"
    )))
}

fn rest_has_room(settings: &Settings) -> bool {
    let medium = &settings.medium;
    let params = settings.params(2);
    if medium.medium == MediumKind::Rether {
        return rota_admission::rest_has_room(&params);
    }
    let none = Traffic::periodic(settings.trt).map(|traffic| {
        let none = Flow { traffic, service: Span::ZERO, delay: Span::ZERO };
        let memory = || (vec![none; LINK_FLOWS_OWN], vec![Point::default(); LINK_POINTS]);
        PartedPort::new(params, medium.discipline, medium.partitions.shares(), memory)
    });
    none.is_ok_and(|port| port.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_partitions_with_names_and_shares() {
        let of = of_port("eth1:studio=40%,news=20%").expect("two");
        let all: Vec<String> =
            of.partitions.iter().map(|(at, name, share)| format!("{at} {name:?} {share}")).collect();
        assert_eq!(all, ["0 None 40", "1 Some(\"studio\") 40", "2 Some(\"news\") 20"]);
        assert_eq!(stranger(&[of], &["eth0".to_owned()]), Some("eth1"));
        for (text, why) in [
            ("studio=40%", "divides no interface"),
            (":studio=40%", "divides no interface"),
            ("eth1:studio", "divides no interface"),
            ("eth1:studio=40", "whole percent"),
            ("eth1:studio=0%", "carries nothing"),
            ("eth1:a=60%,b=40%", "leave nothing for the rest"),
            ("eth1:a=10%,a=10%", "have this name"),
            ("eth1:rest=10%", "'rest' is what no partition names"),
        ] {
            let said = of_port(text).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
