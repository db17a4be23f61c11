//! Links a program by the script of cortex-m-rt or riscv-rt, for the memory of the example firmware.

use std::env;

fn main() {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-search={folder}/../../cq-core/examples/firmware/memory/{arch}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
}
