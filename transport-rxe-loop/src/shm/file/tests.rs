use super::*;
use crate::inside::prelude::*;

#[test]
fn a_file_has_the_bytes_that_it_is_made_for() {
    let directory = Directory::new();
    for bytes in [4096, CHUNK, 3 * CHUNK + 4096] {
        let file = make(&directory.path(), bytes).unwrap();
        assert_eq!(len_of(file.as_fd()), Ok(bytes));
    }
}
