//! The program in PID namespaces: a process that it has no pid for, and a /proc that has other processes at its pids.

use super::actor::{Actor, say};
use super::name_space::Pids;
use super::{named, start};

#[test]
#[ignore = "needs PID namespaces"]
fn a_process_of_another_pid_namespace_is_shown_without_a_pid() {
    let fabric = named("pids");
    let sitter = start("sits", &fabric);
    assert_eq!(sitter.hear(), "here");
    let cqtop = |arguments: &[&str]| {
        let mut command = Pids::First.command(env!("CARGO_BIN_EXE_cqtop"));
        let output = command.arg(&fabric).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let seen: serde_json::Value = serde_json::from_str(&cqtop(&["--once", "--json"])).unwrap();
    let process = &seen["processes"][0];
    for unknown in ["pid", "last_pid", "name", "command"] {
        assert!(process[unknown].is_null(), "{process}");
    }
    assert_eq!((&process["is_alive"], &process["run_state"]), (&true.into(), &"unknown".into()));
    let shown = cqtop(&["--once"]);
    assert!(shown.contains("unknown"), "{shown}");
}

/// Says the command line of this process, as /proc has it.
#[test]
#[ignore = "a process of another test"]
fn looks_at_itself() {
    let seen = cqtop::proc::look(std::process::id() as i32);
    say(seen.map_or("nothing".to_owned(), |seen| seen.command));
}

#[test]
#[ignore = "needs PID namespaces"]
fn a_proc_of_another_pid_namespace_is_not_believed() {
    let look = |place: Pids| {
        let test = "pids::looks_at_itself";
        Actor::start_by(place.of_this_binary(), test, &[]).hear()
    };
    assert!(look(Pids::First).contains("looks_at_itself"));
    assert_eq!(look(Pids::Unmounted), "nothing");
}
