#!/bin/sh
# rustdoc checks which error an example with `compile_fail,E0277` fails by only where unstable features are allowed.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
