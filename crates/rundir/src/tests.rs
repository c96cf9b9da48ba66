use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of one test's own, gone with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rota-rundir-{}-{count}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn allow(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.0.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A file or directory of a user who is neither root nor us; only root can make one.
fn give_away(path: &Path) {
    nix::unistd::chown(path, Some(65_534.into()), None).unwrap();
}

#[test]
fn a_directory_is_made_once_and_found_again() {
    let scratch = Scratch::new();
    let bases = [scratch.0.join("rota")];
    let made = make_in(&bases, "net-1").unwrap();
    assert_eq!(made, scratch.0.join("rota/net-1"));
    assert_eq!(std::fs::metadata(&made).unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(make_in(&bases, "net-1").unwrap(), made);
}

#[test]
fn a_link_a_file_and_an_open_directory_are_refused() {
    let scratch = Scratch::new();
    symlink("/tmp", scratch.0.join("link")).unwrap();
    std::fs::write(scratch.0.join("file"), "").unwrap();
    std::fs::create_dir(scratch.0.join("open")).unwrap();
    scratch.allow("open", 0o777);
    for (name, words) in [
        ("link", "is no directory"),
        ("file", "is no directory"),
        ("open", "is writable by others (mode 0777)"),
    ] {
        let error = make_in(&[scratch.0.join(name)], "net-1").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn what_somebody_else_made_is_refused_and_not_passed_over() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let bases = ["first", "second"].map(|name| scratch.0.join(name));
    std::fs::create_dir(&bases[0]).unwrap();
    give_away(&bases[0]);
    let error = make_in(&bases, "net-1").unwrap_err();
    assert_eq!(error, RunDirError::Owner { path: bases[0].clone(), owner: 65_534, wanted: 0 });
    let sentence = error.to_string();
    assert!(sentence.contains("belongs to user 65534") && sentence.contains("ROTA_CONTROL"), "{sentence}");
}

/// The unit in docs/security.md gives /run/rota to its user: nothing that root started worked then.
#[test]
fn what_root_has_given_away_is_passed_over() {
    let given = PathBuf::from(format!("/run/rota-given-{}", std::process::id()));
    if !is_root() || std::fs::create_dir(&given).is_err() {
        return;
    }
    give_away(&given);
    let scratch = Scratch::new();
    let made = make_in(&[given.clone(), scratch.0.join("second")], "net-1");
    std::fs::remove_dir(&given).unwrap();
    assert_eq!(made, Ok(scratch.0.join("second/net-1")));
}

#[test]
fn where_there_is_no_room_the_next_place_is_taken() {
    let scratch = Scratch::new();
    let bases = [scratch.0.join("not/there"), scratch.0.join("second")];
    assert_eq!(make_in(&bases, "net-1").unwrap(), scratch.0.join("second/net-1"));
    let nowhere = make_in(&bases[..1], "net-1").unwrap_err();
    assert!(matches!(nowhere, RunDirError::Nowhere(_)), "{nowhere}");
}

#[test]
fn a_lock_is_taken_once_and_leaves_nothing() {
    let scratch = Scratch::new();
    let directory = make_in(std::slice::from_ref(&scratch.0), "net-1").unwrap();
    let path = directory.join("control.lock");
    let first = Lock::at(&path).unwrap();
    assert_eq!(Lock::at(&path).unwrap_err(), RunDirError::Taken(path.clone()));
    drop(first);
    assert!(!directory.exists());
    // A holder that is about to end is waited for.
    let path = scratch.0.join("control.lock");
    let ending = Lock::at(&path).unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(ending);
    });
    drop(Lock::at(&path).unwrap());
    thread.join().unwrap();
    // The file of a killed holder is no obstacle.
    make_in(std::slice::from_ref(&scratch.0), "net-1").unwrap();
    std::fs::write(&path, "").unwrap();
    drop(Lock::at(&path).unwrap());
}

