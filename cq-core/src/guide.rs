//! Guides to the engine alone. Those to RDMA are pages of cq-verbs, those to tests and transports of cq-testing.
//!
//! - [`firmware`]: `no_std` with an interrupt and a static queue, for a main loop, embassy or RTIC.

#[doc(alias("DMA", "embassy", "flash", "interrupt", "IRQ", "ISR", "no_std", "RTIC", "WFI"))]
pub mod firmware;
