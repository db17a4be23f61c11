//! Fabrics of the loopback that nobody else uses, and what programs leave of them in shared memory.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
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

    /// Whether a program listens for connections here: it has a socket that does, which is named after the fabric's file.
    pub fn has_listener(&self) -> io::Result<bool> {
        const LISTENS: &str = "00010000";
        let file = format!("{SHARED_MEMORY}/rxe-loop.");
        let files = self.left_behind()?.into_iter().filter(|path| {
            let name = path.to_string_lossy();
            name.starts_with(&file) && name.ends_with(&self.0)
        });
        let prefixes: Vec<_> = files
            .filter_map(|path| fs::metadata(path).ok())
            .map(|file| format!("@rxe-loop/{:x}.{:x}/", file.dev(), file.ino()))
            .collect();
        let table = fs::read_to_string("/proc/net/unix")?;
        Ok(table.lines().any(|line| {
            let fields: Vec<_> = line.split_ascii_whitespace().collect();
            let [_, _, _, flags, .., name] = fields[..] else { return false };
            flags == LISTENS && prefixes.iter().any(|prefix| name.starts_with(prefix))
        }))
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
