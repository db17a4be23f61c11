//! The members of a set, each with a number that no other has, before or after.

use alloc::vec::Vec;

/// A list in the order of the numbers, which is that in which its members were added.
#[derive(Debug)]
pub struct Members<V> {
    list: Vec<(u64, V)>,
    next_number: u64,
}

impl<V> Members<V> {
    pub const fn new() -> Self {
        Self { list: Vec::new(), next_number: 0 }
    }

    pub const fn len(&self) -> usize {
        self.list.len()
    }

    /// The number of the member that is added next.
    #[cfg(all(feature = "std", target_os = "linux"))]
    pub const fn next_number(&self) -> u64 {
        self.next_number
    }

    pub fn add(&mut self, member: V) -> u64 {
        let number = self.next_number;
        self.list.push((number, member));
        self.next_number += 1;
        number
    }

    pub fn get(&self, number: u64) -> Option<&V> {
        self.place(number).map(|place| &self.list[place].1)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut V> {
        self.place(number).map(|place| &mut self.list[place].1)
    }

    /// Removes a member. Returns the place that it had, too; those behind it move up.
    pub fn remove(&mut self, number: u64) -> Option<(usize, V)> {
        self.place(number).map(|place| (place, self.list.remove(place).1))
    }

    /// The member at a place, or the first one if there are not so many: its place, its number and itself.
    #[inline]
    pub fn at_or_first(&mut self, place: usize) -> Option<(usize, u64, &mut V)> {
        let place = if place < self.list.len() { place } else { 0 };
        self.list.get_mut(place).map(|(number, member)| (place, *number, member))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.list.iter().map(|(number, member)| (*number, member))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut V)> {
        self.list.iter_mut().map(|(number, member)| (*number, member))
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.list.binary_search_by_key(&number, |&(number, _)| number).ok()
    }
}
