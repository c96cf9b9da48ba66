//! What cargo knows: our crates, what they depend on, and everybody's licence.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A crate, ours or foreign.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its licence expression; empty if it states none.
    pub license: String,
    /// The folder of one of ours, relative to the root (`crates/wire`); `None` for a foreign crate.
    pub folder: Option<String>,
    /// Its features, `default` apart.
    pub features: Vec<String>,
    /// What its features turn on in turn, `default` included.
    pub turned_on: Vec<String>,
    /// What it asks for.
    pub dependencies: Vec<Dependency>,
}

/// One line of a dependency table.
#[derive(Clone, Debug, Default)]
pub struct Dependency {
    /// The crate asked for.
    pub name: String,
    /// The version asked for, as written (`1.8`).
    pub version: String,
    /// `""`, `"dev"` or `"build"`.
    pub kind: String,
    /// Whether it is a crate of this workspace.
    pub is_local: bool,
    /// Its features that are asked for.
    pub features: Vec<String>,
}

/// Asks cargo to describe the workspace for this host.
///
/// # Errors
/// Cargo fails, or answers something that cannot be read.
pub fn read(root: &Path) -> Result<Vec<Package>, String> {
    // Without the filter cargo would fetch crates of other operating systems only to print them.
    let output = Command::new(crate::program::cargo())
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()?])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let root = root.canonicalize().map_err(|error| format!("the root cannot be resolved: {error}"))?;
    parse(&output.stdout, &root)
}

fn host() -> Result<String, String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(|error| format!("rustc -vV cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

fn parse(json: &[u8], root: &Path) -> Result<Vec<Package>, String> {
    let document: Value =
        serde_json::from_slice(json).map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let packages = document["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    Ok(packages.iter().map(|package| parse_package(package, root)).collect())
}

fn parse_package(package: &Value, root: &Path) -> Package {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or(""));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let is_ours = package["source"].is_null();
    let features = package["features"].as_object();
    Package {
        name: text(&package["name"]),
        license: text(&package["license"]),
        folder: folder.filter(|_| is_ours).map(|folder| folder.to_string_lossy().into_owned()),
        features: features.map_or(vec![], |map| map.keys().filter(|k| *k != "default").cloned().collect()),
        turned_on: features.map_or(vec![], |map| map.values().flat_map(texts).collect()),
        dependencies: package["dependencies"]
            .as_array()
            .map_or(vec![], |list| list.iter().map(parse_dependency).collect()),
    }
}

fn parse_dependency(dependency: &Value) -> Dependency {
    Dependency {
        name: text(&dependency["name"]),
        version: text(&dependency["req"]).trim_start_matches('^').to_owned(),
        kind: text(&dependency["kind"]),
        is_local: dependency["path"].is_string(),
        features: texts(&dependency["features"]),
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().map_or(vec![], |list| list.iter().map(text).collect())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

#[cfg(test)]
pub mod planted {
    use super::*;

    /// One of our crates.
    pub fn room(name: &str, folder: &str, dependencies: &[Dependency]) -> Package {
        Package {
            name: name.to_owned(),
            license: "MIT".to_owned(),
            folder: Some(format!("crates/{folder}")),
            dependencies: dependencies.to_vec(),
            ..Package::default()
        }
    }

    /// A foreign crate.
    pub fn foreign(name: &str, license: &str) -> Package {
        Package { name: name.to_owned(), license: license.to_owned(), ..Package::default() }
    }

    /// An edge; `kind` as cargo names it.
    pub fn edge(name: &str, version: &str, kind: &str, is_local: bool) -> Dependency {
        let (name, version, kind) = (name.to_owned(), version.to_owned(), kind.to_owned());
        Dependency { name, version, kind, is_local, features: vec![] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_cargo_json() {
        let json = br#"{"packages":[{"name":"rota-wire","version":"0.1.0","license":"MIT","source":null,
            "manifest_path":"/r/crates/wire/Cargo.toml","features":{"default":[],"x":["y/z"]},
            "dependencies":[{"name":"rota-units","req":"*","kind":"dev","features":["w"],
                             "path":"/r/crates/units"},
                            {"name":"blake3","req":"^1.8","kind":null}]}]}"#;
        let packages = parse(json, Path::new("/r")).unwrap();
        assert_eq!(packages[0].folder.as_deref(), Some("crates/wire"));
        assert_eq!(packages[0].features, ["x"]);
        assert_eq!(packages[0].turned_on, ["y/z"]);
        assert_eq!(packages[0].dependencies[0].features, ["w"]);
        assert!(packages[0].dependencies[0].is_local && packages[0].dependencies[0].kind == "dev");
        assert_eq!(packages[0].dependencies[1].version, "1.8");
        assert!(parse(b"not json", Path::new("/r")).is_err());
    }
}
