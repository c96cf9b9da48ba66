#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_study::transport::fuzz_datagrams(data));
