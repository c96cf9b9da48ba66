#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_sim::scenario::schedule::fuzz_schedule(data));
