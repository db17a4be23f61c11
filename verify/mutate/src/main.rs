//! Draft.
mod compile;
mod constants;
mod plant;
mod signatures;
mod sources;
mod tree;
mod worlds;

use std::path::Path;
use std::time::Instant;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let target = root.join("target/mutate");
    let tree = tree::Tree::new(root, &target.join("tree")).unwrap();
    let mut constants = constants::Constants::default();
    for (_, text) in tree.rust().unwrap() {
        if let Ok(tokens) = text.parse() { constants.add(tokens); }
    }
    constants.close();
    let sources = sources::read(root).unwrap();
    let mut signatures = signatures::Signatures::new();
    for source in &sources { signatures.add(&source.syntax); }
    let planting = plant::plant(&sources, &plant::Knowledge { constants, signatures });
    for mutant in &planting.mutants {
        println!("{} {:?} {} {}:{}", mutant.number, mutant.area, mutant.operator, mutant.name, mutant.line);
    }
    if std::env::args().nth(1).as_deref() == Some("list") { return; }
    let mut copy = compile::Copy::new(&tree, &planting, &target).unwrap();
    let start = Instant::now();
    for (world, arguments) in [
        (compile::World::Normal, &["check", "--profile", "mutate", "-p", "cq-core", "-p", "transport-rxe-loop", "--lib"][..]),
        (compile::World::Loom, &["check", "--profile", "mutate", "-p", "cq-core", "-p", "transport-rxe-loop", "--lib"][..]),
    ] {
        let result = copy.build(world, arguments, |text| eprintln!("{text} {:?}", start.elapsed()));
        match result { Ok(found) => eprintln!("{} artifacts", found.len()), Err(error) => { eprintln!("{error}"); break } }
    }
    for refused in &copy.refused {
        let mutant = &planting.mutants[*refused as usize - 1];
        eprintln!("refused {} {} {}:{}", mutant.number, mutant.operator, mutant.name, mutant.line);
    }
}
