//! Every site of the engine's protocols, of the accounting's and of the device's has a control.

use std::fs;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
const ENGINE: &str = include_str!("../../../../cq-core/src/sync/site.rs");
const VERBS: &str = include_str!("../../../../cq-core/verbs/src/sync/site.rs");
const DEVICE: &str = include_str!("../../../../transport-rxe-loop/src/sync/site.rs");

/// The texts of the models, of the engine's or of the device's.
fn models(of_device: bool) -> String {
    let files = fs::read_dir(format!("{FOLDER}/tests/models")).unwrap();
    let files = files
        .map(Result::unwrap)
        .filter(|file| file.file_name().to_string_lossy().starts_with("device_") == of_device);
    files.map(|file| fs::read_to_string(file.path()).unwrap()).collect()
}

#[test]
fn every_site_has_a_control() {
    for (text, count, models) in
        [(ENGINE, 17, models(false)), (VERBS, 6, models(false)), (DEVICE, 28, models(true))]
    {
        let variant = |line: &'static str| line.trim_start().strip_suffix(',');
        let is_name = |name: &&str| name.chars().all(char::is_alphanumeric);
        let sites: Vec<_> = text.lines().filter_map(variant).filter(is_name).collect();
        assert_eq!(sites.len(), count, "as many as there are: {sites:?}");
        for site in sites {
            let is_listed = |end| models.contains(&format!("Site::{site}{end}"));
            assert!(
                is_listed(", ") || is_listed("],") || is_listed("]\n") || is_listed(",\n"),
                "no control of {site}"
            );
        }
    }
}
