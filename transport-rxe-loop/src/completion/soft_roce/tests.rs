use super::*;
use crate::inside::prelude::*;

#[test]
fn stored_completions_are_news_and_none_is_no_news() {
    let context = Context::open("loop0").unwrap();
    let cq = context.create_cq(4, None).unwrap();
    let wc = Wc::new(1, WcStatus::SUCCESS, 2);
    let entry = Entry { wc, solicited: false, tag: 0 };
    let (fabric, index) = (context.device(), cq.queue().index);
    assert_eq!(push_summary(fabric.completions, index, &[]), None);
    let all = PushSummary { all: 2, urgent: 0, at_once: false };
    assert_eq!(push_summary(fabric.completions, index, &[entry, entry]), Some(all));
}
