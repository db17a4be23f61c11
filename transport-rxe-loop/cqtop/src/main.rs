//! The program: see the [library](cqtop).
#![deny(unsafe_code)]

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use cq_verbs::causes::Causes;
use cqtop::args::Arguments;
use cqtop::cell::{binary, count};
use cqtop::report::History;
use cqtop::{live, proc, tables};
use thiserror::Error;
use transport_rxe_loop::observe::{self, FabricObserver, ObserveError};

/// Why cqtop ends.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Fabric(#[from] ObserveError),
    #[error("the output is no terminal: add --once for one snapshot, or --once --json")]
    NoTerminal,
    #[error("the terminal can't be used")]
    Terminal(#[source] io::Error),
    #[error("the output can't be written")]
    Output(#[source] io::Error),
    #[error("the snapshot can't be made JSON")]
    Json(#[from] serde_json::Error),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cqtop: {}", Causes(&failure));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.list {
        return print(&list());
    }
    let mut observer = match &arguments.fabric {
        Some(name) => FabricObserver::open(name)?,
        None => FabricObserver::from_env()?,
    };
    if arguments.once {
        let mut history = History::default();
        history.report(observer.snapshot(), proc::look);
        std::thread::sleep(arguments.interval);
        let report = history.report(observer.snapshot(), proc::look);
        return match arguments.json {
            true => print(&(serde_json::to_string_pretty(&report)? + "\n")),
            false => print(&tables::plain(&report)),
        };
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::NoTerminal);
    }
    live::restore_at_signals().map_err(Failure::Terminal)?;
    let mut terminal = ratatui::try_init().map_err(Failure::Terminal)?;
    let ended = live::run(&mut terminal, observer, arguments.interval);
    ratatui::restore();
    ended.map_err(Failure::Terminal)
}

/// The fabrics of this user, a line each.
fn list() -> String {
    let lines = observe::fabrics().into_iter().map(|name| match FabricObserver::open(&name) {
        Ok(mut observer) => {
            let seen = observer.snapshot();
            let alive = seen.processes.iter().filter(|process| process.is_alive).count();
            let (qps, cqs) = (seen.queue_pairs.len(), seen.completion_queues.len());
            let counts = [
                match (alive, seen.processes.len()) {
                    (0, 1..) => "all processes are dead".to_owned(),
                    _ => count(alive, "process", "processes"),
                },
                count(qps, "queue pair", "queue pairs"),
                count(cqs, "completion queue", "completion queues"),
                binary(seen.arena.used + seen.table_bytes),
            ];
            format!("{name}: {}\n", counts.join(", "))
        }
        Err(why) => format!("{name}: {}\n", Causes(&why)),
    });
    lines.collect()
}

/// Prints a text. A reader that wants no more of it is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}
