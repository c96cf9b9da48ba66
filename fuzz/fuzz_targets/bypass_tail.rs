#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_driver::bypass::fuzz::fuzz_bypass_tail(data));
