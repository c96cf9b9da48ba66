//! The file that pins the neighbours of a node: of each its id, its address and its public key.

use super::identity::PublicKey;
use crate::kept_file::{self, Unsound};
use rota_contract::NodeId;
use serde::Deserialize;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Links of one node.
pub const NEIGHBOURS_MAX: usize = 256;
/// Room for so many with their names and some comments.
const FILE_OCTETS_MAX: u64 = 256 * 1024;
const NAME_OCTETS_MAX: usize = 32;

/// A node that this one has a link to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its id.
    pub node: NodeId,
    /// Where it listens.
    pub address: SocketAddr,
    /// The key that it must prove to have.
    pub key: PublicKey,
    /// Its name, for people.
    pub name: Option<String>,
}

/// Why a file gives no neighbours.
#[derive(Debug, thiserror::Error)]
pub enum NeighboursError {
    /// It cannot be read.
    #[error("the neighbours {path} cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Others may change whom this node trusts.
    #[error(
        "{path} is writable by others (mode {mode:04o}), who could name neighbours of their own; \
         'chmod 0644 {path}' mends it"
    )]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else's.
    #[error("{path} belongs to user {owner}, it should belong to user {wanted} or to root")]
    Owner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be.
        wanted: u32,
    },
    /// A line is wrong.
    #[error("{path}:{line}: {sentence}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field, and what is wrong with it.
        sentence: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    neighbour: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    node: Spanned<String>,
    address: Spanned<String>,
    key: Spanned<String>,
    name: Option<Spanned<String>>,
}

/// Reads the neighbours of the node with that id and key, in the order of their ids.
///
/// # Errors
/// A file that others can change, or that is wrong: file, line and field.
pub fn read(path: &Path, own: (NodeId, PublicKey)) -> Result<Vec<Neighbour>, NeighboursError> {
    let text = text(path)?;
    let wrong = |(line, sentence)| NeighboursError::Wrong { path: path.to_owned(), line, sentence };
    parse(&text, own).map_err(wrong)
}

fn text(path: &Path) -> Result<String, NeighboursError> {
    let unreadable = |reason: String| NeighboursError::Unreadable { path: path.to_owned(), reason };
    let mut options = std::fs::OpenOptions::new();
    // A pipe without a writer must not hold the node up.
    let file = options.read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| unreadable(error.to_string()))?;
    kept_file::check(&file, 0o022).map_err(|unsound| match unsound {
        Unsound::Io(error) => unreadable(error.to_string()),
        Unsound::Kind => unreadable("it is no file".into()),
        Unsound::Owner { owner, wanted } => NeighboursError::Owner { path: path.to_owned(), owner, wanted },
        Unsound::Mode(mode) => NeighboursError::Writable { path: path.to_owned(), mode },
    })?;
    let mut text = String::new();
    match file.take(FILE_OCTETS_MAX + 1).read_to_string(&mut text) {
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(unreadable("it is no text".into())),
        Err(error) => Err(unreadable(error.to_string())),
        Ok(_) if text.len() as u64 > FILE_OCTETS_MAX => {
            Err(unreadable(format!("it is larger than {} KiB", FILE_OCTETS_MAX / 1024)))
        }
        Ok(_) => Ok(text),
    }
}

/// Takes the text of such a file apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str, own: (NodeId, PublicKey)) -> Result<Vec<Neighbour>, (usize, String)> {
    let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let mut all: Vec<(Neighbour, [usize; 3])> = Vec::new();
    for table in file.neighbour {
        let (neighbour, lines) = table.neighbour(text)?;
        check(&neighbour, lines, own, &all)?;
        all.push((neighbour, lines));
    }
    let mut all: Vec<Neighbour> = all.into_iter().map(|(neighbour, _)| neighbour).collect();
    all.sort_by_key(|neighbour| neighbour.node);
    Ok(all)
}

