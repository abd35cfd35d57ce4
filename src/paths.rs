//! Which files a caller may name: plain names below a directory of ours, through no link. And which
//! names servers and pages may give: any, once they are made plain.

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use storage::{StorageError, directory};

use crate::limits::head;
use crate::unseen::is_unseen;

/// Why a path was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotBelow;

/// The longest path a caller may name, in bytes.
const PATH_BYTES_MAX: usize = 1_024;

/// `asked` below `root`, its directories made. An absolute path is taken when it already lies below.
///
/// # Errors
/// When it leaves `root` by `..`, by a link, or by being another absolute path; when it would not look
/// like what it is, or be taken for a file that was not finished.
pub fn below(root: &Path, asked: &str) -> Result<PathBuf, NotBelow> {
    if asked.is_empty() || asked.len() > PATH_BYTES_MAX || asked.contains(is_unseen) || asked.ends_with('/') {
        return Err(NotBelow);
    }
    if is_unfinished(asked.rsplit('/').next().unwrap_or_default()) {
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
    directory::make_private(root).map_err(|_| NotBelow)?;
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

/// Why a file is not handed on; of several reasons the greatest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotReadable {
    /// It lies below none of the directories.
    Outside,
    Absent,
    /// Neither a file nor a directory.
    Special,
    /// A link leads to it, or away from below it.
    Linked,
}

/// The file or directory that `asked` names below one of `roots`; the first that has it counts.
///
/// # Errors
/// Says of a path outside nothing but that it is outside.
pub fn readable(roots: &[PathBuf], asked: &str) -> Result<PathBuf, NotReadable> {
    let mut refusal = NotReadable::Outside;
    for root in roots {
        match readable_below(root, asked) {
            Ok(path) => return Ok(path),
            Err(other) => refusal = refusal.max(other),
        }
    }
    Err(refusal)
}

fn readable_below(root: &Path, asked: &str) -> Result<PathBuf, NotReadable> {
    if asked.is_empty() || asked.len() > PATH_BYTES_MAX || asked.contains('\0') {
        return Err(NotReadable::Outside);
    }
    let relative = Path::new(asked).strip_prefix(root).unwrap_or(Path::new(asked));
    let mut parts = relative.components().peekable();
    if parts.peek().is_none() || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err(NotReadable::Outside);
    }
    let mut reached = root.to_owned();
    for part in relative.components() {
        reached.push(part);
        let found = std::fs::symlink_metadata(&reached).map_err(|_| NotReadable::Absent)?;
        match found.file_type() {
            kind if kind.is_symlink() => return Err(NotReadable::Linked),
            kind if kind.is_file() || kind.is_dir() => {}
            _ => return Err(NotReadable::Special),
        }
    }
    Ok(reached)
}

/// Entries of a directory that is handed on whole.
const ENTRIES_MAX: usize = 10_000;

/// A directory that is handed on whole must hold no link: it could lead anywhere.
///
/// # Errors
/// `Linked` when it holds one, or more entries than can be looked at.
pub fn without_links(directory: &Path) -> Result<(), NotReadable> {
    let mut waiting = vec![directory.to_owned()];
    let mut entries = 0;
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).map_err(|_| NotReadable::Absent)? {
            let entry = entry.map_err(|_| NotReadable::Absent)?;
            let kind = entry.file_type().map_err(|_| NotReadable::Absent)?;
            entries += 1;
            if kind.is_symlink() || entries > ENTRIES_MAX {
                return Err(NotReadable::Linked);
            }
            if kind.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(())
}

/// The longest name of a file, in bytes: what file systems take, with room for a number.
const NAME_BYTES_MAX: usize = 240;
/// The longest ending that a shortened name keeps, in bytes.
const ENDING_BYTES_MAX: usize = 32;
/// Names that mean a device somewhere, whatever their ending.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// The name of a file that was given none.
const NAMELESS: &str = "download";

/// The name that a server or page gave, as the name of a file: one part, printable, of a length that
/// file systems take, and nobody's device.
#[must_use]
pub fn plain_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).find(|part| !part.trim_matches(['.', ' ']).is_empty()).unwrap_or_default();
    let kept: String =
        last.chars().filter(|c| !is_unseen(*c)).map(|c| if "<>:\"|?*".contains(c) { '_' } else { c }).collect();
    let kept = kept.trim_start_matches(['.', ' ']).trim_end_matches(['.', ' ']);
    let kept = if kept.is_empty() { NAMELESS } else { kept };
    let stem = kept.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = (stem.starts_with("com") || stem.starts_with("lpt"))
        && stem.len() == 4
        && stem.ends_with(|c: char| c.is_ascii_digit());
    let kept = if numbered || DEVICES.contains(&stem.as_str()) { format!("_{kept}") } else { kept.to_owned() };
    shortened(&kept)
}

