//! What the manifests of the libraries say, for those who look for one and for cargo; and which compiler each
//! dependency asks for.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, Metadata, Package, PackageId};

/// The packages of the workspace that may be published.
pub fn libraries(metadata: &Metadata) -> Vec<&Package> {
    metadata.workspace_packages().into_iter().filter(|package| package.publish.is_none()).collect()
}

/// What the libraries are built with, with any feature: all but what their tests alone need.
pub fn dependencies<'a>(metadata: &'a Metadata, libraries: &[&Package]) -> Vec<&'a Package> {
    let resolved = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let nodes: BTreeMap<_, _> = resolved.map(|node| (&node.id, node)).collect();
    let mut reached: Vec<&PackageId> = libraries.iter().map(|package| &package.id).collect();
    let mut next = 0;
    while let Some(node) = reached.get(next).and_then(|id| nodes.get(id)) {
        next += 1;
        for dependency in &node.deps {
            let is_for_tests = |kind: DependencyKind| kind == DependencyKind::Development;
            let is_needed = dependency.dep_kinds.iter().any(|info| !is_for_tests(info.kind));
            if is_needed && !reached.contains(&&dependency.pkg) {
                reached.push(&dependency.pkg);
            }
        }
    }
    let foreign = reached.split_off(libraries.len());
    metadata.packages.iter().filter(|package| foreign.contains(&&package.id)).collect()
}

/// What is missing or too long, as the registry counts it; and dependencies that need a newer compiler than is promised.
pub fn faults(libraries: &[&Package], dependencies: &[&Package]) -> Vec<String> {
    let mut faults = Vec::new();
    if libraries.is_empty() {
        faults.push("no package may be published".to_owned());
    }
    for package in libraries {
        let lacks = lacks(package).into_iter().filter(|(has_it, _)| !has_it);
        let name = &package.name;
        faults.extend(lacks.map(|(_, what)| format!("{name}: the manifest lacks {what}")));
        let newer = |it: &&&Package| it.rust_version > package.rust_version;
        faults.extend(dependencies.iter().filter(newer).map(|newer| {
            let asks = newer.rust_version.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {} needs Rust {asks}", newer.name, newer.version)
        }));
    }
    faults.sort();
    faults.dedup();
    faults
}

/// Whether a library's manifest has each of what it should have.
fn lacks(package: &Package) -> [(bool, &'static str); 8] {
    let is_short = |word: &String| word.len() <= 20 && word.is_ascii() && !word.contains(' ');
    let are_few = |words: &[String]| (1..=5).contains(&words.len());
    let (keywords, categories) = (&package.keywords, &package.categories);
    let docs = &package.metadata["docs"]["rs"];
    [
        (package.description.is_some(), "a description"),
        (package.license.is_some(), "a license"),
        (package.readme.is_some(), "a readme"),
        (package.rust_version.is_some(), "a rust-version"),
        (are_few(keywords) && keywords.iter().all(is_short), "keywords: one to five short ones"),
        (are_few(categories), "categories: one to five"),
        (
            docs["targets"].as_array().is_some_and(|targets| !targets.is_empty()),
            "targets for docs.rs",
        ),
        (docs["all-features"] == true, "all-features for docs.rs"),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn package(name: &str, rust_version: &str, publish: Option<[&str; 0]>) -> Value {
        json!({
            "name": name, "version": "1.0.0", "id": name, "publish": publish, "dependencies": [], "targets": [],
            "features": {}, "manifest_path": "Cargo.toml", "rust_version": rust_version, "description": "is one",
            "license": "MIT", "readme": "README.md", "keywords": ["one"], "categories": ["one"],
            "metadata": { "docs": { "rs": { "targets": ["x86_64-unknown-linux-gnu"], "all-features": true } } },
        })
    }

    /// A library with a dependency, which is built by another, and one for its tests; and a package that is none.
    fn metadata() -> Value {
        let node = |id: &str, dependencies: &[(&str, Value)]| {
            let one = |(name, kind): &(&str, Value)| {
                let kinds = json!([{ "kind": kind, "target": null }]);
                json!({ "name": name, "pkg": name, "dep_kinds": kinds })
            };
            let deps: Vec<_> = dependencies.iter().map(one).collect();
            json!({ "id": id, "dependencies": [], "deps": deps })
        };
        let nodes = [
            node("library", &[("old", Value::Null), ("tests", json!("dev"))]),
            node("old", &[("new", json!("build"))]),
            node("new", &[]),
            node("tests", &[]),
        ];
        let packages = [
            package("library", "1.87", None),
            package("tool", "1.87", Some([])),
            package("old", "1.60", None),
            package("new", "1.99", None),
            package("tests", "1.99", None),
        ];
        json!({
            "packages": packages,
            "workspace_members": ["library", "tool"], "workspace_root": "", "target_directory": "", "version": 1,
            "resolve": { "nodes": nodes, "root": null },
        })
    }

    fn faults_of(metadata: Value) -> Vec<String> {
        let metadata: Metadata = serde_json::from_value(metadata).unwrap();
        let libraries = libraries(&metadata);
        faults(&libraries, &dependencies(&metadata, &libraries))
    }

    #[test]
    fn a_dependency_may_need_a_newer_compiler_only_for_tests() {
        assert_eq!(faults_of(metadata()), ["new 1.0.0 needs Rust 1.99.0"]);
        let mut all_old = metadata();
        all_old["packages"][3]["rust_version"] = json!("1.87");
        assert_eq!(faults_of(all_old), [""; 0]);
    }

    #[test]
    fn a_library_lacks_nothing_and_there_is_one() {
        let gone = [
            ("description", Value::Null, "a description"),
            ("readme", Value::Null, "a readme"),
            ("keywords", json!(["more than twenty letters"]), "keywords"),
            ("categories", json!([]), "categories"),
            ("metadata", Value::Null, "targets for docs.rs"),
        ];
        for (key, value, what) in gone {
            let mut metadata = metadata();
            metadata["packages"][0][key] = value;
            let said = faults_of(metadata).join("\n");
            assert!(said.contains(&format!("library: the manifest lacks {what}")), "{key}: {said}");
        }
        let mut none = metadata();
        none["packages"][0]["publish"] = json!([]);
        assert_eq!(faults_of(none), ["no package may be published"]);
    }
}
