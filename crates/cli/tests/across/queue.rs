//! A queue that the kernel fills, of a channel across segments.

use super::*;

/// The kernel fills the queue of a channel that ends behind a link (ENDHOST-R15, R28 to R30): all octets come
/// while its node sees no frame. With another contract its packets have another local id, which the filter
/// does not know, so they come by the node. Nothing is left of a program that is killed.
#[test]
fn a_queue_that_the_kernel_fills_has_the_packets_of_a_channel_across_segments() {
    let Some(lab) = TopologyLab::up("acrossq", FAST, &[]) else { return };
    wait_for_way(&lab, "camera", "screen");
    let (ends, parts) = (["camera", "screen"], (600_000, 1_000_000));
    let InTwo { folder, octets, sender, receiver, done } =
        InTwo::begin((&lab, "across-queue"), ends, parts, "8mbit", &["--kernel-queue"]);
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
    let channel = first_channel(&lab, "camera");
    let words = ["channel", "modify", "--json", &channel, "--delay", "400ms"];
    lab.rota("camera", &words).finish().well();
    let before = queues()["frames"].clone();
    std::fs::write(&done, "").expect("room");
    let came = || std::fs::metadata(folder.join("copy")).ok().filter(|copy| copy.len() > 1_200_000);
    assert!(eventually(PATIENCE, came).is_some(), "{}", receiver.err());
    assert_eq!(queues()["frames"], before, "by the node");
    let (sender, receiver) = (sender.finish(), receiver.finish());
    came_whole((&sender, &receiver), &folder, &octets);
    assert_eq!(receiver.json()["units"], sender.json()["sent"], "{}", sender.out);
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