/// Cuts the middle out of a long name: its ending says what it is.
fn shortened(name: &str) -> String {
    if name.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let (stem, ending) =
        name.rsplit_once('.').filter(|(_, ending)| ending.len() <= ENDING_BYTES_MAX).unwrap_or((name, ""));
    let room = NAME_BYTES_MAX - ending.len() - 1;
    let stem = head(stem, room);
    if ending.is_empty() { stem.to_owned() } else { format!("{stem}.{ending}") }
}

/// Files of one name in one directory before names run out.
const SAME_NAME_MAX: usize = 10_000;

/// `name` in `directory`, with a number where it is taken.
///
/// # Errors
/// When every number is taken.
pub fn free_name(directory: &Path, name: &str) -> Result<PathBuf, NotBelow> {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    let names = (0..SAME_NAME_MAX).map(|n| if n == 0 { name.to_owned() } else { format!("{stem} ({n}){ending}") });
    let mut paths = names.map(|name| directory.join(name));
    paths.find(|path| std::fs::symlink_metadata(path).is_err()).ok_or(NotBelow)
}

/// Copies the file at `from` to a file that appears whole or not at all, readable by this user alone.
///
/// # Errors
/// As [`write()`].
pub fn copy(from: &Path, to: &Path) -> Result<(), StorageError> {
    let mut source = std::fs::File::open(from).map_err(StorageError::io("open", from))?;
    place(to, |file| std::io::copy(&mut source, file).map(drop))
}

/// Writes `bytes` as a file that appears whole or not at all, readable by this user alone.
///
/// # Errors
/// When the disk refuses; what stood there before then still does.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    place(path, |file| file.write_all(bytes))
}

fn place(path: &Path, fill: impl FnOnce(&mut std::fs::File) -> std::io::Result<()>) -> Result<(), StorageError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED_PREFIX)
        .rand_bytes(UNFINISHED_RANDOM_LENGTH)
        .suffix(UNFINISHED_SUFFIX)
        .tempfile_in(directory);
    let mut file = unfinished.map_err(StorageError::io("create a file in", directory))?;
    fill(file.as_file_mut()).map_err(StorageError::io("write", path))?;
    file.as_file().sync_all().map_err(StorageError::io("sync", path))?;
    file.persist(path).map_err(|error| StorageError::io("rename to", path)(error.error))?;
    directory::sync(directory)
}

/// How a file is called until it is whole; exports call theirs by `.`, the name, `.`, then the same.
const UNFINISHED_PREFIX: &str = ".unfinished.";
const UNFINISHED_RANDOM_LENGTH: usize = 12;
const UNFINISHED_SUFFIX: &str = ".part";
/// Directories below one that is cleared, so deep.
const DEPTH_MAX: usize = 64;

