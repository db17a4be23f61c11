//! What was measured, and the statistics of it.

use crate::common::placement::Placement;
use crate::common::scenarios::{Kind, Sample, Scenario};
use crate::spread::Spread;

/// The samples of a scenario.
pub struct Series {
    /// What was measured.
    pub scenario: Scenario,
    /// A sample of each row, in each round.
    pub rounds: Vec<Vec<Sample>>,
}

impl Series {
    /// How many samples are of no use.
    pub fn moved(&self) -> usize {
        let samples = self.rounds.iter().flatten();
        samples.filter(|sample| sample.placement == Placement::Moved).count()
    }

    /// The row's time of one.
    pub fn nanos(&self, row: usize, at: Placement) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| nanos(&round[row], at)))
    }

    /// The row's time as a multiple of the other one's in the same round.
    pub fn ratio(&self, row: usize, to: usize, at: Placement) -> Option<Spread> {
        let ratio = |round: &Vec<Sample>| Some(nanos(&round[row], at)? / nanos(&round[to], at)?);
        Spread::of(self.rounds.iter().filter_map(ratio))
    }

    /// The fastest row of a kind.
    pub fn best(&self, kind: Kind, at: Placement) -> Option<usize> {
        let rows = self.scenario.rows.iter().enumerate().filter(|(_, row)| row.kind == kind);
        let medians = rows.filter_map(|(index, _)| Some((index, self.nanos(index, at)?.median)));
        medians.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index)
    }
}

fn nanos(sample: &Sample, at: Placement) -> Option<f64> {
    (sample.placement == at).then(|| sample.elapsed.as_secs_f64() * 1e9 / sample.count as f64)
}
