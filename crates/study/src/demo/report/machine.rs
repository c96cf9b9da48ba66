//! The machine on which the figures were obtained.

/// Processor, kernel and program in a sentence.
pub fn describe() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|info| {
        let model = info.lines().find(|line| line.starts_with("model name"))?;
        Some(model.split_once(':')?.1.trim().to_string())
    });
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "{processors} x {}, Linux {}, rota {}",
        processor.unwrap_or_else(|| std::env::consts::ARCH.to_string()),
        kernel.trim(),
        env!("CARGO_PKG_VERSION")
    )
}
