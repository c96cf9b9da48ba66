//! Circuits as sockets (`rota_vc.h`): the example, every misuse, and programs that nobody here wrote
//! (`bindings/c/porting`), built as a user builds them and run between stations.

mod common;

use common::c::{Built, make, source, start};
use common::{Lab, Program, skipped, text};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the library and of the programs, or why there is none.
fn built() -> Option<&'static Path> {
    static BUILT: OnceLock<Built> = OnceLock::new();
    // In the folder of c_programs, which wants these programs, too.
    match BUILT.get_or_init(|| make("c", "", &["vc", "headers"])) {
        Ok(folder) => Some(folder),
        Err(why) => {
            skipped(why);
            None
        }
    }
}

/// A program in n2 that listens.
fn listening(lab: &Lab, program: &Path, words: &[&str]) -> Program {
    let server = start(lab, 2, program, words);
    server.wait_for_word("listening");
    server
}

/// Both ends of a test in C say that all is right.
fn both_are_right(lab: &Lab, program: &Path, ends: [&[&str]; 2]) {
    let server = listening(lab, program, ends[0]);
    let asked = start(lab, 1, program, ends[1]).finish();
    assert_eq!((asked.code(), &*asked.out), (0, "all right\n"), "{}{}", asked.err, server.out());
    assert_eq!(server.finish().well().out, "all right\n");
}

#[test]
fn the_example_of_rota_vc_h_sends_both_ways_and_polls() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::up("c-vc", 2) else { return };
    let vc = folder.join("examples/vc");
    let server = listening(&lab, &vc, &["serve", "7"]);
    let asked = start(&lab, 1, &vc, &["ask", "n2", "7", "300"]).finish().well();
    assert_eq!(asked.out, "300 answers\n");
    assert_eq!(server.finish().well().out, "300 messages of n1 answered\n");

    // Simplex, with poll(2) on the handle itself, and with rota_vc_poll at the sender.
    let taker = listening(&lab, &vc, &["take", "8"]);
    let given = start(&lab, 1, &vc, &["give", "n2", "8", "3000000"]).finish().well();
    assert_eq!(given.out, "3000000 octets given\n");
    assert_eq!(taker.finish().well().out, "3000000 octets taken\n");
}

/// Without blocking, by poll(2), epoll and select at either end, on a segment with a token.
#[test]
fn a_guaranteed_circuit_in_c_keeps_its_rate() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::up("c-vc-guaranteed", 2) else { return };
    let vc = folder.join("examples/vc");
    let taker = listening(&lab, &vc, &["take", "7"]);
    let begun = rota::now();
    let given = start(&lab, 1, &vc, &["give", "n2", "7", "1000000", "4000000"]).finish().well();
    let took = rota::now().since(begun);
    assert_eq!(given.out, "1000000 octets given\n");
    assert!(given.err.contains("each 16667 octets within"), "{}", given.err);
    assert_eq!(taker.finish().well().out, "1000000 octets taken\n");
    // The last two TPDUs may be handed over at once; nothing leaves before its turn.
    assert!(took >= rota::Span::from_millis(1_900), "two seconds of octets in {took}");
    lab.wait_for_mode(1, "plain");
    let _taker = listening(&lab, &vc, &["take", "7"]);
    let refused = start(&lab, 1, &vc, &["give", "n2", "7", "10", "99000000"]).finish();
    assert_eq!(refused.code(), 1);
    assert!(refused.err.contains("fits"), "it says no number: {}", refused.err);
}

#[test]
fn every_misuse_of_circuits_in_c_is_an_error_and_no_crash() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::up("c-vc-misuse", 2) else { return };
    let ended = start(&lab, 1, &folder.join("examples/vcmisuse"), &["n2"]).finish();
    assert_eq!((ended.code(), &*ended.out), (0, "all right\n"), "{}", ended.err);
}

#[test]
fn messages_and_ends_of_circuits_in_c_are_as_the_header_says() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::without_nodes("c-vc-ends", 2, &["--rate", "100mbit"]) else { return };
    let lab = lab.with_nodes(|_, _| Vec::new());
    let ends = folder.join("examples/vcends");
    both_are_right(&lab, &ends, [&["serve", "9"], &["ask", "n2", "9"]]);

    // The other program is killed while this one waits for its answer.
    let vc = folder.join("examples/vc");
    let mut server = listening(&lab, &vc, &["serve", "7"]);
    let asks = start(&lab, 1, &vc, &["ask", "n2", "7", "100000000"]);
    std::thread::sleep(std::time::Duration::from_millis(400));
    server.kill();
    let asked = asks.finish();
    assert!(asked.code() == 1 && asked.err.contains("the circuit has ended: "), "{}", asked.err);
    // Its own node is killed.
    let _server = listening(&lab, &vc, &["serve", "8"]);
    let asks = start(&lab, 1, &vc, &["ask", "n2", "8", "100000000"]);
    std::thread::sleep(std::time::Duration::from_millis(400));
    common::signal(common::pid(&lab.status(1)), "KILL");
    let asked = asks.finish();
    assert!(asked.code() == 1 && asked.err.contains("the node of this station is gone"), "{}", asked.err);
}

