//! Judging a target: arrows that go up, modules without a layer.

use std::collections::BTreeSet;

use crate::arrows::Arrow;
use crate::circles;
use crate::fault::Fault;
use crate::place::Target;
use crate::tree::ROOT;

/// Adds what is wrong with a target that has these arrows.
pub fn judge(target: &Target<'_>, arrows: &BTreeSet<Arrow>, faults: &mut Vec<Fault>) {
    for (nth, module) in target.tree.product() {
        if module.path.len() == 1 && target.layer(nth).is_none() {
            faults.push(Fault::NoLayer {
                file: module.file.display().to_string(),
                module: module.name(),
                target: format!("{}/{}", target.krate, target.root),
            });
        }
    }
    let (up, level): (Vec<_>, Vec<_>) = arrows.iter().partition(|arrow| is_up(target, arrow));
    faults.extend(up.iter().map(|arrow| fault(target, arrow)));
    circles::find(target, &level, faults);
}

fn is_up(target: &Target<'_>, arrow: &Arrow) -> bool {
    let Arrow { from, to, is_reexport, .. } = arrow;
    match (target.layer(*from), target.layer(*to)) {
        _ if *from == ROOT => false,
        _ if *to == ROOT => true,
        // A module hands on what is in it.
        _ if *is_reexport && target.tree.is_in(*to, *from) => false,
        (Some(low), Some(high)) => high < low,
        // That it has no layer is a fault of its own.
        _ => false,
    }
}

fn fault(target: &Target<'_>, arrow: &Arrow) -> Fault {
    let (at, path) = (arrow.at.clone(), arrow.path.clone());
    let [from, to] = [arrow.from, arrow.to].map(|module| target.tree.modules[module].name());
    match (target.layer(arrow.from), target.layer(arrow.to)) {
        (Some(low), Some(high)) => Fault::Up { at, path, from, low, to, high },
        _ => Fault::UpToRoot { at, path, from, root: target.root.to_owned() },
    }
}
