//! One run of the list: a program alone, or a server and its client.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::figures::{self, Figure};
use super::judge::{self, Judge};
use super::list::{Kind, Run};
use super::side::{DEADLINE, Said, Side};
use super::{Fabric, Round, preload};
use crate::processes::wait_for;
use crate::run::Stop;

/// The library in the folder where programs run.
pub const LIBRARY: &str = "library.so";

/// How long the other one may go on once one has failed: what it says may be the reason.
const GRACE: Duration = Duration::from_secs(1);
/// Where the server waits.
const HOST: &str = "127.0.0.1";
/// What a program says that has to be run again: its port is somebody else's by now; or it could not measure the
/// pace of the processor's clock, and without that no time, as happens to perftest where others keep it from running.
const AGAIN: [&str; 2] = ["Couldn't listen to port", "Correlation coefficient"];
/// How often a pair is run at most.
const TRIES: usize = 4;

/// As whom and where the programs of one run meet, and nobody else.
pub struct Place<'a> {
    pub folder: &'a Path,
    pub round: &'a Round,
    pub fabric: Fabric,
}

impl Place<'_> {
    /// Starts a program, which says what it says as this `side`.
    pub fn start(&self, side: &str, words: &[String]) -> Result<Side, Stop> {
        let prefix = self.round.prefix.iter().copied();
        let words: Vec<_> = prefix.chain(words.iter().map(String::as_str)).collect();
        let mut command = Command::new(words[0]);
        let libraries = self.libraries(self.round.runtime);
        preload::onto(command.args(&words[1..]), &libraries, &self.fabric);
        command.envs(self.round.variables.iter().copied()).current_dir(self.folder);
        Side::start(&mut command, self.folder.join(side))
    }

    /// What is to be preloaded: the library behind this runtime.
    pub fn libraries(&self, runtime: Option<&str>) -> String {
        let library = self.folder.join(LIBRARY).to_string_lossy().into_owned();
        runtime.map(|runtime| format!("{runtime}:")).unwrap_or_default() + &library
    }

    /// Runs a program to its end: what it said.
    pub fn run(&self, words: &[String]) -> Result<Said, Stop> {
        let mut side = self.start("it", words)?;
        side.wait()?;
        Ok(side.finish()?)
    }
}

/// What the programs said and how they ended, those of a pair with the server first.
pub fn run(run: &Run, place: &Place<'_>) -> Result<Vec<Said>, Stop> {
    let words = run.words();
    match run.kind {
        Kind::Alone(_) => Ok(vec![place.run(&words)?]),
        Kind::Watching(judge) => Ok(vec![watch(place.start("it", &words)?, judge)?]),
        Kind::PingPong | Kind::Measured => {
            let mut met = meet(&words, place)?;
            for _ in 1..TRIES {
                if !is_to_be_run_again(&met) {
                    break;
                }
                met = meet(&words, place)?;
            }
            Ok(met.into())
        }
    }
}

fn is_to_be_run_again(met: &[Said]) -> bool {
    met.iter().any(|said| AGAIN.iter().any(|reason| said.output.contains(reason)))
}

/// Ends what waits once it has said what it must.
fn watch(mut side: Side, judge: Judge) -> io::Result<Said> {
    let mut look = || -> io::Result<_> {
        let (over, said) = (side.ended()?.is_some(), judge(&side.output()?).is_ok());
        Ok((over || said).then_some(!over))
    };
    if wait_for(DEADLINE, || look().transpose()).transpose()? == Some(true) {
        side.terminate()?;
        side.wait()?;
    }
    side.finish()
}

/// Starts the server, and its client once it listens.
fn meet(words: &[String], place: &Place<'_>) -> Result<[Said; 2], Stop> {
    // One that nobody has at this moment.
    let port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port();
    let server = [words, &["-p".to_owned(), port.to_string()]].concat();
    let client = [&server[..], &[HOST.to_owned()]].concat();
    let mut server = place.start("server", &server)?;
    if !await_listener(&mut server, Some(port), &place.fabric)? {
        return Ok([server.finish()?, not_started()]);
    }
    let mut client = place.start("client", &client)?;
    await_both(&mut server, &mut client)?;
    Ok([server.finish()?, client.finish()?])
}

/// Waits until a server listens: on this TCP port, or any, or in its fabric. Where it does not, that is false.
pub fn await_listener(server: &mut Side, port: Option<u16>, fabric: &Fabric) -> io::Result<bool> {
    let mut look = || -> io::Result<_> {
        let listens = server.listens(port)? || fabric.has_listener()?;
        Ok((listens || server.ended()?.is_some()).then_some(listens))
    };
    Ok(wait_for(DEADLINE, || look().transpose()).transpose()? == Some(true))
}

/// What is said of a client whose server does not listen.
pub fn not_started() -> Said {
    Said { output: "it was not started, since the server did not listen".to_owned(), end: None }
}

