//! What the view draws, on a terminal of ratatui's own, of fabrics that this process uses.

use cq_core::transport::{Arm, Notify};
use cq_verbs::wr::SendWr;
use cqtop::app::{App, Then};
use cqtop::proc;
use cqtop::report::{History, Report};
use cqtop::screen;
use cqtop::tables::{self, Page};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use transport_rxe_loop::observe::FabricObserver;
use transport_rxe_loop::{Access, Limits};
use transport_rxe_loop::{
    AckTimeout, CompletionChannel, Context, Cq, Endpoint, OpenOptions, Port, QpAttr, QueuePair,
};

/// A fabric with queue pairs that wait, and an armed queue.
struct Used {
    name: String,
    /// The last one is in RESET.
    qps: Vec<QueuePair>,
    _cq: Cq,
    _channel: CompletionChannel,
    _context: Context,
}

impl Used {
    /// Each of so many queue pairs has a SEND that waits for another one, which is not ready.
    fn new(test: &str, qps: usize) -> Self {
        let name = format!("cqtop-{test}-{}", std::process::id());
        let limits = Limits::default().queue_pairs(64).bytes(8 << 20);
        let context = OpenOptions::new().fabric(&name).limits(limits).open("loop0").unwrap();
        let channel = context.create_channel().unwrap();
        let mut cq = context.cq(16).channel(&channel).create().unwrap();
        let _ = cq.arm(Notify::Next).unwrap();
        let pd = context.alloc_pd().unwrap();
        let port = Port::new(1);
        let mut all: Vec<_> = (0..=qps).map(|_| pd.qp(&cq).create().unwrap()).collect();
        let peer = all.pop().unwrap();
        for qp in &mut all {
            let rtr = QpAttr::rtr(&port, &Endpoint::new(peer.number()));
            let rts = QpAttr::rts().timeout(AckTimeout::UNLIMITED);
            for attr in [QpAttr::init(&port, Access::empty()), rtr, rts] {
                qp.modify(&attr).unwrap();
            }
            qp.post_send(&[SendWr::send_inline(77, b"hello")]).unwrap();
        }
        all.push(peer);
        Self { name, qps: all, _cq: cq, _channel: channel, _context: context }
    }

    fn report(&self) -> Report {
        let mut observer = FabricObserver::open(&self.name).unwrap();
        let mut history = History::default();
        history.report(observer.snapshot(), proc::look);
        history.report(observer.snapshot(), proc::look)
    }
}

/// The lines of the view.
fn drawn(app: &mut App, [width, height]: [u16; 2]) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect();
    buffer.content.chunks(width.into()).map(line).collect()
}

