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
    lines.push(
        "without such a package, as on Debian 13: pip install --target libclang libclang==14.0.6"
            .into(),
    );
    lines.push("then set LIBCLANG_PATH=$PWD/libclang/clang/native BINDGEN_EXTRA_CLANG_ARGS=-I$(gcc -print-file-name=include)".into());
    Err(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET_PATH: &str = "LIBCLANG_PATH=/usr/lib/llvm-14/lib";

    fn libclang(path: &str, version: &str, is_old_enough: bool) -> Result<Libclang, String> {
        Ok(Libclang { path: path.into(), version: version.into(), is_old_enough })
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let right = libclang("/usr/lib/llvm-14/lib/libclang.so", "12.0.x - 15.0.x", true);
        let newer = libclang("/usr/lib/llvm-19/lib/libclang.so", "17.0.x or later", false);
        let (lacks, there) = (|| Err("not found".to_owned()), || Ok(()));
        let packages = "apt-get install libibverbs-dev librdmacm-dev pkg-config libclang-14-dev";
        for (libraries, libclang, parts) in [
            ([lacks(), there()], right.clone(), &["libibverbs 1.11", "(not found)", packages][..]),
            ([there(), lacks()], right.clone(), &["librdmacm 1.3", "(not found)", packages]),
            ([there(), there()], Err("no libclang.so".into()), &["(no libclang.so)", SET_PATH]),
            (
                [there(), there()],
                newer,
                &["17.0.x or later", "/usr/lib/llvm-19", "14 or 15", packages, SET_PATH],
            ),
        ] {
            let is_right = libclang.as_ref().is_ok_and(|libclang| libclang.is_old_enough);
            let said = judge(&Found { libraries, libclang }).unwrap_err().join("\n");
            parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
            assert_eq!(said.contains(SET_PATH), !is_right, "{said}");
            assert!(said.matches(" missing (").count() <= 1, "{said}");
        }
        assert!(judge(&Found { libraries: [there(), there()], libclang: right }).is_ok());
    }
}
