use super::*;
use crate::inside::prelude::*;

#[test]
fn n06_the_fifo_of_a_channel_is_opened_once_for_each_of_its_generations() {
    let directory = Directory::new();
    let [old, new] = [0, 1].map(|index| directory.path().fifo(index));
    let fifos = [&old, &new].map(|path| make(path).unwrap());
    let readable = || fifos.each_ref().map(|fifo| read(fifo.unchecked(), &mut [0; 8]) == Ok(1));
    let bells = Fifos::new(2);
    assert!(!bells.fill(ChannelIndex::new(0), 7, || Err(Errno::NOENT)));
    assert!(bells.fill(ChannelIndex::new(0), 7, || open(&old)));
    assert_eq!(readable(), [true, false]);
    assert!(bells.fill(ChannelIndex::new(0), 7, || panic!("it is open")));
    assert_eq!(readable(), [true, false]);
    assert!(bells.fill(ChannelIndex::new(0), 8, || open(&new)));
    assert_eq!(readable(), [false, true]);
}
