#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_node::links::fuzz::fuzz_link_frames(data));