/// TRANSPORT-R4: by `select`, `poll`, `epoll` and `epoll` that tells of changes alone, at a listener, at
/// either end of a circuit, and for room.
#[test]
fn a_circuit_in_c_is_waited_for_by_select_poll_and_epoll() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::up("c-vc-wait", 2) else { return };
    both_are_right(&lab, &folder.join("examples/vcwait"), [&["serve", "9"], &["ask", "n2", "9"]]);
}

/// A listener takes two classes of three; the program of the third reads its reason, and that of a guaranteed
/// circuit has a certificate, which the checker believes.
#[test]
fn a_listener_in_c_refuses_a_class_and_a_guaranteed_circuit_has_its_certificate() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::up("c-vc-picky", 2) else { return };
    let file = lab.file("certificate.json");
    let file = file.to_str().unwrap();
    let picky = folder.join("examples/vcpicky");
    both_are_right(&lab, &picky, [&["serve", "9"], &["ask", "n2", "9", file]]);
    lab.rota(1, &["check", file]).well();
}

#[test]
fn a_program_in_c_that_polls_hears_that_its_node_was_killed() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::up("c-vc-orphan", 2) else { return };
    let _server = listening(&lab, &folder.join("examples/vc"), &["serve", "7"]);
    let orphan = start(&lab, 1, &folder.join("examples/vcends"), &["orphan", "n2", "7"]);
    orphan.wait_for_word("waits");
    std::thread::sleep(std::time::Duration::from_millis(200));
    common::signal(common::pid(&lab.status(1)), "KILL");
    let ended = orphan.finish();
    assert_eq!((ended.code(), &*ended.out), (0, "all right\n"), "{}", ended.err);
}

#[test]
fn a_program_in_c_hears_what_is_lost_without_error_control() {
    let Some(folder) = built() else { return };
    let Some(lab) = Lab::with_hub("c-vc-lossy", 2) else { return };
    let lab = lab.with_nodes(|_, _| Vec::new());
    lab.follow("[[fault]]\nkind = \"loss\"\nat = \"0s\"\nshare = \"5%\"\n");
    let ends = folder.join("examples/vcends");
    both_are_right(&lab, &ends, [&["lossy", "9"], &["spray", "n2", "9"]]);
}

/// `mini-inetd` and `tcpconnect` of tcputils, ported, around an unchanged `micro_httpd`: a file server with
/// its client. TRANSPORT-R12, TRANSPORT-R13.
#[test]
fn programs_of_others_serve_and_fetch_a_file_over_circuits() {
    let Some(folder) = built() else { return };
    let ported = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ported");
    let mut get = Command::new(source().join("porting/get"));
    get.arg(&ported).arg("-I").arg(folder.join("include")).arg(folder.join("librota-llc.a"));
    get.arg(folder.join("librota_c.a"));
    get.args(["-Wl,--gc-sections", "-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
    let out = get.output().expect("there is a shell");
    if out.status.code() == Some(3) {
        return skipped(&format!("the ported programs were not built: {}", text(&out.stderr)));
    }
    assert!(out.status.success(), "{}\n{}", text(&out.stdout), text(&out.stderr));
    let Some(lab) = Lab::without_nodes("c-ported", 2, &["--rate", "100mbit"]) else { return };
    let lab = lab.with_nodes(|_, _| Vec::new());
    let octets = 5_000_000;
    let content: Vec<u8> = (0u32..octets).map(|k| (k.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(lab.file("film.mpeg"), &content).unwrap();
    let here = lab.file("");
    let bin = |name: &str| ported.join("bin").join(name).display().to_string();
    let words = ["-d", "-m", "2", "80", &bin("micro_httpd"), "micro_httpd", here.to_str().unwrap()];
    let server = start(&lab, 2, Path::new(&bin("mini-inetd")), &words);
    let fetch = |name: &str, into: &str| {
        let line = format!(
            "printf 'GET /{name} HTTP/1.0\\r\\n\\r\\n' | {} n2 80 > {}",
            bin("tcpconnect"),
            lab.file(into).display()
        );
        // Until it listens, it says nothing.
        let tried = || Program::start(lab.exec(1, &["sh", "-c", &line])).finish();
        let fetched = || Some(tried()).filter(|ended| ended.code() == 0);
        common::eventually(common::PATIENCE, fetched).unwrap_or_else(&tried).well();
        std::fs::read(lab.file(into)).unwrap()
    };
    let answer = fetch("film.mpeg", "copy");
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let told = String::from_utf8_lossy(&answer[..head]).into_owned();
    assert!(told.starts_with("HTTP/1.0 200 Ok") && told.contains("Content-Length: 5000000"), "{told}");
    assert!(answer[head..] == content, "the copy is another file");
    assert!(fetch("nothing", "none").starts_with(b"HTTP/1.0 404"));
    server.finish().well();
}
