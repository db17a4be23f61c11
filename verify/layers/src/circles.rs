//! Circles of modules with one parent.
//!
//! An arrow counts where the ways from the root to its two ends part: there it leads from one child of a module to
//! another. A deeper module that the table names stands for itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::arrows::Arrow;
use crate::fault::{Fault, Step};
use crate::place::Target;

/// The name of a module.
type Name<'a> = &'a [String];
/// Who uses whom, and where.
type Graph<'a> = BTreeMap<(Name<'a>, Name<'a>), Vec<&'a Arrow>>;

/// Adds the circles: short ones first, until every one that is left out has an arrow of one that is there.
pub fn find<'a>(target: &'a Target<'_>, arrows: &[&'a Arrow], faults: &mut Vec<Fault>) {
    let mut graphs: BTreeMap<Name<'_>, Graph<'_>> = BTreeMap::new();
    for arrow in arrows {
        if let Some((parent, ends)) = siblings(target, arrow) {
            graphs.entry(parent).or_default().entry(ends).or_default().push(arrow);
        }
    }
    for mut graph in graphs.into_values() {
        while let Some(circle) = shortest(&graph) {
            let next = circle.iter().cycle().skip(1);
            let ends: Vec<_> = circle.iter().zip(next).map(|(&from, &to)| (from, to)).collect();
            let steps = ends.iter().filter_map(|ends| step(*ends, &graph.remove(ends)?));
            faults.push(Fault::Circle(steps.collect()));
        }
    }
}

fn step((from, to): (Name<'_>, Name<'_>), arrows: &[&Arrow]) -> Option<Step> {
    let (first, others) = arrows.split_first()?;
    Some(Step {
        from: from.join("::"),
        to: to.join("::"),
        at: first.at.clone(),
        path: first.path.clone(),
        others: others.len(),
    })
}

/// The two modules with one parent that an arrow leads between; none, if one of its ends is in the other.
fn siblings<'a>(target: &'a Target<'_>, arrow: &Arrow) -> Option<(Name<'a>, (Name<'a>, Name<'a>))> {
    let path = |module: usize| &target.tree.modules[module].path[..];
    let (from, to) = (path(arrow.from), path(arrow.to));
    let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    if common == from.len() || common == to.len() {
        return None;
    }
    let end = |module: usize| {
        let named = target.place(module).map_or(0, |(name, _)| name.len());
        &path(module)[..named.max(common + 1)]
    };
    Some((&from[..common], (end(arrow.from), end(arrow.to))))
}

/// A shortest circle of the graph, without its first module at the end.
fn shortest<'a>(graph: &Graph<'a>) -> Option<Vec<Name<'a>>> {
    let mut next: BTreeMap<Name<'a>, Vec<Name<'a>>> = BTreeMap::new();
    for (from, to) in graph.keys() {
        next.entry(*from).or_default().push(*to);
    }
    let circles = next.keys().filter_map(|start| back_to(start, &next));
    circles.min_by_key(Vec::len)
}

/// The shortest way from a module back to it.
fn back_to<'a>(start: Name<'a>, next: &BTreeMap<Name<'a>, Vec<Name<'a>>>) -> Option<Vec<Name<'a>>> {
    let (mut left, mut seen) = (VecDeque::from([vec![start]]), BTreeSet::new());
    while let Some(way) = left.pop_front() {
        let last = *way.last()?;
        for &module in next.get(last).into_iter().flatten() {
            if module == start {
                return Some(way);
            }
            if seen.insert(module) {
                left.push_back([&way[..], &[module]].concat());
            }
        }
    }
    None
}
