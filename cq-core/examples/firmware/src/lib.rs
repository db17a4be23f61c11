//! What the programs share: the board, and a DMA engine with its driver.
#![no_std]
#![deny(unsafe_code)]

pub mod board;
pub mod dma;
pub mod engine;
pub mod transfers;