fn is_unfinished(name: &str) -> bool {
    let stem = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(UNFINISHED_SUFFIX));
    let random = stem.and_then(|stem| stem.rsplit_once('.')).map(|(_, random)| random);
    random.is_some_and(|random| {
        random.len() == UNFINISHED_RANDOM_LENGTH && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Removes what a killed process did not finish below `directory`: nobody else writes there. Follows
/// no link. What cannot be removed now is at the next start.
pub fn clear_unfinished(directory: &Path) {
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((next, depth)) = waiting.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            if kind.is_dir() && depth < DEPTH_MAX {
                waiting.push((entry.path(), depth + 1));
            } else if kind.is_file() && name.to_str().is_some_and(is_unfinished) {
                match std::fs::remove_file(entry.path()) {
                    Ok(()) => tracing::info!(name = %name.display(), "a file that was not finished is removed"),
                    Err(error) => tracing::warn!(%error, "a file that was not finished could not be removed"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_under_way_is_told_from_others() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let names = |directory: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(directory).expect("it is there").flatten();
            entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect()
        };
        let failed = place(&directory.path().join("a.txt"), |_| {
            let found = names(directory.path());
            assert!(found.len() == 1 && is_unfinished(&found[0]), "{found:?}");
            Err(std::io::Error::other("the disk refuses"))
        });
        assert!(failed.is_err());
        assert_eq!(names(directory.path()), Vec::<String>::new(), "a file that failed leaves nothing");
        for other in [".part", "a.0123456789ab.part", ".a.0123456789a.part", ".a.0123456789a-.part", ".hidden"] {
            assert!(!is_unfinished(other), "{other}");
        }
    }

    #[test]
    fn nothing_leaves_the_root() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let root = root.path();
        std::os::unix::fs::symlink("/tmp", root.join("link")).expect("a link");
        for asked in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            "link/x",
            "link",
            "",
            "a/",
            "a\0b",
            ".",
            "..",
            "./..",
            "a\nb",
            "a\u{1b}[2J",
            "a\u{202e}b",
        ] {
            assert_eq!(below(root, asked), Err(NotBelow), "{asked:?}");
        }
        let unfinished = "d/.a.csv.0123456789ab.part";
        assert_eq!(below(root, unfinished), Err(NotBelow), "the next start would remove it");
        assert_eq!(below(root, "-a/.b"), Ok(root.join("-a/.b")));
        assert_eq!(below(root, "a/b.png"), Ok(root.join("a/b.png")));
        let inside = root.join("c.png");
        assert_eq!(below(root, inside.to_str().expect("a UTF-8 path")), Ok(inside));
    }

    #[test]
    fn only_what_lies_below_is_read() {
        let data = tempfile::tempdir().expect("a temporary directory");
        let roots = [data.path().join("uploads"), data.path().join("more")];
        std::fs::create_dir_all(roots[0].join("set")).expect("a directory");
        std::fs::create_dir_all(&roots[1]).expect("a directory");
        std::fs::write(data.path().join("outside"), "x").expect("a file");
        std::fs::write(roots[1].join("b"), "x").expect("a file");
        std::fs::write(roots[0].join("set/a"), "x").expect("a file");
        std::os::unix::fs::symlink(data.path().join("outside"), roots[0].join("link")).expect("a link");
        std::os::unix::fs::symlink(data.path(), roots[0].join("way")).expect("a link");
        let _socket = std::os::unix::net::UnixListener::bind(roots[0].join("socket")).expect("a socket");
        for asked in ["../outside", "/etc/passwd", "set/../../outside", "", "a\0", ".", "./x"] {
            assert_eq!(readable(&roots, asked), Err(NotReadable::Outside), "{asked:?}");
        }
        for asked in ["link", "way", "way/outside"] {
            assert_eq!(readable(&roots, asked), Err(NotReadable::Linked), "{asked:?}");
        }
        std::os::unix::fs::symlink(data.path(), roots[0].join("set/deep")).expect("a link");
        assert_eq!(without_links(&roots[0].join("set")), Err(NotReadable::Linked));
        assert_eq!(without_links(&roots[1]), Ok(()));
        assert_eq!(readable(&roots, "none"), Err(NotReadable::Absent));
        assert_eq!(readable(&roots, "socket"), Err(NotReadable::Special));
        assert_eq!(readable(&roots, "set/a"), Ok(roots[0].join("set/a")));
        assert_eq!(readable(&roots, "set"), Ok(roots[0].join("set")));
        assert_eq!(readable(&roots, "b"), Ok(roots[1].join("b")));
        assert_eq!(readable(&roots, roots[1].join("b").to_str().expect("UTF-8")), Ok(roots[1].join("b")));
        let outside = data.path().join("outside");
        assert_eq!(readable(&roots, outside.to_str().expect("UTF-8")), Err(NotReadable::Outside));
    }

    #[test]
    fn given_names_become_plain() {
        for (given, plain) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("a\\b\\c.txt", "c.txt"),
            ("..", "download"),
            ("", "download"),
            ("  .hidden. ", "hidden"),
            ("tab\tnew\nline\0nul.txt", "tabnewlinenul.txt"),
            ("CON", "_CON"),
            ("lpt1.txt", "_lpt1.txt"),
            ("console.txt", "console.txt"),
            ("a<b>:c?.txt", "a_b__c_.txt"),
            ("gpj.\u{202e}exe", "gpj.exe"),
            ("x/", "x"),
        ] {
            assert_eq!(plain_name(given), plain, "{given:?}");
        }
        let long = plain_name(&format!("{}.tar.gz", "\u{e9}".repeat(300)));
        assert!(long.len() <= NAME_BYTES_MAX && long.ends_with(".gz"), "{long}");
        assert_eq!(plain_name(&format!("x.{}", "y".repeat(300))).len(), NAME_BYTES_MAX - 1);
    }

    #[test]
    fn names_that_are_taken_get_a_number() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let directory = directory.path();
        for wanted in ["a.txt", "a (1).txt", "a (2).txt"] {
            let free = free_name(directory, "a.txt").expect("there is one");
            assert_eq!(free, directory.join(wanted));
            copy(Path::new("/dev/null"), &free).expect("it is written");
        }
    }
}
