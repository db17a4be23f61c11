//! The API of the last release, and what cargo-semver-checks says of the present one beside it: whether its version may be
//! the next one. Nothing but the kept file is needed: neither history nor network. It is the API with all features: that an
//! item needs another one, or that one is gone, the listing shows.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use cargo_metadata::Package;
use serde_json::Value;

use super::{KEPT, TARGET, UPDATE};
use crate::run::{Job, Stop, cargo, root};
use crate::stages::tools::with_tools;

/// What breaks programs that were written for the last release, if its version says that nothing does; or keeps the API as that
/// of the release.
pub fn faults(
    job: &mut Job,
    package: &Package,
    now: &Path,
    update: bool,
) -> Result<Option<String>, Stop> {
    let name = package.name.as_str();
    let kept = root().join(KEPT).join("released").join(format!("{name}.json.gz"));
    if update {
        return keep(job, now, &kept).map(|()| None);
    }
    if !kept.exists() {
        return Ok(Some(format!(
            "no release of {name} is kept: run `{UPDATE}=release cargo verify api`"
        )));
    }
    let before = root().join(TARGET).join(format!("{name}-released.json"));
    let mut unpack = Command::new("gzip");
    fs::write(&before, job.ask("gzip -dc", unpack.arg("-dc").arg(&kept))?)?;
    let mut judge = cargo(&["semver-checks", "--color=never", "--baseline-rustdoc"]);
    with_tools(judge.arg(before));
    let what = format!("cargo-semver-checks of {name}");
    let (status, said) = job.attempt(&what, judge.arg("--current-rustdoc").arg(now))?;
    Ok((!status.success()).then(|| broken(name, &said)))
}

/// The sentence for what the tool found.
fn broken(name: &str, said: &str) -> String {
    let lints = said.lines().filter_map(|line| line.strip_prefix("--- failure "));
    let lints: Vec<_> = lints.map(|line| line.split(':').next().unwrap_or(line)).collect();
    let why = if lints.is_empty() {
        said.trim().lines().last().unwrap_or("it says nothing").to_owned()
    } else {
        lints.join(", ")
    };
    format!(
        "{name} breaks programs of its last release ({why}): keep what they use, or raise the version in Cargo.toml"
    )
}

/// Keeps what is judged by: all but the texts and their places.
fn keep(job: &mut Job, now: &Path, kept: &Path) -> Result<(), Stop> {
    let wrong = |error: serde_json::Error| Stop::Failed(error.to_string());
    let mut api: Value = serde_json::from_slice(&fs::read(now)?).map_err(wrong)?;
    for item in api["index"].as_object_mut().into_iter().flat_map(|index| index.values_mut()) {
        item["docs"] = Value::Null;
        item["span"] = Value::Null;
        item["links"] = Value::Object(serde_json::Map::new());
    }
    let plain = now.with_extension("kept.json");
    serde_json::to_writer(File::create(&plain)?, &api).map_err(wrong)?;
    let mut pack = Command::new("gzip");
    pack.args(["-9", "-n", "-f"]).arg(&plain);
    job.run("gzip", &mut pack)?;
    fs::create_dir_all(kept.parent().unwrap_or(kept))?;
    fs::copy(plain.with_extension("json.gz"), kept)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_said_by_its_rules() {
        let said = "  Checked\n\n--- failure function_missing: pub fn removed or renamed ---\n\nDescription:\n\
                    --- failure enum_variant_added: enum variant added ---\n";
        let line = broken("cq-core", said);
        assert!(
            line.starts_with("cq-core breaks")
                && line.contains("(function_missing, enum_variant_added)"),
            "{line}"
        );
        assert!(broken("cq-core", "error: no file\n").contains("(error: no file)"));
    }
}
