//! How the view is drawn.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Row, Table as Widget};

use crate::app::App;
use crate::cell::{Cell, Tone};
use crate::fit::{self, shorten, wrap};
use crate::tables::{Page, Table, summary};

const HELP: &str = "1-6 Tab: table  s S r: sort  ↑ ↓ PgUp PgDn: scroll  p: pause  q: quit";
/// Rows of a further table of a page, at most, with its title and head.
const FURTHER: u16 = 10;

/// Draws the view. It tells the view how many rows are shown, and where the last page begins.
pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let wide = usize::from(frame.area().width);
    let lines: Vec<_> = summary(&app.report)
        .iter()
        .flat_map(|(text, tone)| {
            let style = style(*tone);
            wrap(text, wide).into_iter().map(move |line| Line::styled(line, style))
        })
        .collect();
    let [top, pages, body, bottom] = Layout::vertical([
        Constraint::Length(lines.len() as u16),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(lines), top);
    frame.render_widget(names(app.page, wide), pages);
    draw_tables(frame, body, app);
    let state = if app.is_paused { "PAUSED  " } else { "" };
    let help = Line::from(vec![
        Span::styled(state, Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)),
        Span::styled(
            shorten(HELP, wide.saturating_sub(state.len())),
            Style::new().add_modifier(Modifier::DIM),
        ),
    ]);
    frame.render_widget(help, bottom);
}

/// The names of the pages, that of the shown one reversed; of the others only the keys in a narrow terminal.
fn names(shown: Page, available: usize) -> Line<'static> {
    let line = |is_short: bool| {
        let names = (1..).zip(Page::ALL).flat_map(|(nth, page)| {
            let is_shown = page == shown;
            let name = if is_short && !is_shown { "" } else { page.name() };
            let style = if is_shown { Modifier::REVERSED } else { Modifier::empty() };
            [Span::styled(format!(" {nth} {name} "), style), Span::raw(" ")]
        });
        Line::from(names.collect::<Vec<_>>())
    };
    let full = line(false);
    if full.width() <= available { full } else { line(true) }
}

fn draw_tables(frame: &mut Frame<'_>, body: Rect, app: &mut App) {
    let mut tables = app.page.tables(&app.report);
    let Some((first, further)) = tables.split_first_mut() else { return };
    if let Some(column) = app.sorted {
        first.sort(column, app.reverse);
    } else if app.reverse {
        first.rows.reverse();
    }
    let heights = further.iter().map(|table| Constraint::Length(height(table)));
    let areas = Layout::vertical([Constraint::Fill(1)].into_iter().chain(heights)).split(body);
    let fitted = Fitted::new(first, app.sorted, areas[0]);
    app.scroll = app.scroll.min(fitted.last_page());
    app.shown = fitted.draw(frame, app.scroll);
    for (table, area) in further.iter().zip(&areas[1..]) {
        Fitted::new(table, None, *area).draw(frame, 0);
    }
}

fn height(table: &Table) -> u16 {
    (table.rows.len() as u16).saturating_add(3).min(FURTHER)
}

/// A table in a part of the terminal.
struct Fitted<'a> {
    table: &'a Table,
    sorted: Option<usize>,
    title: Rect,
    body: Rect,
    /// The columns that are shown, and their widths.
    columns: Vec<(usize, usize)>,
}

impl<'a> Fitted<'a> {
    fn new(table: &'a Table, sorted: Option<usize>, area: Rect) -> Self {
        let [title, body] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let columns = fit::columns(table, sorted, body.width.into());
        Self { table, sorted, title, body, columns }
    }

    /// The lines of a cell.
    fn lines(&self, cell: &Cell, nth: usize, width: usize) -> Vec<String> {
        match self.table.narrow.wraps && self.table.is_flexible(nth) {
            true => wrap(&cell.text, width),
            false => vec![shorten(&cell.text, width)],
        }
    }

    /// How many of these rows fit.
    fn fits<'r>(&self, rows: impl Iterator<Item = &'r Vec<Cell>>) -> usize {
        let mut left = usize::from(self.body.height).saturating_sub(1);
        let has_room = |row: &&Vec<Cell>| {
            let spare = left.checked_sub(self.height(row));
            left = spare.unwrap_or_default();
            spare.is_some()
        };
        rows.take_while(has_room).count()
    }

    fn height(&self, row: &[Cell]) -> usize {
        let lines = |(nth, width): &(usize, usize)| self.lines(&row[*nth], *nth, *width).len();
        self.columns.iter().map(lines).max().unwrap_or(1)
    }

    /// The first row of the last page.
    fn last_page(&self) -> usize {
        let rows = &self.table.rows;
        rows.len() - self.fits(rows.iter().rev()).clamp(rows.len().min(1), rows.len())
    }

    /// Draws the rows from this one on; returns how many are shown.
    fn draw(&self, frame: &mut Frame<'_>, from: usize) -> usize {
        let rows = &self.table.rows[from..];
        // One that is higher than the terminal is cut.
        let shown = self.fits(rows.iter()).max(rows.len().min(1));
        self.draw_title(frame, from, shown);
        let head = self.columns.iter().map(|(nth, width)| {
            let is_sorted = self.sorted == Some(*nth);
            let style = if is_sorted { Modifier::REVERSED } else { Modifier::UNDERLINED };
            let name = shorten(self.table.column(*nth).0, *width);
            Text::from(Line::styled(name, style)).alignment(self.alignment(*nth))
        });
        let rows = rows[..shown].iter().map(|row| {
            let cells = self.columns.iter().map(|(nth, width)| {
                let cell = &row[*nth];
                let lines = self.lines(cell, *nth, *width).into_iter();
                let lines = lines.map(|line| Line::styled(line, style(cell.tone)));
                Text::from(lines.collect::<Vec<_>>()).alignment(self.alignment(*nth))
            });
            Row::new(cells).height(self.height(row) as u16)
        });
        let widths = self.columns.iter().map(|(_, width)| Constraint::Length(*width as u16));
        let widget = Widget::new(rows.collect::<Vec<_>>(), widths.collect::<Vec<_>>());
        frame.render_widget(widget.header(Row::new(head)).column_spacing(1), self.body);
        shown
    }

    /// Which rows are shown, and which columns are not.
    fn draw_title(&self, frame: &mut Frame<'_>, from: usize, shown: usize) {
        let range = match self.table.rows.len() {
            0 => "none".to_owned(),
            all => format!("{}-{} of {all}", from + 1, from + shown),
        };
        let is_shown = |nth: usize| self.columns.iter().any(|(shown, _)| *shown == nth);
        let hidden = (0..self.table.columns.len()).filter(|nth| !is_shown(*nth));
        let hidden: Vec<_> = hidden.map(|nth| self.table.column(nth).0).collect();
        let hint = match hidden.is_empty() || self.table.rows.is_empty() {
            true => String::new(),
            false => format!("  (too narrow for {})", hidden.join(", ")),
        };
        let text =
            shorten(&format!("{}: {range}{hint}", self.table.title), self.title.width.into());
        frame.render_widget(Line::styled(text, Modifier::BOLD), self.title);
    }

    fn alignment(&self, nth: usize) -> Alignment {
        if self.table.column(nth).1 { Alignment::Right } else { Alignment::Left }
    }
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Dim => Style::new().add_modifier(Modifier::DIM),
        Tone::Warn => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red),
    }
}
