//! Two queue pairs take their receives from one shared queue, and a thread sleeps until messages come:
//! `cargo run -p transport-rxe-loop --example hello_srq`.

use transport_rxe_loop::{Access, CompletionQueue, Context, RecvWr, SendWr, SrqInit, Wc};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = Context::open("loop0")?;
    let (port, pd) = (context.port(1)?, context.alloc_pd()?);
    let buffer = pd.allocate(4 * 64, Access::LOCAL_WRITE)?;
    let mut channel = context.create_channel()?;
    let mut cq = CompletionQueue::new(context.cq(16).channel(&channel).create()?);
    let send_cq = context.cq(16).create()?;

    let mut srq = pd.create_srq(&SrqInit::new(4))?;
    for slot in 0..4 {
        srq.post_recv(&[RecvWr::new(slot as u64, &[buffer.sge(64 * slot..64 * (slot + 1))?])])?;
    }
    let mut pairs = Vec::new();
    for text in ["from the first", "from the second"] {
        let (mut sender, mut taker) = (pd.qp(&send_cq).create()?, pd.qp(&cq).srq(&srq).create()?);
        sender.connect(&port, &taker.endpoint(&port))?;
        taker.connect(&port, &sender.endpoint(&port))?;
        sender.post_send(&[SendWr::send_inline(0, text.as_bytes())])?;
        pairs.push((sender, taker));
    }

    let (mut wcs, mut received) = ([Wc::default(); 4], 0);
    while received < pairs.len() {
        for wc in cq.wait(&mut wcs, &mut channel, None)? {
            let done = wc.result()?;
            let mut text = vec![0; done.byte_len() as usize];
            buffer.read(64 * done.wr_id() as usize, &mut text)?;
            println!("{}", String::from_utf8(text)?);
            received += 1;
        }
    }
    Ok(())
}
