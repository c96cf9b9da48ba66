use super::*;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn joined(video: &Video) -> Vec<u8> {
    (0..video.unit_count() as u64).flat_map(|i| video.unit_looped(i).to_vec()).collect()
}

#[test]
fn no_access_unit_of_the_clip_exceeds_6250_octets() {
    for name in ["clip.h264", "clip.mp4"] {
        let video = Video::read(&testdata(name)).unwrap();
        assert_eq!(video.unit_count(), 390, "{name}");
        assert!(video.largest_octets() <= 6_250, "{name} has a unit of {}", video.largest_octets());
        assert_eq!(video.rate().unwrap().period_ns(), 33_333_333, "{name}");
    }
}

#[test]
fn the_units_of_a_byte_stream_are_the_file() {
    let file = std::fs::read(testdata("clip.h264")).unwrap();
    assert!(joined(&Video::parse(file.clone()).unwrap()) == file);
}

#[test]
fn frame_rates_are_read_as_people_write_them() {
    let period = |text: &str| FrameRate::read(text).map(FrameRate::period_ns);
    for (text, nanos) in [
        ("23.976", 41_708_333),
        ("24000/1001", 41_708_333),
        ("24", 41_666_666),
        ("25", 40_000_000),
        ("29.97", 33_366_666),
        ("30", 33_333_333),
        ("12.5", 80_000_000),
        ("59.94", 16_683_333),
    ] {
        assert_eq!(period(text), Ok(nanos), "{text}");
    }
    for wrong in ["", "0", "-5", "1001", "25/0", "0.5", ".", "1.", "a", "30/", "1e3", "99999999999999999999"]
    {
        assert!(period(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_looped_clip_starts_again() {
    let video = Video::read(&testdata("clip.h264")).unwrap();
    assert!(video.unit_looped(390) == video.unit_looped(0) && video.unit_looped(391) == video.unit_looped(1));
}

/// The MD5 of all decoded frames, or `None` where ffmpeg is not installed.
fn decoded_md5(path: &Path) -> Option<String> {
    let out = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(path)
        .args(["-f", "rawvideo", "-f", "md5", "-"])
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

#[test]
fn an_mp4_decodes_to_the_same_frames() {
    let mp4 = testdata("clip.mp4");
    let Some(before) = decoded_md5(&mp4) else {
        // Past the harness, which would keep it to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED an_mp4_decodes_to_the_same_frames: no ffmpeg");
        return;
    };
    let out = std::env::temp_dir().join(format!("rota-mp4-{}.h264", std::process::id()));
    std::fs::write(&out, joined(&Video::read(&mp4).unwrap())).unwrap();
    let after = decoded_md5(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    assert!(before.starts_with("MD5=") && before == after, "{before} became {after}");
}

#[test]
fn what_is_no_video_gets_one_sentence() {
    let sentence = |octets: &[u8]| Video::parse(octets.to_vec()).err().unwrap();
    let mut noise = 0x2545_f491_u32;
    let noise: Vec<u8> = (0..50_000)
        .map(|_| {
            noise ^= noise << 13;
            noise ^= noise >> 17;
            noise ^= noise << 5;
            noise as u8
        })
        .collect();
    assert!(Video::parse(noise).is_err());
    assert_eq!(sentence(b"hello, world"), "it holds no H.264 start code");
    assert_eq!(sentence(&[0, 0, 0, 1, 0x65, 0x88, 0x84]), "it has no parameter sets");
    assert_eq!(sentence(b"\0\0\0\x18ftypisom\0\0\0\0isomavc1"), "it is an MP4 without an index");
    let missing = Video::read(Path::new("/nonexistent/clip.mp4")).err().unwrap().to_string();
    assert!(missing.starts_with("cannot read /nonexistent/clip.mp4: No such file"), "{missing}");
    let device = Video::read(Path::new("/dev/null")).err().unwrap().to_string();
    assert_eq!(device, "cannot read /dev/null: it is no regular file; give an H.264 byte stream or an MP4");
    let path = std::env::temp_dir().join(format!("rota-empty-{}.mp4", std::process::id()));
    std::fs::write(&path, []).unwrap();
    let empty = Video::read(&path).err().unwrap().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(empty.ends_with(".mp4 is empty; give an H.264 byte stream or an MP4"), "{empty}");
}

#[test]
fn the_corpus_replays() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/video");
    let mut replayed = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let data = std::fs::read(entry.unwrap().path()).unwrap();
        fuzz_video(&data);
        // Every prefix length class and single-octet damage, cheaply: these found the crate's panics.
        for cut in (0..data.len()).step_by(data.len() / 64 + 1) {
            fuzz_video(&data[..cut]);
            let mut damaged = data.clone();
            damaged[cut] ^= 0xff;
            fuzz_video(&damaged);
        }
        replayed += 1;
    }
    assert!(replayed >= 3, "the corpus is part of the repository");
}

proptest::proptest! {
    #[test]
    fn any_octets_behind_a_start_code_are_cut_without_loss(
        tail in proptest::collection::vec(0u8..4, 0..400)
    ) {
        let clip = std::fs::read(testdata("clip.h264")).unwrap();
        let mut data = clip[..1_000].to_vec();
        data.extend(tail);
        fuzz_video(&data);
    }
}
