//! What a machine's own kernel is used by, tried in a guest, which is no matter to anybody: devices are made beside others,
//! and nothing is left.

use super::Row;
use crate::guest::tasks::{End, Results, Task};

/// The list that is run in this way.
pub const LIST: &str = "machine";

/// What is tried. The first time lo has a device, and can't have another one.
pub const TRIED: [Row; 2] = [
    (
        "a machine whose lo is in use",
        60,
        "! machine.sh machine && ! ls -d /sys/class/*/cqverify*",
        refused,
    ),
    (
        "a machine's devices",
        60,
        "set -o pipefail; rdma link delete \"$VERBS_DEVICE\" && machine.sh machine | sed 's/^/| /' && \
         ! ls -d /sys/class/*/cqverify* && ! pidof sleep",
        ran,
    ),
];

/// The tasks, and how each ends. Each shell is that of the guest: another one runs them on a machine.
const TASKS: [(&str, u32, &str, End); 4] = [
    (
        "by name",
        30,
        "cqperf --transport verbs --device \"$VERBS_DEVICE\" pingpong --iters 50",
        End::Status(0),
    ),
    (
        "by address",
        30,
        "exec cm --include-ignored connections_of_a_device_share_a_context",
        End::Status(0),
    ),
    ("leaves a process behind", 10, "sleep 600 &", End::Status(0)),
    ("is over its time", 1, "sleep 600", End::Killed),
];

/// The list.
pub fn tasks() -> Vec<Task> {
    let task = |(name, seconds, command, _): (&str, _, &str, _)| Task {
        name: name.to_owned(),
        seconds,
        command: command.to_owned(),
    };
    TASKS.map(task).into()
}

/// It was said why, and no task has begun.
fn refused(output: &str) -> Result<String, String> {
    let refused = output.contains("File exists") && !output.contains("== ");
    if refused { Ok("refused".into()) } else { Err("lo was not in use".into()) }
}

/// Each task ended as it should.
fn ran(output: &str) -> Result<String, String> {
    let mut results = Results::default();
    for line in output.lines() {
        results.line(line.strip_prefix("| ").unwrap_or(line));
    }
    let (ran, over) = results.finish();
    let ends = ran.iter().map(|ran| (ran.name.as_str(), ran.end));
    if over && ends.eq(TASKS.map(|(name, _, _, end)| (name, end))) {
        Ok("made and removed".into())
    } else {
        Err("its tasks did not end as they should".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_must_end_as_it_should() {
        let ended = |(name, _, _, end): (&str, _, _, _)| {
            let status = if end == End::Killed { 137 } else { 0 };
            format!("| == begin {name}\n| said\n| \n| == end {name} {status}\n")
        };
        let said = TASKS.map(ended).concat() + "| == over\n";
        assert!(ran(&said).is_ok());
        for (right, wrong) in [("over", "ove"), ("name 0", "name 1"), ("137", "0")] {
            assert!(ran(&said.replace(right, wrong)).is_err(), "{right}");
        }
        assert!(refused("error: File exists").is_ok() && refused("").is_err());
        assert!(refused("error: File exists\n== begin it").is_err());
    }
}
