//! A queue that the kernel fills, of a channel across segments.

use super::*;

/// The kernel fills the queue of a channel that ends behind a link (ENDHOST-R15, R28 to R30): all octets come
/// while its node sees no frame. With another contract its packets have another local id, which the filter
/// does not know, so they come by the node. Nothing is left of a program that is killed.
#[test]
fn a_queue_that_the_kernel_fills_has_the_packets_of_a_channel_across_segments() {
    let Some(lab) = TopologyLab::up("acrossq", FAST, &[]) else { return };
    wait_for_way(&lab, "camera", "screen");
    let folder = std::env::temp_dir().join(format!("rota-across-queue-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let copy = folder.join("copy");
    let octets: Vec<u8> = (0..600_000u32).flat_map(u32::to_le_bytes).collect();
    let words = ["recv", "--json", "--kernel-queue", "--out", &copy.display().to_string()];
    let receiver = lab.rota("screen", &words);
    receiver.wait_for_word("listening");
    let parts = octets.split_at(1_000_000);
    let (sender, done) = send_in_two(&lab, "camera", &folder, parts, "--to screen --rate 8mbit");
    sender.wait_for_word("open:");
    receiver.wait_for_word(" fills the ");
    let queues = || lab.status("screen")["extra"]["queues"]["channels"][0].clone();
    let is_kernels = receiver.err().contains("the kernel fills");
    println!("the kernel fills it: {is_kernels}");
    if is_kernels {
        // A frame has 1,400 octets of them at most.
        let filled = || queues()["frames"].as_u64().filter(|frames| *frames > 700);
        assert!(eventually(PATIENCE, filled).is_some(), "{}", queues());
    } else {
        assert!(queues()["node"].is_string(), "{}", queues());
    }
    let listed = lab.rota("camera", &["channel", "list", "--json"]).finish().well().json();
    let channel = listed["channels"][0]["channel"].as_str().expect("an id").to_owned();
    let words = ["channel", "modify", "--json", &channel, "--delay", "400ms"];
    lab.rota("camera", &words).finish().well();
    let before = queues()["frames"].clone();
    std::fs::write(&done, "").expect("room");
    let came = || std::fs::metadata(&copy).ok().filter(|copy| copy.len() > 1_200_000);
    assert!(eventually(PATIENCE, came).is_some(), "{}", receiver.err());
    assert_eq!(queues()["frames"], before, "by the node");
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    let (told, came) = (sender.json(), receiver.json());
    assert_eq!((&came["lost"], &came["incomplete"]), (&0.into(), &0.into()), "{came}");
    assert_eq!(came["units"], told["sent"], "{told}");
    assert!(std::fs::read(&copy).expect("it was written") == octets, "the octets differ");
    let _ = std::fs::remove_dir_all(&folder);
    if is_kernels {
        a_killed_program_leaves_no_queue(&lab);
    }
}

/// ENDHOST-R56: and its sender is told.
fn a_killed_program_leaves_no_queue(lab: &TopologyLab) {
    let mut receiver = lab.rota("screen", &["recv", "--kernel-queue", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let sender = lab.rota("camera", &["channel", "open", "--to", "screen", "--rate", "1mbit"]);
    receiver.wait_for_word("the kernel fills");
    receiver.kill();
    let queues = || lab.status("screen")["extra"]["queues"]["channels"].as_array().map(Vec::len);
    let is_gone = || (queues() == Some(0)).then_some(());
    assert!(eventually(PATIENCE, is_gone).is_some(), "{:?}", queues());
    assert_ne!(sender.finish().code(), 0);
}
