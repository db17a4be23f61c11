//! Compiles the peer that is C, if the feature `dpdk` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    const SHIM: &str = "benches/common/peers/rte_ring.c";
    println!("cargo:rerun-if-changed={SHIM}");
    let found = pkg_config::Config::new().cargo_metadata(false).probe("libdpdk");
    let dpdk = found.unwrap_or_else(|_| {
        panic!(
            "the feature `dpdk` needs DPDK and its headers: install libdpdk-dev, or leave it out"
        )
    });
    cc::Build::new()
        .file(SHIM)
        .includes(&dpdk.include_paths)
        // DPDK's headers are not clean of warnings.
        .warnings(false)
        .compile("cq_bench_rte_ring");
    for path in &dpdk.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    println!("cargo:rustc-link-lib=rte_ring");
}
