//! Where commands write what they were given: a file or standard output.

use crate::exit::Failure;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Ends the program when standard output takes nothing more, unless its reader has simply gone away.
pub fn written(outcome: std::io::Result<()>) {
    if let Err(error) = outcome
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        eprintln!("rota: cannot write standard output: {error}");
        std::process::exit(1);
    }
}

/// A file or standard output, with the name that errors use.
pub struct Output {
    name: String,
    writer: Box<dyn Write>,
}

impl Output {
    /// Creates the file at `path`; '-' is standard output.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { name: "standard output".into(), writer: Box::new(std::io::stdout()) });
        }
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| Failure::failed(format!("cannot write {name}: {e}")))?;
        Ok(Self { name, writer: Box::new(BufWriter::new(file)) })
    }

    /// Writes `octets`.
    pub fn put(&mut self, octets: &[u8]) -> Result<(), Failure> {
        self.writer.write_all(octets).map_err(|e| Failure::failed(format!("cannot write {}: {e}", self.name)))
    }

    /// Writes `record` as a line of JSON.
    pub fn record(&mut self, record: &impl serde::Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(record).map_err(Failure::failed)?;
        self.put(line.as_bytes())?;
        self.put(b"\n")
    }

    /// Makes sure that everything is written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|e| Failure::failed(format!("cannot write {}: {e}", self.name)))
    }
}
