#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_study::video::fuzz_video(data));
