//! The public API of the libraries, as rustdoc has it in JSON: against the listing that is kept of each, with fewer features
//! against all of them, against the foreign crates that it may name, and by the rules of semantic versioning against the last
//! release.
//!
//! | module | owns |
//! |---|---|
//! | `listing` | an API as lines, by the library `public-api`; what of one is not in another |
//! | `foreign` | the foreign crates that an API names, and those that it may |
//! | `logged` | the errors without `std`, which have `defmt::Format` |
//! | `release` | the API of the last release, and cargo-semver-checks |

use std::env;
use std::fs;

use cargo_metadata::Package;

use self::foreign::Foreign;
use self::listing::{Listing, Needs};
use self::logged::Logged;
use super::tools::SEMVER_CHECKS;
use super::{libibverbs, package, toolchain};
use crate::run::{Job, Stop, root};

mod foreign;
mod listing;
mod logged;
mod release;

/// What is kept of each library: its listing, and below `released` its last release; relative to [`root`].
const KEPT: &str = "verify/api";
/// Where rustdoc works; relative to [`root`].
const TARGET: &str = "target/api";
/// Has this stage make what is kept anew: the listings, and where it is `release` the releases, too.
const UPDATE: &str = "UPDATE_API";
/// How many differences a line of the report shows. The log has all.
const SHOWN: usize = 3;

/// Judges the API of each library.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::nightly(job)?;
    SEMVER_CHECKS.install(job)?;
    let metadata = package::metadata(job)?;
    let libraries = package::libraries(&metadata);
    let update = env::var(UPDATE).unwrap_or_default();
    let mut foreign = Foreign::read()?;
    let (mut faults, mut lines, mut sets) = (Vec::new(), 0, 0);
    for package in &libraries {
        let mut all = document(job, package, "--all-features")?;
        let (mut needs, mut logged) = (Needs::default(), Logged::default());
        for feature in fewer(package) {
            sets += 1;
            let features = feature.map_or_else(
                || "--no-default-features".to_owned(),
                |feature| format!("--features={feature}"),
            );
            let few = document(job, package, &features)?;
            needs.met(feature, &few);
            logged.met(package, feature, &few);
            let missing = few.not_in(&all);
            faults.extend(missing.map(|line| {
                format!("{}: all features take from {features}: {line}", package.name)
            }));
        }
        needs.mark(&mut all);
        lines += all.items.len();
        faults.extend(logged.faults(package, &all));
        faults.extend(foreign.faults(&package.name, &all.impls));
        faults.extend(kept(job, package, &all, !update.is_empty())?);
        faults.extend(release::faults(job, package, &all.json, update == "release")?);
    }
    faults.extend(foreign.unused());
    faults.iter().try_for_each(|fault| job.log(fault))?;
    match faults.first() {
        None => Ok(format!(
            "{} libraries, {lines} items, {sets} sets of fewer features",
            libraries.len()
        )),
        Some(first) => Err(Stop::Failed(format!("{} faults; {first}", faults.len()))),
    }
}

/// No feature, and each one alone.
fn fewer(package: &Package) -> impl Iterator<Item = Option<&str>> {
    [None].into_iter().chain(package.features.keys().map(|name| Some(name.as_str())))
}

/// What rustdoc says of a library with these features.
fn document(job: &mut Job, package: &Package, features: &str) -> Result<Listing, Stop> {
    let library = package.targets.iter().find(|target| target.is_lib());
    let library = library.ok_or_else(|| Stop::Failed(format!("{} is no library", package.name)))?;
    let mut rustdoc = toolchain::cargo(toolchain::NIGHTLY);
    rustdoc.args([
        "rustdoc",
        "--locked",
        "--lib",
        "--target-dir",
        TARGET,
        features,
        "-p",
        &package.name,
    ]);
    rustdoc.args(["--", "-Zunstable-options", "--output-format=json", "--cap-lints=allow"]);
    let what = format!("cargo rustdoc {features} of {}", package.name);
    let said = job.run(&what, libibverbs::with_libclang(&mut rustdoc))?;
    let target = root().join(TARGET);
    let json = target.join(format!("{}{features}.json", package.name));
    // Where nothing changed since, the folder has the file of other features.
    if said.contains("Documenting") || !json.exists() {
        fs::copy(target.join("doc").join(&library.name).with_extension("json"), &json)?;
    }
    Listing::read(json)
}

/// Whether the listing is the one that is kept; or keeps it.
fn kept(
    job: &mut Job,
    package: &Package,
    now: &Listing,
    update: bool,
) -> Result<Option<String>, Stop> {
    let path = format!("{KEPT}/{}.txt", package.name);
    let text: String = now.items.iter().flat_map(|line| [line, "\n"]).collect();
    if update {
        fs::write(root().join(&path), text)?;
        return Ok(None);
    }
    let kept = fs::read_to_string(root().join(&path)).unwrap_or_default();
    let differences = listing::differences(&kept, &text);
    for line in &differences {
        job.log(&format!("{path}: {line}"))?;
    }
    Ok((!differences.is_empty()).then(|| {
        let shown = differences[..differences.len().min(SHOWN)].join("; ");
        format!(
            "the API is not that of {path} ({}: {shown}): if that is meant, run `{UPDATE}=1 cargo verify api`, and \
             tell of it in CHANGELOG.md",
            differences.len()
        )
    }))
}
