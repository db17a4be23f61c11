//! Compiles what is C or C++: peers, if the features `dpdk` and `rigtorp` ask for them; the polls that those of transport-verbs are
//! counted beside, if `verbs` does.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk();
    #[cfg(feature = "rigtorp")]
    rigtorp();
    #[cfg(feature = "verbs")]
    verbs();
}

#[cfg(feature = "rigtorp")]
fn rigtorp() {
    const SHIM: &str = "benches/ring/peers/rigtorp.cpp";
    println!("cargo::rerun-if-changed={SHIM}");
    println!("cargo::rerun-if-env-changed=RIGTORP_INCLUDE");
    let Some(include) = std::env::var_os("RIGTORP_INCLUDE") else {
        let help = "clone github.com/rigtorp/SPSCQueue, and name its folder `include`";
        println!("cargo::error=the feature `rigtorp` needs RIGTORP_INCLUDE: {help}");
        return;
    };
    let mut shim = cc::Build::new();
    shim.cpp(true)
        .std("c++17")
        .opt_level(3)
        .include(include)
        .file(SHIM)
        .compile("cq_bench_rigtorp");
}

#[cfg(feature = "verbs")]
fn verbs() {
    const BARE: &str = "src/bin/poll_cost/bare.c";
    println!("cargo::rerun-if-changed={BARE}");
    cc::Build::new().file(BARE).opt_level(2).compile("bench_bare_polls");
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    const SHIM: &str = "benches/ring/peers/rte_ring.c";
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