/// Checks a neighbour beside this node and those before it.
fn check(
    this: &Neighbour,
    [node, address, key]: [usize; 3],
    own: (NodeId, PublicKey),
    before: &[(Neighbour, [usize; 3])],
) -> Result<(), (usize, String)> {
    if before.len() == NEIGHBOURS_MAX {
        return Err((node, format!("node: a node has at most {NEIGHBOURS_MAX} neighbours")));
    }
    if this.node == own.0 {
        return Err((node, format!("node: {} is this node itself; remove its table", this.node)));
    }
    if this.key == own.1 {
        return Err((key, "key: this is the key of this node itself; write the neighbour's".into()));
    }
    for (other, lines) in before {
        if other.node == this.node {
            return Err((node, format!("node: {} stands in line {} already", this.node, lines[0])));
        }
        if other.key == this.key {
            return Err((key, format!("key: it is the key of {} in line {} already", other.node, lines[2])));
        }
        if other.address == this.address {
            let sentence = format!("address: {} stands in line {} already", this.address, lines[1]);
            return Err((address, sentence));
        }
    }
    Ok(())
}

impl Table {
    /// The neighbour, and the lines of its id, address and key.
    fn neighbour(self, text: &str) -> Result<(Neighbour, [usize; 3]), (usize, String)> {
        let line = |value: &Spanned<String>| line_of(text, value.span().start);
        let lines = [line(&self.node), line(&self.address), line(&self.key)];
        let node: Option<NodeId> = self.node.get_ref().parse().ok();
        let node = node.filter(|node| node.is_known()).ok_or_else(|| {
            let sentence =
                "node: a node id has 16 hexadecimal digits, not all 0; 'rota key show' there prints it";
            (lines[0], sentence.to_owned())
        })?;
        let address: Option<SocketAddr> = self.address.get_ref().parse().ok();
        let address = address.filter(|address| address.port() != 0 && !address.ip().is_unspecified());
        let address = address.filter(|address| !address.ip().is_multicast()).ok_or_else(|| {
            let sentence = "address: write the number of the neighbour and its port, such as 10.0.1.2:7247 \
                            or [fd00::2]:7247";
            (lines[1], sentence.to_owned())
        })?;
        let key = self.key.get_ref().parse().map_err(|_| {
            let sentence = "key: a public key has 64 hexadecimal digits; 'rota key show' there prints it";
            (lines[2], sentence.to_owned())
        })?;
        let name = self.name.map(|name| {
            let sound = (1..=NAME_OCTETS_MAX).contains(&name.get_ref().len());
            let sound = sound && name.get_ref().chars().all(rota_wire::is_printable);
            let wrong = || (line(&name), format!("name: 1 to {NAME_OCTETS_MAX} octets that print"));
            if sound { Ok(name.get_ref().clone()) } else { Err(wrong()) }
        });
        let name = name.transpose()?;
        Ok((Neighbour { node, address, key, name }, lines))
    }
}

/// The line of an octet, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|octet| **octet == b'\n').count() + 1
}

