//! Trying mutants: each on the checks that reach it, the quickest first, until one notices it.
//!
//! What survives the quick checks is tried on the slow ones when all others have been tried: most mutants are noticed
//! within a second, and a survivor takes minutes.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use crate::attempt::{AttemptError, Ended, On, attempt};
use crate::baseline::Baseline;
use crate::checks::{Check, Kind};
use crate::kept::Kept;
use crate::outcome::Outcome;
use crate::plant::{Mutant, Operator};

/// What a check may take with a mutant, at least.
const LEAST: Duration = Duration::from_secs(5);
/// Models grow with what may happen in them.
const LEAST_OF_A_MODEL: Duration = Duration::from_secs(30);
/// How many times as long as without one.
const TIMES: f64 = 8.0;

/// What a model with more preemptions may take: its own limit, and then some.
const LIMIT_OF_MORE: Duration = Duration::from_secs(150);

/// Which checks a mutant is tried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Those that take no longer than [`QUICK`].
    Quick,
    /// The others, and models with more preemptions.
    Slow,
}

/// What a quick check takes.
const QUICK: Duration = Duration::from_secs(1);

/// How many of the checks that reach a survivor are named.
const NAMED: usize = 12;

/// The checks, and what they do by themselves.
#[derive(Debug)]
pub struct Hunt<'a> {
    checks: Vec<(&'a Check, Duration)>,
    baseline: &'a Baseline,
    more: &'a [Check],
    kept: &'a Kept,
    deadline: Option<Instant>,
}

impl<'a> Hunt<'a> {
    /// On the first of these checks; on the models that are second what survives them. Until the deadline.
    pub fn new(
        (checks, more): (&'a [Check], &'a [Check]),
        baseline: &'a Baseline,
        kept: &'a Kept,
        deadline: Option<Instant>,
    ) -> Self {
        let known = |check: &'a Check| (check, Duration::from_secs_f64(baseline.of(check).seconds));
        let mut checks: Vec<_> = checks.iter().map(known).collect();
        checks.sort_by(|(_, one), (_, other)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        Self { checks, baseline, more, kept, deadline }
    }

    /// Whether only some mutants are tried, on the quick checks, which are not all.
    pub const fn is_share(&self) -> bool {
        self.deadline.is_some()
    }

    /// Whether there is time for another mutant.
    pub fn goes_on(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }

    /// Tries a mutant on the checks of a pass; what has survived the quick ones, on the slow ones.
    pub fn try_out(&self, mutant: &Mutant, pass: Pass) -> Result<Outcome, AttemptError> {
        let reaching: Vec<_> =
            self.checks.iter().filter(|(check, _)| self.reaches(check, mutant)).collect();
        let first_slow = reaching.partition_point(|(_, usual)| *usual <= QUICK);
        let (quick, slow) = reaching.split_at(first_slow);
        let more = self.more.iter().filter(|check| self.is_more_of(check, mutant, &reaching));
        let more: Vec<_> = more.collect();
        let now = match pass {
            _ if self.is_share() => &reaching[..],
            Pass::Quick => quick,
            Pass::Slow => slow,
        };
        for (check, usual) in now {
            if let Some(outcome) = self.notices(check, mutant, limit(check, *usual))? {
                return Ok(outcome);
            }
        }
        if pass == Pass::Quick && !self.is_share() && !(slow.is_empty() && more.is_empty()) {
            return Ok(Outcome::Undecided);
        }
        for check in more {
            if let Some(outcome) = self.notices(check, mutant, LIMIT_OF_MORE)? {
                return Ok(outcome);
            }
        }
        let names = reaching.iter().take(NAMED).map(|(check, _)| check.to_string());
        Ok(Outcome::Survived { reached: reaching.len(), reached_by: names.collect() })
    }

    fn reaches(&self, check: &Check, mutant: &Mutant) -> bool {
        let may_see = !mutant.operator.is_for_loom() || check.kind == Kind::Loom;
        may_see && self.baseline.reaches(check, mutant.number)
    }

    /// Whether a model is one of those that were tried, with more preemptions. They take long, and are for what models
    /// alone can see.
    fn is_more_of(&self, more: &Check, mutant: &Mutant, tried: &[&(&Check, Duration)]) -> bool {
        let is_for_models = mutant.operator.is_for_loom() || mutant.operator == Operator::Site;
        is_for_models
            && tried.iter().any(|(check, _)| {
                (check.kind, &check.program, &check.arguments)
                    == (more.kind, &more.program, &more.arguments)
            })
    }

    fn notices(
        &self,
        check: &Check,
        mutant: &Mutant,
        limit: Duration,
    ) -> Result<Option<Outcome>, AttemptError> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let allowed = left.map_or(limit, |left| left.min(limit));
        let mut ended = attempt(check, On::Mutant(mutant.number), allowed)?.0;
        if ended != Ended::Passed && self.kept.explains(mutant) {
            // Of what should survive, a test that fails now and then says nothing.
            ended = attempt(check, On::Mutant(mutant.number), allowed)?.0;
        }
        Ok(match ended {
            Ended::Passed => None,
            Ended::Late if allowed < limit => Some(Outcome::Undecided),
            Ended::Failed | Ended::Late => Some(Outcome::Noticed {
                kind: check.kind,
                by: check.name.clone(),
                late: ended == Ended::Late,
            }),
        })
    }
}

