//! Where controls are planted, and how.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use super::list::{Control, Flaw};
use crate::plant::{Edit, Planted};
use crate::sources::question;

/// The number of the first control; none is 0.
pub const FIRST: u32 = 1;

/// The files with the controls in, which are numbered in their order.
pub fn plant(root: &Path, controls: &[Control]) -> Result<Vec<Planted>, Flaw> {
    let mut files: BTreeMap<&str, Planted> = BTreeMap::new();
    for (number, control) in (FIRST..).zip(controls) {
        let Control { name, file, .. } = control;
        if !files.contains_key(&file[..]) {
            let text = fs::read_to_string(root.join(file));
            let (name, path) = (name.clone(), file.clone());
            let text = text.map_err(|error| Flaw::File { name, file: path, error })?;
            let (path, edits, functions) = (file.clone(), Vec::new(), Vec::new());
            files.insert(file, Planted { path, text, edits, functions });
        }
        if let Some(planted) = files.get_mut(&file[..]) {
            planted.edits.push(edit(&planted.text, control, number)?);
        }
    }
    Ok(files.into_values().collect())
}

/// Chooses between both texts where the right one stands.
fn edit(text: &str, control: &Control, number: u32) -> Result<Edit, Flaw> {
    let Control { name, file, of, instead, .. } = control;
    let on = question(file, number)
        .ok_or_else(|| Flaw::Elsewhere { name: name.clone(), file: file.clone() })?;
    // On one line, so that what is said of a line holds for the original too.
    let instead = instead.split_whitespace().collect::<Vec<_>>().join(" ");
    // Statements can't stand in parentheses, and an expression in braces would be one where a line begins.
    let [open, close] = if of.ends_with([';', '}']) { ["{ ", " }"] } else { ["(", ")"] };
    let before = format!("{open}if {on} {{ {instead} }} else {{ ");
    let after = format!(" }}{close}");
    Ok(Edit { around: only_place(text, control)?, before, after, mutant: None })
}

fn only_place(text: &str, control: &Control) -> Result<Range<usize>, Flaw> {
    let (name, file, of) = (control.name.clone(), control.file.clone(), control.of.clone());
    match text.match_indices(&of).map(|(start, _)| start).collect::<Vec<_>>()[..] {
        [start] => Ok(start..start + of.len()),
        [] => Err(Flaw::Gone { name, file, of }),
        ref several => Err(Flaw::Several { name, file, of, count: several.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::render;

    fn control(of: &str, instead: &str) -> Control {
        Control {
            name: "Look".into(),
            why: "it looks".into(),
            file: "cq-core/src/a.rs".into(),
            of: of.into(),
            instead: instead.into(),
            fails: Vec::new(),
        }
    }

    fn planted(text: &str, controls: &[Control]) -> Result<String, Flaw> {
        let edits: Result<Vec<_>, _> =
            (FIRST..).zip(controls).map(|(number, control)| edit(text, control, number)).collect();
        Ok(render(text, &edits?).text)
    }

    #[test]
    fn an_expression_is_chosen_in_parentheses_and_statements_in_braces() {
        let text = planted("fn f() { a() && b }", &[control("a()", "true")]).unwrap();
        let choice = "(if crate::mutants::on(1) { true } else { a() })";
        assert_eq!(text, format!("fn f() {{ {choice} && b }}"));
        let text = planted("fn f() { a(); b(); c(); }", &[control("a(); b();", "b();\n a();")]);
        let choice = "{ if crate::mutants::on(1) { b(); a(); } else { a(); b(); } }";
        assert_eq!(text.unwrap(), format!("fn f() {{ {choice} c(); }}"));
    }

    #[test]
    fn a_control_stands_within_another() {
        let controls = [control("loop { x = y; }", ""), control("x = y", "return")];
        let text = planted("loop { x = y; }", &controls).unwrap();
        let inner = "(if crate::mutants::on(2) { return } else { x = y })";
        let outer = "{ if crate::mutants::on(1) {  } else { loop ";
        assert_eq!(text, format!("{outer}{{ {inner}; }} }} }}"));
    }

    #[test]
    fn a_text_that_is_gone_or_there_twice_is_told() {
        let said = |text| planted(text, &[control("a()", "b()")]).unwrap_err().to_string();
        assert!(
            said("fn f() {}").contains("`Look` replaces a text that cq-core/src/a.rs does not")
        );
        assert!(said("a() + a()").contains("that cq-core/src/a.rs has 2 times: `a()`"));
    }

    #[test]
    fn a_control_is_planted_in_the_engine_or_the_device() {
        let of = |file: &str| Control { file: file.into(), ..control("a()", "b()") };
        let device = planted("a()", &[of("transport-rxe-loop/src/a.rs")]).unwrap();
        assert!(device.starts_with("(if ::cq_core::mutants::on(1) "));
        let said = planted("a()", &[of("verify/src/a.rs")]).unwrap_err().to_string();
        assert!(said.contains("is no source of"), "{said}");
        let said = plant(Path::new("/nowhere"), &[of("cq-core/src/a.rs")]).unwrap_err();
        assert!(said.to_string().contains("which cannot be read"), "{said}");
    }
}
