//! A process that is going to be killed, or execs another program, and that now and then opens and closes the
//! fabric's file.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use super::super::work::Far;
use super::*;

fn orders() -> Receiver<String> {
    let (giver, orders) = channel();
    thread::spawn(move || while giver.send(order()).is_ok() {});
    orders
}

#[test]
#[ignore = "a process of the storm"]
fn suffers() {
    die_with_parent();
    let mut chance = Chance::new(std::process::id().into());
    let mut context = open();
    let pd = context.alloc_pd().unwrap();
    let mut far = Far::new(&context, &pd).unwrap();
    let orders = orders();
    loop {
        for order in orders.try_iter() {
            if order == RUN_ANOTHER {
                let failed = Command::new("true").exec();
                panic!("{failed}");
            }
            far.obey(&order).unwrap();
        }
        if chance.one_in(16) {
            // Closing the file drops all record locks of the process on it.
            drop(File::open(context.device.shm.path().file()).unwrap());
        }
        far.work(&mut chance).unwrap();
        if chance.one_in(3) {
            Near::new(&context, &pd).unwrap().work(&mut chance).unwrap();
        }
        while context.take_async_event().unwrap().is_some() {}
        thread::yield_now();
    }
}
