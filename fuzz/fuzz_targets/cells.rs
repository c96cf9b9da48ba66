#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_wire::fuzz::fuzz_cells(data));
