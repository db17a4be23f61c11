//! Lists the cases of the conformance suite: the functions of `src/conformance` that are named by a rule, as `q05_…`.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let (source, out) = ("src/conformance", env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={source}");
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        if path.is_file() {
            let text = fs::read_to_string(&path)?;
            let cases: Vec<_> = text.lines().filter_map(case).collect();
            let list = format!("super::chapter! {{ {}, }}", cases.join(", "));
            fs::write(Path::new(&out).join(path.file_name().expect("a file")), list)?;
        }
    }
    Ok(())
}

/// The name of the case whose function begins in this line.
fn case(line: &str) -> Option<&str> {
    let name = line.strip_prefix("fn ")?.strip_suffix("<D: Device>() {")?;
    let (rule, _) = name.split_once('_')?;
    rule.get(1..)?.parse::<u32>().is_ok().then_some(name)
}
