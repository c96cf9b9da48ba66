#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_shm::fuzz::fuzz_circuit_cells(data));
