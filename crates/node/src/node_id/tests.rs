//! The file of a node's id, sound and not.

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// A directory of this test alone, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rota-node-id-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join(NODE_ID)
    }

    fn find(&self) -> KeptNodeId {
        KeptNodeId::find(Some(&self.file())).expect("randomness")
    }

    /// The sentence about a file with that content and mode.
    fn said_of(&self, content: &[u8], mode: u32) -> String {
        std::fs::write(self.file(), content).expect("room");
        std::fs::set_permissions(self.file(), Permissions::from_mode(mode)).expect("its mode");
        let found = self.find();
        assert!(found.get().is_known());
        let said = found.note().expect("a sentence").to_owned();
        assert!(said.ends_with(&format!("goes on with the node id {}, kept nowhere", found.get())), "{said}");
        assert_eq!(std::fs::read(self.file()).expect("it stays as it was"), content);
        said
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_id_is_drawn_once_and_kept() {
    let place = Place::new("kept");
    let first = place.find();
    assert_eq!((first.note(), first.get().0 as u32 != 0), (None, true));
    let data = std::fs::metadata(place.file()).expect("a file");
    assert_eq!(data.mode() & 0o7777, 0o644);
    assert_eq!(std::fs::read_to_string(place.file()).expect("text"), format!("{}\n", first.get()));
    let id = first.get();
    drop(first);
    let again = place.find();
    assert_eq!((again.get(), again.note()), (id, None));
    assert_eq!(std::fs::read_dir(&place.0).expect("a directory").count(), 1, "nothing else is left");
    assert_ne!(Place::new("other").find().get(), id);
}

#[test]
fn a_file_that_another_node_has_made_meanwhile_is_read() {
    let place = Place::new("meanwhile");
    let write = |id: NodeId| kept_file::write(&place.file(), &id.to_string(), 0o644);
    write(NodeId(0x1122_3344_5566_7788)).expect("room");
    write(NodeId(5)).expect("it stays");
    assert_eq!(place.find().get(), NodeId(0x1122_3344_5566_7788));
}

/// Two nodes of one host would be one for their segments.
#[test]
fn a_second_node_with_the_same_file_has_an_id_of_its_own() {
    let place = Place::new("twice");
    let (first, second) = (place.find(), place.find());
    assert_ne!(first.get(), second.get());
    let said = second.note().expect("a sentence");
    assert!(said.contains("in use by another node") && said.contains("--node-id-file"), "{said}");
    drop(first);
    assert_eq!(place.find().note(), None);
}

#[test]
fn a_file_that_cannot_be_one_is_named_and_left_alone() {
    let place = Place::new("nonsense");
    let nonsense: [&[u8]; 7] = [
        b"",
        b"banana\n",
        b"0000000000000000\n",
        b"+123456789abcdef\n",
        b"123456789abcdef\n",
        b"0123456789abcdef0\n",
        &[b'a'; 5_000],
    ];
    for content in nonsense {
        let said = place.said_of(content, 0o644);
        assert!(
            said.contains("16 hexadecimal digits") && said.contains("node-id holds no node id"),
            "{said}"
        );
    }
    let said = place.said_of(b"0123456789abcdef\n", 0o666);
    assert!(said.contains("writable by others (mode 0666)") && said.contains("chmod 0644"), "{said}");
    std::fs::set_permissions(place.file(), Permissions::from_mode(0o600)).expect("its mode");
    let found = place.find();
    assert_eq!((found.get(), found.note()), (NodeId(0x0123_4567_89ab_cdef), None));
}

#[test]
fn a_place_that_cannot_hold_it_is_named() {
    let place = Place::new("place");
    let said = |path: PathBuf| KeptNodeId::find(Some(&path)).expect("randomness").note().map(str::to_owned);
    let missing = said(place.0.join("missing/node-id")).expect("a sentence");
    assert!(missing.contains("cannot be written to") && missing.contains("missing/node-id"), "{missing}");
    let directory = said(place.0.clone()).expect("a sentence");
    assert!(directory.contains("is no file"), "{directory}");
    std::os::unix::fs::symlink("elsewhere", place.file()).expect("a link");
    let link = said(place.file()).expect("a sentence");
    assert!(link.contains("is no file"), "{link}");
}
