//! Text that is put around parts of a file. Nothing is taken out and no line is added, so that what the
//! compiler and the tests say of a line holds for the original too.

use std::cmp::Reverse;
use std::ops::Range;

use proc_macro2::Span;

/// Text in front of a part of the file and behind it.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The part, in bytes.
    pub around: Range<usize>,
    /// In front of it.
    pub before: String,
    /// Behind it.
    pub after: String,
    /// The mutant that the text is there for, if it is for one.
    pub mutant: Option<u32>,
}

/// A file with the text put in.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The file.
    pub text: String,
    /// Where in it each mutant stands, with what it is put around.
    pub places: Vec<(u32, Range<usize>)>,
}

/// The bytes that a part of the syntax tree stands at.
pub(super) fn range(span: Span) -> Range<usize> {
    span.byte_range()
}

/// Puts the text in. Of edits around the same part the first is the outermost; two edits that overlap have to lie
/// one within the other.
pub fn render(source: &str, edits: &[Edit]) -> Rendered {
    let mut outer_first: Vec<usize> = (0..edits.len()).collect();
    outer_first.sort_by_key(|&edit| {
        let Range { start, end } = edits[edit].around;
        (start, Reverse(end), edit)
    });
    let mut file = Rendered::default();
    let (mut open, mut at): (Vec<(usize, usize)>, usize) = (Vec::new(), 0);
    for edit in outer_first {
        let next = &edits[edit];
        while let Some((last, start)) =
            open.pop_if(|(last, _)| edits[*last].around.end <= next.around.start)
        {
            close(&mut file, source, &mut at, &edits[last], start);
        }
        file.text.push_str(&source[at..next.around.start]);
        at = next.around.start;
        open.push((edit, file.text.len()));
        file.text.push_str(&next.before);
    }
    while let Some((last, start)) = open.pop() {
        close(&mut file, source, &mut at, &edits[last], start);
    }
    file.text.push_str(&source[at..]);
    file
}

fn close(file: &mut Rendered, source: &str, at: &mut usize, edit: &Edit, start: usize) {
    file.text.push_str(&source[*at..edit.around.end]);
    *at = edit.around.end;
    file.text.push_str(&edit.after);
    file.places.extend(edit.mutant.map(|mutant| (mutant, start..file.text.len())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(around: Range<usize>, before: &str, after: &str) -> Edit {
        Edit { around, before: before.into(), after: after.into(), mutant: Some(7) }
    }

    #[test]
    fn edits_nest_and_the_first_of_two_is_outside() {
        let edits = [
            edit(4..5, "<", ">"),
            edit(0..5, "(", ")"),
            edit(0..5, "[", "]"),
            edit(0..1, "{", "}"),
            edit(6..6, "!", ""),
        ];
        let rendered = render("a && b c", &edits);
        assert_eq!(rendered.text, "([{a} &&< >])b! c");
        assert_eq!(rendered.places.len(), 5);
        assert!(rendered.places.iter().any(|(_, place)| &rendered.text[place.clone()] == "< >"));
    }
}
