//! Tests on processors that are not this machine's, emulated by QEMU one program at a time: weaker orderings in the code
//! that the compiler makes, words of 32 bits, the other order of bytes.

use std::process::Command;

use super::{libtest, toolchain};
use crate::run::{Job, Stop, cargo};

/// The emulators, and linkers with a C library for each.
pub const PACKAGES: &[&str] = &[
    "qemu-user",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "gcc-arm-linux-gnueabihf",
    "libc6-dev-armhf-cross",
    "gcc-s390x-linux-gnu",
    "libc6-dev-s390x-cross",
];

/// A processor.
struct Processor {
    /// As Rust has it, GCC and QEMU.
    target: &'static str,
    gcc: &'static str,
    qemu: &'static str,
    /// Flags for its compiler.
    flags: &'static str,
    /// What runs there, and what beside it with `--long`.
    tests: &'static [Tests],
    more: &'static [Tests],
}

/// Programs of tests, in cargo's words, and which tests of theirs: all, where none is named.
type Tests = (&'static str, &'static [&'static str]);

const ENGINE: &str =
    "-p cq-core -p cq-verbs -p cq-testing --test engine --test verbs --test testing";
const ALL: Tests = (ENGINE, &[]);
/// With what is off by default, too.
const MORE_THAN_ALL: Tests = (
    "-p cq-core -p cq-verbs -p cq-testing --features cq-verbs/defmt --test engine --test verbs --test testing --test defmt",
    &[],
);
/// What has a layout or an order of bytes. QEMU's eventfd(2) has the wrong one.
const LAYOUTS: Tests = (
    ENGINE,
    &["queue::", "wc::", "wr::", "setup::", "exchange::", "rpma::", "counters::", "texts::"],
);
/// Tests of the device that start no other process, since QEMU does not start one.
const DEVICE: Tests = (
    "-p transport-rxe-loop --test device",
    &["posting::", "srq::", "states::", "windows::", "regions::", "resize::", "overrun::"],
);
/// The same, which take longer.
const MORE_OF_THE_DEVICE: Tests = (
    "-p transport-rxe-loop --test device",
    &["datagrams::", "faults::", "gids::", "inflight::", "objects::", "rpma::", "threads"],
);

const PROCESSORS: [Processor; 3] = [
    Processor {
        target: "aarch64-unknown-linux-gnu",
        gcc: "aarch64-linux-gnu",
        qemu: "aarch64",
        flags: "",
        tests: &[ALL, DEVICE],
        more: &[MORE_OF_THE_DEVICE],
    },
    Processor {
        target: "armv7-unknown-linux-gnueabihf",
        gcc: "arm-linux-gnueabihf",
        qemu: "arm",
        // As for the smaller ones, which have no 64-bit atomics.
        flags: "--cfg=cq_core_word32",
        tests: &[MORE_THAN_ALL],
        more: &[],
    },
    Processor {
        target: "s390x-unknown-linux-gnu",
        gcc: "s390x-linux-gnu",
        qemu: "s390x",
        flags: "",
        tests: &[LAYOUTS],
        more: &[],
    },
];

/// How many cases a property has on a commit: each takes tens of times as long as on this machine.
const CASES: &str = "16";

/// Builds the tests for each processor, and runs them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::targets(job, &PROCESSORS.each_ref().map(|processor| processor.target))?;
    let mut counts = Vec::new();
    for processor in &PROCESSORS {
        let more = if job.long { processor.more } else { &[] };
        let mut passed = 0;
        for tests in processor.tests.iter().chain(more) {
            let what = format!("cargo test {} on {}", tests.0, processor.qemu);
            passed += libtest::run(&what, &mut processor.cargo(tests, job.long), job)?;
        }
        counts.push(format!("{passed} on {}", processor.qemu));
    }
    Ok(format!("tests: {}", counts.join(", ")))
}

impl Processor {
    /// The cargo that builds such a program and has the emulator run it.
    fn cargo(&self, &(programs, tests): &Tests, long: bool) -> Command {
        let Self { target, gcc, qemu, flags, .. } = self;
        let mut cargo = cargo(&["test", "--locked", "--target", target]);
        cargo.args(programs.split_whitespace()).arg("--").args(tests);
        let of_target = target.to_uppercase().replace('-', "_");
        // An example uses io-uring, which is built with it and not run.
        for (name, value) in [
            ("LINKER", format!("{gcc}-gcc")),
            ("RUNNER", format!("qemu-{qemu} -L /usr/{gcc}")),
            ("RUSTFLAGS", format!("--cfg=io_uring_skip_arch_check {flags}")),
        ] {
            cargo.env(format!("CARGO_TARGET_{of_target}_{name}"), value);
        }
        if !long {
            cargo.env("PROPTEST_CASES", CASES);
        }
        cargo.env("CARGO_TARGET_DIR", "target/processors").env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo
    }
}
