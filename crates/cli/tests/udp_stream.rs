//! `rota send` and `rota recv` over plain UDP on the loopback interface, as a user types them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const ROTA: &str = env!("CARGO_BIN_EXE_rota");

/// Services differ between tests and between runs that share a machine.
fn service(test: u32) -> String {
    (2_000 + test * 6_000 + std::process::id() % 6_000).to_string()
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("rota-{}-{name}", std::process::id()))
}

fn receiver(service: &str, more: &[&str]) -> Child {
    let mut command = Command::new(ROTA);
    command.args(["recv", "--over", "udp", "--service", service]).args(more);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The port must be open before the first datagram; its owner shows in the kernel's table.
    let port = format!(":{:04X} ", 7_700 + service.parse::<u16>().unwrap());
    for _ in 0..500 {
        if std::fs::read_to_string("/proc/net/udp").unwrap().contains(&port) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child
}

fn send(service: &str, more: &[&str]) -> Output {
    Command::new(ROTA)
        .args(["send", "--over", "udp", "--to", "127.0.0.1", "--service", service])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_byte_stream_arrives_identical() {
    let (service, out, log) = (service(0), scratch("identical.h264"), scratch("identical.log"));
    let more = ["--out", out.to_str().unwrap(), "--log", log.to_str().unwrap(), "--json"];
    let receiver = receiver(&service, &more);
    let clip = testdata("clip.h264");
    // Faster than life, so that the test is short.
    let sent = send(&service, &["--video", clip.to_str().unwrap(), "--fps", "300", "--json"]);
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    assert!(received.status.success(), "{}", String::from_utf8_lossy(&received.stderr));
    let (same, lines) = (
        std::fs::read(&out).unwrap() == std::fs::read(&clip).unwrap(),
        std::fs::read_to_string(&log).unwrap().lines().count(),
    );
    std::fs::remove_file(&out).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert!(same, "{}", String::from_utf8_lossy(&received.stdout));
    assert_eq!(lines, 390);
}

#[test]
fn bad_input_gets_one_sentence_and_its_exit_code() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--video", "/nonexistent"], 1, "cannot read /nonexistent: No such file"),
        (&["--video", "/dev/null"], 1, "it is no regular file"),
        (&["--video", "/bin/sh"], 1, "/bin/sh is not a video"),
        (&[], 2, "give --video FILE, or --rate"),
        (&["--rate", "10"], 2, "'10' has no unit"),
    ];
    for (more, code, sentence) in cases {
        let out = send("1", more);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(code) && stderr.contains(sentence), "{more:?}: {stderr}");
    }
}

#[test]
fn a_full_disk_and_a_vanished_sender_end_a_receiver_with_1() {
    let full_service = service(1);
    let full = receiver(&full_service, &["--out", "/dev/full"]);
    let clip = testdata("clip.h264");
    send(&full_service, &["--video", clip.to_str().unwrap(), "--fps", "300", "--frames", "30"]);
    let full = full.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&full.stderr);
    assert!(full.status.code() == Some(1) && stderr.contains("cannot write /dev/full"), "{stderr}");

    let lone_service = service(2);
    let lone = receiver(&lone_service, &["--json", "--silence", "300ms"]);
    let mut sender = Command::new(ROTA)
        .args(["send", "--over", "udp", "--to", "127.0.0.1", "--service", &lone_service, "--seconds", "60"])
        .args(["--video", clip.to_str().unwrap()])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let lone = lone.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&lone.stderr);
    assert!(lone.status.code() == Some(1) && stderr.contains("the sender vanished"), "{stderr}");
}
