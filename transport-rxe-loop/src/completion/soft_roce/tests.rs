use super::*;
use crate::inside::prelude::*;

#[test]
fn stored_completions_are_news_and_none_is_no_news() {
    let fixture = Fixture::new();
    let entry = Tagged { wc: Wc::new(1, WcStatus::SUCCESS, 2), solicited: false, tag: 0 };
    let news = |entries: &[Tagged]| {
        push_summary(fixture.device.completions, fixture.cq.handle.queue.index, entries)
    };
    assert_eq!(news(&[]), None);
    let all = PushSummary { all: 2, urgent: 0, at_once: false };
    assert_eq!(news(&[entry, entry]), Some(all));
}
