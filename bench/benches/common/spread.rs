//! The statistics of what was measured.

/// The middle of some figures.
pub struct Spread {
    /// A quarter of them is below.
    pub low: f64,
    /// Half of them is below.
    pub median: f64,
    /// A quarter of them is above.
    pub high: f64,
    /// How many there are.
    pub count: usize,
}

impl Spread {
    /// `None` if there are no figures.
    pub fn of(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_unstable_by(f64::total_cmp);
        let last = figures.len().checked_sub(1)?;
        let quarter = |n: usize| figures[(last * n + 2) / 4];
        Some(Self { low: quarter(1), median: quarter(2), high: quarter(3), count: figures.len() })
    }
}