/// Waits until both have ended, or their time is over; only a moment where one has failed.
pub fn await_both(a: &mut Side, b: &mut Side) -> io::Result<()> {
    let mut failed = None;
    let mut look = || -> io::Result<_> {
        let ends = [a.ended()?, b.ended()?];
        if ends.iter().flatten().any(|status| !status.success()) {
            failed = failed.or(Some(Instant::now()));
        }
        let grace_is_over = failed.is_some_and(|failed| failed.elapsed() > GRACE);
        Ok((grace_is_over || ends.iter().all(Option::is_some)).then_some(()))
    };
    wait_for(DEADLINE, || look().transpose()).transpose()?;
    Ok(())
}

/// What the programs showed, if all did what they must: the last figure.
pub fn judge(run: &Run, said: &[Said]) -> Result<Option<Figure>, String> {
    let names: &[&str] = if said.len() == 1 { &["it"] } else { &["the server", "the client"] };
    for (who, Said { end, .. }) in names.iter().zip(said) {
        ended_well(run.kind, *end).map_err(|why| format!("{who}: {why}"))?;
    }
    let mut outputs = said.iter().map(|said| said.output.as_str());
    match run.kind {
        Kind::Alone(judge) | Kind::Watching(judge) => outputs.try_for_each(judge).map(|()| None),
        Kind::PingPong => {
            outputs.try_fold(None, |_, output| judge::pingpong(run.numbers, output).map(Some))
        }
        Kind::Measured => figures::measured(&run.sizes(), outputs.next_back().unwrap_or_default()),
    }
}

fn ended_well(kind: Kind, end: Option<ExitStatus>) -> Result<(), String> {
    let status = end.ok_or("its time was over")?;
    let well = match kind {
        Kind::Watching(_) => status.signal() == Some(Signal::TERM.as_raw()),
        _ => status.success(),
    };
    if well { Ok(()) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::super::side::tests::{finish, shell};
    use super::*;

    const fn run(kind: Kind, numbers: (u64, u64)) -> Run {
        Run { program: "it", options: "", kind, numbers }
    }

    const PONG: &str =
        "4 bytes in 0.00 seconds = 1.00 Mbit/sec\n2 iters in 0.00 seconds = 3.00 usec/iter\n";

    fn said(output: &str, end: Option<i32>) -> Said {
        Said { output: output.to_owned(), end: end.map(ExitStatus::from_raw) }
    }

    #[test]
    fn both_sides_must_end_well_and_say_what_they_did() {
        let judged = |server, client| judge(&run(Kind::PingPong, (1, 2)), &[server, client]);
        let good = judged(said(PONG, Some(0)), said(PONG, Some(0))).unwrap();
        assert_eq!(good.unwrap().value, 3.0);
        assert!(judged(said(PONG, Some(0)), said("", Some(0))).is_err(), "nothing was said");
        assert!(judged(said("", Some(0)), said(PONG, Some(0))).is_err(), "nothing was said");
        let failed = judged(said(PONG, Some(1 << 8)), said(PONG, Some(0)));
        assert_eq!(failed.unwrap_err(), "the server: exit status: 1");
        let killed = judged(said(PONG, Some(0)), said(PONG, None));
        assert_eq!(killed.unwrap_err(), "the client: its time was over");
    }

    #[test]
    fn of_a_pair_that_measures_the_client_says_what() {
        let table = "#bytes #iterations BW average[MB/sec]\n8 5 2.5\n";
        let measured = run(Kind::Measured, (8, 5));
        let judged = |client| judge(&measured, &[said("", Some(0)), said(client, Some(0))]);
        assert_eq!(judged(table).unwrap().unwrap().value, 2.5);
        assert!(judged("").is_err());
    }

    #[test]
    fn a_pair_that_chance_kept_from_its_work_is_run_again() {
        let again = |server, client| is_to_be_run_again(&[said(server, None), said(client, None)]);
        assert!(again("Couldn't listen to port 4711\n", ""));
        assert!(again("", "8 1000 1.87\nCorrelation coefficient r^2: 0.894841 < 0.9\n"));
        assert!(!again(PONG, "Failed status transport retry counter exceeded (12) for wr_id 2"));
    }

    #[test]
    fn what_watches_must_be_ended_by_the_signal() {
        let judged = |output, end| {
            judge(&run(Kind::Watching(judge::watching), (0, 0)), &[said(output, Some(end))]).is_ok()
        };
        let (line, term) = ("loop0: async event FD 3\n", Signal::TERM.as_raw());
        assert!(judged(line, term));
        assert!(!judged(line, 0), "it ended by itself");
        assert!(!judged(line, Signal::KILL.as_raw()), "by another one");
        assert!(!judged("", term), "it watched nothing");
    }

    #[test]
    fn who_waits_for_one_that_failed_is_killed_and_so_is_who_takes_too_long() {
        let awaited = |name: &str, script| {
            let mut a = shell(&format!("{name}-a"), script);
            let mut b = shell(&format!("{name}-b"), "exec sleep 1000");
            await_both(&mut a, &mut b).unwrap();
            [finish(a), finish(b)]
        };
        let [failed, waits] = awaited("fails", "echo why; exit 1");
        assert_eq!((failed.output.as_str(), failed.end.unwrap().code()), ("why\n", Some(1)));
        assert_eq!(waits.end, None);
        let [ended, hangs] = awaited("ends", "true");
        assert!(ended.end.unwrap().success() && hangs.end.is_none());
    }
}
