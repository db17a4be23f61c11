//! Loom's atomics. Each store, swap and compare-exchange is a [step](super::death) at which a thread can be killed, and
//! has no effect in a dead one.

#![expect(
    missing_docs,
    reason = "the methods are those of core, whose documentation says what they do"
)]

use core::sync::atomic::Ordering;

use loom::sync::atomic;

use super::death::step;

macro_rules! mortal {
    ($name:ident, $value:ty $(, $of:ident)?) => {
        /// Loom's atomic, for threads that can be killed.
        #[derive(Debug, Default)]
        pub struct $name$(<$of>)?(atomic::$name$(<$of>)?);

        impl$(<$of>)? $name$(<$of>)? {
            #[must_use]
            pub fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            /// # Safety
            /// No other thread writes it meanwhile.
            #[allow(unsafe_code)]
            pub unsafe fn unsync_load(&self) -> $value {
                // SAFETY: no other thread writes it meanwhile (guaranteed by the caller, and checked by loom).
                unsafe { self.0.unsync_load() }
            }

            pub fn load(&self, ordering: Ordering) -> $value {
                self.0.load(ordering)
            }

            pub fn store(&self, value: $value, ordering: Ordering) {
                if step() {
                    self.0.store(value, ordering);
                }
            }

            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                if step() { self.0.swap(value, ordering) } else { self.0.load(Ordering::Relaxed) }
            }

            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if !step() {
                    return Err(self.0.load(Ordering::Relaxed));
                }
                self.0.compare_exchange(current, new, success, failure)
            }

            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                self.0.fetch_update(success, failure, change)
            }
        }
    };
}

macro_rules! count {
    ($name:ident, $value:ty) => {
        impl $name {
            pub fn fetch_add(&self, value: $value, ordering: Ordering) -> $value {
                self.0.fetch_add(value, ordering)
            }

            pub fn fetch_sub(&self, value: $value, ordering: Ordering) -> $value {
                self.0.fetch_sub(value, ordering)
            }
        }
    };
}

mortal!(AtomicU8, u8);
mortal!(AtomicU32, u32);
mortal!(AtomicU64, u64);
mortal!(AtomicPtr, *mut T, T);
count!(AtomicU8, u8);
count!(AtomicU32, u32);
count!(AtomicU64, u64);
