//! Two tasks exchange a message: `cargo run -p transport-rxe-loop --features tokio --example hello_tasks`.

use transport_rxe_loop::{Access, Context, SendWr, verbs::device::Slots, verbs::task};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let context = Context::open("loop0")?;
    let (port, pd) = (context.port(1)?, context.alloc_pd()?);
    let driver = task::Driver::open(&context, 32)?;
    let (queue, handle) = (driver.queue(), driver.handle());
    tokio::spawn(driver.run());
    let alice = task::TaskQp::create(&pd, &queue, &handle, 8, 8).await?;
    let bob = task::TaskQp::create(&pd, &queue, &handle, 8, 8).await?;
    alice.connect(&port, &bob.query(|qp| qp.endpoint(&port)))?;
    bob.connect(&port, &alice.query(|qp| qp.endpoint(&port)))?;

    let pool = task::Pool::new(Slots::allocate(&pd, 2, 64, Access::LOCAL_WRITE)?);
    let to = pool.take().await;
    let receiver = tokio::spawn(async move { bob.receive(&[to.sge()], to).await });
    alice.send(SendWr::send_inline(0, b"hello"), pool.take().await).await?;
    println!("a message of {} bytes", receiver.await??.completed().byte_len());
    Ok(())
}