fn limit(check: &Check, usual: Duration) -> Duration {
    let least = if check.kind == Kind::Loom { LEAST_OF_A_MODEL } else { LEAST };
    usual.mul_f64(TIMES).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::Known;
    use crate::plant::Name;
    use crate::report::Report;
    use crate::sources::Area;

    fn script(name: &str, text: &str) -> Check {
        Check {
            kind: Kind::Device,
            name: name.into(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), text.into()],
            variables: Vec::new(),
        }
    }

    fn mutant(number: u32, operator: Operator) -> Mutant {
        let (file, function) = ("a.rs".into(), "f".into());
        let name = Name { file, function, change: number.to_string(), nth: 1 };
        Mutant { number, name, line: 1, operator, area: Area::Core }
    }

    /// Each check with its seconds, and the mutants that it reaches.
    fn baseline(checks: &[Check], known: &[(f64, &[u32])]) -> Baseline {
        let known = known.iter().map(|(seconds, reaches)| Known {
            seconds: *seconds,
            reaches: reaches.iter().copied().collect(),
        });
        Baseline::of_checks(checks.iter().map(ToString::to_string).zip(known))
    }

    #[test]
    fn the_quickest_check_that_reaches_a_mutant_notices_it_and_what_none_notices_is_told() {
        let fails = "test \"$VERIFY_MUTANT\" != 1";
        let checks = [script("slow", fails), script("quick", fails), script("blind", "true")];
        let reached: [(f64, &[u32]); 3] = [(0.5, &[1]), (0.1, &[1]), (0.0, &[1, 2])];
        let kept = Kept::default();
        let baseline = baseline(&checks, &reached);
        let hunt = Hunt::new((&checks, &[]), &baseline, &kept, None);
        let noticed = hunt.try_out(&mutant(1, Operator::Drop), Pass::Quick).unwrap();
        assert!(matches!(&noticed, Outcome::Noticed { by, late: false, .. } if by == "quick"));
        let survived = hunt.try_out(&mutant(2, Operator::Drop), Pass::Quick).unwrap();
        assert_eq!(
            survived,
            Outcome::Survived { reached: 1, reached_by: vec!["device blind".into()] }
        );

        let (one, two) = (mutant(1, Operator::Drop), mutant(2, Operator::Drop));
        let planted = [&one, &two];
        let tried = vec![(&one, noticed), (&two, survived)];
        let report = Report { kept: &kept, planted: &planted, tried, stale: Vec::new(), checks: 3 };
        assert!(!report.is_well());
        assert!(report.complaints().contains("a.rs:1 f [drop, number 2]"));
        let said = report.summary();
        assert_eq!(said, "2 of 2 mutants tried on 3 checks: 1 noticed, 0 explained, 1 survived");
    }

    #[test]
    fn a_share_that_notices_nothing_is_not_well() {
        let (kept, one, two) =
            (Kept::default(), mutant(1, Operator::Drop), mutant(2, Operator::Drop));
        let planted = [&one, &two];
        let noticed = || Outcome::Noticed { kind: Kind::Engine, by: "a test".into(), late: false };
        let is_well = |tried: Vec<Outcome>| {
            let tried = planted.into_iter().zip(tried).collect();
            let stale = Vec::new();
            Report { kept: &kept, planted: &planted, tried, stale, checks: 1 }.is_well()
        };
        assert!(is_well(vec![noticed(), noticed()]));
        assert!(is_well(vec![noticed(), Outcome::Undecided]));
        assert!(!is_well(vec![Outcome::Undecided]));
        assert!(!is_well(Vec::new()));
    }

    #[test]
    fn what_a_share_does_not_notice_survives_however_quick_its_checks_are() {
        let checks = [script("blind", "true"), script("slow", "test \"$VERIFY_MUTANT\" != 2")];
        let kept = Kept::default();
        let baseline = baseline(&checks, &[(0.0, &[1, 2]), (2.0, &[1, 2])]);
        let deadline = Instant::now() + Duration::from_secs(60);
        let hunt = Hunt::new((&checks, &[]), &baseline, &kept, Some(deadline));
        let tried = |number| hunt.try_out(&mutant(number, Operator::Drop), Pass::Quick).unwrap();
        assert!(matches!(tried(1), Outcome::Survived { reached: 2, .. }));
        assert!(matches!(tried(2), Outcome::Noticed { .. }));
    }

    #[test]
    fn slow_checks_are_for_what_survives_the_quick_ones() {
        let checks = [script("slow", "test \"$VERIFY_MUTANT\" != 1"), script("quick", "true")];
        let baseline = baseline(&checks, &[(2.0, &[1, 2]), (0.1, &[1, 2])]);
        let kept = Kept::default();
        let hunt = Hunt::new((&checks, &[]), &baseline, &kept, None);
        let tried = |number, pass| hunt.try_out(&mutant(number, Operator::Drop), pass).unwrap();
        assert_eq!(tried(1, Pass::Quick), Outcome::Undecided);
        assert!(matches!(tried(1, Pass::Slow), Outcome::Noticed { by, .. } if by == "slow"));
        assert!(matches!(tried(2, Pass::Slow), Outcome::Survived { reached: 2, .. }));
    }

    #[test]
    fn what_nothing_reaches_survives_at_once() {
        let checks = [script("any", "false")];
        let kept = Kept::default();
        let baseline = baseline(&checks, &[(0.0, &[])]);
        let hunt = Hunt::new((&checks, &[]), &baseline, &kept, None);
        let survived = hunt.try_out(&mutant(1, Operator::Drop), Pass::Quick).unwrap();
        assert_eq!(survived, Outcome::Survived { reached: 0, reached_by: Vec::new() });
    }

    #[test]
    fn orderings_are_tried_on_models_alone_and_at_last_with_more_preemptions() {
        let model = |bound: &str, text: &str| Check {
            kind: Kind::Loom,
            variables: vec![("LOOM_MAX_PREEMPTIONS", bound.into())],
            ..script(bound, text)
        };
        let text = "test $LOOM_MAX_PREEMPTIONS != 3";
        let (checks, more) = ([script("test", "false"), model("2", text)], [model("3", text)]);
        let kept = Kept::default();
        let baseline = baseline(&checks, &[(0.0, &[1]), (0.1, &[1])]);
        let noticed = |more| {
            let hunt = Hunt::new((&checks, more), &baseline, &kept, None);
            hunt.try_out(&mutant(1, Operator::Ordering), Pass::Slow).unwrap()
        };
        assert!(matches!(noticed(&more), Outcome::Noticed { by, .. } if by == "3"));
        assert!(matches!(noticed(&[]), Outcome::Survived { .. }));
    }

    #[test]
    fn what_is_under_way_when_the_time_is_over_is_not_judged() {
        let checks = [script("hangs", "sleep 1000")];
        let kept = Kept::default();
        let baseline = baseline(&checks, &[(0.0, &[1])]);
        let deadline = Instant::now() + Duration::from_millis(300);
        let hunt = Hunt::new((&checks, &[]), &baseline, &kept, Some(deadline));
        assert_eq!(
            hunt.try_out(&mutant(1, Operator::Drop), Pass::Quick).unwrap(),
            Outcome::Undecided
        );
        assert!(!hunt.goes_on());
    }
}
