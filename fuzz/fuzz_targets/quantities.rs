#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_units::fuzz::fuzz_quantities(data));
