//! Depends on the package that says what to install where something is missing. `rdma-sys` would fail with
//! less to say; cargo builds first what most others wait for, and as this script waits for that package,
//! which the library waits for, that is ahead of `rdma-sys`.

use transport_verbs_requirements as _;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
