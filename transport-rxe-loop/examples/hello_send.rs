//! A SEND from one queue pair to another: `cargo run -p transport-rxe-loop --example hello_send`.

use transport_rxe_loop::{Access, Context, RecvWr, SendWr};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = Context::open("loop0")?;
    let (port, pd) = (context.port(1)?, context.alloc_pd()?);
    let buffer = pd.allocate(64, Access::LOCAL_WRITE)?;
    let (send_cq, mut recv_cq) = (context.cq(16).create()?, context.cq(16).create()?);
    let (mut alice, mut bob) = (pd.qp(&send_cq).create()?, pd.qp(&recv_cq).create()?);
    alice.connect(&port, &bob.endpoint(&port))?;
    bob.connect(&port, &alice.endpoint(&port))?;

    bob.post_recv(&[RecvWr::new(1, &[buffer.sge(..)?])])?;
    alice.post_send(&[SendWr::send_inline(2, b"hello")])?;
    let received = loop {
        if let Some(wc) = recv_cq.pop()? {
            break wc.result()?.byte_len();
        }
    };
    let mut text = vec![0; received as usize];
    buffer.read(0, &mut text)?;
    println!("{}", String::from_utf8(text)?);
    Ok(())
}