fn press(app: &mut App, code: KeyCode) -> Then {
    app.key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// The numbers of queue pairs in the order in which they are drawn.
fn order(app: &mut App) -> Vec<String> {
    numbers(&drawn(app, [160, 40]))
}

/// The numbers of queue pairs with which lines begin.
fn numbers(lines: &[String]) -> Vec<String> {
    let first = |line: &String| line.split_whitespace().next().unwrap_or_default().to_owned();
    lines.iter().map(first).filter(|word| word.starts_with("0x")).collect()
}

#[test]
fn each_page_shows_its_tables_with_the_summary_above_and_the_keys_below() {
    let used = Used::new("pages", 3);
    let mut app = App::new(used.report());
    for (key, page, expected) in [
        ('1', Page::Processes, vec![std::process::id().to_string(), "screen".to_owned()]),
        ('2', Page::QueuePairs, vec!["RTS".to_owned(), "SEND wr_id 77: for an answer".to_owned()]),
        ('3', Page::Completions, vec!["next".to_owned(), "16".to_owned()]),
        ('4', Page::Shared, vec!["shared receive queues: none".to_owned()]),
        (
            '5',
            Page::Memory,
            vec!["regions and windows: none".to_owned(), "channels: 1-2".to_owned()],
        ),
        ('6', Page::Waits, vec!["its peer is in RESET, without a time limit".to_owned()]),
    ] {
        assert_eq!(press(&mut app, KeyCode::Char(key)), Then::Continue);
        assert_eq!(app.page, page);
        let lines = drawn(&mut app, [180, 30]);
        assert!(lines[0].contains(&used.name) && lines[0].contains("queue pairs 4 of 64"));
        assert!(lines[3].contains(&format!(" {key} {}", page.name())));
        assert!(lines[29].contains("q: quit"));
        let text = lines.join("\n");
        for expected in expected {
            assert!(text.contains(&expected), "{page:?} has no {expected:?}:\n{text}");
        }
    }
    let plain = tables::plain(&app.report);
    let at = |title: &str| plain.find(title).unwrap();
    let titles = ["PROCESSES", "WAITS", "LOCKS", "QUEUE PAIRS", "CHANNELS"].map(at);
    assert!(titles.is_sorted(), "what is wrong stands before the long tables: {plain}");
    for page in Page::ALL {
        for table in page.tables(&app.report) {
            assert!(plain.contains(&table.title.to_uppercase()), "{plain}");
        }
    }
}

#[test]
fn keys_change_the_page_the_order_and_the_place() {
    let used = Used::new("keys", 12);
    let mut app = App::new(used.report());
    for page in Page::ALL.into_iter().cycle().skip(1).take(6) {
        press(&mut app, KeyCode::Tab);
        assert_eq!(app.page, page);
    }
    press(&mut app, KeyCode::BackTab);
    assert_eq!(app.page, Page::Waits);
    press(&mut app, KeyCode::Char('2'));
    let unsorted = order(&mut app);
    assert_eq!(unsorted.len(), 13);
    press(&mut app, KeyCode::Char('s'));
    let mut sorted = unsorted.clone();
    sorted.sort_by_key(|number| u32::from_str_radix(&number[2..], 16).unwrap());
    assert_eq!(order(&mut app), sorted);
    press(&mut app, KeyCode::Char('r'));
    sorted.reverse();
    assert_eq!(order(&mut app), sorted);
    // By the state: the only one that is in RESET comes first.
    press(&mut app, KeyCode::Char('r'));
    for _ in 0..3 {
        press(&mut app, KeyCode::Char('s'));
    }
    assert_eq!(app.sorted, Some(3));
    let in_reset = used.qps.last().unwrap().number();
    assert_eq!(order(&mut app)[0], format!("{in_reset:#x}"));
    for _ in 0..4 {
        press(&mut app, KeyCode::Char('S'));
    }
    assert_eq!((app.sorted, order(&mut app)), (None, unsorted.clone()));
    press(&mut app, KeyCode::Char('S'));
    assert_eq!(app.sorted, Some(12), "the last column");
    press(&mut app, KeyCode::Char('s'));

    // All of them fit: there is nothing to scroll.
    for code in [KeyCode::Down, KeyCode::PageDown, KeyCode::End] {
        press(&mut app, code);
        assert_eq!(order(&mut app), unsorted);
    }
}

#[test]
fn page_keys_scroll_by_what_is_shown_and_the_last_page_is_full() {
    let used = Used::new("scroll", 12);
    let mut app = App::new(used.report());
    press(&mut app, KeyCode::Char('2'));
    let all = order(&mut app);
    // Three lines of summary, the pages, the title, the head, the keys: five rows are left of 12 lines.
    let mut after = |code| {
        press(&mut app, code);
        let lines = drawn(&mut app, [160, 12]);
        numbers(&lines)
    };
    assert_eq!(after(KeyCode::Home), all[..5]);
    assert_eq!(after(KeyCode::Down), all[1..6]);
    assert_eq!(after(KeyCode::PageDown), all[6..11]);
    assert_eq!(after(KeyCode::PageDown), all[8..]);
    assert_eq!(after(KeyCode::Down), all[8..]);
    assert_eq!(after(KeyCode::Up), all[7..12]);
    assert_eq!(after(KeyCode::End), all[8..]);
    assert_eq!(after(KeyCode::PageUp), all[3..8]);
    assert_eq!(after(KeyCode::PageUp), all[..5]);
}

#[test]
fn in_a_narrow_terminal_no_number_is_cut_and_what_is_cut_of_a_text_is_marked() {
    let used = Used::new("narrow", 3);
    let mut app = App::new(used.report());
    for page in ['1', '2', '3', '4', '5', '6'] {
        press(&mut app, KeyCode::Char(page));
        let whole = drawn(&mut app, [400, 30]).join("\n");
        let whole: Vec<_> = whole.split_whitespace().collect();
        for width in [20, 40, 60, 80, 100] {
            for line in drawn(&mut app, [width, 60]) {
                let is_number = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
                for word in line.split_whitespace().filter(is_number) {
                    assert!(
                        word.ends_with('…') || whole.contains(&word),
                        "{width}: {word} of {line}"
                    );
                }
            }
        }
    }
    press(&mut app, KeyCode::Char('1'));
    let text = drawn(&mut app, [80, 24]).join("\n");
    assert!(text.contains(&std::process::id().to_string()) && text.contains('…'), "{text}");
    press(&mut app, KeyCode::Char('2'));
    let text = drawn(&mut app, [80, 24]).join("\n");
    let number = format!("{:#x}", app.report.queue_pairs[0].seen.number);
    assert!(text.contains(&number) && text.contains("1/") && text.contains("too narrow"), "{text}");
    press(&mut app, KeyCode::Char('6'));
    let text = drawn(&mut app, [60, 24]).join(" ");
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(words.contains(&"RESET,") && words.contains(&"limit"), "it is wrapped: {text}");
}

#[test]
fn it_pauses_and_quits() {
    let used = Used::new("pause", 1);
    let mut app = App::new(used.report());
    let bottom = |app: &mut App| drawn(app, [120, 20])[19].clone();
    assert!(!bottom(&mut app).contains("PAUSED"));
    press(&mut app, KeyCode::Char('p'));
    assert!(app.is_paused && bottom(&mut app).contains("PAUSED"));
    press(&mut app, KeyCode::Char(' '));
    assert!(!app.is_paused);
    assert_eq!(press(&mut app, KeyCode::Char('x')), Then::Continue);
    assert_eq!(press(&mut app, KeyCode::Char('c')), Then::Continue);
    for code in [KeyCode::Char('q'), KeyCode::Esc] {
        assert_eq!(press(&mut app, code), Then::Quit);
    }
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.key(interrupt), Then::Quit);
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    let used = Used::new("sizes", 20);
    let mut app = App::new(used.report());
    for page in ['1', '2', '3', '4', '5', '6'] {
        press(&mut app, KeyCode::Char(page));
        press(&mut app, KeyCode::End);
        for width in [1, 2, 10, 80, 300] {
            for height in [1, 2, 4, 5, 6, 24] {
                assert_eq!(drawn(&mut app, [width, height]).len(), usize::from(height));
            }
        }
    }
}

#[test]
fn what_is_wrong_with_the_fabric_stands_above_the_tables() {
    let used = Used::new("wrong", 1);
    let mut report = used.report();
    (report.is_current, report.missing_bytes) = (false, 4096);
    let mut app = App::new(used.report());
    assert!(!drawn(&mut app, [100, 20]).join("\n").contains("has ended"));
    app.update(report);
    let text = drawn(&mut app, [100, 20]).join("\n");
    assert!(
        text.contains("this fabric has ended") && text.contains("4.0 KiB of its file"),
        "{text}"
    );
    assert!(tables::plain(&app.report).contains("this fabric has ended"));
    assert!(text.contains("its file is gone") && !text.contains("dead"), "{text}");
    let mut report = used.report();
    report.processes.iter_mut().for_each(|process| process.seen.is_alive = false);
    app.update(report);
    let text = drawn(&mut app, [100, 20]).join("\n");
    assert!(text.contains("all its processes are dead: the next process that creates"), "{text}");
}
