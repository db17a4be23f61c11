//! Several completions pushed at once: which are solicited (N3), and what is seen of them (P2).

use super::*;

#[test]
fn n03_a_plain_completion_is_not_solicited_and_a_batch_of_them_neither() {
    each_lone!(|producer, consumer, event_count| {
        let _ = cq_core::transport::Arm::arm(&mut consumer, Notify::Solicited).unwrap();
        producer.push(&recv(0)).unwrap();
        producer.push_batch(&[recv(1), send(2)]).unwrap();
        producer.push(&recv(3)).unwrap();
        assert_eq!(event_count.take(), 0);
        assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
        producer.push_batch(&[recv(4), super::failed(5)]).unwrap();
        assert_eq!(event_count.take(), 1, "a failure is urgent without a flag");
        assert_eq!(consumer.end(), None);
    });
}

#[test]
fn p02_a_batch_is_seen_whole_or_not_at_all() {
    const PUSHES: u64 = many(5_000);
    macro_rules! whole {
        ($queue:path) => {{
            let (mut producer, mut consumer) = <$queue>::new(16).unwrap().split();
            thread::scope(|threads| {
                threads.spawn(move || {
                    for number in (0..PUSHES).map(|nth| 5 * nth) {
                        let start = Instant::now();
                        while producer.available() < 5 {
                            assert!(start.elapsed() < DEADLINE, "jammed");
                            thread::yield_now();
                        }
                        producer
                            .push_batch(&[0, 1, 2, 3, 4].map(|nth| send(number + nth)))
                            .unwrap();
                    }
                });
                let (mut next, mut out, mut last) = (0, [Wc::default(); 16], Instant::now());
                while next < 5 * PUSHES {
                    let count = consumer.poll_into(&mut out).unwrap() as u64;
                    assert_eq!(count % 5, 0, "a part of a batch");
                    assert!(out.iter().map(Wc::wr_id).take(count as usize).eq(next..next + count));
                    next += count;
                    match count {
                        0 => thread::yield_now(),
                        _ => last = Instant::now(),
                    }
                    assert!(last.elapsed() < DEADLINE, "jammed");
                }
            });
        }};
    }
    whole!(cq_core::queue::HeapCq);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    whole!(cq_core::queue::mpsc::HeapCq);
}
