#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_study::plan::file::fuzz_plan(data));
