use super::*;
use crate::inside::prelude::*;

#[test]
fn a_file_has_the_bytes_that_were_reserved() {
    let directory = Directory::new();
    let path = &directory.path();
    for bytes in [4096, CHUNK, 3 * CHUNK + 4096] {
        let file = make(path, bytes).unwrap();
        assert_eq!(len_of(file.as_fd()), Ok(0));
        reserve(file.as_fd(), path, bytes).unwrap();
        assert_eq!(len_of(file.as_fd()), Ok(bytes));
        free(file.as_fd());
        let stat = fstat(&file).unwrap();
        assert_eq!((stat.st_size as u64, stat.st_blocks), (bytes, HEADER as i64 / 512));
    }
}
