//! The C ABI of the loopback, against the real headers and the real libraries: structures and numbers, which bindgen makes
//! anew, and the names that `librxe_loop_verbs.so` exports. No program runs here. Also against the header of the verbs:
//! the guide for those who know it, which names every function.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{exports, libibverbs, preload};
use crate::run::{Job, Stop, root};

/// What brings the headers, the libraries themselves, and what reads the headers.
pub const PACKAGES: &[&str] = &["libibverbs-dev", "librdmacm-dev", "bindgen", "libclang-14-dev"];

/// Those of them whose versions change what bindgen makes.
const MADE_WITH: [&str; 3] = ["libibverbs-dev", "librdmacm-dev", "bindgen"];

/// What bindgen made. It begins with how.
const GENERATED: &str = "transport-rxe-loop/verbs-abi/src/sys/generated.rs";

/// The guide from C.
const GUIDE: &str = "cq-core/verbs/src/guide/from_c.rs";

/// Compares both.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    // First, since they do not depend on the versions that are installed, except that a later header has more functions.
    let names = names(job)?;
    let functions = guide()?;
    generate(job)?;
    Ok(format!(
        "bindgen makes the same of the headers; {names} names have the versions of libibverbs and librdmacm; \
         a guide has the {functions} functions of the verbs"
    ))
}

/// How many functions the header has, all of which the guide names.
fn guide() -> Result<usize, Stop> {
    let guide = fs::read_to_string(root().join(GUIDE))?;
    let header = fs::read_to_string("/usr/include/infiniband/verbs.h")?;
    let functions = functions(&header);
    match functions.iter().find(|name| !guide.contains(&format!("`{name}`"))) {
        Some(name) => Err(Stop::Failed(format!("{GUIDE} does not name {name}"))),
        None if functions.is_empty() => Err(Stop::Failed("the header has no functions".into())),
        None => Ok(functions.len()),
    }
}

/// The names before parentheses.
fn functions(header: &str) -> BTreeSet<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = header.match_indices('(').map(|(at, _)| &header[..at]);
    let names = before.filter_map(|text| text.rsplit(|c| !is_of_name(c)).next());
    names.filter(|name| name.starts_with("ibv_")).collect()
}

/// Makes the declarations anew, with the command that stands in them. If they differ where other versions are installed
/// than those that stand there, the stage is skipped: a machine with those versions has to make them anew.
fn generate(job: &mut Job) -> Result<(), Stop> {
    let kept = fs::read_to_string(root().join(GENERATED))?;
    let command = command(&kept);
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).current_dir(root());
    let made = job.ask("bindgen", libibverbs::with_libclang(&mut shell))?;
    let judged = same(&kept, &made);
    if judged.is_err() {
        of_these_versions(job, &kept)?;
    }
    judged
}

/// Whether those versions are installed that the comment at the top records.
fn of_these_versions(job: &mut Job, kept: &str) -> Result<(), Stop> {
    let recorded = versions(kept);
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f=${Package} ${Version}\n"]).args(MADE_WITH);
    let differs =
        |installed: &str| format!("{GENERATED} differs, and was not made with {installed}");
    let installed = job.ask("dpkg-query", &mut query);
    let installed =
        installed.map_err(|why| Stop::Skipped(differs(&format!("what is here ({why})"))))?;
    let other = installed.lines().find(|installed| !recorded.contains(installed));
    other.map_or(Ok(()), |installed| Err(Stop::Skipped(differs(installed))))
}

/// What the comment at the top says before the command, in one line.
fn versions(kept: &str) -> String {
    let lines = kept.lines().map_while(|line| line.strip_prefix("// "));
    lines.take_while(|line| !line.starts_with('$')).collect::<Vec<_>>().join(" ")
}

/// The command at the top: the lines that begin with `$`, or go on with it.
fn command(kept: &str) -> String {
    let lines = kept.lines().map_while(|line| line.strip_prefix("//"));
    let words = lines.filter_map(|line| line.strip_prefix(" $ ").or(line.strip_prefix("     ")));
    words.collect::<Vec<_>>().join(" ")
}

/// Whether what is behind the comment at the top is what was made.
fn same(kept: &str, made: &str) -> Result<(), Stop> {
    let top: usize =
        kept.split_inclusive('\n').take_while(|line| line.starts_with("//")).map(str::len).sum();
    if kept[top..] == *made {
        return Ok(());
    }
    let differs = kept[top..].lines().zip(made.lines()).find(|(kept, made)| kept != made);
    let (kept, made) = differs.unwrap_or(("one ends", "before the other"));
    Err(Stop::Failed(format!("{GENERATED} is not what its command makes: `{kept}`, `{made}`")))
}

/// How many names there are, all as they should be.
fn names(job: &mut Job) -> Result<usize, Stop> {
    let ours = exports::of(&preload::build(job)?)?;
    let mut theirs = Vec::new();
    for library in exports::LIBRARIES {
        let path = job.ask("cc", Command::new("cc").arg(format!("-print-file-name={library}")))?;
        theirs.push((library, exports::of(&PathBuf::from(path.trim()))?));
    }
    exports::judge(&ours, &theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: &str = "// of this\n// 1.0\n// $ make it\n//     well\n\nlet a = 1;\nlet b = 2;\n";

    #[test]
    fn functions_are_the_names_before_parentheses() {
        let header = "enum ibv_rate mult_to_ibv_rate(int);\nint ibv_a(void (*b)(int));\n#define ibv_c(x) ibv_a(x)\n";
        assert!(functions(header).into_iter().eq(["ibv_a", "ibv_c"]));
    }

    #[test]
    fn the_command_is_that_of_the_comment_and_the_rest_is_what_it_makes() {
        assert_eq!(
            (command(KEPT).as_str(), versions(KEPT).as_str()),
            ("make it well", "of this 1.0")
        );
        assert!(same(KEPT, "\nlet a = 1;\nlet b = 2;\n").is_ok());
        for end in ["let b = 3;\n", "", "let b = 2;\nlet c = 3;\n"] {
            assert!(same(KEPT, &format!("\nlet a = 1;\n{end}")).is_err(), "{end}");
        }
    }
}
