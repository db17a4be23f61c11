//! What building transport-verbs needs, judged by what was found, and what to do about the rest.

/// The libraries that are linked to, by the names that pkg-config knows, and from which version on they have
/// what is called: that of rdma-core 32.
pub const LIBRARIES: [(&str, &str); 2] = [("libibverbs", "1.11.32"), ("librdmacm", "1.3.32")];

/// What there is on this machine.
pub struct Found {
    /// For each of [`LIBRARIES`], or why it can't be used.
    pub libraries: [Result<(), String>; 2],
    /// What generates the bindings, or why it could not be loaded.
    pub libclang: Result<Libclang, String>,
}

/// A libclang that was loaded.
#[derive(Clone)]
pub struct Libclang {
    /// Where it is.
    pub path: String,
    /// Its version, as far as it can be told.
    pub version: String,
    /// Whether the generator of rdma-sys works with it: up to 15.
    pub is_old_enough: bool,
}

/// What is missing and what to do, one line each.
///
/// # Errors
/// Something is missing.
pub fn judge(found: &Found) -> Result<(), Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for ((name, version), result) in LIBRARIES.iter().zip(&found.libraries) {
        if let Err(why) = result {
            lines.push(format!("{name} {version} or newer is missing ({why})"));
        }
    }
    match &found.libclang {
        Err(why) => lines.push(format!("libclang is missing ({why})")),
        Ok(Libclang { is_old_enough: true, .. }) => {}
        Ok(Libclang { path, version, .. }) => {
            lines.push(format!(
                "libclang {version} at {path} is too new for rdma-sys: use 14 or 15"
            ));
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    lines.insert(0, "transport-verbs can't be built on this machine:".into());
    lines.push("on Debian and Ubuntu: apt-get install libibverbs-dev librdmacm-dev pkg-config libclang-14-dev".into());
    if found.libclang.as_ref().is_ok_and(|libclang| libclang.is_old_enough) {
        return Err(lines);
    }
    lines.push("then set LIBCLANG_PATH=/usr/lib/llvm-14/lib, where that libclang is".into());
    Err(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Found {
        let path = "/usr/lib/llvm-14/lib/libclang.so".into();
        let libclang = Libclang { path, version: "12.0.x - 15.0.x".into(), is_old_enough: true };
        Found { libraries: [Ok(()), Ok(())], libclang: Ok(libclang) }
    }

    fn said(found: &Found) -> String {
        judge(found).unwrap_err().join("\n")
    }

    #[test]
    fn nothing_is_said_where_everything_is_there() {
        assert!(judge(&everything()).is_ok());
    }

    #[test]
    fn a_missing_library_is_named_with_the_packages() {
        for missing in [0, 1] {
            let mut found = everything();
            found.libraries[missing] = Err("not found".into());
            let said = said(&found);
            assert!(said.contains(LIBRARIES[missing].0) && said.contains("not found"), "{said}");
            assert!(
                said.contains("apt-get install libibverbs-dev librdmacm-dev pkg-config"),
                "{said}"
            );
            assert!(!said.contains("LIBCLANG_PATH"), "the libclang is right: {said}");
            assert_eq!(said.matches("is missing").count(), 1, "{said}");
        }
    }

    #[test]
    fn a_missing_libclang_is_named_with_its_path() {
        let said = said(&Found { libclang: Err("no libclang.so".into()), ..everything() });
        assert!(said.contains("no libclang.so") && said.contains("libclang-14-dev"), "{said}");
        assert!(said.contains("LIBCLANG_PATH=/usr/lib/llvm-14/lib"), "{said}");
    }

    #[test]
    fn a_libclang_that_is_too_new_is_named_with_its_version() {
        let path = "/usr/lib/llvm-19/lib/libclang.so".into();
        let libclang = Libclang { path, version: "17.0.x or later".into(), is_old_enough: false };
        let said = said(&Found { libclang: Ok(libclang), ..everything() });
        for part in ["17.0.x or later", "/usr/lib/llvm-19", "14 or 15", "LIBCLANG_PATH"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
