//! What was counted, as text.

use cq_verbs::counters::Completions;

use super::*;

#[test]
fn counts_are_printed_as_a_table() {
    let mut counts = Counts::default();
    let zeros = "\
polls                                            0
  empty                                          0
completions                                      0
arms                                             0
events                                           0
  spurious                                       0
overruns                                         0
high-water mark                                  0";
    assert_eq!(counts.to_string(), zeros);
    (counts.polls, counts.empty_polls, counts.failed_polls) = (u64::MAX, 1_000_000, 999);
    (counts.arms, counts.events, counts.spurious_events) = (1000, 100_000, 10);
    let of = |status: u32, count: usize| vec![with(status); count];
    let (mut producer, consumer) = HeapCq::new(4096).unwrap().split();
    let (mut cq, counters) = counted_cq(consumer);
    for batch in [of(6, 12), of(99, 1), of(0, 1234)] {
        producer.push_batch(&batch).unwrap();
    }
    cq.poll(&mut [wc(0); 2048]).unwrap();
    counts.completions = counters.snapshot().completions;
    assert_eq!(
        counts.to_string(),
        "\
polls                               18,446,744,073,709,551,615
  empty                                  1,000,000
  failed                                       999
completions                                  1,247
  success                                    1,234
  memory management operation error             12
  unknown                                        1
arms                                         1,000
events                                     100,000
  spurious                                      10
overruns                                         0
high-water mark                                  0"
    );
}

#[test]
fn counts_are_serialized_with_the_names_of_the_statuses_that_came() {
    let script = script().on_poll(Ok(&[wc(1), with(5), with(5), with(77)]));
    let (mut cq, counters) = counted_cq(&script);
    cq.poll(&mut [wc(0); 8]).unwrap();
    let counts = counters.snapshot();
    let text = serde_json::to_string(&counts).unwrap();
    let completions = r#""completions":{"SUCCESS":1,"WR_FLUSH_ERR":2,"unknown":1}"#;
    assert!(text.contains(completions), "{text}");
    assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), counts);
    let reader = text.as_bytes();
    assert_eq!(serde_json::from_reader::<_, Counts>(reader).unwrap(), counts);

    let refused = |text| serde_json::from_str::<Completions>(text).unwrap_err().to_string();
    assert!(refused(r#"{"NO_ERR":1}"#).starts_with("NO_ERR is not the name of a status"));
    assert!(refused("[1]").contains("numbers of completions by the names of their statuses"));
}
