//! `rota plan` and `rota check` as programs.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rota(words: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_rota")).args(words).current_dir(root).output().expect("it starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("text")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_plan_is_decided_and_its_certificates_hold_until_a_number_is_changed() {
    let folder = folder("plan-certificates");
    let certificates = folder.to_str().expect("text");
    let plan = rota(&["plan", "plans/wan.toml", "--certificates", certificates]);
    assert_eq!(plan.status.code(), Some(3), "one of three is refused: {}", text(&plan.stderr));
    let said = text(&plan.stdout);
    for part in
        ["video: accepted: each message within", "west eth1 on wan", "nearest request that fits has smax"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (video, voice) = (folder.join("video.json"), folder.join("voice.json"));
    let files = [&video, &voice].map(|path| path.to_str().expect("text"));
    let check = rota(&["check", files[0], files[1]]);
    assert_eq!((check.status.code(), text(&check.stdout).matches(": holds: ").count()), (Some(0), 2));
    let written = std::fs::read_to_string(&video).expect("written");
    let mut document: Value = serde_json::from_str(&written).expect("JSON");
    document["promises"][0]["delay"] =
        (document["promises"][0]["delay"].as_u64().expect("a number") - 1).into();
    std::fs::write(&video, document.to_string()).expect("written");
    let check = rota(&["check", files[0], files[1], "--json"]);
    assert_eq!(check.status.code(), Some(1));
    let told: Value = serde_json::from_str(&text(&check.stdout)).expect("one document");
    let holds = [0, 1].map(|n| told["certificates"][n]["holds"].as_bool());
    assert_eq!(holds, [Some(false), Some(true)], "{told}");
}

/// The certificates that a plan of the repository writes, by their names without the ending: all hold.
fn certified(plan: &str, folder_name: &str) -> Vec<String> {
    let folder = folder(folder_name);
    let certificates = folder.to_str().expect("text");
    rota(&["plan", &format!("plans/{plan}"), "--certificates", certificates]);
    let written = std::fs::read_dir(&folder).expect("it was made").map(|file| file.expect("a file").path());
    let mut files: Vec<PathBuf> = written.collect();
    files.sort();
    let mut words = vec!["check"];
    words.extend(files.iter().map(|file| file.to_str().expect("text")));
    let check = rota(&words);
    let said = text(&check.stdout);
    assert_eq!((check.status.code(), said.matches(": holds: ").count()), (Some(0), files.len()), "{said}");
    files.iter().map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn channels_over_levels_are_planned_and_checked() {
    assert_eq!(certified("levels.toml", "plan-levels"), ["order", "video", "voice"]);
}

#[test]
fn channels_that_are_booked_are_planned_and_checked() {
    assert_eq!(certified("advance.toml", "plan-advance"), ["evening", "morning", "noon"]);
}

#[test]
fn a_tree_and_each_of_its_branches_are_planned_and_checked() {
    let names = certified("multicast.toml", "plan-tree");
    let all = ["hall-joins", "hall-joins@hall", "lecture", "lecture@screen", "screen-leaves", "survey"];
    assert_eq!(names, all);
}

#[test]
fn a_plan_as_json_names_the_test_the_place_and_the_offer() {
    let plan = rota(&["plan", "plans/wan.toml", "--json"]);
    let told: Value = serde_json::from_str(&text(&plan.stdout)).expect("one document");
    let refused = &told["channels"][2]["refused"];
    assert_eq!((&refused["test"], &refused["at"]["segment"]), (&"Load".into(), &"wan".into()));
    assert!(refused["offer"]["smax_octets"].as_u64().is_some_and(|octets| octets < 7_200), "{refused}");
    assert_eq!(told["channels"][0]["hops"].as_array().map(Vec::len), Some(3));
}

/// TENET-3.1-22.
#[test]
fn a_statistical_channel_of_a_plan_says_what_may_be_late() {
    let plan = rota(&["plan", "plans/statistical.toml"]);
    let said = text(&plan.stdout);
    assert_eq!(plan.status.code(), Some(0), "{said}{}", text(&plan.stderr));
    for part in
        ["sensor: accepted: 99 % of the units, if sources are independent, within", "in 10^9 may be late"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let told: Value =
        serde_json::from_slice(&rota(&["plan", "plans/statistical.toml", "--json"]).stdout).expect("JSON");
    let late = |at: usize| {
        [&told["channels"][at], &told["channels"][at]["hops"][0]].map(|of| of["late_ppb"].as_u64())
    };
    assert_eq!((late(0), late(1)), ([Some(10_000_000); 2], [Some(0); 2]), "{told}");
    assert!(told["channels"][0]["certificate"].is_null() && !told["channels"][1]["certificate"].is_null());
}

#[test]
fn files_that_make_no_sense_are_wrong_use() {
    let missing = rota(&["plan", "topologies/none.toml"]);
    assert_eq!(missing.status.code(), Some(1), "{}", text(&missing.stderr));
    let folder = folder("plan-wrong");
    std::fs::create_dir_all(&folder).expect("made");
    let file = folder.join("net.toml");
    std::fs::write(&file, "[[segment]]\nname = \"a\"\nrate = \"0mbit\"\n").expect("written");
    let wrong = rota(&["plan", file.to_str().expect("text")]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("net.toml:3: "), "{}", text(&wrong.stderr));
    std::fs::write(&file, "{").expect("written");
    let check = rota(&["check", file.to_str().expect("text")]);
    assert_eq!((check.status.code(), text(&check.stdout).contains("proves nothing")), (Some(1), true));
}
