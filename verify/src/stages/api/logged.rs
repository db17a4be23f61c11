//! What firmware logs: each error that is there without `std` has `defmt::Format`, so `Debug` need not put its texts into the
//! flash.

use std::collections::BTreeSet;

use cargo_metadata::Package;

use super::listing::Listing;

/// The errors of a library that are there without `std`.
#[derive(Debug, Default)]
pub struct Logged {
    errors: BTreeSet<String>,
}

impl Logged {
    /// An API with this feature of the package alone, or with none.
    pub fn met(&mut self, package: &Package, feature: Option<&str>, api: &Listing) {
        let with_std = |name: &str| {
            name == "std" || package.features[name].iter().any(|enabled| enabled == "std")
        };
        if !feature.is_some_and(with_std) {
            self.errors.extend(implementors(&api.impls, "core::error::Error"));
        }
    }

    /// Those that have no `Format` with all features, of a library that has some.
    pub fn faults(&self, package: &Package, all: &Listing) -> Vec<String> {
        let formatted: BTreeSet<_> = implementors(&all.impls, "defmt::traits::Format").collect();
        let is_missing =
            |error: &&String| package.features.contains_key("defmt") && !formatted.contains(*error);
        self.errors
            .iter()
            .filter(is_missing)
            .map(|error| format!("{error} has no defmt::Format"))
            .collect()
    }
}

/// The types that implement a trait, without their parameters.
fn implementors<'a>(impls: &'a BTreeSet<String>, of: &str) -> impl Iterator<Item = String> + 'a {
    let before = format!(" {of} for ");
    impls.iter().filter_map(move |line| {
        let (_, name) = line.strip_prefix("impl")?.split_once(&before)?;
        name.split(['<', ' ']).next().map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn listing(lines: &[&str]) -> Listing {
        let impls = lines.iter().map(|&line| line.to_owned()).collect();
        Listing { json: PathBuf::new(), items: Vec::new(), impls }
    }

    /// A library with a feature that brings `std`.
    fn library() -> Package {
        let json = r#"{"name": "a", "version": "1.0.0", "id": "a", "dependencies": [], "targets": [],
            "features": {"defmt": [], "std": [], "tokio": ["std"]}, "manifest_path": "a"}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_error_that_is_there_without_std_is_logged() {
        let (full, closed) = (
            "impl<T: a::X> core::error::Error for a::Full<T> where T: a::Y",
            "impl core::error::Error for a::Closed",
        );
        let (mut logged, library) = (Logged::default(), library());
        logged.met(&library, None, &listing(&[closed]));
        logged.met(&library, Some("defmt"), &listing(&[closed, full]));
        for with_std in ["std", "tokio"] {
            logged.met(&library, Some(with_std), &listing(&["impl core::error::Error for a::Io"]));
        }
        let closed = "impl defmt::traits::Format for a::Closed";
        assert_eq!(logged.faults(&library, &listing(&[closed])), ["a::Full has no defmt::Format"]);
        let full = "impl<T> defmt::traits::Format for a::Full<T>";
        assert_eq!(logged.faults(&library, &listing(&[closed, full])), [""; 0]);
    }
}
