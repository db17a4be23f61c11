//! QEMU: one guest, or two on a wire.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;

use super::Guest;
use super::tasks::{self, Ran, Results};
use crate::run::{Job, Stop, root};

/// How long a guest may take for itself, in seconds: it boots in three, and on a busy machine in twenty.
const BOOT: u32 = 120;

/// How long an accelerated one may take for nothing.
const PROBE: u32 = 10;
/// The list with no task.
pub const NOTHING: &str = "nothing";

/// With the host's kernel.
pub const KVM: [&str; 4] = ["-accel", "kvm", "-cpu", "host"];
/// Without.
pub const EMULATED: [&str; 4] = ["-accel", "tcg,thread=multi", "-cpu", "qemu64"];

/// What the kernel is told: a crash or a hang in it ends the machine, and the console says where it was. It does not
/// test whether its timer works: where the host is busy, the emulated one is late, and would be taken for broken.
const KERNEL: &str = "console=ttyS0 quiet panic=-1 oops=panic hung_task_panic=1 softlockup_panic=1 \
                      watchdog_thresh=60 no_timer_check";

impl Guest {
    /// Boots it for the tasks of `list` and waits until it has ended: what came of them, in order.
    pub fn run(&self, list: &str, job: &mut Job) -> Result<Vec<Ran>, Stop> {
        let mut command = self.command(list, &[])?;
        self.watch(list, &mut command, job)
    }

    /// Boots it twice, on the two ends of a wire: the hosts 10.0.0.1 and 10.0.0.2 do the tasks of the first and
    /// of the second list, at the same time. Two network namespaces of one guest would be no two hosts: the
    /// driver looks for routes, and listens, in the first one alone (`rxe_find_route4`, `rxe_net_ipv4_init`).
    pub fn run_wired(&self, lists: [&str; 2], job: &mut Job) -> Result<[Vec<Ran>; 2], Stop> {
        let [mut first, mut second] =
            [self.on_the_wire(lists[0], 1)?, self.on_the_wire(lists[1], 2)?];
        let child = first.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let reader = thread::spawn(move || child.wait_with_output());
        let theirs = self.watch(lists[1], &mut second, job);
        let Output { status, stdout, .. } = reader.join().expect("reading does not panic")?;
        let said = String::from_utf8_lossy(&stdout);
        job.log(&format!("the other host: {first:?}\n{said}"))?;
        let mut results = Results::default();
        for line in said.lines() {
            results.line(line);
        }
        // What the first one says is the reason for what the second one does not.
        let ours = self.conclude(lists[0], results, status, job)?;
        Ok([ours, theirs?])
    }

    /// The command that boots it for the tasks of `list`, which find the `variables` in their environment. What
    /// they print is its standard output; it is killed when their time is over.
    ///
    /// # Errors
    /// The file for what QEMU says could not be made.
    pub fn command(&self, list: &str, variables: &[(&str, &str)]) -> io::Result<Command> {
        let known = self.lists.iter().find(|(name, _)| *name == list);
        let (_, seconds) = known.expect("the guest was made with this list");
        self.command_by(&self.accelerator, list, BOOT + seconds, variables)
    }

    /// Whether the host's kernel helps. Where a machine is emulated itself, it may say so, and then fail at the
    /// first instruction that it has to emulate: a guest has to boot.
    pub fn finds_kvm(&self) -> io::Result<bool> {
        if File::options().read(true).write(true).open("/dev/kvm").is_err() {
            return Ok(false);
        }
        let mut boot = self.command_by(&KVM, NOTHING, PROBE, &[])?;
        let output = boot.stdin(Stdio::null()).output()?;
        Ok(output.stdout.ends_with(b"== over\n"))
    }

    /// [`Self::command`], by this accelerator, ended after so many seconds.
    fn command_by(
        &self,
        accelerator: &[&str],
        list: &str,
        seconds: u32,
        variables: &[(&str, &str)],
    ) -> io::Result<Command> {
        let variables: String =
            variables.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let arguments = format!("{KERNEL} tasks={list}{variables}");
        let mut command = Command::new("timeout");
        // In the foreground, it dies with us at the terminal.
        command.args(["--foreground", "--signal=KILL", &seconds.to_string(), "qemu-system-x86_64"]);
        command.args(accelerator).args(["-machine", "pc"]);
        command.args(["-smp", "2", "-m", "768", "-nodefaults", "-no-reboot", "-display", "none"]);
        command.arg("-kernel").arg(&self.kernel).args(["-initrd", "initrd", "-append", &arguments]);
        command.args(["-serial", &format!("file:{}", console(list)), "-chardev"]);
        // A pipe to write to and nothing to read from: at its end the port would be closed.
        command.arg("file,id=out,path=/dev/stdout");
        command.args(["-device", "virtio-serial", "-device", "virtserialport,chardev=out"]);
        command.current_dir(&self.folder).stderr(File::create(self.folder.join(qemu(list)))?);
        Ok(command)
    }

    /// What the kernel and QEMU said in the last boot for `list`, and the name of the kernel's file.
    pub fn last_words(&self, list: &str) -> String {
        let said = [console(list), qemu(list)];
        let said = said.map(|name| fs::read(self.folder.join(name)).unwrap_or_default()).concat();
        let said = String::from_utf8_lossy(&said).replace('\r', "");
        format!("the guest's console, {}:\n{said}", self.shown_console(list).display())
    }

    fn shown_console(&self, list: &str) -> PathBuf {
        let path = self.folder.join(console(list));
        path.strip_prefix(root()).map(Path::to_owned).unwrap_or(path)
    }

    /// [`Self::command`] for one of the two ends of the wire, whose address ends in `host`.
    fn on_the_wire(&self, list: &str, host: u8) -> io::Result<Command> {
        let (here, there) = (format!("wire{host}"), format!("wire{}", 3 - host));
        let old = self.folder.join(&here);
        if old.exists() {
            fs::remove_file(old)?;
        }
        let mut command = self.command(list, &[("host", &host.to_string())])?;
        // By names in the guest's folder, since the path of a socket must be short.
        let ends =
            format!("local.type=unix,local.path={here},remote.type=unix,remote.path={there}");
        command.arg("-netdev").arg(format!("dgram,id=wire,{ends}"));
        command.arg("-device").arg(format!("e1000,netdev=wire,mac=52:54:00:00:00:0{host}"));
        Ok(command)
    }

    fn watch(&self, list: &str, command: &mut Command, job: &mut Job) -> Result<Vec<Ran>, Stop> {
        let (results, status) = tasks::watch("booting the guest", "in the guest", command, job)?;
        self.conclude(list, results, status, job)
    }

    /// What came of the tasks of a boot that is over, if it came to the end of its list.
    fn conclude(
        &self,
        list: &str,
        results: Results,
        status: ExitStatus,
        job: &mut Job,
    ) -> Result<Vec<Ran>, Stop> {
        job.log(&self.last_words(list))?;
        let (ran, over) = results.finish();
        if over {
            return Ok(ran);
        }
        let console = self.shown_console(list);
        let console = console.display();
        let in_task = |task: &Ran| format!("in `{}`", task.name);
        let when = ran.last().map_or_else(|| "before it ran anything".to_owned(), in_task);
        Err(Stop::Failed(format!("the guest died {when} ({status}); its console is {console}")))
    }
}

/// The file of the kernel's console in the guest's folder.
fn console(list: &str) -> String {
    format!("{list}.console")
}

/// The file of what QEMU itself says.
fn qemu(list: &str) -> String {
    format!("{list}.qemu")
}
