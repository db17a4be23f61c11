//! Counts instructions: runs this program under callgrind and reads what that wrote.

use std::collections::HashMap;
use std::process::{Command, ExitStatus};
use std::{env, fs, io, process};

/// How many instructions each function took in all of its calls, with what it called.
pub type Costs = HashMap<String, u64>;

/// Why instructions can't be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// There is no valgrind, or nowhere to write.
    #[error("cannot run valgrind ({0}): install it, and say in TMPDIR where it can write")]
    System(#[from] io::Error),
    /// The program under it, or callgrind itself.
    #[error("the program failed under callgrind: {0}")]
    Failed(ExitStatus),
}

/// Runs this program with `argument` under callgrind. The costs are those of each part that a call of
/// `divider` begins.
pub fn count(argument: &str, divider: &str) -> Result<Vec<Costs>, CountError> {
    let file = env::temp_dir().join(format!("poll_cost.{}", process::id()));
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--compress-strings=no", "--compress-pos=no"])
        .args(["--combine-dumps=yes", &format!("--dump-before={divider}")])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(env::current_exe()?)
        .arg(argument)
        .status()?;
    if !status.success() {
        return Err(CountError::Failed(status));
    }
    let written = fs::read_to_string(&file)?;
    fs::remove_file(&file)?;
    // The first is what came before any divider, the head of the file before it.
    Ok(written.split("\npart: ").skip(2).map(inclusive).collect())
}

/// Sums up the calls. Each is told by three lines: `cfn=` with the name, `calls=`, and one whose second
/// number is the cost.
fn inclusive(part: &str) -> Costs {
    let mut costs = Costs::new();
    let mut callee = "";
    let mut lines = part.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if line.starts_with("calls=") {
            let cost = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
            if let Some(cost) = cost {
                *costs.entry(callee.to_owned()).or_default() += cost;
            }
        }
    }
    costs
}
