use super::*;

#[test]
fn what_is_missing_is_told_with_what_to_ask_for_instead() {
    let texts = [
        (8, 0, "it can't overrun"),
        (9, 1, "it lacks 1; create it with 9,"),
        (52_429, 52_421, "it lacks 52421; create it with 52429,"),
        (52_430, 52_422, "it lacks 52422; a queue holds 52429 at most, so create several,"),
        (u64::MAX, u64::MAX - 8, "a queue holds 52429 at most"),
    ];
    for (outstanding, missing, text) in texts {
        let demand = CqDemand { capacity: 8, outstanding };
        assert_eq!(demand.missing(), missing);
        assert!(demand.to_string().contains(text), "{demand}");
    }
}
