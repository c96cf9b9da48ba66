#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_study::topology::fuzz_topology(data));
