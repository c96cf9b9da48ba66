#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_study::certificate::document::fuzz_certificate(data));
