use super::*;
use crate::inside::prelude::*;

fn token(byte: u8) -> Token {
    Token::from_bytes([byte; LEN])
}

#[test]
fn n06_the_fifo_of_a_channel_is_opened_once_for_each_of_its_generations() {
    let directory = Directory::new();
    let [old, new] = [0, 1].map(|index| directory.path().fifo(index));
    let fifos = [&old, &new].map(|path| make(path).unwrap());
    let readable = || fifos.each_ref().map(|fifo| read(fifo.unchecked(), &mut [0; 9]) == Ok(LEN));
    let fifos = Fifos::new(2);
    let write = |generation, open: &dyn Fn() -> Result<KeptFd, Errno>| {
        let fifo = Fifo::new(|| fifos.get(ChannelIndex::new(0), generation, open));
        fifo.write(token(1))
    };
    assert_eq!(write(7, &|| Err(Errno::NOENT)), Err(Unwritten::Unopened));
    assert_eq!(write(7, &|| open(&old)), Ok(()));
    assert_eq!(readable(), [true, false]);
    assert_eq!(write(7, &|| panic!("it is open")), Ok(()));
    assert_eq!(readable(), [true, false]);
    assert_eq!(write(8, &|| open(&new)), Ok(()));
    assert_eq!(readable(), [false, true]);
}

#[test]
fn n14_a_fifo_has_tokens_in_their_order_and_a_bound() {
    let directory = Directory::new();
    let fd = Arc::new(make(&directory.path().fifo(0)).unwrap());
    let fifo = Fifo::new(|| Some(Arc::clone(&fd)));
    assert_eq!((fifo.read(), fifo.len(), fifo.is_empty()), (None, 0, true));
    [1, 2].into_iter().for_each(|byte| fifo.write(token(byte)).unwrap());
    assert_eq!((fifo.len(), fifo.read(), fifo.read()), (2, Some(token(1)), Some(token(2))));
    let mut count = 0;
    let why = loop {
        match fifo.write(token(3)) {
            Ok(()) => count += 1,
            Err(why) => break why,
        }
    };
    assert_eq!((why, fifo.len()), (Unwritten::Full, count));
    while fifo.read().is_some() {}
    // What no process of the fabric writes.
    write(fd.unchecked(), &[1; 3]).unwrap();
    assert_eq!(fifo.len(), 1);
    assert_ne!(fifo.read(), Some(token(1)));
    assert!(fifo.is_empty());
}

#[test]
fn n14_waiting_for_what_is_about_to_be_written_ends() {
    let fifo = Fifo::new(|| None);
    let (start, last) = (Instant::now(), (1..).take_while(|&attempt| fifo.wait(attempt)).last());
    assert!(start.elapsed() >= Duration::from_millis(10), "a thread that is preempted needs some");
    assert!(last.is_some());
}
