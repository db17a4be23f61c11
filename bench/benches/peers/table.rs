//! The report.

use comfy_table::{Table, presets};

use crate::placement::Placement;
use crate::sample::Sample;
use crate::scenarios::{Aim, Scenario};
use crate::spread::Spread;

/// A scenario, and what each of its rows came to in each round.
pub struct Measured {
    pub scenario: Scenario,
    pub rounds: Vec<Vec<Sample>>,
}

/// Every scenario, row and placement in one table.
pub fn of(measured: &[Measured]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header(["scenario", "cores", "by", "median", "quartiles", "ratio", "aim", "samples"]);
    for it in measured {
        for at in [Placement::OneCore, Placement::Near, Placement::Far] {
            add_placement(&mut table, it, at);
        }
    }
    table
}

/// Nothing, if no sample was taken there.
fn add_placement(table: &mut Table, measured: &Measured, at: Placement) {
    for (index, row) in measured.scenario.rows.iter().enumerate() {
        let nanos = measured.rounds.iter().filter_map(|round| nanos(&round[index], at));
        let Some(nanos) = Spread::of(nanos) else { continue };
        let is_ours = index == 0;
        let (ratio, aim) = if is_ours { ratio(measured, at) } else { Default::default() };
        table.add_row([
            measured.scenario.name.clone(),
            at.to_string(),
            row.name.to_owned(),
            format!("{:.1}", nanos.median),
            format!("{:.1} – {:.1}", nanos.low, nanos.high),
            ratio,
            aim,
            nanos.count.to_string(),
        ]);
    }
}

/// Ours to the other's in the same round, and what it should be.
fn ratio(measured: &Measured, at: Placement) -> (String, String) {
    let (aim, text) = match measured.scenario.aim {
        Aim::Time(most) => (1, format!("time ≤ {most}")),
        Aim::Rate(Some(least)) => (-1, format!("rate ≥ {least}")),
        Aim::Rate(None) => (-1, "rate".to_owned()),
    };
    let ratios = measured.rounds.iter().filter_map(|round| {
        let (ours, other) = (nanos(&round[0], at)?, nanos(round.get(1)?, at)?);
        Some((ours / other).powi(aim))
    });
    let ratio =
        Spread::of(ratios).map(|it| format!("{:.2} ({:.2} – {:.2})", it.median, it.low, it.high));
    (ratio.unwrap_or_default(), text)
}

fn nanos(sample: &Sample, at: Placement) -> Option<f64> {
    (sample.placement == at).then_some(sample.nanos)
}
