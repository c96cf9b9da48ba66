//! Which room may name which: the arrows of the house, dev-dependencies included.

use crate::metadata::{Dependency, Package};
use crate::tree::{Report, Tree, room};

/// Each room, its crate, and the rooms it may name. The order is from the ground up.
pub const ROOMS: &[(&str, &str, &[&str])] = &[
    ("units", "rota-units", &[]),
    ("check", "rota-check", &[]),
    ("rundir", "rota-rundir", &[]),
    ("contract", "rota-contract", &["units"]),
    ("wire", "rota-wire", &["contract"]),
    ("admission", "rota-admission", &["contract", "units"]),
    ("medium", "rota-medium", &["wire", "admission", "contract", "units"]),
    ("proto", "rota-proto", &["medium", "wire", "admission", "contract", "units"]),
    ("sim", "rota-sim", &["proto", "wire", "admission", "contract", "units"]),
    ("shm", "rota-shm", &["admission", "rundir", "wire", "contract", "units"]),
    ("driver", "rota-driver", &["proto", "rundir", "wire", "units"]),
    ("client", "rota", &["shm", "proto", "admission", "contract", "units"]),
    ("node", "rota-node", &["driver", "shm", "proto", "rundir", "admission", "wire", "contract", "units"]),
    ("lab", "rota-lab", &["sim", "driver", "rundir", "admission", "wire", "units"]),
    ("answer", "rota-answer", &["client", "driver"]),
    (
        "study",
        "rota-study",
        &["answer", "lab", "client", "node", "sim", "driver", "admission", "check", "wire", "units"],
    ),
    (
        "cli",
        "rota-cli",
        &["study", "answer", "lab", "client", "node", "sim", "driver", "admission", "wire", "units"],
    ),
];

/// Rooms that only the tests of a room may name: what a checker checks is made by the room that it must not
/// share code with.
const TESTS_ONLY: &[(&str, &[&str])] = &[("check", &["admission", "units"])];

/// What stands beside the rooms and names some of them; no room may name it.
const BESIDE: &[(&str, &[&str])] =
    &[("models", &["sim", "proto", "medium", "admission", "wire", "units"]), ("bindings/c", &["client"])];

/// Features that only `models` may ask for: machines that show their insides are not what ships.
const MODELS_ONLY: &[&str] = &["model"];

/// Foreign crates that a pure room may name, in its code and in its tests.
const PURE_CODE: &[&str] = &["aes", "blake3", "polyval", "siphasher", "strum", "thiserror", "zerocopy"];
const PURE_TESTS: &[&str] = &["allocation-counter", "proptest", "serde_json"];
/// Heavy crates, and the only rooms that may name them.
const HEAVY: &[&str] = &["clap", "h264-reader", "hdrhistogram", "indicatif", "plotters", "re_mp4"];
const HEAVY_ROOMS: &[&str] = &["driver", "node", "answer", "study", "cli"];

/// The rooms without clock, I/O, thread and unsafe.
pub const PURE: &[&str] = &["units", "check", "wire", "admission", "medium", "proto", "sim"];

/// Checks every dependency of every room.
pub fn check(tree: &Tree, report: &mut Report) {
    for package in &tree.packages {
        let Some(folder) = &package.folder else { continue };
        let manifest = format!("{folder}/Cargo.toml");
        if folder != "models" {
            features_of_models(package).for_each(|sentence| report.violation(&manifest, 0, sentence));
        }
        if let Some((name, allowed)) = BESIDE.iter().find(|(name, _)| name == folder) {
            let local = package.dependencies.iter().filter(|dependency| dependency.is_local);
            local
                .filter_map(|dependency| local_fault(name, allowed, dependency, &tree.packages))
                .for_each(|sentence| report.violation(&manifest, 0, sentence));
        }
        let Some(name) = room(folder) else { continue };
        let Some((_, crate_name, allowed)) = ROOMS.iter().find(|(room, ..)| *room == name) else {
            let sentence = "is no room of the house; choose one in ARCHITECTURE.md or record the decision";
            report.violation(&manifest, 0, format!("crates/{name} {sentence}"));
            continue;
        };
        if package.name != *crate_name {
            report.violation(&manifest, 0, format!("is named {}; the house says {crate_name}", package.name));
        }
        for dependency in &package.dependencies {
            let fault = if dependency.is_local {
                local_fault(name, allowed, dependency, &tree.packages)
            } else {
                foreign_fault(name, dependency)
            };
            if let Some(sentence) = fault {
                report.violation(&manifest, 0, sentence);
            }
        }
    }
}

