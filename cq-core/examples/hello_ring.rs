//! A completion goes through a ring: `cargo run -p cq-core --example hello_ring`.

use cq_core::{queue, wc};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut storage = queue::SoftCq::<64>::new();
    let (mut device, mut cq) = storage.split();
    device.push(&wc::Wc::new(7, wc::WcStatus::SUCCESS, 1))?;
    for completion in cq.drain() {
        println!("request {} is done", completion?.result()?.wr_id());
    }
    Ok(())
}
