//! Lists the cases of the conformance suite: the functions of `src/conformance` that are named by a rule, as `q05_…`; and
//! the modules with cases for every transport.

use std::path::Path;
use std::{env, fs, io};

/// Modules with cases for some transports only.
const NOT_EVERYWHERE: [&str; 3] = ["costs", "killed", "processes"];

fn main() -> io::Result<()> {
    let mut everywhere = Vec::new();
    let (source, out) = ("src/conformance", env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={source}");
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = if path.is_file() { fs::read_to_string(&path)? } else { continue };
        let cases: Vec<_> = text.lines().filter_map(case).collect();
        let list = format!("super::chapter! {{ {}, }}", cases.join(", "));
        fs::write(Path::new(&out).join(format!("{module}.rs")), list)?;
        if !cases.is_empty() && !NOT_EVERYWHERE.contains(&module.as_str()) {
            everywhere.push(format!("{module}::cases::<D>(), "));
        }
    }
    everywhere.sort();
    fs::write(Path::new(&out).join("everywhere.rs"), format!("[{}]", everywhere.concat()))
}

/// The name of the case whose function begins in this line.
fn case(line: &str) -> Option<&str> {
    let name = line.strip_prefix("fn ")?.strip_suffix("<D: Device>() {")?;
    let (rule, _) = name.split_once('_')?;
    rule.get(1..)?.parse::<u32>().is_ok().then_some(name)
}