/// How a package asks for a feature of machines that do not ship.
fn features_of_models(package: &Package) -> impl Iterator<Item = String> + '_ {
    let asked = package.dependencies.iter().filter(|dependency| dependency.is_local).flat_map(|dependency| {
        dependency.features.iter().map(move |feature| format!("{}/{feature}", dependency.name))
    });
    asked.chain(package.turned_on.iter().cloned()).filter_map(|feature| {
        let name = feature.rsplit('/').next().unwrap_or("");
        MODELS_ONLY.contains(&name).then(|| format!("turns on {feature}, which only models may"))
    })
}

fn local_fault(
    from: &str,
    allowed: &[&str],
    dependency: &Dependency,
    packages: &[Package],
) -> Option<String> {
    let package = packages.iter().find(|p| p.name == dependency.name);
    let Some(folder) = package.and_then(|package| package.folder.as_deref()) else {
        return Some(format!("{from} names {}, which lies outside the project", dependency.name));
    };
    let to = room(folder).unwrap_or(folder);
    let in_tests = || {
        let rooms = TESTS_ONLY.iter().find(|(room, _)| *room == from).map_or(&[][..], |(_, rooms)| *rooms);
        dependency.kind == "dev" && rooms.contains(&to)
    };
    if to == from || allowed.contains(&to) || in_tests() {
        return None;
    }
    let dash = if dependency.kind.is_empty() { "" } else { "-" };
    let kind = &dependency.kind;
    Some(format!(
        "{from} → {to} ({kind}{dash}dependencies) is no arrow of the house: {}",
        advice(from, allowed, to)
    ))
}

/// Where the type that tempted somebody to draw the arrow should live instead.
fn advice(from: &str, allowed: &[&str], to: &str) -> String {
    let seen_by =
        |name: &str| ROOMS.iter().find(|(room, ..)| *room == name).map_or(&[][..], |(.., list)| *list);
    let below = seen_by(to);
    if below.contains(&from) {
        return format!("{to} already names {from}, so move the type from {to} down into {from}");
    }
    let common: Vec<&str> = allowed.iter().copied().filter(|room| below.contains(room)).collect();
    if common.is_empty() {
        return format!(
            "move what {from} needs into {from} itself, or join the two in a room that names both"
        );
    }
    format!("move the type into a room that both name ({}), the highest that fits", common.join(", "))
}

