//! The report.

use comfy_table::{Table, presets};

use crate::common::peer::Peer;
use crate::common::peers::RtrbChunks;
use crate::common::placement::Placement;
use crate::common::scenarios::Kind;
use crate::series::Series;

/// The queue that aims are set against.
const REFERENCE: &str = RtrbChunks::NAME;

/// Every scenario, queue and placement in one table.
pub fn of(measured: &[Series]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "scenario".into(),
        "cores".into(),
        "queue".into(),
        "median".into(),
        "quartiles".into(),
        "× best peer".into(),
        format!("× {REFERENCE}"),
        "× limit".into(),
        "samples".to_string(),
    ]);
    for series in measured {
        for at in [Placement::OneCore, Placement::Near, Placement::Far] {
            add_placement(&mut table, series, at);
        }
    }
    table
}

/// Nothing, if no sample was taken there.
fn add_placement(table: &mut Table, series: &Series, at: Placement) {
    let rows = &series.scenario.rows;
    let reference = rows.iter().position(|row| row.peer == REFERENCE);
    let (best, limit) = (series.best(Kind::Peer, at), series.best(Kind::Limit, at));
    for (index, row) in rows.iter().enumerate() {
        let Some(nanos) = series.nanos(index, at) else { continue };
        let ratio = |to: Option<usize>| {
            let ratio = to.and_then(|to| series.ratio(index, to, at));
            ratio.map_or_else(String::new, |ratio| format!("{:.2}", ratio.median))
        };
        table.add_row([
            series.scenario.name.clone(),
            at.to_string(),
            row.to_string(),
            format!("{:.2}", nanos.median),
            format!("{:.2} – {:.2}", nanos.low, nanos.high),
            ratio(best),
            ratio(reference),
            ratio(limit),
            nanos.count.to_string(),
        ]);
    }
}
