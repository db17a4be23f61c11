#![allow(unsafe_code)]

use rustix::io::{read, write};
use rustix::pipe::pipe;

use super::*;

#[test]
fn x03_a_number_that_is_another_file_s_by_now_is_neither_used_nor_closed() {
    let kept = pipe().map(|(reader, writer)| [reader, writer].map(KeptFd::new)).unwrap();
    let [_reader, writer] = kept.map(Result::unwrap);
    let (its_reader, its_writer) = pipe().unwrap();
    let its = writer.unchecked().as_raw_fd();
    assert!(writer.get().is_ok());
    // SAFETY: it changes which file a number names, as a program that closes it and opens another; both are open.
    assert_eq!(unsafe { libc::dup2(its_writer.as_raw_fd(), its) }, its);
    assert_eq!(writer.get().err(), Some(Errno::BADF));
    drop(writer);
    // SAFETY: the number of the program's pipe, which is open if the device has not closed it.
    assert_eq!(write(unsafe { BorrowedFd::borrow_raw(its) }, b"x"), Ok(1));
    assert_eq!(read(&its_reader, &mut [0; 2]), Ok(1));
}