fn foreign_fault(from: &str, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    if PURE.contains(&from) {
        let in_tests = dependency.kind == "dev" && PURE_TESTS.contains(&name);
        return (!PURE_CODE.contains(&name) && !in_tests).then(|| {
            format!(
                "{from} is a pure room and may not name the foreign crate {name}; its code may name {}, \
                 its tests also {} (xtask/src/checks/arrows.rs holds the list)",
                PURE_CODE.join(", "),
                PURE_TESTS.join(", ")
            )
        });
    }
    (HEAVY.contains(&name) && !HEAVY_ROOMS.contains(&from))
        .then(|| format!("{from} may not name the heavy crate {name}; only {} may", HEAVY_ROOMS.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::planted::{edge, room as package};

    fn faults(packages: &[Package]) -> Vec<String> {
        let tree = Tree { packages: packages.to_vec(), ..Tree::default() };
        let mut report = Report::default();
        check(&tree, &mut report);
        report.violations.iter().map(ToString::to_string).collect()
    }

    fn house_with(name: &str, folder: &str, dependencies: &[Dependency]) -> Vec<String> {
        let mut packages: Vec<_> =
            ROOMS.iter().filter(|r| r.0 != folder).map(|r| package(r.1, r.0, &[])).collect();
        packages.push(package(name, folder, dependencies));
        faults(&packages)
    }

    #[test]
    fn the_arrows_of_the_house_pass() {
        let by_room = |name: &&str| ROOMS.iter().find(|r| r.0 == *name).map(|r| edge(r.1, "*", "", true));
        let all: Vec<_> = ROOMS
            .iter()
            .map(|r| package(r.1, r.0, &r.2.iter().filter_map(by_room).collect::<Vec<_>>()))
            .collect();
        assert_eq!(faults(&all), [""; 0]);
    }

    #[test]
    fn only_models_may_look_inside_and_name_what_no_room_names() {
        let proto = Dependency { features: vec!["model".into()], ..edge("rota-proto", "*", "dev", true) };
        let found = house_with("rota-sim", "sim", std::slice::from_ref(&proto));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("rota-proto/model, which only models may"), "{found:?}");
        let beside = |dependencies: &[Dependency]| {
            let folder = Some("models".to_owned());
            let models = Package { folder, ..package("rota-models", "", dependencies) };
            let mut packages: Vec<_> = ROOMS.iter().map(|r| package(r.1, r.0, &[])).collect();
            packages.push(models);
            packages
        };
        assert_eq!(faults(&beside(&[proto, edge("rota-sim", "*", "", true)])), [""; 0]);
        assert!(faults(&beside(&[edge("rota-cli", "*", "", true)]))[0].contains("models → cli"));
        let mut packages = beside(&[]);
        packages[0].turned_on = vec!["rota-proto/model".into()];
        assert!(faults(&packages)[0].contains("turns on rota-proto/model"));
    }

    #[test]
    fn a_forbidden_arrow_is_named_with_a_way_out() {
        let found = house_with("rota-sim", "sim", &[edge("rota-driver", "*", "", true)]);
        assert!(
            found[0].contains("sim → driver (dependencies)") && found[0].contains("proto, wire, units"),
            "{found:?}"
        );
        let found = house_with("rota-wire", "wire", &[edge("rota-proto", "*", "dev", true)]);
        assert!(
            found[0].contains("wire → proto (dev-dependencies)") && found[0].contains("down into wire"),
            "{found:?}"
        );
        let found = house_with("rota-rundir", "rundir", &[edge("rota-wire", "*", "build", true)]);
        assert!(found[0].contains("into rundir itself"), "{found:?}");
        let found = house_with("rota-shm", "shm", &[edge("elsewhere", "*", "", true)]);
        assert!(found[0].contains("outside the project"), "{found:?}");
    }

    #[test]
    fn only_the_tests_of_the_checker_name_what_it_checks() {
        let admission = |kind| house_with("rota-check", "check", &[edge("rota-admission", "*", kind, true)]);
        assert_eq!(admission("dev"), [""; 0]);
        assert!(admission("")[0].contains("check → admission (dependencies)"));
    }

    #[test]
    fn foreign_crates_are_kept_out_of_pure_and_light_rooms() {
        let found = house_with("rota-proto", "proto", &[edge("rand", "0.9", "", false)]);
        assert!(found[0].contains("pure room") && found[0].contains("rand"), "{found:?}");
        let found = house_with("rota-proto", "proto", &[edge("proptest", "1", "", false)]);
        assert_eq!(found.len(), 1, "proptest is for tests only");
        assert_eq!(house_with("rota-proto", "proto", &[edge("proptest", "1", "dev", false)]), [""; 0]);
        let found = house_with("rota", "client", &[edge("clap", "4", "", false)]);
        assert!(found[0].contains("heavy crate clap"), "{found:?}");
    }

    #[test]
    fn an_unknown_room_and_a_wrong_name_are_refused() {
        assert!(faults(&[package("rota-util", "util", &[])])[0].contains("no room of the house"));
        assert!(faults(&[package("rota-wires", "wire", &[])])[0].contains("rota-wire"));
    }
}
