//! Trying mutants: each on the checks that reach it, the quickest first, until one notices it.

use std::time::Duration;

use anyhow::Result;

use crate::attempt::{Ended, On, attempt};
use crate::baseline::Baseline;
use crate::checks::{Check, Kind, Outcome, PREEMPTIONS};
use crate::kept::Kept;
use crate::plant::Mutant;

/// What a check may take with a mutant, at least.
const LEAST: Duration = Duration::from_secs(5);
/// Models grow with what may happen in them.
const LEAST_OF_A_MODEL: Duration = Duration::from_secs(30);
/// How many times as long as without one.
const TIMES: f64 = 8.0;

/// The preemptions of a model that is to see what survived it with fewer.
const MORE: &str = "3";
/// What such a model may take: its own limit, and then some.
const LIMIT_OF_MORE: Duration = Duration::from_secs(150);

/// How many of the checks that reach a survivor are named.
const NAMED: usize = 12;

/// The checks, and what they do by themselves.
#[derive(Debug)]
pub struct Hunt<'a> {
    checks: Vec<(&'a Check, f64)>,
    baseline: &'a Baseline,
    kept: &'a Kept,
}

impl<'a> Hunt<'a> {
    /// On these checks.
    pub fn new(checks: &'a [Check], baseline: &'a Baseline, kept: &'a Kept) -> Self {
        let seconds = |check: &Check| baseline.get(&check.to_string()).map_or(0.0, |it| it.seconds);
        let mut checks: Vec<_> = checks.iter().map(|check| (check, seconds(check))).collect();
        checks.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        Self { checks, baseline, kept }
    }

    /// Tries a mutant.
    pub fn try_out(&self, mutant: &Mutant) -> Result<Outcome> {
        let reaching: Vec<_> =
            self.checks.iter().filter(|(check, _)| self.reaches(check, mutant)).collect();
        for (check, usual) in &reaching {
            let least = if check.kind == Kind::Loom { LEAST_OF_A_MODEL } else { LEAST };
            let limit = Duration::from_secs_f64(usual * TIMES).max(least);
            if let Some(outcome) = self.notices(check, mutant, limit)? {
                return Ok(outcome);
            }
        }
        // More preemptions take long, and are for what models alone can see.
        let models = reaching.iter().filter(|(check, _)| check.kind == Kind::Loom);
        for (model, _) in models.filter(|_| mutant.operator.is_for_loom()) {
            let more = model.with(PREEMPTIONS, MORE);
            if let Some(outcome) = self.notices(&more, mutant, LIMIT_OF_MORE)? {
                return Ok(outcome);
            }
        }
        let names = reaching.iter().take(NAMED).map(|(check, _)| check.to_string());
        let reached_by = names.collect();
        Ok(Outcome::Survived { reached: reaching.len(), reached_by })
    }

    fn reaches(&self, check: &Check, mutant: &Mutant) -> bool {
        let may_see = !mutant.operator.is_for_loom() || check.kind == Kind::Loom;
        let known = self.baseline.get(&check.to_string());
        may_see && known.is_some_and(|known| known.reaches.contains(&mutant.number))
    }

    fn notices(&self, check: &Check, mutant: &Mutant, limit: Duration) -> Result<Option<Outcome>> {
        let mut ended = attempt(check, On::Mutant(mutant.number), limit)?.ended;
        if ended != Ended::Passed && self.kept.explains(mutant) {
            // Of what should survive, a test that fails now and then says nothing.
            ended = attempt(check, On::Mutant(mutant.number), limit)?.ended;
        }
        Ok(match ended {
            Ended::Passed => None,
            Ended::Failed | Ended::Late => Some(Outcome::Noticed {
                kind: check.kind,
                by: check.name.clone(),
                late: ended == Ended::Late,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::Known;
    use crate::plant::Operator;

    /// What becomes of the mutant with this number on these checks, each with its seconds and the mutants that it
    /// reaches.
    fn tried(number: u32, operator: Operator, checks: &[(Check, f64, &[u32])]) -> Outcome {
        let known = |seconds, reaches: &[u32]| {
            let reaches = reaches.iter().copied().collect();
            Known { seconds, reaches, ..Known::default() }
        };
        let baseline = checks
            .iter()
            .map(|(check, seconds, reaches)| (check.to_string(), known(*seconds, reaches)));
        let (baseline, kept) = (baseline.collect(), Kept::default());
        let checks: Vec<_> = checks.iter().map(|(check, ..)| check.clone()).collect();
        let hunt = Hunt::new(&checks, &baseline, &kept);
        hunt.try_out(&Mutant { operator, ..Mutant::numbered(number) }).unwrap()
    }

    fn noticed(by: &str) -> Outcome {
        Outcome::Noticed { kind: Kind::Device, by: by.into(), late: false }
    }

    #[test]
    fn the_quickest_check_that_reaches_a_mutant_notices_it_and_what_none_notices_is_told() {
        let fails = "test \"$VERIFY_MUTANT\" != 1";
        let checks: [(Check, f64, &[u32]); 3] = [
            (Check::script("slow", fails), 0.5, &[1]),
            (Check::script("quick", fails), 0.1, &[1]),
            (Check::script("blind", "true"), 0.0, &[1, 2]),
        ];
        assert_eq!(tried(1, Operator::Drop, &checks), noticed("quick"));
        let blind = vec!["device blind".into()];
        for (number, reached, reached_by) in [(2, 1, blind), (3, 0, Vec::new())] {
            let survived = Outcome::Survived { reached, reached_by };
            assert_eq!(tried(number, Operator::Drop, &checks), survived);
        }
    }

    #[test]
    fn orderings_are_tried_on_models_alone_and_at_last_with_more_preemptions() {
        let model = Check::script("model", "test \"$LOOM_MAX_PREEMPTIONS\" != 3");
        let model = Check { kind: Kind::Loom, ..model.with(PREEMPTIONS, "2") };
        let checks: [(Check, f64, &[u32]); 2] =
            [(Check::script("test", "false"), 0.0, &[1]), (model, 0.1, &[1])];
        let by_model = Outcome::Noticed { kind: Kind::Loom, by: "model".into(), late: false };
        assert_eq!(tried(1, Operator::Ordering, &checks), by_model);
        assert_eq!(tried(1, Operator::Drop, &checks), noticed("test"));
    }
}
