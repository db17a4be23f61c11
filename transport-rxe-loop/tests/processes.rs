//! Two processes on one fabric: they connect by their queue pairs' numbers (X1), and each is woken by what the
//! other does (X6).

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{CAPS, FABRIC, open};
use cq_core::cq::CompletionQueue;
use cq_core::transport::Post;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Context, Cq, OpenOptions, QpAttr, QpInit, QueuePair};

const LIMIT: Option<Duration> = Some(Duration::from_secs(30));

/// A queue pair whose completions are slept for.
struct Sleeper {
    qp: QueuePair,
    cq: CompletionQueue<Cq>,
    channel: CompletionChannel,
}

impl Sleeper {
    fn new(context: &Context) -> Self {
        let channel = context.create_channel().unwrap();
        let cq = context.create_cq(16, Some(&channel)).unwrap();
        let mut qp =
            context.alloc_pd().create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
        qp.modify(&QpAttr::init(common::ALL)).unwrap();
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        Self { qp, cq: CompletionQueue::new(cq), channel }
    }

    fn connect(&mut self, peer: u32) {
        self.qp.modify(&QpAttr::rtr(peer)).unwrap();
        self.qp.modify(&QpAttr::rts()).unwrap();
    }

    /// Sleeps until the receive has completed.
    fn sleep(&mut self) {
        let mut room = [Wc::default(); 1];
        let woken = self.cq.wait(&mut room, &mut self.channel, LIMIT).unwrap();
        let done = woken.first().expect("somebody wakes this one").result().unwrap();
        assert_eq!((done.wr_id(), done.is_recv()), (1, true));
    }

    fn send(&mut self) {
        self.qp.post_send(&[SendWr::send(2, &[]).unsignaled()]).unwrap();
    }
}

#[test]
#[ignore = "a process of the other test"]
fn peer() {
    let mut sleeper = Sleeper::new(&open());
    println!("@{}", sleeper.qp.number());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    sleeper.connect(line.trim().parse().unwrap());
    println!("@connected");
    sleeper.sleep();
    sleeper.send();
    // Until the other one has done with it.
    std::io::stdin().read_line(&mut line).unwrap();
}

/// What the child says after a mark, among what a test prints.
fn said(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    let line = lines.find_map(|line| Some(line.unwrap().split_once('@')?.1.to_owned()));
    line.expect("the other process goes on")
}

fn start(fabric: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "peer", "--ignored", "--nocapture"]).env(FABRIC, fabric);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn x06_each_of_two_processes_is_woken_by_the_other() {
    let fabric = format!("test-{}", std::process::id());
    let context = OpenOptions::new().fabric(&fabric).open("loop0").unwrap();
    let mut sleeper = Sleeper::new(&context);
    let mut child = start(&fabric);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut orders = child.stdin.take().unwrap();
    sleeper.connect(said(&mut lines).parse().unwrap());
    writeln!(orders, "{}", sleeper.qp.number()).unwrap();
    assert_eq!(said(&mut lines), "connected");
    sleeper.send();
    sleeper.sleep();
    drop(orders);
    assert!(child.wait().unwrap().success());
}

#[test]
fn x01_another_fabric_sees_nothing_of_it() {
    let named = |name: &str| {
        let name = format!("test-{}-{name}", std::process::id());
        OpenOptions::new().fabric(&name).open("loop0").unwrap()
    };
    let (one, other) = (named("one"), named("other"));
    let (mut a, mut b) = (Sleeper::new(&one), Sleeper::new(&other));
    // Both are the first of their fabric, so that a number means another one in each.
    assert_eq!(a.qp.number(), b.qp.number());
    a.connect(a.qp.number());
    b.connect(a.qp.number());
    a.send();
    a.sleep();
    let mut room = [Wc::default(); 1];
    assert!(b.cq.wait(&mut room, &mut b.channel, Some(Duration::ZERO)).unwrap().is_empty());
}
