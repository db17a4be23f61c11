//! Running pairs, and programs that are alone: side by side, each in a fabric of its own.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;

use super::meeting::{self, Place};
use super::pairs::{DAT_CONF, End, PAIRS, Pair, Rounds, Saying, WITH_DEVICE};
use super::programs::PROGRAMS;
use super::side::{Said, Side};
use super::{Fabric, Round, last_words};
use crate::run::Stop;

/// How many pairs are under way at once: they mostly wait for each other.
const AT_ONCE: usize = 2;

/// Whether `/dev` of a program can have a file more, as UCX needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HasDevice(bool);

/// What a stage runs of all pairs.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Those of `--long`, too.
    pub long: bool,
    /// Those that need a file in `/dev`, too.
    pub device: HasDevice,
}

/// What came of a pair.
pub struct Outcome {
    /// What it is called.
    pub name: String,
    /// What the programs said.
    pub said: Vec<Said>,
    /// What is wrong.
    pub judged: Result<(), String>,
}

/// Puts into the folder what programs are configured by.
pub fn put(folder: &Path) -> Result<HasDevice, Stop> {
    fs::write(folder.join("dat.conf"), DAT_CONF)?;
    let script = folder.join("with-device");
    fs::write(&script, WITH_DEVICE)?;
    fs::create_dir_all(folder.join("dev"))?;
    let mut command = Command::new("sh");
    command.arg(script).arg("true").stdin(Stdio::null()).stdout(Stdio::null());
    Ok(HasDevice(command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())))
}

impl Extent {
    /// The pairs of a round.
    pub fn of_round(self, first: bool) -> impl Iterator<Item = &'static Pair> {
        all().filter(move |pair| {
            let is_in_round = match pair.rounds {
                Rounds::All => true,
                Rounds::First => first,
                Rounds::Long => first && self.long,
            };
            is_in_round && (self.device.0 || !pair.needs_device())
        })
    }

    /// How many programs are run.
    pub fn programs(self) -> usize {
        self.of_round(true).map(Pair::program).collect::<BTreeSet<_>>().len()
    }

    /// What can't run, with the reason.
    pub fn notes(self) -> impl Iterator<Item = String> {
        let named = |kept: fn(&Pair) -> bool| {
            let programs = all().filter(move |pair| kept(pair)).map(Pair::program);
            programs.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        };
        let refused = named(|pair| pair.end == End::Refused);
        let need = named(Pair::needs_device);
        let left_out = format!(
            "left out: {need}, which need a device in /dev, and so root and namespaces of mounts"
        );
        let refused =
            format!("refused, as documented: {refused}, since rsockets are not supported");
        [refused].into_iter().chain((!self.device.0).then_some(left_out))
    }
}

fn all() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().chain(PROGRAMS)
}

/// Runs these pairs.
pub fn run(pairs: &[&Pair], round: &Round, folder: &Path) -> Result<Vec<Outcome>, Stop> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<(), Stop> {
        while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = one(pair, &Place { folder, round, fabric: Fabric::new() })?;
            outcomes.lock().expect("no thread panicked").push(outcome);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panicked"))
    })?;
    Ok(outcomes.into_inner().expect("no thread panicked"))
}

fn one(pair: &Pair, place: &Place<'_>) -> Result<Outcome, Stop> {
    let said = meet(pair, place)?;
    let judged = judge(pair, &said).and_then(|()| match pair.end {
        End::Abruptly | End::Signal => Ok(()),
        End::Both | End::Alone | End::Refused => place.fabric.check_gone(),
    });
    let all: String = said.iter().map(|said| said.output.as_str()).collect();
    let judged = judged.map_err(|why| why + &last_words(&all));
    Ok(Outcome { name: pair.name(), said, judged })
}

/// The words of a command, in a place.
fn words(command: &str, port: u16, folder: &Path) -> Vec<String> {
    let filled = |word: &str| {
        let word = if word == "PORT" { port.to_string() } else { word.to_owned() };
        word.replace("FOLDER", &folder.to_string_lossy())
    };
    command.split_whitespace().map(filled).collect()
}

/// What the programs of a pair said and how they ended, the server first.
fn meet(pair: &Pair, place: &Place<'_>) -> Result<Vec<Said>, Stop> {
    let port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port();
    let start = |who: &str, command| {
        let file = format!("{}{who}", place.fabric.name());
        place.start(&file, &words(command, port, place.folder))
    };
    let mut server = start("server", pair.server)?;
    if pair.client.is_empty() {
        server.wait()?;
        return Ok(vec![server.finish()?]);
    }
    if !meeting::await_listener(&mut server, None, &place.fabric)? {
        return Ok(vec![server.finish()?, meeting::not_started()]);
    }
    let mut client = start("client", pair.client)?;
    await_pair(pair, &mut server, &mut client)?;
    let client = client.finish()?;
    if pair.end == End::Signal && server.ended()?.is_none() {
        server.terminate()?;
        server.wait()?;
    }
    Ok(vec![server.finish()?, client])
}