/// Line and sentence of what is no TOML, or not of our fields.
fn syntax(text: &str, error: &toml::de::Error) -> (usize, String) {
    let line = error.span().map_or(1, |span| line_of(text, span.start));
    let message = error.message().lines().next().unwrap_or("cannot be read");
    if let Some(field) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return (line, format!("{field}: is missing"));
    }
    let written = text.lines().nth(line - 1).unwrap_or_default().trim();
    if written.starts_with("[neighbour]") {
        return (line, "neighbour: there may be several; write [[neighbour]]".into());
    }
    let field = written.split_once('=').map(|(field, _)| field.trim());
    (line, field.map_or_else(|| message.to_owned(), |field| format!("{field}: {message}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn key(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn own() -> (NodeId, PublicKey) {
        (NodeId(1), key('1').parse().expect("a key"))
    }

    fn table(node: u64, address: &str, digit: char) -> String {
        format!("[[neighbour]]\nnode = \"{node:016x}\"\naddress = \"{address}\"\nkey = \"{}\"\n", key(digit))
    }

    fn said(text: &str) -> String {
        let (line, sentence) = parse(text, own()).expect_err("it is wrong");
        format!("{line}: {sentence}")
    }

    #[test]
    fn neighbours_are_read_in_the_order_of_their_ids() {
        let text = table(7, "10.0.0.7:1", '7') + &table(3, "[fd00::3]:2", '3') + "name = \"gateway\"\n";
        let all = parse(&text, own()).expect("two");
        assert_eq!(all.iter().map(|one| one.node.0).collect::<Vec<_>>(), [3, 7]);
        assert_eq!(all[0].name.as_deref(), Some("gateway"));
        assert_eq!((all[0].address.port(), all[1].key.to_string()), (2, key('7')));
        assert_eq!(parse("", own()), Ok(Vec::new()));
    }

    #[test]
    fn a_wrong_file_is_named_with_line_and_field() {
        let good = table(7, "10.0.0.7:1", '7');
        assert_eq!(
            said(&format!("{good}colour = 3\n")).split(',').next(),
            Some("5: colour: unknown field `colour`")
        );
        assert!(said("[[neighbours]]\n").starts_with("1: "), "{}", said("[[neighbours]]\n"));
        assert_eq!(
            said("[neighbour]\nnode = \"1\"\n"),
            "1: neighbour: there may be several; write [[neighbour]]"
        );
        assert_eq!(said("[[neighbour]]\nnode = \"00000000000000aa\"\n"), "1: address: is missing");
        assert_eq!(said("\n[[neighbour]]\nnode = 7\n").split(':').next(), Some("3"));
        let double = format!("{good}{}", table(7, "10.0.0.8:1", '8'));
        assert_eq!(said(&double), "6: node: 0000000000000007 stands in line 2 already");
        let double = format!("{good}{}", table(8, "10.0.0.8:1", '7'));
        assert_eq!(said(&double), "8: key: it is the key of 0000000000000007 in line 4 already");
        let double = format!("{good}{}", table(8, "10.0.0.7:1", '8'));
        assert_eq!(said(&double), "7: address: 10.0.0.7:1 stands in line 3 already");
        assert_eq!(
            said(&table(1, "10.0.0.7:1", '7')),
            "2: node: 0000000000000001 is this node itself; remove its table"
        );
        assert!(said(&table(7, "10.0.0.7:1", '1')).starts_with("4: key: this is the key of this node"));
        for node in ["", "7", "0000000000000000", "00000000000000zz"] {
            let text = good.replace(&format!("{:016x}", 7), node);
            assert!(said(&text).starts_with("2: node: a node id has"), "{node}");
        }
        for address in ["", "gateway:1", "10.0.0.7", "10.0.0.7:0", "0.0.0.0:1", "224.0.0.1:1", "[::]:1"] {
            let text = good.replace("10.0.0.7:1", address);
            assert!(said(&text).starts_with("3: address: write the number"), "{address}");
        }
        for wrong in ["", "7", &"g".repeat(64), &format!("+{}", "7".repeat(63))] {
            let text = good.replace(&key('7'), wrong);
            assert!(said(&text).starts_with("4: key: a public key has"), "{wrong}");
        }
        for name in ["", "a\\u0007b", &"x".repeat(33)] {
            assert!(said(&format!("{good}name = \"{name}\"\n")).starts_with("5: name: 1 to 32"), "{name}");
        }
    }

    #[test]
    fn there_is_a_largest_number() {
        let digits = |k: usize| format!("{k:064x}");
        let one = |k: usize| {
            let address = format!("10.0.{}.{}:1", k / 200, k % 200 + 1);
            table(k as u64 + 16, &address, '9').replace(&key('9'), &digits(k + 16))
        };
        let most: String = (0..NEIGHBOURS_MAX).map(one).collect();
        assert_eq!(parse(&most, own()).map(|all| all.len()), Ok(NEIGHBOURS_MAX));
        assert!(said(&(most + &one(NEIGHBOURS_MAX))).contains("at most 256 neighbours"));
    }

    #[test]
    fn a_file_that_others_can_change_is_refused() {
        let path = std::env::temp_dir().join(format!("rota-neighbours-{}", std::process::id()));
        std::fs::write(&path, table(7, "10.0.0.7:0", '7')).expect("room");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("its mode");
        let said = read(&path, own()).expect_err("the port").to_string();
        assert!(said.starts_with(&format!("{}:3: address: ", path.display())), "{said}");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o664)).expect("its mode");
        assert!(matches!(read(&path, own()), Err(NeighboursError::Writable { mode: 0o664, .. })));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("its mode");
        std::fs::write(&path, vec![b'#'; FILE_OCTETS_MAX as usize + 1]).expect("room");
        assert!(matches!(read(&path, own()), Err(NeighboursError::Unreadable { .. })));
        std::fs::write(&path, [0xff]).expect("room");
        assert!(matches!(read(&path, own()), Err(NeighboursError::Unreadable { .. })));
        std::fs::remove_file(&path).expect("a file");
        for path in [path.as_path(), Path::new("/dev/zero"), Path::new("/")] {
            assert!(matches!(read(path, own()), Err(NeighboursError::Unreadable { .. })));
        }
    }
}
