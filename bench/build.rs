//! Compiles the peer that is C, if the feature `dpdk` asks for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    const SHIM: &str = "benches/common/peers/rte_ring.c";
    println!("cargo::rerun-if-changed={SHIM}");
    let Ok(dpdk) = pkg_config::Config::new().cargo_metadata(false).probe("libdpdk") else {
        let help = "install libdpdk-dev and pkg-config, or leave the feature out";
        println!("cargo::error=the feature `dpdk` needs DPDK's libraries and headers: {help}");
        return;
    };
    // DPDK's headers are not clean of warnings.
    let mut shim = cc::Build::new();
    shim.file(SHIM).includes(&dpdk.include_paths).warnings(false).compile("cq_bench_rte_ring");
    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    println!("cargo::rustc-link-lib=rte_ring");
}
