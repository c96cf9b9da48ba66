//! The control socket: the users who may make it, the server that programs trust, and the users it serves.

mod common;

use common::{Ended, Lab, PATIENCE, Program, ROTA, eventually, skipped};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const NOBODY: u32 = 65_534;
const GUESTS: &str = "4242";
/// The socket path of a test's false node.
const FALSE_NODE: &str = "ROTA_TEST_FALSE_NODE";

#[track_caller]
fn ended(ended: Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code(), code, "{}{}", ended.out, ended.err);
    for word in words {
        assert!(ended.err.contains(word), "'{word}' is not in: {}", ended.err);
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A program that anybody may run, wherever the original lies.
fn for_everybody(program: &Path, lab: &Lab) -> PathBuf {
    let copy = lab.file(&program.file_name().unwrap().to_string_lossy());
    std::fs::copy(program, &copy).unwrap();
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

fn with_control(lab: &Lab, path: &Path, words: &[&str]) -> Ended {
    let control = format!("ROTA_CONTROL={}", path.display());
    Program::start(lab.exec(1, &[&["env", &control, ROTA], words].concat())).finish()
}

#[test]
fn a_node_refuses_a_place_that_others_can_write_to_or_have_made() {
    let Some(lab) = Lab::without_nodes("squatted", 1, &[]) else { return };
    let node = ["node", "--iface", "eth0", "--name", "n1"];
    let open = lab.file("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    ended(with_control(&lab, &open.join("control"), &node), 1, &["writable by others (mode 0777)", "chmod"]);
    let file = lab.file("precious");
    std::fs::write(&file, "").unwrap();
    ended(with_control(&lab, &file, &node), 1, &["is no socket"]);
    ended(with_control(&lab, Path::new("rota/node"), &node), 1, &["not usable", "absolute path"]);
    if !is_root() {
        return skipped("only root can make somebody else's directory");
    }
    let theirs = lab.file("theirs");
    std::fs::create_dir(&theirs).unwrap();
    nix::unistd::chown(&theirs, Some(NOBODY.into()), None).unwrap();
    ended(with_control(&lab, &theirs.join("control"), &node), 1, &["belongs to user 65534", "ROTA_CONTROL"]);
}

/// Not a test: the test below runs it as another user; it listens and does not answer.
#[test]
#[ignore = "is run by another test"]
fn a_false_node() {
    let path = std::env::var(FALSE_NODE).unwrap();
    let flags = SockFlag::SOCK_CLOEXEC;
    let false_node = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
    bind(false_node.as_raw_fd(), &UnixAddr::new(path.as_str()).unwrap()).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    listen(&false_node, Backlog::MAXCONN).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn no_program_talks_to_a_false_node() {
    let Some(lab) = Lab::without_nodes("false", 1, &[]) else { return };
    if !is_root() {
        return skipped("only root can become another user");
    }
    let theirs = lab.file("theirs");
    std::fs::create_dir(&theirs).unwrap();
    nix::unistd::chown(&theirs, Some(NOBODY.into()), None).unwrap();
    let path = theirs.join("control");
    let mut command = Command::new(for_everybody(&std::env::current_exe().unwrap(), &lab));
    command.args(["--exact", "a_false_node", "--ignored"]).env(FALSE_NODE, &path).uid(NOBODY).gid(NOBODY);
    let _false_node = Program::start(command);
    eventually(common::PATIENCE, || {
        std::fs::metadata(&path).is_ok_and(|there| there.mode() & 0o777 == 0o777).then_some(())
    })
    .expect("the false node listens");
    for words in [&["status"][..], &["channel", "list"], &["recv"]] {
        ended(with_control(&lab, &path, words), 1, &["served by user 65534", "not talked to"]);
    }
}

#[test]
fn a_node_takes_the_place_of_a_dead_one_and_not_of_a_living_one() {
    let Some(lab) = Lab::without_nodes("places", 1, &[]) else { return };
    let mut first = lab.start_node(1, &[]);
    let second = lab.rota(1, &["node", "--iface", "eth0", "--name", "again"]);
    ended(second, 1, &["interface eth0 already belongs to another rota process"]);
    first.kill();
    drop(first);
    let _again = lab.start_node(1, &[]);
    assert_eq!(lab.status(1)["name"], "n1");
    // Another interface of the same station.
    let pair = ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"];
    Program::start(lab.exec(1, &pair)).finish().well();
    for end in ["v0", "v1"] {
        Program::start(lab.exec(1, &["ip", "link", "set", end, "up"])).finish().well();
    }
    let other = lab.start(1, &["node", "--iface", "v0", "--name", "beside", "--rate", "10mbit"]);
    other.wait_for_word("ROTA_CONTROL=control-v0");
    assert_eq!(with_control(&lab, Path::new("control-v0"), &["status", "--json"]).json()["name"], "beside");
    assert_eq!(lab.status(1)["name"], "n1");
}

#[test]
fn members_of_the_group_are_served_and_strangers_are_not() {
    let Some(lab) = Lab::without_nodes("group", 2, &[]) else { return };
    let unknown = lab.rota(1, &["node", "--iface", "eth0", "--name", "n1", "--group", "no-such-group"]);
    ended(unknown, 2, &["no group 'no-such-group'", "getent group"]);
    if !is_root() {
        let unmapped = lab.rota(1, &["node", "--iface", "eth0", "--name", "n1", "--group", GUESTS]);
        ended(unmapped, 2, &["group '4242'", "does not exist in this user namespace, which has 0"]);
        return skipped("only root can become a member of a group");
    }
    let rota = for_everybody(Path::new(ROTA), &lab).display().to_string();
    let does = |groups: &str, words: &[&str]| {
        let groups = format!("--groups={groups}");
        let as_user = ["setpriv", "--reuid=65534", "--regid=65534", &groups, &rota];
        Program::start(lab.exec(1, &[&as_user, words].concat())).finish()
    };
    let as_member = |groups: &str| does(groups, &["status", "--json"]);
    let node = lab.start_node(1, &[]);
    ended(as_member(GUESTS), 1, &["serves only root and the user it runs as", "--group"]);
    drop(node);
    let _node = lab.start_node(1, &["--group".into(), GUESTS.into()]);
    assert_eq!(as_member(GUESTS).well().json()["name"], "n1");
    assert_eq!(as_member(&format!("{NOBODY},{GUESTS}")).well().json()["name"], "n1");
    ended(as_member("4243"), 1, &["the members of group 4242"]);
    // A guest uses what is theirs: neither root's channels, nor what root's programs send.
    let _other = lab.start_node(2, &[]);
    lab.wait_for_members();
    let _receiver = lab.receiver(2, "5", &["--out", "/dev/null"]);
    let open = ["channel", "open", "--to", "n2", "--service", "5", "--rate", "1mbit"];
    let _held = lab.start(1, &open);
    let list = || lab.rota(1, &["channel", "list", "--json"]).well().json();
    let opened = eventually(PATIENCE, || (list()["channels"][0]["state"] == "open").then_some(()));
    assert!(opened.is_some(), "{}", list());
    let id = list()["channels"][0]["channel"].as_str().unwrap().to_owned();
    for words in [&["channel", "close", &id][..], &["channel", "modify", &id, "--rate", "500kbit"]] {
        ended(does(GUESTS, words), 1, &[&format!("channel {id} belongs to user 0")]);
    }
    ended(does(GUESTS, &["trace", "show"]), 1, &["events show what all programs of this station send"]);
    assert_eq!(list()["channels"][0]["state"], "open");
    lab.rota(1, &["trace", "show", "--last", "3"]).well();
    lab.rota(1, &["channel", "close", &id]).well();
}

/// Reads from the kernel, for each thread of a process: seccomp, no new privileges, permitted capabilities.
fn threads(pid: u32) -> Vec<(String, [u64; 3])> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path());
    let each = tasks.map(|task| {
        let status = std::fs::read_to_string(task.join("status")).unwrap();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let name = std::fs::read_to_string(task.join("comm")).unwrap();
        (name.trim().to_owned(), ["Seccomp:", "NoNewPrivs:", "CapPrm:"].map(value))
    });
    each.collect()
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

const NET_ADMIN: u64 = 1 << 12;
const IPC_LOCK: u64 = 1 << 14;

#[test]
fn a_running_node_has_given_its_rights_away_and_still_does_its_work() {
    let Some(lab) = Lab::without_nodes("confined", 2, &[]) else { return };
    let holds = |lab: &Lab, k: u8| lab.file(&format!("holds{k}")).display().to_string();
    let lab = lab.with_nodes(|lab, k| vec!["--hold-log".into(), holds(lab, k)]);
    let status = lab.status(1);
    let told = &status["extra"]["privileges"];
    assert_eq!(
        (&told["confined"], &told["seccomp"], &told["no_new_privs"]),
        (&true.into(), &true.into(), &true.into()),
        "{status}"
    );
    assert!(status["notes"].to_string().contains("confined: system calls filtered"), "{status}");
    let all = threads(common::pid(&status));
    assert!(all.len() >= 4, "{all:?}");
    for (name, [seccomp, no_new_privs, capabilities]) in all {
        // The right to lock memory stays if the limit of locked memory is finite.
        let kept = if ["rota-data", "rota-gate"].contains(&&*name) { NET_ADMIN } else { 0 };
        assert_eq!((seccomp, no_new_privs, capabilities & !IPC_LOCK), (2, 1, kept), "{name}");
    }
    // The gate is opened and closed, queues are asked, memory files are made and passed.
    let receiver = lab.receiver(2, "7", &[]);
    let video = common::testdata("clip.h264");
    let words = ["send", "--video", &video, "--to", "n2", "--service", "7", "--seconds", "3", "--json"];
    let sender = lab.start(1, &words);
    lab.wait_for_mode(1, "token");
    let counters = lab.rota(1, &["status", "--counters", "--json"]).well().json();
    assert!(counters["turns"].as_u64().unwrap() > 0);
    // A busy host may make units late; that is for others to judge.
    assert!([0, 4].contains(&sender.finish().code()));
    drop(receiver);
    lab.wait_for_mode(1, "plain");
    lab.rota(1, &["trace", "show"]).well();
    assert!(std::fs::metadata(holds(&lab, 1)).unwrap().len() > 0, "the hold log is written");
}

/// Runs a program as a kernel without seccomp(2) and pidfd_open(2) does, by a filter in front of both: a
/// container has such a filter, too.
const OLD_KERNEL: &str = "import ctypes,os,platform,struct,sys\n\
    seccomp=277 if platform.machine()=='aarch64' else 317\n\
    f=[(0x20,0,0,0),(0x15,2,0,434),(0x15,1,0,seccomp),(6,0,0,0x7fff0000),(6,0,0,0x50026)]\n\
    code=ctypes.create_string_buffer(b''.join(struct.pack('HBBI',*x) for x in f))\n\
    class Filter(ctypes.Structure): _fields_=[('n',ctypes.c_ushort),('at',ctypes.c_void_p)]\n\
    filter=Filter(len(f),ctypes.addressof(code))\n\
    if ctypes.CDLL(None,use_errno=True).prctl(22,2,ctypes.byref(filter),0,0): sys.exit(77)\n\
    os.execv(sys.argv[1],sys.argv[1:])";

/// The status of such a node told its operator that its calls are filtered, and that its programs can get new
/// privileges.
#[test]
fn a_node_on_a_kernel_without_seccomp_and_pidfd_says_so_and_serves() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skipped("there is no python3");
    }
    let Some(lab) = Lab::without_nodes("old-kernel", 1, &[]) else { return };
    let words = ["python3", "-c", OLD_KERNEL, ROTA, "node", "--iface", "eth0", "--name", "n1"];
    let node = Program::start(lab.exec(1, &words));
    node.wait_for_word("rota node");
    let status = lab.status(1);
    let (told, notes) = (&status["extra"]["privileges"], status["notes"].to_string());
    assert_eq!((&told["seccomp"], &told["no_new_privs"]), (&false.into(), &true.into()), "{told}");
    assert!(notes.contains("confined: system calls NOT filtered, no new privileges"), "{notes}");
    assert!(notes.contains("it looks each millisecond: no pidfd here"), "{notes}");
    assert!(node.err().contains("system calls are not filtered: "), "{}", node.err());
}

#[test]
fn a_node_does_without_its_broker_and_takes_it_along() {
    let Some(lab) = Lab::without_nodes("broker", 1, &[]) else { return };
    let mut node = lab.start_node(1, &[]);
    let broker = |lab: &Lab| {
        let status = lab.status(1);
        u32::try_from(status["extra"]["privileges"]["broker_pid"].as_u64().expect("a broker")).unwrap()
    };
    let first = broker(&lab);
    let [(_, [seccomp, new_privs, capabilities])] = &threads(first)[..] else {
        panic!("the broker has one thread")
    };
    assert_eq!(capabilities & !(1 << 23), 0, "it keeps the right to schedule, and no other");
    assert_eq!((*seccomp, *new_privs), (2, 1), "it gets no new rights, and its calls are filtered");
    common::signal(first, "KILL");
    let told = eventually(common::PATIENCE, || {
        let status = lab.status(1);
        assert_eq!(status["name"], "n1", "the node works on");
        status["extra"]["privileges"]["broker_pid"].is_null().then_some(status["notes"].to_string())
    });
    let told = told.expect("the status knows of the end of the broker");
    assert!(told.contains(&format!("broker: process {first} ended with signal: 9 (SIGKILL)")), "{told}");
    node.kill();
    drop(node);
    let mut node = lab.start_node(1, &[]);
    let second = broker(&lab);
    assert!(second != first && is_alive(second));
    node.kill();
    eventually(common::PATIENCE, || (!is_alive(second)).then_some(()))
        .expect("the broker ends with its node");
    // No other user can start a broker.
    let alone = lab.rota(1, &["node", "--role", "broker"]);
    ended(alone, 2, &["a role is started by a node, and by nobody else"]);
    ended(lab.rota(1, &["node", "--role", "admiral"]), 2, &["no role of a node"]);
}