fn await_pair(pair: &Pair, server: &mut Side, client: &mut Side) -> Result<(), Stop> {
    match pair.end {
        End::Signal => client.wait().map(drop)?,
        _ => meeting::await_both(server, client)?,
    }
    Ok(())
}

/// Whether the programs ended and said what they must.
fn judge(pair: &Pair, said: &[Said]) -> Result<(), String> {
    for ((who, said), sayings) in
        ["server", "client"].iter().zip(said).zip([pair.served, pair.asked])
    {
        let told = |why: String| format!("the {who}: {why}");
        ended(pair.end, *who == "server", said).map_err(told)?;
        says(sayings, &said.output).map_err(told)?;
    }
    Ok(())
}

fn ended(end: End, is_server: bool, said: &Said) -> Result<(), String> {
    let status = said.end.ok_or("its time was over")?;
    let well = match end {
        // Some end by themselves when they are told.
        End::Signal if is_server => {
            status.signal().is_none_or(|signal| signal == Signal::TERM.as_raw())
        }
        End::Refused => status.code().is_some_and(|code| code != 0),
        _ => status.success(),
    };
    if well { Ok(()) } else { Err(status.to_string()) }
}

fn says(sayings: &[Saying], output: &str) -> Result<(), String> {
    for &(words, wanted) in sayings {
        let count = output.matches(words).count();
        if count != wanted {
            return Err(format!("it says \"{words}\" {count} times, not {wanted}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    const fn pair(end: End) -> Pair {
        let (served, asked) = (&[("done", 1), ("failed", 0)], &[("got", 2)]);
        Pair { server: "a PORT", client: "a -c", end, served, asked, rounds: Rounds::All }
    }

    fn said(output: &str, end: Option<i32>) -> Said {
        Said { output: output.to_owned(), end: end.map(ExitStatus::from_raw) }
    }

    #[test]
    fn both_must_end_well_and_say_everything_so_often() {
        let judged = |server, client| judge(&pair(End::Both), &[server, client]);
        let good = || said("got got", Some(0));
        assert_eq!(judged(said("done", Some(0)), good()), Ok(()));
        assert!(judged(said("done", Some(1 << 8)), good()).unwrap_err().contains("status: 1"));
        assert!(judged(said("done", None), good()).unwrap_err().contains("time"));
        assert!(judged(said("done failed", Some(0)), good()).is_err());
        assert!(judged(said("", Some(0)), good()).is_err());
        assert!(judged(said("done", Some(0)), said("got", Some(0))).is_err());
    }

    #[test]
    fn a_server_may_be_ended_by_the_signal_and_by_no_other() {
        let judged = |server: Signal| {
            let server = said("done", Some(server.as_raw()));
            judge(&pair(End::Signal), &[server, said("got got", Some(0))]).is_ok()
        };
        assert!(judged(Signal::TERM));
        assert!(!judged(Signal::ABORT) && !judged(Signal::SEGV));
        let client = said("got got", Some(Signal::TERM.as_raw()));
        assert!(judge(&pair(End::Signal), &[said("done", Some(0)), client]).is_err());
    }

    #[test]
    fn what_is_refused_must_fail_and_say_why() {
        let judged = |output, end| judge(&pair(End::Refused), &[said(output, Some(end))]).is_ok();
        assert!(judged("done", 1 << 8));
        assert!(
            !judged("done", 0) && !judged("", 1 << 8) && !judged("done", Signal::SEGV.as_raw())
        );
    }

    #[test]
    fn what_needs_a_device_is_left_out_by_name_where_there_is_none() {
        let extent = |device| Extent { long: true, device: HasDevice(device) };
        let notes = |device| extent(device).notes().collect::<Vec<_>>();
        assert!(notes(true)[0].contains("riostream") && notes(true).len() == 1);
        assert!(notes(false)[1].starts_with("left out: by-nixl.py, io_demo, "));
        assert_eq!(extent(true).programs(), extent(false).programs() + 3);
        let count = |first, device| extent(device).of_round(first).count();
        assert_eq!(count(true, true), all().count());
        assert!(count(true, false) < all().count() && count(false, true) < count(true, false));
        let short = Extent { long: false, ..extent(true) };
        assert!(short.of_round(true).all(|pair| pair.rounds != Rounds::Long));
    }

    #[test]
    fn a_command_has_the_port_and_the_folder() {
        let all = words("sh FOLDER/it -p PORT PORTS", 7, Path::new("/f"));
        assert_eq!(all, ["sh", "/f/it", "-p", "7", "PORTS"]);
    }
}
