#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_study::scenario::fuzz_scenario(data));