#[test]
fn of_many_that_race_for_a_lock_one_has_it() {
    let scratch = Scratch::new();
    let path = scratch.0.join("control.lock");
    let held = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Ok(_lock) = Lock::at_once(&path) {
                        assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                        held.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

#[test]
fn a_lock_is_not_taken_through_a_link_or_a_foreign_file() {
    let scratch = Scratch::new();
    let path = scratch.0.join("control.lock");
    symlink(scratch.0.join("elsewhere"), &path).unwrap();
    assert!(Lock::at(&path).is_err());
    assert!(!scratch.0.join("elsewhere").exists());
    if is_root() {
        let foreign = scratch.0.join("foreign.lock");
        std::fs::write(&foreign, "").unwrap();
        give_away(&foreign);
        assert!(matches!(Lock::at(&foreign), Err(RunDirError::Owner { owner: 65_534, .. })));
    }
}

#[test]
fn root_oneself_and_the_owner_of_a_directory_that_root_gave_are_believed() {
    let own = nix::unistd::geteuid().as_raw();
    let path = Path::new("/tmp/rota-12345/net-1/control");
    assert!(check_server(path, own).is_ok() && check_server(path, 0).is_ok());
    let stranger = check_server(path, 54_321).unwrap_err();
    let sentence = stranger.to_string();
    assert!(sentence.contains("served by user 54321") && sentence.contains("ROTA_CONTROL"), "{sentence}");
    if !is_root() {
        return;
    }
    // Any user can make a directory below /tmp: its owner proves nothing.
    let scratch = Scratch::new();
    give_away(&scratch.0);
    assert!(check_server(&scratch.0.join("control"), 65_534).is_err());
    // Below /run only root can.
    let given = PathBuf::from(format!("/run/rota-test-{}", std::process::id()));
    if std::fs::create_dir(&given).is_ok() {
        give_away(&given);
        let believed = check_server(&given.join("control"), 65_534);
        std::fs::remove_dir(&given).unwrap();
        assert_eq!(believed, Ok(()));
    }
}

#[test]
fn a_named_directory_is_checked() {
    let scratch = Scratch::new();
    assert_eq!(check_named(&scratch.0), Ok(()));
    assert_eq!(check_named(Path::new("/tmp")), Ok(()), "nobody can replace what is ours there");
    scratch.allow("", 0o777);
    assert!(matches!(check_named(&scratch.0), Err(RunDirError::Writable { mode: 0o777, .. })));
    // Its owner can replace what is in it, sticky or not.
    scratch.allow("", 0o1777);
    assert_eq!(check_named(&scratch.0), Ok(()));
    if is_root() {
        give_away(&scratch.0);
        assert!(matches!(check_named(&scratch.0), Err(RunDirError::Owner { owner: 65_534, .. })));
    }
}

/// A killed node's directory: its control socket, the lock of that, and the lock of its interface.
fn left_behind(base: &Path, name: &str) -> PathBuf {
    let place = base.join(name);
    std::fs::create_dir_all(&place).unwrap();
    drop(std::os::unix::net::UnixListener::bind(place.join("control")).unwrap());
    for lock in ["control.lock", "iface-eth0"] {
        std::fs::write(place.join(lock), "").unwrap();
    }
    place
}

/// A host whose labs had been killed had 737 of these directories.
#[test]
fn directories_of_dead_nodes_of_other_namespaces_are_removed_and_no_others() {
    let scratch = Scratch::new();
    let base = scratch.0.join("rota");
    let [dead, own, held] = ["net-1", "net-2", "net-3"].map(|name| left_behind(&base, name));
    let [precious, unlocked, empty] = ["net-4", "net-5", "net-6"].map(|name| left_behind(&base, name));
    let [link, other] = ["net-7", "net-x"].map(|name| left_behind(&base, name));
    let lock = Lock::at_once(&held.join("control.lock")).unwrap();
    std::fs::write(precious.join("notes"), "precious").unwrap();
    std::fs::remove_file(unlocked.join("control.lock")).unwrap();
    symlink("/tmp", link.join("link")).unwrap();
    for file in std::fs::read_dir(&empty).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let before = std::fs::read_dir(&held).unwrap().count();
    assert_eq!(sweep::sweep_in(std::slice::from_ref(&base), "net-2"), 2);
    assert!(!dead.exists() && !empty.exists());
    for kept in [&own, &held, &precious, &unlocked, &link, &other] {
        assert!(kept.join("iface-eth0").exists(), "{}", kept.display());
    }
    assert_eq!(std::fs::read_dir(&held).unwrap().count(), before, "the lock's holder keeps all");
    if is_root() {
        let theirs = left_behind(&base, "net-8");
        give_away(&theirs);
        let file = left_behind(&base, "net-9");
        give_away(&file.join("iface-eth0"));
        assert_eq!(sweep::sweep_in(&[base], "net-2"), 0);
        assert!(theirs.join("control").exists() && file.join("control").exists());
    }
    drop(lock);
}

/// `rota lab down` left the keys of its stations.
#[test]
fn the_directory_of_a_namespace_that_ends_is_removed_and_no_other() {
    let scratch = Scratch::new();
    let base = scratch.0.join("rota");
    let [own, other] = ["net-1", "net-2"].map(|name| left_behind(&base, name));
    for file in [NODE_ID, NODE_KEY, NEIGHBOURS] {
        std::fs::write(own.join(file), "a secret").unwrap();
    }
    let bases = [scratch.0.join("none"), base];
    let lock = Lock::at_once(&own.join("control.lock")).unwrap();
    assert_eq!(sweep::clear_out_in(&bases, "net-1"), 0, "a node lives there");
    assert!(own.join(NODE_KEY).exists());
    drop(lock);
    // As a node leaves it that was killed.
    std::fs::write(own.join("control.lock"), "").unwrap();
    assert_eq!(sweep::clear_out_in(&bases, "net-1"), 1);
    assert!(!own.exists() && other.join("control").exists());
}

/// The lock and the socket of the next node were removed while it lived.
#[test]
fn a_directory_whose_lock_is_another_node_s_by_then_stays() {
    let scratch = Scratch::new();
    let place = left_behind(&scratch.0.join("rota"), "net-1");
    let user = nix::unistd::geteuid().as_raw();
    let left = sweep::Left::at(&place, user).unwrap();
    // The file that is locked had been removed, and a node made its own.
    std::fs::remove_file(place.join("control.lock")).unwrap();
    let next = Lock::at_once(&place.join("control.lock")).unwrap();
    assert_eq!(left.remove(), None);
    assert!(place.join("control").exists() && next.path().exists());
    drop(next);
    assert!(sweep::Left::at(&place, user).is_none(), "a socket without a lock stays");
}

#[test]
fn nothing_is_removed_from_a_base_of_somebody_else() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let base = scratch.0.join("rota");
    let dead = left_behind(&base, "net-1");
    give_away(&base);
    assert_eq!(sweep::sweep_in(&[base], "net-2"), 0);
    assert!(dead.join("control").exists());
}
