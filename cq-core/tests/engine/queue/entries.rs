//! Entries of many sizes and alignments, and spare bits in each kind of field. The conformance suite checks the rules of queues
//! with others.

use std::fmt::Debug;
use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};
use cq_core::entry::{Entry, InEntry};

use super::*;

/// Pushes entries made of the numbers from 0 on, in more rounds than a generation of eight bits counts, and polls them by one
/// and by three. Miri, which is slow, looks at the casts and not at the counts.
fn passes<E: Entry + PartialEq + Debug>(make: impl Fn(u32) -> E) {
    let (mut producer, mut consumer) = HeapCq::<E>::of_entries(4).unwrap().split();
    for number in 0..if cfg!(miri) { 9 } else { 140 } {
        let batch = [number, number + 1, number + 2].map(&make);
        producer.push(&batch[0]).unwrap();
        let mut out = [E::zeroed()];
        assert_eq!((consumer.poll_into(&mut out), out[0]), (Ok(1), batch[0]));
        producer.push_batch(&batch).unwrap();
        let mut out = [E::zeroed(); 4];
        assert_eq!((consumer.poll_into(&mut out), &out[..3]), (Ok(3), &batch[..]));
        producer.push_batch(&batch[1..]).unwrap();
        assert_eq!(consumer.pop(), Ok(Some(batch[1])));
        assert_eq!(consumer.pop(), Ok(Some(batch[2])));
        assert!(consumer.is_empty());
    }
}

/// Bytes that all differ, so that none is at another's place.
fn bytes<const N: usize>(number: u32) -> [u8; N] {
    std::array::from_fn(|nth| (number as usize + nth) as u8)
}

#[test]
fn s08_entries_of_all_sizes_are_returned_as_they_were_pushed() {
    passes(|number| number as u8);
    passes(|number| number as i16);
    passes(|number| number);
    passes(f64::from);
    passes(u128::from);
    passes(|number| (number as u16).to_ne_bytes());
    passes(|number| [number as u8; 3]);
    passes(|number| [u64::from(number); 3]);
    passes(|number| [number; 11]);
    passes(bytes::<127>);
    passes(bytes::<128>);
    passes(|number| bytemuck::cast::<_, [u16; 63]>(bytes::<126>(number)));
    passes(|number| bytemuck::cast::<_, [u32; 17]>(bytes::<68>(number)));
    passes(|number| bytemuck::cast::<_, [u32; 31]>(bytes::<124>(number)));
    passes(|number| bytemuck::cast::<_, [u64; 9]>(bytes::<72>(number)));
    passes(|number| bytemuck::cast::<_, [u64; 15]>(bytes::<120>(number)));
    passes(|number| bytemuck::cast::<_, [u64; 16]>(bytes::<128>(number)));
    passes(|number| bytemuck::cast::<_, [u128; 7]>(bytes::<112>(number)));
}

/// The generations that earlier sides left are those of the next ones' first round.
#[test]
fn p03_a_queue_that_is_split_again_holds_nothing() {
    let mut storage = SoftCq::<2, u32>::of_entries();
    for _ in 0..3 {
        let (mut producer, mut consumer) = storage.split();
        assert_eq!(consumer.poll_into(&mut [0]), Ok(0), "what earlier sides left");
        producer.push_batch(&[1, 2]).unwrap();
        assert_eq!(consumer.poll_into(&mut [0]), Ok(1));
    }
}

/// An entry whose type panics as it is asked whether it is urgent.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
struct Panics(u32);

impl Entry for Panics {
    type Generation = cq_core::entry::InArray;

    fn is_urgent(&self) -> bool {
        panic!("asked of {self:?}")
    }
}

