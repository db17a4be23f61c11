//! What the view draws, on a terminal of ratatui's own, of fabrics that this process uses.

use cq_core::transport::{Arm, Notify, Post};
use cq_core::wr::SendWr;
use cqtop::app::{App, Then};
use cqtop::proc;
use cqtop::report::{History, Report};
use cqtop::screen;
use cqtop::tables::{self, Page};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use transport_rxe_loop::observe::Observer;
use transport_rxe_loop::{Access, Limits};
use transport_rxe_loop::{
    CompletionChannel, Context, Cq, Endpoint, OpenOptions, Port, QpAttr, QpInit, QueuePair,
};

/// A fabric with queue pairs that wait, and an armed queue.
struct Used {
    name: String,
    _qps: Vec<QueuePair>,
    _cq: Cq,
    _channel: CompletionChannel,
    _context: Context,
}

impl Used {
    /// Each of so many queue pairs has a SEND that waits for another one, which is not ready.
    fn new(test: &str, qps: usize) -> Self {
        let name = format!("cqtop-{test}-{}", std::process::id());
        let limits = Limits { queue_pairs: 64, bytes: 8 << 20, ..Limits::default() };
        let context = OpenOptions::new().fabric(&name).limits(limits).open("loop0").unwrap();
        let channel = context.create_channel().unwrap();
        let mut cq = context.create_cq(16, Some(&channel)).unwrap();
        let _ = cq.arm(Notify::Next).unwrap();
        let pd = context.alloc_pd().unwrap();
        let port = Port::new(1);
        let mut all: Vec<_> = (0..=qps).map(|_| pd.create_qp(&QpInit::new(&cq)).unwrap()).collect();
        let peer = all.pop().unwrap();
        for qp in &mut all {
            let rtr = QpAttr::rtr(&port, &Endpoint::new(peer.number()));
            let rts = QpAttr::rts().timeout(0);
            for attr in [QpAttr::init(&port, Access::empty()), rtr, rts] {
                qp.modify(&attr).unwrap();
            }
            qp.post_send(&[SendWr::send_inline(77, b"hello")]).unwrap();
        }
        all.push(peer);
        Self { name, _qps: all, _cq: cq, _channel: channel, _context: context }
    }

    fn report(&self) -> Report {
        let mut observer = Observer::open(&self.name).unwrap();
        let mut history = History::default();
        history.report(observer.snapshot(), proc::look);
        history.report(observer.snapshot(), proc::look)
    }
}

/// The lines of the view.
fn drawn(app: &App, [width, height]: [u16; 2]) -> Vec<String> {
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
fn order(app: &App) -> Vec<String> {
    let lines = drawn(app, [160, 40]);
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
        let lines = drawn(&app, [180, 30]);
        assert!(lines[0].contains(&used.name) && lines[0].contains("queue pairs 4 of 64"));
        assert!(lines[3].contains(&format!(" {key} {}", page.name())));
        assert!(lines[29].contains("q: quit"));
        let text = lines.join("\n");
        for expected in expected {
            assert!(text.contains(&expected), "{page:?} has no {expected:?}:\n{text}");
        }
    }
    let plain = tables::plain(&app.report);
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
    let unsorted = order(&app);
    assert_eq!(unsorted.len(), 13);
    press(&mut app, KeyCode::Char('s'));
    let mut sorted = unsorted.clone();
    sorted.sort_by_key(|number| u32::from_str_radix(&number[2..], 16).unwrap());
    assert_eq!(order(&app), sorted);
    press(&mut app, KeyCode::Char('r'));
    sorted.reverse();
    assert_eq!(order(&app), sorted);
    // By the state: the only one that is in RESET comes first.
    press(&mut app, KeyCode::Char('r'));
    for _ in 0..3 {
        press(&mut app, KeyCode::Char('s'));
    }
    assert_eq!(app.sorted, Some(3));
    assert_eq!(order(&app)[0], unsorted[12]);
    for _ in 0..4 {
        press(&mut app, KeyCode::Char('S'));
    }
    assert_eq!((app.sorted, order(&app)), (None, unsorted.clone()));
    press(&mut app, KeyCode::Char('S'));
    assert_eq!(app.sorted, Some(12), "the last column");
    press(&mut app, KeyCode::Char('s'));

    press(&mut app, KeyCode::Down);
    assert_eq!(order(&app), unsorted[1..]);
    press(&mut app, KeyCode::PageDown);
    assert_eq!(order(&app), unsorted[11..]);
    press(&mut app, KeyCode::End);
    assert_eq!(order(&app), unsorted[12..]);
    press(&mut app, KeyCode::PageDown);
    press(&mut app, KeyCode::Up);
    press(&mut app, KeyCode::PageUp);
    assert_eq!(order(&app), unsorted[1..]);
    press(&mut app, KeyCode::Home);
    assert_eq!(order(&app), unsorted);
}

#[test]
fn it_pauses_and_quits() {
    let used = Used::new("pause", 1);
    let mut app = App::new(used.report());
    let bottom = |app: &App| drawn(app, [120, 20])[19].clone();
    assert!(!bottom(&app).contains("PAUSED"));
    press(&mut app, KeyCode::Char('p'));
    assert!(app.is_paused && bottom(&app).contains("PAUSED"));
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
                assert_eq!(drawn(&app, [width, height]).len(), usize::from(height));
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
    assert!(!drawn(&app, [100, 20]).join("\n").contains("has ended"));
    app.update(report);
    let text = drawn(&app, [100, 20]).join("\n");
    assert!(
        text.contains("this fabric has ended") && text.contains("4.0 KiB of its file"),
        "{text}"
    );
    assert!(tables::plain(&app.report).contains("this fabric has ended"));
}
