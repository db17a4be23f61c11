//! The program, run on fabrics of real processes: with traffic, stopped, killed; on a fabric that is scribbled on; in a
//! terminal.

#[path = "../../tests/inside/actor.rs"]
#[allow(dead_code)]
mod actor;
#[path = "../../tests/inside/chance.rs"]
#[allow(dead_code)]
mod chance;
#[path = "../../tests/inside/name_space.rs"]
mod name_space;
mod pids;
mod processes;
mod terminal;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use transport_rxe_loop::observe::FabricObserver;

use self::actor::{Actor, few_or, until};
use self::chance::Chance;

/// Names the fabric that a process of a test opens.
const FABRIC: &str = "CQTOP_FABRIC";
/// Longer than a snapshot takes, on any machine.
const LONG: Duration = Duration::from_secs(60);

/// Bytes of a fabric. It is small, so that random writes hit something.
const BYTES: usize = 1 << 20;
const SMALL: &str = "queue_pairs=32,completion_queues=32,memory_regions=32,shared_receive_queues=8,channels=32,processes=8,bytes=1M";

/// The name of a fabric of a test.
fn named(test: &str) -> String {
    format!("cqtop-{test}-{}", std::process::id())
}

fn cqtop() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cqtop"));
    command.stdin(Stdio::null()).env_remove("RXE_LOOP_FABRIC");
    command
}

/// What it prints, within a time.
#[track_caller]
fn run(arguments: &[&str]) -> Output {
    let start = Instant::now();
    let output = cqtop().args(arguments).output().unwrap();
    assert!(start.elapsed() < LONG, "{arguments:?} takes {:?}", start.elapsed());
    output
}

