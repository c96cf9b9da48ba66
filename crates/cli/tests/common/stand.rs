//! The name of a node that runs in a thread of a test.

use rota::ControlName;

/// Nodes in threads end with the process and take nothing away: this does, when its test is over.
pub struct Stand(pub ControlName);

impl std::ops::Deref for Stand {
    type Target = ControlName;

    fn deref(&self) -> &ControlName {
        &self.0
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        for path in self.0.places().unwrap_or_default() {
            let _ = std::fs::remove_file(path.with_added_extension("lock"));
            let _ = std::fs::remove_file(&path);
            let _ = path.parent().map(std::fs::remove_dir);
        }
    }
}
