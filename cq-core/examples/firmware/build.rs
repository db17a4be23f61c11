//! Links the program by the script of cortex-m-rt, which includes `memory.x`.

fn main() {
    println!("cargo::rustc-link-arg=-Tlink.x");
    println!("cargo::rerun-if-changed=memory.x");
}
