//! A plot of a sweep: latency, and below it bandwidth, over the size of messages; all axes are logarithmic.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::exit::Exit;
use crate::job::Outcome;
use crate::report::{Report, bytes_per_s};
use crate::stats::Latency;

/// A file that a plot goes into.
pub struct Plot {
    file: File,
    path: PathBuf,
}

/// Width and height.
const SIZE: (u32, u32) = (900, 1000);

/// Room for the heading, and for a name of an axis.
const HEADING: u32 = 40;
const FONT: (&str, u32) = ("sans-serif", 16);

const COLORS: [RGBColor; 2] = [RGBColor(0, 90, 180), RGBColor(200, 80, 0)];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Why nothing can be drawn.
type Failed = Box<dyn Error>;

impl Plot {
    /// Makes the file, so that nothing is measured in vain.
    pub fn create(path: &Path) -> Result<Self, Exit> {
        let file = File::create(path).map_err(|why| failed(path, &why))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Draws what was measured.
    pub fn write(mut self, report: &Report<'_>) -> Result<(), Exit> {
        let drawn = draw(report).and_then(|svg| Ok(self.file.write_all(svg.as_bytes())?));
        drawn.map_err(|why| failed(&self.path, &*why))
    }
}

fn failed(path: &Path, why: &dyn Error) -> Exit {
    Exit::failed(format!("cannot write the plot to {}: {why}", path.display()))
}

fn draw(report: &Report<'_>) -> Result<String, Failed> {
    let (mut svg, outcomes) = (String::new(), &report.outcomes);
    if let Some(first) = outcomes.first() {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (heading, charts) = area.split_vertically(HEADING);
        heading.titled(&report.heading(), FONT)?;
        let (upper, lower) = charts.split_vertically((SIZE.1 - HEADING) / 2);
        let latencies = [
            ("p50", (|latency| latency.p50) as fn(Latency) -> u64),
            ("p99", |latency| latency.p99),
        ];
        let latencies = latencies.map(|(name, which)| {
            let point =
                |outcome: &Outcome| Some((outcome.job.bytes(), which(outcome.latency?) as f64));
            (name, outcomes.iter().filter_map(point).collect())
        });
        let what = format!("latency, {}", first.job.op.latency_is());
        chart(&upper, &what, nanoseconds, &latencies)?;
        let point = |outcome: &Outcome| (outcome.job.bytes(), bytes_per_s(outcome));
        let points = outcomes.iter().map(point).collect();
        chart(&lower, "bytes/s, of the whole loop", bytes, &[("bytes/s", points)])?;
        area.present()?;
    }
    Ok(svg)
}

/// The name of a line, and its points: each a size and a value.
type Line = (&'static str, Vec<(u32, f64)>);

/// One chart. Sizes are shown by their exponent.
fn chart(
    area: &Area<'_>,
    name: &str,
    unit: fn(f64) -> String,
    lines: &[Line],
) -> Result<(), Failed> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    // None, where messages are too short for latencies.
    let Some(values) = decades(points().map(|&(_, value)| value)) else {
        return Ok(());
    };
    let last = points().map(|&(size, _)| exponent(size)).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(88)
        .build_cartesian_2d(0.0..last, values.log_scale())?;
    chart
        .configure_mesh()
        .x_desc("message size (bytes)")
        .y_desc(name)
        .x_labels(last as usize + 1)
        .x_label_formatter(&|exponent| short(exponent.exp2(), 1024.0, &["", "K", "M", "G"]))
        .y_label_formatter(&|value| unit(*value))
        .label_style(FONT)
        .max_light_lines(1)
        .bold_line_style(BLACK.mix(0.15))
        .draw()?;
    for ((name, points), color) in lines.iter().zip(COLORS) {
        let points = points.iter().map(|&(size, value)| (exponent(size), value));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)).point_size(3))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(FONT)
        .draw()?;
    Ok(())
}

/// Where a size is on its axis.
fn exponent(size: u32) -> f64 {
    f64::from(size.max(1)).log2()
}

/// The powers of ten around these; none if there are no values.
fn decades(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let exponents = values.map(|value| value.max(1.0).log10());
    let (low, high) = exponents.fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })?;
    Some(10f64.powf(low.floor())..10f64.powf(high.floor() + 1.0))
}

fn nanoseconds(value: f64) -> String {
    short(value, 1000.0, &[" ns", " µs", " ms", " s"])
}

fn bytes(value: f64) -> String {
    short(value, 1000.0, &[" B/s", " kB/s", " MB/s", " GB/s", " TB/s"])
}

/// In the largest unit of which there is one.
fn short(value: f64, step: f64, units: &[&str]) -> String {
    let count = units.len() - 1;
    let nth = (0..count).find(|&nth| value.round() < step.powi(nth as i32 + 1)).unwrap_or(count);
    format!("{:.0}{}", value / step.powi(nth as i32), units[nth])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_the_unit_that_suits() {
        assert_eq!([1.0, 999.0, 1e3, 1e7].map(nanoseconds), ["1 ns", "999 ns", "1 µs", "10 ms"]);
        assert_eq!([1.0, 1e9, 1e15].map(bytes), ["1 B/s", "1 GB/s", "1000 TB/s"]);
    }

    #[test]
    fn axes_are_whole_decades_around_the_values() {
        assert_eq!(decades([120.0, 4_000.0].into_iter()), Some(100.0..10_000.0));
        assert_eq!(decades([1_000.0].into_iter()), Some(1_000.0..10_000.0));
        assert_eq!(decades([0.0].into_iter()), Some(1.0..10.0));
        assert_eq!(decades([].into_iter()), None);
    }
}
