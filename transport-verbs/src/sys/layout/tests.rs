//! The layouts and constants of this crate and of cq-core, shown to a C compiler that reads the real
//! headers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use bitflags::Flags;
use cq_core::wc::{WcFlags, WcOpcode, WcStatus};
use cq_verbs::async_event::AsyncEventType;
use cq_verbs::wr::SendFlags;

use super::LAYOUTS;
use crate::cm::EventKind;
use crate::{Access, AtomicCap, PortState, QpAttrMask, QpState, QpType};

const HEADERS: &str =
    "#include <stddef.h>\n#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n";

/// Opcodes that older headers do not have.
const NEWER: [WcOpcode; 2] = [WcOpcode::FLUSH, WcOpcode::ATOMIC_WRITE];

/// Each constant's name in C, and its value here.
fn constants() -> Vec<(String, u32)> {
    let mut all = Vec::new();
    macro_rules! numbers {
        ($type:ident, $prefix:literal) => {
            let known = $type::KNOWN.iter();
            all.extend(known.map(|it| (format!("{}{}", $prefix, it.name().unwrap()), it.0)));
        };
    }
    numbers!(WcStatus, "IBV_WC_");
    numbers!(WcOpcode, "IBV_WC_");
    numbers!(AsyncEventType, "IBV_EVENT_");
    numbers!(PortState, "IBV_PORT_");
    numbers!(AtomicCap, "IBV_ATOMIC_");
    numbers!(QpState, "IBV_QPS_");
    numbers!(EventKind, "RDMA_CM_EVENT_");
    all.extend(flags::<WcFlags>("IBV_WC_"));
    all.extend(flags::<SendFlags>("IBV_SEND_"));
    all.extend(flags::<Access>("IBV_ACCESS_"));
    all.extend(flags::<QpAttrMask>("IBV_QP_"));
    let newer = NEWER.map(|it| format!("IBV_WC_{}", it.name().unwrap()));
    // Flushing came with later headers, too.
    all.retain(|(name, _)| !newer.contains(name) && !name.starts_with("IBV_ACCESS_FLUSH_"));
    for (name, qp_type) in [("RC", QpType::RC), ("UC", QpType::UC), ("UD", QpType::UD)] {
        all.push((format!("IBV_QPT_{name}"), qp_type.0));
    }
    all.push(("IBV_ACCESS_OPTIONAL_RANGE".into(), Access::OPTIONAL.bits()));
    all.push(("IBV_LINK_LAYER_ETHERNET".into(), crate::sys::port::LINK_LAYER_ETHERNET.into()));
    all
}

/// Those of one bit.
fn flags<F: Flags<Bits = u32>>(prefix: &str) -> Vec<(String, u32)> {
    let named = F::FLAGS.iter().filter(|flag| flag.is_named());
    let bits = named.map(|flag| (format!("{prefix}{}", flag.name()), flag.value().bits()));
    bits.filter(|(_, bits)| bits.is_power_of_two()).collect()
}

/// A C program that compiles only if every number is the same there.
fn program() -> String {
    let mut text = HEADERS.to_owned();
    for layout in LAYOUTS {
        for size in layout.size {
            assert_in(&mut text, &format!("sizeof({})", layout.c), *size);
        }
        for (field, offset) in layout.fields {
            assert_in(&mut text, &format!("offsetof({}, {field})", layout.c), *offset);
        }
    }
    for (name, value) in constants() {
        assert_in(&mut text, &name, value as usize);
    }
    text
}

fn assert_in(text: &mut String, what: &str, value: usize) {
    writeln!(text, "_Static_assert({what} == {value}, \"{what} is not {value}\");").unwrap();
}

/// What the C compiler says.
fn compile(program: &str) -> Output {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let arguments = ["-std=gnu11", "-fsyntax-only", "-x", "c", "-"];
    let mut command = Command::new(&compiler);
    command.args(arguments).stdin(Stdio::piped()).stderr(Stdio::piped());
    for name in ["libibverbs", "librdmacm"] {
        let found = pkg_config::Config::new().cargo_metadata(false).probe(name).unwrap();
        command.args(found.include_paths.iter().map(|path| format!("-I{}", path.display())));
    }
    let mut child = command.spawn().expect("a C compiler is needed: name it in CC");
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn c01_c02_layouts_and_constants_are_those_of_the_c_headers() {
    let checked = compile(&program());
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn a_wrong_offset_or_constant_is_found() {
    for (what, value) in [("offsetof(struct ibv_wc, status)", 12), ("IBV_WC_RECV", 127)] {
        let mut wrong = HEADERS.to_owned();
        assert_in(&mut wrong, what, value);
        let checked = compile(&wrong);
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(!checked.status.success() && said.contains("is not"), "{said}");
    }
}
