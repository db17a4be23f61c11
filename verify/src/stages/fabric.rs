//! Fabrics of the loopback that nobody else uses, and what programs leave of them in shared memory.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where fabrics lie.
const SHARED_MEMORY: &str = "/dev/shm";

/// A fabric for programs that meet there, and nobody else.
pub struct Fabric(String);

impl Fabric {
    /// A new one.
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The last character is no digit: one is never the beginning of another.
        Self(format!("abi-{}-{number}-", process::id()))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether a program listens for connections here: its socket is beside the fabric's file.
    pub fn has_listener(&self) -> io::Result<bool> {
        let part = format!("{}.cm.", self.0);
        let is_listener = |path: &PathBuf| path.to_string_lossy().contains(&part);
        Ok(self.left_behind()?.iter().any(is_listener))
    }

    /// The programs that met here are gone without a trace; an error says what they left, or why nobody can tell.
    pub fn check_gone(&self) -> Result<(), String> {
        match self.left_behind() {
            Ok(left) if left.is_empty() => Ok(()),
            Ok(left) => Err(format!("it leaves {left:?} behind")),
            Err(error) => Err(format!("shared memory can't be read: {error}")),
        }
    }

    fn left_behind(&self) -> io::Result<Vec<PathBuf>> {
        let all = fs::read_dir(SHARED_MEMORY)?.map(|entry| Ok(entry?.path()));
        let mut all = all.collect::<io::Result<Vec<_>>>()?;
        all.retain(|path| path.to_string_lossy().contains(&format!(".{}", self.0)));
        Ok(all)
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        for path in self.left_behind().unwrap_or_default() {
            // A program that was killed leaves it; who may not remove it leaves it, too.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_one_is_told_and_goes_with_it() {
        let fabrics = [Fabric::new(), Fabric::new()];
        assert_ne!(fabrics[0].name(), fabrics[1].name());
        let file = format!("{SHARED_MEMORY}/rxe-loop.0.{}.mem.1.2", fabrics[0].name());
        fs::write(&file, "").unwrap();
        assert_eq!(fabrics[0].left_behind().unwrap(), [PathBuf::from(&file)]);
        assert!(fabrics[0].check_gone().unwrap_err().contains(&file));
        assert_eq!(fabrics[1].check_gone(), Ok(()));
        drop(fabrics);
        assert!(!fs::exists(&file).unwrap());
    }
}
