//! Files of /sys, for programs that read them by functions of libibverbs, as `ibv_devinfo` of Debian 12 does.

use std::env;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::LazyLock;

use rustix::process::{geteuid, getuid};

use crate::errno::Errno;
use crate::raw::Out;
use crate::raw::addr_info::Text;
use crate::sys::*;

static PATH: LazyLock<CString> = LazyLock::new(|| {
    // Not where the program has more rights than its user.
    let other = env::var_os("SYSFS_PATH").filter(|_| getuid() == geteuid());
    let mut path = other.unwrap_or_else(|| "/sys".into()).into_vec();
    path.truncate(path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1));
    CString::new(path).unwrap_or_default()
});

/// `ibv_get_sysfs_path`: where /sys is, by `SYSFS_PATH`.
pub fn path() -> *const c_char {
    PATH.as_ptr()
}

/// `ibv_read_sysfs_file`: reads a file of this folder that has fewer than `size` bytes, without the newline at its end, and
/// with a zero: how many bytes. EINVAL: no names, no buffer, or it is too small. Or why the file can't be read.
pub fn read_file(
    folder: Text<'_>,
    file: Text<'_>,
    buf: Out<'_, c_char>,
    size: usize,
) -> Result<c_int, Errno> {
    let [folder, file] = [folder, file].map(|text| text.optional().ok_or(Errno::INVAL));
    let [folder, file] = [folder?, file?].map(|text| OsStr::from_bytes(text.to_bytes()));
    let mut bytes = Vec::new();
    let read = |file: File| file.take(size as u64).read_to_end(&mut bytes);
    // Joined as texts: neither is a path of its own.
    let path = [folder, file].join(OsStr::new("/"));
    let read = File::open(Path::new(&path)).and_then(read);
    read.map_err(|why| Errno::of(why.raw_os_error().unwrap_or(libc::EIO)))?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.len() >= size {
        return Err(Errno::INVAL);
    }
    let len = bytes.len();
    bytes.push(0);
    let text: Vec<_> = bytes.into_iter().map(|byte| byte as c_char).collect();
    buf.put_all(1, &text)?;
    Ok(len as c_int)
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::{fs, process};

    use super::*;
    use crate::test::*;

    /// What is read of a file with this content, by a buffer of so many bytes.
    fn read(content: &str, size: usize) -> Result<String, Errno> {
        let folder = env::temp_dir().join(format!("sysfs-{}-{size}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), content).unwrap();
        let path = CString::new(folder.as_os_str().as_bytes()).unwrap();
        let mut buf = [7 as c_char; 8];
        assert!(size < buf.len());
        // SAFETY: texts, and a buffer of more than `size` bytes.
        let len =
            unsafe { ibv_read_sysfs_file(path.as_ptr(), c"file".as_ptr(), buf.as_mut_ptr(), size) };
        let told = Errno::last();
        fs::remove_dir_all(folder).unwrap();
        assert!(buf[size..].iter().all(|&byte| byte == 7), "it wrote behind the buffer");
        if len < 0 {
            return Err(told);
        }
        // SAFETY: a text, since there is a zero.
        let text = unsafe { CStr::from_ptr(buf.as_ptr()) }.to_str().unwrap();
        assert_eq!(text.len(), len as usize);
        Ok(text.to_owned())
    }

    #[test]
    fn a_file_is_read_without_its_newline_if_it_fits() {
        assert_eq!(read("1: a\n", 6), Ok("1: a".to_owned()));
        assert_eq!(read("1: a", 5), Ok("1: a".to_owned()));
        assert_eq!(read("", 1), Ok(String::new()));
        assert_eq!(read("1: a", 4), Err(Errno::INVAL));
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let (no, file) = (c"/sys/none".as_ptr(), c"none".as_ptr());
        // SAFETY: texts, and no buffer.
        unsafe {
            assert_eq!(ibv_read_sysfs_file(no, file, std::ptr::null_mut(), 0), -1);
            assert_eq!(Errno::last(), Errno::NOENT);
            assert_eq!(CStr::from_ptr(ibv_get_sysfs_path()), c"/sys");
        }
    }
}