#[test]
fn n06_an_entry_whose_type_panics_wakes_the_consumer() {
    macro_rules! wakes {
        ($queue:ident) => {
            for (on, asks) in
                [(None, false), (Some(Notify::Next), false), (Some(Notify::Solicited), true)]
            {
                let event_count = EventCount::default();
                let mut storage = $queue::<4, Panics>::of_entries();
                let (mut producer, mut consumer) = storage.split_with(&event_count);
                if let Some(on) = on {
                    assert_eq!(consumer.arm(on), Ok(Armed::Armed));
                }
                let mut panics = || {
                    let push = || producer.push(&Panics(7)).unwrap();
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(push)).is_err()
                };
                assert_eq!(panics(), asks, "it is asked only where it matters");
                assert!(!panics(), "the queue is disarmed");
                assert_eq!(event_count.unread(), u32::from(on.is_some()));
                assert_eq!(consumer.poll_into(&mut [Panics(0); 3]), Ok(2), "both are stored");
            }
        };
    }
    wakes!(SoftCq);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    {
        use cq_core::queue::mpsc::SoftCq as Shared;
        wakes!(Shared);
    }
}

/// Spare bits in a field of each type, in the first, a middle and the last word; all else is used.
macro_rules! spare {
    ($($name:ident: $field:ty, $at:ident, $mask:literal;)+) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
        #[repr(C, align(8))]
        struct $name {
            first: [u8; 8],
            long: u32,
            short: u16,
            byte: u8,
            last: u8,
            words: [u32; 2],
        }

        impl Entry for $name {
            type Generation = InEntry<$field, { offset_of!($name, $at) }, $mask>;
        }

        impl $name {
            /// All bits are ones but those of the mask, and some that are made from the number.
            fn numbered(number: u32) -> Self {
                let mut all = Self { first: [0xff; 8], long: !0, short: !0, byte: 0xff, last: number as u8, words: [number, !0] };
                all.spare(0);
                all
            }

            /// With these bits in the place of the spare ones.
            fn spare(&mut self, bits: $field) {
                let at = offset_of!($name, $at);
                let field = &mut bytemuck::bytes_of_mut(self)[at..at + size_of::<$field>()];
                let kept = <$field>::from_ne_bytes(field.try_into().unwrap()) & !$mask;
                field.copy_from_slice(&(kept | bits & $mask).to_ne_bytes());
            }
        }
    )+

        #[test]
        fn s08_spare_bits_are_returned_as_zeros_and_no_others() {
            $({
                passes($name::numbered);
                let (mut producer, mut consumer) = HeapCq::<$name>::of_entries(2).unwrap().split();
                for number in 0..9 {
                    let mut pushed = $name::numbered(number);
                    pushed.spare(!0);
                    producer.push(&pushed).unwrap();
                    let mut out = [$name::zeroed()];
                    assert_eq!((consumer.poll_into(&mut out), out[0]), (Ok(1), $name::numbered(number)));
                    producer.push(&pushed).unwrap();
                    let batch = consumer.poll_in_place(2).unwrap();
                    let mut in_place = batch.as_slices().0[0];
                    assert_ne!(in_place, $name::numbered(number), "the generation");
                    in_place.spare(0);
                    assert_eq!(in_place, $name::numbered(number));
                }
            })+
        }
    };
}

spare! {
    FirstByte: u8, first, 0xff;
    TwoBits: u32, long, 0x0001_8000;
    HighBits: u32, long, 0xffff_0000;
    Short: u16, short, 0x7ff8;
    LowBits: u8, byte, 0x03;
    LastWord: u32, words, 0xf000_0000;
}

/// Entries of 128 bytes whose first, middle or last word has the generation.
macro_rules! large {
    ($($name:ident: $at:literal;)+) => {
        $(
            #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
            #[repr(C, align(8))]
            struct $name([u8; 128]);

            impl Entry for $name {
                type Generation = InEntry<u16, $at, 0xffff>;
            }
        )+

        #[test]
        fn s08_all_bytes_of_the_largest_entries_are_copied() {
            $(passes(|number| {
                let mut entry = $name(bytes(number));
                entry.0[$at..$at + 2].fill(0);
                entry
            });)+
        }
    };
}

large! {
    First: 0;
    Second: 10;
    Middle: 66;
    BeforeLast: 118;
    Last: 126;
}
