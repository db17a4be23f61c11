use super::*;

const TYPES: [QpType; 3] = [QpType::Rc, QpType::Uc, QpType::Ud];

#[test]
fn q03_a_state_says_which_requests_it_accepts() {
    let which = |accepts: fn(QpState) -> bool| -> [bool; 8] {
        std::array::from_fn(|number| accepts(QpState(number as u32)))
    };
    let (no, yes) = (false, true);
    assert_eq!(which(QpState::takes_sends), [no, no, no, yes, yes, no, yes, no]);
    assert_eq!(which(QpState::takes_recvs), [no, yes, yes, yes, yes, yes, yes, yes]);
    assert_eq!(which(QpState::receives), [no, no, yes, yes, yes, yes, no, no]);
}

#[test]
fn q01_every_state_leads_to_reset_and_all_but_that_to_err_with_no_attributes() {
    let none = Some(Rule { required: QpAttrMask::empty(), optional: QpAttrMask::empty() });
    for of in TYPES {
        for &from in QpState::KNOWN {
            assert_eq!(from.rule(QpState::RESET, of), none);
            assert_eq!(from.rule(QpState::ERR, of), none.filter(|_| from != QpState::RESET));
        }
    }
}

#[test]
fn q01_the_other_transitions_are_those_of_linux() {
    let there = [(0, 1), (1, 1), (1, 2), (2, 3), (3, 3), (3, 4), (4, 3), (4, 4), (5, 3)];
    for of in TYPES {
        for from in 0..8 {
            for to in (0..8).filter(|to| ![QpState::RESET.0, QpState::ERR.0].contains(to)) {
                let rule = QpState(from).rule(QpState(to), of);
                assert_eq!(rule.is_some(), there.contains(&(from, to)), "{of:?}: {from} to {to}");
                let both = rule.map(|rule| rule.required.intersection(rule.optional));
                assert!(both.is_none_or(|both| both.is_empty()), "{of:?}: {from} to {to}");
            }
        }
    }
    let rule = |of| QpState::INIT.rule(QpState::RTR, of).unwrap();
    let [reliable, unreliable, datagrams] = TYPES.map(|of| rule(of).required);
    assert!(reliable.contains(unreliable | QpAttrMask::MIN_RNR_TIMER));
    assert!(unreliable.contains(QpAttrMask::DEST_QPN) && datagrams.is_empty());
}
