//! Every declaration, shown to a C compiler that reads `<infiniband/verbs.h>`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use super::declare::{Field, Grows, Layout};
use super::{attributes, context, device, extended, numbers, objects};
use super::{ibv_sge, ibv_wc};

const HEADERS: &str = "#include <stddef.h>\n#include <infiniband/verbs.h>\n";

/// cq-core's, which has their fields as constants of its own.
const OF_CQ_CORE: &[Layout] =
    &[whole::<ibv_wc>("struct ibv_wc"), whole::<ibv_sge>("struct ibv_sge")];

const LAYOUTS: [&[Layout]; 6] = [
    attributes::LAYOUTS,
    context::LAYOUTS,
    device::LAYOUTS,
    extended::LAYOUTS,
    objects::LAYOUTS,
    OF_CQ_CORE,
];

const fn whole<T>(c: &'static str) -> Layout {
    Layout { c, size: size_of::<T>(), align: align_of::<T>(), grows: Grows::Nowhere, fields: &[] }
}

/// Something that C must agree to: an expression and its value here.
type Claim = (String, i128);

fn of_layout(layout: &Layout) -> Vec<Claim> {
    let c = layout.c;
    let mut claims = vec![(format!("_Alignof({c})"), layout.align as i128)];
    if layout.grows == Grows::Nowhere {
        claims.push((format!("sizeof({c})"), layout.size as i128));
    }
    let named = layout.fields.iter().filter(|field| !field.name.starts_with("padding"));
    claims.extend(named.flat_map(|field| of_field(layout, field)));
    claims
}

fn of_field(layout: &Layout, field: &Field) -> [Claim; 2] {
    let (c, name) = (layout.c, field.name.trim_start_matches("r#"));
    let place = match layout.grows {
        // Counted from the end, which stays.
        Grows::AtFront => {
            (format!("sizeof({c}) - offsetof({c}, {name})"), layout.size - field.offset)
        }
        Grows::Nowhere | Grows::AtEnd => (format!("offsetof({c}, {name})"), field.offset),
    };
    let size = (format!("sizeof((({c} *)0)->{name})"), field.size);
    [place, size].map(|(what, value)| (what, value as i128))
}

fn claims() -> Vec<Claim> {
    let layouts = LAYOUTS.iter().copied().flatten().flat_map(of_layout);
    let numbers = numbers::NUMBERS.iter().map(|&(name, value)| (name.to_owned(), value));
    layouts.chain(numbers).collect()
}

/// A C program that compiles only if every claim is true there.
fn program(claims: &[Claim]) -> String {
    let mut text = HEADERS.to_owned();
    for (what, value) in claims {
        writeln!(text, "_Static_assert({what} == {value}, \"{what} is not {value}\");").unwrap();
    }
    text
}

fn compile(program: &str) -> Output {
    let mut compiler = Command::new("cc")
        .args(["-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler called cc");
    compiler.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    compiler.wait_with_output().unwrap()
}

#[test]
#[ignore = "needs libibverbs-dev: cargo verify layout runs it"]
fn c01_c02_layouts_and_numbers_are_those_of_the_c_header() {
    let claims = claims();
    let checked = compile(&program(&claims));
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    println!("compared {} sizes, offsets and numbers", claims.len());
}

/// Bytes between fields would be left as they happen to be, and programs write and compare whole structures.
#[test]
fn what_programs_are_given_whole_has_no_bytes_beside_its_fields() {
    const GIVEN: [&str; 12] = [
        "ibv_ah_attr",
        "ibv_async_event",
        "ibv_device_attr",
        "ibv_device_attr_ex",
        "ibv_gid_entry",
        "ibv_global_route",
        "ibv_odp_caps",
        "ibv_port_attr",
        "ibv_qp_attr",
        "ibv_qp_init_attr",
        "ibv_rss_caps",
        "ibv_srq_attr",
    ];
    for name in GIVEN {
        let is_it = |layout: &&Layout| layout.c.strip_prefix("struct ") == Some(name);
        let Layout { size, fields, .. } =
            LAYOUTS.iter().copied().flatten().find(is_it).expect("it is declared");
        assert_eq!(fields.iter().map(|field| field.size).sum::<usize>(), *size, "{name}");
    }
}

#[test]
#[ignore = "needs libibverbs-dev: cargo verify layout runs it"]
fn every_claim_that_is_wrong_is_found() {
    let wrong: Vec<Claim> = claims().into_iter().map(|(what, value)| (what, value + 1)).collect();
    let checked = compile(&program(&wrong));
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(!checked.status.success());
    for (what, value) in wrong {
        assert!(said.contains(&format!("\"{what} is not {value}\"")), "nobody misses {what}");
    }
}
