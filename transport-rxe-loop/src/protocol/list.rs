//! Lists in the device's memory, which go from one member to the next by number. Whoever uses one holds
//! the lock that it is under, and says where a member keeps the link to its successor.

use crate::sync::{self, AtomicU32};

/// Which member is first and which is last, each plus 1; 0 is none. Zeros are an empty list. The links of
/// the members are of the same kind.
#[derive(Debug, Default)]
#[repr(C)]
pub struct List {
    first: AtomicU32,
    last: AtomicU32,
}

impl List {
    /// The first member.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        sync::load_u32(&self.first).checked_sub(1)
    }

    /// Forgets all members.
    pub fn clear(&self) {
        sync::store_u32(&self.first, 0);
        sync::store_u32(&self.last, 0);
    }

    /// Puts one, which is not in it, at the end.
    pub fn append<'a>(&'a self, member: u32, link: impl Fn(u32) -> &'a AtomicU32) {
        let last = sync::load_u32(&self.last);
        sync::store_u32(link(member), 0);
        sync::store_u32(&self.last, member + 1);
        let end = if self.first().is_none() { &self.first } else { link(last.wrapping_sub(1)) };
        sync::store_u32(end, member + 1);
    }

    /// Takes one out, wherever it stands, if it is among the first `most`: a list that a stranger has
    /// bent into a ring has an end, too.
    pub fn remove<'a>(&'a self, member: u32, most: u32, link: impl Fn(u32) -> &'a AtomicU32) {
        let mut towards = &self.first;
        let mut before = 0;
        for _ in 0..most {
            let here = sync::load_u32(towards);
            if here == 0 {
                return;
            }
            let next = link(here - 1);
            if here == member + 1 {
                sync::store_u32(towards, sync::load_u32(next));
                if sync::load_u32(&self.last) == here {
                    sync::store_u32(&self.last, before);
                }
                // So that taking the first, again and again, gets to the end of a ring, too.
                sync::store_u32(next, 0);
                return;
            }
            (towards, before) = (next, here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: usize = 4;

    fn all(list: &List, links: &[AtomicU32; LINKS]) -> Vec<u32> {
        let next = |&member: &u32| sync::load_u32(&links[member as usize]).checked_sub(1);
        std::iter::successors(list.first(), next).collect()
    }

    #[test]
    fn members_leave_from_anywhere_and_the_rest_keeps_its_order() {
        for gone in 0..LINKS as u32 {
            let list = List { first: AtomicU32::new(0), last: AtomicU32::new(0) };
            let links = [const { AtomicU32::new(7) }; LINKS];
            let link = |member: u32| &links[member as usize];
            (0..4).for_each(|member| list.append(member, link));
            assert_eq!(all(&list, &links), [0, 1, 2, 3]);
            list.remove(gone, 4, link);
            let mut rest: Vec<_> = (0..4).filter(|&member| member != gone).collect();
            assert_eq!(all(&list, &links), rest);
            list.remove(gone, 4, link);
            assert_eq!(all(&list, &links), rest, "it is not there any more");
            list.append(gone, link);
            rest.push(gone);
            assert_eq!(all(&list, &links), rest);
            rest.iter().for_each(|&member| list.remove(member, 4, link));
            assert_eq!(list.first(), None);
            list.append(gone, link);
            assert_eq!(all(&list, &links), [gone]);
        }
    }

    #[test]
    fn a_list_that_was_bent_into_a_ring_is_emptied_by_taking_its_first() {
        let list = List { first: AtomicU32::new(1), last: AtomicU32::new(2) };
        let links = [2, 3, 1, 0].map(AtomicU32::new);
        let first =
            || list.first().inspect(|&member| list.remove(member, 1, |at| &links[at as usize]));
        assert!(std::iter::from_fn(first).take(100).eq([0, 1, 2, 0]));
    }

    #[test]
    fn a_list_without_an_end_is_left() {
        let list = List { first: AtomicU32::new(1), last: AtomicU32::new(1) };
        let itself = AtomicU32::new(1);
        list.remove(3, 100, |_| &itself);
        assert_eq!(list.first(), Some(0));
    }
}
