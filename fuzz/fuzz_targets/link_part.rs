#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_study::certificate::open::fuzz_link_part(data));
