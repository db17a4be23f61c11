//! What errors say: their own sentence, and their causes' by those.

use std::error::Error;

use cq_core::causes::Causes;
use transport_rxe_loop::{
    AttachError, CreateError, FaultsError, Limits, LimitsTextError, OpenError, OpenOptions,
};

/// Whether each error says its own sentence only: what a cause says is said by the cause.
fn says_its_own_only(error: &dyn Error) -> bool {
    error.source().is_none_or(|cause| {
        !error.to_string().contains(&cause.to_string()) && says_its_own_only(cause)
    })
}

#[test]
fn a_cause_is_told_once() {
    let errors: [OpenError; 4] = [
        CreateError::Forked.into(),
        AttachError::NoSharedMemory { directory: "/nowhere".into() }.into(),
        FaultsError::NotText.into(),
        LimitsTextError::NotText.into(),
    ];
    for error in errors {
        assert!(error.source().is_some() && says_its_own_only(&error), "{}", Causes(&error));
    }
    let limits = Limits { queue_pairs: 0, ..Limits::default() };
    let error = OpenOptions::new().fabric("texts").limits(limits).open("loop0").unwrap_err();
    assert!(says_its_own_only(&error), "{}", Causes(&error));
    let line = Causes(&error).to_string();
    assert_eq!(line.matches("0 queue pairs").count(), 1, "{line}");
}
