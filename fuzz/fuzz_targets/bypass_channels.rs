#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rota_driver::bypass::channel_fuzz::fuzz_bypass_channels(data));
