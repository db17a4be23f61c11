//! Links the program by the script of cortex-m-rt or riscv-rt, which includes the `memory.x` of the architecture.

use std::env;

fn main() {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-search={folder}/memory/{arch}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rerun-if-changed=memory");
}
