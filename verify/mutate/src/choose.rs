//! Which mutants are tried, and in which order.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::plant::{Mutant, Operator};
use crate::sources::Area;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Texts of a file, a function or a change; all where there is none.
    pub only: Vec<String>,
    /// Parts of the workspace; all where there is none.
    pub areas: Vec<Area>,
    /// Kinds of mutant; all where there is none.
    pub operators: Vec<Operator>,
}

impl Filter {
    /// Whether a mutant is asked for.
    pub fn takes(&self, mutant: &Mutant) -> bool {
        let of_kind = self.operators.is_empty() || self.operators.contains(&mutant.operator);
        let in_area = self.areas.is_empty() || self.areas.contains(&mutant.area);
        let name = mutant.name.to_string();
        let is_named = self.only.is_empty() || self.only.iter().any(|text| name.contains(text));
        of_kind && in_area && is_named
    }
}

/// Every mutant, in an order that the seed says: each one is as likely as any other to be among the first.
pub fn shuffled(mut mutants: Vec<&Mutant>, seed: u64) -> Vec<&Mutant> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for last in (1..mutants.len()).rev() {
        let bound = u64::try_from(last + 1).unwrap_or(u64::MAX);
        // Of so few numbers, the remainder's bias is nothing.
        let other = usize::try_from(random.next_u64() % bound).unwrap_or(last);
        mutants.swap(last, other);
    }
    mutants
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::Name;

    fn mutants(count: u32) -> Vec<Mutant> {
        let one = |number| {
            let name = Name {
                file: format!("{number}.rs"),
                function: "f".into(),
                change: "x".into(),
                nth: 1,
            };
            Mutant { number, name, line: 1, operator: Operator::Flip, area: Area::Core }
        };
        (1..=count).map(one).collect()
    }

    fn numbers(mutants: &[Mutant], seed: u64) -> Vec<u32> {
        shuffled(mutants.iter().collect(), seed).iter().map(|mutant| mutant.number).collect()
    }

    #[test]
    fn a_seed_gives_one_order_of_all_and_another_seed_another() {
        let mutants = mutants(100);
        let order = numbers(&mutants, 1);
        assert_eq!(order, numbers(&mutants, 1));
        assert_ne!(order, numbers(&mutants, 2));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn every_mutant_comes_first_by_some_seed() {
        let mutants = mutants(5);
        let first: std::collections::BTreeSet<u32> =
            (0..100).map(|seed| numbers(&mutants, seed)[0]).collect();
        assert_eq!(first.len(), 5);
    }

    #[test]
    fn a_filter_takes_files_functions_and_kinds() {
        let mutants = mutants(12);
        let count = |only: &[&str], operators: Vec<Operator>| {
            let only = only.iter().map(ToString::to_string).collect();
            let filter = Filter { only, areas: vec![Area::Core], operators };
            mutants.iter().filter(|mutant| filter.takes(mutant)).count()
        };
        assert_eq!(count(&[], vec![]), 12);
        assert_eq!(count(&["1.rs"], vec![]), 2);
        assert_eq!(count(&["1.rs", "12.rs", "2.rs"], vec![]), 4);
        assert_eq!(count(&[], vec![Operator::Drop]), 0);
        assert_eq!(count(&[], vec![Operator::Drop, Operator::Flip]), 12);
    }
}