/// The only line that it says as it fails.
#[track_caller]
fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[track_caller]
fn json(fabric: &str) -> Value {
    let output = run(&[fabric, "--once", "--json", "-i", "0.2"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// One of the [processes], in the fabric with this name.
fn start(part: &str, fabric: &str) -> Actor {
    start_with(part, fabric, None)
}

/// The same, with one more variable in its environment.
fn start_with(part: &str, fabric: &str, variable: Option<(&str, &str)>) -> Actor {
    let environment: Vec<_> = [(FABRIC, fabric)].into_iter().chain(variable).collect();
    Actor::start(&format!("processes::{part}"), &environment)
}

/// Stops a process.
#[track_caller]
fn stop(actor: &Actor) {
    actor.signal(Signal::STOP);
    until("it is stopped", || actor.is_stopped());
}

#[test]
fn traffic_is_seen_with_its_rates_and_its_process() {
    let fabric = named("traffic");
    let talker = start("talks", &fabric);
    let number = talker.number();
    let seen = json(&fabric);
    assert_eq!((&seen["version"], &seen["fabric"]), (&1.into(), &fabric.as_str().into()));
    let process = &seen["processes"][0];
    assert_eq!(process["pid"], talker.pid());
    assert_eq!(process["is_alive"], true);
    assert!(["running", "sleeping"].contains(&process["run_state"].as_str().unwrap()));
    assert!(process["command"].as_str().unwrap().contains("talks"), "{process}");
    let qp = &seen["queue_pairs"][0];
    assert_eq!(
        (&qp["number"], &qp["state"], &qp["type"]),
        (&number.into(), &"RTS".into(), &"RC".into())
    );
    let cq = &seen["completion_queues"][0];
    let [sends, receives, pushed] =
        [&qp["sends_per_s"], &qp["receives_per_s"], &cq["pushed_per_s"]]
            .map(|it| it.as_f64().unwrap());
    assert!(sends > 100.0 && receives > 100.0, "{sends} {receives}");
    // Two completions for each message, as far as the snapshots are of one instant.
    assert!(pushed > sends && pushed < 3.0 * sends, "{pushed} {sends}");
    assert!(cq["counts"].is_null());
    let text = text(&[&fabric, "--once", "-i", "0.1"]);
    assert!(text.contains(&talker.pid().to_string()) && text.contains("QUEUE PAIRS"), "{text}");
    assert!(text.contains(&format!("{number:#x}")), "{text}");
    talker.finish();
}

#[test]
fn counted_polls_are_seen() {
    let fabric = named("counted");
    let talker = start_with("talks", &fabric, Some(("RXE_LOOP_COUNT", "polls")));
    talker.number();
    let seen = json(&fabric);
    let cq = &seen["completion_queues"][0];
    let number = |field: &str| cq[field].as_f64().unwrap_or_else(|| panic!("{field}: {cq}"));
    assert!(number("polls_per_s") > 100.0 && number("empty_polls_per_s") > 100.0);
    assert!(number("polls_per_s") > number("empty_polls_per_s"));
    assert_eq!(cq["counts"]["high_water"], 2);
    talker.finish();
}

#[test]
fn waits_an_armed_and_an_overrun_queue_are_seen_of_a_stopped_process_and_its_death() {
    let fabric = named("waits");
    let mut waiter = start("waits", &fabric);
    let number = waiter.number();
    // Whoever creates a fabric removes those of dead processes: one that is stopped keeps this one, and recovers nothing.
    let keeper = start("sits", &fabric);
    keeper.hear();
    [&waiter, &keeper].into_iter().for_each(stop);
    let before = fs::read(path(&fabric)).unwrap();
    let seen = json(&fabric);
    assert!(before == fs::read(path(&fabric)).unwrap(), "cqtop has written");
    let process = &seen["processes"][0];
    assert_eq!((&process["run_state"], &process["is_alive"]), (&"stopped".into(), &true.into()));
    assert!(process["halted_s"].as_f64().unwrap() >= 0.2, "as long as it has looked");
    let wait = |kind: &str| {
        let waits = seen["waits"].as_array().unwrap();
        let found = waits.iter().find(|wait| wait["reason"]["kind"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {waits:#?}")).clone()
    };
    let answer = wait("peer_not_ready");
    assert_eq!(answer["subject"]["id"], number);
    assert_eq!(
        (&answer["reason"]["state"], &answer["reason"]["limit"]),
        (&"RESET".into(), &"forever".into())
    );
    assert!(answer["since_s"].as_f64().unwrap() >= 0.2);
    assert_eq!(wait("completion")["reason"]["solicited"], false);
    // A table is filled from anywhere on: its entries come in any order.
    let find = |table: &str, field: &str, value: &str| {
        let mut of = seen[table].as_array().unwrap().iter().filter(|it| it[field] == value);
        let (found, others) = (of.next(), of.count());
        assert_eq!(others, 0, "{value}");
        found.unwrap_or_else(|| panic!("no {value} in {:#}", seen[table]))
    };
    for state in ["ERR", "RESET"] {
        find("queue_pairs", "state", state);
    }
    assert_eq!(find("queue_pairs", "state", "RTS")["oldest"]["wr_id"], 41);
    assert_eq!(find("completion_queues", "health", "overrun")["dropped"], 3);
    find("completion_queues", "armed", "NEXT");
    let shown = text(&[&fabric, "--once", "-i", "0.1"]);
    assert!(shown.contains("(stopped)") && shown.contains("overrun"), "{shown}");

    waiter.kill();
    until("its lock is dropped", || json(&fabric)["processes"][0]["is_alive"] == false);
    let seen = json(&fabric);
    let process = &seen["processes"][0];
    assert_eq!((&process["run_state"], &process["pid"]), (&"dead".into(), &Value::Null));
    let waits = seen["waits"].as_array().unwrap();
    assert_eq!(waits.len(), 1, "{waits:#?}");
    assert_eq!(waits[0]["reason"]["kind"], "recovery");
    keeper.signal(Signal::CONT);
    keeper.finish();
}

#[test]
fn a_consumer_that_perhaps_does_not_poll_is_a_wait_once_nothing_changes() {
    let guess = "perhaps not polled its completions: up to 4";
    for (counts, said) in [(None, guess), (Some(("RXE_LOOP_COUNT", "polls")), "completions: 4")] {
        let fabric = named(&format!("neglected-{}", counts.is_some()));
        let consumer = start_with("neglects", &fabric, counts);
        consumer.hear();
        let seen = text(&[&fabric, "--once", "-i", "0.1"]);
        assert!(seen.contains(said), "{seen}");
        consumer.finish();
    }
}

fn path(fabric: &str) -> PathBuf {
    FabricObserver::open(fabric).unwrap().path()
}

#[test]
fn x04_a_fabric_that_is_scribbled_on_is_shown_in_time() {
    let seed = u64::from(std::process::id()) << 8;
    for seed in seed..seed + few_or(6, 100) {
        eprintln!("seed {seed}");
        let fabric = named(&format!("scribbled-{seed}"));
        let waiter = start("waits", &fabric);
        waiter.number();
        // It runs nothing of what is scribbled.
        stop(&waiter);
        let path = path(&fabric);
        let file = File::options().write(true).open(&path).unwrap();
        let mut chance = Chance::new(seed);
        for round in 0..4 {
            for _ in 0..1 << (4 * round) {
                let bytes = chance.next().to_ne_bytes();
                // Not the header, which is read once.
                let at = 4096 + chance.below(BYTES - 4096 - 8);
                file.write_all_at(&bytes[..1 + chance.below(6)], at as u64).unwrap();
            }
            for format in [&["--json"][..], &[]] {
                let output = run(&[&[&*fabric, "--once", "-i", "0.05"], format].concat());
                assert!(output.status.success(), "{output:?}");
                if format.is_empty() {
                    assert!(String::from_utf8(output.stdout).unwrap().contains("LOCKS"));
                } else {
                    let _: Value = serde_json::from_slice(&output.stdout).unwrap();
                }
            }
        }
        drop(waiter);
        remove(&path);
    }
}

/// Removes a fabric's files, as far as others have not.
fn remove(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    for entry in fs::read_dir(path.parent().unwrap()).unwrap().flatten() {
        if entry.file_name().to_str().is_some_and(|file| file.starts_with(name)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[test]
fn what_can_not_be_shown_is_one_line_and_an_exit_status() {
    let fabric = named("missing");
    let said = refused(&run(&[&fabric, "--once"]), 1);
    assert!(said.contains(&fabric) && said.contains("there is no fabric"), "{said}");
    let named = cqtop().arg("--once").env("RXE_LOOP_FABRIC", &fabric).output().unwrap();
    assert_eq!(refused(&named, 1), said, "the environment names it");
    assert!(refused(&run(&["a b", "--once"]), 1).contains("letters"));
    let talker = start("talks", &fabric);
    talker.number();
    assert!(refused(&run(&[&fabric]), 1).contains("--once"), "there is no terminal");
    talker.finish();
    assert_eq!(run(&["--json"]).status.code(), Some(2));
    let path = format!("/dev/shm/rxe-loop.{}.{fabric}", rustix::process::geteuid().as_raw());
    for (content, why) in
        [(&b"hello"[..], "not a fabric"), (&b"rxe-loop\x01\0\0\0\0\0\0\0"[..], "version 1")]
    {
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let said = refused(&run(&[&fabric, "--once"]), 1);
        assert!(said.contains(why), "{said}");
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn fabrics_are_listed_and_the_help_says_how() {
    let fabric = named("listed");
    let talker = start("talks", &fabric);
    talker.number();
    let list = text(&["--list"]);
    let line = list.lines().find(|line| line.starts_with(&format!("{fabric}:"))).unwrap();
    assert!(line.contains("1 process, 1 queue pair, 1 completion queue,"), "{line}");
    talker.finish();
    let help = text(&["--help"]);
    for word in [
        "Shift-Tab",
        "right",
        "k, j",
        "space",
        "from 0.05 to 3600",
        "RXE_LOOP_FABRIC",
        "--once",
        "--json",
        "--list",
        "Keys:",
        "Exit status",
    ] {
        assert!(help.contains(word), "{help}");
    }
}

#[test]
fn a_terminal_shows_it_until_a_key_ends_it() {
    let fabric = named("terminal");
    let talker = start("talks", &fabric);
    talker.number();
    let mut terminal = terminal::Terminal::run(cqtop().args([&fabric, "-i", "0.05"]));
    terminal.until_shown(&fabric);
    terminal.until_shown(&talker.pid().to_string());
    terminal.press("2");
    terminal.until_shown("oldest send waits");
    // The last process ends, and takes the fabric with it.
    talker.finish();
    terminal.until_shown("has ended");
    terminal.press("q");
    assert!(terminal.ended().success());
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let fabric = named("signal");
    let talker = start("talks", &fabric);
    talker.number();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut terminal = terminal::Terminal::run(cqtop().args([&fabric, "-i", "3600"]));
        terminal.until_shown(&talker.pid().to_string());
        terminal.signal(signal);
        terminal.until_left();
        assert_eq!(terminal.ended().signal(), Some(signal.as_raw()));
    }
    talker.finish();
}
