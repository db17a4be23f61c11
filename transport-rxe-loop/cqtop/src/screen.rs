//! How the view is drawn.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table as Widget};

use crate::app::App;
use crate::cell::{Cell, Tone};
use crate::tables::{Page, Table, summary};

const HELP: &str = "1-6 Tab: table  s S r: sort  ↑ ↓ PgUp PgDn: scroll  p: pause  q: quit";
/// Rows of a further table of a page, at most, with its title and head.
const FURTHER: u16 = 10;

/// Draws the view.
pub fn draw(frame: &mut Frame<'_>, app: &App) {
    let lines = summary(&app.report);
    let [top, pages, body, bottom] = Layout::vertical([
        Constraint::Length(lines.len() as u16),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let lines: Vec<_> =
        lines.into_iter().map(|(line, tone)| Line::styled(line, style(tone))).collect();
    frame.render_widget(Paragraph::new(lines), top);
    frame.render_widget(names(app.page), pages);
    draw_tables(frame, body, app);
    let state = if app.is_paused { "  PAUSED" } else { "" };
    let help = Line::from(vec![
        Span::styled(HELP, Style::new().add_modifier(Modifier::DIM)),
        Span::styled(state, Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)),
    ]);
    frame.render_widget(help, bottom);
}

/// The names of the pages, that of the shown one reversed.
fn names(shown: Page) -> Line<'static> {
    let names = (1..).zip(Page::ALL).flat_map(|(nth, page)| {
        let style = if page == shown { Modifier::REVERSED } else { Modifier::empty() };
        [Span::styled(format!(" {nth} {} ", page.name()), style), Span::raw(" ")]
    });
    Line::from(names.collect::<Vec<_>>())
}

fn draw_tables(frame: &mut Frame<'_>, body: Rect, app: &App) {
    let mut tables = app.page.tables(&app.report);
    let Some((first, further)) = tables.split_first_mut() else { return };
    if let Some(column) = app.sorted {
        first.sort(column, app.reverse);
    } else if app.reverse {
        first.rows.reverse();
    }
    let heights = further.iter().map(|table| Constraint::Length(height(table)));
    let areas = Layout::vertical([Constraint::Fill(1)].into_iter().chain(heights)).split(body);
    draw_table(frame, areas[0], first, app.sorted, app.scroll);
    for (table, area) in further.iter().zip(&areas[1..]) {
        draw_table(frame, *area, table, None, 0);
    }
}

fn height(table: &Table) -> u16 {
    (table.rows.len() as u16).saturating_add(3).min(FURTHER)
}

fn draw_table(
    frame: &mut Frame<'_>,
    area: Rect,
    table: &Table,
    sorted: Option<usize>,
    scroll: usize,
) {
    let [title, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let fits = usize::from(body.height).saturating_sub(1);
    let shown: Vec<_> = table.rows.iter().skip(scroll).take(fits).collect();
    let (from, all) = (scroll + usize::from(!shown.is_empty()), table.rows.len());
    let range = match all {
        0 => "none".to_owned(),
        _ => format!("{from}-{} of {all}", scroll + shown.len()),
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(format!("{}: {range}", table.title), bold), title);
    let columns = 0..table.columns.len();
    let widths = columns.clone().map(|nth| width(table, nth, &shown));
    let head = columns.clone().map(|nth| {
        let style = if sorted == Some(nth) { Modifier::REVERSED } else { Modifier::UNDERLINED };
        aligned(table, nth, Span::styled(table.column(nth).0, style))
    });
    let rows = shown.iter().map(|row| {
        let cells = columns.clone().zip(row.iter());
        Row::new(cells.map(|(nth, cell)| {
            aligned(table, nth, Span::styled(cell.text.as_str(), style(cell.tone)))
        }))
    });
    let widget = Widget::new(rows.collect::<Vec<_>>(), widths.collect::<Vec<_>>());
    frame.render_widget(widget.header(Row::new(head)).column_spacing(1), body);
}

/// As wide as its widest cell; the last column takes what is left.
fn width(table: &Table, nth: usize, shown: &[&Vec<Cell>]) -> Constraint {
    let cells = shown.iter().filter_map(|row| row.get(nth)).map(|cell| cell.text.chars().count());
    let widest = cells.chain([table.column(nth).0.chars().count()]).max().unwrap_or_default();
    match nth + 1 == table.columns.len() {
        true => Constraint::Min(widest as u16),
        false => Constraint::Length(widest as u16),
    }
}

fn aligned<'a>(table: &Table, nth: usize, span: Span<'a>) -> Line<'a> {
    let alignment = if table.column(nth).1 { Alignment::Right } else { Alignment::Left };
    Line::from(span).alignment(alignment)
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Dim => Style::new().add_modifier(Modifier::DIM),
        Tone::Warn => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red),
    }
}
