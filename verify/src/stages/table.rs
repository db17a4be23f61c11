//! The table of stages.

use super::stage::{Machine, Shared, Stage};
use super::{
    abi, api, bare_metal, conformance, deny, differential, doc, features, fuzz, layers, layout,
    libibverbs, loom, miri, mutate, package, planted, positions, processors, readme, sanitizers,
    soft_roce, style, test, verbs, workflow,
};
use crate::guest;

/// All stages, in the order in which they start: what others wait for, and then what takes longest.
pub static STAGES: [Stage; 27] = [
    Stage::new("fmt", 15, style::fmt)
        .shows("every file is formatted by rustfmt")
        .why("differences of format hide the others")
        .of(&["*.rs", ".rustfmt.toml"]).quick().on_commits(),
    Stage::new("layers", 5, layers::run)
        .shows("in verify/layers.toml's crates a module uses only those below it")
        .why("a dependency upwards joins two layers")
        .misses("paths by `super`; what an imported name leads to")
        .of(&["*.rs", "verify/layers.toml"]).quick(),
    Stage::new("layout", 60, layout::run)
        .shows("the C ABI has the structures, constants and symbols of libibverbs and librdmacm")
        .why("a wrong offset silently corrupts programs")
        .shares(&[Shared::Checker])
        .packages(&[layout::PACKAGES])
        .of(&["transport-rxe-loop/", "cq-core/verbs/"]),
    Stage::new("verbs", 270, verbs::run)
        .shows("tests that need libibverbs pass, also on the loopback")
        .why("the binding is tested without a device")
        .shares(&[Shared::Verbs])
        .packages(&[libibverbs::PACKAGES])
        .of(&["transport-verbs/", "transport-rxe-loop/", "cq-core/", "bench/", "verify/src/"]),
    Stage::new("loom", 300, loom::run)
        .shows("models of the engine's protocols hold in every interleaving, and fail when weakened")
        .why("no test on x86 detects a missing memory ordering")
        .long("three preemptions in large models, too")
        .shares(&[Shared::Loom])
        .of(&["cq-core/", "transport-rxe-loop/src/protocol", "verify/loom/"]).on_commits(),
    Stage::new("test", 580, test::run)
        .shows("unit, integration and documentation tests pass")
        .why("the suite can't kill processes, corrupt memory or fail system calls")
        .long("thousands of kills, corrupted fabrics and random inputs, also without debug assertions")
        .shares(&[Shared::Debug])
        .needs("for some tests root, namespaces or ptrace(2): those left out are counted")
        .of(&["cq-core/", "transport-rxe-loop/", "bench/", "verify/", ".config/", ".github/", "README.md"]).quick_in_part().on_commits().on(&[Machine::X86, Machine::Arm]),
    Stage::new("soft-roce", 390, soft_roce::run)
        .shows("transport-verbs works on Linux' Soft-RoCE driver, on this machine's kernel where that has it (with `--install`, by root) or else in QEMU, and between two hosts; connecting by addresses differs from the loopback only as listed")
        .why("only an independent driver detects mistakes that loopback and model share")
        .shares(&[Shared::Guest])
        .packages(&[libibverbs::PACKAGES, guest::PACKAGES, soft_roce::PACKAGES])
        .of(&["transport-", "cq-core/", "bench/", "verify/src/"])
        .on(&[Machine::Kernel]).on_commits(),
    Stage::new("mutate", 150, mutate::run)
        .shows("each control, a wrong step of a protocol, fails its loom models")
        .why("a check that detects nothing looks like one that passes")
        .misses("without `--long`, what no control weakens")
        .long("each mutant of engine and device fails a check, or has a listed reason")
        .shares(&[Shared::Mutate])
        .of(&["cq-core/", "transport-rxe-loop/src/", "verify/loom/", "verify/mutate", "verify/mutants.toml", "verify/controls.toml"]),
    Stage::new("clippy", 180, style::clippy)
        .shows("no target has a warning")
        .why("lints require documented unsafe blocks and the minimum Rust version")
        .shares(&[Shared::Verbs])
        .packages(&[libibverbs::PACKAGES])
        .of(&["*.rs", "*Cargo.toml", ".clippy.toml"]).quick().on_commits(),
    Stage::new("conformance", 125, conformance::run)
        .shows("every transport follows each rule of the contract, except for listed deviations")
        .why("the suite is the specification: every rule on every transport, including a real driver")
        .shares(&[Shared::Guest, Shared::Checker])
        .of(&["cq-core/", "transport-", "verify/src/", "verify/CONTRACT.md", "verify/DEVIATIONS.md", "README.md"]),
    Stage::new("bare-metal", 200, bare_metal::run)
        .shows("firmware libraries compile for Cortex-M, RISC-V and bare 64-bit targets, without `alloc` from core alone; the example firmware runs on Cortex-M and RISC-V in QEMU, also under embassy and RTIC, and hangs if it can lose a wake-up")
        .why("std, a 64-bit atomic or a missed interrupt excludes firmware")
        .shares(&[Shared::BareMetal])
        .packages(&[bare_metal::PACKAGES])
        .of(&["cq-core/", "bench/firmware/"]).on_commits(),
    Stage::new("abi", 150, abi::run)
        .shows("programs run unchanged on the loopback: ibverbs-utils, perftest, pyverbs' tests, rdmacm-utils, qperf, fio, libfabric, uDAPL, UCX, Open MPI, every entry of librpma")
        .why("programs use verbs in ways that our tests do not")
        .long("tests of five crates, UCX's own over RC and UD, eight ranks of Open MPI, nixl, Mooncake, gloo")
        .shares(&[Shared::Checker])
        .packages(&[abi::PACKAGES])
        .needs("root for the round as nobody, and to mount for what UCX looks for in /dev: what is left out is named")
        .of(&["transport-rxe-loop/", "cq-core/", "verify/src/stages"]),
    Stage::new("package", 100, package::run)
        .shows("a dry run publishes the libraries in order; they build from their packages, with all features; manifests and the tables of features are complete")
        .why("in the workspace the compiler finds every file: there nobody notices a package that lacks one")
        .packages(&[libibverbs::PACKAGES])
        .of(&["*Cargo.toml", "*README.md", "cq-core/", "transport-"]).on_commits(),
    Stage::new("api", 1200, api::run)
        .shows("each library's public API is as in verify/api, breaks nothing without a new minor version, names only listed foreign crates, loses nothing with more features")
        .why("items, auto traits and foreign crates' versions change unnoticed")
        .misses("what is behind a signature; features in pairs")
        .packages(&[libibverbs::PACKAGES])
        .of(&["cq-core/", "transport-", "verify/api/"]).on_commits(),
    Stage::new("features", 150, features::run)
        .shows("each library builds with each of its features alone, with none and with all, by the oldest promised compiler, without a warning")
        .why("programs choose features and compilers that no other build here has")
        .misses("features in pairs")
        .packages(&[libibverbs::PACKAGES])
        .of(&["*Cargo.toml", "cq-core/", "transport-"])
        .on_commits(),
    Stage::new("doc", 110, doc::run)
        .shows("the documentation builds without a warning, by default and as docs.rs renders it; its links and those of all pages resolve; what is read first is short")
        .why("links break when names change")
        .long("that of private modules, too")
        .shares(&[Shared::Verbs])
        .packages(&[libibverbs::PACKAGES])
        .of(&["*.rs", "*.md", "*Cargo.toml", "verify/src/stages/rustdoc.sh"]).quick_in_part().on_commits(),
    Stage::new("readme", 300, readme::run)
        .shows("the README's examples of a terminal and the programs of its tables succeed, and print what it shows")
        .why("they are the first thing that a user tries")
        .long("transport-verbs with libclang from PyPI, as on Debian 13")
        .shares(&[Shared::Debug])
        .packages(&[readme::PACKAGES])
        .of(&["README.md", "transport-", "cq-core/", "bench/"]),
    Stage::new("differential", 40, differential::run)
        .shows("random programs agree on model and loopback, also between processes and through the C ABI")
        .why("random programs find what the suite's cases do not")
        .long("tens of thousands")
        .shares(&[Shared::Checker])
        .of(&["cq-core/", "transport-rxe-loop/", "verify/src/"]),
    Stage::new("miri", 600, miri::run)
        .shows("the engine's tests of queues, raw memory, channels and accounting do nothing undefined")
        .why("neither tests nor models see invalid reads and references")
        .misses("mapped memory, so the device; ppoll(2), level-triggered epoll(7), sockets; rings of millions of slots; compiled code")
        .long("64 seeds; counters, handlers, ends, completions, requests")
        .of(&["cq-core/"]).on_commits(),
    Stage::new("sanitizers", 200, sanitizers::run)
        .shows("no races in engine and device (ThreadSanitizer); the C ABI touches only its own memory and leaks nothing in programs of `abi` (AddressSanitizer, LeakSanitizer)")
        .why("Miri can't run C and most system calls")
        .misses("orderings by fences alone; races between processes; uninitialised reads; tests in which messages race for memory")
        .long("sixteen times the cases of properties; all programs")
        .packages(&[abi::PACKAGES])
        .of(&["cq-core/", "transport-rxe-loop/"]).on_commits(),
    Stage::new("fuzz", 200, fuzz::run)
        .shows("no bytes from a hostile process, peer, option, file or C caller end or hang a program")
        .why("tests have only inputs that somebody thought of")
        .misses("what ten seconds a target do not reach; two hostile processes at once")
        .long("an hour a target")
        .of(&["cq-core/", "transport-rxe-loop/", "verify/fuzz/"]).on_commits(),
    Stage::new("processors", 400, processors::run)
        .shows("the engine's tests pass on 64-bit Arm, and on 32-bit without 64-bit atomics; layouts and byte orders on big-endian s390x; the device's suite on 64-bit Arm")
        .why("a wrong width or byte order is right on x86")
        .misses("weak orderings, if emulated on x86; system calls that QEMU lacks")
        .long("all device tests that QEMU can run")
        .packages(&[processors::PACKAGES])
        .of(&["cq-core/", "transport-rxe-loop/"]),
    Stage::new("positions", 60, positions::run)
        .shows("entries, generations, free slots and releases are right at every wrap, in rings of 1 to 2¹⁶ slots")
        .why("a position wraps once in years")
        .misses("larger rings, which have one test each")
        .long("a hundred times the cases")
        .shares(&[Shared::Debug])
        .of(&["cq-core/src/queue"]),
    Stage::new("deny", 100, deny::run)
        .shows("each dependency is of crates.io, and has a range of versions and a licence that `.cargo/deny.toml` allows; the libraries bring none in two versions")
        .why("an update can bring another licence, or a crate that users of the libraries then compile twice")
        .misses("licences of Debian's libraries")
        .of(&["*Cargo.toml", "Cargo.lock", ".cargo/deny.toml"])
        .quick()
        .on_commits(),
    Stage::new("planted", 5, planted::run)
        .shows("each fault of verify/planted.toml can be planted")
        .why("checks must detect real faults")
        .misses("without `--long`, whether it is found")
        .long("its stage finds each")
        .of(&["*.rs", "*.toml", "*.md"]).quick(),
    Stage::new("workflow", 10, workflow::run)
        .shows("the workflows for GitHub are as its schema has it; a test compares them with this table")
        .why("nobody runs them here")
        .misses("whether they pass there")
        .packages(&[workflow::PACKAGES])
        .of(&[".github/", "verify/src/stages/workflow.rs"])
        .quick(),
    Stage::new("advisories", 60, deny::advisories)
        .shows("no dependency is vulnerable or yanked; none that a manifest here names is unsound or unmaintained")
        .why("programs that use the libraries have their dependencies")
        .by_name_only("advisories come without a commit, from a database on GitHub")
        .of(&["Cargo.lock"])
        .always(),
];
