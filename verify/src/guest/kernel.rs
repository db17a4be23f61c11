//! Debian's kernel: found, fetched once, and unpacked as far as it is needed. It is never installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{self, only};
use crate::run::{Job, Stop};

/// The package that always depends on the current kernel.
const CURRENT: &str = "linux-image-amd64";
/// What the guest loads; what these need comes with them. rxe's link needs crc32 and does not say so.
const MODULES: [&str; 7] =
    ["virtio_pci", "virtio_console", "crc32_generic", "rdma_rxe", "rdma_ucm", "dummy", "e1000"];
/// How an xz stream begins.
const XZ: &[u8] = b"\xfd7zXZ\0";

/// The image that QEMU loads, in the folder of a kernel.
pub const IMAGE: &str = "vmlinux";
/// The folder of its modules there, which sort in the order in which they are to be loaded.
pub const LOADED: &str = "modules";

/// The folder of the kernel of this Debian, fetched where that has not been done.
pub fn find(job: &mut Job) -> Result<PathBuf, Stop> {
    if packages::program("apt-get").is_none() {
        return Err(Stop::Skipped(
            "the guest's kernel is Debian's, and there is no apt-get".into(),
        ));
    }
    let listing = job.run("apt-cache", Command::new("apt-cache").args(["depends", CURRENT]))?;
    let Some(package) = image_package(&listing) else {
        let why = format!("apt knows no {CURRENT}: sudo apt-get update; it has to be Debian");
        return Err(Stop::Skipped(why));
    };
    let folder = super::cache().join(package);
    packages::once(&folder, |to| {
        let tree = to.join("tree");
        fs::create_dir(&tree)?;
        packages::unpack(package, &tree, job)?;
        let image = only(&tree.join("boot"), |name| name.starts_with("vmlinuz-"))?;
        unpack_image(&image, &to.join(IMAGE), job)?;
        take_modules(&tree, &to.join(LOADED), job)?;
        Ok(fs::remove_dir_all(tree)?)
    })?;
    Ok(folder)
}

/// The kernel's package in what `apt-cache depends` prints.
fn image_package(listing: &str) -> Option<&str> {
    let mut depends = listing.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    depends.find(|package| package.starts_with("linux-image-"))
}

/// Takes the kernel out of the image that would unpack itself: emulated, that takes longer than all else that
/// it does to boot.
fn unpack_image(image: &Path, to: &Path, job: &mut Job) -> Result<(), Stop> {
    let bytes = fs::read(image)?;
    let Some(start) = bytes.windows(XZ.len()).position(|window| window == XZ) else {
        // Not packed by xz: QEMU boots it as it is.
        return Ok(fs::rename(image, to)?);
    };
    let packed = to.with_extension("xz");
    fs::write(&packed, &bytes[start..])?;
    job.run("xz", Command::new("xz").args(["--decompress", "--single-stream"]).arg(&packed))?;
    Ok(())
}

fn take_modules(tree: &Path, to: &Path, job: &mut Job) -> Result<(), Stop> {
    let version = only(&tree.join("lib/modules"), |_| true)?;
    let version = version.file_name().expect("it was listed");
    job.run("depmod", Command::new("/sbin/depmod").arg("-b").arg(tree).arg(version))?;
    let mut probe = Command::new("/sbin/modprobe");
    probe.arg("-d").arg(tree).arg("-S").arg(version).args(["--show-depends", "--all"]);
    let listing = job.run("modprobe", probe.args(MODULES))?;
    fs::create_dir(to)?;
    for (number, module) in load_order(&listing).into_iter().enumerate() {
        let name = module.file_name().expect("a module is a file").to_string_lossy();
        fs::copy(module, to.join(format!("{number:02}-{name}")))?;
    }
    Ok(())
}

/// The modules in what `modprobe --show-depends` prints, each once.
fn load_order(listing: &str) -> Vec<&Path> {
    let lines = listing.lines().filter_map(|line| line.strip_prefix("insmod "));
    let mut order: Vec<_> =
        lines.filter_map(|line| line.split(' ').next()).map(Path::new).collect();
    let mut seen = BTreeSet::new();
    order.retain(|module| seen.insert(*module));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_the_current_one_depends_on() {
        let listing =
            "linux-image-amd64\n  PreDepends: dpkg\n  Depends: linux-image-6.1.0-56-amd64\n";
        assert_eq!(image_package(listing), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(image_package("N: Unable to locate package linux-image-amd64\n"), None);
    }

    #[test]
    fn modules_are_loaded_once_in_the_order_given_and_without_options() {
        let listing = "insmod /t/ib_core.ko \nbuiltin crc32\ninsmod /t/ib_uverbs.ko \n\
                       insmod /t/ib_core.ko \ninsmod /t/dummy.ko numdummies=0\n";
        let order = load_order(listing);
        let expected = ["/t/ib_core.ko", "/t/ib_uverbs.ko", "/t/dummy.ko"];
        assert_eq!(order, expected.map(Path::new));
    }
}
