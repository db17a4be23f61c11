//! A C program makes calls in any order, with handles of objects that are destroyed, of other kinds and contexts, with numbers
//! that were never a handle, and with any sizes, counts, lists, masks and attributes. What C takes for memory is memory.
//! Every call must return, with a result that its manual page has; a copy touches registered memory alone; and whatever was
//! made can be destroyed, after which it is nobody's handle.
#![no_main]

mod cm;
mod queues;
mod structs;
mod table;
mod verbs;

use std::process;
use std::sync::Once;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rxe_loop_verbs::fuzzing::*;

use crate::table::{Kind, Table};

#[derive(Arbitrary, Debug)]
enum Step {
    Verb(verbs::Call),
    Queue(queues::Call),
    Cm(cm::Call),
}

/// More calls find nothing that fewer do not.
const MOST: usize = 64;

fuzz_target!(|steps: Vec<Step>| {
    static FABRIC: Once = Once::new();
    FABRIC.call_once(|| {
        let name = format!("c-calls-{}", process::id());
        // SAFETY: nothing of this process has looked at it yet.
        unsafe { std::env::set_var("RXE_LOOP_FABRIC", name) };
    });
    let mut table = Table::default();
    let device = table.device();
    // SAFETY: a device.
    let context = unsafe { ibv_open_device(device) };
    table.keep(Kind::Context, context);
    queues::furnish(&mut table, context);
    for step in steps.into_iter().take(MOST) {
        match step {
            Step::Verb(call) => call.run(&mut table),
            Step::Queue(call) => call.run(&mut table),
            Step::Cm(call) => call.run(&mut table),
        }
    }
    table.end();
});
