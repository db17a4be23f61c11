//! Which module of a crate uses which, where crates do not say it: against the table `verify/layers.toml`, from top to bottom.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use walkdir::WalkDir;

use crate::run::{Job, Stop, root};

/// For each folder of sources the modules of its crate. One may use those below it.
const TABLE: &str = "verify/layers.toml";

/// A module uses another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: String,
    to: String,
}

/// Reads the sources of all crates in the table, and names each arrow that goes up.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let table = fs::read_to_string(root().join(TABLE))?;
    let table: BTreeMap<String, Vec<String>> =
        toml::from_str(&table).map_err(|error| Stop::Failed(format!("{TABLE}: {error}")))?;
    let (mut count, mut faults) = (0, Vec::new());
    for (folder, layers) in &table {
        let arrows = arrows(&root().join(folder))?;
        count += arrows.len();
        faults.extend(judge(folder, layers, &arrows));
        let is_gone = |layer: &&String| {
            let path = root().join(folder).join(layer.replace("::", "/"));
            !(path.exists() || path.with_extension("rs").exists())
        };
        let gone = layers.iter().filter(is_gone);
        faults
            .extend(gone.map(|layer| format!("{TABLE} has {folder}/{layer}, which there is not")));
    }
    faults.iter().try_for_each(|fault| job.log(fault))?;
    match faults.first() {
        None => Ok(format!("{} crates, {count} arrows, none up", table.len())),
        Some(first) => Err(Stop::Failed(format!("{} faults; {first}", faults.len()))),
    }
}

/// What the modules of a folder name by `crate::`, but for tests and the root, which may use everything.
fn arrows(folder: &Path) -> Result<BTreeSet<Arrow>, Stop> {
    let mut arrows = BTreeSet::new();
    for entry in WalkDir::new(folder) {
        let entry = entry.map_err(std::io::Error::from)?;
        let file = entry.path().strip_prefix(folder).unwrap_or(entry.path()).with_extension("");
        let names: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
        let from = names.join("::").trim_end_matches("::mod").to_owned();
        let is_source = entry.path().extension().is_some_and(|end| end == "rs");
        if is_source && !["lib", "main"].contains(&&*from) && !from.contains("test") {
            let code = product(&fs::read_to_string(entry.path())?);
            arrows.extend(named(&code).map(|to| Arrow { from: from.clone(), to }));
        }
    }
    Ok(arrows)
}

/// The code of a file, without comments and without what is for its tests.
fn product(text: &str) -> String {
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut code = String::new();
    while let Some(line) = lines.next() {
        match line.trim() {
            "#[cfg(test)]" if lines.next().is_none_or(|next| next.starts_with("mod")) => break,
            "#[cfg(test)]" => {}
            _ => code.extend([line, "\n"]),
        }
    }
    code
}

/// What stands behind each `crate::`, but for macros; of a list each name in it.
fn named(code: &str) -> impl Iterator<Item = String> {
    let is_name = |of: char| of.is_alphanumeric() || "_:".contains(of);
    let path =
        move |text: &str| text.split(|of| !is_name(of)).next().unwrap_or_default().to_owned();
    code.match_indices("crate::").flat_map(move |(at, mark)| {
        let rest = &code[at + mark.len()..];
        let mut depth = 0;
        let list = rest.strip_prefix('{').unwrap_or_default();
        let names = list.split_inclusive(['{', ',', '}']).map_while(|part| {
            let before = depth;
            depth += i32::from(part.ends_with('{')) - i32::from(part.ends_with('}'));
            (before >= 0).then_some((before == 0, part.trim_start()))
        });
        let names = names.filter(|(outer, _)| *outer).map(move |(_, part)| path(part));
        let alone = path(rest);
        let is_macro = rest[alone.len()..].starts_with('!');
        let is_other = code[..at].ends_with(|of: char| is_name(of) || of == '$');
        let all = names.chain([alone]).map(|it| it.trim_end_matches(':').to_owned());
        all.filter(move |it| !(is_macro || is_other || it.is_empty())).collect::<Vec<_>>()
    })
}

/// The arrows that go up, or to what the table does not have.
fn judge(folder: &str, layers: &[String], arrows: &BTreeSet<Arrow>) -> Vec<String> {
    let is_in = |path: &str, layer: &str| {
        path.strip_prefix(layer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let place = |path: &str| {
        let places = (0..layers.len()).filter(|&at| is_in(path, &layers[at]));
        places.max_by_key(|&at| layers[at].len())
    };
    let fault = |Arrow { from, to }: &Arrow| match (place(from), place(to)) {
        (Some(low), Some(high)) if high >= low => None,
        (Some(_), Some(_)) => Some(format!("{folder}: {from} is below {to}, which it uses")),
        (None, _) => Some(format!("{folder}: {TABLE} does not have {from}")),
        (_, None) => Some(format!(
            "{folder}: {from} uses {to}, which {TABLE} does not have: name the module that defines it"
        )),
    };
    arrows.iter().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_code_names_modules_behind_crate() {
        let code = "use crate::api::cq::{Cq, self};\nuse crate::{\n    a, b::{c, d},\n    e::f,\n};\n\
                    crate::x::f(); crate::event!(a); $crate::y // crate::z\n#[cfg(test)]\ncrate::t();\n\
                    crate::last\n#[cfg(test)]\nmod tests {\n    use crate::t;";
        let code = product(code);
        let named: Vec<_> = named(&code).collect();
        assert_eq!(named, ["api::cq", "a", "b", "e::f", "x::f", "last"]);
    }

    #[test]
    fn an_arrow_goes_down_by_the_longest_name_of_the_table() {
        let layers = ["top", "low::more", "low"].map(str::to_owned);
        let right = [("top::a", "low"), ("low::more::b", "low::c"), ("top", "low::more")];
        let judge = |arrows: &[(&str, &str)]| {
            let arrow = |&(from, to): &(&str, &str)| Arrow { from: from.into(), to: to.into() };
            judge("x", &layers, &arrows.iter().map(arrow).collect())
        };
        assert!(judge(&right).is_empty());
        for (from, to, why) in [
            ("low", "top::a", "low is below top::a"),
            ("low::d", "low::more", "is below"),
            ("other", "low", "does not have other"),
            ("low", "Context", "low uses Context"),
        ] {
            let faults = judge(&[&right[..], &[(from, to)]].concat());
            assert!(faults.len() == 1 && faults[0].contains(why), "{faults:?}");
        }
    }
}
