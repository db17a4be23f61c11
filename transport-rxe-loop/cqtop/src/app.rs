//! The state of the view in a terminal: what it shows now, and what keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::report::Report;
use crate::tables::Page;

/// The view: its report, and what of it is shown.
#[derive(Debug)]
pub struct App {
    /// What was seen last.
    pub report: Report,
    /// The page that is shown.
    pub page: Page,
    /// By which column its first table is sorted; `None` is the order of the fabric.
    pub sorted: Option<usize>,
    /// Whether it is sorted in reverse.
    pub reverse: bool,
    /// Whether no new snapshot is taken.
    pub is_paused: bool,
    /// The first row of the first table that is shown.
    pub scroll: usize,
    /// How many of its rows were shown last: a page key scrolls by as many.
    pub shown: usize,
}

/// What to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Go on.
    Continue,
    /// Leave.
    Quit,
}

impl App {
    /// The view of a report.
    #[must_use]
    pub const fn new(report: Report) -> Self {
        Self {
            report,
            page: Page::Processes,
            sorted: None,
            reverse: false,
            is_paused: false,
            scroll: 0,
            shown: 1,
        }
    }

    /// Does what a key stands for.
    pub fn key(&mut self, key: KeyEvent) -> Then {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Then::Quit,
            KeyCode::Char('c') if is_control => return Then::Quit,
            KeyCode::Char(digit @ '1'..='6') => self.show(digit as usize - '1' as usize),
            KeyCode::Tab | KeyCode::Right => self.show(self.nth() + 1),
            KeyCode::BackTab | KeyCode::Left => self.show(self.nth() + Page::ALL.len() - 1),
            KeyCode::Char('s') => self.sort_by_next(1),
            KeyCode::Char('S') => self.sort_by_next(usize::MAX),
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Down | KeyCode::Char('j') => self.scroll_to(self.scroll + 1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll_to(self.scroll.saturating_sub(1)),
            KeyCode::PageDown => self.scroll_to(self.scroll + self.shown),
            KeyCode::PageUp => self.scroll_to(self.scroll.saturating_sub(self.shown)),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll_to(usize::MAX),
            _ => {}
        }
        Then::Continue
    }

    /// Shows a new report.
    pub fn update(&mut self, report: Report) {
        self.report = report;
        self.scroll_to(self.scroll);
    }

    fn nth(&self) -> usize {
        Page::ALL.iter().position(|page| *page == self.page).unwrap_or_default()
    }

    fn show(&mut self, nth: usize) {
        let page = Page::ALL[nth % Page::ALL.len()];
        if page != self.page {
            (self.page, self.sorted, self.reverse, self.scroll) = (page, None, false, 0);
        }
    }

    /// The columns of the first table, and its rows.
    fn size(&self) -> (usize, usize) {
        let tables = self.page.tables(&self.report);
        tables.first().map_or((0, 0), |table| (table.columns.len(), table.rows.len()))
    }

    /// From no column to the first, and from the last to none.
    fn sort_by_next(&mut self, step: usize) {
        let orders = self.size().0 + 1;
        let now = self.sorted.map_or(0, |column| column + 1);
        let next = if step == 1 { now + 1 } else { now + orders - 1 };
        self.sorted = (next % orders).checked_sub(1);
    }

    fn scroll_to(&mut self, row: usize) {
        self.scroll = row.min(self.size().1.saturating_sub(1));
    }
}
