//! The workflows that run the stages on GitHub's machines: made from the table of stages, and checked by GitHub's schema.

use std::fs;
use std::process::Command;

use crate::packages::{self, PYTHON};
use crate::run::{Job, Stop, root};

/// What reads the schema.
pub const PACKAGES: &[&str] = &["python3-pip"];
/// By version: it brings the schema.
const CHECKER: &str = "check-jsonschema==0.39.0";
/// Where the workflows are, relative to [`root`].
const FOLDER: &str = ".github/workflows";

/// Has each of them judged.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let folder = root().join("target/wheels").join(CHECKER.replace("==", "-"));
    packages::once(&folder, |to| {
        let mut pip = Command::new(PYTHON);
        pip.args("-m pip install --quiet --only-binary :all: --target".split(' '));
        job.run("pip install", pip.arg(to).arg(CHECKER)).map(drop)
    })
    .map_err(|stop| Stop::Skipped(format!("{stop}; PyPI's {CHECKER} can't be had")))?;
    let files = fs::read_dir(root().join(FOLDER))?.collect::<Result<Vec<_>, _>>()?;
    let mut check = Command::new(PYTHON);
    check.args("-m check_jsonschema --builtin-schema vendor.github-workflows".split(' '));
    check.args(files.iter().map(fs::DirEntry::path)).env("PYTHONPATH", folder);
    job.run("check-jsonschema", &mut check)?;
    Ok(format!("{} workflows are as GitHub's schema has it", files.len()))
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;
    use crate::stages::stage::{Machine, When};
    use crate::stages::{STAGES, Stage};

    /// A workflow: its file, and what it has before its jobs.
    struct Workflow {
        file: &'static str,
        when: When,
        head: &'static str,
    }

    const WORKFLOWS: [Workflow; 2] = [
        Workflow {
            file: "checks.yml",
            when: When::Commit,
            head: "name: checks\non:\n  push:\n    branches: [main]\n  pull_request:\n",
        },
        Workflow {
            file: "nightly.yml",
            when: When::Night,
            head: "name: nightly\non:\n  schedule:\n    - cron: '17 2 * * *'\n  workflow_dispatch:\n",
        },
    ];

    const MADE: &str = "# Made from the table in verify/src/stages/table.rs: `UPDATE_WORKFLOWS=1 cargo test -p verify workflow`.\n";
    /// No step needs more. A newer commit of the same pull request ends the jobs of the one before it.
    const COMMON: &str = "permissions:\n  contents: read\nconcurrency:\n  group: ${{ github.workflow }}-${{ github.ref }}\n  \
                          cancel-in-progress: ${{ github.event_name == 'pull_request' }}\njobs:\n";
    /// The image has the compiler by rustup, a C compiler, and nothing else that stages need. Processes of the device share
    /// memory, and tests make namespaces.
    const CONTAINER: &str = "--privileged --shm-size 2g";
    /// Modules of the machine's kernel, their devices, and the network that they are in, which is that of process 1.
    const KERNEL: &str = " --pid host --volume /dev:/dev --volume /lib/modules:/lib/modules:ro";

    /// How many minutes a job may take beside the stage's limit: to fetch the image, and to build the checker.
    const BESIDE: u64 = 15;

    fn job(stage: &Stage, machine: Machine) -> String {
        let (suffix, runner, more) = match machine {
            Machine::X86 => ("", "ubuntu-24.04", ""),
            Machine::Arm => ("-arm", "ubuntu-24.04-arm", ""),
            Machine::Kernel => ("", "ubuntu-24.04", KERNEL),
        };
        let (name, shows) = (stage.name, stage.shows);
        let minutes = stage.limit(false, true).as_secs().div_ceil(60) + BESIDE;
        format!(
            "  # {shows}\n  {name}{suffix}:\n    runs-on: {runner}\n    timeout-minutes: {minutes}\n    container:\n      \
             image: rust:1-bookworm\n      options: {CONTAINER}{more}\n    steps:\n      - uses: actions/checkout@v4\n      - run: {}\n",
            stage.command()
        )
    }

    #[test]
    fn each_workflow_is_what_the_table_says() {
        for Workflow { file, when, head } in WORKFLOWS {
            let stages = STAGES.iter().filter(|it| [when, When::Always].contains(&it.when));
            let jobs =
                stages.flat_map(|stage| stage.machines.iter().map(|machine| job(stage, *machine)));
            let text = format!("{MADE}{head}{COMMON}{}", jobs.collect::<String>());
            let path = root().join(FOLDER).join(file);
            if env::var_os("UPDATE_WORKFLOWS").is_some() {
                fs::create_dir_all(root().join(FOLDER)).unwrap();
                fs::write(&path, &text).unwrap();
            }
            assert!(fs::read_to_string(path).unwrap() == text, "run with UPDATE_WORKFLOWS=1");
        }
        assert_eq!(fs::read_dir(root().join(FOLDER)).unwrap().count(), WORKFLOWS.len());
    }
}
