use super::*;

fn parsed(text: &str) -> Result<Limits, LimitsTextError> {
    text.parse()
}

#[test]
fn what_is_not_named_is_as_usual_and_what_is_said_is_read() {
    let usual = Limits::default();
    assert_eq!(parsed(""), Ok(usual));
    let some = parsed(" queue_pairs = 4096, bytes=64M,").unwrap();
    assert_eq!(some, usual.queue_pairs(4096).bytes(64 << 20));
    for (text, bytes) in [("7", 7), ("3K", 3 << 10), ("2G", 2 << 30)] {
        assert_eq!(parsed(&format!("bytes={text}")), Ok(usual.bytes(bytes)));
    }
    let all = Limits::default()
        .queue_pairs(1)
        .completion_queues(2)
        .memory_regions(3)
        .shared_receive_queues(4)
        .channels(5)
        .processes(6)
        .bytes(7);
    assert_eq!(parsed(&all.to_string()), Ok(all));
}

#[test]
fn what_nobody_understands_is_refused_by_name() {
    let [part, name] = ["queue_pairs", "qps"].map(str::to_owned);
    assert_eq!(parsed("queue_pairs"), Err(LimitsTextError::NoValue { part }));
    assert_eq!(parsed("channels=1,qps=4"), Err(LimitsTextError::Unknown { name }));
    for (name, value) in [
        ("channels", ""),
        ("channels", "many"),
        ("channels", "-1"),
        ("channels", "4294967296"),
        ("queue_pairs", "1K"),
        ("bytes", "64MB"),
        ("bytes", "K"),
        ("bytes", "18014398509481984K"),
    ] {
        let (name, value) = (name.to_owned(), value.to_owned());
        let text = format!("{name}={value}");
        assert_eq!(parsed(&text), Err(LimitsTextError::BadNumber { name, value }));
    }
}
