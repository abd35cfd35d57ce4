//! Which files a caller may name: plain names below a directory of ours, through no link.

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use storage::StorageError;

/// Why a path was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotBelow;

/// The longest path a caller may name, in bytes.
const PATH_BYTES_MAX: usize = 1_024;

/// `asked` below `root`, its directories made. An absolute path is taken when it already lies below.
///
/// # Errors
/// When it leaves `root` by `..`, by a link, or by being another absolute path.
pub fn below(root: &Path, asked: &str) -> Result<PathBuf, NotBelow> {
    if asked.is_empty() || asked.len() > PATH_BYTES_MAX || asked.contains('\0') || asked.ends_with('/') {
        return Err(NotBelow);
    }
    let relative = Path::new(asked).strip_prefix(root).unwrap_or(Path::new(asked));
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain {
        return Err(NotBelow);
    }
    let path = root.join(relative);
    let directory = path.parent().ok_or(NotBelow)?;
    make_directories(root, directory)?;
    // The name itself must not be a link that leads elsewhere.
    match std::fs::symlink_metadata(&path) {
        Ok(found) if !found.is_file() => Err(NotBelow),
        _ => Ok(path),
    }
}

/// Makes what is missing between `root` and `directory`, and refuses anything there that is no
/// directory of its own.
fn make_directories(root: &Path, directory: &Path) -> Result<(), NotBelow> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|_| NotBelow)?;
    let mut reached = root.to_owned();
    for part in directory.strip_prefix(root).map_err(|_| NotBelow)?.components() {
        reached.push(part);
        match std::fs::DirBuilder::new().mode(0o700).create(&reached) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let found = std::fs::symlink_metadata(&reached).map_err(|_| NotBelow)?;
                if !found.is_dir() {
                    return Err(NotBelow);
                }
            }
            Err(_) => return Err(NotBelow),
        }
    }
    Ok(())
}

/// Writes `bytes` as a file that appears whole or not at all, readable by this user alone.
///
/// # Errors
/// When the disk refuses; what stood there before then still does.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file =
        tempfile::NamedTempFile::new_in(directory).map_err(StorageError::io("create a file in", directory))?;
    file.write_all(bytes).map_err(StorageError::io("write", path))?;
    file.as_file().sync_all().map_err(StorageError::io("sync", path))?;
    file.persist(path).map_err(|error| StorageError::io("rename to", path)(error.error))?;
    let opened = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    opened.map_err(StorageError::io("sync", directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_the_root() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let root = root.path();
        std::os::unix::fs::symlink("/tmp", root.join("link")).expect("a link");
        for asked in ["../x", "a/../../x", "/etc/passwd", "link/x", "link", "", "a/", "a\0b", ".", "..", "./.."] {
            assert_eq!(below(root, asked), Err(NotBelow), "{asked:?}");
        }
        assert_eq!(below(root, "a/b.png"), Ok(root.join("a/b.png")));
        let inside = root.join("c.png");
        assert_eq!(below(root, inside.to_str().expect("a UTF-8 path")), Ok(inside));
    }
}
