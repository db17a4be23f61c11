//! A process of the same user has written anything into the file of a fabric, cut it off, and chosen its own name; a process of
//! the fabric lives, with objects of every kind. The victim is cqtop, which opens the file, looks twice, and shows what it saw
//! as tables, as JSON and on a terminal of any size. Nothing may panic or hang, and what is shown stays small.
#![no_main]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process;
use std::sync::OnceLock;

use arbitrary::Arbitrary;
use cqtop::app::{App, Then};
use cqtop::report::{History, Report};
use cqtop::{proc, screen, tables};
use libfuzzer_sys::fuzz_target;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use transport_rxe_loop::observe::FabricObserver;
use verify_fuzz::fabric::{self, Hostile, LIMITS, Write};
use verify_fuzz::objects::{Act, Canary, Objects};
use verify_fuzz::victim::Victim;

#[derive(Arbitrary, Debug)]
struct Input {
    // Arrays: their bytes stay where they are when others are inserted or removed.
    before: [Write; 6],
    between: [Write; 6],
    header: Option<[u64; 4]>,
    cut: Option<u32>,
    name: Option<[u8; 15]>,
    keys: [u8; 6],
    size: [u8; 2],
}

const LARGEST: usize = 1 << 20;

fuzz_target!(|input: Input| {
    let (name, looked_at) = (fabric::name(process::id()), looked_at(&input));
    let hostile = Hostile::open(&name).expect("it is there");
    input.before.iter().for_each(|write| hostile.write(*write));
    if let Some(header) = input.header {
        let bytes = header.map(u64::to_le_bytes);
        looked_at.file.write_all_at(bytes.as_flattened(), 0).expect("it can be written");
    }
    if let Ok(mut observer) = FabricObserver::open(&name) {
        let mut history = History::default();
        show(&history.report(observer.snapshot(), proc::look));
        input.between.iter().for_each(|write| hostile.write(*write));
        if let Some(cut) = input.cut {
            looked_at.file.set_len(u64::from(cut) % (1 + LIMITS.bytes)).expect("it is a file");
        }
        let report = history.report(observer.snapshot(), proc::look);
        show(&report);
        draw(report, &input);
    }
    looked_at.restore();
});

fn show(report: &Report) {
    let (plain, json) = (tables::plain(report), serde_json::to_string(report));
    assert!(plain.len() < LARGEST && json.expect("it can be JSON").len() < LARGEST);
    let is_shown = |c: char| c == '\n' || !c.is_control();
    assert!(plain.chars().all(is_shown), "a terminal would obey it");
}

fn draw(report: Report, input: &Input) {
    let [width, height] = input.size.map(u16::from);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is no terminal");
    let mut app = App::new(report);
    for key in input.keys {
        let code = match key {
            0 => KeyCode::Tab,
            1 => KeyCode::BackTab,
            2 => KeyCode::PageDown,
            3 => KeyCode::End,
            4 => KeyCode::Home,
            key => KeyCode::Char(key.into()),
        };
        let then = app.key(KeyEvent::new(code, KeyModifiers::NONE));
        terminal.draw(|frame| screen::draw(frame, &mut app)).expect("it is no terminal");
        if then == Then::Quit {
            return;
        }
    }
}

/// The fabric of a process that does nothing any more.
struct LookedAt {
    file: File,
    bytes: Vec<u8>,
}

fn looked_at(input: &Input) -> &'static LookedAt {
    static LOOKED_AT: OnceLock<LookedAt> = OnceLock::new();
    if let Some(name) = input.name.and_then(|name| CString::new(name).ok()) {
        rustix::thread::set_name(&name).expect("it has at most 15 bytes");
        if let Some(seen) = proc::look(process::id().cast_signed()) {
            assert!(!seen.name.chars().any(char::is_control));
        }
    }
    LOOKED_AT.get_or_init(LookedAt::new)
}

impl LookedAt {
    fn new() -> Self {
        let name = fabric::name(process::id());
        Victim::start_and_stop(|| {
            let options = transport_rxe_loop::OpenOptions::new().fabric(&name).limits(LIMITS);
            let context = options.count_polls().open("loop0").expect("it is a new fabric");
            let mut canary = Canary::new();
            let mut objects = Objects::new(context, &mut canary).expect("there is space");
            let peer = objects.end();
            // The last ones wait for a receive, and for a peer that is not ready.
            let acts = [Act::Receive(0), Act::Arm(true), Act::Moderate(9, 9), Act::Connect(2, 3)];
            let sends = [0, 1, 2].map(|by| Act::Send { by, what: 0, to: 0 });
            acts.iter().chain(&sends).for_each(|act| objects.act(act, Some(&peer)));
            std::mem::forget((objects, canary));
        });
        let file = OpenOptions::new().read(true).write(true).open(fabric::file(&name));
        let file = file.expect("the process has made it");
        let mut bytes = vec![0; LIMITS.bytes as usize];
        file.read_exact_at(&mut bytes, 0).expect("it has as many bytes");
        Self { file, bytes }
    }

    fn restore(&self) {
        self.file.write_all_at(&self.bytes, 0).expect("it can be written");
    }
}
